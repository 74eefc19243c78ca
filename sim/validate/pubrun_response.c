#include "sim/validate/pubrun_response.h"

#include <math.h>

#define UNPRICED 100.0 /* log error of a run that cannot be predicted */

void ms_fit_constant_set(ms_fit_constant *c, double value)
{
    c->value = value;
    for (int i = 0; i < c->num_targets; i++)
        if (c->targets[i].value != NULL)
            *c->targets[i].value = value;
}

/* ln(predicted / measured) of a run; NaN if not predicted or not of any source. */
static double log_error(ms_pubruns_fit *fit, int run)
{
    ms_pubrun_score score = ms_pubrun_unpriced;
    if (fit->source_of[run] < 0 ||
        ms_pubrun_price(fit->prices, &fit->runs->runs[run], &score) != MS_OK)
        return (double)NAN;
    return log1p(ms_score_error_frac(&score, fit->measurement));
}

double *ms_fit_log_errors(ms_arena *arena, ms_pubruns_fit *fit)
{
    double *errors = MS_NEW_ARRAY(arena, fit->runs->num_runs, double);
    for (int i = 0; i < fit->runs->num_runs; i++)
        errors[i] = log_error(fit, i);
    ms_pubrun_prices_forget(fit->prices);
    return errors;
}

static void place_points(const ms_fit_constant *c, double width_frac, ms_response *out)
{
    double width = width_frac * (c->high - c->low);
    double low = fmax(c->low, c->value - width), high = fmin(c->high, c->value + width);
    out->num_points = c->num_choices > 0 ? c->num_choices : MS_RESPONSE_POINTS;
    for (int p = 0; p < out->num_points; p++)
        out->points[p] = c->num_choices > 0
                             ? c->choices[p]
                             : low + (high - low) * p / (MS_RESPONSE_POINTS - 1);
}

static ms_response respond(ms_arena *arena, ms_pubruns_fit *fit, ms_fit_constant *c,
                           const double *errors, double width_frac)
{
    double value = c->value;
    ms_response response = {
        .log_ratio = MS_NEW_ARRAY(arena, c->num_changed * MS_RESPONSE_POINTS, double)};
    place_points(c, width_frac, &response);
    for (int p = 0; p < response.num_points; p++) {
        ms_fit_constant_set(c, response.points[p]);
        for (int i = 0; i < c->num_changed; i++)
            response.log_ratio[i * MS_RESPONSE_POINTS + p] =
                log_error(fit, c->rows[i]) - errors[c->rows[i]];
        ms_pubrun_prices_forget(fit->prices);
    }
    ms_fit_constant_set(c, value);
    return response;
}

ms_expansion ms_fit_expand(ms_arena *arena, ms_pubruns_fit *fit, double width_frac)
{
    ms_expansion made = {.values = MS_NEW_ARRAY(arena, fit->num_constants, double),
                         .log_error = ms_fit_log_errors(arena, fit),
                         .responses =
                             MS_NEW_ARRAY(arena, fit->num_constants, ms_response)};
    for (int i = 0; i < fit->num_constants; i++) {
        made.values[i] = fit->constants[i].value;
        made.responses[i] =
            respond(arena, fit, &fit->constants[i], made.log_error, width_frac);
    }
    return made;
}

double ms_response_at(const ms_response *response, int row, double value)
{
    const double *ratio = response->log_ratio + row * MS_RESPONSE_POINTS;
    const double *points = response->points;
    int before = 0;
    while (before < response->num_points - 2 && points[before + 1] <= value)
        before++;
    double at = (value - points[before]) / (points[before + 1] - points[before]);
    at = fmin(fmax(at, 0.0), 1.0);
    double change = ratio[before] + at * (ratio[before + 1] - ratio[before]);
    return isnan(change) ? UNPRICED : change;
}
