/* Fits laws to measured times: least squares of log(law) - log(measured), so that every
 * point counts by its relative error, whatever its size. Positive parameters, by their
 * logarithms; trust region of Levenberg and Marquardt (GSL, gsl_multifit_nlinear). */
#ifndef MS_COSTMODEL_FIT_H
#define MS_COSTMODEL_FIT_H

#include "base/diag.h"

#include <stdbool.h>
#include <stdint.h>

#define MS_FIT_PARAMETERS 6

/* Seconds, above 0, of a point (a row without its last column). */
typedef double ms_fit_law(void *state, const double *parameters, const double *point);

typedef struct ms_fit_parameter {
    const char *name;
    double start;
    /* 0 is a value too: it is dropped (0) when the points do not tell it from 0 */
    bool optional;
} ms_fit_parameter;

typedef struct ms_fit_problem {
    const char *name; /* for messages */
    ms_fit_law *law;
    void *state; /* of the law */
    int num_parameters;
    ms_fit_parameter parameters[MS_FIT_PARAMETERS];
    int num_points, num_columns;
    /* (num_points, num_columns); the last column is the measured seconds */
    const double *points;
    /* (num_points): from 0; points of one launch are resampled together */
    const int *launch;
    /* errors well above it count by their size, not its square (soft L1: a switch of
     * protocol is no noise); 0: all by squares */
    double soft_frac;
    uint64_t seed;
} ms_fit_problem;

typedef struct ms_fit_value {
    double value;
    double low, high; /* 90 % of the bootstrap; NaN with fewer than three launches */
    bool dropped;     /* cannot be told from 0 */
} ms_fit_value;

typedef struct ms_fit {
    int num_points, num_launches;
    ms_fit_value values[MS_FIT_PARAMETERS];
    /* of |law / measured - 1| */
    double median_error_frac, p90_error_frac, max_error_frac;
} ms_fit;

/* Optional parameters are dropped one after the other while the sum of squares grows by
 * less than its mean share times 4 (F test of one parameter at about 95 %). Intervals are
 * quantiles of 100 fits to launches drawn again with replacement (cluster bootstrap:
 * Efron and Tibshirani 1993, chapter 8), since launches differ more than points within
 * one. The same seed gives the same result. MS_EINPUT: fewer points than parameters;
 * MS_EIO: the fit does not converge. */
ms_status ms_fit_make(ms_ctx *cx, const ms_fit_problem *problem, ms_fit *out);

#endif
