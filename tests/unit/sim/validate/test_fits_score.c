/* P(fit) of finished and of unfinished runs: rows that are read, scores by hand, and the
 * share of measured peaks that capacities of a given P(fit) hold. */
#include "sim/validate/fits_score.h"

#include "tests/unit/run_rows.h"

#define MAX_RUNS 16

typedef struct made {
    ms_pubrun runs[MAX_RUNS];
    ms_pubrun_score scores[MAX_RUNS];
    ms_pubruns list;
} made;

/* Adds a run whose worst rank is predicted to fill `fill` of a device of 100 bytes. */
static void add(made *m, const char *model, bool finished, double probability,
                double fill)
{
    int i = m->list.num_runs++;
    m->list.runs = m->runs;
    m->runs[i] = (ms_pubrun){.source = "S", .model_text = model, .unfinished = !finished};
    m->scores[i] = (ms_pubrun_score){.fits_probability = probability,
                                     .worst_peak_bytes = 100.0 * fill - 10.0,
                                     .outside_bytes = 10.0,
                                     .capacity_bytes = 100.0,
                                     .peak_rank_frac = (double)NAN};
}

static ms_fits_score score(made *m)
{
    return ms_fits_score_make(test_cx()->arena, &m->list, m->scores);
}

/* Brier: (0.1^2 + 0.7^2 + 0.2^2 + 0.7^2) / 4 = 0.2575. Of the 4 pairs of a finished with
 * an unfinished run, 0.9 is above 0.2 and 0.7, 0.3 above 0.2 only: AUC 0.75. */
static void scores_are_those_by_hand(void **state)
{
    (void)state;
    made m = {0};
    add(&m, "M", true, 0.9, 0.8);
    add(&m, "M", true, 0.3, 0.9);
    add(&m, "M", false, 0.2, 0.9);
    add(&m, "M", false, 0.7, 0.8);
    ms_fits_score s = score(&m);
    ASSERT_INT(s.num_finished, 2);
    ASSERT_INT(s.num_unfinished, 2);
    ASSERT_NEAR(s.brier, 0.2575, 1e-12);
    ASSERT_NEAR(s.auc, 0.75, 1e-12);
    m.scores[3].fits_probability = 0.3;
    ASSERT_NEAR(score(&m).auc, (2 + 1 + 0.5) / 4, 1e-12); /* equal ones count half */
}

/* Runs of model "N" that all finished prove nothing, and one without P(fit) has no part.
 */
static void finished_runs_count_beside_unfinished_ones(void **state)
{
    (void)state;
    made m = {0};
    add(&m, "N", true, 0.9, 0.8);
    add(&m, "M", true, 0.9, 0.8);
    add(&m, "M", true, (double)NAN, 0.8);
    ms_fits_score none = score(&m);
    ASSERT_INT(none.num_finished, 0);
    ASSERT_INT(none.num_models, 0);
    assert_true(isnan(none.brier) && isnan(none.auc));
    add(&m, "M", false, 0.1, 1.2);
    ms_fits_score s = score(&m);
    ASSERT_INT(s.num_finished, 1);
    ASSERT_INT(s.num_unfinished, 1);
    ASSERT_INT(s.num_models, 1);
    ASSERT_TEXT(s.models[0].model, "M");
    ASSERT_NEAR(s.auc, 1.0, 0);
}

/* A quarter of the runs that fill less than half of the device crash, which memory does
 * not explain. So of 5 runs with P(fit) 1, memory decides 5 x 3/4, and 3 finish: 0.8. */
static void crashes_at_any_fill_are_a_floor(void **state)
{
    (void)state;
    made m = {0};
    add(&m, "M", false, 0.99, 0.2);
    for (int i = 0; i < 3; i++)
        add(&m, "M", true, i < 2 ? 1.0 : 0.5, 0.2);
    add(&m, "M", true, 1.0, 0.6);
    add(&m, "M", false, 0.95, 0.6);
    ms_fits_score s = score(&m);
    ASSERT_INT(s.models[0].num_low, 4);
    ASSERT_NEAR(s.models[0].floor_frac, 0.25, 1e-12);
    const ms_fits_bin *last = &s.bins[MS_FITS_BINS - 1];
    ASSERT_NEAR(last->from, 0.95, 0);
    ASSERT_INT(last->num, 5);
    ASSERT_NEAR(last->finished_frac, 0.6, 1e-12);
    ASSERT_NEAR(last->finished_of_rest_frac, 0.8, 1e-12);
    ASSERT_INT(s.bins[6].num, 1); /* 0.5 is in 0.5 to 0.6, where all of the rest finish */
    ASSERT_NEAR(s.bins[6].finished_of_rest_frac, 1.0, 0);
    assert_true(isnan(s.bins[5].finished_frac));
}

/* Eight peaks of source "S" at rank 0.85 of their predicted distributions, and small
 * sources "T" and "U", which are pooled, with one peak each at 0.4 and 0.97. */
static void capacities_hold_the_peaks_below_them(void **state)
{
    (void)state;
    made m = {0};
    for (int i = 0; i < 11; i++)
        add(&m, "M", true, 0.5, 0.5);
    for (int i = 0; i < 8; i++)
        m.scores[i].peak_rank_frac = 0.85;
    m.runs[8].source = "T";
    m.scores[8].peak_rank_frac = 0.4;
    m.runs[9].source = "U";
    m.scores[9].peak_rank_frac = 0.97;
    ms_fits_capacity c[MS_FITS_CAPACITIES];
    ms_fits_capacities(&m.list, m.scores, c);
    static const double held[] = {0.1, 0.1, 0.9, 0.9, 1.0},
                        macro[] = {0.25, 0.25, 0.75, 0.75, 1.0};
    for (int i = 0; i < MS_FITS_CAPACITIES; i++) {
        ASSERT_INT(c[i].num_runs, 10);
        ASSERT_NEAR(c[i].held_frac, held[i], 1e-12);
        ASSERT_NEAR(c[i].macro_held_frac, macro[i], 1e-12);
    }
}

/* ---- rows ---- */

/* Reads GPT rows with the column `status` at the end. */
static ms_pubruns read_with_status(const char *file, const char *rows)
{
    ms_ctx *cx = test_cx();
    const char *text = ms_arena_printf(cx->arena, "%.*s,status\n%s",
                                       (int)strlen(columns) - 1, columns, rows);
    ms_pubruns runs;
    ASSERT_OK(ms_pubruns_read(cx, file, text, strlen(text), &runs), cx);
    return runs;
}

#define STATUS_ROW(id, measured, status)                                                 \
    id ",Test,2024-01,GPT X,8,1024,16,16,64,4096,0,51200,1,,,,,2048,1,16,8,A100 80GB,,"  \
       "8,,1,0,,1,,1,1,1,none,bf16,,Megatron-LM," measured "," status "\n"

static void unfinished_runs_need_no_measurement(void **state)
{
    (void)state;
    ms_pubruns runs = read_with_status(
        "a.csv", STATUS_ROW("a", ",,", "unfinished") STATUS_ROW("b", ",2,30", "OOM")
                     STATUS_ROW("c", ",2,30", "") STATUS_ROW("d", ",,", "finished")
                         STATUS_ROW("e", ",2,30", "paused"));
    for (int i = 0; i < 2; i++) {
        assert_true(runs.runs[i].unfinished && runs.runs[i].complete);
        ASSERT_TEXT(runs.runs[i].reason, NULL);
        assert_true(isnan(runs.runs[i].measured_step_s));
        assert_true(isnan(runs.runs[i].measured_peak_bytes));
    }
    assert_false(runs.runs[2].unfinished);
    ASSERT_TEXT(runs.runs[3].reason,
                "incomplete: neither time, tokens/s nor memory is measured");
    assert_false(runs.runs[4].unfinished);
    assert_non_null(strstr(runs.runs[4].defaults, "status \"paused\" taken as finished"));
}

/* A run of a second table that has an id of the first is malformed, and names its place;
 * malformed rows have no ids, and keep their own faults. */
static void tables_are_joined(void **state)
{
    (void)state;
    ms_pubruns a = read_with_status("a.csv", STATUS_ROW("a", ",2,", "")
                                                 STATUS_ROW("x", ",-2,", "")),
               b = read_with_status("b.csv", STATUS_ROW("b", ",,", "oom")
                                                 STATUS_ROW("y", ",-2,", "")
                                                     STATUS_ROW("a", ",,", "oom"));
    ms_pubruns all = {0};
    ms_pubruns_append(test_cx()->arena, &all, &a);
    ms_pubruns_append(test_cx()->arena, &all, &b);
    ASSERT_INT(all.num_runs, 5);
    ASSERT_TEXT(all.runs[0].fault, NULL);
    ASSERT_TEXT(all.runs[1].fault, a.runs[1].fault);
    ASSERT_TEXT(all.runs[2].fault, NULL);
    ASSERT_TEXT(all.runs[3].fault, b.runs[1].fault);
    ASSERT_TEXT(all.runs[4].fault, "its id is that of line 2 of a.csv");
    ASSERT_TEXT(all.runs[4].reason, "malformed");
}

/* An unfinished run is predicted as its row states it: its recomputation stays none,
 * although it does not fit, and its P(fit) is below that of a small run. */
static void unfinished_runs_are_predicted_as_they_stand(void **state)
{
    (void)state;
    ms_pubruns runs = read_with_status(
        "a.csv",
        STATUS_ROW(
            "a", ",2,",
            "") "b,Test,2024-01,GPT X,96,12288,96,96,128,49152,0,51200,1,,,,,2048,1,16,8,A100 "
                "80GB,,8,,1,0,,1,,1,1,,none,bf16,,Megatron-LM,,,,unfinished\n");
    ms_validation v;
    ASSERT_OK(ms_validate(test_cx(), &runs, &v), test_cx());
    ASSERT_INT(v.num_priced, 2);
    ASSERT_INT(v.num_over_memory, 0);
    ASSERT_INT(runs.runs[1].plan.recompute, MS_RECOMPUTE_NONE);
    assert_true(v.scores[1].fits_probability < v.scores[0].fits_probability);
    ASSERT_INT(v.fits->num_unfinished, 1);
    ASSERT_INT(v.time.num_runs, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_are_those_by_hand),
        cmocka_unit_test(finished_runs_count_beside_unfinished_ones),
        cmocka_unit_test(crashes_at_any_fill_are_a_floor),
        cmocka_unit_test(capacities_hold_the_peaks_below_them),
        cmocka_unit_test(unfinished_runs_need_no_measurement),
        cmocka_unit_test(tables_are_joined),
        cmocka_unit_test(unfinished_runs_are_predicted_as_they_stand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
