/* Runs with a plan's own types of weights, gradients, messages and states. */
#include "exec/core/plan_types.h"
#include "tests/support/run_cases.h"
#include "tests/test.h"

#include <string.h>

#define NUM_PLANS TEST_CASES(40, 10)

/* Any mesh, any legal types, each optimizer: the first gradients differ from those of one
 * rank in fp32 as rounding does, and losses stay near. */
static void random_types_are_near_one_rank_in_fp32(void **state)
{
    (void)state;
    int num_wrong = 0;
    for (long i = 0; i < NUM_PLANS; i++) {
        ms_ctx cx = {.arena = ms_arena_open()};
        ms_run_tolerance how = ms_run_bf16;
        how.type = i % 2 == 0 ? MS_REAL_BF16 : MS_REAL_FP32;
        ms_rng rng = ms_rng_split(ms_rng_seed(61), (uint64_t)i);
        ms_run_case c = ms_run_case_draw(&cx, &ms_run_bf16, 62, i, 0);
        ms_run_case_choose_types(&c, how.type, &rng);
        if (i % 2 != 0)
            c.plan.grad_dtype = MS_STORE_BF16;
        if (!ms_run_agrees(&cx, &c, &ms_backend_loop, &how)) {
            printf("that was case %ld\n", i);
            num_wrong++;
        }
        ms_arena_close(cx.arena);
    }
    ASSERT_INT(num_wrong, 0);
}

/* ---- states ---- */

static ms_outcome run(ms_ctx *cx, ms_real_type type, const ms_plan *plan, long steps)
{
    const ms_model *model = ms_pubrun_model(cx->arena, ms_small_llama);
    ms_runner_options options = ms_run_options(model, plan, type);
    options.num_steps = steps;
    options.optimizer.learning_rate = 1e-5;
    options.optimizer.weight_decay = 0.0;
    ms_outcome out;
    ASSERT_OK(ms_run_plan(cx, model, plan, "meshsim", &ms_backend_loop, &options, &out),
              cx);
    return out;
}

static double moved_frac(const ms_outcome *out)
{
    long moved = 0, all = 0;
    for (int i = 0; i < out->weights.num_tensors; i++) {
        const ms_safe_tensor *before = &out->weights.tensors[i];
        const ms_safe_tensor *after = ms_safe_find(&out->updated, before->name);
        for (long j = 0; j < before->count; j++)
            moved += before->values[j] != after->values[j];
        all += before->count;
    }
    return (double)moved / (double)all;
}

/* Steps of 1e-5 are less than half the distance of bf16 numbers above 2^-8: without a
 * master copy such weights never move, with one all do. */
static void small_steps_are_lost_without_a_master_copy(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = ms_run_base_plan();
    plan.compute = MS_BF16;
    ms_outcome with = run(cx, MS_REAL_BF16, &plan, 10);
    plan.master_dtype = MS_MASTER_NONE;
    ms_outcome without = run(cx, MS_REAL_BF16, &plan, 10);
    assert_true(moved_frac(&with) > 0.99);
    assert_true(moved_frac(&without) < 0.1);
}

/* Bytes of states per parameter, as published for mixed precision and for bf16 throughout
 * (docs/formulas 7.1.1). */
static void states_have_the_published_bytes(void **state)
{
    (void)state;
    static const struct {
        ms_real_type type;
        ms_storage params, grads, moments;
        ms_master_copy master;
        double bytes;
    } cases[] = {
        {MS_REAL_FP32, 0, 0, 0, MS_MASTER_FP32, 20},
        {MS_REAL_BF16, 0, 0, 0, 0, 18},
        {MS_REAL_FP32, 0, 0, 0, 0, 16},
        {MS_REAL_BF16, 0, MS_STORE_BF16, 0, 0, 16},
        {MS_REAL_BF16, MS_STORE_FP32, 0, 0, 0, 16},
        {MS_REAL_BF16, 0, MS_STORE_BF16, MS_STORE_BF16, MS_MASTER_FP32, 12},
        {MS_REAL_BF16, MS_STORE_FP32, 0, MS_STORE_BF16, 0, 12},
        {MS_REAL_BF16, 0, 0, MS_STORE_BF16, MS_MASTER_NONE, 10},
        {MS_REAL_BF16, 0, MS_STORE_BF16, MS_STORE_BF16, MS_MASTER_BF16, 10},
        {MS_REAL_BF16, 0, MS_STORE_BF16, MS_STORE_BF16, 0, 8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_ctx *cx = test_cx();
        ms_plan plan = ms_run_base_plan();
        plan.compute = cases[i].type == MS_REAL_BF16 ? MS_BF16 : MS_FP32;
        plan.param_dtype = cases[i].params;
        plan.grad_dtype = cases[i].grads;
        plan.optimizer_dtype = cases[i].moments;
        plan.master_dtype = cases[i].master;
        ms_outcome out = run(cx, cases[i].type, &plan, 1);
        const double *bytes = out.ranks[0].samples[out.ranks[0].num_samples - 1].bytes;
        double num_params = 0.0;
        for (int t = 0; t < out.weights.num_tensors; t++)
            num_params += (double)out.weights.tensors[t].count;
        ASSERT_NEAR((bytes[MS_MEMORY_PARAMS] + bytes[MS_MEMORY_GRADS] +
                     bytes[MS_MEMORY_OPTIMIZER]) /
                        num_params,
                    cases[i].bytes, 0);
    }
}

/* ---- refusals ---- */

static void expect_refusal(ms_real_type type, const ms_plan *plan, const char *says)
{
    ms_ctx *cx = test_cx();
    ASSERT_INT(ms_plan_check_run_types(cx, type, plan), MS_EINPUT);
    assert_non_null(strstr(test_messages(cx), says));
}

static void types_that_no_run_has_are_refused(void **state)
{
    (void)state;
    ms_plan plan = ms_run_base_plan();
    plan.comm_dtype = MS_STORE_BF16;
    expect_refusal(MS_REAL_FP64, &plan, "does not execute --comm-dtype bf16 in fp64");
    plan = ms_run_base_plan();
    plan.master_dtype = MS_MASTER_BF16;
    expect_refusal(MS_REAL_FP32, &plan,
                   "does not execute --master-dtype bf16 beside parameters in fp32");
    plan = ms_run_base_plan();
    plan.param_dtype = MS_STORE_BF16;
    plan.lora_rank = 4;
    expect_refusal(MS_REAL_FP32, &plan,
                   "does not execute --param-dtype bf16 of adapters in fp32");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_types_are_near_one_rank_in_fp32),
        cmocka_unit_test(small_steps_are_lost_without_a_master_copy),
        cmocka_unit_test(states_have_the_published_bytes),
        cmocka_unit_test(types_that_no_run_has_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
