/* What is measured of a published run, and what a score says of it: one of the two at a
 * time, so that fits and intervals are made of either alike. */
#ifndef MS_SIM_RUN_MEASUREMENT_H
#define MS_SIM_RUN_MEASUREMENT_H

#include "costmodel/error_spread.h"
#include "sim/validation.h"

typedef enum ms_measurement {
    MS_MEASURED_STEP, /* seconds of a step */
    MS_MEASURED_PEAK, /* bytes at the peak of the rank that was measured */
    MS_NUM_MEASUREMENTS
} ms_measurement;
extern const char *const ms_measurement_names[]; /* "step time" "peak memory", NULL */

/* In its unit; NaN: not measured. */
double ms_run_measured(const ms_published_run *run, ms_measurement measurement);
double ms_score_predicted(const ms_run_score *score, ms_measurement measurement);
/* (predicted - measured) / measured; NaN: not both are known. */
double ms_score_error_frac(const ms_run_score *score, ms_measurement measurement);

/* The ends of its interval in the score, in the unit of the measurement. */
typedef struct ms_score_interval {
    double *low, *high; /* NaN: none */
} ms_score_interval;
ms_score_interval ms_score_interval_of(ms_run_score *score, ms_measurement measurement);

/* 1: the measurement lies in its interval; 0: not; NaN: it has none. */
double ms_score_is_covered(const ms_published_run *run, const ms_run_score *score,
                           ms_measurement measurement);

/* The tables of one measurement, as ms_validation_print has them; those of the order of
 * layouts stand with step times. */
void ms_validation_print_of(FILE *out, ms_arena *arena, const ms_validation *validation,
                            ms_measurement measurement);

#endif
