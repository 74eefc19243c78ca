#include "sim/validate/pubrun_measurement.h"

#include <math.h>

const char *const ms_measurement_names[] = {"step time", "peak memory", NULL};

double ms_pubrun_measured(const ms_pubrun *run, ms_measurement measurement)
{
    return measurement == MS_MEASURED_PEAK ? run->measured_peak_bytes
                                           : run->measured_step_s;
}

double ms_score_predicted(const ms_pubrun_score *score, ms_measurement measurement)
{
    return measurement == MS_MEASURED_PEAK ? score->peak_bytes : score->step_s;
}

double ms_score_error_frac(const ms_pubrun_score *score, ms_measurement measurement)
{
    return measurement == MS_MEASURED_PEAK ? score->peak_error_frac
                                           : score->step_error_frac;
}

ms_score_interval ms_score_interval_of(ms_pubrun_score *score, ms_measurement measurement)
{
    if (measurement == MS_MEASURED_PEAK)
        return (ms_score_interval){&score->peak_interval_low_bytes,
                                   &score->peak_interval_high_bytes};
    return (ms_score_interval){&score->step_low_s, &score->step_high_s};
}

double ms_score_is_covered(const ms_pubrun *run, const ms_pubrun_score *score,
                           ms_measurement measurement)
{
    ms_pubrun_score copy = *score;
    ms_score_interval interval = ms_score_interval_of(&copy, measurement);
    double measured = ms_pubrun_measured(run, measurement);
    if (isnan(measured) || isnan(*interval.low) || isnan(*interval.high))
        return (double)NAN;
    return *interval.low <= measured && measured <= *interval.high;
}
