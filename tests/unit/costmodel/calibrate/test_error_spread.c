/* Intervals of prediction errors from published runs: quantiles over many sources
 * (papers, repositories), the weight of a source and of a class of runs, allowance for
 * unseen sources, the file. */
#include "costmodel/calibrate/error_spread.h"

#include "base/rng.h"
#include "tests/test.h"

#include <limits.h>

#define MAX_ROWS 20000

typedef struct made {
    ms_arena *arena;
    ms_rng rng;
    int num;
    ms_error_row *rows;
} made;

static made start(void)
{
    made m = {.arena = test_cx()->arena, .rng = ms_rng_seed(7)};
    m.rows = MS_NEW_ARRAY(m.arena, MAX_ROWS, ms_error_row);
    return m;
}

static void add(made *m, const char *source, const char *stack, long gpus, double error)
{
    const char *id = ms_arena_printf(m->arena, "%s-%d", source, m->num);
    m->rows[m->num++] = (ms_error_row){id, source, stack, gpus, error, error};
}

/* Adds `num` runs whose log errors are uniform within +-width around `middle`. */
static void add_many(made *m, const char *source, const char *stack, long gpus, int num,
                     double middle, double width)
{
    for (int i = 0; i < num; i++)
        add(m, source, stack, gpus,
            middle + width * (2.0 * ms_rng_uniform(&m->rng) - 1.0));
}

static const char *name(made *m, const char *what, int i)
{
    return ms_arena_printf(m->arena, "%s %d", what, i);
}

static double width_of(ms_error_interval i)
{
    return log(i.high_frac / i.low_frac);
}

static ms_error_interval interval(made *m, const char *stack, long gpus)
{
    ms_error_spread spread = ms_error_spread_make(m->arena, m->rows, m->num, 2.0);
    return ms_error_spread_interval(&spread, &(ms_error_class){stack, gpus, NULL});
}

static void few_gpus_and_many_are_two_scales(void **state)
{
    (void)state;
    ASSERT_INT(ms_error_scale(1), ms_error_scale(32));
    ASSERT_INT(ms_error_scale(33), ms_error_scale(LONG_MAX));
    ASSERT_INT(ms_error_scale(ms_error_scale(8)), 32);
    assert_true(ms_error_scale(33) > ms_error_scale(32));
    ASSERT_INT(ms_error_scale(ms_error_scale(33)), ms_error_scale(33));
}

/* A fifth of the runs takes exp(0.7) times as long, the others are within 0.1: the mirror
 * image of the 5 % below -0.0875, at the median 0.025, is 0.1375, and a fifth less these
 * 5 % is told to be disturbed. Without such runs next to none is. */
static void stalls_are_told_from_scatter(void **state)
{
    (void)state;
    made m = start(), calm = start();
    for (int s = 0; s < 200; s++) {
        const char *source = name(&m, "source", s);
        add_many(&m, source, "stack", 8, 40, 0.0, 0.1);
        add_many(&m, source, "stack", 8, 10, 0.7, 0.0);
        add_many(&calm, source, "stack", 8, 50, 0.0, 0.1);
    }
    ms_error_interval got = interval(&m, "stack", 8);
    ASSERT_NEAR(log(got.undisturbed_high_frac), 0.1375, 0.08);
    ASSERT_NEAR(got.disturbed_frac, 0.15, 0.08);
    ASSERT_NEAR(got.disturbed_slowdown_frac, expm1(0.7), 1e-4);
    got = interval(&calm, "stack", 8);
    ASSERT_NEAR(got.undisturbed_high_frac, got.high_frac, 0.02);
    assert_true(got.disturbed_frac < 0.02);
}

/* Log errors from -0.2 to 0.6 (more runs are slower than predicted): the middle 90 %
 * is -0.16 to 0.56. */
static void quantiles_of_many_sources_are_recovered(void **state)
{
    (void)state;
    made m = start();
    for (int s = 0; s < 200; s++)
        add_many(&m, name(&m, "source", s), name(&m, "stack", s), 8, 50, 0.2, 0.4);
    ms_error_interval got = interval(&m, "another", 8);
    ASSERT_NEAR(log(got.low_frac), -0.16, 0.08);
    ASSERT_NEAR(log(got.high_frac), 0.56, 0.03);
    ASSERT_INT(got.num_runs[MS_ERRORS_OF_ALL], 10000);
    ASSERT_INT(got.num_sources[MS_ERRORS_OF_ALL], 200);
    ASSERT_INT(got.num_sources[MS_ERRORS_OF_STACK], 0);
}

/* A source of 5000 runs weighs as much as one of 8, where the runs of a source are
 * alike. */
static void a_large_source_does_not_swamp_the_others(void **state)
{
    (void)state;
    made m = start();
    for (int s = 0; s < 30; s++)
        add_many(&m, name(&m, "source", s), name(&m, "stack", s), 8, 8,
                 s % 2 == 0 ? -0.2 : 0.2, 0.01);
    ms_error_interval without = interval(&m, "another", 8);
    add_many(&m, "large", "large", 8, 5000, 2.0, 0.01);
    ms_error_interval with = interval(&m, "another", 8);
    ASSERT_NEAR(with.low_frac, without.low_frac, 0.01);
    ASSERT_NEAR(with.high_frac, without.high_frac, 0.03);
    ASSERT_INT(with.num_runs[MS_ERRORS_OF_ALL], 30 * 8 + 5000);
}

/* The stack "quiet" has smaller errors than all others. With few sources of it, the
 * interval predicted for it is nearly as wide as that of all stacks; with 30 sources it
 * is as wide as its own errors. */
static void classes_with_few_sources_lean_on_all(void **state)
{
    (void)state;
    double widths[3];
    const int num_quiet[] = {0, 1, 30};
    for (int i = 0; i < 3; i++) {
        made m = start();
        for (int s = 0; s < 30; s++)
            add_many(&m, name(&m, "source", s), name(&m, "stack", s), 8, 20,
                     0.04 * (s - 15), 0.2);
        for (int s = 0; s < num_quiet[i]; s++)
            add_many(&m, name(&m, "quiet", s), "quiet", 8, 20, 0.0, 0.05);
        widths[i] = width_of(interval(&m, "quiet", 8));
    }
    assert_true(widths[0] > widths[1] && widths[1] > widths[2]);
    ASSERT_NEAR(widths[2], 0.1, 0.2);
    assert_true(widths[1] > 0.3);
}

static void scales_of_a_stack_differ(void **state)
{
    (void)state;
    made m = start();
    for (int s = 0; s < 80; s++) {
        add_many(&m, name(&m, "source", s), "stack", 8, 20, 0.0, 0.1);
        add_many(&m, name(&m, "source", s), "stack", 512, 20, 0.5, 0.5);
    }
    ms_error_interval node = interval(&m, "stack", 8), many = interval(&m, "stack", 512);
    assert_true(node.high_frac < 1.4 && many.high_frac > 2.2);
    ASSERT_INT(node.num_runs[MS_ERRORS_OF_BOTH], 1600);
    ASSERT_INT(node.num_runs[MS_ERRORS_OF_STACK], 3200);
}

/* One or two sources give no interval (NaN): the next source may lie beyond all that
 * are known. */
static void few_sources_tell_no_interval(void **state)
{
    (void)state;
    for (int num = 1; num < 14; num += num == 2 ? 8 : 1) {
        made m = start();
        for (int s = 0; s < num; s++)
            add_many(&m, name(&m, "source", s), name(&m, "stack", s), 8, 20, 0.0, 0.1);
        ms_error_interval got = interval(&m, "another", 8);
        assert_int_equal(isnan(got.low_frac), num <= 2);
        assert_int_equal(isnan(got.high_frac), num <= 2);
    }
    ms_error_spread nothing = ms_error_spread_make(test_cx()->arena, NULL, 0, 2.0);
    const ms_error_class class = {"x", 8, NULL};
    assert_true(isnan(ms_error_spread_interval(&nothing, &class).low_frac));
}

static void a_source_that_is_left_out_is_not_looked_at(void **state)
{
    (void)state;
    made m = start();
    for (int s = 0; s < 20; s++)
        add_many(&m, name(&m, "source", s), name(&m, "stack", s % 3), 8, 12, 0.0, 0.2);
    ms_error_spread before = ms_error_spread_make(m.arena, m.rows, m.num, 2.0);
    add_many(&m, "wild", "stack 1", 8, 300, 1.0, 1.0);
    ms_error_spread after = ms_error_spread_make(m.arena, m.rows, m.num, 2.0);
    after.source_correlation = before.source_correlation;
    ms_error_interval want =
        ms_error_spread_interval(&before, &(ms_error_class){"stack 1", 8, NULL});
    ms_error_interval got =
        ms_error_spread_interval(&after, &(ms_error_class){"stack 1", 8, "wild"});
    ASSERT_NEAR(got.low_frac, want.low_frac, 1e-12);
    ASSERT_NEAR(got.high_frac, want.high_frac, 1e-12);
    assert_true(ms_error_spread_has(&after, "wild", "wild-250"));
    assert_false(ms_error_spread_has(&before, "wild", "wild-250"));
    assert_false(ms_error_spread_has(&after, "source 1", "wild-250"));
}

/* A standard normal random number, as the sum of twelve uniform ones. */
static double normal(ms_rng *rng)
{
    double sum = -6.0;
    for (int i = 0; i < 12; i++)
        sum += ms_rng_uniform(rng);
    return sum;
}

/* Adds the runs of one random source, number `s`. Its mean log error has the standard
 * deviation `source_width`. Its stack is one of five, or, if `own_stack`, one that no
 * other source has. */
static void draw_source(made *m, int s, bool own_stack, double source_width)
{
    double bias = source_width * normal(&m->rng);
    int num = 1 + (int)ms_rng_below(&m->rng, s % 7 == 0 ? 200 : 20);
    for (int i = 0; i < num; i++)
        add(m, name(m, "source", s), name(m, "stack", own_stack ? s : s % 5),
            8L << (2 * (i % 3)), bias + 0.1 * normal(&m->rng));
}

/* The fraction of a new source's runs that lie in their predicted 90 % intervals. */
static double share_held(made *m, bool own_stack, double source_width)
{
    double held = 0.0;
    for (int s = 0; s < 25; s++)
        draw_source(m, s, own_stack, source_width);
    int num_fitted = m->num;
    ms_error_spread spread = ms_error_spread_make(m->arena, m->rows, num_fitted, 2.0);
    draw_source(m, 26, own_stack, source_width);
    for (int i = num_fitted; i < m->num; i++) {
        const ms_error_row *row = &m->rows[i];
        ms_error_interval got = ms_error_spread_interval(
            &spread, &(ms_error_class){row->stack, row->gpus, NULL});
        double is = exp(row->new_error);
        held += got.low_frac <= is && is <= got.high_frac;
        assert_true(got.low_frac <= 1.0 && 1.0 <= got.high_frac);
    }
    return held / (m->num - num_fitted);
}

/* About 90 % of the runs of a new source lie in the 90 % intervals predicted for them.
 * This holds for a source whose stack is new, even if sources differ much, and for a
 * source with a known stack, if sources differ little. With a known stack the share is
 * somewhat below 90 %, since only the class of all runs allows for an unseen source. */
static void intervals_hold_what_they_promise(void **state)
{
    (void)state;
    const int num_trials = 200;
    double own_stack = 0.0, known_stack = 0.0;
    for (int trial = 0; trial < num_trials; trial++) {
        made m = start();
        m.rng = ms_rng_seed((uint64_t)trial);
        own_stack += share_held(&m, true, 0.3) / num_trials;
        m.num = 0;
        known_stack += share_held(&m, false, 0.03) / num_trials;
    }
    if (!(own_stack > 0.82 && own_stack < 0.97 && known_stack > 0.82 &&
          known_stack < 0.97))
        fail_msg("%.3f of new stacks, %.3f of known ones", own_stack, known_stack);
}

static const char *text_of(made *m)
{
    char *text = NULL;
    size_t length = 0;
    ms_error_spread spread = ms_error_spread_make(m->arena, m->rows, m->num, 2.0);
    spread.source = "a test";
    FILE *file = open_memstream(&text, &length);
    ms_jout out = ms_jout_open(file);
    ms_error_spread_write_json(&out, &spread);
    ms_jout_close(&out);
    assert_int_equal(fclose(file), 0);
    const char *kept = ms_arena_strdup(m->arena, text);
    free(text);
    return kept;
}

static void the_order_of_runs_does_not_matter(void **state)
{
    (void)state;
    made m = start();
    for (int s = 0; s < 12; s++)
        draw_source(&m, s, false, 0.2);
    const char *want = text_of(&m);
    for (int i = m.num - 1; i > 0; i--) {
        int j = (int)ms_rng_below(&m.rng, (uint64_t)i + 1);
        ms_error_row kept = m.rows[i];
        m.rows[i] = m.rows[j];
        m.rows[j] = kept;
    }
    ASSERT_TEXT(text_of(&m), want);
}

static ms_status read(ms_ctx *cx, const char *text, ms_error_spread *out)
{
    ms_jdoc *doc;
    ms_jval root;
    ASSERT_OK(ms_json_parse(cx, "spread", text, strlen(text), &doc, &root), cx);
    ms_status status = ms_error_spread_read(cx, root, out);
    ms_json_close(doc);
    return status;
}

static void what_is_written_reads_back(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    made m = start();
    for (int s = 0; s < 20; s++)
        draw_source(&m, s, false, 0.2);
    ms_error_spread spread = ms_error_spread_make(m.arena, m.rows, m.num, 2.0), got;
    ASSERT_OK(read(cx, text_of(&m), &got), cx);
    ASSERT_TEXT(got.source, "a test");
    for (int i = 0; i < m.num; i++) {
        const ms_error_class class = {m.rows[i].stack, m.rows[i].gpus, NULL};
        ms_error_interval a = ms_error_spread_interval(&spread, &class),
                          b = ms_error_spread_interval(&got, &class);
        ASSERT_NEAR(b.low_frac, a.low_frac, 0.0);
        ASSERT_NEAR(b.high_frac, a.high_frac, 0.0);
        assert_true(ms_error_spread_has(&got, m.rows[i].source, m.rows[i].id));
    }
}

#define HEAD "{\"schema\": \"meshsim.spread/1\", \"source\": \"t\", "
#define CELLS                                                                            \
    HEAD                                                                                 \
        "\"source_correlation\": 0.5, \"prior_sources\": 1, \"sources\": [{\"name\": \"s\", \"cells\": ["

static void files_that_are_none_are_refused(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"{\"schema\": \"meshsim.fits/1\", \"source\": \"t\", \"source_correlation\": 0.5, \"prior_sources\": 1, "
         "\"sources\": []}",
         "meshsim.fits/1"},
        {HEAD "\"source_correlation\": 0.5, \"prior_sources\": 1, \"sources\": []}",
         "no list of sources"},
        {HEAD "\"source_correlation\": 1.5, \"sources\": [1]}", "source_correlation"},
        {CELLS "]}]}", "no list of cells"},
        {CELLS "{\"stack\": \"x\", \"most_gpus\": 9, \"runs\": [\"a\"], "
               "\"new_errors\": [0], \"known_errors\": [0]}]}]}",
         "neither 32 nor"},
        {CELLS "{\"stack\": \"x\", \"most_gpus\": 32, \"runs\": [], "
               "\"new_errors\": [0], \"known_errors\": [0]}]}]}",
         "no list of ids"},
        {CELLS "{\"stack\": \"x\", \"most_gpus\": 32, \"runs\": [\"a\", \"b\"], "
               "\"new_errors\": [0], \"known_errors\": [0, 0]}]}]}",
         "no list of 2 errors"},
        {CELLS "{\"stack\": \"x\", \"most_gpus\": 32, \"runs\": [\"a\"], "
               "\"new_errors\": [0], \"known_errors\": [50]}]}]}",
         "known_errors"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_ctx *cx = test_cx();
        ms_error_spread got;
        ASSERT_INT(read(cx, cases[i][0], &got), MS_EINPUT);
        if (strstr(test_messages(cx), cases[i][1]) == NULL)
            fail_msg("\"%s\" does not say \"%s\"", test_messages(cx), cases[i][1]);
    }
}

/* Two hundred sources have log errors spread evenly over -0.2 to 0.6. So a new run takes
 * at most exp(0.2) of its predicted time with probability 1/2. Times far beyond all seen
 * errors keep a small probability, since the new run's source is unseen. */
static void probabilities_are_those_of_the_mixture(void **state)
{
    (void)state;
    made m = start();
    for (int s = 0; s < 200; s++)
        add_many(&m, name(&m, "source", s), name(&m, "stack", s), 8, 50, 0.2, 0.4);
    ms_error_spread spread = ms_error_spread_make(m.arena, m.rows, m.num, 2.0);
    const ms_error_class class = {"another", 8, NULL};
    ASSERT_NEAR(ms_error_spread_frac_below(&spread, &class, exp(0.2)), 0.5, 0.03);
    ms_error_interval ends = ms_error_spread_interval(&spread, &class);
    ASSERT_NEAR(ms_error_spread_frac_below(&spread, &class, ends.high_frac), 0.95, 0.01);
    double far_above = ms_error_spread_frac_below(&spread, &class, 1e9),
           far_below = ms_error_spread_frac_below(&spread, &class, 1e-9);
    assert_true(far_above < 1.0 && far_above > 0.99);
    ASSERT_NEAR(far_below, 1.0 - far_above, 1e-6);
    spread.num_sources = 0;
    assert_true(isnan(ms_error_spread_frac_below(&spread, &class, 1.0)));
}

/* The ratio for a probability is the smallest from 1 on that has it; a probability that no
 * ratio has gives the ratio of the largest probability. */
static void the_ratio_of_a_probability_is_the_smallest(void **state)
{
    (void)state;
    made m = start();
    for (int i = 0; i < 4; i++)
        add_many(&m, name(&m, "source", i), i % 3 == 0 ? "a" : "b", 8, 30, 0.02 * i, 0.2);
    ms_error_spread spread = ms_error_spread_make(m.arena, m.rows, m.num, 2.0);
    const ms_error_class class = {"a", 8, NULL};
    const double little = 1e-9;
    int num_reached = 0;
    for (int i = 0; i < 77; i++) {
        const double frac = 0.013 * i;
        bool reached;
        double ratio = ms_error_spread_ratio(&spread, &class, frac, &reached);
        double most = ms_error_spread_frac_below(&spread, &class, INFINITY);
        assert_true(ratio >= 1.0 && reached == (most >= frac));
        double at = ms_error_spread_frac_below(&spread, &class, ratio * (1 + little));
        double below = ms_error_spread_frac_below(&spread, &class, ratio * (1 - little));
        assert_true(reached ? at >= frac - little : at >= most - little);
        assert_true(ratio == 1.0 || (reached ? below < frac : below < most));
        num_reached += reached;
    }
    if (num_reached <= 50 || num_reached >= 77)
        fail_msg("%d of 77 probabilities are reached", num_reached);
    bool reached;
    spread = ms_error_spread_make(m.arena, m.rows, 0, 2.0);
    assert_true(isnan(ms_error_spread_ratio(&spread, &class, 0.5, &reached)));
    assert_false(reached);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_ratio_of_a_probability_is_the_smallest),
        cmocka_unit_test(few_gpus_and_many_are_two_scales),
        cmocka_unit_test(stalls_are_told_from_scatter),
        cmocka_unit_test(quantiles_of_many_sources_are_recovered),
        cmocka_unit_test(probabilities_are_those_of_the_mixture),
        cmocka_unit_test(a_large_source_does_not_swamp_the_others),
        cmocka_unit_test(classes_with_few_sources_lean_on_all),
        cmocka_unit_test(scales_of_a_stack_differ),
        cmocka_unit_test(few_sources_tell_no_interval),
        cmocka_unit_test(a_source_that_is_left_out_is_not_looked_at),
        cmocka_unit_test(intervals_hold_what_they_promise),
        cmocka_unit_test(the_order_of_runs_does_not_matter),
        cmocka_unit_test(what_is_written_reads_back),
        cmocka_unit_test(files_that_are_none_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
