/* The result of a search as text and as meshsim.search/1. */
#ifndef MS_SIM_SEARCH_SEARCH_PRINT_H
#define MS_SIM_SEARCH_SEARCH_PRINT_H

#include "sim/search/search.h"
#include "sim/search/shortfall.h"
#include "sim/search/why.h"
#include "sim/step/prediction.h"

/* Everything that is shown; `plans` carry the layers of each stage. */
typedef struct ms_search_report {
    const ms_space *space;
    const char *limits; /* "tp<=8, zero=1"; "" for none */
    const char *unit;   /* of the cluster's device; NULL: "GPU" */
    const ms_search_result *result;
    int num_threads;
    const ms_plan *plans;             /* (result->num_found) */
    const ms_prediction *predictions; /* (result->num_found) */
    const ms_shortfall *shortfall;    /* NULL unless nothing fits */
    const ms_why *why;                /* NULL: was not asked */
} ms_search_report;

/* What was asked, the plans, what became of the rest of the space, and the certificate. */
void ms_search_print(FILE *out, ms_arena *arena, const ms_search_report *report);
void ms_search_write_json(ms_jout *out, const ms_search_report *report);

#endif
