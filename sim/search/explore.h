/* Exploration of one mesh (sizes of the parallel axes): bounds, memory and replay of its
 * micro-batches, schedules, orders of axes, shardings and recomputations. */
#ifndef MS_SIM_SEARCH_EXPLORE_H
#define MS_SIM_SEARCH_EXPLORE_H

#include "sim/search/space.h"
#include "sim/step/known_stages.h"
#include "sim/step/live_cache.h"
#include "sim/step/step.h"

/* A plan found by the search, with its step time by replay and its peak memory. */
typedef struct ms_found {
    ms_plan plan;
    double step_s, peak_bytes;
} ms_found;

/* How many plans a search covered, and how many it skipped for which reason. The legal
 * plans of the explored schedules, each order of axes counted, are configurations, and
 * configurations = replayed + over_memory + over_bound + dominated. */
typedef struct ms_counts {
    long configurations;
    /* shardings with a recomputation whose memory or time bound was computed: once for all
     * orders of axes, on ideal links, and again for each order that this leaves open; all
     * numbers of fully recomputed layers that are tried count as one */
    long evaluated;
    long replayed;          /* plans whose exact step time was computed */
    long over_memory;       /* plans that exceed device memory */
    long over_bound;        /* plans with a step-time bound above the best plans' times */
    long dominated;         /* plans at least as slow as a similar one that fits */
    long meshes_over_bound; /* meshes ruled out as a whole by their bound */
    long schedules_over_bound; /* schedules of other meshes ruled out by their bound */
    /* meshes, micro-batches with options, schedules and shardings that break a rule, none
     * of whose plans are configurations, by rule; those of MS_REFUSE_FRAMEWORK in `broken`
     * by the framework's rule */
    long refused[MS_NUM_REFUSALS];
    long broken[MS_MAX_RULES];
} ms_counts;

/* How many plans the rules of one name refuse. */
typedef struct ms_rule_count {
    const char *name;
    long count;
} ms_rule_count;

/* Lists the rules that refuse plans, in the order of the set, and returns their number. */
int ms_count_broken_rules(const ms_counts *counts, const ms_rule_set *rules,
                          ms_rule_count out[MS_MAX_RULES]);
/* Text of these numbers: " (interleaving 200, order 3)"; "" if no rule refuses plans. */
const char *ms_broken_counts_text(ms_arena *arena, const ms_counts *counts,
                                  const ms_rule_set *rules);

/* Decision of the search about one plan, when it explored the plan's mesh. */
typedef enum ms_fate {
    MS_FATE_UNSEEN,         /* the search never came to the plan */
    MS_FATE_ASYNC,          /* skipped: the same plan with async TP is no slower */
    MS_FATE_SCHEDULE_BOUND, /* skipped: its schedule's bound on ideal links too long */
    MS_FATE_SHARDING_BOUND, /* skipped: its sharding's bound on real links too long */
    MS_FATE_UNNEEDED,       /* skipped: the plan fits without recomputation */
    MS_FATE_MEMORY,         /* skipped: the plan exceeds device memory */
    MS_FATE_PLAN_BOUND,     /* skipped: time bound of the complete plan too long */
    MS_FATE_REPLAYED
} ms_fate;

/* One given plan, and what the search decides about it in exploring the plan's mesh. */
typedef struct ms_watch {
    ms_plan plan;
    ms_fate fate;
    double beaten_by_s; /* step time of a plan that ruled this one out; NaN: none */
    bool by_mesh;       /* beaten_by_s is from the same mesh; false: from another one */
    /* bounds, memory and step time of the plan; NaN: not computed */
    double schedule_bound_s, sharding_bound_s, bound_s, peak_bytes, step_s;
} ms_watch;
/* Prepares a watch, for explorer->watch, of what the search decides about a plan. */
void ms_watch_start(ms_watch *watch, const ms_plan *plan);

/* Lower bound of the step time of one schedule of a mesh. Meshes that
 * ms_explore_compare_bounds finds equal have equal bounds. */
typedef struct ms_schedule_bound {
    unsigned long long key; /* micro-batch, options and schedule, as one number */
    double bound_s;
} ms_schedule_bound;

typedef struct ms_schedule_bounds {
    int num, capacity;
    ms_schedule_bound *of; /* (capacity): `num` used; in scratch memory until complete */
} ms_schedule_bounds;

/* Data of one search thread: options, caches, counts, and the best plans found. */
typedef struct ms_explorer {
    ms_workload *workload;
    const ms_space *space;
    ms_arena *scratch;
    ms_schedule_cache *schedules;
    ms_live_cache *lives;
    ms_known_stages *stages; /* cache: stages priced on ideal links; NULL: none */
    ms_rule_set rules;       /* the workload's (ms_explore_rules) */
    struct ms_known_accepted *accepted; /* cache: what the rules accept */
    bool exhaustive;  /* replay every plan that fits, skip nothing: for tests */
    bool bounds_only; /* bound and memory of every plan, no replay */
    const volatile int *interrupted; /* nonzero: stop; NULL: never stop */
    ms_watch *watch;                 /* plan to follow in the search; NULL: none */
    ms_schedule_bounds *noted; /* ms_explore_bound_s adds bounds here; NULL: nowhere */
    const ms_schedule_bounds *known; /* known schedule bounds; NULL: compute them */
    int num_passed;                  /* number of bounds in `known` already visited */
    ms_counts counts;
    /* number of best plans of the current mesh found so far; largest number kept */
    int num_found, capacity;
    ms_found *found;      /* (capacity): fastest first; equal times: first found first */
    double threshold_s;   /* plans with a larger step-time bound are not replayed */
    double least_bound_s; /* smallest step-time bound of any plan, if bounds_only */
    /* least device memory that any plan of the mesh needs, shown when no plan fits */
    double least_needed_bytes;
    double known_needed_bytes; /* smallest least_needed_bytes of earlier meshes */
    ms_plan least_plan;        /* the plan that needs least_needed_bytes */
} ms_explorer;

/* Opens the state of a search thread, with its own memory and caches. `capacity`: how
 * many best plans of a mesh it keeps. */
ms_explorer ms_explorer_open(ms_workload *workload, const ms_space *space, int capacity);
void ms_explorer_close(ms_explorer *explorer);

/* Number of legal plans of a mesh: those that an exhaustive search evaluates. */
long ms_explore_count(const ms_explorer *explorer, const ms_mesh_choice *mesh);

/* Lower bound, in seconds, of the step times of all plans of the mesh; infinite if none
 * is legal. `least`: becomes a plan with that bound; NULL: not wanted. */
double ms_explore_bound_s(ms_explorer *explorer, const ms_mesh_choice *mesh,
                          ms_plan *least);
/* Compares meshes for sorting: -1, 0 or 1. Equal meshes differ at most in the division of
 * data-parallel ranks into dp_replicate x dp_shard; their time bounds are equal. */
int ms_explore_compare_bounds(const ms_mesh_choice *a, const ms_mesh_choice *b);
/* Estimate, in seconds, of the mesh's best step time: the least bound, with gradient and
 * parameter traffic, of its plans that have the micro-batch, options and schedule of
 * `like`. Infinite if parameters and optimizer states alone exceed device memory. */
double ms_explore_estimate_s(ms_explorer *explorer, const ms_mesh_choice *mesh,
                             const ms_plan *like);

/* Finds the mesh's best plans; skips those with step-time bounds above threshold_s. */
void ms_explore_mesh(ms_explorer *explorer, const ms_mesh_choice *mesh,
                     double threshold_s);

#endif
