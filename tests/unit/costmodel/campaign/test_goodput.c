/* Goodput and checkpoint intervals against published values and a Monte Carlo of the
 * process that the formulas describe. */
#include "costmodel/campaign/goodput.h"

#include "base/number.h"
#include "base/rng.h"
#include "tests/test.h"

#include <math.h>

#define MINUTE_S     60.0
#define HOUR_S       3600.0
#define NUM_SETTINGS TEST_CASES(200, 40)

/* Intervals of figures' captions, checkpoints of 5 and restarts of 10 minutes; J. T. Daly,
 * A higher order estimate of the optimum checkpoint interval, 2006
 * (doi.org/10.1016/j.future.2004.11.016). Exact optima calculated apart. */
static void intervals_are_those_of_daly(void **state)
{
    (void)state;
    static const struct {
        double mean_s, captioned_s, best_s;
    } cases[] = {{24 * HOUR_S, 117 * MINUTE_S, 116.69 * MINUTE_S},
                 {6 * HOUR_S, 57 * MINUTE_S, 56.71 * MINUTE_S},
                 {15 * MINUTE_S, 9.1 * MINUTE_S, 9.17 * MINUTE_S}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_interruptions job = {cases[i].mean_s, 5 * MINUTE_S, 10 * MINUTE_S};
        ASSERT_NEAR(ms_daly_interval_s(&job), cases[i].captioned_s, 0.01);
        ASSERT_NEAR(ms_best_interval_s(&job), cases[i].best_s, 0.001);
    }
    ms_interruptions often = {MINUTE_S, 3 * MINUTE_S, 0};
    ASSERT_NEAR(ms_daly_interval_s(&often), MINUTE_S, 1e-15);
}

/* Jobs of 6.5 and 3.79 interruptions in 1,000 node-days of 8 GPUs: Meta's RSC-1 (Kokolis
 * et al., HPCA 2025) and Llama 3 405B's (arxiv.org/abs/2407.21783, table 5), with the best
 * intervals and goodputs of the formulas, calculated apart. */
static void goodputs_are_as_calculated_apart(void **state)
{
    (void)state;
    static const struct {
        double rate, gpus, checkpoint_s, restart_s, interval_s, frac;
    } cases[] = {
        {6.50, 512, 20, 300, 2869, 0.985},   {6.50, 4096, 60, 600, 1725, 0.912},
        {6.50, 16384, 20, 300, 496, 0.882},  {6.50, 16384, 60, 600, 843, 0.793},
        {3.79, 16384, 20, 300, 654, 0.916},  {3.79, 16384, 60, 600, 1116, 0.853},
        {6.50, 100000, 20, 300, 193, 0.617}, {3.79, 100000, 60, 600, 429, 0.551}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double nodes = cases[i].gpus / 8.0;
        ms_interruptions job = {1000.0 * 24.0 * HOUR_S / (cases[i].rate * nodes),
                                cases[i].checkpoint_s, cases[i].restart_s};
        double interval_s = ms_best_interval_s(&job);
        assert_true(fabs(interval_s - cases[i].interval_s) < 0.6);
        assert_true(fabs(ms_goodput_frac(&job, interval_s) - cases[i].frac) < 6e-4);
    }
}

/* A random number between two, evenly in its logarithm. */
static double between(ms_rng *rng, double low, double high)
{
    return low * pow(high / low, ms_rng_uniform(rng));
}

static ms_interruptions random_job(ms_rng *rng)
{
    ms_interruptions job = {.mean_s = between(rng, 10 * MINUTE_S, 100 * HOUR_S),
                            .checkpoint_s = between(rng, 1, 900),
                            .restart_s = between(rng, 10, HOUR_S)};
    return job;
}

/* Enough intervals that the mean's standard error is below a third of a percent. */
static double work_of(const ms_interruptions *job, double interval_s)
{
    double busy_s = interval_s + job->checkpoint_s;
    double gaps = 5e4 * (1.0 + (busy_s + job->restart_s) / job->mean_s);
    return ms_max(1e5 * interval_s, gaps * job->mean_s);
}

static void goodputs_are_those_of_simulated_jobs(void **state)
{
    (void)state;
    ms_rng rng = ms_rng_seed(1);
    int num_compared = 0;
    double worst = 0.0;
    while (num_compared < NUM_SETTINGS) {
        ms_interruptions job = random_job(&rng);
        double interval_s = ms_best_interval_s(&job) * between(&rng, 0.3, 3.0);
        double frac = ms_goodput_frac(&job, interval_s);
        if (frac < 0.1)
            continue; /* a job that hardly advances takes long to simulate */
        num_compared++;
        ms_simulated_job simulated =
            ms_simulate_job(&job, interval_s, work_of(&job, interval_s), num_compared);
        worst = ms_max(worst, fabs(simulated.goodput_frac / frac - 1.0));
        assert_true(ms_goodput_frac(&job, ms_best_interval_s(&job)) >= frac);
    }
    print_message("  worst of %d settings: %.2f %%\n", num_compared, 100.0 * worst);
    assert_true(worst < 0.01);
}

static void limits_are_finite(void **state)
{
    (void)state;
    ms_interruptions never = {INFINITY, 60, 600};
    assert_true(isinf(ms_best_interval_s(&never)));
    ASSERT_NEAR(ms_goodput_frac(&never, INFINITY), 1.0, 0);
    ASSERT_NEAR(ms_goodput_frac(&never, 540), 0.9, 1e-15);
    ms_simulated_job whole = ms_simulate_job(&never, INFINITY, 1000, 1);
    ASSERT_NEAR(whole.elapsed_s, 1060, 1e-12);
    ASSERT_INT(whole.num_interruptions, 0);
    ms_interruptions free_checkpoints = {HOUR_S, 0, 0};
    ASSERT_NEAR(ms_best_interval_s(&free_checkpoints), 0, 0);
    ASSERT_NEAR(ms_goodput_frac(&free_checkpoints, 1.0), 1.0, 2e-4);
    /* Young's formula is exact where little is saved, and continues Lambert's */
    ms_interruptions rare = {1e9 * HOUR_S, 2e3, 600};
    ASSERT_NEAR(ms_best_interval_s(&rare) / ms_young_interval_s(&rare), 1.0, 1e-4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(intervals_are_those_of_daly),
        cmocka_unit_test(goodputs_are_as_calculated_apart),
        cmocka_unit_test(goodputs_are_those_of_simulated_jobs),
        cmocka_unit_test(limits_are_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
