/* Why nothing fits, by how much, and the nearest change that would fit. */
#ifndef MS_SIM_SEARCH_SHORTFALL_H
#define MS_SIM_SEARCH_SHORTFALL_H

#include "sim/search/search.h"
#include "sim/step/prediction.h"

typedef struct ms_shortfall {
    const char *reason;  /* one sentence */
    double needed_bytes; /* peak of `plan`; NaN: no plan obeys the rules */
    double capacity_bytes;
    double gpus_of_states;     /* that parameters, gradients and optimizer states fill */
    ms_plan plan;              /* the one that needs `needed_bytes` */
    const char *change;        /* as flags: "--recompute full"; NULL: none was found */
    ms_plan changed;           /* the plan after the change */
    double step_s, peak_bytes; /* of `changed` */
    bool is_searched;          /* `changed` is the best plan of a search */
    long configurations;       /* that searches for a change looked at */
} ms_shortfall;

/* Changes of one choice, in this order: recomputation, zero, resharding, half the
 * micro-batch, tp, pp or cp doubled at the cost of dp_shard, up to 64 times the GPUs;
 * then full recomputation, zero 3 and micro-batch 1 together, also with more GPUs. The
 * first that fits is taken; when none does, the best plan of a search over the same GPUs
 * (of `options`: threads and interruption), or over the fewest that fit of 2, 4 ... 64
 * times as many: in a large space the best of its plans that keep least. `prediction` is
 * of `plan`, which does not fit. */
void ms_shortfall_of_plan(ms_ctx *cx, ms_workload *workload, const ms_plan *plan,
                          const ms_prediction *prediction,
                          const ms_search_options *options, ms_shortfall *out);

/* The same search for the limits of `space`, over more GPUs; not when no plan divides the
 * model and the batch. `result` is of a search that found nothing. */
void ms_shortfall_of_search(ms_ctx *cx, ms_workload *workload, const ms_space *space,
                            const ms_search_options *options,
                            const ms_search_result *result, ms_shortfall *out);

/* As an object: reason, needed_bytes, capacity_bytes, shortfall_bytes, plan,
 * nearest_change. */
void ms_shortfall_write_json(ms_jout *out, const ms_shortfall *shortfall);

/* Records the reason with the change as its hint; returns MS_ENOFIT. */
ms_status ms_shortfall_fail(ms_ctx *cx, const ms_shortfall *shortfall);

#endif
