/* Choices made so far inside a mesh, and the evaluation of the plans that they leave:
 * shared by the files of explore. */
#ifndef MS_SIM_SEARCH_EXPLORE_PRIV_H
#define MS_SIM_SEARCH_EXPLORE_PRIV_H

#include "sim/search/explore.h"

/* Block costs on the links of one order of axes, priced once for all schedules of a
 * batch. */
typedef struct ms_priced_blocks {
    ms_block_costs parts;
    unsigned modes;         /* bit mask of the recompute modes that are priced */
    ms_known_stages *known; /* cache of stages made of these blocks; NULL: not cached */
} ms_priced_blocks;

/* State that the nested loops over choices share. */
typedef struct ms_explore_level {
    ms_explorer *explorer;
    ms_plan plan;                 /* outer choices are made, inner ones not yet */
    unsigned long long batch_key; /* micro-batch, choices of layers and prices */
    ms_bill_set *bills;
    const ms_links *links;
    ms_priced_blocks *priced; /* layer costs on the level's links */
    ms_pipeline pipeline;
    ms_schedule_shape shape;
    const ms_split *split;
    const ms_schedule *lists; /* the schedule, or a shorter one with equal memory */
    ms_rank_live *live;       /* micro-batches alive per rank (split->num_runs) */
} ms_explore_level;

/* Puts the plan, whose schedule and split are chosen, on links; block costs that are
 * priced are used again. */
void ms_explore_open(ms_explore_level *l, const ms_links *links,
                     ms_priced_blocks *priced);

/* Lower bound, in seconds, of the schedule on ideal links, without traffic of parameters
 * and gradients, recomputation and optimizer. */
double ms_explore_relaxed_bound_s(ms_explore_level *l, const ms_links *ideal,
                                  ms_priced_blocks *priced);

/* Least bound without recomputation, in seconds, over all shardings whose states alone
 * fit a device, on the level's links; infinite if none fits. */
double ms_explore_least_sharded_s(ms_explore_level *l);

/* Whether a plan with this bound cannot be among the best. */
bool ms_explore_is_beaten(const ms_explorer *explorer, double bound_s);

/* Whether no exact step time is known yet, so that bounds would rule nothing out. */
bool ms_explore_beats_none(const ms_explorer *explorer);

/* Evaluates all shardings with all recomputations on the level's links. */
void ms_explore_states(ms_explore_level *l);

/* A sharding and a recomputation that fit, and may be among the best on ideal links. */
typedef struct ms_explore_state {
    ms_sharding sharding;
    ms_recompute mode;
    long layers; /* value of the plan's recompute_layers: 0 is all */
    double peak_bytes;
} ms_explore_state;

#define MS_MAX_EXPLORE_STATES (MS_NUM_SHARDINGS * MS_NUM_RECOMPUTE)

/* Finds the shardings with recomputations that all `num_orders` orders of axes must
 * evaluate, by the reductions of ms_explore_states; the links are ideal. Returns their
 * number. */
int ms_explore_sieve(ms_explore_level *l, long num_orders, ms_explore_state *states);
/* Evaluates the `num` given shardings and recomputations on the level's links. */
void ms_explore_sieved(ms_explore_level *l, const ms_explore_state *states, int num);

/* Number of plans that ms_explore_states visits for one order of axes;
 * l->pipeline.shards and l->split are set. */
long ms_explore_count_states(const ms_explore_level *l);

/* Record an event of explorer->watch if the level's choices are those of its plan;
 * nothing if the watch is NULL. ms_watch_async: plans without asynchronous TP are
 * skipped. ms_watch_unneeded: plans with recomputation are skipped. ms_watch_bound: the
 * bound that may cause MS_FATE_SCHEDULE_BOUND, _SHARDING_BOUND or _PLAN_BOUND. */
void ms_watch_async(const ms_explore_level *l);
void ms_watch_unneeded(const ms_explore_level *l);
void ms_watch_bound(const ms_explore_level *l, ms_fate fate, double bound_s);
void ms_watch_peak(const ms_explore_level *l, double peak_bytes, bool fits);
void ms_watch_step(const ms_explore_level *l, double step_s);

#endif
