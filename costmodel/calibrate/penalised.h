/* Penalised least squares: parameters that are known beforehand, each with a width, are
 * corrected by few measurements. A parameter is written as its distance x from what is
 * known beforehand, in widths, so that the sum of squares is
 *     sum_i r_i(x)^2 + sum_j x_j^2
 * with residuals r_i in units of the measurements' own errors. The minimum is the most
 * probable x of normal errors and a normal prior (MAP estimate: Tarantola 2005, Inverse
 * Problem Theory, section 3.2), found by the trust region of Levenberg and Marquardt (GSL,
 * gsl_multifit_nlinear). */
#ifndef MS_COSTMODEL_CALIBRATE_PENALISED_H
#define MS_COSTMODEL_CALIBRATE_PENALISED_H

#include "base/diag.h"

#include <stdbool.h>

/* Sets out[i] to r_i(x), i < num_data; returns whether they are known at x. */
typedef bool ms_penalised_residuals(void *state, const double *x, double *out);

typedef struct ms_penalised_problem {
    int num_parameters, num_data;
    ms_penalised_residuals *residuals;
    void *state; /* passed to `residuals` */
} ms_penalised_problem;

typedef struct ms_penalised_fit {
    double *x; /* (num_parameters): the minimum; 0: as known beforehand */
    /* (num_parameters): standard deviations after the fit, in widths: the square roots of
     * the diagonal of the inverse of J^T J + 1; 1: nothing was learnt */
    double *deviation;
    double squares_before, squares; /* sums of squares at x = 0 and at the minimum */
    bool stopped; /* the solver reached its limit of iterations before it converged */
} ms_penalised_fit;

/* Minimizes, starting at x = 0. Residuals may have kinks: derivatives are differences over
 * a twentieth of a width. The result lives in cx->arena. MS_EIO, recorded, if the
 * residuals are not known at 0 or the solver fails; x is then 0. */
ms_status ms_penalised_fit_make(ms_ctx *cx, const ms_penalised_problem *problem,
                                ms_penalised_fit *out);

#endif
