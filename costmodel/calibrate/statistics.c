#include "costmodel/calibrate/statistics.h"

#include <gsl/gsl_rng.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdbool.h>

double ms_quantile(double *values, int num_values, double quantile_frac)
{
    if (num_values == 0)
        return (double)NAN;
    gsl_sort(values, 1, (size_t)num_values);
    return gsl_stats_quantile_from_sorted_data(values, 1, (size_t)num_values,
                                               quantile_frac);
}

static bool is_tie(double a, double b, double tie_frac)
{
    return fmax(a, b) <= fmin(a, b) * (1.0 + tie_frac);
}

/* Index of the lowest prediction not ruled out, or of the lowest if all are ruled out. */
static int first_choice(const double *predicted, const bool *ruled_out, int num_values)
{
    int first = 0;
    for (int i = 1; i < num_values; i++) {
        bool is_out = ruled_out != NULL && ruled_out[i];
        bool first_is_out = ruled_out != NULL && ruled_out[first];
        if (is_out == first_is_out ? predicted[i] < predicted[first] : first_is_out)
            first = i;
    }
    return first;
}

ms_rank_agreement ms_rank_agree(const double *measured, const double *predicted,
                                const bool *ruled_out, int num_values, double tie_frac)
{
    ms_rank_agreement out = {.kendall_tau = (double)NAN, .top1_regret = (double)NAN};
    if (num_values == 0)
        return out;
    long sum = 0;
    int best = 0, first = first_choice(predicted, ruled_out, num_values);
    for (int i = 0; i < num_values; i++) {
        best = measured[i] < measured[best] ? i : best;
        for (int j = 0; j < i; j++) {
            if (is_tie(measured[i], measured[j], tie_frac))
                continue;
            out.num_pairs++;
            if (predicted[i] != predicted[j])
                sum +=
                    (measured[i] < measured[j]) == (predicted[i] < predicted[j]) ? 1 : -1;
        }
    }
    if (out.num_pairs > 0)
        out.kendall_tau = (double)sum / (double)out.num_pairs;
    out.top1_regret = measured[first] / measured[best] - 1.0;
    return out;
}

double ms_intraclass_correlation(const double *values, const int *group_of,
                                 int num_values)
{
    double mean = 0.0, between = 0.0, within = 0.0, squares = 0.0;
    int num_groups = 0;
    for (int i = 0; i < num_values; i++)
        mean += values[i] / num_values;
    for (int first = 0, end; first < num_values; first = end) {
        double sum = 0.0;
        for (end = first; end < num_values && group_of[end] == group_of[first]; end++)
            sum += values[end];
        double size = end - first, own = sum / size;
        for (int i = first; i < end; i++)
            within += (values[i] - own) * (values[i] - own);
        between += size * (own - mean) * (own - mean);
        squares += size * size / num_values;
        num_groups++;
    }
    if (num_groups < 2 || num_groups == num_values)
        return (double)NAN;
    between /= num_groups - 1;
    within /= num_values - num_groups;
    double size = (num_values - squares) / (num_groups - 1);
    /* 0 / 0 = NaN if all values are equal */
    return (between - within) / (between + (size - 1.0) * within);
}

#define BOOTSTRAP_DRAWS 2000
#define BOOTSTRAP_SEED  1

ms_mean_interval ms_bootstrap_mean(const double *values, int num_values)
{
    double means[BOOTSTRAP_DRAWS];
    if (num_values < 2)
        return (ms_mean_interval){(double)NAN, (double)NAN};
    gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
    gsl_rng_set(rng, BOOTSTRAP_SEED);
    for (int draw = 0; draw < BOOTSTRAP_DRAWS; draw++) {
        double sum = 0.0;
        for (int i = 0; i < num_values; i++)
            sum += values[gsl_rng_uniform_int(rng, (unsigned long)num_values)];
        means[draw] = sum / num_values;
    }
    gsl_rng_free(rng);
    double low = ms_quantile(means, BOOTSTRAP_DRAWS, 0.05);
    return (ms_mean_interval){low, ms_quantile(means, BOOTSTRAP_DRAWS, 0.95)};
}
