#include "cli/validate_collectives.h"

#include "cli/output.h"
#include "sim/collective_validation.h"

void ms_collective_faults_note(const ms_ctx *cx, const ms_collective_rows *rows)
{
    ms_fault_notes notes = {.cx = cx};
    for (int i = 0; i < rows->num_rows; i++)
        ms_fault_note(&notes, rows->rows[i].line, rows->rows[i].fault);
    ms_fault_notes_end(&notes);
}

ms_status ms_validate_collectives_command(ms_ctx *cx, const ms_args *args,
                                          const ms_table_file *table)
{
    ms_collective_rows rows;
    MS_TRY(ms_collective_rows_read(cx, table->name, table->text, table->length, &rows));
    ms_collective_faults_note(cx, &rows);
    ms_output out;
    MS_TRY(ms_output_open(cx, args->common.output, &out));
    ms_collective_validation validation;
    ms_collective_validate(cx, &rows, &validation);
    if (args->common.json) {
        ms_jout json = ms_jout_open(out.file);
        ms_collective_validation_write_json(&json, &validation);
        ms_jout_close(&json);
    } else {
        ms_collective_validation_print(out.file, cx->arena, &validation,
                                       !args->common.quiet);
    }
    return ms_output_close(cx, &out, MS_OK);
}
