/* Pipeline schedules as data: one list of actions per rank. Replay, event engine and
 * runner read the same lists.
 *
 * Stages are numbered through the model: 0 .. S-1. A schedule places each on one rank: in
 * a loop (s mod p), in a V (s and 2p-1-s on one rank), or both ways (DualPipe: every
 * stage twice, once for micro-batches that enter at rank 0 and once for those that enter
 * at rank p-1). Placed twice, stages p .. 2p-1 are the second copy: stage p+k is stage k
 * of the model, on rank p-1-k. */
#ifndef MS_COSTMODEL_SCHEDULE_SCHEDULE_H
#define MS_COSTMODEL_SCHEDULE_SCHEDULE_H

#include "base/diag.h"

#include <stdbool.h>

/* Every schedule that is made: its constant, its name, and its family, which
 * costmodel/schedule/ defines as ms_family_FAMILY. */
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
    MS_CUSTOM, /* a list of actions from a file: plan->schedule_file */
    MS_NUM_SCHEDULES
} ms_schedule_kind;
/* The names, NULL; MS_CUSTOM has none. */
extern const char *const ms_schedule_names[];
/* By name, or as PyTorch, Megatron-LM and the papers call it ("afab", "Schedule1F1B",
 * "vpp", ...); letter case, hyphens and underscores do not count. */
bool ms_schedule_parse(const char *text, ms_schedule_kind *out);
/* Whether a word names a file with a user's own schedule: it ends in ".csv". */
bool ms_schedule_is_file(const char *word);

typedef enum ms_action_kind {
    MS_FORWARD,
    MS_BACKWARD,        /* for inputs and weights at once */
    MS_BACKWARD_INPUT,  /* I */
    MS_BACKWARD_WEIGHT, /* W, after the I of its stage and micro-batch */
    MS_OVERLAP, /* a forward and a whole backward of the same rank, side by side */
    MS_NUM_ACTIONS
} ms_action_kind;

typedef struct ms_action {
    unsigned char kind; /* ms_action_kind */
    short stage;        /* of the forward, when two overlap */
    int microbatch;
    short backward_stage; /* MS_OVERLAP only */
    int backward_microbatch;
} ms_action;

typedef enum ms_stage_placement {
    MS_PLACE_LOOP,
    MS_PLACE_V,
    MS_PLACE_BOTH_WAYS
} ms_stage_placement;

/* Durations of a stage, in any unit. A construction that is built for them takes all 0 as
 * 1, 1, 1, 0. */
typedef struct ms_schedule_times {
    double forward, backward_input, backward_weight, send;
} ms_schedule_times;

/* Where an action stands in a file. */
typedef struct ms_action_place {
    int line, column;
} ms_action_place;

/* A list of actions per rank, as read from a file. */
typedef struct ms_schedule_table {
    int num_ranks, num_stages, num_microbatches;
    const int *first_action; /* (num_ranks + 1) */
    const ms_action *actions;
    const short *rank_of_stage;    /* (num_stages) */
    const ms_action_place *places; /* of each action; NULL: not known */
} ms_schedule_table;

typedef struct ms_schedule_shape {
    ms_schedule_kind kind;
    int num_ranks;        /* p */
    int num_microbatches; /* m; both directions together with DualPipe */
    /* v: stages of the model per rank; 2 in a V, 1 unless the family has chunks */
    int virtual_stages;
    /* g, families with chunks in a loop; 0: PyTorch's default: rounds = max(1, m div p),
     * g = m div rounds */
    int group;
    double memory_limit; /* MS_ZB_AUTO: times 1F1B's peak on rank 0; 0: 2 */
    /* MS_ZB_AUTO: of a micro-batch's activations, what its weight gradients still need
     * after I; 0: all */
    double weight_share;
    /* MS_ZB_AUTO: what those of the head need on the last rank beside that, as a share of
     * a rank's micro-batch: gradients of logits */
    double head_share;
    ms_schedule_times times; /* MS_ZB_AUTO: what its order is built for */
    /* the halves of a pair wait, and hand on what they made, each for itself; otherwise
     * the pair does as a whole */
    bool early_release;
    const ms_schedule_table *table; /* MS_CUSTOM */
} ms_schedule_shape;

/* ---- where stages live; pure arithmetic ---- */

ms_stage_placement ms_schedule_placement(ms_schedule_kind kind);
/* Chunks of a rank: v, and 2 with DualPipe. */
int ms_schedule_chunks(const ms_schedule_shape *shape);
/* Stages of the model: p v. */
int ms_schedule_model_stages(const ms_schedule_shape *shape);
/* Placed stages: p x chunks; as many as the model's unless placed twice. */
int ms_schedule_stages(const ms_schedule_shape *shape);
/* Stage of a rank's chunk; chunks count in the order in which a micro-batch meets them
 * (both ways: 0 is the copy that is entered at rank 0). */
int ms_schedule_stage(const ms_schedule_shape *shape, int rank, int chunk);
int ms_schedule_rank(const ms_schedule_shape *shape, int stage);
int ms_schedule_chunk(const ms_schedule_shape *shape, int stage);
/* Which stage of the model a placed stage is. */
int ms_schedule_model_stage(const ms_schedule_shape *shape, int stage);

/* Messages that a stage waits for after an action, before it starts the next. */
typedef enum ms_message_wait {
    MS_WAIT_NONE,       /* they travel beside compute */
    MS_WAIT_PLAIN,      /* ms_stack.send_hold of them */
    MS_WAIT_INTERLEAVED /* ms_stack.interleaved_send_hold */
} ms_message_wait;

/* What a family of schedules can do. */
typedef struct ms_schedule_traits {
    ms_stage_placement placement;
    /* chunks that it may be asked for; most 0: any number */
    int least_virtual, most_virtual;
    bool splits_backward; /* I and W are actions of their own */
    bool overlaps;        /* has MS_OVERLAP */
    bool groups;          /* takes a micro-batch group */
    bool uses_times;      /* is built for durations */
    bool limits_memory;   /* takes a memory limit */
    /* lists of so many micro-batches per rank live as those of any more, begin alike and
     * end alike: they repeat after the warm-up. With groups, only of as many
     * micro-batches as there are ranks, so that the warm-up of at most (v + 1) p forwards
     * ends after two. 0: they keep all, and are short, or are built for durations */
    unsigned char repeats_after;
    /* of families with chunks: how many forwards fewer a rank runs before its first
     * backward than the rank before it */
    unsigned char warmup_slope;
    unsigned char message_wait; /* ms_message_wait */
} ms_schedule_traits;
ms_schedule_traits ms_schedule_traits_of(ms_schedule_kind kind);

/* Virtual stages when none are asked for: 2 where there may be several and there is a
 * pipeline, since one would be another schedule. */
int ms_schedule_default_virtual(ms_schedule_kind kind, long num_ranks);

/* ---- steps: what replay walks ---- */

/* Steps are counted from 1; step 0 is no action and ends at time 0. An overlapping pair
 * is two steps, its forward half and the rest, so that the forward's output may leave
 * early. */
typedef struct ms_slot {
    int before; /* step before it on its rank; 0: the first */
    int cross;  /* step that sends to it; 0: nothing is received */
    /* a pair receives an activation (cross) and a gradient (cross2); 0: nothing */
    int cross2;
    int cost; /* index into step_costs */
} ms_slot;

typedef enum ms_slot_kind {
    MS_SLOT_FORWARD,
    MS_SLOT_BACKWARD,
    MS_SLOT_INPUT,
    MS_SLOT_WEIGHT,
    MS_SLOT_PAIR_FORWARD, /* first half of a pair */
    MS_SLOT_PAIR_REST
} ms_slot_kind;

/* Steps of one cost class have the same duration. */
typedef struct ms_slot_cost {
    unsigned char kind; /* ms_slot_kind */
    bool first_forward; /* of its stage */
    bool last_backward; /* of its stage: the last whole backward, W or pair */
    /* a whole backward or I behind a step of its rank that makes gradients of weights */
    bool after_backward;
    bool receives, receives2; /* cross and cross2 of its steps are set */
    short stage;
    short backward_stage; /* pairs */
} ms_slot_cost;

/* How the lists begin and end, by rank and chunk. */
typedef struct ms_schedule_edges {
    int *warmup; /* (num_ranks, num_chunks): forwards before the first backward begins */
    /* (num_ranks, num_chunks): Ws after the last action that computes a gradient for
     * another stage */
    int *cooldown;
    short *first_backward; /* (num_ranks): stage of that backward */
    short *last_gradient;  /* (num_ranks): stage of that action */
} ms_schedule_edges;

typedef struct ms_schedule {
    ms_schedule_shape shape;
    int num_stages;           /* placed */
    int num_chunks;           /* per rank */
    const int *first_action;  /* (num_ranks + 1) */
    const ms_action *actions; /* rank by rank, in the order of execution */
    /* What a rank holds while it walks its list: one row for every instant that can be
     * its peak, the backward of chunk live_chunk[i] being at work (live_kind[i]:
     * MS_BACKWARD also for pairs, MS_BACKWARD_INPUT or MS_BACKWARD_WEIGHT). Of each chunk
     * first the number of forwards whose backward (I) has not run, this one included,
     * then of those whose I has run and W has not (2 num_chunks entries). Rows that
     * another of the same chunk and kind exceeds everywhere are left out. Rank r's rows
     * are first_live[r] .. first_live[r+1]-1. */
    const int *first_live; /* (num_ranks + 1) */
    const int *live;       /* (num_live, 2 num_chunks) */
    const short *live_chunk;
    const unsigned char *live_kind;
    ms_schedule_edges edges;
    /* All steps in one order in which each comes after those that it waits for. */
    int num_steps;
    const ms_slot *steps; /* (1 + num_steps); steps[0] is no action */
    /* (1 + num_steps): index into actions; the halves of a pair have the same */
    const int *slot_action;
    int num_slot_costs;
    const ms_slot_cost *slot_costs;
    const int *last_step; /* (num_ranks): step of each rank's last action */
    /* (num_stages): after which its gradients are complete */
    const int *last_backward_step;
} ms_schedule;

/* False when the schedule does not allow the shape (p < 1, m < 1, g that deadlocks, ...);
 * `why` (may be NULL) gets a sentence. Integers only. */
bool ms_schedule_allows(const ms_schedule_shape *shape, const char **why);
/* Whether a shape is refused only since groups of micro-batches would wait for each
 * other: of an order in which rank r runs w(0) - d r forwards before its first backward,
 * two groups that follow each other do when they have fewer than d (p - 1) micro-batches
 * together (one more when forward and backward are one action); with v = 2 and a last one
 * of one micro-batch it takes three. Found by running every shape with p <= 9, v <= 4, m
 * <= 24 and every group; Megatron-LM schedules.py asks for the narrower g >= p, and m mod
 * g = 0 or >= p. */
bool ms_schedule_group_deadlocks(const ms_schedule_shape *shape);
/* The effective group size of a shape whose family has groups. */
int ms_schedule_group(const ms_schedule_shape *shape);
/* Generates the lists; everything lives in the arena. The shape must be allowed. */
ms_schedule *ms_schedule_make(ms_arena *arena, const ms_schedule_shape *shape);
/* The same for lists that may be wrong (MS_CUSTOM): MS_EINPUT as ms_schedule_check tells
 * it. */
ms_status ms_schedule_open(ms_ctx *cx, ms_arena *arena, const ms_schedule_shape *shape,
                           ms_loc loc, const ms_schedule **out);
/* Chunks in flight at the most, from forward to weight gradient, over a rank's list. */
int ms_schedule_in_flight(const ms_schedule *schedule, int rank);
/* Every stage runs each of its micro-batches forward once and then backward once (whole,
 * or I and then W), on its own rank, and the lists do not deadlock. MS_EINPUT tells the
 * first action that breaks this, or the cycle of actions that wait for each other. */
ms_status ms_schedule_check(ms_ctx *cx, const ms_schedule *schedule, ms_loc loc);

/* The placed stage of a rank whose gradients are complete last. */
int ms_schedule_last_complete(const ms_schedule *schedule, int rank);

/* "2F0", "(0F3;7B1)OVERLAP_F_B": an action as PyTorch writes it. */
char *ms_action_text(ms_arena *arena, const ms_action *action);

/* Micro-batches that stage s runs: m, or with DualPipe m/2 of each direction. */
int ms_schedule_stage_microbatches(const ms_schedule_shape *shape);

#endif
