/* Lengths of sequences: the reader, and moments, maxima and sums against drawn lengths. */
#include "tests/test.h"

#include "costmodel/plan/sequence_lengths.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <math.h>
#include <string.h>

#define MEAN      600.0
#define DEVIATION 400.0
#define LONGEST   2048.0

typedef struct draw {
    gsl_rng *rng;
    double centre, width; /* mean and deviation of ln(length) */
} draw;

static draw open_draw(void)
{
    double width = sqrt(log1p(DEVIATION * DEVIATION / (MEAN * MEAN)));
    draw d = {gsl_rng_alloc(gsl_rng_mt19937), log(MEAN) - 0.5 * width * width, width};
    gsl_rng_set(d.rng, 7);
    return d;
}

static double draw_length(const draw *d)
{
    return fmin(fmax(gsl_ran_lognormal(d->rng, d->centre, d->width), 1.0), LONGEST);
}

static ms_lengths drawn_lengths(ms_arena *arena)
{
    return ms_lengths_make(arena, MEAN, DEVIATION, LONGEST);
}

static void moments_are_those_of_drawn_lengths(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_lengths lengths = drawn_lengths(cx->arena);
    draw d = open_draw();
    const int num = 400000;
    double sum = 0.0, squares = 0.0, pairs = 0.0;
    for (int i = 0; i < num; i++) {
        double length = draw_length(&d), window = fmin(length, 512.0);
        sum += length;
        squares += length * length;
        pairs += 0.5 * window * (window + 1.0) + (length - window) * window;
    }
    gsl_rng_free(d.rng);
    ASSERT_NEAR(lengths.mean_tokens, sum / num, 0.004);
    ASSERT_NEAR(lengths.mean_square, squares / num, 0.008);
    ASSERT_NEAR(ms_lengths_of_token(&lengths), squares / sum, 0.006);
    ASSERT_NEAR(ms_lengths_pairs_per_token(&lengths, 512.0), pairs / sum, 0.005);
    ASSERT_NEAR(ms_lengths_pairs_per_token(&lengths, 0.0), 0.5 * (squares / sum + 1.0),
                0.006);
    /* cutting at 2048 tokens takes 1 % of the tokens that 600 on average have */
    assert_true(lengths.mean_tokens < MEAN && lengths.mean_tokens > 0.98 * MEAN);
}

static void the_longest_is_that_of_drawn_batches(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_lengths lengths = drawn_lengths(cx->arena);
    const int sizes[] = {1, 2, 8, 64};
    draw d = open_draw();
    for (int i = 0; i < 4; i++) {
        const int num = 20000;
        double sum = 0.0, squares = 0.0;
        for (int batch = 0; batch < num; batch++) {
            double longest = 0.0;
            for (int k = 0; k < sizes[i]; k++)
                longest = fmax(longest, draw_length(&d));
            sum += longest;
            squares += longest * longest;
        }
        ms_lengths longest = ms_lengths_longest(cx->arena, &lengths, sizes[i]);
        double mean = sum / num;
        ASSERT_NEAR(longest.mean_tokens, mean, 0.01);
        ASSERT_NEAR(ms_lengths_deviation(&longest), sqrt(squares / num - mean * mean),
                    0.03);
    }
    gsl_rng_free(d.rng);
}

static void normal_maxima_are_the_tabulated_ones(void **state)
{
    (void)state;
    /* Harter 1961, "Expected values of normal order statistics", table 1 */
    ASSERT_NEAR(ms_normal_maximum(1), 0.0, 1e-9);
    ASSERT_NEAR(ms_normal_maximum(2), 0.56419, 1e-4);
    ASSERT_NEAR(ms_normal_maximum(10), 1.53875, 1e-4);
    ASSERT_NEAR(ms_normal_maximum(100), 2.50759, 1e-4);
}

/* Pairs of a rank that fills `tokens` positions with drawn sequences; the last one counts
 * by its part that fits. */
static double draw_pairs(const draw *d, double tokens)
{
    double pairs = 0.0;
    while (tokens > 0.0) {
        double length = draw_length(d);
        pairs += length * length * fmin(1.0, tokens / length);
        tokens -= length;
    }
    return pairs;
}

static void the_slowest_rank_is_that_of_drawn_sequences(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_lengths lengths = drawn_lengths(cx->arena);
    const int num_ranks = 16, num_steps = 1500;
    const double tokens = 64 * 2048.0;
    draw d = open_draw();
    double sum = 0.0, sum_of_most = 0.0;
    for (int step = 0; step < num_steps; step++) {
        double most = 0.0;
        for (int rank = 0; rank < num_ranks; rank++) {
            double pairs = draw_pairs(&d, tokens);
            sum += pairs / num_ranks;
            most = fmax(most, pairs);
        }
        sum_of_most += most;
    }
    gsl_rng_free(d.rng);
    double excess_frac = ms_lengths_excess_frac(&lengths, tokens, num_ranks);
    ASSERT_NEAR(excess_frac, sum_of_most / sum - 1.0, 0.05);
    ASSERT_NEAR(ms_lengths_excess_frac(&lengths, tokens, 1), 0.0, 1e-9);
    ASSERT_NEAR(ms_lengths_excess_frac(&lengths, 4.0 * tokens, num_ranks),
                0.5 * excess_frac, 1e-9);
}

static void equal_lengths_have_no_spread(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_lengths lengths = ms_lengths_make(cx->arena, 512.0, 0.0, 2048.0);
    ASSERT_NEAR(ms_lengths_of_token(&lengths), 512.0, 0.0);
    ASSERT_NEAR(ms_lengths_pairs_per_token(&lengths, 0.0), 256.5, 0.0);
    ASSERT_NEAR(ms_lengths_excess_frac(&lengths, 8192.0, 64), 0.0, 1e-9);
    /* chunks of 128: the last of 4 has 7/4 of the mean; longer ones hold whole sequences */
    ASSERT_NEAR(ms_lengths_chunk_factor(&lengths, 128.0), 1.75, 1e-12);
    ASSERT_NEAR(ms_lengths_chunk_factor(&lengths, 1024.0), 1.0, 1e-12);
}

/* Lengths longer than the sequence length are cut to it. */
static ms_status read_text(ms_ctx *cx, const char *text, ms_lengths *out)
{
    ms_csv csv = ms_csv_open(text, strlen(text));
    return ms_lengths_read(cx, "lengths.csv", csv, 1000.0, out);
}

static void files_list_lengths_and_how_many_have_them(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_lengths lengths;
    ASSERT_OK(read_text(cx, "sequences,tokens\n1,4000\n2,100\n0,7\n1,100\n", &lengths),
              cx);
    ASSERT_INT(lengths.num, 2);
    ASSERT_NEAR(lengths.mean_tokens, (3 * 100.0 + 1000.0) / 4, 1e-12);
    ASSERT_NEAR(lengths.mean_square, (3 * 1e4 + 1e6) / 4, 1e-12);
    ASSERT_OK(read_text(cx, "tokens\n10\n30\n", &lengths), cx);
    ASSERT_NEAR(lengths.mean_tokens, 20.0, 1e-12);
    ASSERT_NEAR(ms_lengths_longest(cx->arena, &lengths, 2).mean_tokens, 25.0, 1e-12);
}

static void bad_files_are_refused_at_their_place(void **state)
{
    (void)state;
    const struct {
        const char *text, *message;
    } bad[] = {
        {"length\n4\n", "\"length\" is not one of the columns tokens, sequences"},
        {"sequences\n4\n", "the first line must name the column tokens"},
        {"tokens\n0.5\n", "\"0.5\" is not a length in tokens, at least 1"},
        {"tokens\nnan\n", "\"nan\" is not a length"},
        {"tokens,sequences\n4,-1\n", "\"-1\" is not a number of sequences"},
        {"tokens,sequences\n4\n", "\"\" is not a number of sequences"},
        {"tokens\n", "the file has no sequences"},
        {"tokens,sequences\n4,0\n", "the file has no sequences"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ms_ctx cx = {.arena = ms_arena_open()};
        ms_lengths lengths;
        ASSERT_INT(read_text(&cx, bad[i].text, &lengths), MS_EINPUT);
        assert_non_null(strstr(test_messages(&cx), bad[i].message));
        ms_arena_close(cx.arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moments_are_those_of_drawn_lengths),
        cmocka_unit_test(the_longest_is_that_of_drawn_batches),
        cmocka_unit_test(normal_maxima_are_the_tabulated_ones),
        cmocka_unit_test(the_slowest_rank_is_that_of_drawn_sequences),
        cmocka_unit_test(equal_lengths_have_no_spread),
        cmocka_unit_test(files_list_lengths_and_how_many_have_them),
        cmocka_unit_test(bad_files_are_refused_at_their_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
