/* Fitting model constants to published runs: constants are found again in runs whose
 * times were predicted with them, those that no run determines stay unknown, and
 * malformed lists are refused. */
#include "sim/validate/pubrun_fit.h"
#include "sim/validate/pubrun_prices.h"

#include "tests/support/run_tables.h"
#include "tests/test.h"

#include <math.h>
#include <string.h>

#define SAMPLE       MS_SOURCE_DIR "/tests/data/runs_fit.csv"
#define WITH_EXPERTS MS_SOURCE_DIR "/tests/data/runs_fit_experts.csv"

/* A list of two constants to fit: one of H100 runs of three sources, one of nanotron
 * runs. */
static const char *const constants =
    "{\"schema\": \"meshsim.fits/1\", \"constants\": ["
    "{\"name\": \"H100\", \"of\": [\"profiles/h100-sxm gemm.bf16.sustained\"],"
    " \"low\": 0.5, \"high\": 1.0, \"unknown\": 0.7, \"unknown_source\": \"a test\"},"
    "{\"name\": \"host\", \"of\": [\"stacks/nanotron host_per_layer\"],"
    " \"low\": 0, \"high\": 0.02, \"unknown\": 0.001, \"unknown_source\": \"a test\"}]}";

static void load_from(ms_ctx *cx, const char *path, const char *text, ms_pubruns *runs,
                      ms_pubruns_fit *fit)
{
    ms_jdoc *doc;
    ms_jval root;
    ASSERT_OK(ms_pubruns_load(cx, path, runs), cx);
    ASSERT_OK(ms_json_parse(cx, "list", text, strlen(text), &doc, &root), cx);
    ASSERT_OK(ms_pubruns_fit_read(cx, root, runs, fit), cx);
    ms_json_close(doc);
}

static void load(ms_ctx *cx, const char *text, ms_pubruns *runs, ms_pubruns_fit *fit)
{
    load_from(cx, SAMPLE, text, runs, fit);
}

static void set(ms_fit_constant *c, double value)
{
    for (int i = 0; i < c->num_targets; i++)
        *c->targets[i].value = value;
    c->value = value;
}

/* Sets the measured step times to predictions with these constants (a rate above 0.77
 * would be limited by power), then resets the constants. */
static void measure_with(ms_pubruns_fit *fit, double rate, double host_s)
{
    set(&fit->constants[0], rate);
    set(&fit->constants[1], host_s);
    for (int i = 0; i < fit->runs->num_runs; i++) {
        ms_pubrun_score score;
        if (fit->source_of[i] < 0)
            continue;
        assert_int_equal(ms_pubrun_price(fit->prices, &fit->runs->runs[i], &score),
                         MS_OK);
        fit->runs->runs[i].measured_step_s = score.step_s;
    }
    ms_pubrun_prices_forget(fit->prices);
    set(&fit->constants[0], 0.7);
    set(&fit->constants[1], 0.001);
}

static void constants_are_found_again(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_pubruns runs;
    ms_pubruns_fit fit;
    load(cx, constants, &runs, &fit);
    assert_true(fit.constants[0].num_rows >= 2 && fit.constants[1].num_rows >= 2);
    measure_with(&fit, 0.60, 0.0072);
    ms_pubruns_fit_make(&fit, -1);
    /* not exact: the prior for unknown constants pulls a little */
    ASSERT_NEAR(fit.constants[0].value, 0.60, 0.01);
    ASSERT_NEAR(fit.constants[1].value, 0.0072, 0.0004);
    ms_pubruns_fit_close(&fit);
}

/* A constant with a list of choices takes the choice with the least error, even if the
 * error does not change near the start value. The value for the case that no run
 * determines the constant (`unknown`, here 0.02) does not draw the fit towards it. */
static void choices_are_found_again(void **state)
{
    (void)state;
    static const char choices[] =
        "{\"constants\": [{\"name\": \"H100\", \"of\": [\"profiles/h100-sxm "
        "gemm.bf16.sustained\"], \"low\": 0.5, \"high\": 1.0, \"unknown\": 0.7, "
        "\"unknown_source\": \"a test\"},"
        "{\"name\": \"host\", \"of\": [\"stacks/nanotron host_per_layer\"], \"low\": 0, "
        "\"high\": 0.02, \"choices\": [0, 0.003, 0.0072, 0.02], \"start\": 0, "
        "\"unknown\": 0.02, \"unknown_source\": \"a test\"}]}";
    ms_ctx *cx = test_cx();
    ms_pubruns runs;
    ms_pubruns_fit fit;
    load(cx, choices, &runs, &fit);
    measure_with(&fit, 0.60, 0.0072);
    ms_pubruns_fit_make(&fit, -1);
    ASSERT_NEAR(fit.constants[1].value, 0.0072, 0.0);
    int only = fit.source_of[fit.constants[1].rows[0]];
    ms_pubruns_fit_make(&fit, only);
    ASSERT_NEAR(fit.constants[1].value, 0.02, 0.0);
    ms_pubruns_fit_close(&fit);
}

/* A constant marked `without_experts` is not fitted to runs of models with experts:
 * two runs of Grok-1 that take twice as long do not change the rate, although their
 * predictions depend on it. */
static void experts_may_be_left_out(void **state)
{
    (void)state;
    static const char without[] =
        "{\"constants\": [{\"name\": \"H100\", \"of\": [\"profiles/h100-sxm "
        "gemm.bf16.sustained\"], \"low\": 0.5, \"high\": 1.0, \"without_experts\": true, "
        "\"unknown\": 0.7, \"unknown_source\": \"a test\"},"
        "{\"name\": \"host\", \"of\": [\"stacks/nanotron host_per_layer\"], \"low\": 0, "
        "\"high\": 0.02, \"unknown\": 0.001, \"unknown_source\": \"a test\"}]}";
    ms_pubruns runs;
    ms_pubruns_fit fit;
    load_from(test_cx(), WITH_EXPERTS, without, &runs, &fit);
    const ms_fit_constant *rate = &fit.constants[0];
    measure_with(&fit, 0.60, 0.0072);
    ASSERT_INT(rate->num_changed - rate->num_rows, 2);
    for (int i = 0; i < rate->num_changed; i++) {
        ms_pubrun *run = &runs.runs[rate->rows[i]];
        ASSERT_INT(run->model->moe.num_experts > 0, i >= rate->num_rows);
        if (i >= rate->num_rows)
            run->measured_step_s *= 2.0;
    }
    ms_pubruns_fit_make(&fit, -1);
    ASSERT_NEAR(rate->value, 0.60, 0.01);
    ms_pubruns_fit_close(&fit);
}

static void what_no_other_source_tells_is_unknown(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_pubruns runs;
    ms_pubruns_fit fit;
    load(cx, constants, &runs, &fit);
    measure_with(&fit, 0.60, 0.0072);
    int only = fit.source_of[fit.constants[1].rows[0]];
    ms_pubruns_fit_make(&fit, only);
    ASSERT_INT(fit.constants[1].num_sources, 0);
    ASSERT_NEAR(fit.constants[1].value, 0.001, 1e-12);
    ms_pubrun_score *scores = MS_NEW_ARRAY(cx->arena, runs.num_runs, ms_pubrun_score);
    ms_pubruns_fit_make(&fit, -1);
    double all = fit.constants[1].value;
    ASSERT_OK(ms_pubruns_fit_cross_validate(cx, &fit, scores), cx);
    ASSERT_NEAR(fit.constants[1].value, all, 0.0);
    /* the most negative error, that of the run with the longest host time */
    double error = 0.0;
    for (int i = 0; i < fit.constants[1].num_rows; i++)
        error = fmin(error, scores[fit.constants[1].rows[i]].step_error_frac);
    /* A fit without this run's source takes the host to be too fast, so it predicts too
     * short a step. */
    assert_true(error < -0.05);
    ms_pubruns_fit_close(&fit);
}

/* A list for peak memory is fitted to measured peaks: the bytes per logit are found
 * again in peaks that were predicted with other bytes. */
static void peaks_are_fitted_where_the_list_says_so(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_pubruns runs;
    ms_pubruns_fit fit;
    load(cx,
         "{\"measurement\": \"peak memory\", \"constants\": ["
         "{\"name\": \"logits\", \"of\": [\"stacks/nanotron logit_bytes\"],"
         " \"low\": 4, \"high\": 20, \"unknown\": 8, \"unknown_source\": \"a test\"}]}",
         &runs, &fit);
    assert_true(fit.measurement == MS_MEASURED_PEAK);
    set(&fit.constants[0], 14.0);
    for (int i = 0; i < runs.num_runs; i++) {
        ms_pubrun_score score;
        if (fit.source_of[i] < 0)
            continue;
        assert_true(runs.runs[i].measured_peak_bytes > 0.0);
        ASSERT_INT(ms_pubrun_price(fit.prices, &runs.runs[i], &score), MS_OK);
        runs.runs[i].measured_peak_bytes = score.peak_bytes;
    }
    ms_pubrun_prices_forget(fit.prices);
    ms_pubruns_fit_make(&fit, -1);
    assert_true(fit.constants[0].num_rows >= 2);
    ASSERT_NEAR(fit.constants[0].value, 14.0, 0.3);
    ms_pubruns_fit_close(&fit);
}

static void lists_that_are_none_are_refused(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"{}", "constants"},
        {"{\"constants\": []}", "no list of 1 to"},
        {"{\"measurement\": \"power\", \"constants\": []}", "peak memory"},
        {"{\"constants\": [{\"name\": \"x\"}]}", "\"of\""},
        {"{\"constants\": [{\"name\": \"x\", \"of\": [\"stacks/nanotron\"], \"low\": 0, "
         "\"high\": 1, \"unknown\": 0, \"unknown_source\": \"t\"}]}",
         "is no file and figure"},
        {"{\"constants\": [{\"name\": \"x\", \"of\": [\"stacks/nanotron speed\"], "
         "\"low\": 0, \"high\": 1, \"unknown\": 0, \"unknown_source\": \"t\"}]}",
         "has no coefficient \"speed\""},
        {"{\"constants\": [{\"name\": \"x\", \"of\": [\"stacks/nanotron tp_overlap\"], "
         "\"low\": 1, \"high\": 0, \"unknown\": 0, \"unknown_source\": \"t\"}]}",
         "do not ascend"},
        {"{\"constants\": [{\"name\": \"x\", \"of\": [\"stacks/nanotron tp_overlap\"], "
         "\"low\": 0, \"high\": 2, \"unknown\": 0, \"unknown_source\": \"t\"}]}",
         "tp_overlap must be between 0 and 1"},
        {"{\"constants\": [{\"name\": \"x\", \"of\": [\"stacks/nanotron tp_overlap\"], "
         "\"low\": 0, \"high\": 1, \"choices\": [1, 0], \"unknown\": 0, "
         "\"unknown_source\": \"t\"}]}",
         "choices"},
        {"{\"constants\": [{\"name\": \"x\", \"of\": [\"stacks/nanotron tp_overlap\"], "
         "\"low\": 0, \"high\": 1, \"choices\": [1], \"unknown\": 0, "
         "\"unknown_source\": \"t\"}]}",
         "no list of 2 to 9"},
        {"{\"constants\": [{\"name\": \"x\", \"of\": [\"stacks/nanotron tp_overlap\"], "
         "\"low\": 0, \"high\": 1, \"choices\": [0, 1], \"unknown\": 0.5, "
         "\"unknown_source\": \"t\"}]}",
         "is none of"},
        {"{\"constants\": [{\"name\": \"x\", \"of\": [\"stacks/nanotron tp_overlap\"], "
         "\"low\": 0, \"high\": 0.5, \"start\": 1, \"unknown\": 0, "
         "\"unknown_source\": \"t\"}]}",
         "\"start\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_ctx *cx = test_cx();
        ms_pubruns runs;
        ms_pubruns_fit fit;
        ms_jdoc *doc;
        ms_jval root;
        ASSERT_OK(ms_pubruns_load(cx, SAMPLE, &runs), cx);
        ASSERT_OK(
            ms_json_parse(cx, "list", cases[i][0], strlen(cases[i][0]), &doc, &root), cx);
        ASSERT_INT(ms_pubruns_fit_read(cx, root, &runs, &fit), MS_EINPUT);
        assert_non_null(strstr(test_messages(cx), cases[i][1]));
        ms_json_close(doc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constants_are_found_again),
        cmocka_unit_test(choices_are_found_again),
        cmocka_unit_test(experts_may_be_left_out),
        cmocka_unit_test(what_no_other_source_tells_is_unknown),
        cmocka_unit_test(peaks_are_fitted_where_the_list_says_so),
        cmocka_unit_test(lists_that_are_none_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
