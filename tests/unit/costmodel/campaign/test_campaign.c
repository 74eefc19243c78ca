/* A campaign reckoned by hand, and terms that are not known. */
#include "costmodel/campaign/campaign.h"

#include "base/rng.h"
#include "tests/test.h"

#include <math.h>

static const ms_campaign_step step = {.step_s = 10,
                                      .step_low_s = 9,
                                      .step_high_s = 12,
                                      .tokens = 4e6,
                                      .checkpoint_bytes = 1e12,
                                      .gpus = 1024,
                                      .gpus_per_node = 8};

static ms_campaign_terms terms_of_hand(void)
{
    return (ms_campaign_terms){.tokens = 1e12,
                               .gpu_hour_price = 2,
                               .gpu_power_w = 1000,
                               .pue = 1.2,
                               .co2_kg_per_kwh = 0.4,
                               .gpu_mean_s = 1024 * 36000.0,
                               .restart_s = 600,
                               .repair_s = 72000,
                               .write_bytes_per_s = 5e10,
                               .checkpoint_s = (double)NAN};
}

static void a_campaign_is_reckoned_by_hand(void **state)
{
    (void)state;
    ms_campaign_terms terms = terms_of_hand();
    ms_campaign c = ms_campaign_of(&terms, &step);
    ASSERT_NEAR(c.num_steps, 250000, 0);
    ASSERT_NEAR(c.useful_s, 2.5e6, 0);
    ASSERT_NEAR(c.job.mean_s, 36000, 1e-15);
    ASSERT_NEAR(c.job.checkpoint_s, 20, 1e-15);
    /* sqrt(2 * 20 * 36000) = 1200, less a third of the checkpoint: 1193 s */
    ASSERT_NEAR(c.interval_steps, 119, 0);
    /* exp(-1/60) * (1190 / 36000) / expm1(1210 / 36000) */
    ASSERT_NEAR(c.goodput_frac, 0.95106, 1e-4);
    ASSERT_NEAR(c.elapsed_s, 2.5e6 / c.goodput_frac, 1e-15);
    ASSERT_NEAR(c.elapsed_low_s / c.elapsed_s, 0.9, 1e-12);
    ASSERT_NEAR(c.elapsed_high_s / c.elapsed_s, 1.2, 1e-12);
    ASSERT_NEAR(c.num_interruptions, c.elapsed_s / 36000, 1e-15);
    /* two nodes fail in the time of a repair: 5 or more in 5.3 %, 6 or more in 1.7 % */
    ASSERT_NEAR(c.spare_nodes, 5, 0);
    ASSERT_NEAR(c.gpu_hours, (1024 + 40) * c.elapsed_s / 3600, 1e-15);
    ASSERT_NEAR(c.cost, 2 * c.gpu_hours, 1e-15);
    ASSERT_NEAR(c.energy_kwh, 1024 * 1.2 * c.elapsed_s / 3600, 1e-15);
    ASSERT_NEAR(c.co2_kg, 0.4 * c.energy_kwh, 1e-15);
}

static void the_best_number_of_steps_is_best(void **state)
{
    (void)state;
    ms_campaign_terms terms = terms_of_hand();
    ms_campaign c = ms_campaign_of(&terms, &step);
    for (double steps = 1; steps < 1000; steps++)
        assert_true(ms_goodput_frac(&c.job, steps * step.step_s) <= c.goodput_frac);
}

static void checkpoints_wait_until_the_previous_one_is_written(void **state)
{
    (void)state;
    ms_campaign_terms terms = terms_of_hand();
    terms.checkpoint_s = 1;
    terms.write_bytes_per_s = 1e9; /* 1,000 s, and the best interval is 268 s */
    ms_campaign c = ms_campaign_of(&terms, &step);
    ASSERT_NEAR(c.interval_steps, 100, 0);
    ASSERT_NEAR(c.job.checkpoint_s, 1, 0);
    terms.write_bytes_per_s = 1e12;
    ASSERT_NEAR(ms_campaign_of(&terms, &step).interval_steps, 27, 0);
}

/* A slower step never ends a campaign earlier, which certificates of objectives rely on
 * (docs/formulas 14.3): steps that grow little by little, with checkpoints that stop the
 * job, and with those that must wait for the writing of the previous one. */
static void a_longer_step_never_ends_earlier(void **state)
{
    (void)state;
    int num_waiting = 0;
    for (int seed = 0; seed < 200; seed++) {
        ms_rng random = ms_rng_seed((unsigned long)seed);
        ms_campaign_terms terms = terms_of_hand();
        ms_campaign_step s = step;
        terms.gpu_mean_s = 1024 * pow(10.0, 3.0 + 3.0 * ms_rng_uniform(&random));
        terms.write_bytes_per_s = pow(10.0, 8.5 + 2.5 * ms_rng_uniform(&random));
        if (seed % 2 == 1)
            terms.checkpoint_s = pow(10.0, 1.5 * ms_rng_uniform(&random));
        s.step_s = pow(10.0, 2.0 * ms_rng_uniform(&random));
        double last_s = 0.0;
        for (int i = 0; i < 300; i++) {
            ms_campaign c = ms_campaign_of(&terms, &s);
            if (!(c.elapsed_s >= last_s * (1.0 - 1e-13)))
                fail_msg("seed %d: %.17g s with a step of %.17g s, after %.17g s", seed,
                         c.elapsed_s, s.step_s, last_s);
            double written_s = s.checkpoint_bytes / terms.write_bytes_per_s;
            num_waiting += c.interval_steps * s.step_s < written_s + s.step_s;
            last_s = c.elapsed_s;
            s.step_s *= 1.0 + 2e-3 * ms_rng_uniform(&random);
        }
    }
    assert_true(num_waiting > 1000);
}

static void a_step_longer_than_the_interval_is_not_cut(void **state)
{
    (void)state;
    ms_campaign_terms terms = terms_of_hand();
    terms.gpu_mean_s = 1024 * 60.0;
    terms.checkpoint_s = 0.1;
    terms.write_bytes_per_s = 1e12;
    ASSERT_NEAR(ms_campaign_of(&terms, &step).interval_steps, 1, 0);
}

static void what_depends_on_unknown_terms_is_unknown(void **state)
{
    (void)state;
    ms_campaign_terms terms = terms_of_hand();
    terms.gpu_hour_price = terms.gpu_power_w = terms.repair_s = (double)NAN;
    ms_campaign c = ms_campaign_of(&terms, &step);
    assert_true(isnan(c.cost) && isnan(c.energy_kwh) && isnan(c.co2_kg) &&
                isnan(c.spare_nodes));
    ASSERT_NEAR(c.gpu_hours, 1024 * c.elapsed_s / 3600, 1e-15);
}

/* Probability of at most `num` by summing Poisson's terms. */
static double poisson_sum(double num, double mean)
{
    double term = exp(-mean), sum = term;
    for (double k = 1.0; k <= num; k++) {
        term *= mean / k;
        sum += term;
    }
    return sum;
}

static void spare_nodes_are_the_percentile_also_beyond_the_job(void **state)
{
    (void)state;
    ms_campaign_terms terms = terms_of_hand();
    for (double mean = 0.01; mean < 400.0; mean *= 1.7) {
        terms.repair_s = mean * terms.gpu_mean_s / 1024;
        double spare = ms_campaign_of(&terms, &step).spare_nodes;
        assert_true(poisson_sum(spare, mean) >= 0.95);
        assert_true(spare == 0.0 || poisson_sum(spare - 1.0, mean) < 0.95);
    }
    terms.repair_s = 1e6 * terms.gpu_mean_s / 1024; /* the end of exact percentiles */
    double exact = ms_campaign_of(&terms, &step).spare_nodes;
    terms.repair_s *= 1.0 + 1e-9;
    ASSERT_NEAR(ms_campaign_of(&terms, &step).spare_nodes, exact, 2e-6);
    terms.repair_s *= 1e6;
    ASSERT_NEAR(ms_campaign_of(&terms, &step).spare_nodes, 1e12 + 1.6449e6, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_campaign_is_reckoned_by_hand),
        cmocka_unit_test(the_best_number_of_steps_is_best),
        cmocka_unit_test(checkpoints_wait_until_the_previous_one_is_written),
        cmocka_unit_test(a_longer_step_never_ends_earlier),
        cmocka_unit_test(a_step_longer_than_the_interval_is_not_cut),
        cmocka_unit_test(what_depends_on_unknown_terms_is_unknown),
        cmocka_unit_test(spare_nodes_are_the_percentile_also_beyond_the_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
