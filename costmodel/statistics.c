#include "costmodel/statistics.h"

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

ms_rank_agreement ms_rank_agree(const double *measured, const double *predicted,
                                int num_values, double tie_frac)
{
    ms_rank_agreement out = {.kendall_tau = (double)NAN, .top1_regret = (double)NAN};
    if (num_values == 0)
        return out;
    long sum = 0;
    int first = 0, best = 0;
    for (int i = 0; i < num_values; i++) {
        first = predicted[i] < predicted[first] ? i : first;
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
