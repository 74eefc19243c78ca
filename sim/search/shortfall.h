/* Reason why no plan fits, the missing memory, and the nearest change that fits. */
#ifndef MS_SIM_SEARCH_SHORTFALL_H
#define MS_SIM_SEARCH_SHORTFALL_H

#include "sim/search/search.h"
#include "sim/step/prediction.h"

typedef struct ms_shortfall {
    const char *reason;  /* why no plan fits, one sentence */
    double needed_bytes; /* bytes that `plan` needs; NaN: no plan obeys the rules */
    double capacity_bytes;
    double gpus_of_states; /* GPUs that parameters, gradients, optimizer states fill */
    ms_plan plan;          /* the plan that needs needed_bytes */
    const char *change;    /* command-line flags: "--recompute full"; NULL: none found */
    ms_plan changed;       /* the plan after the change */
    double step_s, peak_bytes; /* prediction for `changed` */
    bool is_searched;          /* `changed` is the best plan of a search */
    long configurations;       /* plans that searches for a change evaluated */
} ms_shortfall;

/* Finds a change for a plan that does not fit; `prediction` is that of the plan. Changes of
 * one choice are tried in this order: recomputation, zero, resharding, half the
 * micro-batch, tp, pp or cp doubled at the cost of dp_shard, up to 64 times the GPUs; then
 * full recomputation, zero 3 and micro-batch 1 together, also with more GPUs. The first
 * that fits is taken; if none does, the best plan of a search over the same GPUs (with the
 * threads and interruption of `options`), or over the fewest that fit of 2, 4 ... 64 times
 * as many. In a large space that search covers only plans that need least memory. */
void ms_shortfall_of_plan(ms_ctx *cx, ms_workload *workload, const ms_plan *plan,
                          const ms_prediction *prediction,
                          const ms_search_options *options, ms_shortfall *out);

/* Searches the limits of `space` over more GPUs, after a search that found nothing
 * (`result`). No search if no plan divides the model and the batch. */
void ms_shortfall_of_search(ms_ctx *cx, ms_workload *workload, const ms_space *space,
                            const ms_search_options *options,
                            const ms_search_result *result, ms_shortfall *out);

/* Writes an object: reason, needed_bytes, capacity_bytes, shortfall_bytes, plan,
 * nearest_change. */
void ms_shortfall_write_json(ms_jout *out, const ms_shortfall *shortfall);

/* Records the reason with the change as its hint; returns MS_ENOFIT. */
ms_status ms_shortfall_fail(ms_ctx *cx, const ms_shortfall *shortfall);

#endif
