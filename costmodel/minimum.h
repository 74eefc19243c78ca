/* The minimum of a function of one variable. */
#ifndef MS_COSTMODEL_MINIMUM_H
#define MS_COSTMODEL_MINIMUM_H

typedef double ms_minimum_function(double x, void *state);

typedef struct ms_bracket {
    double low, middle, high; /* low <= middle <= high */
    double tolerance;         /* of x */
} ms_bracket;

/* By Brent's method (GSL gsl_min_fminimizer_brent), at most 20 steps. `middle` where the
 * function is not below both ends there, or not finite. */
double ms_minimum(ms_minimum_function *function, void *state, const ms_bracket *bracket);

#endif
