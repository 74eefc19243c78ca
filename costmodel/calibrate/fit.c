#include "costmodel/calibrate/fit.h"

#include "base/rng.h"
#include "costmodel/calibrate/statistics.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <math.h>

#define NUM_RESAMPLES  100
#define MAX_ITERATIONS 100

/* One least-squares fit: varies parameters in `free`, weights launch i by times[i]. */
typedef struct trial {
    const ms_fit_problem *problem;
    int num_free;
    int free[MS_FIT_PARAMETERS]; /* indices of fitted parameters; others stay 0 */
    const double *times;         /* (launches): weight of each launch */
    double values[MS_FIT_PARAMETERS];
    double squares; /* sum of squared residuals after the fit */
    bool stopped;   /* after MAX_ITERATIONS, before it converged */
} trial;

static void set_values(trial *t, const gsl_vector *logs)
{
    for (int i = 0; i < t->num_free; i++)
        t->values[t->free[i]] = exp(gsl_vector_get(logs, (size_t)i));
}

static double log_ratio(const ms_fit_problem *problem, const double *values, int i)
{
    const double *point = problem->points + i * problem->num_columns;
    return log(problem->law(problem->state, values, point) /
               point[problem->num_columns - 1]);
}

double ms_soft_l1_residual(double r, double c)
{
    return c > 0.0 ? copysign(c * sqrt(2.0 * hypot(1.0, r / c) - 2.0), r) : r;
}

static int residuals(const gsl_vector *logs, void *state, gsl_vector *out)
{
    trial *t = state;
    const ms_fit_problem *problem = t->problem;
    set_values(t, logs);
    t->squares = 0.0;
    for (int i = 0; i < problem->num_points; i++) {
        double r =
            sqrt(t->times[problem->launch[i]]) *
            ms_soft_l1_residual(log_ratio(problem, t->values, i), problem->soft_frac);
        if (!isfinite(r))
            return GSL_EDOM;
        gsl_vector_set(out, (size_t)i, r);
        t->squares += r * r;
    }
    return GSL_SUCCESS;
}

/* Runs the solver; false if it fails. Stopping after MAX_ITERATIONS is no failure. */
static bool run_solver(trial *t, gsl_multifit_nlinear_workspace *work, gsl_vector *logs)
{
    gsl_multifit_nlinear_fdf system = {.f = residuals,
                                       .n = (size_t)t->problem->num_points,
                                       .p = (size_t)t->num_free,
                                       .params = t};
    if (gsl_multifit_nlinear_init(logs, &system, work) != GSL_SUCCESS)
        return false;
    int info;
    int status = gsl_multifit_nlinear_driver(MAX_ITERATIONS, 1e-8, 1e-8, 1e-12, NULL,
                                             NULL, &info, work);
    t->stopped = status == GSL_EMAXITER;
    return (status == GSL_SUCCESS || status == GSL_ENOPROG || t->stopped) &&
           residuals(gsl_multifit_nlinear_position(work), t,
                     gsl_multifit_nlinear_residual(work)) == GSL_SUCCESS;
}

/* Minimizes the sum of squares, starting from t->values. Returns whether it converged. */
static bool minimise(trial *t)
{
    gsl_multifit_nlinear_parameters how = gsl_multifit_nlinear_default_parameters();
    gsl_multifit_nlinear_workspace *work =
        gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &how,
                                   (size_t)t->problem->num_points, (size_t)t->num_free);
    gsl_vector *logs = gsl_vector_alloc((size_t)t->num_free);
    for (int i = 0; i < t->num_free; i++)
        gsl_vector_set(logs, (size_t)i, log(t->values[t->free[i]]));
    bool found = run_solver(t, work, logs);
    gsl_vector_free(logs);
    gsl_multifit_nlinear_free(work);
    return found;
}

/* ---- parameters ---- */

static trial without_parameter(const trial *t, int parameter)
{
    trial less = *t;
    less.num_free = 0;
    for (int i = 0; i < t->num_free; i++)
        if (t->free[i] != parameter)
            less.free[less.num_free++] = t->free[i];
    less.values[parameter] = 0.0;
    return less;
}

static void drop_indistinguishable(trial *t)
{
    const double critical = 4.0;
    for (int round = 0; round < MS_FIT_PARAMETERS; round++) {
        trial best = *t;
        best.squares = INFINITY;
        for (int i = 0; i < t->num_free && t->num_free > 1; i++) {
            trial less = without_parameter(t, t->free[i]);
            if (t->problem->parameters[t->free[i]].optional && minimise(&less) &&
                less.squares < best.squares)
                best = less;
        }
        double spare = (double)(t->problem->num_points - t->num_free);
        if (!(best.squares - t->squares <= critical * t->squares / spare))
            return;
        *t = best;
    }
}

static ms_status fit_all(ms_ctx *cx, trial *t)
{
    const ms_fit_problem *problem = t->problem;
    for (int i = 0; i < problem->num_parameters; i++) {
        t->free[t->num_free++] = i;
        t->values[i] = problem->parameters[i].start;
    }
    if (!minimise(t))
        return ms_fail(cx, MS_EIO, MS_NOWHERE,
                       "the fit of %s to %d points does not converge", problem->name,
                       problem->num_points);
    drop_indistinguishable(t);
    return MS_OK;
}

/* ---- intervals ---- */

static int num_launches(const ms_fit_problem *problem)
{
    int most = 0;
    for (int i = 0; i < problem->num_points; i++)
        most = problem->launch[i] > most ? problem->launch[i] : most;
    return most + 1;
}

/* Fits the law to NUM_RESAMPLES random draws of launches; returns how many converged.
 * `times`: work space; values[p * NUM_RESAMPLES + i]: parameter p of converged fit i. */
static int resample(const trial *best, int launches, double *times, double *values)
{
    ms_rng rng = ms_rng_seed(best->problem->seed);
    int num = 0;
    for (int s = 0; s < NUM_RESAMPLES; s++) {
        trial t = *best;
        t.times = times;
        for (int i = 0; i < launches; i++)
            times[i] = 0.0;
        for (int i = 0; i < launches; i++)
            times[ms_rng_below(&rng, (uint64_t)launches)] += 1.0;
        if (!minimise(&t))
            continue;
        for (int i = 0; i < MS_FIT_PARAMETERS; i++)
            values[i * NUM_RESAMPLES + num] = t.values[i];
        num++;
    }
    return num;
}

static void add_intervals(ms_ctx *cx, const trial *best, ms_fit *out)
{
    int launches = out->num_launches;
    double *values = MS_NEW_ARRAY(cx->arena, MS_FIT_PARAMETERS * NUM_RESAMPLES, double);
    double *times = MS_NEW_ARRAY(cx->arena, launches, double);
    int num = launches < 3 ? 0 : resample(best, launches, times, values);
    for (int i = 0; i < best->problem->num_parameters; i++) {
        ms_fit_value *value = &out->values[i];
        value->value = best->values[i];
        value->dropped = best->values[i] == 0.0;
        value->low = ms_quantile(values + i * NUM_RESAMPLES, num, 0.05);
        value->high = ms_quantile(values + i * NUM_RESAMPLES, num, 0.95);
    }
}

static void add_errors(ms_ctx *cx, const trial *best, ms_fit *out)
{
    const ms_fit_problem *problem = best->problem;
    double *errors = MS_NEW_ARRAY(cx->arena, problem->num_points, double);
    for (int i = 0; i < problem->num_points; i++)
        errors[i] = fabs(expm1(log_ratio(problem, best->values, i)));
    out->median_error_frac = ms_quantile(errors, problem->num_points, 0.5);
    out->p90_error_frac = ms_quantile(errors, problem->num_points, 0.9);
    out->max_error_frac = ms_quantile(errors, problem->num_points, 1.0);
}

ms_status ms_fit_make(ms_ctx *cx, const ms_fit_problem *problem, ms_fit *out)
{
    if (problem->num_points <= problem->num_parameters)
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                       "%d points are too few to fit %d coefficients of %s",
                       problem->num_points, problem->num_parameters, problem->name);
    *out = (ms_fit){.num_points = problem->num_points,
                    .num_launches = num_launches(problem)};
    double *once = MS_NEW_ARRAY(cx->arena, out->num_launches, double);
    for (int i = 0; i < out->num_launches; i++)
        once[i] = 1.0;
    trial best = {.problem = problem, .times = once};
    gsl_error_handler_t *handler = gsl_set_error_handler_off();
    ms_status status = fit_all(cx, &best);
    out->stopped = best.stopped;
    if (status == MS_OK) {
        add_intervals(cx, &best, out);
        add_errors(cx, &best, out);
    }
    gsl_set_error_handler(handler);
    return status;
}
