/* Fitted coefficients of kernels as meshsim.fit-kernels/1 and as a table for people. */
#include "sim/kernels_fit.h"
#include "sim/score_print.h"

#include <math.h>

static void write_fit(ms_jout *out, const ms_kernel_fit *fit)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "profile", fit->profile);
    ms_jout_text_field(out, "law", fit->law);
    ms_jout_text_field(out, "source", fit->source);
    ms_jout_number_field(out, "rows", fit->fit.num_points);
    ms_jout_number_field(out, "median_ape", fit->fit.median_error_frac);
    ms_jout_key(out, "coefficients");
    ms_jout_begin_array(out);
    for (int i = 0; i < fit->num_values; i++) {
        const ms_kernel_fit_value *value = &fit->values[i];
        ms_jout_begin_object(out);
        ms_jout_text_field(out, "name", value->key);
        ms_jout_number_field(out, "shipped", value->shipped);
        ms_jout_number_field(out, "fitted", value->fitted.value);
        ms_jout_number_field(out, "low", value->fitted.low);
        ms_jout_number_field(out, "high", value->fitted.high);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
    ms_jout_key(out, "other_half_shipped");
    ms_kernel_errors_write(out, &fit->shipped_errors);
    ms_jout_key(out, "other_half_fitted");
    ms_kernel_errors_write(out, &fit->fitted_errors);
    ms_jout_end_object(out);
}

void ms_kernels_fit_write_json(ms_jout *out, const ms_kernels_fit *fit)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "schema", "meshsim.fit-kernels/1");
    ms_jout_key(out, "fits");
    ms_jout_begin_array(out);
    for (int i = 0; i < fit->num_fits; i++)
        write_fit(out, &fit->fits[i]);
    ms_jout_end_array(out);
    ms_jout_end_object(out);
}

/* Seconds as microseconds or nanoseconds, rates in TFLOP/s. */
static void value_cell(ms_table *table, double value, ms_unit unit)
{
    if (!isfinite(value))
        ms_table_cell(table, "-");
    else if (unit == MS_UNIT_SECONDS && value < 1e-7)
        ms_table_cell(table, "%.3g ns", 1e9 * value);
    else if (unit == MS_UNIT_SECONDS)
        ms_table_cell(table, "%.3g us", 1e6 * value);
    else if (unit == MS_UNIT_FLOP_PER_S)
        ms_table_cell(table, "%.4g TFLOP/s", 1e-12 * value);
    else
        ms_table_cell(table, "%.4g", value);
}

static void print_values(FILE *out, ms_arena *arena, const ms_kernels_fit *fit)
{
    ms_table *table = ms_table_new(
        arena, "<profile|<coefficient|shipped|fitted|90 % from|to|rows fitted on");
    for (int i = 0; i < fit->num_fits; i++) {
        for (int j = 0; j < fit->fits[i].num_values; j++) {
            const ms_kernel_fit_value *value = &fit->fits[i].values[j];
            ms_table_cell(table, "%s", fit->fits[i].profile);
            ms_table_cell(table, "%s.%s", fit->fits[i].law, value->key);
            value_cell(table, value->shipped, value->unit);
            value_cell(table, value->fitted.value, value->unit);
            value_cell(table, value->fitted.low, value->unit);
            value_cell(table, value->fitted.high, value->unit);
            ms_table_cell(table, "%d", fit->fits[i].fit.num_points);
        }
    }
    ms_table_print(table, out);
}

static void errors_cells(ms_table *table, const ms_kernel_errors *errors)
{
    ms_percent_cell(table, errors->median_ape_frac);
    ms_signed_percent_cell(table, errors->bias_frac);
    ms_percent_cell(table, errors->p90_ape_frac);
}

void ms_kernels_fit_print(FILE *out, ms_arena *arena, const ms_kernels_fit *fit)
{
    print_values(out, arena, fit);
    fputs("\nrows of the other half, by shipped and by fitted coefficients\n\n", out);
    ms_table *table =
        ms_table_new(arena, "<profile|<law|rows|shipped: median (%)|bias (%)|p90 (%)|"
                            "fitted: median (%)|bias (%)|p90 (%)");
    for (int i = 0; i < fit->num_fits; i++) {
        ms_table_cell(table, "%s", fit->fits[i].profile);
        ms_table_cell(table, "%s", fit->fits[i].law);
        ms_table_cell(table, "%d", fit->fits[i].fitted_errors.num_rows);
        errors_cells(table, &fit->fits[i].shipped_errors);
        errors_cells(table, &fit->fits[i].fitted_errors);
    }
    ms_table_print(table, out);
}
