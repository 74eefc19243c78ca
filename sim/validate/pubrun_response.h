/* Approximates predictions of runs by their responses to the constants of a fit, so that
 * thousands of values need no prediction each. Shared by the pubrun_fit*.c files. */
#ifndef MS_SIM_VALIDATE_PUBRUN_RESPONSE_H
#define MS_SIM_VALIDATE_PUBRUN_RESPONSE_H

#include "sim/validate/pubrun_fit.h"
#include "sim/validate/pubrun_prices.h"

#define MS_RESPONSE_POINTS MS_MAX_FIT_CHOICES

/* Response of predictions to one constant while the others are fixed: linear between
 * points. */
typedef struct ms_response {
    int num_points;
    /* values of the constant, ascending: its choices, or equally spaced */
    double points[MS_RESPONSE_POINTS];
    /* (runs that the constant changes, MS_RESPONSE_POINTS): ln of the ratio of a run's
     * prediction at the point to that at the centre of the expansion */
    double *log_ratio;
} ms_response;

/* Approximates each run's ln(predicted / measured): log_error + sum of responses. */
typedef struct ms_expansion {
    double *values;    /* constants at the centre */
    double *log_error; /* (num_runs): log errors at the centre; NaN if not predicted */
    ms_response *responses;
} ms_expansion;

/* Sets a constant, and all numbers of profiles and stacks that it stands for. */
void ms_fit_constant_set(ms_fit_constant *c, double value);

/* ln(predicted / measured) of every run at the current constants, (num_runs), in `arena`;
 * NaN for runs that no source of the fit has. */
double *ms_fit_log_errors(ms_arena *arena, ms_pubruns_fit *fit);
/* Approximates the predictions around the current constants, up to `width_frac` of each
 * constant's range to either side. Lives in `arena`. */
ms_expansion ms_fit_expand(ms_arena *arena, ms_pubruns_fit *fit, double width_frac);
/* ln(prediction with the constant at `value` / prediction at the centre) of run `row` in
 * the list of runs that depend on the constant. Beyond the points it is that of the
 * nearest point; a large number where the run cannot be predicted any more. */
double ms_response_at(const ms_response *response, int row, double value);

#endif
