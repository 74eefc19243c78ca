/* Robust statistics of prediction errors. Undefined values are NaN. */
#ifndef MS_COSTMODEL_CALIBRATE_STATISTICS_H
#define MS_COSTMODEL_CALIBRATE_STATISTICS_H

#include <stdbool.h>

/* Quantile of values by linear interpolation between order statistics (Hyndman and Fan
 * 1996, definition 7). Sorts `values`; NaN if there are none. */
double ms_quantile(double *values, int num_values, double quantile_frac);

/* Agreement of a predicted with the measured ranking of alternatives by cost. */
typedef struct ms_rank_agreement {
    long num_pairs;     /* pairs with measured costs further apart than `tie_frac` */
    double kendall_tau; /* (concordant - discordant) pairs / num_pairs; NaN: no pairs */
    /* (measured cost of the predictor's choice) / (lowest measured cost) - 1 */
    double top1_regret;
} ms_rank_agreement;

/* Compares the rankings by `measured` and by `predicted`, positive costs of the same
 * alternatives. The predictor chooses the lowest prediction that is not `ruled_out`
 * (NULL, or all ruled out: the lowest of all). Pairs whose measured costs differ by at
 * most the fraction `tie_frac` are left out; pairs with equal predictions are neither
 * concordant nor discordant. Source: Kendall 1938, without ties in measurement. */
ms_rank_agreement ms_rank_agree(const double *measured, const double *predicted,
                                const bool *ruled_out, int num_values, double tie_frac);

/* Intraclass correlation: the share of the values' variance that lies between groups
 * (one-way analysis of variance with groups of unequal size, Donner 1986, formula 2.1);
 * below 0 where groups differ less than by chance. `group_of`: group of each value,
 * ascending from 0. NaN with fewer than two groups or without two values in one. */
double ms_intraclass_correlation(const double *values, const int *group_of,
                                 int num_values);

/* Confidence interval of a mean. */
typedef struct ms_mean_interval {
    double low, high; /* 5th and 95th percentile of the mean */
} ms_mean_interval;

/* Bootstrap interval of the mean of values resampled with replacement (Efron 1979; GSL's
 * generator with a fixed seed); deterministic. NaN with fewer than two values. */
ms_mean_interval ms_bootstrap_mean(const double *values, int num_values);

#endif
