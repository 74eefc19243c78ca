/* The best plans of a space, with a certificate. Meshes are explored best bound first by
 * several threads; what a bound rules out cannot be among the best, so the result is that
 * of replaying every plan. It does not depend on threads. */
#ifndef MS_SIM_SEARCH_SEARCH_H
#define MS_SIM_SEARCH_SEARCH_H

#include "sim/search/explore.h"

typedef struct ms_search_options {
    int num_best;  /* K: best plans of different meshes */
    bool variants; /* K best plans, several of a mesh among them */
    int num_threads;
    bool exhaustive;                 /* brute force */
    bool bounds_only;                /* rates: no replay */
    const volatile int *interrupted; /* set by a signal: stop early; NULL: never */
    /* Told several times a second how many meshes are explored, of a search that takes
     * more than two; at its end all are. NULL: nobody is told. */
    void (*progress)(void *payload, int num_done, int num_meshes);
    void *payload;
} ms_search_options;

typedef struct ms_search_result {
    int num_found;
    ms_found *found; /* (num_found), fastest first */
    long num_meshes;
    ms_counts counts;
    bool optimal;                 /* the whole space was covered */
    double smallest_open_bound_s; /* of meshes not explored; NaN when none is open */
    double least_device_bytes;    /* over all plans looked at */
    ms_plan least_plan;
    double elapsed_s;
} ms_search_result;

/* The result lives in cx->arena. MS_ENOFIT when nothing fits: the result is filled all
 * the same. */
ms_status ms_search(ms_ctx *cx, ms_workload *workload, const ms_space *space,
                    const ms_search_options *options, ms_search_result *out);

/* The slowest of the best, when there are num_best of them: no plan above it is among
 * them. Else infinite. */
double ms_search_threshold_s(const ms_search_result *result, int num_best);
/* Whether a mesh with this bound is not explored. */
bool ms_search_rules_out(double mesh_bound_s, double threshold_s);

#endif
