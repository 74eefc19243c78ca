#include "tests/support/random_plans.h"

static long draw(ms_rng *rng, const long *values, int num)
{
    return values[ms_rng_below(rng, (uint64_t)num)];
}

static void draw_axes(ms_rng *rng, const ms_model *model, long most_gpus, ms_plan *plan)
{
    static const long sizes[] = {1, 1, 2, 2, 3, 4, 8};
    plan->gpus = 1;
    for (int axis = 0; axis < MS_NUM_PLAN_AXES; axis++) {
        plan->size[axis] = draw(rng, sizes, 7);
        if (plan->gpus * plan->size[axis] > most_gpus)
            plan->size[axis] = 1;
        plan->gpus *= plan->size[axis];
    }
    if (model->num_kinds > 0 && ms_rng_below(rng, 2) == 0) {
        plan->ep = draw(rng, sizes, 7);
        plan->etp = ms_rng_below(rng, 2) == 0 ? plan->size[MS_TP] : 1;
    }
}

static ms_plan draw_plan(ms_rng *rng, const ms_model *model, const ms_plan *base,
                         long most_gpus)
{
    static const long virtual_stages[] = {1, 2, 2, 3};
    ms_plan plan = *base;
    draw_axes(rng, model, most_gpus, &plan);
    plan.virtual_stages = draw(rng, virtual_stages, 4);
    long microbatches = 1 + (long)ms_rng_below(rng, 12);
    plan.microbatch = 1 + (long)ms_rng_below(rng, 2);
    plan.global_batch = microbatches * plan.microbatch * ms_plan_data_parallel(&plan);
    plan.zero = (long)ms_rng_below(rng, 4);
    plan.reshard_after_forward = ms_rng_below(rng, 2) == 0;
    plan.sequence_parallel = ms_rng_below(rng, 2) == 0;
    plan.async_tp = ms_rng_below(rng, 2) == 0;
    plan.recompute = (ms_recompute)ms_rng_below(rng, MS_NUM_RECOMPUTE);
    plan.cp_method = (ms_cp_method)ms_rng_below(rng, MS_NUM_CP_METHODS);
    return plan;
}

/* Draws a schedule, then plans until one is legal with it (at most 300), so that
 * restrictive schedules are as frequent as others. */
ms_plan ms_random_plan(ms_rng *rng, const ms_workload *workload, const ms_plan *base,
                       long most_gpus)
{
    const int num_tries = 300;
    for (;;) {
        ms_schedule_kind kind = (ms_schedule_kind)ms_rng_below(rng, MS_CUSTOM);
        for (int i = 0; i < num_tries; i++) {
            ms_plan plan = draw_plan(rng, workload->model, base, most_gpus);
            plan.schedule = kind;
            if (ms_plan_refusal(&plan, workload->model) == MS_LEGAL &&
                !ms_plan_copies_kv_heads(&plan, workload->model))
                return plan;
        }
    }
}

const ms_plan_subject ms_plan_subjects[MS_NUM_PLAN_SUBJECTS] = {
    {"llama-3.1-8b", "hgx-h100", "generic", "dense", 64},
    {"llama-3.2-1b", "hgx-a100-80g", "megatron", "dense", 64},
    {"llama-3.1-70b", "gb200-nvl72", "torchtitan", "dense", 64},
    {"qwen3-30b-a3b", "hgx-h100", "generic", "experts", 64},
    {"mixtral-8x7b", "hgx-b200", "megatron", "experts", 64},
    {"deepseek-v2-lite", "hgx-h100", "generic", "experts", 64},
    {"nemotron-h-8b", "hgx-h100", "generic", "hybrid", 64},
    {"nemotron-3-nano-30b-a3b", "hgx-h100", "generic", "hybrid", 64},
};

ms_status ms_plan_subject_open(ms_ctx *cx, const ms_plan_subject *subject, ms_plan *base,
                               ms_workload **workload)
{
    *base = ms_plan_default(subject->gpus);
    base->model = subject->model;
    base->cluster = subject->cluster;
    base->stack = subject->stack;
    base->sequence_length = 4096;
    return ms_workload_open(cx, base, workload);
}
