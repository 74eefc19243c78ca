/* The space that a search covers: which values each choice may take, the meshes, and the
 * orders of axes that differ in cost. */
#ifndef MS_SIM_SEARCH_SPACE_H
#define MS_SIM_SEARCH_SPACE_H

#include "costmodel/plan/plan_field.h"
#include "costmodel/schedule/schedule.h"
#include "sim/step/links.h"

/* Choices that are switches or words, the outermost first. */
typedef struct ms_choice_list {
    int num;
    ms_choice of[MS_NUM_CHOICES];
} ms_choice_list;

/* Values that a search tries, for the choices of ms_plan_fields with MS_SEARCH_TRIES. Words
 * (schedule, recompute, on/off) are represented by their index. */
typedef struct ms_space {
    ms_plan base; /* fixed choices; those that are tried have default values */
    const ms_stack *stack;
    ms_choice_list layers,
        prices; /* choices of MS_DECIDES_LAYERS and MS_DECIDES_PRICES */
    long low[MS_NUM_CHOICES], high[MS_NUM_CHOICES]; /* inclusive range of each choice */
    long max_virtual_stages;                        /* model chunks per rank; default 8 */
    long max_microbatch;                            /* sequences; default 16 */
    bool fixed_order;                               /* only base.order is tried */
    double keep_frac; /* for tests: probability that a value is kept, by `seed`; 1: all */
    unsigned long seed;
} ms_space;

/* The space of all that `base` and the stack allow; keeps a reference to the stack. */
ms_space ms_space_all(const ms_plan *base, const ms_stack *stack);

/* Narrows the space by "tp=8", "tp <= 8", "pp>=2", "recompute=full",
 * "sequence_parallel=on", "zero=1"; v, mbs, async, sp and reshard are short names. Words
 * take = only; zero is 0 to 3, sizes are at least 1. MS_EINPUT names what is wrong. */
ms_status ms_space_limit(ms_ctx *cx, ms_space *space, const char *text);

/* Intersection of two spaces, with the base, order and keep_frac of `a`. `*empty` becomes a
 * choice without values, or MS_NUM_CHOICES. */
ms_space ms_space_both(const ms_space *a, const ms_space *b, ms_choice *empty);

/* A value as ms_space_limit reads it: "tp=8", "schedule=1f1b". */
char *ms_space_choice_text(ms_arena *arena, ms_choice choice, long value);

bool ms_space_allows(const ms_space *space, ms_choice choice, long value);

/* Whether plans with `cp` context-parallel ranks may use the method; with one rank only the
 * first method is tried. */
bool ms_space_tries_cp_method(const ms_space *space, long cp, ms_cp_method method);

/* Whether the search tries a schedule with its number of chunks. Interleaving needs a
 * pipeline and at least 2 chunks per rank, other schedules have one; without a pipeline
 * only 1F1B is tried. */
bool ms_space_tries_schedule(const ms_space *space, const ms_model *model, long pp,
                             ms_schedule_kind kind, long virtual_stages);
/* Copies the values of the listed choices from one plan to another. */
void ms_space_copy(const ms_choice_list *choices, const ms_plan *from, ms_plan *to);
/* Sets the choices to the next combination that is tried, the last choice varying fastest,
 * upwards or `down`; false if none is left. `*begun` is false before the first. */
bool ms_space_next(const ms_space *space, const ms_choice_list *choices, bool down,
                   ms_plan *plan, bool *begun);
/* Whether the search tries the sharding: ZeRO 1 to 3 need ranks to shard over (`shards`),
 * resharding after forward in a pipeline needs the stack's support. */
bool ms_space_tries_sharding(const ms_space *space, long pp, bool shards, long zero,
                             bool reshard_after_forward);

/* One mesh: sizes of the five axes and of the expert axes. */
typedef struct ms_mesh_choice {
    long size[MS_NUM_PLAN_AXES];
    long ep, etp;
} ms_mesh_choice;

/* Lists the legal meshes of the space, in a fixed order, in the arena; returns their number
 * and counts refusals by reason. */
int ms_space_meshes(const ms_space *space, const ms_model *model, ms_arena *arena,
                    ms_mesh_choice **meshes, long refused[MS_NUM_REFUSALS]);

/* The base plan with the sizes of a mesh. */
ms_plan ms_space_plan(const ms_space *space, const ms_mesh_choice *mesh);

#define MS_MAX_ORDERS 120

/* Every order of a plan's axes larger than 1, in lexical order: the default one first. */
typedef struct ms_order_list {
    int num;
    struct {
        unsigned char order[MS_NUM_PLAN_AXES];
        ms_refusal refusal;
        int alike; /* first order with equal group placement; -1 if refused */
    } orders[MS_MAX_ORDERS];
} ms_order_list;
void ms_space_list_orders(const ms_plan *plan, const ms_cluster *cluster,
                          ms_order_list *out);

/* Orders of the axes that place groups differently on the cluster, the default first. */
typedef struct ms_orders {
    int num;
    unsigned char order[MS_MAX_ORDERS][MS_NUM_PLAN_AXES];
} ms_orders;
void ms_space_orders(const ms_space *space, const ms_plan *plan,
                     const ms_cluster *cluster, ms_orders *out);

/* Puts the axes of size 1, which move no rank, in their default places. */
void ms_space_plain_order(ms_plan *plan);
/* Whether `order` equals the plan's, axes of size 1 left out. */
bool ms_space_same_order(const ms_plan *plan,
                         const unsigned char order[MS_NUM_PLAN_AXES]);
/* Finds the order of the space with the same spans as plan->order; false if there is
 * none. */
bool ms_space_order_like(const ms_space *space, const ms_plan *plan,
                         const ms_cluster *cluster, unsigned char like[MS_NUM_PLAN_AXES]);

#endif
