/* The probability that a plan predicted faster is faster: from errors between layouts
 * measured side by side, by hand and in a simulated world; the tie band; the file. */
#include "costmodel/calibrate/ranking_spread.h"

#include "base/rng.h"
#include "tests/test.h"

/* Three sources, with errors 0.1 and 0.3; 0.2; 0.4. */
static ms_ranking_spread three_sources(void)
{
    static const ms_ranking_pair pairs[] = {
        {"b", 0.1, -0.1, 1.0}, {"a", 0.1, -0.2, 1.0}, {"c", -0.2, 0.2, 1.0},
        {"a", -0.1, 0.0, 1.0}, {"a", 0.9, 0.0, 1.0}, /* too far apart to count */
    };
    return ms_ranking_spread_make(test_cx()->arena, pairs, 5);
}

static void probabilities_are_means_over_sources(void **state)
{
    (void)state;
    ms_ranking_spread s = three_sources();
    ASSERT_INT(s.num_sources, 3);
    ASSERT_INT(s.sources[0].num_pairs, 2);
    ASSERT_NEAR(s.sources[0].errors[1], 0.3, 1e-12);
    /* a lead of 0.25: half of the errors of a, all of b, none of c; one source more */
    double lead = (0.5 + 1.0) / 4.0 / 2.0;
    ASSERT_NEAR(ms_faster_probability(&s, 1.0, exp(0.25), NULL), 0.5 + lead, 1e-12);
    ASSERT_NEAR(ms_faster_probability(&s, exp(0.25), 1.0, NULL), 0.5 - lead, 1e-12);
    ASSERT_NEAR(ms_faster_probability(&s, 1.0, exp(0.25), "c"), 0.5 + 1.5 / 3.0 / 2.0,
                1e-12);
    ASSERT_NEAR(ms_faster_probability(&s, 2.0, 2.0, NULL), 0.5, 0.0);
    ASSERT_NEAR(ms_faster_probability(&s, 1.0, 1e9, NULL), 0.5 + 3.0 / 4.0 / 2.0, 1e-12);
    assert_true(isnan(ms_faster_probability(&s, (double)NAN, 1.0, NULL)));
    assert_true(isnan(ms_faster_probability(NULL, 1.0, 2.0, NULL)));
}

static void the_tie_band_ends_where_the_probability_is_reached(void **state)
{
    (void)state;
    ms_ranking_spread s = three_sources();
    /* 0.5 + 1/16, + 3/16, + 1/4, + 3/8 from leads of 0.1, 0.2, 0.3, 0.4 on */
    ASSERT_NEAR(ms_tie_band_frac(&s, 0.55), expm1(0.1), 1e-9);
    ASSERT_NEAR(ms_tie_band_frac(&s, MS_TIE_PROBABILITY), expm1(0.2), 1e-9);
    ASSERT_NEAR(ms_tie_band_frac(&s, 0.8), expm1(0.4), 1e-9);
    assert_true(isinf(ms_tie_band_frac(&s, 0.9)));
    ASSERT_NEAR(ms_tie_band_frac(NULL, 0.6), 0.0, 0.0);
}

/* 2000 true leads, uniform up to 20 %, are seen with errors of the spread: of those
 * predicted with probability p, about p are right. */
static void probabilities_hold_in_a_world_of_such_errors(void **state)
{
    (void)state;
    ms_rng rng = ms_rng_seed(11);
    ms_arena *arena = test_cx()->arena;
    const int num = 4000;
    ms_ranking_pair *pairs = MS_NEW_ARRAY(arena, num, ms_ranking_pair);
    for (int i = 0; i < num; i++) {
        double truth = 0.4 * (ms_rng_uniform(&rng) - 0.5),
               error = 0.2 * (ms_rng_uniform(&rng) - 0.5);
        pairs[i] = (ms_ranking_pair){ms_arena_printf(arena, "s%d", i % 40), truth + error,
                                     truth, 1.0};
    }
    ms_ranking_spread s = ms_ranking_spread_make(arena, pairs, num / 2);
    double expected = 0.0, right = 0.0;
    int num_near = 0;
    for (int i = num / 2; i < num; i++) {
        double lead = fabs(pairs[i].predicted);
        if (lead > 0.05)
            continue;
        expected += ms_faster_probability(&s, 1.0, exp(lead), NULL);
        right += pairs[i].predicted * pairs[i].measured > 0.0;
        num_near++;
    }
    ASSERT_NEAR(expected / num_near, right / num_near, 0.05);
}

static ms_status read(ms_ctx *cx, const char *text, ms_ranking_spread *out)
{
    ms_jdoc *doc;
    ms_jval root;
    ASSERT_OK(ms_json_parse(cx, "spread", text, strlen(text), &doc, &root), cx);
    ms_status status = ms_ranking_spread_read(cx, root, out);
    ms_json_close(doc);
    return status;
}

static void what_is_written_reads_back(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_ranking_spread s = three_sources(), got;
    char *text = NULL;
    size_t length = 0;
    s.source = "a test";
    FILE *file = open_memstream(&text, &length);
    ms_jout out = ms_jout_open(file);
    ms_ranking_spread_write_json(&out, &s);
    ms_jout_close(&out);
    assert_int_equal(fclose(file), 0);
    ASSERT_OK(read(cx, text, &got), cx);
    free(text);
    ASSERT_TEXT(got.source, "a test");
    ASSERT_INT(got.sources[0].num_pairs, 2);
    for (double lead = 0.0; lead < 0.6; lead += 0.05)
        ASSERT_NEAR(ms_faster_probability(&got, 1.0, exp(lead), NULL),
                    ms_faster_probability(&s, 1.0, exp(lead), NULL), 0.0);
}

#define HEAD "{\"schema\": \"meshsim.ranking_spread/1\", \"source\": \"t\", "

static void files_that_are_none_are_refused(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"{\"schema\": \"meshsim.spread/1\", \"source\": \"t\", \"sources\": []}",
         "meshsim.spread/1"},
        {HEAD "\"sources\": []}", "no list of sources"},
        {HEAD "\"sources\": [{\"name\": \"s\", \"pairs\": 1, \"errors\": []}]}",
         "no list of errors"},
        {HEAD "\"sources\": [{\"name\": \"s\", \"pairs\": 2, \"errors\": [0.2, 0.1]}]}",
         "0.1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_ctx *cx = test_cx();
        ms_ranking_spread got;
        ASSERT_INT(read(cx, cases[i][0], &got), MS_EINPUT);
        if (strstr(test_messages(cx), cases[i][1]) == NULL)
            fail_msg("expected \"%s\" in:\n%s", cases[i][1], test_messages(cx));
    }
}

/* The shipped spread decides large leads, leaves small ones undecided, and names what it
 * was made from. */
static void the_shipped_spread_is_plausible(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_ranking_spread *s;
    ASSERT_OK(ms_ranking_spread_load(cx, MS_RANKING_SPREAD, &s), cx);
    assert_non_null(s);
    assert_non_null(strstr(s->source, "calibrate"));
    assert_true(s->num_sources >= 8);
    double band = ms_tie_band_frac(s, MS_TIE_PROBABILITY);
    assert_true(band > 0.005 && band < 0.15);
    assert_true(ms_faster_probability(s, 1.0, 1.004, NULL) < 0.55);
    assert_true(ms_faster_probability(s, 1.0, 1.5, NULL) > 0.8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(probabilities_are_means_over_sources),
        cmocka_unit_test(the_tie_band_ends_where_the_probability_is_reached),
        cmocka_unit_test(probabilities_hold_in_a_world_of_such_errors),
        cmocka_unit_test(what_is_written_reads_back),
        cmocka_unit_test(files_that_are_none_are_refused),
        cmocka_unit_test(the_shipped_spread_is_plausible),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
