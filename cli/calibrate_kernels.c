#include "cli/calibrate_kernels.h"

#include "cli/output.h"
#include "cli/validate_kernels.h"
#include "sim/kernels_fit.h"

static ms_status fit_and_report(ms_ctx *cx, const ms_args *args,
                                const ms_kernel_rows *rows, FILE *out)
{
    ms_kernels_fit fit;
    MS_TRY(ms_kernels_fit_make(cx, rows, &fit));
    if (args->common.json) {
        ms_jout json = ms_jout_open(out);
        ms_kernels_fit_write_json(&json, &fit);
        ms_jout_close(&json);
    } else {
        ms_kernels_fit_print(out, cx->arena, &fit);
    }
    return MS_OK;
}

ms_status ms_calibrate_from_kernels(ms_ctx *cx, const ms_args *args,
                                    const ms_table_file *table)
{
    ms_kernel_rows rows;
    ms_output out; /* before the work, so that what cannot be written is known at once */
    MS_TRY(ms_output_check_distinct(
        cx, (const char *const[]){table->path, args->common.output}, 2));
    MS_TRY(ms_kernel_rows_read(cx, table->name, table->text, table->length, &rows));
    ms_kernel_faults_note(cx, &rows);
    if (rows.num_rows == 0)
        return ms_fail(cx, MS_EINPUT, (ms_loc){.file = table->name},
                       "a header without rows: nothing to fit to");
    MS_TRY(ms_output_open(cx, args->common.output, &out));
    return ms_output_close(cx, &out, fit_and_report(cx, args, &rows, out.file));
}
