/* Why nothing fits device memory, the bytes missing, and the nearest change that fits. */
#ifndef MS_SIM_SEARCH_SHORTFALL_H
#define MS_SIM_SEARCH_SHORTFALL_H

#include "sim/search/search.h"
#include "sim/step/prediction.h"

typedef struct ms_shortfall {
    const char *reason;      /* why nothing fits, one sentence */
    double needed_bytes;     /* ms_needed_bytes of `plan`; NaN: no legal plan */
    double capacity_bytes;   /* device memory without headroom */
    double fits_probability; /* probability that `plan` fits; NaN: unknown */
    double gpus_of_states;   /* GPUs whose memory parameters, gradients, optimizer fill */
    ms_plan plan;            /* the plan that needs needed_bytes */
    const char *change; /* flags of the change: "--recompute full"; NULL: none found */
    ms_plan changed;    /* the plan after the change */
    double step_s, peak_bytes;       /* prediction of `changed` */
    double changed_fits_probability; /* P(fit) of `changed`; NaN: unknown */
    bool is_searched;    /* `changed` was found by a search, not by one of the changes */
    long configurations; /* number of plans searched for a change */
} ms_shortfall;

/* Finds the nearest change with which a plan that does not fit device memory fits. Tries
 * in this order: recomputation; higher ZeRO stages; half the micro-batch; tp, pp or cp
 * doubled with half the dp_shard; 2 to 64 times the GPUs; full recomputation, ZeRO-3 and
 * micro-batch 1 together; these on 2 to 64 times the GPUs; the fastest plan of a search
 * on as many GPUs, then on 2 to 64 times as many (large spaces: only plans of least
 * memory). Of `options` only threads and interruption count. */
void ms_shortfall_of_plan(ms_ctx *cx, ms_workload *workload, const ms_plan *plan,
                          const ms_prediction *prediction,
                          const ms_search_options *options, ms_shortfall *out);

/* Explains why no plan of a finished search fits (`result`), without looking for a change
 * that does. */
void ms_shortfall_explain(ms_ctx *cx, ms_workload *workload, const ms_space *space,
                          const ms_search_result *result, ms_shortfall *out);

/* ms_shortfall_explain; if some plans are legal, searches the space again on 2, 4 ... 64
 * times the GPUs, for a plan that fits. */
void ms_shortfall_of_search(ms_ctx *cx, ms_workload *workload, const ms_space *space,
                            const ms_search_options *options,
                            const ms_search_result *result, ms_shortfall *out);

/* Writes a JSON object: reason, needed_bytes, capacity_bytes, shortfall_bytes, plan,
 * nearest_change. */
void ms_shortfall_write_json(ms_jout *out, const ms_shortfall *shortfall);

/* Sets the reason as error, with the change as its hint; returns MS_ENOFIT. */
ms_status ms_shortfall_fail(ms_ctx *cx, const ms_shortfall *shortfall);

#endif
