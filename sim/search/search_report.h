/* All that a search shows, and its JSON. */
#ifndef MS_SIM_SEARCH_SEARCH_REPORT_H
#define MS_SIM_SEARCH_SEARCH_REPORT_H

#include "sim/search/search.h"
#include "sim/search/shortfall.h"
#include "sim/search/why.h"
#include "sim/step/prediction.h"

/* The results of a search; `plans` state the layers of each stage. */
typedef struct ms_search_report {
    const ms_space *space;
    const char *limits; /* limits of the space: "tp<=8, zero=1"; "" for none */
    const char *unit;   /* unit of the cluster's device; NULL for "GPU" */
    const ms_search_result *result;
    int num_threads;
    const ms_plan *plans;             /* best plans (result->num_found) */
    const ms_prediction *predictions; /* predictions of `plans` (result->num_found) */
    const ms_shortfall *shortfall;    /* why no plan fits; NULL if some does */
    const ms_why *why;                /* answer to --why; NULL if not requested */
} ms_search_report;

/* Number of configurations that one rule, limit or bound rejected. */
typedef struct ms_search_reason {
    const char *name;
    long count;
} ms_search_reason;

#define MS_NUM_SEARCH_REASONS (MS_NUM_REFUSALS + 2)

/* Lists refusals by integer rules first, then "memory", "bound" and "dominated". */
void ms_search_reasons(const ms_counts *counts,
                       ms_search_reason reasons[MS_NUM_SEARCH_REASONS]);
/* Step time of the best plan by replay; NaN if nothing was found. */
double ms_search_best_step_s(const ms_search_report *report);

/* Writes meshsim.search/1. */
void ms_search_write_json(ms_jout *out, const ms_search_report *report);

#endif
