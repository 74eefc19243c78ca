/* Exploration of one mesh: micro-batch, sequence parallelism, axis order, schedule,
 * sharding and recomputation. */
#ifndef MS_SIM_SEARCH_EXPLORE_H
#define MS_SIM_SEARCH_EXPLORE_H

#include "sim/search/space.h"
#include "sim/step/known_stages.h"
#include "sim/step/live_cache.h"
#include "sim/step/step.h"

/* A plan with its exact step time. */
typedef struct ms_found {
    ms_plan plan;
    double step_s, peak_bytes;
} ms_found;

/* Numbers of plans that a search saw and why it skipped them. */
typedef struct ms_counts {
    long configurations;           /* complete plans in the explored part of the space */
    long evaluated;                /* plans whose bound or memory was computed */
    long replayed;                 /* plans whose exact step time was computed */
    long refused[MS_NUM_REFUSALS]; /* illegal plans, by the rule that they break */
    long over_memory;              /* plans that exceed device memory */
    long over_bound;               /* bound slower than the best plans */
    long dominated;                /* skipped: another plan is as fast and fits */
} ms_counts;

/* Outcome for one plan of the exploration of its mesh. */
typedef enum ms_fate {
    MS_FATE_UNSEEN,         /* the plan is not among those of the mesh */
    MS_FATE_ASYNC,          /* skipped: asynchronous TP, never slower, is tried */
    MS_FATE_SCHEDULE_BOUND, /* bound of the schedule, on ideal links, too slow */
    MS_FATE_SHARDING_BOUND, /* bound with the sharding, on own links, too slow */
    MS_FATE_UNNEEDED,       /* skipped: the plan fits without its recomputation */
    MS_FATE_MEMORY,         /* exceeds device memory */
    MS_FATE_PLAN_BOUND,     /* ruled out by the bound of the complete plan */
    MS_FATE_REPLAYED
} ms_fate;

/* One plan that is followed through the exploration of its mesh. */
typedef struct ms_watch {
    ms_plan plan;
    ms_fate fate;
    double beaten_by_s; /* step time that a bound of the plan exceeds; NaN: none */
    bool by_mesh;       /* beaten_by_s is the step time of another plan of the mesh */
    /* figures computed for the plan; NaN: not computed */
    double schedule_bound_s, sharding_bound_s, bound_s, peak_bytes, step_s;
} ms_watch;
/* Prepares to follow a plan; ms_explore_mesh then fills in the watch. */
void ms_watch_start(ms_watch *watch, const ms_plan *plan);

/* Bounds of the schedules of a mesh, in the order in which they are visited. Meshes that
 * ms_explore_compare_bounds finds equal have equal bounds. */
typedef struct ms_schedule_bound {
    unsigned long long key; /* micro-batch and options that the bound depends on */
    double bound_s;
} ms_schedule_bound;

typedef struct ms_schedule_bounds {
    int num, capacity;
    ms_schedule_bound *of; /* (capacity), in the explorer's scratch while being filled */
} ms_schedule_bounds;

/* State of the exploration in one thread. */
typedef struct ms_explorer {
    ms_workload *workload;
    const ms_space *space;
    ms_arena *scratch;
    ms_schedule_cache *schedules;
    ms_live_cache *lives;
    ms_known_stages *stages; /* pipeline stages priced on ideal links; NULL: not cached */
    bool exhaustive;         /* replay every plan that fits, skip nothing: for tests */
    bool bounds_only;        /* bound and memory of every plan, no replay */
    const volatile int *interrupted; /* set by a signal to stop; NULL: never stop */
    ms_watch *watch;                 /* followed plan; NULL: none */
    ms_schedule_bounds *noted; /* ms_explore_bound_s notes all bounds there; NULL: none */
    const ms_schedule_bounds *known; /* bounds of an equal mesh; NULL: compute them */
    int num_passed;                  /* entries of `known` that were used */
    ms_counts counts;
    /* best plans of the current mesh, fastest first; of equal ones the first found */
    int num_found, capacity;
    ms_found *found;      /* best plans (capacity) */
    double threshold_s;   /* step time: a plan with a larger bound is not replayed */
    double least_bound_s; /* smallest bound of any plan, if bounds_only */
    /* least memory that a plan needs on a device, over all evaluated plans, for the
     * report when nothing fits */
    double least_device_bytes;
    double known_device_bytes; /* least memory found so far in other meshes */
    ms_plan least_plan;        /* the plan that needs least_device_bytes */
} ms_explorer;

/* Opens an explorer with an arena and caches of its own, which ms_explorer_close frees.
 * `capacity`: number of best plans kept of a mesh. */
ms_explorer ms_explorer_open(ms_workload *workload, const ms_space *space, int capacity);
void ms_explorer_close(ms_explorer *explorer);

/* Whether a signal asked to stop. */
static inline bool ms_is_interrupted(const volatile int *interrupted)
{
    return interrupted != NULL && *interrupted;
}

/* Number of complete plans of the mesh: those that `exhaustive` evaluates. */
long ms_explore_count(const ms_explorer *explorer, const ms_mesh_choice *mesh);

/* Lower bound, in seconds, of the step time of all plans of the mesh, whatever the order
 * of axes, sharding and recomputation; infinite if no micro-batch divides the batch.
 * `least`: a plan with that bound; NULL: not wanted. */
double ms_explore_bound_s(ms_explorer *explorer, const ms_mesh_choice *mesh,
                          ms_plan *least);
/* Sort order of meshes; 0 if they differ at most in how replicas are shared between
 * dp_replicate and dp_shard, and therefore have equal bounds. */
int ms_explore_compare_bounds(const ms_mesh_choice *a, const ms_mesh_choice *b);
/* Estimate, in seconds, of the mesh's best step time from the choices of `like`, a plan
 * of a mesh with an equal bound, with traffic of parameters and gradients. No bound;
 * infinite if its states do not fit. */
double ms_explore_estimate_s(ms_explorer *explorer, const ms_mesh_choice *mesh,
                             const ms_plan *like);

/* Finds the mesh's best plans into explorer->found. */
void ms_explore_mesh(ms_explorer *explorer, const ms_mesh_choice *mesh,
                     double threshold_s);

#endif
