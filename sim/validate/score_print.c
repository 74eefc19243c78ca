#include "sim/validate/score_print.h"

#include "base/print.h"
#include "costmodel/calibrate/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void ms_number_cell(ms_table *table, int digits, double value)
{
    if (isnan(value))
        ms_table_cell(table, "-");
    else
        ms_table_cell(table, "%.*f", digits, value);
}

void ms_percent_cell(ms_table *table, double frac)
{
    ms_number_cell(table, 1, 100.0 * frac);
}

void ms_signed_percent_cell(ms_table *table, double frac)
{
    if (isnan(frac))
        ms_table_cell(table, "-");
    else
        ms_table_cell(table, "%+.1f", 100.0 * frac);
}

ms_row_errors ms_row_errors_of(ms_arena *arena, double *error_fracs, int num_rows)
{
    double *sizes = MS_NEW_ARRAY(arena, num_rows, double);
    for (int i = 0; i < num_rows; i++)
        sizes[i] = fabs(error_fracs[i]);
    return (ms_row_errors){num_rows, ms_quantile(sizes, num_rows, 0.5),
                           ms_quantile(sizes, num_rows, 0.9),
                           ms_quantile(error_fracs, num_rows, 0.5)};
}

void ms_row_errors_write(ms_jout *out, const char *key, const ms_row_errors *errors)
{
    ms_jout_begin_object_field(out, key);
    ms_jout_number_field(out, "n", errors->num_rows);
    ms_jout_number_field(out, "median_ape", errors->median_ape_frac);
    ms_jout_number_field(out, "bias", errors->bias_frac);
    ms_jout_number_field(out, "p90_ape", errors->p90_ape_frac);
    ms_jout_end_object(out);
}

void ms_row_errors_cells(ms_table *table, const ms_row_errors *errors)
{
    ms_table_cell(table, "%d", errors->num_rows);
    ms_percent_cell(table, errors->median_ape_frac);
    ms_signed_percent_cell(table, errors->bias_frac);
    ms_percent_cell(table, errors->p90_ape_frac);
}

/* ---- skipped rows ---- */

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Reasons without their remarks, sorted. */
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
    ms_table *table = MS_TABLE(arena, "lr", "reason", "rows");
    for (int first = 0, end; first < skipped->num_rows; first = end) {
        end = first + 1;
        while (end < skipped->num_rows && strcmp(reasons[first], reasons[end]) == 0)
            end++;
        ms_table_cell(table, "%s", reasons[first]);
        ms_table_cell(table, "%d", end - first);
    }
    ms_table_print(table, out);
}

void ms_skipped_write(ms_jout *out, const ms_skipped *skipped)
{
    ms_jout_begin_array_field(out, "skipped");
    for (int i = 0; i < skipped->num_rows; i++) {
        const ms_skipped_row *row = &skipped->rows[i];
        ms_jout_begin_object(out);
        ms_jout_number_field(out, "line", row->line);
        if (row->system != NULL)
            ms_jout_text_field(out, "system", row->system);
        ms_jout_text_field(out, "reason", row->fault != NULL ? row->fault : row->reason);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
}
