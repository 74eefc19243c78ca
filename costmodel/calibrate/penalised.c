#include "costmodel/calibrate/penalised.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <math.h>

#define MAX_ITERATIONS 40
#define TOLERANCE      1e-4 /* for x and the gradient: far below an error */
#define DIFFERENCE     0.05 /* step of derivatives, in widths */

/* Work space of one fit. */
typedef struct work {
    const ms_penalised_problem *problem;
    double *x, *at, *moved; /* (num_parameters), (num_data), (num_data) */
} work;

static int residuals(const gsl_vector *x, void *state, gsl_vector *out)
{
    work *w = state;
    const ms_penalised_problem *problem = w->problem;
    for (int j = 0; j < problem->num_parameters; j++)
        w->x[j] = gsl_vector_get(x, (size_t)j);
    if (!problem->residuals(problem->state, w->x, w->at))
        return GSL_EDOM;
    for (int i = 0; i < problem->num_data; i++) {
        if (!isfinite(w->at[i]))
            return GSL_EDOM;
        gsl_vector_set(out, (size_t)i, w->at[i]);
    }
    for (int j = 0; j < problem->num_parameters; j++)
        gsl_vector_set(out, (size_t)problem->num_data + (size_t)j, w->x[j]);
    return GSL_SUCCESS;
}

/* Derivatives of the residuals by parameter j at w->x, as central differences. */
static int derive(work *w, int j, gsl_matrix *out)
{
    const ms_penalised_problem *problem = w->problem;
    double x = w->x[j];
    w->x[j] = x + DIFFERENCE;
    bool known = problem->residuals(problem->state, w->x, w->moved);
    w->x[j] = x - DIFFERENCE;
    known = known && problem->residuals(problem->state, w->x, w->at);
    w->x[j] = x;
    for (int i = 0; i < problem->num_data && known; i++) {
        double slope = (w->moved[i] - w->at[i]) / (2.0 * DIFFERENCE);
        known = isfinite(slope);
        gsl_matrix_set(out, (size_t)i, (size_t)j, slope);
    }
    gsl_matrix_set(out, (size_t)problem->num_data + (size_t)j, (size_t)j, 1.0);
    return known ? GSL_SUCCESS : GSL_EDOM;
}

static int jacobian(const gsl_vector *x, void *state, gsl_matrix *out)
{
    work *w = state;
    int status = GSL_SUCCESS;
    gsl_matrix_set_zero(out);
    for (int j = 0; j < w->problem->num_parameters; j++)
        w->x[j] = gsl_vector_get(x, (size_t)j);
    for (int j = 0; j < w->problem->num_parameters && status == GSL_SUCCESS; j++)
        status = derive(w, j, out);
    return status;
}

static double squares_of(const gsl_vector *values)
{
    double norm = gsl_blas_dnrm2(values);
    return norm * norm;
}

/* Writes the minimum that the solver found, and its standard deviations. */
static void take_result(const ms_penalised_problem *problem,
                        gsl_multifit_nlinear_workspace *solver, ms_penalised_fit *out)
{
    size_t num = (size_t)problem->num_parameters;
    gsl_matrix *covariance = gsl_matrix_alloc(num, num);
    gsl_multifit_nlinear_covar(gsl_multifit_nlinear_jac(solver), 0.0, covariance);
    for (size_t j = 0; j < num; j++) {
        out->x[j] = gsl_vector_get(gsl_multifit_nlinear_position(solver), j);
        out->deviation[j] = sqrt(gsl_matrix_get(covariance, j, j));
    }
    out->squares = squares_of(gsl_multifit_nlinear_residual(solver));
    gsl_matrix_free(covariance);
}

static bool run_solver(work *w, gsl_multifit_nlinear_workspace *solver,
                       ms_penalised_fit *out)
{
    size_t num = (size_t)w->problem->num_parameters;
    gsl_multifit_nlinear_fdf system = {.f = residuals,
                                       .df = jacobian,
                                       .n = (size_t)w->problem->num_data + num,
                                       .p = num,
                                       .params = w};
    gsl_vector *start = gsl_vector_calloc(num);
    int info, status = gsl_multifit_nlinear_init(start, &system, solver);
    gsl_vector_free(start);
    if (status != GSL_SUCCESS)
        return false;
    out->squares_before = squares_of(gsl_multifit_nlinear_residual(solver));
    status = gsl_multifit_nlinear_driver(MAX_ITERATIONS, TOLERANCE, TOLERANCE, 0.0, NULL,
                                         NULL, &info, solver);
    out->stopped = status == GSL_EMAXITER;
    if (status != GSL_SUCCESS && status != GSL_ENOPROG && !out->stopped)
        return false;
    take_result(w->problem, solver, out);
    return true;
}

ms_status ms_penalised_fit_make(ms_ctx *cx, const ms_penalised_problem *problem,
                                ms_penalised_fit *out)
{
    int num = problem->num_parameters;
    *out = (ms_penalised_fit){.x = MS_NEW_ARRAY(cx->arena, num, double),
                              .deviation = MS_NEW_ARRAY(cx->arena, num, double)};
    if (num == 0 || problem->num_data == 0) {
        for (int j = 0; j < num; j++)
            out->deviation[j] = 1.0;
        return MS_OK;
    }
    work w = {problem, MS_NEW_ARRAY(cx->arena, num, double),
              MS_NEW_ARRAY(cx->arena, problem->num_data, double),
              MS_NEW_ARRAY(cx->arena, problem->num_data, double)};
    gsl_error_handler_t *handler = gsl_set_error_handler_off();
    gsl_multifit_nlinear_parameters how = gsl_multifit_nlinear_default_parameters();
    gsl_multifit_nlinear_workspace *solver =
        gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &how,
                                   (size_t)problem->num_data + (size_t)num, (size_t)num);
    bool found = run_solver(&w, solver, out);
    gsl_multifit_nlinear_free(solver);
    gsl_set_error_handler(handler);
    return found ? MS_OK
                 : ms_fail(cx, MS_EIO, MS_NOWHERE,
                           "the penalised fit of %d constants to %d measurements does "
                           "not converge",
                           num, problem->num_data);
}
