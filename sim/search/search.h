/* Search for the best plans of a space, with a certificate. Several threads explore
 * meshes, lowest bound first; plans that a bound rules out cannot be among the best, so
 * the result equals that of replaying every plan, whatever the number of threads.
 * This room holds the space of plans, its exploration, the reasons why a plan was not
 * chosen, and the nearest change that fits; the prediction of one plan is in sim/step,
 * text output in cli/report. */
#ifndef MS_SIM_SEARCH_SEARCH_H
#define MS_SIM_SEARCH_SEARCH_H

#include "sim/search/explore.h"

typedef struct ms_search_options {
    int num_best;  /* K: number of best plans, each of another mesh */
    bool variants; /* several of the K plans may be of one mesh */
    int num_threads;
    bool exhaustive;                 /* brute force: every plan that fits is replayed */
    bool bounds_only;                /* no replay, to measure rates */
    const volatile int *interrupted; /* set by a signal to stop early; NULL: never */
    /* Called several times a second with the number of explored meshes, in a search that
     * takes more than 2 s, and once at its end. NULL: no reports. */
    void (*progress)(void *payload, int num_done, int num_meshes);
    void *payload;
} ms_search_options;

typedef struct ms_search_result {
    int num_found;
    ms_found *found; /* best plans (num_found), fastest first */
    long num_meshes;
    ms_counts counts;
    bool optimal;                 /* proven: the whole space was covered */
    double smallest_open_bound_s; /* bound of unexplored meshes; NaN: none */
    double least_device_bytes;    /* least memory that an evaluated plan needs */
    ms_plan least_plan;           /* the plan that needs least_device_bytes */
    double elapsed_s;
} ms_search_result;

/* Searches the space. The result lives in cx->arena and is filled also when nothing fits
 * (MS_ENOFIT). */
ms_status ms_search(ms_ctx *cx, ms_workload *workload, const ms_space *space,
                    const ms_search_options *options, ms_search_result *out);

/* Step time of the slowest of the num_best plans, above which no plan is among them;
 * infinite if fewer were found. */
double ms_search_threshold_s(const ms_found *found, int num_found, int num_best);

#endif
