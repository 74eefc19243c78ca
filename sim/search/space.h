/* The space of plans that a search covers: the values that each choice may take, the
 * meshes (sizes of the parallel axes), and the orders of axes that differ in cost. */
#ifndef MS_SIM_SEARCH_SPACE_H
#define MS_SIM_SEARCH_SPACE_H

#include "costmodel/plan/plan_field.h"
#include "costmodel/schedule/schedule.h"
#include "sim/step/links.h"

/* Choices of a plan that are switches or words, the one that varies slowest first. */
typedef struct ms_choice_list {
    int num;
    ms_choice of[MS_NUM_CHOICES];
} ms_choice_list;

/* The values that a search tries for each choice of a plan (those marked MS_SEARCH_TRIES
 * in ms_plan_fields). Words (names of schedules, on, off) are stored as their index. */
typedef struct ms_space {
    ms_plan base; /* values of the fixed choices; tried choices have defaults */
    const ms_stack *stack;
    ms_choice_list layers, prices; /* choices that change programs; change only prices */
    /* inclusive range of each choice; of MS_CHOOSE_RECOMPUTE_BUDGET in tenths */
    long low[MS_NUM_CHOICES], high[MS_NUM_CHOICES];
    long max_virtual_stages; /* model chunks per rank; default 8 */
    long max_microbatch;     /* largest micro-batch in sequences; default 16 */
    bool fixed_order;        /* only the axis order of `base` is tried */
    double keep_frac; /* for tests: share of values tried, drawn by `seed`; 1: all */
    unsigned long seed;
} ms_space;

/* Space of the plans with `base`'s fixed choices that `stack`, not copied, can run. */
ms_space ms_space_all(const ms_plan *base, const ms_stack *stack);

/* Narrows the space by a user's limit: "tp=8", "tp <= 8", "recompute=full",
 * "sequence_parallel=on"; v, mbs, async, sp and reshard are short names. Choices with
 * words only take =. zero is 0 to 3, sizes are at least 1. Errors: MS_EINPUT. */
ms_status ms_space_limit(ms_ctx *cx, ms_space *space, const char *text);

/* Index of the choice that a search tries with this name or short name; -1: none. */
int ms_space_find_choice(const char *name);

/* Intersection of two spaces; fields other than ranges of choices are those of `a`.
 * `*empty`: the first choice of which no value is left; MS_NUM_CHOICES: there is none. */
ms_space ms_space_both(const ms_space *a, const ms_space *b, ms_choice *empty);

/* A choice and its value as text that ms_space_limit reads: "tp=8", "schedule=1f1b". */
char *ms_space_choice_text(ms_arena *arena, ms_choice choice, long value);

bool ms_space_allows(const ms_space *space, ms_choice choice, long value);

/* Whether the search tries a context-parallel method with `cp` ranks; with cp 1 only the
 * default method, all-gather. */
bool ms_space_tries_cp_method(const ms_space *space, long cp, ms_cp_method method);

/* Whether the search tries a schedule with this number of model chunks per rank: space
 * and stack allow it, and so does the schedule (interleaved ones need at least 2).
 * Without a pipeline (pp 1) only 1F1B is tried. */
bool ms_space_tries_schedule(const ms_space *space, const ms_model *model, long pp,
                             ms_schedule_kind kind, long virtual_stages);
/* Variables of rules (bit i: variable i) by the loop of the search that sets them. */
typedef enum ms_rule_level {
    MS_RULES_OF_MESH, /* sizes, model, batch */
    MS_RULES_OF_ORDER,
    MS_RULES_OF_BATCH,    /* micro-batch, choices of layers */
    MS_RULES_OF_SCHEDULE, /* schedule, choices of prices */
    MS_RULES_OF_STATES,   /* sharding, recomputation */
    MS_NUM_RULE_LEVELS
} ms_rule_level;
ms_variables ms_rule_level_variables(ms_rule_level level);

/* Copies the values of the listed choices from one plan to another. */
void ms_space_copy(const ms_choice_list *choices, const ms_plan *from, ms_plan *to);
/* Sets the listed choices to their next combination, the last choice varying fastest,
 * values upwards or if `down` downwards; false after the last. `*begun` starts false. */
bool ms_space_next(const ms_space *space, const ms_choice_list *choices, bool down,
                   ms_plan *plan, bool *begun);
/* Whether the search tries ZeRO stage `zero`: 1 to 3 need ranks to shard over
 * (`shards`). */
bool ms_space_tries_sharding(const ms_space *space, bool shards, long zero,
                             bool reshard_after_forward);

/* Whether the search tries a way to recompute layers; automatic ones by tenths of the
 * budget. */
bool ms_space_tries_layer_mode(const ms_space *space, ms_layer_mode mode);

/* Sizes of the mesh axes pp, dp_replicate, dp_shard, cp, tp, and of the expert axes. */
typedef struct ms_mesh_choice {
    long size[MS_NUM_PLAN_AXES];
    long ep, etp;
} ms_mesh_choice;

/* Lists the legal meshes of the space, in a fixed order, in the arena; returns their
 * number. refused: becomes the number of illegal meshes by rule. */
int ms_space_meshes(const ms_space *space, const ms_model *model, ms_arena *arena,
                    ms_mesh_choice **meshes, long refused[MS_NUM_REFUSALS]);

/* A mesh of the space, with a choice of context parallelism, that `refusal` makes illegal,
 * as a plan; false: there is none. */
bool ms_space_refused(const ms_space *space, const ms_model *model, ms_arena *arena,
                      ms_refusal refusal, ms_plan *out);

/* The space's base plan with the axis sizes of a mesh. */
ms_plan ms_space_plan(const ms_space *space, const ms_mesh_choice *mesh);

#define MS_MAX_ORDERS 120

/* All orders of a plan's axes that are larger than 1, in lexical order, default first. */
typedef struct ms_order_list {
    int num;
    struct {
        unsigned char order[MS_NUM_PLAN_AXES];
        ms_refusal refusal;
        int alike; /* index of first order with equal placement of groups; -1: illegal */
    } orders[MS_MAX_ORDERS];
} ms_order_list;
void ms_space_list_orders(const ms_plan *plan, const ms_workload *workload,
                          ms_order_list *out);

/* Axis orders to try: one per placement of all groups, the default order first; only
 * those that the stack's framework accepts. */
typedef struct ms_orders {
    int num;
    const ms_rule *broken; /* rule that refuses the first order; NULL: num is above 0 */
    unsigned char order[MS_MAX_ORDERS][MS_NUM_PLAN_AXES];
} ms_orders;
void ms_space_orders(const ms_space *space, const ms_plan *plan,
                     const ms_workload *workload, ms_orders *out);

/* Puts axes of size 1, which move no rank, in their default places in plan->order. */
void ms_space_plain_order(ms_plan *plan);
/* Whether `order` equals the plan's order of axes if axes of size 1 are left out. */
bool ms_space_same_order(const ms_plan *plan,
                         const unsigned char order[MS_NUM_PLAN_AXES]);
/* Finds the order of axes that the search tries and that places groups on the cluster as
 * plan->order does; false if there is none. */
bool ms_space_order_like(const ms_space *space, const ms_plan *plan,
                         const ms_workload *workload,
                         unsigned char like[MS_NUM_PLAN_AXES]);

#endif
