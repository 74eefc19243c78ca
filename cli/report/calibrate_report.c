#include "cli/report/report.h"

#include "base/print.h"
#include "base/table.h"

#include <math.h>
#include <string.h>

static void print_machine(FILE *out, const ms_calibration *c)
{
    const ms_calibration_input *in = c->input;
    ms_print(out, "machine   ");
    const char *separator = "";
    for (const ms_field *field = ms_machine_fields; field->kind != MS_FIELD_END;
         field++) {
        const char *text;
        memcpy(&text, (const char *)&c->profile.measured->machine + field->offset,
               sizeof text);
        if (text == NULL)
            continue;
        ms_print(out, "%s%s: %s\n", separator, field->key, text);
        separator = "          ";
    }
    ms_print(
        out,
        "measured  %d cases in %d launches by the %s backend, %s, %ld rank%s at once\n",
        c->num_cases, in->num_launches, in->backend, ms_dtype_names[in->compute],
        in->ranks, in->ranks == 1 ? "" : "s");
    ms_print(out,
             "spread    slowest launch %.2f times the fastest; of single cases p90 %.2f\n"
             "          elapsed over time at work, median: %.2f\n\n",
             c->launch_ratio, c->case_ratio_p90, c->typical_ratio);
}

static const char *value_text(ms_arena *arena, double value, ms_unit unit)
{
    char text[64];
    if (isnan(value))
        return "-";
    if (unit == MS_UNIT_COUNT)
        return ms_arena_printf(arena, "%.3g", value);
    return ms_arena_strdup(arena, ms_format_quantity(text, sizeof text, value, unit));
}

static void add_coefficient(ms_table *table, ms_arena *arena,
                            const ms_calibration_fit *fit, int i)
{
    const ms_calibration_coefficient *c = &fit->coefficients[i];
    bool first = i == 0;
    ms_table_cells(table, "%s\t%s\t%s", first ? fit->name : "", c->name,
                   c->value.dropped ? "0" : value_text(arena, c->value.value, c->unit));
    if (c->value.dropped)
        ms_table_cell(table, "indistinguishable from 0");
    else if (isnan(c->value.low))
        ms_table_cell(table, "-");
    else
        ms_table_cell(table, "%s to %s", value_text(arena, c->value.low, c->unit),
                      value_text(arena, c->value.high, c->unit));
    const ms_fit *law = &fit->fit;
    if (first) {
        ms_table_cells(table, "%d\t%.1f\t%.1f\t%.1f", law->num_points,
                       100.0 * law->median_error_frac, 100.0 * law->p90_error_frac,
                       100.0 * law->max_error_frac);
    } else {
        ms_table_cells(table, " \t \t \t ");
    }
}

void ms_calibration_print(FILE *out, ms_arena *arena, const ms_calibration *calibration,
                          double elapsed_s)
{
    print_machine(out, calibration);
    ms_table *table =
        MS_TABLE(arena, "llrrrrrr", "law", "coefficient", "value", "90 % interval",
                 "points", "error median (%)", "p90 (%)", "max (%)");
    for (int f = 0; f < calibration->num_fits; f++)
        for (int i = 0; i < calibration->fits[f].num_coefficients; i++)
            add_coefficient(table, arena, &calibration->fits[f], i);
    ms_table_print(table, out);
    ms_print(
        out,
        "\nErrors are those of the fitted laws. Predictions scale the laws of GEMMs and "
        "attention by\nmeasurements of nearby shapes, and take collectives from "
        "measurements.\n");
    ms_print(out, "Calibrated in %.0f s.\n", elapsed_s);
}

/* ---- JSON ---- */

static const char *unit_suffix(ms_unit unit)
{
    switch ((int)unit) {
    case MS_UNIT_SECONDS:
        return "_s";
    case MS_UNIT_FLOP_PER_S:
        return "_flop_per_s";
    case MS_UNIT_BYTES_PER_S:
        return "_bytes_per_s";
    default:
        return "";
    }
}

static void write_coefficient(ms_jout *out, const ms_calibration_coefficient *c)
{
    char key[96];
    const struct {
        const char *name;
        double value;
    } members[] = {
        {"value", c->value.value}, {"low", c->value.low}, {"high", c->value.high}};
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "name", c->name);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        snprintf(key, sizeof key, "%s%s", members[i].name, unit_suffix(c->unit));
        ms_jout_number_field(out, key, members[i].value);
    }
    ms_jout_bool_field(out, "dropped", c->value.dropped);
    ms_jout_end_object(out);
}

static void write_fit(ms_jout *out, const ms_calibration_fit *fit)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "name", fit->name);
    ms_jout_number_field(out, "points", fit->fit.num_points);
    ms_jout_number_field(out, "median_error_frac", fit->fit.median_error_frac);
    ms_jout_number_field(out, "p90_error_frac", fit->fit.p90_error_frac);
    ms_jout_number_field(out, "max_error_frac", fit->fit.max_error_frac);
    ms_jout_begin_array_field(out, "coefficients");
    for (int i = 0; i < fit->num_coefficients; i++)
        write_coefficient(out, &fit->coefficients[i]);
    ms_jout_end_array(out);
    ms_jout_end_object(out);
}

void ms_calibration_write_json(ms_jout *out, const ms_calibration *calibration,
                               double elapsed_s)
{
    const ms_calibration_input *in = calibration->input;
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "schema", "meshsim.calibration/1");
    ms_jout_text_field(out, "date", in->date);
    ms_jout_text_field(out, "backend", in->backend);
    ms_jout_text_field(out, "dtype", ms_dtype_names[in->compute]);
    ms_jout_number_field(out, "ranks", (double)in->ranks);
    ms_jout_number_field(out, "launches", in->num_launches);
    ms_jout_number_field(out, "cases", calibration->num_cases);
    ms_jout_number_field(out, "elapsed_s", elapsed_s);
    ms_jout_number_field(out, "launch_ratio", calibration->launch_ratio);
    ms_jout_number_field(out, "case_ratio_p90", calibration->case_ratio_p90);
    ms_jout_number_field(out, "typical_ratio", calibration->typical_ratio);
    ms_jout_number_field(out, "zero_ratio", calibration->zero_ratio);
    ms_jout_number_field(out, "warm_up_s", calibration->warm_up_s);
    ms_jout_bool_field(out, "steady", calibration->steady);
    ms_jout_key(out, "machine");
    ms_machine_write(out, &calibration->profile.measured->machine);
    ms_jout_begin_array_field(out, "fits");
    for (int i = 0; i < calibration->num_fits; i++)
        write_fit(out, &calibration->fits[i]);
    ms_jout_end_array(out);
    ms_jout_end_object(out);
}
