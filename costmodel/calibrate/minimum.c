#include "costmodel/calibrate/minimum.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_min.h>

#define MAX_STEPS 20

double ms_minimum(ms_minimum_function *function, void *state, const ms_bracket *bracket)
{
    gsl_error_handler_t *handler = gsl_set_error_handler_off();
    gsl_function f = {.function = function, .params = state};
    gsl_min_fminimizer *m = gsl_min_fminimizer_alloc(gsl_min_fminimizer_brent);
    double least = bracket->middle;
    int status =
        gsl_min_fminimizer_set(m, &f, bracket->middle, bracket->low, bracket->high);
    for (int i = 0; i < MAX_STEPS && status == GSL_SUCCESS; i++) {
        status = gsl_min_fminimizer_iterate(m);
        least = gsl_min_fminimizer_x_minimum(m);
        if (gsl_min_test_interval(gsl_min_fminimizer_x_lower(m),
                                  gsl_min_fminimizer_x_upper(m), bracket->tolerance,
                                  0.0) == GSL_SUCCESS)
            break;
    }
    gsl_min_fminimizer_free(m);
    gsl_set_error_handler(handler);
    return least;
}
