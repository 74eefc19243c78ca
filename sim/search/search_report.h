/* Everything that the output of a search shows, as one struct, and its JSON. */
#ifndef MS_SIM_SEARCH_SEARCH_REPORT_H
#define MS_SIM_SEARCH_SEARCH_REPORT_H

#include "costmodel/calibrate/ranking_spread.h"
#include "sim/search/gains.h"
#include "sim/search/search.h"
#include "sim/search/shortfall.h"
#include "sim/search/why.h"
#include "sim/step/prediction.h"

/* The results of a search; `plans` state the number of layers of each stage. */
typedef struct ms_search_report {
    const ms_space *space;
    const char *limits;             /* the user's limits: "tp<=8, zero=1"; "" for none */
    const ms_memory_limit *memory;  /* the limit by which plans fit */
    const ms_rule_set *rules;       /* rules of the stack's framework */
    const char *unit;               /* word for a device; NULL: "GPU" */
    const ms_search_result *result; /* a result whose ties are set (ms_search_tie) */
    int num_threads;
    const ms_plan *plans; /* (result->num_found): best plans */
    const char *layout;   /* layout string of the first plan (ms_plan_layout_text) */
    const ms_prediction *predictions; /* (result->num_found): predictions of `plans` */
    int num_gains;
    ms_gain gains[MS_NUM_ALLOWANCES]; /* gains of the first plan (ms_find_gains) */
    const ms_shortfall *shortfall;    /* why no plan fits; NULL if some does */
    const ms_why *why;                /* answer to --why; NULL if not asked */
    double tie_band_frac;     /* plans less slower than the fastest by this are tied */
    bool tie_band_is_given;   /* the user set the band; false: from `ranking` */
    bool tie_band_is_limited; /* narrower: slower plans would break deadline or budget */
    const ms_ranking_spread *ranking; /* errors between plans; NULL: not known */
} ms_search_report;

/* Number of plans that the search rejected by one rule, limit or bound. */
typedef struct ms_search_reason {
    const char *name;
    long count;
} ms_search_reason;

#define MS_NUM_SEARCH_REASONS (MS_NUM_REFUSALS + 2)

/* Lists how many plans each integer rule, "memory", "bound" and "dominated" rejected. */
void ms_search_reasons(const ms_counts *counts,
                       ms_search_reason reasons[MS_NUM_SEARCH_REASONS]);
/* Exact step time, in seconds, of the fastest plan; NaN if no plan was found. */
double ms_search_best_step_s(const ms_search_report *report);

/* Probability that the listed plan `a` is faster than `b` (ms_faster_probability, by
 * replay); NaN if no errors are known. */
double ms_search_faster_probability(const ms_search_report *report, int a, int b);

/* Fills in what the first plan, if there is one, would gain. `allowed`: names, with commas,
 * that the search has tried (NULL: none); they are left out. */
void ms_search_find_gains(const ms_workload *workload, const char *allowed,
                          ms_search_report *report);

/* Writes the fields that say what was searched, "model" and so on, into an open JSON
 * object. `stack`: the only stack; NULL for several. */
void ms_search_write_inputs(ms_jout *out, const ms_search_report *report,
                            const char *stack);
/* Writes the field "certificate" into an open JSON object. */
void ms_search_write_certificate(ms_jout *out, const ms_search_report *report);
/* Writes the fields of schema meshsim.search/1 into an open JSON object. */
void ms_search_write_fields(ms_jout *out, const ms_search_report *report);

#endif
