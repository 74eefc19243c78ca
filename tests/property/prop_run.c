/* Random plans on the loop backend give what one rank gives: the loss, every gradient of the first step, and the weights after some steps. */
#include "tests/support/run_plan.h"

#include "tests/support/random_plans.h"
#include "tests/test.h"

#include <stdlib.h>

#define NUM_MODELS (MS_NUM_SMALL_DENSE + MS_NUM_SMALL_MOE)

static ms_make_model *model_of(int i)
{
    return i < MS_NUM_SMALL_DENSE ? ms_small_dense[i]
                                  : ms_small_moe[i - MS_NUM_SMALL_DENSE];
}

typedef struct tolerance {
    ms_real_type type;
    long steps;
    double loss, gradients, updated;
} tolerance;

/* The same sequences on one rank, at once. */
static ms_plan serial_plan(const ms_plan *plan)
{
    ms_plan serial = ms_run_base_plan();
    serial.global_batch = serial.microbatch = plan->global_batch;
    return serial;
}

static ms_outcome run(ms_ctx *cx, const ms_model *model, const ms_plan *plan,
                      const tolerance *how, bool parallel)
{
    ms_outcome out;
    ms_runner_options options = ms_run_options(model, plan, how->type);
    ms_plan typed = *plan;
    typed.compute = how->type == MS_REAL_FP64 ? MS_FP64 : MS_FP32;
    options.num_steps = how->steps;
    const char *stack = parallel && plan->gpus % 3 == 0 ? "megatron" : "generic";
    ASSERT_OK(ms_run_plan(cx, model, &typed, stack, &ms_backend_loop, &options, &out),
              cx);
    return out;
}

static bool agrees(ms_ctx *cx, const ms_model *model, const ms_plan *plan,
                   const tolerance *how)
{
    ms_plan serial = serial_plan(plan);
    ms_outcome want = run(cx, model, &serial, how, false);
    ms_outcome got = run(cx, model, plan, how, true);
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

static void try_plans(const tolerance *how, uint64_t seed, int num)
{
    ms_rng rng = ms_rng_seed(seed);
    int num_wrong = 0;
    for (int i = 0; i < num; i++) {
        ms_ctx *cx = test_cx();
        const ms_model *model = ms_run_model(cx->arena, model_of(i % NUM_MODELS));
        ms_workload workload = {.model = model};
        ms_plan base = ms_run_base_plan();
        ms_plan plan = ms_random_plan(&rng, &workload, &base, 16);
        num_wrong += !agrees(cx, model, &plan, how);
    }
    ASSERT_INT(num_wrong, 0);
}

static int num_plans(int usual)
{
    const char *asked = getenv("MESHSIM_RUNS");
    return asked != NULL ? atoi(asked) : usual;
}

static void random_plans_equal_one_rank_in_fp64(void **state)
{
    (void)state;
    const tolerance how = {MS_REAL_FP64, 5, 1e-12, 1e-12, 1e-12};
    try_plans(&how, 11, num_plans(60));
}

static void random_plans_equal_one_rank_in_fp32(void **state)
{
    (void)state;
    const tolerance how = {MS_REAL_FP32, 1, 1e-6, 1e-5, 1.0};
    try_plans(&how, 12, num_plans(60));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_plans_equal_one_rank_in_fp64),
        cmocka_unit_test(random_plans_equal_one_rank_in_fp32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
