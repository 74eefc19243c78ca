#include "cli/cmd/calibrate_runs.h"
#include "cli/report/report.h"

#include "base/paths.h"
#include "base/print.h"
#include "base/table.h"
#include "cli/cmd/measured_tables.h"
#include "cli/options/output.h"
#include "cli/options/tables.h"
#include "sim/validate/pubrun_fit.h"
#include "sim/validate/pubrun_prices.h"
#include "sim/validate/pubrun_spread.h"

#include <math.h>

#define DEFAULT_CONSTANTS "step-time"
/* Name of the list of memory constants, fitted after DEFAULT_CONSTANTS. */
#define MEMORY_CONSTANTS "memory"

/* Value of a constant in the shipped configuration; NaN if no run uses the constant. */
static double shipped_value(const ms_fit_constant *c)
{
    for (int i = 0; i < c->num_targets; i++)
        if (c->targets[i].value != NULL)
            return c->targets[i].shipped;
    return (double)NAN;
}

/* ---- text ---- */

static void print_constants(FILE *out, ms_arena *arena, const ms_pubruns_fit *fit)
{
    ms_table *table = MS_TABLE(arena, "rrrrrrr", "constant", "runs", "sources", "shipped",
                               "fitted", "90 %", "without runs");
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
    ms_print(out, "%d constants from %d runs\n", fit->num_constants, num_runs);
}

/* Errors of runs held out of the fit: constants come from the other runs. */
typedef struct held_out {
    ms_validation sources; /* held out: all runs of one source at a time */
    ms_validation folds;   /* held out: all runs of a fifth of the models at a time */
    ms_error_spread spread;
    ms_ranking_spread ranking;
} held_out;

/* A list of constants and the published runs that the constants are fitted to. */
typedef struct fitted_list {
    ms_pubruns runs;
    ms_pubruns_fit fit;
    bool holds_out;
    held_out held; /* errors on held-out runs; set if `holds_out` */
} fitted_list;

static const char *measurement_name(const fitted_list *list)
{
    return ms_measurement_names[list->fit.measurement];
}

static const ms_error_summary *summary_of(const fitted_list *list,
                                          const ms_validation *validation)
{
    return list->fit.measurement == MS_MEASURED_PEAK ? &validation->memory
                                                     : &validation->time;
}

static void print_list(FILE *out, ms_arena *arena, const fitted_list *list)
{
    print_constants(out, arena, &list->fit);
    if (!list->holds_out)
        return;
    bool of_peaks = list->fit.measurement == MS_MEASURED_PEAK;
    fputs(of_peaks ? "\nPeak memory, held out: each source by constants that were fitted "
                     "without it\n"
                   : "\nEach source by constants that were fitted without it:\n\n",
          out);
    ms_validation_print_of(out, arena, &list->held.sources, list->fit.measurement);
    const ms_error_summary *folds = summary_of(list, &list->held.folds);
    ms_print(out,
             "\nEach fifth of the models of every source by constants that were fitted "
             "without it, %s: median error %.1f %% as a mean over sources\n"
             "90 %% intervals, without the fifth's errors: ",
             measurement_name(list), 100.0 * folds->macro_median_ape_frac);
    ms_coverage_print(out, folds);
}

/* ---- JSON ---- */

static void write_constant(ms_jout *out, const ms_fit_constant *c)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "name", c->name);
    ms_jout_begin_array_field(out, "of");
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

static void write_folds(ms_jout *out, const ms_error_summary *folds)
{
    ms_jout_begin_object(out);
    ms_jout_number_field(out, "macro_median_ape", folds->macro_median_ape_frac);
    ms_jout_number_field(out, "interval_coverage_frac", folds->macro_coverage_frac);
    ms_jout_number_field(out, "interval_coverage_of_runs_frac", folds->run_coverage_frac);
    ms_jout_end_object(out);
}

static void write_list(ms_jout *out, const fitted_list *list)
{
    const ms_pubruns_fit *fit = &list->fit;
    ms_jout_text_field(out, "measurement", measurement_name(list));
    ms_jout_begin_array_field(out, "constants");
    for (int i = 0; i < fit->num_constants; i++)
        write_constant(out, &fit->constants[i]);
    ms_jout_end_array(out);
    ms_jout_key(out, "holdout");
    if (list->holds_out)
        ms_validation_write_json(out, &list->held.sources);
    else
        ms_jout_null(out);
    ms_jout_key(out, "folds");
    if (list->holds_out)
        write_folds(out, summary_of(list, &list->held.folds));
    else
        ms_jout_null(out);
}

static void write_json(ms_jout *out, const fitted_list *lists, int num_lists)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "schema", "meshsim.fit/1");
    write_list(out, &lists[0]);
    ms_jout_key(out, "memory");
    if (num_lists > 1) {
        ms_jout_begin_object(out);
        write_list(out, &lists[1]);
        ms_jout_end_object(out);
    } else {
        ms_jout_null(out);
    }
    ms_jout_end_object(out);
}

/* ---- the command ---- */

static ms_pubrun_score *unpriced(ms_arena *arena, int num_runs)
{
    ms_pubrun_score *scores = MS_NEW_ARRAY(arena, num_runs, ms_pubrun_score);
    for (int i = 0; i < num_runs; i++)
        scores[i] = ms_pubrun_unpriced;
    return scores;
}

/* Provenance in the file of a spread: the command line that wrote it, by `option`. */
static char *spread_source(ms_arena *arena, const ms_calibrate_runs *options,
                           const char *option)
{
    bool named = options->constants != NULL;
    return ms_arena_printf(arena, "fitted: meshsim calibrate --from %s%s%s %s",
                           ms_path_name(options->runs), named ? " --constants " : "",
                           named ? ms_path_name(options->constants) : "", option);
}

static ms_status hold_out(ms_ctx *cx, ms_pubruns_fit *fit,
                          const ms_calibrate_runs *options, held_out *out)
{
    const ms_pubruns *runs = fit->runs;
    ms_pubrun_score *sources = unpriced(cx->arena, runs->num_runs),
                    *folds = unpriced(cx->arena, runs->num_runs);
    MS_TRY(ms_pubruns_fit_cross_validate_folds(cx, fit, folds));
    MS_TRY(ms_pubruns_fit_cross_validate(cx, fit, sources));
    out->spread =
        ms_pubruns_spread_make(cx->arena, runs, fit->measurement, sources, folds);
    out->spread.source = spread_source(cx->arena, options, "--spread");
    ms_validation_summarise(cx->arena, runs, sources, &out->sources);
    const ms_ranking_pairs *pairs = &out->sources.pairs;
    out->ranking = ms_ranking_spread_make(cx->arena, pairs->of, pairs->num);
    out->ranking.source = spread_source(cx->arena, options, "--ranking");
    ms_validation_judge_pairs(cx->arena, &out->ranking, &out->sources);
    ms_validation_summarise(cx->arena, runs, folds, &out->folds);
    return MS_OK;
}

static ms_status write_spread(ms_ctx *cx, const char *path, const ms_error_spread *spread)
{
    ms_output out;
    MS_TRY(ms_output_open(cx, path, &out));
    ms_error_spread_write_json(&out.json, spread);
    return ms_output_close(cx, &out, MS_OK);
}

static ms_status write_ranking(ms_ctx *cx, const char *path,
                               const ms_ranking_spread *spread)
{
    ms_output out;
    MS_TRY(ms_output_open(cx, path, &out));
    ms_ranking_spread_write_json(&out.json, spread);
    return ms_output_close(cx, &out, MS_OK);
}

static bool writes_spreads(const ms_calibrate_runs *options)
{
    return options->spread != NULL || options->ranking != NULL;
}

/* Fits and reports every list of constants; writes the spreads of the first list. */
static ms_status fit_and_report(ms_ctx *cx, const ms_args *args, fitted_list *lists,
                                int num_lists, const ms_calibrate_runs *options,
                                ms_output *out)
{
    for (int i = 0; i < num_lists; i++) {
        ms_pubruns_fit *fit = &lists[i].fit;
        bool wanted = options->holdout || (writes_spreads(options) && i == 0);
        lists[i].holds_out = wanted && fit->num_sources > 1;
        ms_pubruns_fit_make(fit, -1);
        ms_pubruns_fit_intervals(fit);
        if (lists[i].holds_out)
            MS_TRY(hold_out(cx, fit, options, &lists[i].held));
    }
    if (options->spread != NULL)
        MS_TRY(write_spread(cx, options->spread, &lists[0].held.spread));
    if (options->ranking != NULL)
        MS_TRY(write_ranking(cx, options->ranking, &lists[0].held.ranking));
    if (args->common.json)
        write_json(&out->json, lists, num_lists);
    else {
        for (int i = 0; i < num_lists; i++) {
            fputs(i > 0 ? "\nConstants of peak memory:\n\n" : "", out->file);
            print_list(out->file, cx->arena, &lists[i]);
        }
    }
    return MS_OK;
}

void ms_run_faults_note(const ms_ctx *cx, const ms_pubruns *runs)
{
    ms_skipped skipped = ms_pubruns_skipped(cx->arena, runs);
    ms_faults_note(cx, &skipped);
}

static ms_status check_sources(ms_ctx *cx, const fitted_list *first,
                               const ms_calibrate_runs *options)
{
    const ms_loc file = {.file = options->runs};
    const char *given = options->spread != NULL    ? "--spread"
                        : options->ranking != NULL ? "--ranking"
                                                   : "--holdout";
    if (first->fit.num_sources == 0)
        return ms_fail(cx, MS_EINPUT, file, "no run that can be predicted has a %s",
                       measurement_name(first));
    if (first->fit.num_sources == 1 && (options->holdout || writes_spreads(options)))
        return ms_fail(cx, MS_EINPUT, file,
                       "%s fits without each source, and all runs are of one", given);
    return MS_OK;
}

static ms_status open_and_fit(ms_ctx *cx, const ms_args *args, fitted_list *lists,
                              int num_lists, const ms_calibrate_runs *options)
{
    ms_output out; /* opened before the fit, so that write errors appear at once */
    MS_TRY(check_sources(cx, &lists[0], options));
    bool has_second = num_lists > 1 && lists[1].fit.num_sources > 0;
    MS_TRY(ms_output_open(cx, args->common.output, &out));
    return ms_output_close(
        cx, &out, fit_and_report(cx, args, lists, has_second ? 2 : 1, options, &out));
}

static ms_status calibrate_from_runs(ms_ctx *cx, const ms_args *args,
                                     const ms_calibrate_runs *options,
                                     const ms_table_file *table)
{
    fitted_list lists[2];
    const char *const names[] = {options->constants != NULL ? options->constants
                                                            : DEFAULT_CONSTANTS,
                                 options->constants != NULL ? NULL : MEMORY_CONSTANTS};
    ms_status status = MS_OK;
    int num = 0;
    MS_TRY(
        ms_output_check_distinct(cx,
                                 (const char *const[]){options->runs, args->common.output,
                                                       options->spread, options->ranking},
                                 4));
    MS_TRY(ms_output_check_writable(cx, options->spread));
    MS_TRY(ms_output_check_writable(cx, options->ranking));
    while (status == MS_OK && num < 2 && names[num] != NULL) {
        fitted_list *list = &lists[num];
        status =
            ms_pubruns_read(cx, table->name, table->text, table->length, &list->runs);
        if (status == MS_OK && num == 0)
            ms_run_faults_note(cx, &list->runs);
        if (status == MS_OK)
            status = ms_pubruns_fit_load(cx, names[num], &list->runs, &list->fit);
        num += status == MS_OK;
    }
    if (status == MS_OK)
        status = open_and_fit(cx, args, lists, num, options);
    for (int i = 0; i < num; i++)
        ms_pubruns_fit_close(&lists[i].fit);
    return status;
}

ms_status ms_calibrate_from_table(ms_ctx *cx, const ms_args *args,
                                  const ms_calibrate_runs *runs)
{
    ms_table_file table;
    MS_TRY(ms_table_file_load(cx, runs->runs, &table));
    if (table.kind == MS_TABLE_RUNS)
        return calibrate_from_runs(cx, args, runs, &table);
    const char *given = runs->constants != NULL                           ? "--constants"
                        : runs->spread != NULL                            ? "--spread"
                        : runs->ranking != NULL                           ? "--ranking"
                        : runs->holdout && table.kind == MS_TABLE_KERNELS ? "--holdout"
                                                                          : NULL;
    if (given != NULL) {
        return ms_fail(cx, MS_EINPUT, (ms_loc){.file = runs->runs},
                       "%s is for published runs, and this is a table of %s", given,
                       ms_table_kind_names[table.kind]);
    }
    return ms_calibrate_from_measured(cx, args, &table, runs->holdout);
}
