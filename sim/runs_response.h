/* How predictions of runs answer to the constants of a fit, so that thousands of values
 * are tried without pricing each. Shared by the runs_fit*.c files. */
#ifndef MS_SIM_RUNS_RESPONSE_H
#define MS_SIM_RUNS_RESPONSE_H

#include "sim/run_prices.h"
#include "sim/runs_fit.h"

#define MS_RESPONSE_POINTS MS_MAX_FIT_CHOICES

/* To one constant, the others held: straight lines between points. */
typedef struct ms_response {
    int num_points;
    /* ascending values: its choices, or equally far apart */
    double points[MS_RESPONSE_POINTS];
    /* (rows of the constant, points): ln of the prediction over that where it was
     * expanded */
    double *log_ratio;
} ms_response;

/* ln(predicted / measured) as a sum of responses around one place. */
typedef struct ms_expansion {
    double *values;    /* (constants): where */
    double *log_error; /* (runs) there; NaN: not predicted */
    ms_response *responses;
} ms_expansion;

/* Sets it and all figures that it stands for. */
void ms_fit_constant_set(ms_fit_constant *c, double value);

/* ln(predicted / measured) of every run with the constants as they are; NaN: of no
 * source. (num_runs), in `arena`. */
double *ms_fit_log_errors(ms_arena *arena, ms_runs_fit *fit);
/* Around the constants as they are, as far as `width_frac` of each one's range to either
 * side. In `arena`. */
ms_expansion ms_fit_expand(ms_arena *arena, ms_runs_fit *fit, double width_frac);
/* ln of the change of the constant's `row`-th row. Beyond the points: that of the
 * nearest. Where it cannot be predicted any more: large. */
double ms_response_at(const ms_response *response, int row, double value);

#endif
