/* Finds the minimum of a function of one variable. */
#ifndef MS_COSTMODEL_CALIBRATE_MINIMUM_H
#define MS_COSTMODEL_CALIBRATE_MINIMUM_H

typedef double ms_minimum_function(double x, void *state);

typedef struct ms_bracket {
    double low, middle, high; /* low < middle < high, around the minimum */
    double tolerance;         /* width of the bracket at which the search ends */
} ms_bracket;

/* Finds a minimum by Brent's method (GSL gsl_min_fminimizer_brent), in at most 20 steps.
 * Returns `middle` if the function there is not finite, or not below both ends'
 * values. */
double ms_minimum(ms_minimum_function *function, void *state, const ms_bracket *bracket);

#endif
