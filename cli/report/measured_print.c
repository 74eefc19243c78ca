/* Prints tables: prediction errors and fits of measured kernels and collectives. */
#include "base/print.h"
#include "base/utf8.h"
#include "cli/report/report.h"
#include "sim/validate/pubrun_prices.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- cells and lists ---- */

static void row_errors_cells(ms_table *table, const ms_row_errors *errors)
{
    ms_table_cells(table, "%d\t%.1f\t%+.1f\t%.1f", errors->num_rows,
                   100.0 * errors->median_ape_frac, 100.0 * errors->bias_frac,
                   100.0 * errors->p90_ape_frac);
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Reasons why measurements were skipped, sorted, each without the remark at its end. */
static const char **sorted_reasons(ms_arena *arena, const ms_skipped *skipped)
{
    const char **reasons = MS_NEW_ARRAY(arena, skipped->num_rows, const char *);
    for (int i = 0; i < skipped->num_rows; i++) {
        const char *reason = skipped->rows[i].reason, *remark = strstr(reason, MS_REMARK);
        reasons[i] = remark == NULL
                         ? reason
                         : ms_arena_strndup(arena, reason, (size_t)(remark - reason));
    }
    qsort(reasons, (size_t)skipped->num_rows, sizeof *reasons, compare_texts);
    return reasons;
}

void ms_skipped_print(FILE *out, ms_arena *arena, const ms_skipped *skipped)
{
    if (skipped->num_rows == 0)
        return;
    const char **reasons = sorted_reasons(arena, skipped);
    ms_print(out, "\nskipped\n");
    ms_table *table = MS_TABLE(arena, "Lr", "reason", "rows");
    for (int first = 0, end; first < skipped->num_rows; first = end) {
        end = first + 1;
        while (end < skipped->num_rows && strcmp(reasons[first], reasons[end]) == 0)
            end++;
        ms_table_cells(table, "%s\t%d", reasons[first], end - first);
    }
    ms_table_print(table, out);
}

/* ---- kernels ---- */

static void print_kernel_scores(FILE *out, ms_arena *arena, const ms_kernel_score *scores,
                                int num_scores, bool detail)
{
    ms_table *table = MS_TABLE(arena, "lL", "GPU", "source");
    if (detail)
        MS_COLUMNS(table, "ll", "operation", "type");
    MS_COLUMNS(table, "rrrrrrrrrrr", "fitted", "median (%)", "bias (%)", "p90 (%)",
               "not fitted", "median (%)", "bias (%)", "p90 (%)", "rate", "launch (us)",
               "median (%)");
    for (int i = 0; i < num_scores; i++) {
        const ms_kernel_score *score = &scores[i];
        ms_table_cells(table, "%s\t%.*s", score->gpu, ms_utf8_prefix(score->source, 48),
                       score->source);
        if (detail)
            ms_table_cells(table, "%s\t%s", score->op, score->dtype);
        row_errors_cells(table, &score->fitted);
        row_errors_cells(table, &score->others);
        ms_table_cells(table, "%.2f\t%.1f\t%.1f", score->rate_frac, 1e6 * score->launch_s,
                       100.0 * score->adapted.median_ape_frac);
    }
    ms_table_print(table, out);
}

static void print_kernel_rows(FILE *out, ms_arena *arena, const ms_kernel_validation *v)
{
    ms_table *table = MS_TABLE(arena, "rlllrrr", "line", "GPU", "operation", "fitted",
                               "measured (us)", "predicted (us)", "error (%)");
    for (int i = 0; i < v->rows->num_rows; i++) {
        const ms_kernel_row *row = &v->rows->rows[i];
        if (row->reason != NULL)
            continue;
        ms_table_cells(table, "%d\t%s\t%s\t%s\t%.1f\t%.1f\t%+.1f", row->line, row->gpu,
                       row->op, row->fitted ? "yes" : "no", 1e6 * row->measured_s,
                       1e6 * v->predicted_s[i],
                       100.0 * ms_pubrun_error_frac(v->predicted_s[i], row->measured_s));
    }
    ms_table_print(table, out);
    fputc('\n', out);
}

void ms_kernel_validation_print(FILE *out, ms_arena *arena, const ms_kernel_validation *v,
                                bool rows)
{
    if (rows && v->num_priced > 0)
        print_kernel_rows(out, arena, v);
    ms_print(out, "%d rows, %d predicted\n", v->rows->num_rows, v->num_priced);
    if (v->num_priced > 0) {
        ms_print(out,
                 "\nkernels in isolation, without the derating of rates under training.\n"
                 "fitted: half of the shapes, of sources that coefficients name.\n"
                 "rate, launch: the source's clocks and host relative to the prediction, "
                 "fitted to that half; then the median error of the other half\n\n"
                 "by GPU and source\n");
        print_kernel_scores(out, arena, v->sources, v->num_sources, false);
        ms_print(out, "\nby operation\n");
        print_kernel_scores(out, arena, v->details, v->num_details, true);
    }
    ms_skipped_print(out, arena, &v->rows->skipped);
}

/* ---- collectives ---- */

static const char *fitted_word(const ms_collective_score *score)
{
    int num_rows = score->large.num_rows + score->small.num_rows;
    if (score->num_fitted == 0)
        return "no";
    return score->num_fitted == num_rows ? "yes" : "in part";
}

static void print_collective_scores(FILE *out, ms_arena *arena,
                                    const ms_collective_score *scores, int num_scores,
                                    bool detail)
{
    ms_table *table =
        MS_TABLE(arena, detail ? "Llrrrr1r2rrr1r2" : "Lllrrr1r2rrr1r2", "system",
                 detail ? "collective" : "cluster", detail ? "nodes" : "fitted",
                 ">=1 MiB", "median (%)", "bias (%)", "p90 (%)", "below", "median (%)",
                 "bias (%)", "p90 (%)");
    for (int i = 0; i < num_scores; i++) {
        const ms_collective_score *score = &scores[i];
        ms_table_cell(table, "%s", score->system);
        if (detail)
            ms_table_cells(table, "%s\t%ld", score->collective, score->nodes);
        else
            ms_table_cells(table, "%s\t%s", score->cluster, fitted_word(score));
        row_errors_cells(table, &score->large);
        row_errors_cells(table, &score->small);
    }
    ms_table_print(table, out);
}

static void print_collective_rows(FILE *out, ms_arena *arena,
                                  const ms_collective_validation *v)
{
    ms_table *table = MS_TABLE(arena, "rLllr1r1r1r2r2r", "line", "system", "collective",
                               "algorithm", "GPUs", "nodes", "bytes", "measured (us)",
                               "predicted (us)", "error (%)");
    for (int i = 0; i < v->rows->num_rows; i++) {
        const ms_collective_row *row = &v->rows->rows[i];
        if (row->reason != NULL)
            continue;
        ms_table_cells(table, "%d\t%s\t%s\t%s\t%ld\t%ld\t%.0f\t%.1f\t%.1f\t%+.1f",
                       row->line, row->system, ms_collective_names[row->collective],
                       ms_algorithm_name(ms_collective_row_algorithm(row)), row->gpus,
                       row->nodes, row->size_bytes, 1e6 * row->measured_s,
                       1e6 * v->predicted_s[i],
                       100.0 * ms_pubrun_error_frac(v->predicted_s[i], row->measured_s));
    }
    ms_table_print(table, out);
    fputc('\n', out);
}

void ms_collective_validation_print(FILE *out, ms_arena *arena,
                                    const ms_collective_validation *v, bool rows)
{
    if (rows && v->num_priced > 0)
        print_collective_rows(out, arena, v);
    ms_print(out, "%d rows, %d predicted\n", v->rows->num_rows, v->num_priced);
    if (v->num_priced > 0) {
        ms_print(out, "\nby system; fitted: coefficients of its laws name these rows\n");
        print_collective_scores(out, arena, v->systems, v->num_systems, false);
        ms_print(out, "\nby collective and number of nodes\n");
        print_collective_scores(out, arena, v->details, v->num_details, true);
    }
    ms_skipped_print(out, arena, &v->rows->skipped);
}

/* ---- fitted coefficients ---- */

/* Adds a cell with a coefficient of a cost law and its unit; a dash if not finite. */
static void law_value_cell(ms_table *table, double value, ms_unit unit)
{
    if (!isfinite(value))
        ms_table_cell(table, "-");
    else if (unit == MS_UNIT_SECONDS && value > 0.0 && value < 1e-7)
        ms_table_cell(table, "%.3g ns", 1e9 * value);
    else if (unit == MS_UNIT_SECONDS)
        ms_table_cell(table, "%.3g us", 1e6 * value);
    else if (unit == MS_UNIT_FLOP_PER_S)
        ms_table_cell(table, "%.4g TFLOP/s", 1e-12 * value);
    else if (unit == MS_UNIT_BYTES_PER_S)
        ms_table_cell(table, "%.4g GB/s", 1e-9 * value);
    else
        ms_table_cell(table, "%.4g", value);
}

/* Titles of the cells that law_value_cells adds for one coefficient. */
#define LAW_VALUE_TITLES "shipped", "fitted", "90 % from", "to"
static void law_value_cells(ms_table *table, const ms_law_value *value)
{
    law_value_cell(table, value->shipped, value->unit);
    law_value_cell(table, value->fitted.value, value->unit);
    law_value_cell(table, value->fitted.low, value->unit);
    law_value_cell(table, value->fitted.high, value->unit);
}

static void print_kernel_values(FILE *out, ms_arena *arena, const ms_kernels_fit *fit)
{
    ms_table *table = MS_TABLE(arena, "llrrrrr", "profile", "coefficient",
                               LAW_VALUE_TITLES, "rows fitted on");
    for (int i = 0; i < fit->num_fits; i++) {
        const ms_law_fit *law = &fit->fits[i].law;
        for (int j = 0; j < law->num_values; j++) {
            ms_table_cells(table, "%s\t%s.%s", law->profile, law->law,
                           law->values[j].key);
            law_value_cells(table, &law->values[j]);
            ms_table_cell(table, "%d", law->fit.num_points);
        }
    }
    ms_table_print(table, out);
}

void ms_kernels_fit_print(FILE *out, ms_arena *arena, const ms_kernels_fit *fit)
{
    print_kernel_values(out, arena, fit);
    fputs("\nrows of the other half, by shipped and by fitted coefficients\n\n", out);
    ms_table *table = MS_TABLE(arena, "llrrrrrrrr", "profile", "law", "shipped: rows",
                               "median (%)", "bias (%)", "p90 (%)", "fitted: rows",
                               "median (%)", "bias (%)", "p90 (%)");
    for (int i = 0; i < fit->num_fits; i++) {
        ms_table_cells(table, "%s\t%s", fit->fits[i].law.profile, fit->fits[i].law.law);
        row_errors_cells(table, &fit->fits[i].shipped_errors);
        row_errors_cells(table, &fit->fits[i].fitted_errors);
    }
    ms_table_print(table, out);
}

static void print_collective_values(FILE *out, ms_arena *arena,
                                    const ms_collectives_fit *fit)
{
    ms_table *table = MS_TABLE(arena, "llrrrrrr", "profile", "coefficient",
                               LAW_VALUE_TITLES, "rows", "systems");
    for (int i = 0; i < fit->num_fits; i++) {
        const ms_law_fit *law = &fit->fits[i].law;
        for (int j = 0; j < law->num_values; j++) {
            ms_table_cells(table, "%s\t%s", law->profile, law->values[j].key);
            law_value_cells(table, &law->values[j]);
            ms_table_cells(table, "%d\t%d", law->fit.num_points,
                           fit->fits[i].num_systems);
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
        MS_TABLE(arena, "Lllrrrrrr", "system", "profile", "law", ">=1 MiB", "shipped (%)",
                 "by others (%)", "below", "shipped (%)", "by others (%)");
    for (int i = 0; i < fit->num_systems; i++) {
        const ms_system_errors *system = &fit->systems[i];
        ms_table_cells(
            table, "%s\t%s\t%s\t%d\t%.1f\t%.1f\t%d\t%.1f\t%.1f", system->system,
            system->profile, system->law, system->shipped_large.num_rows,
            100.0 * system->shipped_large.median_ape_frac,
            100.0 * system->large.median_ape_frac, system->shipped_small.num_rows,
            100.0 * system->shipped_small.median_ape_frac,
            100.0 * system->small.median_ape_frac);
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
        MS_TABLE(arena, "llrll9", "profile", "coefficient", "shipped", "from", "source");
    for (int i = 0; i < fit->num_undetermined; i++) {
        const ms_undetermined *untold = &fit->untold[i];
        ms_table_cells(table, "%s\t%s", untold->profile, untold->key);
        law_value_cell(table, untold->shipped->value, untold->unit);
        ms_table_cells(table, "%s\t%.*s", ms_provenance_names[untold->shipped->from],
                       ms_utf8_prefix(untold->shipped->source, 72),
                       untold->shipped->source);
    }
    ms_table_print(table, out);
}

void ms_collectives_fit_print(FILE *out, ms_arena *arena, const ms_collectives_fit *fit,
                              bool holdout)
{
    print_collective_values(out, arena, fit);
    if (holdout)
        print_systems(out, arena, fit);
    print_undetermined(out, arena, fit);
}
