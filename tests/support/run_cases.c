#include "tests/support/run_cases.h"

#include "tests/support/random_plans.h"
#include "tests/test.h"

#include <math.h>

#define NUM_MODELS (MS_NUM_SMALL_DENSE + MS_NUM_SMALL_MOE)

static ms_make_model *model_of(int i)
{
    return i < MS_NUM_SMALL_DENSE ? ms_small_dense[i]
                                  : ms_small_moe[i - MS_NUM_SMALL_DENSE];
}

const ms_run_tolerance ms_run_fp64 = {MS_REAL_FP64, 5, 1e-12, 1e-12, 1e-12};
const ms_run_tolerance ms_run_fp32 = {MS_REAL_FP32, 1, 1e-6, 1e-5, HUGE_VAL};

/* The same sequences on one rank, at once. */
static ms_plan serial_plan(const ms_plan *plan)
{
    ms_plan serial = ms_run_base_plan();
    serial.global_batch = serial.microbatch = plan->global_batch;
    return serial;
}

static ms_outcome run(ms_ctx *cx, const ms_model *model, const ms_plan *plan,
                      const ms_run_tolerance *how, const ms_backend *backend)
{
    ms_outcome out;
    ms_runner_options options = ms_run_options(model, plan, how->type);
    ms_plan typed = *plan;
    typed.compute = how->type == MS_REAL_FP64 ? MS_FP64 : MS_FP32;
    options.num_steps = how->steps;
    const char *stack = plan->gpus % 3 == 0 ? "megatron" : "generic";
    ASSERT_OK(ms_run_plan(cx, model, &typed, stack, backend, &options, &out), cx);
    return out;
}

bool ms_run_agrees(ms_ctx *cx, const ms_model *model, const ms_plan *plan,
                   const ms_backend *backend, const ms_run_tolerance *how)
{
    ms_plan serial = serial_plan(plan);
    ms_outcome want = run(cx, model, &serial, how, &ms_backend_loop);
    ms_outcome got = run(cx, model, plan, how, backend);
    const char *worst = "";
    double loss = fabs(got.losses[how->steps - 1] / want.losses[how->steps - 1] - 1.0);
    double gradients = ms_run_difference(&got.gradients, &want.gradients, &worst);
    double updated = ms_run_difference(&got.updated, &want.updated, NULL);
    bool ok = loss <= how->loss && gradients <= how->gradients && updated <= how->updated;
    if (!ok)
        printf("%s, %s: loss %.1e, gradient of %s %.1e, weights %.1e\n", model->name,
               ms_plan_text(cx->arena, plan), loss, worst, gradients, updated);
    return ok;
}

const ms_model *ms_run_case(ms_ctx *cx, ms_rng *rng, int i, long gpus, ms_plan *plan)
{
    const ms_model *model = ms_run_model(cx->arena, model_of(i % NUM_MODELS));
    const ms_workload workload = {.model = model};
    const ms_plan base = ms_run_base_plan();
    do
        *plan = ms_random_plan(rng, &workload, &base, gpus > 0 ? gpus : 16);
    while (gpus > 0 && plan->gpus != gpus);
    return model;
}

int ms_run_random_plans(const ms_run_tolerance *how, uint64_t seed, int num)
{
    ms_rng rng = ms_rng_seed(seed);
    int num_wrong = 0;
    for (int i = 0; i < num; i++) {
        ms_ctx *cx = test_cx();
        ms_plan plan;
        const ms_model *model = ms_run_case(cx, &rng, i, 0, &plan);
        num_wrong += !ms_run_agrees(cx, model, &plan, &ms_backend_loop, how);
    }
    return num_wrong;
}
