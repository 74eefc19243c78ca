#include "cli/calibrate_runs.h"

#include "base/table.h"
#include "cli/output.h"
#include "sim/run_prices.h"
#include "sim/runs_fit.h"

#include <math.h>

#define DEFAULT_CONSTANTS "step-time"

/* NaN: no run uses any of its files. */
static double shipped_value(const ms_fit_constant *c)
{
    for (int i = 0; i < c->num_targets; i++)
        if (c->targets[i].value != NULL)
            return c->targets[i].shipped;
    return (double)NAN;
}

/* ---- text ---- */

static void print_constants(FILE *out, ms_arena *arena, const ms_runs_fit *fit)
{
    ms_table *table =
        ms_table_new(arena, "constant|runs|sources|shipped|fitted|90 %|without runs");
    for (int i = 0; i < fit->num_constants; i++) {
        const ms_fit_constant *c = &fit->constants[i];
        ms_table_cell(table, "%s", c->name);
        ms_table_cell(table, "%d", c->num_rows);
        ms_table_cell(table, "%d", c->num_sources);
        ms_table_cell(table, "%.4g", shipped_value(c));
        ms_table_cell(table, "%.4g", c->value);
        ms_table_cell(table, "%.4g to %.4g", c->value_low, c->value_high);
        ms_table_cell(table, "%.4g", c->unknown);
    }
    ms_table_print(table, out);
    int num_runs = 0;
    for (int i = 0; i < fit->runs->num_runs; i++)
        num_runs += fit->source_of[i] >= 0;
    fprintf(out, "%d constants from %d runs\n", fit->num_constants, num_runs);
}

static void print_report(FILE *out, ms_arena *arena, const ms_runs_fit *fit,
                         const ms_validation *held_out)
{
    print_constants(out, arena, fit);
    if (held_out == NULL)
        return;
    fputs("\nEach source by constants that were fitted without it:\n\n", out);
    ms_validation_print(out, arena, held_out, false);
}

/* ---- JSON ---- */

static void write_constant(ms_jout *out, const ms_fit_constant *c)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "name", c->name);
    ms_jout_key(out, "of");
    ms_jout_begin_array(out);
    for (int i = 0; i < c->num_targets; i++)
        ms_jout_text(out, c->targets[i].name);
    ms_jout_end_array(out);
    ms_jout_number_field(out, "runs", c->num_rows);
    ms_jout_number_field(out, "sources", c->num_sources);
    ms_jout_number_field(out, "shipped", shipped_value(c));
    ms_jout_number_field(out, "fitted", c->value);
    ms_jout_number_field(out, "fitted_low", c->value_low);
    ms_jout_number_field(out, "fitted_high", c->value_high);
    ms_jout_number_field(out, "unknown", c->unknown);
    ms_jout_text_field(out, "unknown_source", c->unknown_source);
    ms_jout_end_object(out);
}

static void write_json(FILE *file, const ms_runs_fit *fit, const ms_validation *held_out)
{
    ms_jout out = ms_jout_open(file);
    ms_jout_begin_object(&out);
    ms_jout_text_field(&out, "schema", "meshsim.fit/1");
    ms_jout_key(&out, "constants");
    ms_jout_begin_array(&out);
    for (int i = 0; i < fit->num_constants; i++)
        write_constant(&out, &fit->constants[i]);
    ms_jout_end_array(&out);
    ms_jout_key(&out, "holdout");
    if (held_out == NULL)
        ms_jout_null(&out);
    else
        ms_validation_write_json(&out, held_out);
    ms_jout_end_object(&out);
    ms_jout_close(&out);
}

/* ---- the command ---- */

static ms_status hold_out(ms_ctx *cx, ms_runs_fit *fit, ms_validation *out)
{
    ms_run_score *scores = MS_NEW_ARRAY(cx->arena, fit->runs->num_runs, ms_run_score);
    for (int i = 0; i < fit->runs->num_runs; i++)
        scores[i] = ms_run_unpriced;
    MS_TRY(ms_runs_fit_cross_validate(cx, fit, scores));
    ms_validation_summarise(cx->arena, fit->runs, scores, out);
    return MS_OK;
}

static ms_status fit_and_report(ms_ctx *cx, const ms_args *args, ms_runs_fit *fit,
                                bool holdout, FILE *out)
{
    ms_validation held_out;
    ms_runs_fit_make(fit, -1);
    ms_runs_fit_intervals(fit);
    if (holdout)
        MS_TRY(hold_out(cx, fit, &held_out));
    if (args->common.json)
        write_json(out, fit, holdout ? &held_out : NULL);
    else
        print_report(out, cx->arena, fit, holdout ? &held_out : NULL);
    return MS_OK;
}

ms_status ms_calibrate_from_runs(ms_ctx *cx, const ms_args *args,
                                 const ms_calibrate_runs *options)
{
    ms_published_runs runs;
    ms_runs_fit fit;
    ms_output out; /* before the work, so that what cannot be written is known at once */
    const char *constants =
        options->constants != NULL ? options->constants : DEFAULT_CONSTANTS;
    MS_TRY(ms_output_check_distinct(
        cx, (const char *const[]){options->runs, args->common.output}, 2));
    MS_TRY(ms_runs_load(cx, options->runs, &runs));
    MS_TRY(ms_runs_fit_load(cx, constants, &runs, &fit));
    ms_status status = ms_output_open(cx, args->common.output, &out);
    if (status == MS_OK) {
        status = fit_and_report(cx, args, &fit, options->holdout, out.file);
        status = ms_output_close(cx, &out, status);
    }
    ms_runs_fit_close(&fit);
    return status;
}
