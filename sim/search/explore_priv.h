/* What the two files of explore share: the choices made so far inside a mesh, and the
 * evaluation of the plans that they leave. */
#ifndef MS_SIM_SEARCH_EXPLORE_PRIV_H
#define MS_SIM_SEARCH_EXPLORE_PRIV_H

#include "sim/search/explore.h"

/* Parts on one order's links: priced once for all schedules of a batch. */
typedef struct ms_priced_blocks {
    ms_block_costs parts;
    unsigned modes;         /* recompute modes done */
    ms_known_stages *known; /* of these parts; NULL: all are made anew */
} ms_priced_blocks;

/* What the loops hand down. */
typedef struct ms_explore_level {
    ms_explorer *explorer;
    ms_plan plan;                 /* as far as it is decided */
    unsigned long long batch_key; /* micro-batch, choices of layers and prices */
    ms_bill_set *bills;
    const ms_links *links;
    ms_priced_blocks *priced; /* on these links */
    ms_pipeline pipeline;
    ms_schedule_shape shape;
    const ms_split *split;
    const ms_schedule *lists; /* of the schedule, or shorter ones that live alike */
    ms_rank_live *live;       /* (split->num_runs): made when memory is asked for first */
} ms_explore_level;

/* Puts the plan, whose schedule and split are chosen, on links; parts priced before are
 * used again. */
void ms_explore_open(ms_explore_level *l, const ms_links *links,
                     ms_priced_blocks *priced);

/* The schedule's bound on ideal links, without any traffic of parameters and gradients,
 * recomputation or optimizer. */
double ms_explore_relaxed_bound_s(ms_explore_level *l, const ms_links *ideal,
                                  ms_priced_blocks *priced);

/* Of all shardings whose states alone fit a device the least bound without recomputation,
 * on the links that the level was opened on; infinite: none fits. */
double ms_explore_least_sharded_s(ms_explore_level *l);

/* Whether a plan with this bound cannot be among those wanted. */
bool ms_explore_is_beaten(const ms_explorer *explorer, double bound_s);

/* Nothing was found yet that could beat a bound: bounds need not be made. */
bool ms_explore_beats_none(const ms_explorer *explorer);

/* All shardings with all recomputations, on the links that the level was opened on. */
void ms_explore_states(ms_explore_level *l);

/* A way to shard and to recompute that fits, and that may be among those wanted on ideal
 * links. */
typedef struct ms_explore_state {
    ms_sharding sharding;
    ms_recompute mode;
    long layers; /* as in plans: 0 is all */
    double peak_bytes;
} ms_explore_state;

#define MS_MAX_EXPLORE_STATES (MS_NUM_SHARDINGS * MS_NUM_RECOMPUTE)

/* The states of a schedule that any of `num_orders` orders of axes has to look at; the
 * level is open on ideal links. With the two reductions of ms_explore_states. Returns how
 * many. */
int ms_explore_sieve(ms_explore_level *l, long num_orders, ms_explore_state *states);
/* These states on the links that the level was opened on. */
void ms_explore_sieved(ms_explore_level *l, const ms_explore_state *states, int num);

/* How many plans that visits, for one order of axes: l->pipeline.shards and l->split are
 * set. */
long ms_explore_count_states(const ms_explore_level *l);

/* Follow explorer->watch, which is not NULL: */
/* plans without asynchronous TP are passed over */
void ms_watch_async(const ms_explore_level *l);
void ms_watch_schedule(const ms_explore_level *l, double bound_s);
void ms_watch_sharding(const ms_explore_level *l, double bound_s);
/* plans with recomputation are passed over */
void ms_watch_unneeded(const ms_explore_level *l);
void ms_watch_peak(const ms_explore_level *l, double peak_bytes, bool fits);
void ms_watch_bound(const ms_explore_level *l, double bound_s);
void ms_watch_step(const ms_explore_level *l, double step_s);

#endif
