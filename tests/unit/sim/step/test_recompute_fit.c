/* The memory budget that automatic recomputation gets when the user sets none, against
 * predictions at every budget. */
#include "sim/step/recompute_fit.h"

#include "tests/test.h"

static ms_plan plan_of(const char *model, long gpus, long pp, long tp)
{
    ms_plan plan = ms_plan_default(gpus);
    plan.stack = "generic";
    plan.model = model;
    plan.size[MS_PP] = pp;
    plan.size[MS_TP] = tp;
    plan.recompute = MS_RECOMPUTE_AUTO;
    ms_plan_fill_defaults(&plan);
    return plan;
}

static ms_prediction predict(ms_ctx *cx, const ms_plan *plan)
{
    ms_workload *workload;
    ms_prediction prediction;
    ASSERT_OK(ms_workload_open(cx, plan, &workload), cx);
    ASSERT_OK(ms_predict(cx, workload, plan, &prediction), cx);
    ms_workload_close(workload);
    return prediction;
}

static ms_prediction predict_at(ms_ctx *cx, const ms_plan *plan, double frac)
{
    ms_plan at = *plan;
    at.recompute_budget_frac = frac;
    return predict(cx, &at);
}

static ms_prediction predict_mode(ms_ctx *cx, const ms_plan *plan, ms_recompute mode)
{
    ms_plan at = *plan;
    at.recompute = mode;
    return predict(cx, &at);
}

static void fit(ms_ctx *cx, ms_plan *plan)
{
    ms_workload *workload;
    ASSERT_OK(ms_workload_open(cx, plan, &workload), cx);
    ASSERT_OK(ms_recompute_fit(workload, plan), cx);
    ASSERT_NEAR(workload->recompute_budget_frac, plan->recompute_budget_frac, 0);
    ms_workload_close(workload);
}

/* Llama 405B on 16 stages does not fit without recomputation, and leaves 40 GiB free with
 * full recomputation. So a budget in between is found, with which the plan fits. With a
 * larger budget the plan does not fit or is no faster. */
static void the_largest_budget_that_fits_is_found(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = plan_of("llama-3.1-405b", 512, 16, 8);
    fit(cx, &plan);
    double found = plan.recompute_budget_frac;
    assert_true(found > 0 && found < 1);
    ms_prediction best = predict(cx, &plan);
    assert_true(best.fits);
    for (int i = 0; i <= 50; i++) {
        ms_prediction other = predict_at(cx, &plan, i / 50.0);
        if (i / 50.0 <= found)
            assert_true(other.fits && other.step_s >= best.step_s * (1 - 1e-12));
        else
            assert_true(!other.fits || other.peak_bytes == best.peak_bytes);
    }
    assert_true(best.step_s < predict_mode(cx, &plan, MS_RECOMPUTE_SELECTIVE).step_s);
}

static void a_plan_that_fits_recomputes_nothing(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = plan_of("llama-3.1-8b", 64, 1, 2);
    fit(cx, &plan);
    ASSERT_NEAR(plan.recompute_budget_frac, 1, 0);
    ASSERT_NEAR(predict(cx, &plan).step_s,
                predict_mode(cx, &plan, MS_RECOMPUTE_NONE).step_s, 0);
}

static void a_plan_that_never_fits_recomputes_everything(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = plan_of("llama-3.1-405b", 16, 1, 8);
    fit(cx, &plan);
    ASSERT_NEAR(plan.recompute_budget_frac, 0, 0);
    ms_prediction full = predict_mode(cx, &plan, MS_RECOMPUTE_FULL);
    assert_true(!full.fits);
    ASSERT_NEAR(predict(cx, &plan).peak_bytes, full.peak_bytes, 0);
}

/* Layers with and without experts share one recomputation budget; a larger budget
 * never makes the step slower. */
static void more_budget_is_never_slower(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = plan_of("deepseek-v3", 512, 16, 1);
    plan.ep = 8;
    ms_plan_fill_defaults(&plan);
    double step_s = INFINITY;
    for (int i = 0; i <= 10; i++) {
        double at = predict_at(cx, &plan, i / 10.0).step_s;
        assert_true(at <= step_s * (1 + 1e-9));
        step_s = at;
    }
}

static void a_stated_budget_stays(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = plan_of("llama-3.1-8b", 64, 1, 2);
    plan.recompute_budget_frac = 0.25;
    fit(cx, &plan);
    ASSERT_NEAR(plan.recompute_budget_frac, 0.25, 0);
    plan.recompute = MS_RECOMPUTE_FULL;
    plan.recompute_budget_frac = -1;
    fit(cx, &plan);
    ASSERT_NEAR(plan.recompute_budget_frac, -1, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_budget_that_fits_is_found),
        cmocka_unit_test(a_plan_that_fits_recomputes_nothing),
        cmocka_unit_test(a_plan_that_never_fits_recomputes_everything),
        cmocka_unit_test(more_budget_is_never_slower),
        cmocka_unit_test(a_stated_budget_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
