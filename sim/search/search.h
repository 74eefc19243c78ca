/* Folder sim/search: the space of plans, its exploration and certificate, why a plan was
 * not chosen, the nearest change that fits; one plan is predicted in sim/step.
 *
 * Search for the fastest plans that fit memory, with proof that none is faster. Threads
 * explore meshes (sizes of the parallel axes), the most promising first. Only plans with
 * too long a lower bound of step time are skipped: the result is that of replaying every
 * plan, whatever the number of threads. */
#ifndef MS_SIM_SEARCH_SEARCH_H
#define MS_SIM_SEARCH_SEARCH_H

#include "sim/search/explore.h"

typedef struct ms_search_progress {
    double done_frac; /* about this share of the work is done; 1: the search is over */
    double elapsed_s;
    double best_step_s; /* step time of the fastest plan so far; NaN: none was found */
} ms_search_progress;

typedef struct ms_search_options {
    int num_best;  /* K: number of best plans, each of another mesh */
    bool variants; /* several of the K best plans may be of one mesh */
    int num_threads;
    bool exhaustive;  /* replay every plan that fits, skip nothing: for tests */
    bool bounds_only; /* compute bounds only, no replay: to measure speed */
    const volatile int *interrupted; /* nonzero: stop early; NULL: never */
    /* Called up to four times a second and at the end, in a search that takes more than
     * 2 s. NULL: no reports. */
    void (*progress)(void *payload, const ms_search_progress *progress);
    void *payload;
} ms_search_options;

/* A mesh with a lower bound of the step times of its plans, in seconds, and those of its
 * schedules; NULL: not known. */
typedef struct ms_bounded_mesh {
    ms_mesh_choice mesh;
    double bound_s;
    const ms_schedule_bounds *schedules;
} ms_bounded_mesh;

/* Place of a plan among those that predictions cannot tell apart (sim/search/ties.h). */
typedef struct ms_tie {
    int group;       /* number of the group; 0 has the fastest plan */
    double gap_frac; /* step time / that of the fastest plan - 1 */
    bool fastest;
} ms_tie;

typedef struct ms_search_result {
    int num_found;
    ms_found
        *found; /* (num_found): best plans, fastest first, or as ms_search_tie does */
    const ms_tie *ties; /* (num_found): set by ms_search_tie; NULL before */
    double threshold_s; /* ms_search_threshold_s of the fastest plans */
    /* mixed clusters: step time, in seconds, of the fastest plan before ms_found_divide,
     * infinite if none fitted; NaN: layers of stages do not follow devices */
    double balanced_step_s;
    long num_meshes;
    const ms_bounded_mesh *meshes; /* (num_meshes): all legal meshes of the space */
    ms_counts counts;
    bool optimal;                 /* proven best: the whole space was covered */
    double smallest_open_bound_s; /* least time bound of unexplored meshes; NaN: none */
    double least_needed_bytes;    /* least ms_needed_bytes of any evaluated plan */
    ms_plan least_plan;           /* the plan that needs least_needed_bytes */
    double elapsed_s;
} ms_search_result;

/* Searches the space for the best plans that fit by the workload's memory rule. The
 * result lives in cx->arena; it is complete also if the status is MS_ENOFIT (none fits).
 * On a mixed cluster these are the best with layers balanced by compute; they and some
 * more are then divided (ms_found_divide) and sorted again. */
ms_status ms_search(ms_ctx *cx, ms_workload *workload, const ms_space *space,
                    const ms_search_options *options, ms_search_result *out);

/* A search in two parts, so that each of several has a first plan before one is complete:
 * what ms_search_begin finds, one plan that fits if there is any and the search is not
 * interrupted, is in the result of ms_search_complete, whenever it is interrupted. The
 * state lives in cx->arena, must be completed, and refers to all that it was given. */
typedef struct ms_search_state ms_search_state;
ms_search_state *ms_search_begin(ms_ctx *cx, ms_workload *workload, const ms_space *space,
                                 const ms_search_options *options);
ms_status ms_search_complete(ms_search_state *state, ms_search_result *out);

/* Step time, in seconds, of the last of num_best listed plans: slower plans cannot enter
 * the list. Infinite while the list has room (num_found < num_best). */
double ms_search_threshold_s(const ms_found *found, int num_found, int num_best);

#endif
