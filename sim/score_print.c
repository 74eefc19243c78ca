#include "sim/score_print.h"

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

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void ms_skipped_print(FILE *out, ms_arena *arena, const char **reasons, int num_reasons)
{
    if (num_reasons == 0)
        return;
    qsort(reasons, (size_t)num_reasons, sizeof *reasons, by_text);
    fprintf(out, "\nskipped\n");
    ms_table *table = ms_table_new(arena, "<reason|rows");
    for (int first = 0, end; first < num_reasons; first = end) {
        end = first + 1;
        while (end < num_reasons && strcmp(reasons[first], reasons[end]) == 0)
            end++;
        ms_table_cell(table, "%s", reasons[first]);
        ms_table_cell(table, "%d", end - first);
    }
    ms_table_print(table, out);
}
