/* Prints fitted coefficients of collectives as meshsim.fit-collectives/1 and as tables
 * for people. */
#include "base/utf8.h"
#include "sim/validate/collectives_fit.h"

/* ---- JSON ---- */

static void write_fit(ms_jout *out, const ms_collective_fit *fit)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "profile", fit->law.profile);
    ms_jout_text_field(out, "law", fit->law.law);
    ms_jout_number_field(out, "rows", fit->law.fit.num_points);
    ms_jout_number_field(out, "systems", fit->num_systems);
    ms_jout_number_field(out, "median_ape", fit->law.fit.median_error_frac);
    ms_law_fit_write_values(out, &fit->law);
    ms_jout_end_object(out);
}

static void write_system(ms_jout *out, const ms_system_errors *system)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "system", system->system);
    ms_jout_text_field(out, "profile", system->profile);
    ms_jout_text_field(out, "law", system->law);
    ms_row_errors_write(out, "shipped_from_1_mib", &system->shipped_large);
    ms_row_errors_write(out, "shipped_below_1_mib", &system->shipped_small);
    if (system->has_others) {
        ms_row_errors_write(out, "by_others_from_1_mib", &system->large);
        ms_row_errors_write(out, "by_others_below_1_mib", &system->small);
    }
    ms_jout_end_object(out);
}

static void write_undetermined(ms_jout *out, const ms_undetermined *untold)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "profile", untold->profile);
    ms_jout_text_field(out, "name", untold->key);
    ms_jout_number_field(out, "shipped", untold->shipped->value);
    ms_jout_text_field(out, "from", ms_provenance_names[untold->shipped->from]);
    ms_jout_text_field(out, "source", untold->shipped->source);
    ms_jout_end_object(out);
}

void ms_collectives_fit_write_json(ms_jout *out, const ms_collectives_fit *fit)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "schema", "meshsim.fit-collectives/1");
    ms_jout_begin_array_field(out, "fits");
    for (int i = 0; i < fit->num_fits; i++)
        write_fit(out, &fit->fits[i]);
    ms_jout_end_array(out);
    ms_jout_begin_array_field(out, "holdout");
    for (int i = 0; i < fit->num_systems; i++)
        write_system(out, &fit->systems[i]);
    ms_jout_end_array(out);
    ms_jout_begin_array_field(out, "untold");
    for (int i = 0; i < fit->num_undetermined; i++)
        write_undetermined(out, &fit->untold[i]);
    ms_jout_end_array(out);
    ms_jout_end_object(out);
}

/* ---- text ---- */

static void print_values(FILE *out, ms_arena *arena, const ms_collectives_fit *fit)
{
    ms_table *table = MS_TABLE(arena, "llrrrrrr", "profile", "coefficient",
                               MS_LAW_VALUE_TITLES, "rows", "systems");
    for (int i = 0; i < fit->num_fits; i++) {
        const ms_law_fit *law = &fit->fits[i].law;
        for (int j = 0; j < law->num_values; j++) {
            ms_table_cell(table, "%s", law->profile);
            ms_table_cell(table, "%s", law->values[j].key);
            ms_law_value_cells(table, &law->values[j]);
            ms_table_cell(table, "%d", law->fit.num_points);
            ms_table_cell(table, "%d", fit->fits[i].num_systems);
        }
    }
    ms_table_print(table, out);
}

static void print_systems(FILE *out, ms_arena *arena, const ms_collectives_fit *fit)
{
    fputs("\nsystems by shipped coefficients, and by those fitted on the other systems "
          "that the law prices, median errors\n\n",
          out);
    ms_table *table =
        MS_TABLE(arena, "lllrrrrrr", "system", "profile", "law", ">= 1 MiB",
                 "shipped (%)", "by others (%)", "below", "shipped (%)", "by others (%)");
    for (int i = 0; i < fit->num_systems; i++) {
        const ms_system_errors *system = &fit->systems[i];
        ms_table_cell(table, "%s", system->system);
        ms_table_cell(table, "%s", system->profile);
        ms_table_cell(table, "%s", system->law);
        ms_table_cell(table, "%d", system->shipped_large.num_rows);
        ms_percent_cell(table, system->shipped_large.median_ape_frac);
        ms_percent_cell(table, system->large.median_ape_frac);
        ms_table_cell(table, "%d", system->shipped_small.num_rows);
        ms_percent_cell(table, system->shipped_small.median_ape_frac);
        ms_percent_cell(table, system->small.median_ape_frac);
    }
    ms_table_print(table, out);
}

static void print_undetermined(FILE *out, ms_arena *arena, const ms_collectives_fit *fit)
{
    if (fit->num_undetermined == 0)
        return;
    fputs("\nundetermined: shipped as fitted or measured, but on rows that this table "
          "lacks or has too few of\n\n",
          out);
    ms_table *table =
        MS_TABLE(arena, "llrll", "profile", "coefficient", "shipped", "from", "source");
    for (int i = 0; i < fit->num_undetermined; i++) {
        const ms_undetermined *untold = &fit->untold[i];
        ms_table_cell(table, "%s", untold->profile);
        ms_table_cell(table, "%s", untold->key);
        ms_law_value_cell(table, untold->shipped->value, untold->unit);
        ms_table_cell(table, "%s", ms_provenance_names[untold->shipped->from]);
        ms_table_cell(table, "%.*s", ms_utf8_prefix(untold->shipped->source, 72),
                      untold->shipped->source);
    }
    ms_table_print(table, out);
}

void ms_collectives_fit_print(FILE *out, ms_arena *arena, const ms_collectives_fit *fit,
                              bool holdout)
{
    print_values(out, arena, fit);
    if (holdout)
        print_systems(out, arena, fit);
    print_undetermined(out, arena, fit);
}
