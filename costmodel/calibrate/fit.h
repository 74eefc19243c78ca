/* Fits cost laws to measured times by least squares of log(law) - log(measured), that is,
 * by relative errors. Parameters are positive and fitted as logarithms, by the trust
 * region of Levenberg and Marquardt (GSL, gsl_multifit_nlinear). */
#ifndef MS_COSTMODEL_CALIBRATE_FIT_H
#define MS_COSTMODEL_CALIBRATE_FIT_H

#include "base/diag.h"

#include <stdbool.h>
#include <stdint.h>

#define MS_FIT_PARAMETERS 6

/* A cost law: seconds (> 0) predicted for a point, a row of sizes such as m, n, k. */
typedef double ms_fit_law(void *state, const double *parameters, const double *point);

typedef struct ms_fit_parameter {
    const char *name;
    double start;
    bool optional; /* whether a parameter indistinguishable from 0 is set to 0 */
} ms_fit_parameter;

typedef struct ms_fit_problem {
    const char *name; /* name in messages */
    ms_fit_law *law;
    void *state; /* passed to the cost law */
    int num_parameters;
    ms_fit_parameter parameters[MS_FIT_PARAMETERS];
    int num_points, num_columns;
    /* (num_points, num_columns) rows of sizes; the last column is the measured seconds */
    const double *points;
    const int *launch; /* (num_points): launch of the measuring program, from 0 */
    /* Relative errors far above this one count linearly, not squared (soft L1, because a
     * switch of protocol is no noise); 0: all count squared. */
    double soft_frac;
    uint64_t seed;
} ms_fit_problem;

typedef struct ms_fit_value {
    double value;
    double low, high; /* 90 % bootstrap interval; NaN with fewer than three launches */
    bool dropped;     /* the parameter is indistinguishable from 0, and set to 0 */
} ms_fit_value;

typedef struct ms_fit {
    int num_points, num_launches;
    ms_fit_value values[MS_FIT_PARAMETERS];
    /* quantiles of |predicted / measured - 1| */
    double median_error_frac, p90_error_frac, max_error_frac;
    bool stopped; /* the solver reached its limit of iterations before it converged */
} ms_fit;

/* Fits a cost law to points. Optional parameters are set to 0, one after the other, while
 * that raises the sum of squared errors by at most 4 times its mean per degree of freedom
 * (F test of one parameter at about 95 %). Intervals are quantiles of 100 fits to
 * launches drawn with replacement (cluster bootstrap: Efron and Tibshirani 1993, chapter
 * 8), since launches differ more than points of one. Deterministic for a seed. MS_EINPUT
 * if there are no more points than parameters; MS_EIO if the solver fails. */
ms_status ms_fit_make(ms_ctx *cx, const ms_fit_problem *problem, ms_fit *out);

/* Residual whose square is the soft L1 loss c^2 (2 sqrt(1 + (r/c)^2) - 2) of an error r:
 * about r^2 for small r and 2 c |r| for large r. c = 0: r itself. */
double ms_soft_l1_residual(double r, double c);

#endif
