/* The space that a search covers: which values each choice may take, the meshes, and the
 * orders of axes that differ in cost. */
#ifndef MS_SIM_SEARCH_SPACE_H
#define MS_SIM_SEARCH_SPACE_H

#include "costmodel/plan/plan_field.h"
#include "costmodel/schedule/schedule.h"
#include "sim/step/links.h"

/* Switches and words, the first outermost. */
typedef struct ms_choice_list {
    int num;
    ms_choice of[MS_NUM_CHOICES];
} ms_choice_list;

/* What a search tries: of the choices of ms_plan_fields those with MS_SEARCH_TRIES. Words
 * (schedule, recompute, on/off) count by their index. */
typedef struct ms_space {
    /* model, cluster, stack, gpus, sequence, batch, precision; what is tried is plain */
    ms_plan base;
    const ms_stack *stack;
    ms_choice_list layers, prices;                  /* by what they decide */
    long low[MS_NUM_CHOICES], high[MS_NUM_CHOICES]; /* inclusive */
    long max_virtual_stages;                        /* per rank; default 8 */
    long max_microbatch;                            /* sequences; default 16 */
    bool fixed_order;                               /* only base.order */
    /* Tests thin the options: a value stays with probability keep_frac, decided by its
     * name and `seed`. 1: all stay. */
    double keep_frac;
    unsigned long seed;
} ms_space;

/* Everything that `base` and the stack allow; keeps the stack. */
ms_space ms_space_all(const ms_plan *base, const ms_stack *stack);

/* Narrows the space by "tp=8", "tp <= 8", "pp>=2", "recompute=full",
 * "sequence_parallel=on", "zero=1"; v, mbs, async, sp and reshard are short names. Words
 * take = only; zero is 0 to 3, sizes are at least 1. MS_EINPUT names what is wrong. */
ms_status ms_space_limit(ms_ctx *cx, ms_space *space, const char *text);

/* Only what both spaces allow; the base, the order and the thinning of `a` stay. `*empty`
 * is a choice of which no value is left, or MS_NUM_CHOICES. */
ms_space ms_space_both(const ms_space *a, const ms_space *b, ms_choice *empty);

/* "tp=8", "schedule=1f1b": a value as ms_space_limit reads it. */
char *ms_space_choice_text(ms_arena *arena, ms_choice choice, long value);

bool ms_space_allows(const ms_space *space, ms_choice choice, long value);

/* Whether plans with so many cp ranks may use the method; with one rank there is nothing
 * to choose, and only the first counts. */
bool ms_space_tries_cp_method(const ms_space *space, long cp, ms_cp_method method);

/* Combinations that the search tries, each of legal values; what they leave out changes
 * nothing, or is not done by the stack. Interleaving needs a pipeline and 2 chunks per
 * rank or more, other schedules have one; without a pipeline there is 1F1B only. */
bool ms_space_tries_schedule(const ms_space *space, const ms_model *model, long pp,
                             ms_schedule_kind kind, long virtual_stages);
/* Sets the choices as `from` has them. */
void ms_space_copy(const ms_choice_list *choices, const ms_plan *from, ms_plan *to);
/* Whether the plan has a value of the choice that is tried: one that space and stack
 * allow, or where the choice has no effect the plain one. Asynchronous TP needs sequence
 * parallelism. */
bool ms_space_tries(const ms_space *space, const ms_plan *plan, ms_choice choice);
/* Sets choices to the next combination of values that is tried, the last one fastest;
 * switches and words upwards, or `down`. `*begun` is false before the first. False: there
 * is none left. */
bool ms_space_next(const ms_space *space, const ms_choice_list *choices, bool down,
                   ms_plan *plan, bool *begun);
/* ZeRO 1 to 3 need ranks to shard over (`shards`); parameters are resharded (zero 3)
 * inside a pipeline only where the stack does it. */
bool ms_space_tries_sharding(const ms_space *space, long pp, bool shards, long zero,
                             bool reshard_after_forward);

/* One mesh: sizes of the five axes and of the expert axes. */
typedef struct ms_mesh_choice {
    long size[MS_NUM_PLAN_AXES];
    long ep, etp;
} ms_mesh_choice;

/* All meshes of the space whose axes divide what they must, in a fixed order; the array
 * lives in the arena. Counts refusals by reason. */
int ms_space_meshes(const ms_space *space, const ms_model *model, ms_arena *arena,
                    ms_mesh_choice **meshes, long refused[MS_NUM_REFUSALS]);

/* The plan of a mesh: base with these sizes, in the default order, keys and values
 * gathered over cp. */
ms_plan ms_space_plan(const ms_space *space, const ms_mesh_choice *mesh);

#define MS_MAX_ORDERS 120

/* Every order of a plan's axes that are larger than 1, in lexical order of the axes: the
 * default one first. */
typedef struct ms_order_list {
    int num;
    struct {
        unsigned char order[MS_NUM_PLAN_AXES];
        ms_refusal refusal;
        /* index of the first legal order in which all groups lie the same: its own when
         * it is new, -1 when refused */
        int alike;
    } orders[MS_MAX_ORDERS];
} ms_order_list;
void ms_space_list_orders(const ms_plan *plan, const ms_cluster *cluster,
                          ms_order_list *out);

/* Orders of the axes that lie differently on the cluster, the default order first. */
typedef struct ms_orders {
    int num;
    unsigned char order[MS_MAX_ORDERS][MS_NUM_PLAN_AXES];
} ms_orders;
void ms_space_orders(const ms_space *space, const ms_plan *plan,
                     const ms_cluster *cluster, ms_orders *out);

/* Writes the axes of size 1, which move no rank, in their default places, as
 * ms_space_orders does. */
void ms_space_plain_order(ms_plan *plan);
/* The order of the space that stands for plan->order: one with the same spans. False:
 * there is none. */
bool ms_space_order_like(const ms_space *space, const ms_plan *plan,
                         const ms_cluster *cluster, unsigned char like[MS_NUM_PLAN_AXES]);

#endif
