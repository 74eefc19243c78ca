#include "cli/report/own_report.h"

#include "base/print.h"
#include "base/table.h"

#include <math.h>

ms_own_held_summary ms_own_report_summarise(const ms_own_report *report,
                                            ms_measurement measurement)
{
    ms_own_held_summary sum = {.before_ape_frac = 0.0};
    for (int i = 0; i < report->num_held_out; i++) {
        const ms_own_held_out *held = &report->held_out[i];
        if (held->measurement != measurement)
            continue;
        sum.num_groups++;
        sum.num_better += held->after_ape_frac < held->before_ape_frac;
        sum.num_worse += held->after_ape_frac > held->before_ape_frac;
        sum.before_ape_frac += held->before_ape_frac;
        sum.after_ape_frac += held->after_ape_frac;
    }
    sum.before_ape_frac /= sum.num_groups; /* 0 / 0: NaN */
    sum.after_ape_frac /= sum.num_groups;
    return sum;
}

/* ---- text ---- */

static const char *value_text(ms_arena *arena, double value, ms_unit unit)
{
    char text[64];
    if (unit == MS_UNIT_COUNT)
        return ms_arena_printf(arena, "%.4g", value);
    return ms_arena_strdup(arena, ms_format_quantity(text, sizeof text, value, unit));
}

/* Corrections by less than this, in widths, are named and no more. */
#define LEAST_MOVE 0.05

static bool is_used(const ms_own_move *move)
{
    for (int i = 0; i < move->num_figures; i++)
        if (move->figures[i].used)
            return true;
    return false;
}

static void add_move(ms_table *table, ms_arena *arena, const ms_own_move *move)
{
    bool first = true;
    for (int i = 0; i < move->num_figures; i++) {
        const ms_own_figure *figure = &move->figures[i];
        if (!figure->used)
            continue;
        if (first)
            ms_table_cells(table, "%s\t%+.2f\t%.2f", move->constant->name, move->widths,
                           move->deviation);
        else
            ms_table_cells(table, "\t\t");
        ms_table_cell(table, "%s %s", figure->file, figure->key);
        ms_table_cell(table, "%s", value_text(arena, figure->before, figure->unit));
        ms_table_cell(table, "%s", value_text(arena, figure->after, figure->unit));
        first = false;
    }
}

static bool has_moved(const ms_own_move *move)
{
    return is_used(move) && fabs(move->widths) >= LEAST_MOVE;
}

/* Names the constants that stay, `used` by predictions of the runs or not. */
static void print_rest(FILE *out, const ms_own_fit *fit, const char *title, bool used)
{
    const char *separator = title;
    for (int i = 0; i < fit->num_moves; i++) {
        const ms_own_move *move = &fit->moves[i];
        if (has_moved(move) || is_used(move) != used)
            continue;
        ms_print(out, "%s%s", separator, move->constant->name);
        separator = ", ";
    }
    fputs(separator != title ? "\n" : "", out);
}

/* Corrections by more than this, in widths, are rarely the constant's own. */
#define MOST_MOVE 2.0

static void print_far(FILE *out, const ms_own_fit *fit)
{
    const char *separator = "more than 2 sigma: ";
    for (int i = 0; i < fit->num_moves; i++) {
        if (fabs(fit->moves[i].widths) <= MOST_MOVE)
            continue;
        ms_print(out, "%s%s", separator, fit->moves[i].constant->name);
        separator = ", ";
    }
    if (separator[0] == ',')
        fputs("; look first for a setting that the rows do not state\n", out);
}

static void print_fit(FILE *out, ms_arena *arena, const ms_own_fit *fit)
{
    if (fit->num_rows + fit->num_out_of_memory == 0)
        return;
    fputc('\n', out);
    ms_print(out, "%s of %d run%s", ms_measurement_names[fit->measurement], fit->num_rows,
             fit->num_rows == 1 ? "" : "s");
    if (fit->num_rows > 0)
        ms_print(out, ": median error %.1f -> %.1f %%, root mean square %.1f -> %.1f %%",
                 100.0 * fit->before_ape_frac, 100.0 * fit->after_ape_frac,
                 100.0 * fit->before_rms_frac, 100.0 * fit->after_rms_frac);
    if (fit->num_out_of_memory > 0)
        ms_print(out, "; of %d that ran out of memory %d -> %d predicted to fit",
                 fit->num_out_of_memory, fit->num_fitting_before, fit->num_fitting_after);
    fputs(fit->stopped ? "; the fit stopped before it converged\n" : "\n", out);
    ms_table *table = MS_TABLE(arena, "Lrr1Lrr", "constant", "moved (sigma)",
                               "sigma left", "figure", "before", "after");
    int num_moved = 0;
    for (int i = 0; i < fit->num_moves; i++) {
        if (!has_moved(&fit->moves[i]))
            continue;
        add_move(table, arena, &fit->moves[i]);
        num_moved++;
    }
    if (num_moved > 0)
        ms_table_print(table, out);
    print_far(out, fit);
    print_rest(out, fit, "moved by less than 0.05 sigma: ", true);
    print_rest(out, fit, "these runs do not depend on: ", false);
}

static void print_held_out(FILE *out, ms_arena *arena, const ms_own_report *report,
                           ms_measurement measurement)
{
    ms_own_held_summary sum = ms_own_report_summarise(report, measurement);
    fputc('\n', out);
    ms_print(out, "%s of layouts that the fit did not see",
             ms_measurement_names[measurement]);
    if (report->fit_rows > 0)
        ms_print(out, ", by %d other run%s", report->fit_rows,
                 report->fit_rows == 1 ? "" : "s");
    fputs(sum.num_groups == 0 ? ": too few runs\n" : "\n", out);
    if (sum.num_groups == 0)
        return;
    ms_table *table = MS_TABLE(arena, "lllrrrr", "source", "stack", "profile", "runs",
                               "fits", "median error before (%)", "after (%)");
    for (int i = 0; i < report->num_held_out; i++) {
        const ms_own_held_out *held = &report->held_out[i];
        if (held->measurement != measurement)
            continue;
        ms_table_cells(table, "%s\t%s\t%s\t%d\t%d\t%.1f\t%.1f", held->group->source,
                       held->group->stack, held->group->profile, held->num_rows,
                       held->num_fits, 100.0 * held->before_ape_frac,
                       100.0 * held->after_ape_frac);
    }
    ms_table_print(table, out);
    if (sum.num_groups > 1)
        ms_print(out, "mean over %d groups: %.1f -> %.1f %%; %d better, %d worse\n",
                 sum.num_groups, 100.0 * sum.before_ape_frac, 100.0 * sum.after_ape_frac,
                 sum.num_better, sum.num_worse);
}

void ms_own_report_print(FILE *out, ms_arena *arena, const ms_own_report *report)
{
    for (int i = 0; i < report->own->num_groups; i++) {
        const ms_own_group *group = &report->own->groups[i];
        fputs(i > 0 ? "\n" : "", out);
        ms_print(out, "%s: %d run%s with stack %s and profile %s\n", group->source,
                 group->num_rows, group->num_rows == 1 ? "" : "s", group->stack,
                 group->profile);
        for (int m = 0; m < MS_NUM_MEASUREMENTS; m++)
            print_fit(out, arena, &group->fits[m]);
    }
    if (!report->holdout)
        return;
    for (int m = 0; m < MS_NUM_MEASUREMENTS; m++)
        print_held_out(out, arena, report, (ms_measurement)m);
}

/* ---- JSON ---- */

static void write_figure(ms_jout *out, ms_arena *arena, const ms_own_figure *figure)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "file", figure->file);
    ms_jout_text_field(out, "key", figure->key);
    ms_jout_number_field(out, "before", figure->before);
    ms_jout_number_field(out, "after", figure->after);
    ms_jout_text_field(out, "before_text",
                       value_text(arena, figure->before, figure->unit));
    ms_jout_text_field(out, "after_text", value_text(arena, figure->after, figure->unit));
    ms_jout_bool_field(out, "used", figure->used);
    ms_jout_end_object(out);
}

static void write_move(ms_jout *out, ms_arena *arena, const ms_own_move *move)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "name", move->constant->name);
    ms_jout_text_field(out, "scale", move->constant->scale == 0 ? "log" : "linear");
    ms_jout_number_field(out, "sigma", move->constant->width);
    ms_jout_text_field(out, "sigma_source", move->constant->source);
    ms_jout_number_field(out, "moved_sigmas", move->widths);
    ms_jout_number_field(out, "sigmas_left", move->deviation);
    ms_jout_begin_array_field(out, "figures");
    for (int i = 0; i < move->num_figures; i++)
        write_figure(out, arena, &move->figures[i]);
    ms_jout_end_array(out);
    ms_jout_end_object(out);
}

static void write_fit(ms_jout *out, ms_arena *arena, const ms_own_fit *fit)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "measurement", ms_measurement_names[fit->measurement]);
    ms_jout_number_field(out, "runs", fit->num_rows);
    ms_jout_number_field(out, "out_of_memory_runs", fit->num_out_of_memory);
    ms_jout_number_field(out, "predicted_to_fit_before", fit->num_fitting_before);
    ms_jout_number_field(out, "predicted_to_fit_after", fit->num_fitting_after);
    ms_jout_number_field(out, "median_ape_before", fit->before_ape_frac);
    ms_jout_number_field(out, "median_ape_after", fit->after_ape_frac);
    ms_jout_number_field(out, "rms_before", fit->before_rms_frac);
    ms_jout_number_field(out, "rms_after", fit->after_rms_frac);
    ms_jout_bool_field(out, "converged", !fit->stopped);
    ms_jout_begin_array_field(out, "constants");
    for (int i = 0; i < fit->num_moves; i++)
        write_move(out, arena, &fit->moves[i]);
    ms_jout_end_array(out);
    ms_jout_end_object(out);
}

static void write_group(ms_jout *out, ms_arena *arena, const ms_own_group *group)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "source", group->source);
    ms_jout_text_field(out, "stack", group->stack);
    ms_jout_text_field(out, "profile", group->profile);
    ms_jout_number_field(out, "runs", group->num_rows);
    ms_jout_begin_array_field(out, "fits");
    for (int m = 0; m < MS_NUM_MEASUREMENTS; m++)
        write_fit(out, arena, &group->fits[m]);
    ms_jout_end_array(out);
    ms_jout_end_object(out);
}

static void write_held_group(ms_jout *out, const ms_own_held_out *held)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "source", held->group->source);
    ms_jout_text_field(out, "stack", held->group->stack);
    ms_jout_text_field(out, "profile", held->group->profile);
    ms_jout_number_field(out, "runs", held->num_rows);
    ms_jout_number_field(out, "fits", held->num_fits);
    ms_jout_number_field(out, "predictions", held->num_predictions);
    ms_jout_number_field(out, "median_ape_before", held->before_ape_frac);
    ms_jout_number_field(out, "median_ape_after", held->after_ape_frac);
    ms_jout_end_object(out);
}

static void write_held_out(ms_jout *out, const ms_own_report *report,
                           ms_measurement measurement)
{
    ms_own_held_summary sum = ms_own_report_summarise(report, measurement);
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "measurement", ms_measurement_names[measurement]);
    ms_jout_number_field(out, "groups_better", sum.num_better);
    ms_jout_number_field(out, "groups_worse", sum.num_worse);
    ms_jout_number_field(out, "macro_median_ape_before", sum.before_ape_frac);
    ms_jout_number_field(out, "macro_median_ape_after", sum.after_ape_frac);
    ms_jout_begin_array_field(out, "groups");
    for (int i = 0; i < report->num_held_out; i++)
        if (report->held_out[i].measurement == measurement)
            write_held_group(out, &report->held_out[i]);
    ms_jout_end_array(out);
    ms_jout_end_object(out);
}

void ms_own_report_write_json(ms_jout *out, ms_arena *arena, const ms_own_report *report)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "schema", "meshsim.own_fit/1");
    ms_jout_text_field(out, "table", report->table);
    ms_jout_begin_array_field(out, "groups");
    for (int i = 0; i < report->own->num_groups; i++)
        write_group(out, arena, &report->own->groups[i]);
    ms_jout_end_array(out);
    ms_jout_key(out, "holdout");
    if (report->holdout) {
        ms_jout_begin_object(out);
        ms_jout_number_field(out, "fit_rows",
                             report->fit_rows > 0 ? report->fit_rows : (double)NAN);
        ms_jout_begin_array_field(out, "measurements");
        for (int m = 0; m < MS_NUM_MEASUREMENTS; m++)
            write_held_out(out, report, (ms_measurement)m);
        ms_jout_end_array(out);
        ms_jout_end_object(out);
    } else {
        ms_jout_null(out);
    }
    ms_jout_end_object(out);
}
