#include "cli/calibrate_runs.h"

#include "base/paths.h"
#include "base/table.h"
#include "cli/output.h"
#include "sim/run_prices.h"
#include "sim/runs_fit.h"

#include <math.h>

static double shipped_value(const ms_fit_constant *c)
{
    for (int i = 0; i < c->num_targets; i++)
        if (c->targets[i].value != NULL)
            return c->targets[i].shipped;
    return (double)NAN;
}

static void print_constants(FILE *out, ms_arena *arena, const ms_runs_fit *fit)
{
    ms_table *table =
        ms_table_new(arena, "constant|runs|sources|shipped|fitted|without runs");
    for (int i = 0; i < fit->num_constants; i++) {
        const ms_fit_constant *c = &fit->constants[i];
        ms_table_cell(table, "%s", c->name);
        ms_table_cell(table, "%d", c->num_rows);
        ms_table_cell(table, "%d", c->num_sources);
        ms_table_cell(table, "%.4g", shipped_value(c));
        ms_table_cell(table, "%.4g", c->value);
        ms_table_cell(table, "%.4g", c->unknown);
    }
    ms_table_print(table, out);
}

static ms_status report(ms_ctx *cx, const ms_args *args, ms_runs_fit *fit, bool holdout,
                        FILE *out)
{
    (void)args;
    ms_run_score *scores = MS_NEW_ARRAY(cx->arena, fit->runs->num_runs, ms_run_score);
    for (int i = 0; i < fit->runs->num_runs; i++)
        scores[i] = ms_run_unpriced;
    ms_runs_fit_make(fit, -1);
    print_constants(out, cx->arena, fit);
    if (!holdout)
        return MS_OK;
    MS_TRY(ms_runs_fit_cross_validate(cx, fit, scores));
    ms_validation validation;
    ms_validation_summarise(cx->arena, fit->runs, scores, &validation);
    fputs("\neach source by constants that were fitted without it\n", out);
    ms_validation_print(out, cx->arena, &validation, false);
    return MS_OK;
}

ms_status ms_calibrate_from_runs(ms_ctx *cx, const ms_args *args,
                                 const ms_calibrate_runs *options)
{
    ms_published_runs runs;
    ms_runs_fit fit;
    const char *path;
    MS_TRY(ms_config_resolve(
        cx, "fits", "list of constants",
        options->constants != NULL ? options->constants : "step-time", NULL, &path));
    MS_TRY(ms_runs_load(cx, options->runs, &runs));
    MS_TRY(ms_runs_fit_open(cx, path, &runs, &fit));
    ms_output out;
    ms_status status = ms_output_open(cx, args->common.output, &out);
    if (status == MS_OK)
        status =
            ms_output_close(cx, &out, report(cx, args, &fit, options->holdout, out.file));
    ms_runs_fit_close(&fit);
    return status;
}
