/* Prints fitted coefficients of kernels as meshsim.fit-kernels/1 and as a table for
 * people. */
#include "sim/validate/kernels_fit.h"
#include "sim/validate/score_print.h"

static void write_fit(ms_jout *out, const ms_kernel_fit *fit)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "profile", fit->law.profile);
    ms_jout_text_field(out, "law", fit->law.law);
    ms_jout_text_field(out, "source", fit->source);
    ms_jout_number_field(out, "rows", fit->law.fit.num_points);
    ms_jout_number_field(out, "median_ape", fit->law.fit.median_error_frac);
    ms_law_fit_write_values(out, &fit->law);
    ms_row_errors_write(out, "other_half_shipped", &fit->shipped_errors);
    ms_row_errors_write(out, "other_half_fitted", &fit->fitted_errors);
    ms_jout_end_object(out);
}

void ms_kernels_fit_write_json(ms_jout *out, const ms_kernels_fit *fit)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "schema", "meshsim.fit-kernels/1");
    ms_jout_begin_array_field(out, "fits");
    for (int i = 0; i < fit->num_fits; i++)
        write_fit(out, &fit->fits[i]);
    ms_jout_end_array(out);
    ms_jout_end_object(out);
}

static void print_values(FILE *out, ms_arena *arena, const ms_kernels_fit *fit)
{
    ms_table *table = MS_TABLE(arena, "llrrrrr", "profile", "coefficient",
                               MS_LAW_VALUE_TITLES, "rows fitted on");
    for (int i = 0; i < fit->num_fits; i++) {
        const ms_law_fit *law = &fit->fits[i].law;
        for (int j = 0; j < law->num_values; j++) {
            ms_table_cell(table, "%s", law->profile);
            ms_table_cell(table, "%s.%s", law->law, law->values[j].key);
            ms_law_value_cells(table, &law->values[j]);
            ms_table_cell(table, "%d", law->fit.num_points);
        }
    }
    ms_table_print(table, out);
}

void ms_kernels_fit_print(FILE *out, ms_arena *arena, const ms_kernels_fit *fit)
{
    print_values(out, arena, fit);
    fputs("\nrows of the other half, by shipped and by fitted coefficients\n\n", out);
    ms_table *table = MS_TABLE(arena, "llrrrrrrrr", "profile", "law", "shipped: rows",
                               "median (%)", "bias (%)", "p90 (%)", "fitted: rows",
                               "median (%)", "bias (%)", "p90 (%)");
    for (int i = 0; i < fit->num_fits; i++) {
        ms_table_cell(table, "%s", fit->fits[i].law.profile);
        ms_table_cell(table, "%s", fit->fits[i].law.law);
        ms_row_errors_cells(table, &fit->fits[i].shipped_errors);
        ms_row_errors_cells(table, &fit->fits[i].fitted_errors);
    }
    ms_table_print(table, out);
}
