#include "cli/cmd/measured_tables.h"
#include "cli/report/report.h"

#include "cli/options/output.h"
#include "sim/validate/collective_validation.h"
#include "sim/validate/collectives_fit.h"
#include "sim/validate/kernel_validation.h"
#include "sim/validate/kernels_fit.h"

/* Rows of a table of collectives or of kernels; the other member remains empty. */
typedef struct measured {
    ms_collective_rows collectives;
    ms_kernel_rows kernels;
} measured;

static ms_status read_rows(ms_ctx *cx, const ms_table_file *table, measured *out)
{
    bool kernels = table->kind == MS_TABLE_KERNELS;
    MS_TRY(kernels ? ms_kernel_rows_read(cx, table->name, table->text, table->length,
                                         &out->kernels)
                   : ms_collective_rows_read(cx, table->name, table->text, table->length,
                                             &out->collectives));
    ms_faults_note(cx, kernels ? &out->kernels.skipped : &out->collectives.skipped);
    return MS_OK;
}

/* ---- validate ---- */

static void validate_collectives(ms_ctx *cx, const ms_args *args,
                                 const ms_collective_rows *rows, ms_jout *json)
{
    ms_collective_validation v;
    ms_collective_validate(cx, rows, &v);
    if (args->common.json)
        ms_collective_validation_write_json(json, &v);
    else
        ms_collective_validation_print(json->file, cx->arena, &v, !args->common.quiet);
}

static ms_status validate_kernels(ms_ctx *cx, const ms_args *args,
                                  const ms_kernel_rows *rows, ms_jout *json)
{
    ms_kernel_validation v;
    MS_TRY(ms_kernel_validate(cx, rows, &v));
    if (args->common.json)
        ms_kernel_validation_write_json(json, &v);
    else
        ms_kernel_validation_print(json->file, cx->arena, &v, !args->common.quiet);
    return MS_OK;
}

/* ---- fit ---- */

static ms_status fit_collectives(ms_ctx *cx, const ms_args *args,
                                 const ms_collective_rows *rows, bool holdout,
                                 ms_jout *json)
{
    ms_collectives_fit fit;
    MS_TRY(ms_collectives_fit_make(cx, rows, holdout, &fit));
    if (args->common.json)
        ms_collectives_fit_write_json(json, &fit);
    else
        ms_collectives_fit_print(json->file, cx->arena, &fit, holdout);
    return MS_OK;
}

static ms_status fit_kernels(ms_ctx *cx, const ms_args *args, const ms_kernel_rows *rows,
                             ms_jout *json)
{
    ms_kernels_fit fit;
    MS_TRY(ms_kernels_fit_make(cx, rows, &fit));
    if (args->common.json)
        ms_kernels_fit_write_json(json, &fit);
    else
        ms_kernels_fit_print(json->file, cx->arena, &fit);
    return MS_OK;
}

/* ---- both ---- */

ms_status ms_validate_measured(ms_ctx *cx, const ms_args *args,
                               const ms_table_file *table)
{
    measured rows;
    ms_output out;
    ms_status status = MS_OK;
    MS_TRY(read_rows(cx, table, &rows));
    MS_TRY(ms_output_open(cx, args->common.output, &out));
    if (table->kind == MS_TABLE_KERNELS)
        status = validate_kernels(cx, args, &rows.kernels, &out.json);
    else
        validate_collectives(cx, args, &rows.collectives, &out.json);
    return ms_output_close(cx, &out, status);
}

ms_status ms_calibrate_from_measured(ms_ctx *cx, const ms_args *args,
                                     const ms_table_file *table, bool holdout)
{
    measured rows;
    ms_output out; /* opened before the fit, so that write errors appear at once */
    bool kernels = table->kind == MS_TABLE_KERNELS;
    MS_TRY(ms_output_check_differ(cx, table->path, args->common.output));
    MS_TRY(read_rows(cx, table, &rows));
    if ((kernels ? rows.kernels.num_rows : rows.collectives.num_rows) == 0)
        return ms_fail(cx, MS_EINPUT, (ms_loc){.file = table->name},
                       "a header without rows: nothing to fit to");
    MS_TRY(ms_output_open(cx, args->common.output, &out));
    ms_status status =
        kernels ? fit_kernels(cx, args, &rows.kernels, &out.json)
                : fit_collectives(cx, args, &rows.collectives, holdout, &out.json);
    return ms_output_close(cx, &out, status);
}
