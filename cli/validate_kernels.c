#include "cli/validate_kernels.h"

#include "cli/output.h"
#include "sim/kernel_validation.h"

void ms_kernel_faults_note(const ms_ctx *cx, const ms_kernel_rows *rows)
{
    ms_fault_notes notes = {.cx = cx};
    for (int i = 0; i < rows->num_rows; i++)
        ms_fault_note(&notes, rows->rows[i].line, rows->rows[i].fault);
    ms_fault_notes_end(&notes);
}

static ms_status report(ms_ctx *cx, const ms_args *args, const ms_kernel_rows *rows,
                        FILE *out)
{
    ms_kernel_validation validation;
    MS_TRY(ms_kernel_validate(cx, rows, &validation));
    if (args->common.json) {
        ms_jout json = ms_jout_open(out);
        ms_kernel_validation_write_json(&json, &validation);
        ms_jout_close(&json);
    } else {
        ms_kernel_validation_print(out, cx->arena, &validation, !args->common.quiet);
    }
    return MS_OK;
}

ms_status ms_validate_kernels_command(ms_ctx *cx, const ms_args *args,
                                      const ms_table_file *table)
{
    ms_kernel_rows rows;
    ms_output out;
    MS_TRY(ms_kernel_rows_read(cx, table->name, table->text, table->length, &rows));
    ms_kernel_faults_note(cx, &rows);
    MS_TRY(ms_output_open(cx, args->common.output, &out));
    return ms_output_close(cx, &out, report(cx, args, &rows, out.file));
}
