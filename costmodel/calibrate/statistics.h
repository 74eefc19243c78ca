/* Robust statistics of prediction errors. Undefined values are NaN. */
#ifndef MS_COSTMODEL_CALIBRATE_STATISTICS_H
#define MS_COSTMODEL_CALIBRATE_STATISTICS_H

#include <stdbool.h>

/* The quantile by linear interpolation between order statistics (position q (n - 1),
 * Hyndman and Fan 1996, definition 7). Sorts `values`; NaN if there are none. */
double ms_quantile(double *values, int num_values, double quantile_frac);

/* Agreement of the predicted with the measured ranking of alternatives. */
typedef struct ms_rank_agreement {
    long num_pairs;     /* pairs whose measurements differ enough to count */
    double kendall_tau; /* (concordant - discordant) / num_pairs; NaN without pairs */
    /* Measured cost of the first choice (the lowest prediction among those not ruled out)
     * relative to the lowest measured cost, minus 1. */
    double top1_regret;
} ms_rank_agreement;

/* Compares rankings. `measured` and `predicted` are positive costs of the same
 * alternatives; the predictor does not choose those that are `ruled_out` (NULL, or all:
 * it may choose any). Pairs whose larger measured cost exceeds the smaller one by at most
 * `tie_frac` are not counted; equal predictions of a counted pair are neither concordant
 * nor discordant. Source: Kendall 1938, with ties of the measurement left out. */
ms_rank_agreement ms_rank_agree(const double *measured, const double *predicted,
                                const bool *ruled_out, int num_values, double tie_frac);

/* Intraclass correlation: the share of the values' variance that lies between groups
 * (one-way analysis of variance with groups of unequal size, Donner 1986, formula 2.1);
 * below 0 where groups differ less than by chance. `group_of` ascends from 0. NaN with
 * fewer than two groups, or without two values in one. */
double ms_intraclass_correlation(const double *values, const int *group_of,
                                 int num_values);

/* Confidence interval of a mean. */
typedef struct ms_mean_interval {
    double low, high; /* 5th and 95th percentile */
} ms_mean_interval;

/* Bootstrap interval of the mean of values resampled with replacement (Efron 1979; GSL's
 * generator with a fixed seed); deterministic. NaN with fewer than two values. */
ms_mean_interval ms_bootstrap_mean(const double *values, int num_values);

#endif
