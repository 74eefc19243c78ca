/* Tests of bubble rates in the Zero Bubble paper (Qi et al. 2023, arXiv 2401.10241, table
 * 5): each model's times are fitted to the rates of 1F1B, ZB-H1 and ZB-H2 at the smallest
 * number of micro-batches, and predict the rest of the table.
 *
 * Times: F forward, I input gradient, W weight gradient, T_comm send. The three rates
 * determine (and overdetermine) W and T_comm relative to F+I+W; F and I enter as their
 * sum only, as W is below both, so F = I is taken: both multiply the same matrices.
 * Interleaved 1F1B (1F1B-I) has one layer a chunk: the models have two layers fewer than
 * p v (p ranks, v chunks each), as the first and last stage have one fewer. */
#include "tests/support/schedules.h"
#include "tests/test.h"

enum {
    NUM_COUNTS = 3
};

typedef enum method {
    ONE_F_ONE_B,
    INTERLEAVED,
    H1,
    H2,
    TWO_P, /* ZB-2p of the paper */
    ONE_P, /* ZB-1p: the paper gives the rates of ZB-H1 */
    NUM_METHODS
} method;

static const char *const method_names[] = {"1F1B",  "1F1B-I", "ZB-H1",
                                           "ZB-H2", "ZB-2p",  "ZB-1p"};

typedef struct model {
    const char *name;
    int num_layers, num_heads, hidden; /* paper's table 3; sequence length is 1024 */
    int num_ranks;
    int num_microbatches[NUM_COUNTS];
    double rate[ONE_P][NUM_COUNTS];
} model;

static const model models[] = {
    {"1.5B",
     22,
     24,
     2304,
     8,
     {24, 32, 64},
     {{.2431, .1985, .1240},
      {.1055, .0818, .0443},
      {.1585, .1242, .0674},
      {.1083, .0837, .0444},
      {.0433, .0039, .0026}}},
    {"6.2B",
     30,
     32,
     4096,
     8,
     {24, 32, 64},
     {{.2347, .1898, .1091},
      {.0808, .0628, .0320},
      {.1323, .1045, .0554},
      {.0698, .0559, .0294},
      {.0029, .0022, .0010}}},
    {"14.6B",
     46,
     40,
     5120,
     16,
     {48, 64, 128},
     {{.2552, .2082, .1251},
      {.1104, .0852, .0445},
      {.1397, .1088, .0576},
      {.0672, .0516, .0266},
      {.0066, .0054, .0028}}},
    {"28.3B",
     62,
     48,
     6144,
     32,
     {96, 128, 256},
     {{.2646, .2168, .1352},
      {.1493, .1164, .0624},
      {.1421, .1106, .0594},
      {.0641, .0490, .0257},
      {.0038, .0029, .0018}}},
};
#define NUM_MODELS (sizeof models / sizeof models[0])

static double published(const model *of, method which, int count)
{
    return of->rate[which == ONE_P ? H1 : which][count];
}

/* ---- one rate ---- */

/* Share of a layer's saved bytes that its weight gradients need: 32 s b h of s b (34 h +
 * 5 a s) bytes (section 2.3; sequence s, batch b, hidden h, a heads). */
static double weight_share(const model *of)
{
    return 32.0 * of->hidden / (34.0 * of->hidden + 5.0 * of->num_heads * 1024);
}

static ms_schedule_shape shape_of(const model *of, method which, int num_microbatches,
                                  ms_schedule_times times)
{
    static const ms_schedule_kind kinds[NUM_METHODS] = {
        MS_1F1B, MS_INTERLEAVED, MS_ZB_H1, MS_ZB_H2, MS_ZB_AUTO, MS_ZB_AUTO};
    ms_schedule_shape shape = plain_shape(kinds[which], of->num_ranks, num_microbatches);
    if (which == INTERLEAVED) {
        shape.virtual_stages = (of->num_layers + 2) / of->num_ranks;
        shape.group = of->num_ranks;
    }
    if (which == TWO_P || which == ONE_P) {
        shape.memory_limit = which == TWO_P ? 2 : 1;
        shape.weight_share = weight_share(of);
        shape.times = times;
    }
    return shape;
}

/* Bubble rate (cost - m (F+I+W)) / cost, where cost is the longest span of a rank from
 * first start to last end (section 5.3) and m the number of micro-batches. */
static double rate_of(const model *of, method which, int count, ms_schedule_times times)
{
    ms_arena *arena = ms_arena_open();
    int m = of->num_microbatches[count];
    ms_schedule_shape shape = shape_of(of, which, m, times);
    double work = m * (times.forward + times.backward_input + times.backward_weight);
    int v = shape.virtual_stages; /* a chunk has 1/v of a rank's layers */
    times.forward /= v;
    times.backward_input /= v;
    times.backward_weight /= v;
    double bubble = largest_span_bubble(made_schedule(arena, shape), times);
    ms_arena_close(arena);
    return bubble / (bubble + work);
}

/* ---- the fit ---- */

static const method fitted_methods[] = {ONE_F_ONE_B, H1, H2};
enum {
    NUM_FITTED = sizeof fitted_methods / sizeof fitted_methods[0]
};

/* Times with F = I = 1, x[0] = W and x[1] = T_comm (send). */
static ms_schedule_times times_of(const double x[2])
{
    return (ms_schedule_times){1, 1, x[0], x[1]};
}

static void residuals(const model *of, const double x[2], double r[NUM_FITTED])
{
    for (int i = 0; i < NUM_FITTED; i++)
        r[i] = rate_of(of, fitted_methods[i], 0, times_of(x)) -
               published(of, fitted_methods[i], 0);
}

/* Makes one Gauss-Newton step of the least-squares fit to the three rates; returns its
 * length. */
static double improve(const model *of, double x[2])
{
    const double h = 1e-5;
    double r[NUM_FITTED], a[2][NUM_FITTED];
    residuals(of, x, r);
    for (int k = 0; k < 2; k++) {
        double moved[2] = {x[0], x[1]};
        moved[k] += h;
        residuals(of, moved, a[k]);
        for (int i = 0; i < NUM_FITTED; i++)
            a[k][i] = (a[k][i] - r[i]) / h;
    }
    double n00 = 0, n01 = 0, n11 = 0, g0 = 0, g1 = 0;
    for (int i = 0; i < NUM_FITTED; i++) {
        n00 += a[0][i] * a[0][i];
        n01 += a[0][i] * a[1][i];
        n11 += a[1][i] * a[1][i];
        g0 += a[0][i] * r[i];
        g1 += a[1][i] * r[i];
    }
    double det = n00 * n11 - n01 * n01;
    double d0 = (n11 * g0 - n01 * g1) / det, d1 = (n00 * g1 - n01 * g0) / det;
    x[0] -= d0;
    x[1] -= d1;
    return fabs(d0) + fabs(d1);
}

static ms_schedule_times fit(const model *of)
{
    double x[2] = {0.6, 0.02};
    int steps = 0;
    while (improve(of, x) > 1e-10)
        if (++steps > 50)
            fail_msg("%s: the fit does not converge", of->name);
    assert_true(x[0] > 0 && x[0] < 1 && x[1] > 0);
    return times_of(x);
}

/* ---- the table ---- */

static void expect_rates(method which, int first_count, double tolerance)
{
    for (size_t i = 0; i < NUM_MODELS; i++) {
        ms_schedule_times times = fit(&models[i]);
        for (int k = first_count; k < NUM_COUNTS; k++) {
            double got = rate_of(&models[i], which, k, times);
            double want = published(&models[i], which, k);
            if (!(fabs(got - want) <= tolerance))
                fail_msg("%s %s m=%d: %.4f, published %.4f (%+.4f, tolerance %.3f)",
                         models[i].name, method_names[which],
                         models[i].num_microbatches[k], got, want, got - want, tolerance);
        }
    }
}

/* Two fitted times explain three published rates, which checks the schedules and their
 * simulation. */
static void two_ratios_explain_the_three_fitted_rates(void **state)
{
    (void)state;
    for (size_t i = 0; i < NUM_MODELS; i++) {
        ms_schedule_times times = fit(&models[i]);
        for (int k = 0; k < NUM_FITTED; k++) {
            method which = fitted_methods[k];
            double off =
                rate_of(&models[i], which, 0, times) - published(&models[i], which, 0);
            if (!(fabs(off) <= 0.001))
                fail_msg("%s %s: %+.5f after the fit", models[i].name,
                         method_names[which], off);
        }
    }
}

static void other_microbatch_counts_are_predicted(void **state)
{
    (void)state;
    for (int k = 0; k < NUM_FITTED; k++)
        expect_rates(fitted_methods[k], 1, 0.01);
}

static void interleaved_is_predicted(void **state)
{
    (void)state;
    expect_rates(INTERLEAVED, 0, 0.02);
}

static void zb_auto_with_twice_the_memory_is_predicted(void **state)
{
    (void)state;
    expect_rates(TWO_P, 0, 0.02);
}

static void zb_auto_with_the_memory_of_1f1b_is_as_good_as_zb_h1(void **state)
{
    (void)state;
    expect_rates(ONE_P, 0, 0.01);
}

/* Fitted rates depend on the sum of the forward's and the input gradient's time only. */
static void how_forward_and_inputs_share_their_sum_changes_no_fitted_rate(void **state)
{
    (void)state;
    ms_schedule_times even = fit(&models[0]);
    for (double share = 0.45; share < 0.56; share += 0.02) {
        ms_schedule_times times = even;
        times.forward = 2 * share;
        times.backward_input = 2 - times.forward;
        for (int k = 0; k < NUM_FITTED; k++)
            ASSERT_NEAR(rate_of(&models[0], fitted_methods[k], 1, times),
                        rate_of(&models[0], fitted_methods[k], 1, even), 1e-9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_ratios_explain_the_three_fitted_rates),
        cmocka_unit_test(other_microbatch_counts_are_predicted),
        cmocka_unit_test(interleaved_is_predicted),
        cmocka_unit_test(zb_auto_with_twice_the_memory_is_predicted),
        cmocka_unit_test(zb_auto_with_the_memory_of_1f1b_is_as_good_as_zb_h1),
        cmocka_unit_test(how_forward_and_inputs_share_their_sum_changes_no_fitted_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
