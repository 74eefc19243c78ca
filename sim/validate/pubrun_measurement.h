/* Access to a published run's measurement, step time or peak memory, and to its
 * prediction in a score, so that fits and intervals handle both alike. */
#ifndef MS_SIM_VALIDATE_PUBRUN_MEASUREMENT_H
#define MS_SIM_VALIDATE_PUBRUN_MEASUREMENT_H

#include "costmodel/calibrate/error_spread.h"
#include "sim/validate/validation.h"

typedef enum ms_measurement {
    MS_MEASURED_STEP, /* seconds of a step */
    MS_MEASURED_PEAK, /* peak bytes of the rank that was measured */
    MS_NUM_MEASUREMENTS
} ms_measurement;
extern const char *const ms_measurement_names[]; /* "step time" "peak memory", NULL */

/* The run's measurement, s or bytes; NaN if not measured. */
double ms_pubrun_measured(const ms_pubrun *run, ms_measurement measurement);
double ms_score_predicted(const ms_pubrun_score *score, ms_measurement measurement);
/* Relative error (predicted - measured) / measured; NaN if either is not known. */
double ms_score_error_frac(const ms_pubrun_score *score, ms_measurement measurement);

/* Pointers to both ends of a measurement's interval in a score, seconds or bytes. */
typedef struct ms_score_interval {
    double *low, *high; /* *low and *high are NaN if there is no interval */
} ms_score_interval;
ms_score_interval ms_score_interval_of(ms_pubrun_score *score,
                                       ms_measurement measurement);

/* 1 if the measurement lies in its interval, 0 if not; NaN if there is no interval or
 * measurement. */
double ms_score_is_covered(const ms_pubrun *run, const ms_pubrun_score *score,
                           ms_measurement measurement);

#endif
