/* The plan that needs the least device memory: a search at each half of what is left. */
#include "sim/planning/objective.h"

#include <math.h>

#define CLOSE_BYTES 0x1p20

typedef struct halving {
    ms_ctx *cx;
    ms_workload *workload;
    const ms_best_question *question;
    const ms_search_options *options;
    double device_bytes;
    double low_bytes; /* no plan fits in them */
    ms_best_plan best;
} halving;

/* Searches in `bytes` of device memory, and moves the bounds by the outcome. */
static ms_status try_memory(halving *h, double bytes)
{
    ms_plan_limits limits = *h->question->limits;
    limits.memory.headroom_frac = 0.0;
    limits.memory.headroom_bytes = h->device_bytes - bytes;
    ms_best_question question = *h->question;
    question.limits = &limits;
    ms_best_plan answer;
    MS_TRY(ms_best_plan_in(h->cx, h->workload, &question, h->options, &answer));
    if (ms_best_plan_keeps_limits(&answer))
        h->best = answer;
    else
        h->low_bytes = bytes;
    return MS_OK;
}

static ms_status halve(halving *h)
{
    while (h->best.needed_bytes - h->low_bytes > CLOSE_BYTES)
        MS_TRY(try_memory(h, floor(0.5 * (h->low_bytes + h->best.needed_bytes))));
    while (h->best.needed_bytes - h->low_bytes > 1.0)
        MS_TRY(try_memory(h, ceil(h->best.needed_bytes) - 1.0));
    return MS_OK;
}

static ms_status find_in(ms_ctx *cx, ms_workload *workload,
                         const ms_best_question *question,
                         const ms_search_options *options, ms_best_plan *out)
{
    halving h = {.cx = cx,
                 .workload = workload,
                 .question = question,
                 .options = options,
                 .device_bytes = workload->cluster->device.memory_bytes};
    MS_TRY(ms_best_plan_in(cx, workload, question, options, out));
    if (!ms_best_plan_keeps_limits(out))
        return MS_OK;
    h.best = *out;
    MS_TRY(halve(&h));
    *out = h.best;
    return MS_OK;
}

ms_status ms_least_memory_find(ms_ctx *cx, const ms_best_question *question,
                               const ms_search_options *options, ms_best_plan *out)
{
    ms_workload *workload;
    MS_TRY(ms_workload_open(cx, &question->base, &workload));
    ms_status status = find_in(cx, workload, question, options, out);
    ms_workload_close(workload);
    return status;
}
