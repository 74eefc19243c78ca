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
    double high_bytes; /* needed by `best` */
    double low_bytes;  /* no plan fits in them */
    ms_best_plan best;
} halving;

static double needed_bytes(const ms_workload *workload, const ms_best_plan *answer)
{
    return ms_needed_bytes(&workload->memory, answer->prediction.peak_bytes,
                           answer->prediction.outside_bytes);
}

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
    if (answer.found &&
        (!answer.has_campaign || ms_campaign_keeps_limits(&answer.campaign))) {
        h->best = answer;
        h->high_bytes = needed_bytes(h->workload, &answer);
    } else {
        h->low_bytes = bytes;
    }
    return MS_OK;
}

static ms_status halve(halving *h)
{
    while (h->high_bytes - h->low_bytes > CLOSE_BYTES)
        MS_TRY(try_memory(h, floor(0.5 * (h->low_bytes + h->high_bytes))));
    while (h->high_bytes - h->low_bytes > 1.0)
        MS_TRY(try_memory(h, ceil(h->high_bytes) - 1.0));
    return MS_OK;
}

static ms_status find_in(ms_ctx *cx, ms_workload *workload,
                         const ms_best_question *question,
                         const ms_search_options *options, ms_best_plan *out,
                         double *needed)
{
    halving h = {.cx = cx,
                 .workload = workload,
                 .question = question,
                 .options = options,
                 .device_bytes = workload->cluster->device.memory_bytes};
    *needed = NAN;
    MS_TRY(ms_best_plan_in(cx, workload, question, options, out));
    if (!out->found)
        return MS_OK;
    *needed = needed_bytes(workload, out);
    if (out->has_campaign && !ms_campaign_keeps_limits(&out->campaign))
        return MS_OK;
    h.best = *out;
    h.high_bytes = *needed;
    MS_TRY(halve(&h));
    *out = h.best;
    *needed = h.high_bytes;
    return MS_OK;
}

ms_status ms_least_memory_find(ms_ctx *cx, const ms_best_question *question,
                               const ms_search_options *options, ms_best_plan *out,
                               double *needed_bytes)
{
    ms_workload *workload;
    MS_TRY(ms_workload_open(cx, &question->base, &workload));
    ms_status status = find_in(cx, workload, question, options, out, needed_bytes);
    ms_workload_close(workload);
    return status;
}
