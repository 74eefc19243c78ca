/* Quantiles, rank correlation and confidence intervals against values computed by
 * hand. */
#include "costmodel/calibrate/statistics.h"

#include "tests/test.h"

static void quantiles_interpolate_between_order_statistics(void **state)
{
    (void)state;
    double values[] = {4, 1, 3, 2};
    ASSERT_NEAR(ms_quantile(values, 4, 0.5), 2.5, 1e-15);
    /* sorted values at positions 0 .. 3: the 0.9 quantile is at position 2.7 */
    ASSERT_NEAR(ms_quantile(values, 4, 0.9), 3.7, 1e-15);
    ASSERT_NEAR(ms_quantile(values, 4, 0.0), 1.0, 1e-15);
    ASSERT_NEAR(ms_quantile(values, 4, 1.0), 4.0, 1e-15);
    ASSERT_NEAR(values[0], 1.0, 0); /* the values were sorted in place */
    double odd[] = {9, -5, 2};
    ASSERT_NEAR(ms_quantile(odd, 3, 0.5), 2.0, 1e-15);
    double one[] = {7};
    ASSERT_NEAR(ms_quantile(one, 1, 0.9), 7.0, 1e-15);
    assert_true(isnan(ms_quantile(NULL, 0, 0.5)));
}

static void tau_counts_pairs_in_order_less_pairs_out_of_order(void **state)
{
    (void)state;
    const double measured[] = {1, 2, 3, 4};
    const double same[] = {10, 20, 30, 40}, reverse[] = {4, 3, 2, 1};
    const double one_swap[] = {1, 3, 2, 4}; /* 5 of 6 pairs are in the same order */
    ASSERT_NEAR(ms_rank_agree(measured, same, NULL, 4, 0.05).kendall_tau, 1.0, 0);
    ASSERT_NEAR(ms_rank_agree(measured, reverse, NULL, 4, 0.05).kendall_tau, -1.0, 0);
    ASSERT_NEAR(ms_rank_agree(measured, one_swap, NULL, 4, 0.05).kendall_tau, 4.0 / 6.0,
                1e-15);
    ASSERT_NEAR(ms_rank_agree(measured, reverse, NULL, 4, 0.05).top1_regret, 3.0, 1e-15);
    ASSERT_NEAR(ms_rank_agree(measured, one_swap, NULL, 4, 0.05).top1_regret, 0.0, 0);
}

static void the_first_choice_is_none_that_is_ruled_out(void **state)
{
    (void)state;
    const double measured[] = {2, 1, 4}, predicted[] = {1, 2, 3};
    const bool first[] = {true, false, false}, two[] = {true, true, false};
    const bool all[] = {true, true, true};
    ASSERT_NEAR(ms_rank_agree(measured, predicted, NULL, 3, 0).top1_regret, 1.0, 0);
    ASSERT_NEAR(ms_rank_agree(measured, predicted, first, 3, 0).top1_regret, 0.0, 0);
    ASSERT_NEAR(ms_rank_agree(measured, predicted, two, 3, 0).top1_regret, 3.0, 0);
    ASSERT_NEAR(ms_rank_agree(measured, predicted, all, 3, 0).top1_regret, 1.0, 0);
    ASSERT_NEAR(ms_rank_agree(measured, predicted, all, 3, 0).kendall_tau,
                ms_rank_agree(measured, predicted, NULL, 3, 0).kendall_tau, 0);
}

static void near_measurements_are_ties_and_not_counted(void **state)
{
    (void)state;
    const double measured[] = {1.00, 1.04, 2.00};
    const double predicted[] = {1.5, 1.2, 3.0};
    ms_rank_agreement agreement = ms_rank_agree(measured, predicted, NULL, 3, 0.05);
    ASSERT_INT(agreement.num_pairs, 2);
    ASSERT_NEAR(agreement.kendall_tau, 1.0, 0);
    ASSERT_NEAR(agreement.top1_regret, 0.04, 1e-12);
    agreement = ms_rank_agree(measured, predicted, NULL, 3, 0.03);
    ASSERT_INT(agreement.num_pairs, 3);
    ASSERT_NEAR(agreement.kendall_tau, 1.0 / 3.0, 1e-15);
}

static void equal_predictions_are_neither_right_nor_wrong(void **state)
{
    (void)state;
    const double measured[] = {1, 2, 3};
    const double predicted[] = {5, 5, 6};
    ASSERT_NEAR(ms_rank_agree(measured, predicted, NULL, 3, 0.05).kendall_tau, 2.0 / 3.0,
                1e-15);
}

static void without_pairs_tau_is_undefined(void **state)
{
    (void)state;
    const double measured[] = {1.0, 1.01};
    const double predicted[] = {1, 2};
    ms_rank_agreement agreement = ms_rank_agree(measured, predicted, NULL, 2, 0.05);
    assert_true(isnan(agreement.kendall_tau));
    ASSERT_NEAR(agreement.top1_regret, 0.0, 0);
    assert_true(isnan(ms_rank_agree(NULL, NULL, NULL, 0, 0.05).top1_regret));
}

/* Intraclass correlation of two groups of two values, by hand: mean square between
 * groups 4 x 1 / 1 = 4, within groups (0.5 + 0.5) / 2 = 0.5, group size 2: (4 - 0.5) /
 * (4 + 0.5). */
static void groups_share_variance(void **state)
{
    (void)state;
    const double values[] = {0.5, 1.5, 2.5, 3.5}, alike[] = {1, 2, 1, 2};
    const int group_of[] = {0, 0, 1, 1}, apart[] = {0, 1, 2, 3}, one[] = {0, 0, 0, 0};
    ASSERT_NEAR(ms_intraclass_correlation(values, group_of, 4), 3.5 / 4.5, 1e-12);
    ASSERT_NEAR(ms_intraclass_correlation(alike, group_of, 4), -1.0, 1e-12);
    assert_true(isnan(ms_intraclass_correlation(values, apart, 4)));
    assert_true(isnan(ms_intraclass_correlation(values, one, 4)));
}

/* The 90 % bootstrap interval of the mean of 50 zeros and 50 ones: the mean's standard
 * error is 0.05, and the interval ends 1.645 standard errors below and above 0.5. */
static void means_drawn_again_spread_as_they_should(void **state)
{
    (void)state;
    double values[100];
    for (int i = 0; i < 100; i++)
        values[i] = i % 2;
    ms_mean_interval got = ms_bootstrap_mean(values, 100),
                     again = ms_bootstrap_mean(values, 100);
    ASSERT_NEAR(0.5 - got.low, 1.645 * 0.05, 0.1);
    ASSERT_NEAR(got.high - 0.5, 1.645 * 0.05, 0.1);
    ASSERT_NEAR(again.low, got.low, 0.0);
    ASSERT_NEAR(again.high, got.high, 0.0);
    assert_true(isnan(ms_bootstrap_mean(values, 1).low));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_interpolate_between_order_statistics),
        cmocka_unit_test(the_first_choice_is_none_that_is_ruled_out),
        cmocka_unit_test(tau_counts_pairs_in_order_less_pairs_out_of_order),
        cmocka_unit_test(near_measurements_are_ties_and_not_counted),
        cmocka_unit_test(equal_predictions_are_neither_right_nor_wrong),
        cmocka_unit_test(without_pairs_tau_is_undefined),
        cmocka_unit_test(groups_share_variance),
        cmocka_unit_test(means_drawn_again_spread_as_they_should),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
