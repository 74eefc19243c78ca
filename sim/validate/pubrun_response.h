/* Responses of predicted runs to the constants of a fit, so that thousands of values are
 * tried without pricing each. Shared by the runs_fit*.c files. */
#ifndef MS_SIM_VALIDATE_PUBRUN_RESPONSE_H
#define MS_SIM_VALIDATE_PUBRUN_RESPONSE_H

#include "sim/validate/pubrun_fit.h"
#include "sim/validate/pubrun_prices.h"

#define MS_RESPONSE_POINTS MS_MAX_FIT_CHOICES

/* Response of predictions to one constant while the others are fixed: linear between
 * points. */
typedef struct ms_response {
    int num_points;
    /* ascending values of the constant: its choices, or equally spaced */
    double points[MS_RESPONSE_POINTS];
    /* (rows of the constant, points): ln of the prediction at the point over the
     * prediction at the centre of the expansion */
    double *log_ratio;
} ms_response;

/* ln(predicted / measured) approximated as a sum of responses around one centre. */
typedef struct ms_expansion {
    double *values;    /* constants at the centre */
    double *log_error; /* log errors (runs) at the centre; NaN if not predicted */
    ms_response *responses;
} ms_expansion;

/* Sets a constant and all figures that it determines. */
void ms_fit_constant_set(ms_fit_constant *c, double value);

/* ln(predicted / measured) of every run at the current constants, (num_runs), in `arena`;
 * NaN for runs that no source of the fit has. */
double *ms_fit_log_errors(ms_arena *arena, ms_pubruns_fit *fit);
/* Expands the predictions around the current constants, up to `width_frac` of each
 * constant's range to either side. Lives in `arena`. */
ms_expansion ms_fit_expand(ms_arena *arena, ms_pubruns_fit *fit, double width_frac);
/* ln of the change of the prediction of the constant's `row`-th row at `value`. Beyond
 * the points it is that of the nearest point; a large number where the row cannot be
 * predicted any more. */
double ms_response_at(const ms_response *response, int row, double value);

#endif
