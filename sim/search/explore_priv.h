/* Parts of the exploration of a mesh that explore.c, explore_states.c and explore_watch.c
 * share: the choices made so far, and the evaluation of the remaining ones. */
#ifndef MS_SIM_SEARCH_EXPLORE_PRIV_H
#define MS_SIM_SEARCH_EXPLORE_PRIV_H

#include "sim/search/explore.h"

/* Costs of the model's blocks (embedding, layers, head) on the network links of one order
 * of axes, shared by all schedules. */
typedef struct ms_priced_blocks {
    ms_block_costs blocks;
    unsigned modes;                /* bit mask of the ms_layer_mode that are priced */
    ms_known_stages *known;        /* cache of stages with these costs; NULL: none */
    struct ms_mixed_blocks *mixed; /* costs by kinds of devices; NULL: all are alike */
} ms_priced_blocks;

/* Costs of blocks on the devices of one set of kinds. */
typedef struct ms_kind_blocks {
    ms_workload *workload; /* NULL: nothing is priced yet */
    ms_links links;
    ms_block_costs blocks;
    unsigned modes;
} ms_kind_blocks;

/* Costs of blocks on each set of kinds of devices that a stage has, made when needed. */
typedef struct ms_mixed_blocks {
    bool ideal; /* on ideal links */
    int num_sets;
    ms_kind_blocks *of;                 /* [ms_kind_set], num_sets of them */
    ms_prices prices[MS_NUM_KIND_SETS]; /* for ms_pipeline.of_kinds */
} ms_mixed_blocks;

/* Recomputations that space and framework allow with the sharding of a plan. */
typedef struct ms_legal_recompute {
    unsigned modes; /* bit i: ms_layer_mode i */
    bool partial;   /* full recomputation may leave out layers of a chunk */
} ms_legal_recompute;

/* Recomputations that the framework's rules accept with a sharding. */
typedef struct ms_accepted_recompute {
    bool accepts[MS_NUM_RECOMPUTE];
    bool partial; /* full recomputation may leave out layers of a chunk, by these rules */
} ms_accepted_recompute;

/* Cache of what the rules accept with each sharding, by the few facts that they read. */
typedef struct ms_known_accepted {
    int num_reads;
    /* indices of the facts that rules on sharding or recomputation read besides */
    unsigned char reads[MS_MAX_VARIABLES];
    bool is_known[MS_NUM_SHARDINGS];
    ms_facts facts[MS_NUM_SHARDINGS];
    ms_accepted_recompute of[MS_NUM_SHARDINGS];
} ms_known_accepted;

/* An empty cache for these rules. */
ms_known_accepted *ms_known_accepted_make(ms_arena *arena, const ms_rule_set *rules);

/* A workload's rules, in their order, of which those read nothing, and so are never asked,
 * whose condition fails with what all plans of a space have in common (`base`). */
ms_rule_set ms_explore_rules(ms_arena *arena, const ms_workload *workload,
                             const ms_plan *base);

/* Choices made by the nested loops over a mesh's plans, and what follows from them. */
typedef struct ms_explore_level {
    ms_explorer *explorer;
    ms_plan plan;      /* the plan, with defaults for choices not yet made */
    ms_facts facts;    /* facts of the plan, for the framework's rules */
    bool any_replicas; /* leave out rules on dp_replicate or dp_shard: a bound of all */
    bool has_order;    /* the order of axes is chosen: states obey rules on it, too */
    ms_legal_recompute legal;
    unsigned long long batch_key; /* micro-batch and options of the plan, as one number */
    ms_bill_set *bills;
    const ms_links *links;
    ms_priced_blocks *priced; /* costs of the model's blocks on `links` */
    ms_pipeline pipeline;
    ms_schedule_shape shape;
    const ms_split *split;
    const ms_schedule *lists; /* schedule, or one of fewer micro-batches, as many alive */
    ms_rank_live *live;       /* (split->num_runs): live micro-batches by rank class */
} ms_explore_level;

bool ms_explore_is_mixed(const ms_explorer *explorer);

/* Orders of a mesh's axes that are explored together. On a mixed cluster each order of
 * axes and of devices is explored by itself, since it decides the kinds of each stage. */
typedef struct ms_arrangements {
    const ms_orders *orders;
    int num_passed;
    ms_orders one;
} ms_arrangements;
/* Sets the next arrangement in the plan, and returns its orders; NULL: there is none. */
const ms_orders *ms_explore_next_arrangement(ms_explore_level *l, ms_arrangements *a);
/* The workload for groups of all ranks of the plan, in its arrangement. */
ms_workload *ms_explore_all_kinds(const ms_explore_level *l);

/* Prepares costs of blocks, which are large: only those that are priced are written. */
void ms_explore_open_priced(ms_explorer *explorer, ms_priced_blocks *priced, bool ideal,
                            ms_known_stages *known);
void ms_explore_forget_prices(ms_priced_blocks *priced);
/* Adds missing layer modes to l->priced, on the devices of each stage. */
void ms_explore_price(ms_explore_level *l, unsigned modes);

/* Prepares l->pipeline for plans on `links`; schedule and split are chosen already. Block
 * costs on these links are added to `priced` where it lacks them. */
void ms_explore_open(ms_explore_level *l, const ms_links *links,
                     ms_priced_blocks *priced);

/* Lower bound, in seconds, of the step time of all plans with the chosen schedule: on
 * `ideal` links, without recomputation, optimizer, parameter and gradient traffic. */
double ms_explore_relaxed_bound_s(ms_explore_level *l, const ms_links *ideal,
                                  ms_priced_blocks *priced);

/* Smallest step-time bound without recomputation, in seconds, of the shardings that fit a
 * device if only parameters and optimizer states count; infinite if none fits. */
double ms_explore_least_sharded_s(ms_explore_level *l);

/* Step time, in seconds, below which a plan enters the list of the mesh's best plans. */
double ms_explore_worst_s(const ms_explorer *explorer);

/* Whether a plan with this step-time bound (seconds) cannot be among the best plans. */
bool ms_explore_is_beaten(const ms_explorer *explorer, double bound_s);

/* Whether no step time is known yet to compare bounds with: no plan can be ruled out. */
bool ms_explore_beats_none(const ms_explorer *explorer);

/* Evaluates all shardings and recomputations of a plan whose other choices are made. */
void ms_explore_states(ms_explore_level *l);

/* A sharding with a recomputation that fit memory and are fast enough on ideal links. */
typedef struct ms_explore_state {
    ms_sharding sharding;
    ms_layer_mode mode;
    long layers; /* recomputed layers per chunk; 0: all */
    double peak_bytes;
} ms_explore_state;

#define MS_MAX_EXPLORE_STATES (MS_NUM_SHARDINGS * MS_NUM_LAYER_MODES)

/* Lists the shardings with recomputations that must be evaluated with each of num_orders
 * orders of axes: those that fit and that a bound on ideal links does not rule out.
 * Returns their number. */
int ms_explore_sieve(ms_explore_level *l, long num_orders, ms_explore_state *states);
/* Evaluates the `num` shardings with recomputations in `states` on l->links. */
void ms_explore_sieved(ms_explore_level *l, const ms_explore_state *states, int num);

/* Number of shardings x recomputations that ms_explore_states visits. Needs
 * l->pipeline.shards and l->split. */
long ms_explore_count_states(const ms_explore_level *l);

/* Whether the framework refuses the plan by a rule whose last variable `level` sets;
 * counts the refusal. Levels must be asked in their order, ORDER excepted. */
bool ms_explore_breaks_rule(ms_explore_level *l, ms_rule_level level);
/* Counts a plan that a rule refuses; false and no count: `broken` is NULL. */
bool ms_explore_count_rule(ms_explorer *explorer, const ms_rule *broken);
/* The legal recomputations with the plan's sharding. */
ms_legal_recompute ms_explore_legal_recompute(const ms_explore_level *l);
/* Counts the sharding, of which no recomputation is legal, by the rule that refuses one. */
void ms_explore_count_refused(const ms_explore_level *l);
/* Whether rules join the order of axes with choices that are made after the mesh. */
bool ms_explore_joins_order(const ms_explore_level *l);
/* Chooses an order of axes, for ms_explore_legal_recompute; NULL: none is chosen. */
void ms_explore_set_order(ms_explore_level *l, const unsigned char *order);
/* Whether the framework accepts asynchronous TP wherever it accepts the plan without. */
bool ms_explore_accepts_async(const ms_explore_level *l);

/* The ms_watch_ functions record a decision in explorer->watch (NULL: nothing) if the
 * watched plan has all choices made so far: async: plans without asynchronous TP are
 * skipped; unneeded: plans with recomputation are skipped; bound: a time bound is known,
 * and if it is too long, the decision is `fate`. */
void ms_watch_async(const ms_explore_level *l);
void ms_watch_unneeded(const ms_explore_level *l);
void ms_watch_bound(const ms_explore_level *l, ms_fate fate, double bound_s);
void ms_watch_peak(const ms_explore_level *l, double peak_bytes, bool fits);
void ms_watch_step(const ms_explore_level *l, double step_s);

#endif
