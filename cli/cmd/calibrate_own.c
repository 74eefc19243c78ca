#include "cli/cmd/calibrate_own.h"

#include "base/paths.h"
#include "cli/cmd/calibrate_runs.h"
#include "cli/options/output.h"
#include "cli/options/tables.h"
#include "cli/report/own_report.h"
#include "sim/validate/fit_files.h"

#include <string.h>

#define DEFAULT_CONSTANTS "own-runs"
#define MAX_FIT_ROWS      1000

#define ROW(kind, member, ...) kind(ms_calibrate_own, member, __VA_ARGS__)
const ms_option ms_calibrate_own_table[] = {
    ROW(MS_OPT_TEXT, runs, "--from-run", "RUNS.csv",
        "correct a profile and a stack by runs of your own: columns as for validate; "
        "status \"oom\" for those that ran out of memory"),
    ROW(MS_OPT_TEXT, profile, "--profile", "NAME|FILE",
        "profile to correct (default: that of each row's GPU)"),
    ROW(MS_OPT_TEXT, stack, "--stack", "NAME|FILE",
        "stack to correct (default: that of each row's framework)"),
    ROW(MS_OPT_INTEGER, fit_rows, "--fit-rows", "N", 1, MAX_FIT_ROWS,
        "with --holdout: fit N runs at a time and predict all others (default: leave "
        "each layout out in turn)"),
    ROW(MS_OPT_TEXT, write_profile, "--write-profile", "FILE.json",
        "write the corrected profile, for --profile FILE.json"),
    ROW(MS_OPT_TEXT, write_stack, "--write-stack", "FILE.json",
        "write the corrected stack, for --stack FILE.json"),
    {0},
};

/* ---- written files ---- */

/* Name of a written profile or stack: that of its file, without ".json". */
static const char *name_of(ms_arena *arena, const char *path)
{
    const char *name = ms_path_name(path), *dot = strrchr(name, '.');
    size_t length = dot == NULL || dot == name ? strlen(name) : (size_t)(dot - name);
    return ms_arena_strndup(arena, name, length);
}

static ms_status write_file(ms_ctx *cx, const ms_own_group *group, bool is_stack,
                            const char *path, const char *table)
{
    ms_output out;
    if (path == NULL)
        return MS_OK;
    MS_TRY(ms_output_open(cx, path, &out));
    ms_status status = ms_fit_file_write(cx, group, is_stack, name_of(cx->arena, path),
                                         ms_path_name(table), &out.json);
    if (status != MS_OK) {
        ms_output_drop(cx, &out);
        return status;
    }
    return ms_output_close(cx, &out, MS_OK);
}

/* A file has one set of coefficients, so that all runs must be of one group. */
static ms_status check_one_group(ms_ctx *cx, const ms_calibrate_own *options,
                                 const ms_own_runs *own)
{
    const char *given =
        options->write_profile != NULL ? "--write-profile" : "--write-stack";
    if (own->num_groups == 1 ||
        (options->write_profile == NULL && options->write_stack == NULL))
        return MS_OK;
    const ms_own_group *a = &own->groups[0], *b = &own->groups[1];
    ms_fail(cx, MS_EINPUT, (ms_loc){.file = options->runs},
            "%s writes one file, but the runs are of %d groups: \"%s\" with stack %s and "
            "profile %s, \"%s\" with stack %s and profile %s",
            given, own->num_groups, a->source, a->stack, a->profile, b->source, b->stack,
            b->profile);
    return ms_hint(cx, "keep the rows of one source, framework and GPU");
}

/* ---- the command ---- */

static ms_status fit_and_report(ms_ctx *cx, const ms_args *args, ms_own_runs *own,
                                const ms_calibrate_own *options, bool holdout)
{
    ms_own_report report = {.own = own, .table = ms_path_name(options->runs)};
    ms_output out;
    MS_TRY(ms_output_open(cx, args->common.output, &out));
    ms_status status = ms_own_runs_fit(cx, own);
    if (status == MS_OK && holdout) {
        report.holdout = true;
        report.fit_rows = options->fit_rows.given ? (int)options->fit_rows.value : 0;
        status = ms_own_runs_hold_out(cx, own, report.fit_rows, &report.num_held_out,
                                      &report.held_out);
    }
    if (status == MS_OK)
        status =
            write_file(cx, &own->groups[0], false, options->write_profile, options->runs);
    if (status == MS_OK)
        status =
            write_file(cx, &own->groups[0], true, options->write_stack, options->runs);
    if (status != MS_OK) {
        ms_output_drop(cx, &out);
        return status;
    }
    if (args->common.json)
        ms_own_report_write_json(&out.json, cx->arena, &report);
    else
        ms_own_report_print(out.file, cx->arena, &report);
    return ms_output_close(cx, &out, MS_OK);
}

static ms_status check_outputs(ms_ctx *cx, const ms_args *args,
                               const ms_calibrate_own *options, bool holdout)
{
    if (options->fit_rows.given && !holdout) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                "--fit-rows is for errors of runs left out, and none are asked for");
        return ms_hint(cx, "--holdout");
    }
    MS_TRY(ms_output_check_distinct(
        cx,
        (const char *const[]){options->runs, args->common.output, options->write_profile,
                              options->write_stack, options->profile, options->stack},
        6));
    MS_TRY(ms_output_check_writable(cx, options->write_profile));
    return ms_output_check_writable(cx, options->write_stack);
}

static ms_status check_runs(ms_ctx *cx, const ms_calibrate_own *options,
                            const ms_pubruns *runs, const ms_own_runs *own)
{
    if (own->num_groups > 0)
        return check_one_group(cx, options, own);
    ms_fail(cx, MS_EINPUT, (ms_loc){.file = options->runs},
            "no run can be predicted and has a step time or a peak: %s",
            runs->num_runs == 0 ? "the table has no rows" : "nothing to correct by");
    for (int i = 0; i < runs->num_runs; i++)
        if (runs->runs[i].reason != NULL)
            return ms_hint(cx, "%s: %s", runs->runs[i].id, runs->runs[i].reason);
    return MS_EINPUT;
}

ms_status ms_calibrate_from_own(ms_ctx *cx, const ms_args *args,
                                const ms_calibrate_own *options, const char *constants,
                                bool holdout)
{
    ms_own_list list;
    ms_own_runs own;
    ms_pubruns runs;
    ms_table_file table;
    const ms_pubrun_files base = {options->stack, options->profile};
    MS_TRY(check_outputs(cx, args, options, holdout));
    MS_TRY(
        ms_own_list_load(cx, constants != NULL ? constants : DEFAULT_CONSTANTS, &list));
    MS_TRY(ms_table_file_load(cx, options->runs, &table));
    if (table.kind != MS_TABLE_RUNS)
        return ms_fail(cx, MS_EINPUT, (ms_loc){.file = options->runs},
                       "--from-run is for training runs, and this is a table of %s",
                       ms_table_kind_names[table.kind]);
    MS_TRY(ms_pubruns_read_by(cx, table.name, table.text, table.length, &base, &runs));
    ms_run_faults_note(cx, &runs);
    ms_own_runs_open(cx, &runs, &list, &base, &own);
    ms_status status = check_runs(cx, options, &runs, &own);
    if (status == MS_OK)
        status = fit_and_report(cx, args, &own, options, holdout);
    ms_own_runs_close(&own);
    return status;
}
