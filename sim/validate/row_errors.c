#include "sim/validate/row_errors.h"

#include "costmodel/calibrate/statistics.h"

#include <math.h>

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
