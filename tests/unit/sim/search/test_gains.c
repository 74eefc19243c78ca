#include "costmodel/plan/plan_field.h"
#include "sim/search/gains.h"
#include "sim/step/prediction.h"

#include "tests/test.h"

static ms_plan plan_on(const char *cluster)
{
    ms_plan plan = ms_plan_default(64);
    plan.stack = "megatron";
    plan.model = "llama-3.1-8b";
    plan.cluster = cluster;
    plan.size[MS_TP] = 2;
    plan.sequence_parallel = true;
    ms_plan_fill_defaults(&plan);
    return plan;
}

static int gains_of(ms_ctx *cx, const ms_plan *plan, ms_prediction *own,
                    ms_gain out[MS_NUM_ALLOWANCES])
{
    ms_workload *workload;
    ASSERT_OK(ms_workload_open(cx, plan, &workload), cx);
    ASSERT_OK(ms_predict(cx, workload, plan, own), cx);
    int num = ms_find_gains(workload, plan, own->step_s, own->peak_bytes, out);
    ms_workload_close(workload);
    return num;
}

static const ms_gain *find(const ms_gain *gains, int num, const char *name)
{
    for (int i = 0; i < num; i++)
        if (strcmp(gains[i].allowance->name, name) == 0)
            return &gains[i];
    return NULL;
}

/* The step time and peak of a gain are the prediction of the plan with its choice. */
static void a_gain_is_the_prediction_of_the_changed_plan(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = plan_on("hgx-h100"), with = plan;
    ms_prediction own, changed;
    ms_gain gains[MS_NUM_ALLOWANCES];
    int num = gains_of(cx, &plan, &own, gains);
    const ms_gain *fp8 = find(gains, num, "fp8");
    assert_non_null(fp8);
    assert_true(ms_gain_is_time(fp8));
    with.compute = MS_FP8;
    ms_workload *workload;
    ASSERT_OK(ms_workload_open(cx, &with, &workload), cx);
    ASSERT_OK(ms_predict(cx, workload, &with, &changed), cx);
    ms_workload_close(workload);
    ASSERT_NEAR(fp8->step_s, changed.step_s, 0.0);
    ASSERT_NEAR(fp8->peak_bytes, changed.peak_bytes, 0.0);
    ASSERT_NEAR(fp8->gain_frac, 1.0 - changed.step_s / own.step_s, 1e-15);
    ASSERT_NEAR(fp8->freed_bytes, own.peak_bytes - changed.peak_bytes, 0.0);
}

/* A100 GPUs have no 8-bit FLOP, and what a plan has it cannot gain. */
static void what_is_lacking_or_taken_is_no_gain(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan a100 = plan_on("hgx-a100-80g"), taken = plan_on("hgx-h100");
    ms_prediction own;
    ms_gain gains[MS_NUM_ALLOWANCES];
    assert_null(find(gains, gains_of(cx, &a100, &own, gains), "fp8"));
    taken.compute = MS_FP8;
    assert_null(find(gains, gains_of(cx, &taken, &own, gains), "fp8"));
}

/* A gain says whether the plan would still fit, by the rule of its search. */
static void a_gain_says_whether_the_plan_fits(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = plan_on("hgx-h100");
    ms_prediction own;
    ms_gain gains[MS_NUM_ALLOWANCES];
    ms_workload *workload;
    assert_true(find(gains, gains_of(cx, &plan, &own, gains), "fp8")->fits);
    const ms_memory_rule rule = {.min_probability = 0.95, .headroom_frac = 0.9};
    ASSERT_OK(ms_workload_open(cx, &plan, &workload), cx);
    ASSERT_OK(ms_predict(cx, workload, &plan, &own), cx);
    ms_workload_set_memory_rule(workload, &rule);
    int num = ms_find_gains(workload, &plan, own.step_s, own.peak_bytes, gains);
    ms_workload_close(workload);
    assert_false(find(gains, num, "fp8")->fits);
}

/* A gain in memory frees half a GiB and slows the step by at most 5 %. */
static void a_gain_costs_little_or_nothing(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = plan_on("hgx-h100");
    ms_prediction own;
    ms_gain gains[MS_NUM_ALLOWANCES];
    int num = gains_of(cx, &plan, &own, gains);
    assert_true(num > 1);
    for (int i = 0; i < num; i++) {
        if (ms_gain_is_time(&gains[i]))
            continue;
        assert_true(gains[i].gain_frac >= -0.05);
        assert_true(gains[i].freed_bytes >= 0.5 * 1024.0 * 1024.0 * 1024.0);
    }
}

/* The flags are those of the table of plans. */
static void flags_take_allowances(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    assert_string_equal(ms_allowance_flag(cx->arena, &ms_allowances[0]),
                        "--precision=fp8");
    assert_string_equal(ms_allowance_flag(cx->arena, &ms_allowances[5]),
                        "--offload-activations=1");
    assert_string_equal(ms_allowance_flag(cx->arena, &ms_allowances[6]),
                        "--quantized-gathers=8");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gain_is_the_prediction_of_the_changed_plan),
        cmocka_unit_test(what_is_lacking_or_taken_is_no_gain),
        cmocka_unit_test(a_gain_says_whether_the_plan_fits),
        cmocka_unit_test(a_gain_costs_little_or_nothing),
        cmocka_unit_test(flags_take_allowances),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
