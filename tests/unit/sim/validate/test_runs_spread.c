/* Prediction intervals of published runs: cross-validation folds, sources left out,
 * scores of intervals, and the distribution of errors of a fit from end to end. */
#include "sim/validate/pubrun_spread.h"

#include "sim/validate/pubrun_prices.h"
#include "tests/support/run_tables.h"
#include "tests/test.h"

#define SAMPLE MS_SOURCE_DIR "/tests/data/runs_fit.csv"
#define RUNS   60

typedef struct made {
    ms_pubrun runs[RUNS];
    ms_pubrun_score scores[RUNS];
    ms_pubruns list;
} made;

/* Makes twenty sources with three runs each, of two models; every third source runs 30
 * % longer than predicted. */
static made make(void)
{
    made m = {.list = {.num_runs = RUNS}};
    ms_arena *arena = test_cx()->arena;
    for (int i = 0; i < RUNS; i++) {
        int source = i / 3;
        double measured_s = (source % 3 == 0 ? 1.3 : 1.0) + 0.01 * (i % 3);
        m.runs[i] = (ms_pubrun){.id = ms_arena_printf(arena, "run %d", i),
                                .source = ms_arena_printf(arena, "source %d", source),
                                .model_text = i % 3 == 0 ? "small" : "large",
                                .gpu_type = "G",
                                .measured_step_s = measured_s,
                                .plan = ms_plan_default(8)};
        m.runs[i].plan.stack = source % 2 == 0 ? "even" : "odd";
        m.runs[i].plan.gpus = 8;
        m.scores[i] = ms_pubrun_unpriced;
        m.scores[i].step_s = 1.0;
        m.scores[i].step_error_frac = ms_pubrun_error_frac(1.0, measured_s);
        m.scores[i].priced = true;
    }
    return m;
}

static void models_stay_together_in_a_fold(void **state)
{
    (void)state;
    made m = make();
    int fold_of[RUNS], num_in[MS_SPREAD_FOLDS] = {0};
    m.list.runs = m.runs;
    ms_pubruns_fold(&m.list, fold_of);
    for (int i = 0; i < RUNS; i++) {
        num_in[fold_of[i]]++;
        if (i % 3 == 2)
            ASSERT_INT(fold_of[i], fold_of[i - 1]);
        if (i % 3 == 1)
            assert_int_not_equal(fold_of[i], fold_of[i - 1]);
    }
    for (int fold = 0; fold < MS_SPREAD_FOLDS; fold++)
        assert_in_range(num_in[fold], 8, 16);
}

static void fitted_runs_are_judged_without_their_source(void **state)
{
    (void)state;
    made m = make();
    ms_arena *arena = test_cx()->arena;
    m.list.runs = m.runs;
    ms_pubrun_score known[RUNS];
    memcpy(known, m.scores, sizeof known);
    ms_error_spread spread =
        ms_pubruns_spread_make(arena, &m.list, MS_MEASURED_STEP, m.scores, known);
    for (int i = 0; i < RUNS; i++) {
        const ms_error_class without = {m.runs[i].plan.stack, 8, m.runs[i].source};
        ms_error_interval want = ms_error_spread_interval(&spread, &without);
        ASSERT_NEAR(m.scores[i].step_low_s, want.low_frac, 1e-12);
        ASSERT_NEAR(m.scores[i].step_high_s, want.high_frac, 1e-12);
    }
    m.runs[0].id = "new"; /* a new run of a known source: not fitted */
    ms_pubruns_spread_apply(&m.list, &spread, MS_MEASURED_STEP, m.scores);
    const ms_error_class with = {m.runs[0].plan.stack, 8, NULL};
    ASSERT_NEAR(m.scores[0].step_high_s,
                ms_error_spread_interval(&spread, &with).high_frac, 1e-12);
    assert_true(ms_pubruns_interval_score(&m.list, MS_MEASURED_STEP, known) > 0.0);
}

/* Memory peaks get intervals from a distribution of their own, if the run's peak was
 * measured; the intervals of step times do not change. */
static void peaks_have_their_own_intervals(void **state)
{
    (void)state;
    made m = make();
    ms_arena *arena = test_cx()->arena;
    m.list.runs = m.runs;
    ms_pubrun_score known[RUNS];
    for (int i = 0; i < RUNS; i++) {
        m.runs[i].measured_peak_bytes = i < RUNS - 3 ? 1.1e9 : (double)NAN;
        m.scores[i].peak_bytes = 1e9;
        m.scores[i].peak_error_frac =
            ms_pubrun_error_frac(1e9, m.runs[i].measured_peak_bytes);
        known[i] = m.scores[i];
    }
    ms_error_spread spread =
        ms_pubruns_spread_make(arena, &m.list, MS_MEASURED_PEAK, m.scores, known);
    ASSERT_INT(spread.num_sources, RUNS / 3 - 1);
    assert_true(isnan(m.scores[0].step_high_s));
    assert_true(isnan(m.scores[RUNS - 1].peak_interval_high_bytes));
    /* the interval begins at the prediction, 1e9 bytes, which every interval includes */
    ASSERT_NEAR(m.scores[0].peak_interval_low_bytes, 1e9, 1.0);
    ASSERT_NEAR(m.scores[0].peak_interval_high_bytes, 1.1e9, 1e6);
    ASSERT_NEAR(ms_score_is_covered(&m.runs[0], &m.scores[0], MS_MEASURED_PEAK),
                m.scores[0].peak_interval_high_bytes >= 1.1e9, 0.0);
    assert_true(isnan(ms_score_is_covered(&m.runs[0], &m.scores[0], MS_MEASURED_STEP)));
}

/* Every source has runs on 8 and on 1024 GPUs: they are two classes for step times,
 * but one for memory peaks, whose errors do not depend on the number of GPUs. */
static void peaks_have_one_class_on_any_number_of_gpus(void **state)
{
    (void)state;
    made m = make();
    m.list.runs = m.runs;
    ms_pubrun_score known[RUNS];
    for (int i = 0; i < RUNS; i++) {
        m.runs[i].plan.gpus = i % 3 == 0 ? 8 : 1024;
        m.runs[i].measured_peak_bytes = i % 3 == 0 ? 1.1e9 : 1.3e9;
        m.scores[i].peak_bytes = 1e9;
        m.scores[i].peak_error_frac =
            ms_pubrun_error_frac(1e9, m.runs[i].measured_peak_bytes);
        known[i] = m.scores[i];
    }
    ms_error_spread steps = ms_pubruns_spread_make(test_cx()->arena, &m.list,
                                                   MS_MEASURED_STEP, m.scores, known),
                    peaks = ms_pubruns_spread_make(test_cx()->arena, &m.list,
                                                   MS_MEASURED_PEAK, m.scores, known);
    for (int i = 0; i < RUNS / 3; i++) {
        ASSERT_INT(steps.sources[i].num_cells, 2);
        ASSERT_INT(peaks.sources[i].num_cells, 1);
        ASSERT_INT(peaks.sources[i].cells[0].num_runs, 3);
    }
    ASSERT_NEAR(m.scores[1].peak_interval_high_bytes,
                m.scores[0].peak_interval_high_bytes, 0.0);
}

/* The mean score of intervals of log width log 2: one of three runs lies log 2 outside
 * its interval, which weighs 20 times (2 / 0.1, for 90 % intervals). */
static void scores_are_width_and_misses(void **state)
{
    (void)state;
    made m = make();
    m.list.runs = m.runs;
    m.list.num_runs = 3; /* the three runs of one source */
    for (int i = 0; i < 3; i++) {
        m.scores[i].step_low_s = 1.0;
        m.scores[i].step_high_s = 2.0;
        m.runs[i].measured_step_s = i == 2 ? 4.0 : 1.5;
    }
    ASSERT_NEAR(ms_pubruns_interval_score(&m.list, MS_MEASURED_STEP, m.scores),
                log(2.0) * (1.0 + 20.0 / 3.0), 1e-12);
    m.scores[2].step_low_s = (double)NAN;
    ASSERT_NEAR(ms_pubruns_interval_score(&m.list, MS_MEASURED_STEP, m.scores), log(2.0),
                1e-12);
}

static const char *const constants =
    "{\"constants\": ["
    "{\"name\": \"H100\", \"of\": [\"profiles/h100-sxm gemm.bf16.sustained\"],"
    " \"low\": 0.5, \"high\": 1.0, \"unknown\": 0.7, \"unknown_source\": \"a test\"}]}";

/* Cross-validation by folds predicts each run with constants fitted without its fold,
 * but with other runs of its source: predictions differ, but little. */
static void folds_leave_their_runs_out(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_pubruns runs;
    ms_pubruns_fit fit;
    ms_jdoc *doc;
    ms_jval root;
    ASSERT_OK(ms_pubruns_load(cx, SAMPLE, &runs), cx);
    ASSERT_OK(ms_json_parse(cx, "list", constants, strlen(constants), &doc, &root), cx);
    ASSERT_OK(ms_pubruns_fit_read(cx, root, &runs, &fit), cx);
    ms_pubrun_score *scores = MS_NEW_ARRAY(cx->arena, runs.num_runs, ms_pubrun_score);
    ms_pubruns_fit_make(&fit, -1);
    double all = fit.constants[0].value;
    ASSERT_OK(ms_pubruns_fit_cross_validate_folds(cx, &fit, scores), cx);
    ASSERT_NEAR(fit.constants[0].value, all, 0.0);
    bool differs = false;
    for (int i = 0; i < runs.num_runs; i++) {
        ms_pubrun_score fitted;
        if (fit.source_of[i] < 0)
            continue;
        ASSERT_INT(ms_pubrun_price(fit.prices, &runs.runs[i], &fitted), MS_OK);
        ASSERT_NEAR(scores[i].step_s, fitted.step_s, 0.2);
        differs |= fabs(scores[i].step_s / fitted.step_s - 1.0) > 1e-6;
    }
    assert_true(differs);
    ms_pubruns_fit_close(&fit);
    ms_json_close(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_stay_together_in_a_fold),
        cmocka_unit_test(fitted_runs_are_judged_without_their_source),
        cmocka_unit_test(peaks_have_their_own_intervals),
        cmocka_unit_test(peaks_have_one_class_on_any_number_of_gpus),
        cmocka_unit_test(scores_are_width_and_misses),
        cmocka_unit_test(folds_leave_their_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
