#include "sim/validate/law_fit.h"

#include <math.h>

void ms_law_trial_open(ms_arena *arena, ms_law_trial *trial, const double *measured_s,
                       int num_rows)
{
    double *points = MS_NEW_ARRAY(arena, 2 * num_rows, double);
    int *launch = MS_NEW_ARRAY(arena, num_rows, int);
    for (int i = 0; i < num_rows; i++) {
        points[2 * i] = launch[i] = i;
        points[2 * i + 1] = measured_s[i];
    }
    *trial = (ms_law_trial){.problem = {.num_points = num_rows,
                                        .num_columns = 2,
                                        .points = points,
                                        .launch = launch,
                                        .seed = 7}};
}

bool ms_law_trial_add(ms_law_trial *trial, const ms_fit_parameter *parameter,
                      ms_unit unit, double *target, ms_law_fit *out)
{
    int i = trial->problem.num_parameters;
    if (i == MS_FIT_PARAMETERS)
        return false;
    trial->problem.parameters[i] = *parameter;
    trial->problem.num_parameters++;
    trial->targets[i] = target;
    out->values[out->num_values++] =
        (ms_law_value){.key = parameter->name, .unit = unit, .shipped = *target};
    return true;
}

void ms_law_trial_set(const ms_law_trial *trial, const double *parameters)
{
    for (int i = 0; i < trial->problem.num_parameters; i++)
        *trial->targets[i] = parameters[i];
}

ms_status ms_law_trial_fit(ms_ctx *cx, ms_law_trial *trial, ms_law_fit *out)
{
    MS_TRY(ms_fit_make(cx, &trial->problem, &out->fit));
    for (int i = 0; i < out->num_values; i++) {
        out->values[i].fitted = out->fit.values[i];
        *trial->targets[i] = out->fit.values[i].value;
    }
    return MS_OK;
}

/* ---- output ---- */

void ms_law_fit_write_values(ms_jout *out, const ms_law_fit *fit)
{
    ms_jout_begin_array_field(out, "coefficients");
    for (int i = 0; i < fit->num_values; i++) {
        const ms_law_value *value = &fit->values[i];
        ms_jout_begin_object(out);
        ms_jout_text_field(out, "name", value->key);
        ms_jout_number_field(out, "shipped", value->shipped);
        ms_jout_number_field(out, "fitted", value->fitted.value);
        ms_jout_number_field(out, "low", value->fitted.low);
        ms_jout_number_field(out, "high", value->fitted.high);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
}

/* Formats a coefficient: seconds as us or ns, rates in TFLOP/s or GB/s. */
