/* Folder costmodel/schedule: pipeline schedules, one file a family; no durations.
 *
 * A schedule is data: one list of actions per rank, from which steps are priced,
 * simulated and run. Durations are in sim/step/replay.h. Stages have numbers 0 .. S-1 in
 * forward order. On p ranks stage s lies on rank s mod p (loop); or stages r and 2p-1-r
 * lie on rank r (V); or every stage of the model lies on two ranks (DualPipe): stage k on
 * rank k, for micro-batches that enter at rank 0, and its copy, stage p+k, on rank p-1-k,
 * for those that enter at rank p-1. */
#ifndef MS_COSTMODEL_SCHEDULE_SCHEDULE_H
#define MS_COSTMODEL_SCHEDULE_SCHEDULE_H

#include "base/diag.h"

#include <stdbool.h>

/* Every generated schedule: constant, name, and family, which is the variable
 * ms_family_FAMILY of a file in this folder. */
#define MS_SCHEDULES(ROW)                                                                \
    ROW(MS_GPIPE, "gpipe", gpipe)                                                        \
    ROW(MS_1F1B, "1f1b", 1f1b)                                                           \
    ROW(MS_INTERLEAVED, "interleaved", interleaved)                                      \
    ROW(MS_LOOPED_BFS, "looped-bfs", looped_bfs)                                         \
    ROW(MS_INTERLEAVED_ZB, "interleaved-zb", interleaved_zb)                             \
    ROW(MS_ZB_H1, "zb-h1", zb_h1)                                                        \
    ROW(MS_ZB_H2, "zb-h2", zb_h2)                                                        \
    ROW(MS_ZB_AUTO, "zb-auto", zb_auto)                                                  \
    ROW(MS_ZB_V, "zb-v", zb_v)                                                           \
    ROW(MS_V_HALF, "v-half", v_half)                                                     \
    ROW(MS_V_MIN, "v-min", v_min)                                                        \
    ROW(MS_DUALPIPE, "dualpipe", dualpipe)                                               \
    ROW(MS_DUALPIPEV, "dualpipev", dualpipev)                                            \
    ROW(MS_COMBINED_1F1B, "combined-1f1b", combined_1f1b)

typedef enum ms_schedule_kind {
#define MS_SCHEDULE_KIND(kind, name, family) kind,
    MS_SCHEDULES(MS_SCHEDULE_KIND)
#undef MS_SCHEDULE_KIND
    MS_CUSTOM, /* action lists from a file: plan->schedule_file */
    MS_NUM_SCHEDULES
} ms_schedule_kind;
/* Names of the schedules, ended by NULL; MS_CUSTOM has none. */
extern const char *const ms_schedule_names[];
/* Finds a schedule by its name, or by that of PyTorch, Megatron-LM and the papers
 * ("afab", "Schedule1F1B", "vpp"), ignoring letter case, hyphens and underscores. */
bool ms_schedule_parse(const char *text, ms_schedule_kind *out);
/* Whether a word is the path of a schedule file, which ends in ".csv". */
bool ms_schedule_is_file(const char *word);

typedef enum ms_action_kind {
    MS_FORWARD,
    MS_BACKWARD,        /* gradients of a stage's input and weights at once */
    MS_BACKWARD_INPUT,  /* I: gradient of a stage's input */
    MS_BACKWARD_WEIGHT, /* W: a stage's weight gradients, after its input's */
    MS_OVERLAP,         /* forward and whole backward of one rank, overlapped */
    MS_NUM_ACTIONS
} ms_action_kind;

typedef struct ms_action {
    unsigned char kind; /* ms_action_kind */
    short stage;        /* stage of the action; MS_OVERLAP: of its forward */
    int microbatch;
    short backward_stage; /* MS_OVERLAP: stage of the backward */
    int backward_microbatch;
} ms_action;

typedef enum ms_stage_placement {
    MS_PLACE_LOOP,
    MS_PLACE_V,
    MS_PLACE_BOTH_WAYS
} ms_stage_placement;

/* Durations of a stage's actions and of a send, in any unit; all 0: 1, 1, 1 and 0. */
typedef struct ms_schedule_times {
    double forward, backward_input, backward_weight, send;
} ms_schedule_times;

/* Line and column of an action in a schedule file, from 1. */
typedef struct ms_action_place {
    int line, column;
} ms_action_place;

/* Action lists of all ranks, as read from a schedule file. */
typedef struct ms_schedule_table {
    int num_ranks, num_stages, num_microbatches;
    const int *first_action; /* (num_ranks + 1): index of each rank's first action */
    const ms_action *actions;
    const short *rank_of_stage;    /* (num_stages) pipeline rank of a stage */
    const ms_action_place *places; /* [action] place in the file; NULL: unknown */
} ms_schedule_table;

typedef struct ms_schedule_shape {
    ms_schedule_kind kind;
    int num_ranks;        /* p: pipeline ranks */
    int num_microbatches; /* m: micro-batches; DualPipe: of both directions */
    /* v: stages of the model per rank; 2 in a V, 1 in families without chunks */
    int virtual_stages;
    /* g: micro-batches per group, for families with chunks in a loop; 0: default of
     * PyTorch, m div max(1, m div p), where div rounds down */
    int group;
    double memory_limit; /* MS_ZB_AUTO: limit in multiples of 1F1B's rank 0 peak; 0: 2 */
    /* MS_ZB_AUTO: share of activations kept from input to weight gradients; 0: all */
    double weight_share;
    /* MS_ZB_AUTO: added to weight_share on the last rank, for gradients of logits that
     * the output head's weight gradient needs */
    double head_share;
    ms_schedule_times times; /* MS_ZB_AUTO: durations by which actions are ordered */
    /* halves of an overlapped pair wait for input and send their result separately;
     * false: the pair does both as a whole */
    bool early_release;
    const ms_schedule_table *table; /* MS_CUSTOM: action lists from a file */
} ms_schedule_shape;

/* ---- placement of stages ---- */

ms_stage_placement ms_schedule_placement(ms_schedule_kind kind);
/* Number of chunks (stages) of a rank: virtual stages; DualPipe: 2. */
int ms_schedule_chunks(const ms_schedule_shape *shape);
/* Number of stages of the model: pipeline ranks x virtual stages. */
int ms_schedule_model_stages(const ms_schedule_shape *shape);
/* Number of stages placed on ranks, DualPipe's copies included: ranks x chunks. */
int ms_schedule_stages(const ms_schedule_shape *shape);
/* Stage of a rank's chunk; chunks count in forward order (DualPipe: chunk 0 is of the
 * micro-batches that enter at rank 0). */
int ms_schedule_stage(const ms_schedule_shape *shape, int rank, int chunk);
int ms_schedule_rank(const ms_schedule_shape *shape, int stage);
int ms_schedule_chunk(const ms_schedule_shape *shape, int stage);
/* Stage of the model for a placed stage, which in DualPipe may be a second copy. */
int ms_schedule_model_stage(const ms_schedule_shape *shape, int stage);

/* How many pipeline messages a stage awaits between one action and the next. */
typedef enum ms_message_wait {
    MS_WAIT_NONE,       /* none: messages overlap with compute */
    MS_WAIT_PLAIN,      /* a stage awaits ms_stack.send_hold messages */
    MS_WAIT_INTERLEAVED /* a stage awaits ms_stack.interleaved_send_hold messages */
} ms_message_wait;

/* Properties of a family of schedules. */
typedef struct ms_schedule_traits {
    ms_stage_placement placement;
    /* range of the number of virtual stages; most_virtual 0: no upper limit */
    int least_virtual, most_virtual;
    bool splits_backward; /* has separate input (I) and weight gradients (W) */
    bool overlaps;        /* has overlapped pairs (MS_OVERLAP) */
    bool groups;          /* a plan may set a micro-batch group */
    bool uses_times;      /* orders actions by their durations */
    bool limits_memory;   /* a plan may set a memory limit */
    /* least number of micro-batches per pipeline rank above which more micro-batches only
     * repeat the middle of action lists; beginning, end and the largest numbers of alive
     * micro-batches stay the same. Families with groups: only if groups have p
     * micro-batches. 0: no such number is used */
    unsigned char repeats_after;
    /* all micro-batches of all chunks are alive before the first backward */
    bool keeps_all;
    /* wherever rank r + 1 keeps micro-batches alive, rank r keeps as many, or more */
    bool first_keeps_most;
    /* families with chunks: warm-up forwards of rank r less those of rank r + 1 */
    unsigned char warmup_slope;
    unsigned char message_wait; /* ms_message_wait */
} ms_schedule_traits;
ms_schedule_traits ms_schedule_traits_of(ms_schedule_kind kind);

/* Default number of virtual stages: 2 if the family has chunks and num_ranks > 1, as with
 * 1 it would equal a family without chunks; otherwise 1. */
int ms_schedule_default_virtual(ms_schedule_kind kind, long num_ranks);

/* ---- slots, in the order of replay ---- */

/* One action's place in the replay of a schedule. Slots are counted from 1; slot 0 is no
 * action and ends at time 0. An overlapped pair has two slots, its forward half and the
 * rest, so that the forward's output may leave early. */
typedef struct ms_slot {
    int before; /* previous slot of the same rank; 0: none */
    int cross;  /* slot of another rank whose output is received; 0: none */
    int cross2; /* pairs: slot whose gradient is received (`cross`: activation) */
    int cost;   /* index of the cost class in slot_costs */
} ms_slot;

typedef enum ms_slot_kind {
    MS_SLOT_FORWARD,
    MS_SLOT_BACKWARD,
    MS_SLOT_INPUT,
    MS_SLOT_WEIGHT,
    MS_SLOT_PAIR_FORWARD, /* forward half of an overlapped pair */
    MS_SLOT_PAIR_REST
} ms_slot_kind;

/* Cost class: slots with equal properties have equal durations. */
typedef struct ms_slot_cost {
    unsigned char kind; /* ms_slot_kind */
    bool first_forward; /* the slot is the first forward of its stage */
    bool last_backward; /* the slot completes its stage's weight gradients of a step */
    /* backward or I, right after a slot that makes weight gradients */
    bool after_backward;
    bool receives, receives2; /* `cross`, `cross2` are nonzero in slots of the class */
    short stage;
    short backward_stage; /* pairs: stage of the backward */
    /* 1 + stage whose last backward is the rank's slot just before; 0: none is. Not of a
     * last W, nor of a pair's rest */
    short after_last;
    bool after_last_weight; /* that last backward is a W */
} ms_slot_cost;

/* Actions at the beginning and the end of each rank's action list. */
typedef struct ms_schedule_edges {
    int *warmup;   /* (num_ranks, num_chunks) forwards before the first backward */
    int *cooldown; /* (num_ranks, num_chunks) weight gradients after the last I */
    short *first_backward; /* (num_ranks) stage of the first backward */
    short *last_gradient;  /* (num_ranks) stage of the last input gradient */
} ms_schedule_edges;

typedef struct ms_schedule {
    ms_schedule_shape shape;
    int num_stages;           /* stages placed on ranks, copies included */
    int num_chunks;           /* stages per rank */
    const int *first_action;  /* (num_ranks + 1): index of each rank's first action */
    const ms_action *actions; /* rank by rank, in the order of execution */
    /* outlines: number of micro-batches that each micro-batch of the lists stands for */
    int num_alike;
    ms_schedule_edges edges;
    /* number of slots; every slot comes after those that it waits for */
    int num_slots;
    const ms_slot *slots; /* (1 + num_slots); slots[0] is no action */
    /* (1 + num_slots) index of the slot's action; both halves of a pair have the same */
    const int *slot_action;
    int num_slot_costs;
    const ms_slot_cost *slot_costs;
    const int *last_slot;          /* (num_ranks) slot of a rank's last action */
    const int *last_backward_slot; /* (num_stages) slot of a stage's last W or backward */
    /* A condensed schedule leaves out this many periods of micro-batches in the middle of
     * its lists, which repeats; shape.num_microbatches counts what is listed. 0: none */
    int num_left_out;
    /* the schedule with one period less; NULL: nothing is left out */
    const struct ms_schedule *shorter;
} ms_schedule;

/* Whether the schedule can have this shape; if not (no rank, a micro-batch group that
 * deadlocks, ...), `why` (may be NULL) gets a sentence. */
bool ms_schedule_allows(const ms_schedule_shape *shape, const char **why);
/* Whether a shape is refused only because its micro-batch groups deadlock. With d fewer
 * warm-up forwards on each rank than on the previous, two consecutive groups of together
 * fewer than d (p - 1) micro-batches deadlock (d (p - 1) + 1 if pairs are one action); if
 * v = 2, groups of one micro-batch only if there are three, and a last group of one
 * never. Found by running every shape with p <= 9, v <= 4, m <= 24 and every group;
 * Megatron-LM schedules.py requires the narrower g >= p, and m mod g = 0 or >= p. */
bool ms_schedule_group_deadlocks(const ms_schedule_shape *shape);
/* Micro-batches per group of a shape whose family has groups (default resolved). */
int ms_schedule_group(const ms_schedule_shape *shape);
/* Most actions of a schedule's lists: about 270 MB with slots. Longer schedules are
 * condensed where only their time and memory are wanted, and refused elsewhere. */
#define MS_MOST_ACTIONS ((long)1 << 22)
/* Most actions that MS_ZB_AUTO places, in eight orders of which it takes the best: about
 * 0.1 s. */
#define MS_MOST_PLACED_ACTIONS ((long)1 << 18)
/* Schedules of more than twice as many actions are condensed to about as many. */
#define MS_LONG_SCHEDULE ((long)1 << 13)
/* Says that a schedule has too many actions. */
extern const char ms_too_many_actions[];
/* Number of actions of a shape's lists; pairs count as two. */
long ms_schedule_num_actions(const ms_schedule_shape *shape);
/* Whether the lists of an allowed shape have at most MS_MOST_ACTIONS actions. */
bool ms_schedule_is_listed(const ms_schedule_shape *shape);
/* Number of micro-batches after which the middle of a rank's list repeats, or 0 if it
 * does not, or the lists are too short to show it; and the least number of micro-batches
 * of a schedule of the shape that begins and ends like it. */
int ms_schedule_period(const ms_schedule_shape *shape, int *least);
/* Generates a schedule in the arena. The shape must be allowed and be listed. */
ms_schedule *ms_schedule_make(ms_arena *arena, const ms_schedule_shape *shape);
/* The outline of a schedule: what memory and bounds need of it. Has no slots, `edges` only
 * after ms_schedule_find_edges, and lists only where a family orders all ranks at once.
 * The shape must be allowed; that of the outline may have fewer micro-batches. */
ms_schedule *ms_schedule_outline(ms_arena *arena, const ms_schedule_shape *shape);
/* Fills `edges` of an outline that lacks them. */
void ms_schedule_find_edges(ms_arena *arena, ms_schedule *schedule);

/* Ranks whose chunks are told apart by class only. */
typedef struct ms_live_ranks {
    int first_rank, num_ranks;
    int num_classes;
    const int *class_of; /* (num_chunks): class of each chunk, from 0 */
} ms_live_ranks;
/* Micro-batches alive on a rank, one row for every instant that can be its memory peak.
 * Row i is taken at the start of a backward of a chunk of class at_work[i] and of kind
 * kinds[i] (MS_BACKWARD, pairs included, MS_BACKWARD_INPUT or MS_BACKWARD_WEIGHT).
 * Entries 0 .. num_classes-1 count, by class, forwards whose backward (or I) has not
 * ended; the next num_classes count, by class, those between I and W. */
typedef struct ms_live_rows {
    int num;
    const int *counts; /* (num, 2 num_classes) */
    const short *at_work;
    const unsigned char *kinds;
} ms_live_rows;
/* The rows of some ranks of a schedule or outline. Rows are left out if another one of the
 * same class and kind is nowhere smaller. */
ms_live_rows ms_schedule_live_rows(ms_arena *arena, const ms_schedule *schedule,
                                   const ms_live_ranks *ranks);
/* Generates a schedule that, if long, lists about `num_actions` actions (at least two
 * beginnings and ends) and leaves out the rest. The shape must be allowed. */
ms_schedule *ms_schedule_condense(ms_arena *arena, const ms_schedule_shape *shape,
                                  long num_actions);
/* A figure of a whole schedule that grows by equal amounts with every period, from its
 * values for the lists and for those of `shorter`. */
static inline double ms_schedule_extend(const ms_schedule *schedule, double listed,
                                        double shorter)
{
    return listed + schedule->num_left_out * (listed - shorter);
}
/* Makes a schedule whose action lists may be wrong (MS_CUSTOM); errors as
 * ms_schedule_check. */
ms_status ms_schedule_open(ms_ctx *cx, ms_arena *arena, const ms_schedule_shape *shape,
                           ms_loc loc, const ms_schedule **out);
/* Most (micro-batch, chunk) pairs alive at once on a rank, forward to weight gradient. */
int ms_schedule_in_flight(const ms_schedule *schedule, int rank);
/* Checks that every stage runs each of its micro-batches forward once and then backward
 * once (whole, or input and then weight gradients), on its own rank, and that the lists
 * do not deadlock. MS_EINPUT names the first wrong action, or the cycle of actions that
 * wait for each other. */
ms_status ms_schedule_check(ms_ctx *cx, const ms_schedule *schedule, ms_loc loc);

/* The stage of a rank whose weight gradients are complete last. */
int ms_schedule_last_complete(const ms_schedule *schedule, int rank);

/* Text of an action as PyTorch writes it: "2F0", "(0F3;7B1)OVERLAP_F_B". */
char *ms_action_text(ms_arena *arena, const ms_action *action);

/* Number of micro-batches that each placed stage runs: all; DualPipe: half of them. */
int ms_schedule_stage_microbatches(const ms_schedule_shape *shape);

#endif
