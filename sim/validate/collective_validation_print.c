/* Prints errors of collectives as meshsim.validation-collectives/1 and as tables for
 * people. */
#include "base/print.h"
#include "sim/validate/collective_validation.h"
#include "sim/validate/pubrun_prices.h"
#include "sim/validate/score_print.h"
#include "sim/validate/validation_priv.h"

#include <math.h>

/* ---- JSON ---- */

static void write_scores(ms_jout *out, const char *key, const ms_collective_score *scores,
                         int num_scores)
{
    ms_jout_begin_array_field(out, key);
    for (int i = 0; i < num_scores; i++) {
        const ms_collective_score *score = &scores[i];
        ms_jout_begin_object(out);
        ms_jout_text_field(out, "system", score->system);
        ms_jout_text_field(out, "cluster", score->cluster);
        if (score->collective != NULL) {
            ms_jout_text_field(out, "collective", score->collective);
            ms_jout_number_field(out, "nodes", (double)score->nodes);
        }
        ms_jout_number_field(out, "fitted_rows", score->num_fitted);
        ms_row_errors_write(out, "from_1_mib", &score->large);
        ms_row_errors_write(out, "below_1_mib", &score->small);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
}

static const char *algorithm_of(const ms_collective_row *row)
{
    ms_collective_law law = ms_collective_row_law(row);
    return ms_algorithm_name(row->algorithm != MS_ALGORITHM_NONE
                                 ? row->algorithm
                                 : ms_collective_algorithm(&law, row->size_bytes));
}

static void write_row(ms_jout *out, const ms_collective_row *row, double predicted_s)
{
    ms_jout_begin_object(out);
    ms_jout_number_field(out, "line", row->line);
    ms_jout_text_field(out, "system", row->system);
    ms_jout_text_field(out, "cluster", row->cluster->name);
    ms_jout_text_field(out, "collective", ms_collective_names[row->collective]);
    ms_jout_text_field(out, "algorithm", algorithm_of(row));
    ms_jout_number_field(out, "gpus", (double)row->gpus);
    ms_jout_number_field(out, "nodes", (double)row->nodes);
    ms_jout_number_field(out, "size_bytes", row->size_bytes);
    ms_jout_bool_field(out, "fitted", row->fitted);
    ms_jout_number_field(out, "measured_s", row->measured_s);
    ms_jout_number_field(out, "predicted_s", predicted_s);
    ms_jout_number_field(out, "error_frac",
                         ms_pubrun_error_frac(predicted_s, row->measured_s));
    ms_jout_end_object(out);
}

void ms_collective_validation_write_json(ms_jout *out, const ms_collective_validation *v)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "schema", "meshsim.validation-collectives/1");
    ms_jout_number_field(out, "rows", v->rows->num_rows);
    ms_jout_number_field(out, "priced", v->num_priced);
    write_scores(out, "by_system", v->systems, v->num_systems);
    write_scores(out, "by_collective", v->details, v->num_details);
    ms_skipped_write(out, &v->rows->skipped);
    ms_jout_begin_array_field(out, "collectives");
    for (int i = 0; i < v->rows->num_rows; i++)
        if (v->rows->rows[i].reason == NULL)
            write_row(out, &v->rows->rows[i], v->predicted_s[i]);
    ms_jout_end_array(out);
    ms_jout_end_object(out);
}

/* ---- text ---- */

static const char *fitted_word(const ms_collective_score *score)
{
    int num_rows = score->large.num_rows + score->small.num_rows;
    if (score->num_fitted == 0)
        return "no";
    return score->num_fitted == num_rows ? "yes" : "in part";
}

static void print_scores(FILE *out, ms_arena *arena, const ms_collective_score *scores,
                         int num_scores, bool detail)
{
    ms_table *table =
        MS_TABLE(arena, detail ? "llrrrrrrrrr" : "lllrrrrrrrr", "system",
                 detail ? "collective" : "cluster", detail ? "nodes" : "fitted",
                 ">= 1 MiB", "median (%)", "bias (%)", "p90 (%)", "below", "median (%)",
                 "bias (%)", "p90 (%)");
    for (int i = 0; i < num_scores; i++) {
        const ms_collective_score *score = &scores[i];
        ms_table_cell(table, "%s", score->system);
        if (detail) {
            ms_table_cell(table, "%s", score->collective);
            ms_table_cell(table, "%ld", score->nodes);
        } else {
            ms_table_cell(table, "%s", score->cluster);
            ms_table_cell(table, "%s", fitted_word(score));
        }
        ms_row_errors_cells(table, &score->large);
        ms_row_errors_cells(table, &score->small);
    }
    ms_table_print(table, out);
}

static void print_rows(FILE *out, ms_arena *arena, const ms_collective_validation *v)
{
    ms_table *table =
        MS_TABLE(arena, "rlllrrrrrr", "line", "system", "collective", "algorithm", "GPUs",
                 "nodes", "bytes", "measured (us)", "predicted (us)", "error (%)");
    for (int i = 0; i < v->rows->num_rows; i++) {
        const ms_collective_row *row = &v->rows->rows[i];
        if (row->reason != NULL)
            continue;
        ms_table_cell(table, "%d", row->line);
        ms_table_cell(table, "%s", row->system);
        ms_table_cell(table, "%s", ms_collective_names[row->collective]);
        ms_table_cell(table, "%s", algorithm_of(row));
        ms_table_cell(table, "%ld", row->gpus);
        ms_table_cell(table, "%ld", row->nodes);
        ms_table_cell(table, "%.0f", row->size_bytes);
        ms_table_cell(table, "%.1f", 1e6 * row->measured_s);
        ms_table_cell(table, "%.1f", 1e6 * v->predicted_s[i]);
        ms_signed_percent_cell(table,
                               ms_pubrun_error_frac(v->predicted_s[i], row->measured_s));
    }
    ms_table_print(table, out);
    fputc('\n', out);
}

void ms_collective_validation_print(FILE *out, ms_arena *arena,
                                    const ms_collective_validation *v, bool rows)
{
    if (rows && v->num_priced > 0)
        print_rows(out, arena, v);
    ms_print(out, "%d rows, %d predicted\n", v->rows->num_rows, v->num_priced);
    if (v->num_priced > 0) {
        ms_print(out, "\nby system; fitted: coefficients of its laws name these rows\n");
        print_scores(out, arena, v->systems, v->num_systems, false);
        ms_print(out, "\nby collective and number of nodes\n");
        print_scores(out, arena, v->details, v->num_details, true);
    }
    ms_skipped_print(out, arena, &v->rows->skipped);
}
