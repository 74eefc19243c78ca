/* Constants corrected by own runs: those that made the times are found again, other
 * layouts are predicted better, runs that ran out of memory count from one side, and the
 * written files have the corrections. tests/data/own_runs.csv is invented. */
#include "sim/validate/fit_files.h"
#include "sim/validate/own_runs.h"
#include "sim/validate/own_runs_priv.h"
#include "sim/validate/pubrun_prices.h"

#include "tests/support/run_tables.h"
#include "tests/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TABLE MS_SOURCE_DIR "/tests/data/own_runs.csv"

/* Rows of the table by their ids. */
enum {
    ROW_A,
    ROW_B,
    ROW_C,
    ROW_D,
    ROW_E,
    ROW_OUT_OF_MEMORY,
    NUM_ROWS
};

static const char constants[] =
    "{\"schema\": \"meshsim.own_fits/1\", \"step_error\": 0.01, \"peak_error\": 0.02, "
    "\"constants\": ["
    "{\"name\": \"energy\", \"of\": [\"profile flop_per_joule\"], \"scale\": \"log\", "
    "\"width\": 0.1, \"source\": \"a test\"},"
    "{\"name\": \"links\", \"of\": [\"profile link.*\"], \"scale\": \"log\", "
    "\"width\": 0.2, \"high\": 0.95, \"source\": \"a test\"},"
    "{\"name\": \"expert launches\", \"of\": [\"stack expert_launches\"], \"scale\": "
    "\"log\", \"width\": 0.5, \"source\": \"a test\"},"
    "{\"name\": \"reserve\", \"measurement\": \"peak memory\", \"of\": "
    "[\"stack fragmentation\"], \"scale\": \"linear\", \"width\": 0.05, \"source\": "
    "\"a test\"}]}";

static const ms_pubrun_files by_rows = {NULL, NULL};

typedef struct fixture {
    ms_pubruns runs;
    ms_own_list list;
    ms_own_runs own;
} fixture;

static void read_list(ms_ctx *cx, const char *text, ms_own_list *out)
{
    ms_jdoc *doc;
    ms_jval root;
    ASSERT_OK(ms_json_parse(cx, "list", text, strlen(text), &doc, &root), cx);
    ASSERT_OK(ms_own_list_read(cx, root, out), cx);
    ms_json_close(doc);
}

static void open_fixture(ms_ctx *cx, fixture *f)
{
    read_list(cx, constants, &f->list);
    cx->verbosity = -1; /* no note on columns that the table lacks */
    ASSERT_OK(ms_pubruns_load(cx, TABLE, &f->runs), cx);
    ASSERT_INT(f->runs.num_runs, NUM_ROWS);
    ms_own_runs_open(cx, &f->runs, &f->list, &by_rows, &f->own);
    ASSERT_INT(f->own.num_groups, 1);
}

static ms_pubrun_score score_of(const fixture *f, int row)
{
    ms_pubrun_score score;
    ms_pubrun_prices_forget(f->own.prices);
    ASSERT_INT(ms_pubrun_price(f->own.prices, &f->runs.runs[row], &score), MS_OK);
    ms_pubrun_prices_forget(f->own.prices);
    return score;
}

/* Has all runs but that out of memory measure what is predicted with a constant moved. */
static void measure_with(fixture *f, int constant, double x)
{
    ms_own_files_set(&f->own, f->own.groups[0].files, constant, x, NULL);
    for (int i = 0; i < ROW_OUT_OF_MEMORY; i++) {
        ms_pubrun_score score = score_of(f, i);
        f->runs.runs[i].measured_step_s = score.step_s;
        f->runs.runs[i].measured_peak_bytes = score.peak_bytes;
    }
    ms_own_files_set(&f->own, f->own.groups[0].files, constant, 0.0, NULL);
}

static const ms_own_move *find_move(const ms_own_fit *fit, const char *name)
{
    for (int i = 0; i < fit->num_moves; i++)
        if (strcmp(fit->moves[i].constant->name, name) == 0)
            return &fit->moves[i];
    fail_msg("no constant \"%s\"", name);
    return NULL;
}

static void constants_are_found_again(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    fixture f;
    open_fixture(cx, &f);
    measure_with(&f, 0, -1.5);
    ASSERT_OK(ms_own_runs_fit(cx, &f.own), cx);
    const ms_own_fit *fit = &f.own.groups[0].fits[MS_MEASURED_STEP];
    const ms_own_move *energy = find_move(fit, "energy");
    ASSERT_INT(fit->num_rows, 5);
    assert_true(fit->before_rms_frac > 0.08 && fit->after_rms_frac < 0.01);
    /* the prior draws a little towards 0 */
    assert_true(energy->widths < -1.3 && energy->widths > -1.55);
    assert_true(energy->deviation < 0.2);
    assert_true(energy->figures[0].used);
    ASSERT_NEAR(energy->figures[0].after,
                energy->figures[0].before * exp(0.1 * energy->widths), 1e-9);
    assert_true(fabs(find_move(fit, "links")->widths) < 0.3);
    ms_own_runs_close(&f.own);
}

/* Dense models do not launch experts' kernels. */
static void what_no_run_tells_stays(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    fixture f;
    open_fixture(cx, &f);
    ASSERT_OK(ms_own_runs_fit(cx, &f.own), cx);
    const ms_own_fit *fit = &f.own.groups[0].fits[MS_MEASURED_STEP];
    for (int i = 0; i < fit->num_moves; i++) {
        const ms_own_move *move = &fit->moves[i];
        if (strcmp(move->constant->name, "expert launches") != 0)
            continue;
        assert_true(move->widths == 0.0 && move->deviation == 1.0);
        assert_false(move->figures[0].used);
    }
    ms_own_runs_close(&f.own);
}

/* Efficiencies stay at most at the list's limit, latencies of the same constant move on. */
static void limits_are_kept(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    fixture f;
    open_fixture(cx, &f);
    const ms_own_files *files = f.own.groups[0].files;
    bool seen_frac = false, seen_step = false;
    for (int i = 0; i < files->num_targets; i++) {
        const ms_own_target *target = &files->targets[i];
        double before = ms_own_target_value(&f.own, files, target, 0.0);
        double after = ms_own_target_value(&f.own, files, target, 3.0);
        if (strcmp(target->figure->key, "link.frac") == 0) {
            seen_frac = true;
            ASSERT_NEAR(after, 0.95, 1e-12);
        }
        if (strcmp(target->figure->key, "link.step") == 0) {
            seen_step = true;
            ASSERT_NEAR(after, before * exp(0.6), 1e-9);
        }
    }
    assert_true(seen_frac && seen_step);
    ms_own_runs_close(&f.own);
}

static double worst_log_ratio(const fixture *f)
{
    ms_pubrun_score score = score_of(f, ROW_OUT_OF_MEMORY);
    return log((score.worst_peak_bytes + score.outside_bytes) / score.capacity_bytes);
}

/* A run that ran out of memory raises the peaks, though the measured ones are right,
 * only where it is predicted to fit, and no further than to its device's memory. */
static void runs_out_of_memory_count_from_one_side(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    fixture f;
    open_fixture(cx, &f);
    measure_with(&f, 0, 0.0);
    double before = worst_log_ratio(&f);
    assert_true(before < -0.01);
    ASSERT_OK(ms_own_runs_fit(cx, &f.own), cx);
    const ms_own_fit *fit = &f.own.groups[0].fits[MS_MEASURED_PEAK];
    double x = find_move(fit, "reserve")->widths;
    ASSERT_INT(fit->num_out_of_memory, 1);
    ASSERT_INT(fit->num_fitting_before, 1);
    assert_true(x > 0.05);
    ms_own_files_set(&f.own, f.own.groups[0].files, 3, x, NULL);
    double after = worst_log_ratio(&f);
    assert_true(after > before && after < 0.001);
    ms_own_files_set(&f.own, f.own.groups[0].files, 3, 0.0, NULL);

    f.runs.runs[ROW_OUT_OF_MEMORY].plan.microbatch = 4;
    assert_true(worst_log_ratio(&f) > 0.0);
    ASSERT_OK(ms_own_runs_fit(cx, &f.own), cx);
    assert_true(fabs(find_move(fit, "reserve")->widths) < 1e-3);
    ASSERT_INT(fit->num_fitting_before, 0);
    ms_own_runs_close(&f.own);
}

/* Three runs correct the others, whose layouts the fit did not see. */
static void layouts_left_out_are_predicted_better(void **state)
{
    (void)state;
    static const int modes[] = {0, 3};
    for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
        ms_ctx *cx = test_cx();
        fixture f;
        open_fixture(cx, &f);
        measure_with(&f, 0, -1.5);
        int num;
        ms_own_held_out *held;
        ASSERT_OK(ms_own_runs_hold_out(cx, &f.own, modes[m], &num, &held), cx);
        ASSERT_INT(num, 2);
        ASSERT_INT(held[0].measurement, MS_MEASURED_STEP);
        ASSERT_INT(held[0].num_rows, 5);
        ASSERT_INT(held[0].num_predictions, modes[m] == 0 ? 5 : 2);
        ASSERT_INT(held[0].num_fits, modes[m] == 0 ? 5 : 1);
        assert_true(held[0].before_ape_frac > 0.08);
        assert_true(held[0].after_ape_frac < 0.02);
        ms_own_runs_close(&f.own);
    }
}

/* ---- files ---- */

static void write_and_read(ms_ctx *cx, const fixture *f, bool is_stack, ms_jdoc **doc,
                           ms_jval *root)
{
    char *text = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&text, &length);
    assert_non_null(file);
    ms_jout out = ms_jout_open(file);
    ASSERT_OK(ms_fit_file_write(cx, &f->own.groups[0], is_stack, "mine", "own.csv", &out),
              cx);
    ms_jout_close(&out);
    (void)fclose(file);
    ASSERT_OK(ms_json_parse(cx, "written", text, length, doc, root), cx);
    free(text);
}

/* Checks all figures of a written file: those of a constant that moved have its value. */
static void check_figures(const ms_own_group *group, const ms_figures *figures,
                          const char *file, const void *original, const void *written)
{
    int num_moved = 0;
    for (int i = 0; i < figures->num; i++) {
        const ms_figure *figure = &figures->items[i];
        double want = ms_figure_value(figure, original);
        for (int m = 0; m < MS_NUM_MEASUREMENTS; m++)
            for (int j = 0; j < group->fits[m].num_moves; j++) {
                const ms_own_move *move = &group->fits[m].moves[j];
                for (int k = 0; k < move->num_figures; k++)
                    if (fabs(move->widths) >= 0.005 &&
                        strcmp(move->figures[k].file, file) == 0 &&
                        strcmp(move->figures[k].key, figure->key) == 0) {
                        num_moved += move->figures[k].after != want;
                        want = move->figures[k].after;
                    }
            }
        double got = ms_figure_value(figure, written);
        assert_true(isnan(want) == isnan(got));
        if (!isnan(want))
            ASSERT_NEAR(got, want, 6e-6); /* six digits are written */
    }
    assert_true(num_moved > 0);
}

static void written_files_have_the_corrections(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    fixture f;
    ms_jdoc *doc;
    ms_jval root;
    open_fixture(cx, &f);
    ASSERT_OK(ms_own_runs_fit(cx, &f.own), cx);
    const ms_pubrun *run = &f.runs.runs[0];
    ms_profile profile = {.name = NULL};
    const ms_profile *shipped_profile;
    ms_figures figures = {.arena = cx->arena};
    ASSERT_OK(ms_profile_load(cx, f.own.groups[0].profile, &shipped_profile), cx);
    write_and_read(cx, &f, false, &doc, &root);
    ASSERT_OK(ms_profile_read(cx, root, &profile), cx);
    ASSERT_TEXT(profile.name, "mine");
    ms_profile_figures(run->profile, &figures);
    check_figures(&f.own.groups[0], &figures, "profile", shipped_profile, &profile);
    ms_json_close(doc);

    ms_stack stack = {.name = NULL};
    const ms_stack *shipped_stack;
    figures = (ms_figures){.arena = cx->arena};
    ASSERT_OK(ms_stack_load(cx, f.own.groups[0].stack, &shipped_stack), cx);
    write_and_read(cx, &f, true, &doc, &root);
    ASSERT_OK(ms_stack_read(cx, root, &stack), cx);
    ASSERT_TEXT(stack.name, "mine");
    ms_stack_figures(&figures);
    check_figures(&f.own.groups[0], &figures, "stack", shipped_stack, &stack);
    ms_json_close(doc);
    ms_own_runs_close(&f.own);
}

/* ---- lists ---- */

#define CONSTANT(members)                                                                \
    "{\"schema\": \"meshsim.own_fits/1\", \"step_error\": 0.05, \"peak_error\": 0.05, "  \
    "\"constants\": [" members "]}"

static void lists_that_are_none_are_refused(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"{}", "4 of 4 fields that must be here are missing"},
        {CONSTANT(""), "no list of 1 to 64 constants"},
        {CONSTANT("{\"name\": \"a\", \"of\": [], \"scale\": \"log\", \"width\": 1, "
                  "\"source\": \"t\"}"),
         "\"of\" is no list of figures"},
        {CONSTANT("{\"name\": \"a\", \"of\": [\"link.frac\"], \"scale\": \"log\", "
                  "\"width\": 1, \"source\": \"t\"}"),
         "\"link.frac\" is no figure of a profile or stack"},
        {CONSTANT("{\"name\": \"a\", \"of\": [\"stack tp_overlap\"], \"scale\": \"log\", "
                  "\"width\": 0, \"source\": \"t\"}"),
         "width"},
        {CONSTANT("{\"name\": \"a\", \"of\": [\"stack tp_overlap\"], \"scale\": \"log\", "
                  "\"width\": 1, \"low\": 2, \"high\": 1, \"source\": \"t\"}"),
         "do not ascend"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_ctx *cx = test_cx();
        ms_own_list list;
        ms_jdoc *doc;
        ms_jval root;
        ASSERT_OK(
            ms_json_parse(cx, "list", cases[i][0], strlen(cases[i][0]), &doc, &root), cx);
        ASSERT_INT(ms_own_list_read(cx, root, &list), MS_EINPUT);
        if (strstr(test_messages(cx), cases[i][1]) == NULL)
            fail_msg("\"%s\" lacks %s", test_messages(cx), cases[i][1]);
        ms_json_close(doc);
    }
}

/* Every constant of the shipped list moves a figure of some shipped profile or stack. */
static void the_shipped_list_names_figures(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    fixture f;
    cx->verbosity = -1;
    ASSERT_OK(ms_own_list_load(cx, "own-runs", &f.list), cx);
    ASSERT_OK(ms_pubruns_load(cx, TABLE, &f.runs), cx);
    ms_own_runs_open(cx, &f.runs, &f.list, &by_rows, &f.own);
    const ms_own_files *files = f.own.groups[0].files;
    for (int c = 0; c < f.list.num_constants; c++) {
        bool found = false;
        for (int t = 0; t < files->num_targets; t++)
            found = found || files->targets[t].constant == c;
        if (!found)
            fail_msg("\"%s\" moves nothing", f.list.constants[c].name);
    }
    ms_own_runs_close(&f.own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constants_are_found_again),
        cmocka_unit_test(what_no_run_tells_stays),
        cmocka_unit_test(limits_are_kept),
        cmocka_unit_test(runs_out_of_memory_count_from_one_side),
        cmocka_unit_test(layouts_left_out_are_predicted_better),
        cmocka_unit_test(written_files_have_the_corrections),
        cmocka_unit_test(lists_that_are_none_are_refused),
        cmocka_unit_test(the_shipped_list_names_figures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
