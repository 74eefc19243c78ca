/* Prints errors of kernels as meshsim.validation-kernels/1 and as tables for people. */
#include "base/print.h"
#include "base/utf8.h"
#include "sim/validate/kernel_validation.h"
#include "sim/validate/pubrun_prices.h"
#include "sim/validate/score_print.h"

#include <math.h>

/* ---- JSON ---- */

static void write_scores(ms_jout *out, const char *key, const ms_kernel_score *scores,
                         int num_scores)
{
    ms_jout_begin_array_field(out, key);
    for (int i = 0; i < num_scores; i++) {
        const ms_kernel_score *score = &scores[i];
        ms_jout_begin_object(out);
        ms_jout_text_field(out, "gpu", score->gpu);
        ms_jout_text_field(out, "source", score->source);
        if (score->op != NULL) {
            ms_jout_text_field(out, "op", score->op);
            ms_jout_text_field(out, "dtype", score->dtype);
        }
        ms_row_errors_write(out, "fitted", &score->fitted);
        ms_row_errors_write(out, "not_fitted", &score->others);
        ms_jout_number_field(out, "rate_frac", score->rate_frac);
        ms_jout_number_field(out, "launch_s", score->launch_s);
        ms_row_errors_write(out, "at_its_rate", &score->adapted);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
}

static void write_row(ms_jout *out, const ms_kernel_row *row, double predicted_s)
{
    ms_jout_begin_object(out);
    ms_jout_number_field(out, "line", row->line);
    ms_jout_text_field(out, "gpu", row->gpu);
    ms_jout_text_field(out, "op", row->op);
    ms_jout_bool_field(out, "fitted", row->fitted);
    ms_jout_number_field(out, "measured_s", row->measured_s);
    ms_jout_number_field(out, "predicted_s", predicted_s);
    ms_jout_number_field(out, "error_frac",
                         ms_pubrun_error_frac(predicted_s, row->measured_s));
    ms_jout_end_object(out);
}

void ms_kernel_validation_write_json(ms_jout *out, const ms_kernel_validation *v)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "schema", "meshsim.validation-kernels/1");
    ms_jout_number_field(out, "rows", v->rows->num_rows);
    ms_jout_number_field(out, "priced", v->num_priced);
    write_scores(out, "by_source", v->sources, v->num_sources);
    write_scores(out, "by_operation", v->details, v->num_details);
    ms_skipped_write(out, &v->rows->skipped);
    ms_jout_begin_array_field(out, "kernels");
    for (int i = 0; i < v->rows->num_rows; i++)
        if (v->rows->rows[i].reason == NULL)
            write_row(out, &v->rows->rows[i], v->predicted_s[i]);
    ms_jout_end_array(out);
    ms_jout_end_object(out);
}

/* ---- text ---- */

static void adapted_cells(ms_table *table, const ms_kernel_score *score)
{
    if (isnan(score->rate_frac)) {
        ms_table_cell(table, "-");
        ms_table_cell(table, "-");
    } else {
        ms_table_cell(table, "%.2f", score->rate_frac);
        ms_table_cell(table, "%.1f", 1e6 * score->launch_s);
    }
    ms_percent_cell(table, score->adapted.median_ape_frac);
}

static void print_scores(FILE *out, ms_arena *arena, const ms_kernel_score *scores,
                         int num_scores, bool detail)
{
    ms_table *table = MS_TABLE(arena, "ll", "GPU", "source");
    if (detail)
        MS_COLUMNS(table, "ll", "operation", "type");
    MS_COLUMNS(table, "rrrrrrrrrrr", "fitted", "median (%)", "bias (%)", "p90 (%)",
               "not fitted", "median (%)", "bias (%)", "p90 (%)", "rate", "launch (us)",
               "median (%)");
    for (int i = 0; i < num_scores; i++) {
        const ms_kernel_score *score = &scores[i];
        ms_table_cell(table, "%s", score->gpu);
        ms_table_cell(table, "%.*s", ms_utf8_prefix(score->source, 48), score->source);
        if (detail) {
            ms_table_cell(table, "%s", score->op);
            ms_table_cell(table, "%s", score->dtype);
        }
        ms_row_errors_cells(table, &score->fitted);
        ms_row_errors_cells(table, &score->others);
        adapted_cells(table, score);
    }
    ms_table_print(table, out);
}

static void print_rows(FILE *out, ms_arena *arena, const ms_kernel_validation *v)
{
    ms_table *table = MS_TABLE(arena, "rlllrrr", "line", "GPU", "operation", "fitted",
                               "measured (us)", "predicted (us)", "error (%)");
    for (int i = 0; i < v->rows->num_rows; i++) {
        const ms_kernel_row *row = &v->rows->rows[i];
        if (row->reason != NULL)
            continue;
        ms_table_cell(table, "%d", row->line);
        ms_table_cell(table, "%s", row->gpu);
        ms_table_cell(table, "%s", row->op);
        ms_table_cell(table, "%s", row->fitted ? "yes" : "no");
        ms_table_cell(table, "%.1f", 1e6 * row->measured_s);
        ms_table_cell(table, "%.1f", 1e6 * v->predicted_s[i]);
        ms_signed_percent_cell(table,
                               ms_pubrun_error_frac(v->predicted_s[i], row->measured_s));
    }
    ms_table_print(table, out);
    fputc('\n', out);
}

void ms_kernel_validation_print(FILE *out, ms_arena *arena, const ms_kernel_validation *v,
                                bool rows)
{
    if (rows && v->num_priced > 0)
        print_rows(out, arena, v);
    ms_print(out, "%d rows, %d predicted\n", v->rows->num_rows, v->num_priced);
    if (v->num_priced > 0) {
        ms_print(out,
                 "\nkernels in isolation, without the derating of rates under training.\n"
                 "fitted: half of the shapes, of sources that coefficients name.\n"
                 "rate, launch: the source's clocks and host relative to the prediction, "
                 "fitted to that half; then the median error of the other half\n\n"
                 "by GPU and source\n");
        print_scores(out, arena, v->sources, v->num_sources, false);
        ms_print(out, "\nby operation\n");
        print_scores(out, arena, v->details, v->num_details, true);
    }
    ms_skipped_print(out, arena, &v->rows->skipped);
}
