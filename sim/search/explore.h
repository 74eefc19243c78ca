/* Everything inside one mesh: micro-batch, sequence parallelism, axis order, schedule,
 * sharding, recomputation. */
#ifndef MS_SIM_SEARCH_EXPLORE_H
#define MS_SIM_SEARCH_EXPLORE_H

#include "sim/search/space.h"
#include "sim/step/known_stages.h"
#include "sim/step/live_cache.h"
#include "sim/step/step.h"

/* A plan with its exact step time, or none (step_s infinite). */
typedef struct ms_found {
    ms_plan plan;
    double step_s, peak_bytes;
} ms_found;

typedef struct ms_counts {
    long configurations; /* complete plans in the part of the space that was looked at */
    long evaluated;      /* bound or memory computed */
    long replayed;       /* exact time computed */
    long refused[MS_NUM_REFUSALS];
    long over_memory; /* does not fit */
    long over_bound;  /* cannot be among the best */
    long dominated;   /* another plan of the same mesh is at least as fast and fits */
} ms_counts;

/* What became of one plan while its mesh was explored. */
typedef enum ms_fate {
    MS_FATE_UNSEEN, /* not among the plans of the mesh */
    MS_FATE_ASYNC,  /* asynchronous TP is tried instead, and never slower */
    /* its micro-batch and schedule cannot be among the best, on ideal links */
    MS_FATE_SCHEDULE_BOUND,
    MS_FATE_SHARDING_BOUND, /* nor with its sharding, on its own links */
    MS_FATE_UNNEEDED,       /* it fits without recomputation */
    MS_FATE_MEMORY,         /* does not fit */
    MS_FATE_PLAN_BOUND,     /* its own bound is too long */
    MS_FATE_REPLAYED
} ms_fate;

/* Started before its mesh is explored, which fills it in. */
typedef struct ms_watch {
    ms_plan plan;
    ms_fate fate;
    /* bounds: the plan of the mesh, or the threshold, that was too fast for it; NaN:
     * none */
    double beaten_by_s;
    bool by_mesh; /* it was a plan of the mesh */
    /* what was computed on the way; NaN: was not */
    double schedule_bound_s, sharding_bound_s, bound_s, peak_bytes, step_s;
} ms_watch;
void ms_watch_start(ms_watch *watch, const ms_plan *plan);

/* Bounds of the schedules of a mesh, in the order in which they are visited. Meshes whose
 * bounds are alike have the same. */
typedef struct ms_schedule_bound {
    unsigned long long key; /* micro-batch and options that the bound depends on */
    double bound_s;
} ms_schedule_bound;

typedef struct ms_schedule_bounds {
    int num, capacity;
    ms_schedule_bound *of; /* (capacity), in the explorer's scratch while it fills them */
} ms_schedule_bounds;

/* One per thread. */
typedef struct ms_explorer {
    ms_workload *workload;
    const ms_space *space;
    ms_arena *scratch;
    ms_schedule_cache *schedules;
    ms_live_cache *lives;
    ms_known_stages *stages; /* on ideal links; NULL: none are kept */
    bool exhaustive;         /* replay every plan that fits, skip nothing: for tests */
    bool bounds_only; /* compute bound and memory of every plan, replay none: for rates */
    /* set by a signal: leave the mesh unfinished; NULL: never */
    const volatile int *interrupted;
    ms_watch *watch; /* NULL: no plan is followed */
    /* ms_explore_bound_s writes the bounds of all schedules there; NULL: not wanted */
    ms_schedule_bounds *noted;
    /* noted for the mesh at work, or one alike; NULL: bounds are computed */
    const ms_schedule_bounds *known;
    int num_passed; /* of the known ones */
    ms_counts counts;
    /* the mesh at work: its best plans, fastest first; of equal ones the one found
     * first */
    int num_found, capacity;
    ms_found *found;      /* (capacity) */
    double threshold_s;   /* plans whose bound lies above need no exact time */
    double least_bound_s; /* bounds_only: the smallest bound */
    /* the least that a plan needs of a device, over all plans, with its plan, for the
     * report when nothing fits */
    double least_device_bytes;
    double known_device_bytes; /* that of other meshes, as far as it is known */
    ms_plan least_plan;
} ms_explorer;

/* With an arena and a schedule cache of its own; close it to release them. `capacity`:
 * plans kept of a mesh. */
ms_explorer ms_explorer_open(ms_workload *workload, const ms_space *space, int capacity);
void ms_explorer_close(ms_explorer *explorer);

/* Complete plans of the mesh: what `exhaustive` evaluates. */
long ms_explore_count(const ms_explorer *explorer, const ms_mesh_choice *mesh);

/* Never above the step time of any plan of the mesh, whatever the order of axes, sharding
 * and recomputation. Infinite when no micro-batch fits the batch. */
double ms_explore_bound_s(
    ms_explorer *explorer, const ms_mesh_choice *mesh,
    ms_plan *least); /* the plan whose bound it is; NULL: not wanted */
/* Whether the bounds of two meshes are the same: they differ in how replicas are shared
 * between dp_replicate and dp_shard at the most. */
bool ms_explore_bounds_alike(const ms_mesh_choice *a, const ms_mesh_choice *b);
/* About what the mesh's best plan takes, by a plan of a mesh with the same bound: traffic
 * of parameters and gradients counts. No bound; infinite: its states do not fit. */
double ms_explore_estimate_s(ms_explorer *explorer, const ms_mesh_choice *mesh,
                             const ms_plan *like);

/* Finds the mesh's best plans into explorer->found. */
void ms_explore_mesh(ms_explorer *explorer, const ms_mesh_choice *mesh,
                     double threshold_s);

#endif
