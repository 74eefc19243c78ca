#include "cli/calibrate_runs.h"

#include "base/paths.h"
#include "base/table.h"
#include "cli/output.h"
#include "sim/run_prices.h"
#include "sim/runs_fit.h"
#include "sim/runs_spread.h"

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
        if (isnan(shipped_value(c)))
            ms_table_cell(table, "-");
        else
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

/* What runs tell that nothing was fitted to. */
typedef struct held_out {
    ms_validation sources; /* each source by all others */
    ms_validation folds;   /* each fifth of the models by the others, its source known */
    ms_error_spread spread;
} held_out;

static void print_report(FILE *out, ms_arena *arena, const ms_runs_fit *fit,
                         const held_out *held)
{
    print_constants(out, arena, fit);
    if (held == NULL)
        return;
    fputs("\nEach source by constants that were fitted without it:\n\n", out);
    ms_validation_print(out, arena, &held->sources, false);
    const ms_error_summary *folds = &held->folds.time;
    fprintf(out,
            "\nEach fifth of the models of every source by constants that were fitted "
            "without it, step time: median error %.1f %% as a mean over sources\n"
            "90 %% intervals, without the fifth's errors: ",
            100.0 * folds->macro_median_ape_frac);
    ms_coverage_print(out, folds);
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

static void write_folds(ms_jout *out, const ms_error_summary *time)
{
    ms_jout_begin_object(out);
    ms_jout_number_field(out, "macro_median_ape", time->macro_median_ape_frac);
    ms_jout_number_field(out, "interval_coverage_frac", time->macro_coverage_frac);
    ms_jout_number_field(out, "interval_coverage_of_runs_frac", time->run_coverage_frac);
    ms_jout_end_object(out);
}

static void write_json(FILE *file, const ms_runs_fit *fit, const held_out *held)
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
    if (held == NULL)
        ms_jout_null(&out);
    else
        ms_validation_write_json(&out, &held->sources);
    ms_jout_key(&out, "folds");
    if (held == NULL)
        ms_jout_null(&out);
    else
        write_folds(&out, &held->folds.time);
    ms_jout_end_object(&out);
    ms_jout_close(&out);
}

/* ---- the command ---- */

static ms_run_score *unpriced(ms_arena *arena, int num_runs)
{
    ms_run_score *scores = MS_NEW_ARRAY(arena, num_runs, ms_run_score);
    for (int i = 0; i < num_runs; i++)
        scores[i] = ms_run_unpriced;
    return scores;
}

static ms_status hold_out(ms_ctx *cx, ms_runs_fit *fit, const char *runs_path,
                          held_out *out)
{
    const ms_published_runs *runs = fit->runs;
    ms_run_score *sources = unpriced(cx->arena, runs->num_runs),
                 *folds = unpriced(cx->arena, runs->num_runs);
    MS_TRY(ms_runs_fit_cross_validate_folds(cx, fit, folds));
    MS_TRY(ms_runs_fit_cross_validate(cx, fit, sources));
    out->spread = ms_runs_spread_make(cx->arena, runs, sources, folds);
    out->spread.source =
        ms_arena_printf(cx->arena, "fitted: meshsim calibrate --from %s --spread",
                        ms_path_name(runs_path));
    ms_validation_summarise(cx->arena, runs, sources, &out->sources);
    ms_validation_summarise(cx->arena, runs, folds, &out->folds);
    return MS_OK;
}

static ms_status write_spread(ms_ctx *cx, const char *path, const ms_error_spread *spread)
{
    ms_output out;
    MS_TRY(ms_output_open(cx, path, &out));
    ms_jout json = ms_jout_open(out.file);
    ms_error_spread_write_json(&json, spread);
    ms_jout_close(&json);
    return ms_output_close(cx, &out, MS_OK);
}

static ms_status fit_and_report(ms_ctx *cx, const ms_args *args, ms_runs_fit *fit,
                                const ms_calibrate_runs *options, FILE *out)
{
    held_out held;
    bool holdout = options->holdout || options->spread != NULL;
    ms_runs_fit_make(fit, -1);
    ms_runs_fit_intervals(fit);
    if (holdout)
        MS_TRY(hold_out(cx, fit, options->runs, &held));
    if (options->spread != NULL)
        MS_TRY(write_spread(cx, options->spread, &held.spread));
    if (args->common.json)
        write_json(out, fit, holdout ? &held : NULL);
    else
        print_report(out, cx->arena, fit, holdout ? &held : NULL);
    return MS_OK;
}

void ms_run_faults_note(const ms_ctx *cx, const ms_published_runs *runs)
{
    ms_fault_notes notes = {.cx = cx};
    for (int i = 0; i < runs->num_runs; i++)
        ms_fault_note(&notes, runs->runs[i].line, runs->runs[i].fault);
    ms_fault_notes_end(&notes);
}

static ms_status open_and_fit(ms_ctx *cx, const ms_args *args, ms_runs_fit *fit,
                              const ms_calibrate_runs *options)
{
    ms_output out; /* before the work, so that what cannot be written is known at once */
    const char *given = options->spread != NULL ? "--spread" : "--holdout";
    if (fit->num_sources == 0)
        return ms_fail(cx, MS_EINPUT, (ms_loc){.file = options->runs},
                       "no run that can be predicted has a step time");
    if (fit->num_sources == 1 && (options->holdout || options->spread != NULL))
        return ms_fail(cx, MS_EINPUT, (ms_loc){.file = options->runs},
                       "%s fits without each source, and all runs are of one", given);
    MS_TRY(ms_output_open(cx, args->common.output, &out));
    return ms_output_close(cx, &out, fit_and_report(cx, args, fit, options, out.file));
}

ms_status ms_calibrate_from_runs(ms_ctx *cx, const ms_args *args,
                                 const ms_calibrate_runs *options,
                                 const ms_table_file *table)
{
    ms_published_runs runs;
    ms_runs_fit fit;
    const char *constants =
        options->constants != NULL ? options->constants : DEFAULT_CONSTANTS;
    MS_TRY(ms_output_check_distinct(
        cx, (const char *const[]){options->runs, args->common.output, options->spread},
        3));
    MS_TRY(ms_output_check_writable(cx, options->spread));
    MS_TRY(ms_runs_read(cx, table->name, table->text, table->length, &runs));
    ms_run_faults_note(cx, &runs);
    MS_TRY(ms_runs_fit_load(cx, constants, &runs, &fit));
    ms_status status = open_and_fit(cx, args, &fit, options);
    ms_runs_fit_close(&fit);
    return status;
}
