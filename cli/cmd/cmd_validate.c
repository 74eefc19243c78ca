/* meshsim validate: predictions beside published measurements. */
#include "cli/cmd/calibrate_runs.h"
#include "cli/cmd/measured_tables.h"
#include "cli/cmd/validate_plot.h"
#include "cli/options/commands.h"
#include "cli/options/output.h"
#include "cli/options/tables.h"
#include "cli/report/report.h"
#include "sim/validate/validation_by.h"
#include "sim/validate/validation_worst.h"

#include <string.h>

typedef struct validate_options {
    const char *source;
    const char *id;
    const char *by;
    ms_opt_integer worst;
    const char *plot;
    const char *profile, *stack;
} validate_options;

#define MAX_WORST 1000000

static const ms_option validate_table[] = {
    MS_OPT_TEXT(validate_options, source, "--source", "TEXT",
                "only rows whose source contains TEXT"),
    MS_OPT_TEXT(validate_options, id, "--id", "ID", "only the row with this id"),
    MS_OPT_TEXT(
        validate_options, by, "--by", "KEY,...",
        "also errors by framework, gpu_type, model, precision, gpus, pp, tp, ...; "
        "gpu_type+precision groups by both"),
    MS_OPT_INTEGER(
        validate_options, worst, "--worst", "N", 1, MAX_WORST,
        "the N largest errors of step time, with the parts of the predicted time"),
    MS_OPT_TEXT(
        validate_options, plot, "--plot", "FILE",
        "a picture of predicted against measured; FILE ends in .png, .svg or .pdf"),
    MS_OPT_TEXT(validate_options, profile, "--profile", "NAME|FILE",
                "profile for all rows, in place of that of each row's GPU"),
    MS_OPT_TEXT(validate_options, stack, "--stack", "NAME|FILE",
                "stack for all rows, in place of that of each row's framework"),
    {0},
};

/* Records that no row is selected, hinting at the nearest run id or the known sources. */
static ms_status nothing_left(ms_ctx *cx, const validate_options *options,
                              const char *name, const ms_pubruns *all)
{
    const int most = 5;
    const char **ids = MS_NEW_ARRAY(cx->arena, all->num_runs, const char *);
    const char *sources = "", *last = NULL;
    int num_sources = 0;
    for (int i = 0; i < all->num_runs; i++) {
        const char *source = all->runs[i].source;
        ids[i] = all->runs[i].id;
        if (source == NULL || (last != NULL && strcmp(source, last) == 0))
            continue;
        last = source;
        if (num_sources++ < most)
            sources = ms_arena_printf(cx->arena, "%s%s\"%s\"", sources,
                                      sources[0] == '\0' ? "" : ", ", source);
    }
    ms_loc loc = {.file = name};
    if (options->id == NULL) {
        ms_fail(cx, MS_EINPUT, loc, "no row has a source that contains \"%s\"",
                options->source);
        return ms_hint(cx, "there are %s%s", sources, num_sources > most ? ", ..." : "");
    }
    ms_fail(cx, MS_EINPUT, loc, "no row%s has the id \"%s\"",
            options->source == NULL ? "" : " of that source", options->id);
    const char *nearest = ms_nearest(options->id, ids, all->num_runs);
    if (nearest != NULL)
        ms_hint(cx, "did you mean \"%s\"?", nearest);
    return MS_EINPUT;
}

/* Keeps the runs that --source and --id select; malformed rows have no source. */
static ms_status filter(ms_ctx *cx, const validate_options *options, const char *name,
                        ms_pubruns *runs)
{
    const ms_pubruns all = {runs->num_runs,
                            MS_NEW_ARRAY(cx->arena, runs->num_runs, ms_pubrun)};
    if (runs->num_runs > 0)
        memcpy(all.runs, runs->runs, (size_t)runs->num_runs * sizeof *runs->runs);
    int num_kept = 0;
    for (int i = 0; i < runs->num_runs; i++) {
        const ms_pubrun *run = &runs->runs[i];
        if (options->source != NULL &&
            (run->source == NULL || strstr(run->source, options->source) == NULL))
            continue;
        if (options->id != NULL && strcmp(run->id, options->id) != 0)
            continue;
        runs->runs[num_kept++] = *run;
    }
    runs->num_runs = num_kept;
    return num_kept > 0 || all.num_runs == 0 ? MS_OK
                                             : nothing_left(cx, options, name, &all);
}

static void note_defaults(const ms_ctx *cx, const ms_pubruns *runs)
{
    int num_runs = 0;
    for (int i = 0; i < runs->num_runs; i++) {
        const ms_pubrun *run = &runs->runs[i];
        if (run->reason != NULL || run->defaults == NULL)
            continue;
        num_runs++;
        ms_note_default(cx, "%s: %s", run->id, run->defaults);
    }
    if (num_runs > 0 && cx->verbosity <= 0)
        ms_note(cx,
                "%d rows lack values that were filled in with defaults; -v lists them",
                num_runs);
}

/* Status of a validation: MS_EINPUT when no row of the table could be predicted. */
static ms_status judge(ms_ctx *cx, const char *name, const ms_validation *validation)
{
    if (validation->num_priced > 0)
        return MS_OK;
    ms_status status =
        ms_fail(cx, MS_EINPUT, (ms_loc){.file = name}, "no run can be predicted: %s",
                validation->runs->num_runs == 0 ? "the table has no rows"
                                                : "every row is skipped");
    if (validation->runs->num_runs > 0)
        ms_hint(cx, "the last table of the report counts why");
    return status;
}

static ms_status write_validation(ms_ctx *cx, const ms_args *args, ms_output *out,
                                  const validate_options *options,
                                  ms_validation *validation)
{
    if (options->worst.given)
        ms_validation_find_worst(cx->arena, (int)options->worst.value, validation);
    note_defaults(cx, validation->runs);
    if (args->common.json)
        ms_validation_write_json(&out->json, validation);
    else
        ms_validation_print(out->file, cx->arena, validation, !args->common.quiet);
    return ms_output_close(cx, out, MS_OK);
}

/* Reads the runs of all tables; the order of runs is that of the command line. */
static ms_status read_runs(ms_ctx *cx, const validate_options *options,
                           const ms_table_file *tables, int num_tables, ms_pubruns *runs)
{
    const ms_pubrun_files files = {options->stack, options->profile};
    *runs = (ms_pubruns){0};
    for (int i = 0; i < num_tables; i++) {
        const ms_table_file *table = &tables[i];
        ms_pubruns of_table;
        MS_TRY(ms_pubruns_read_by(cx, table->name, table->text, table->length, &files,
                                  &of_table));
        ms_pubruns_append(cx->arena, runs, &of_table);
    }
    MS_TRY(filter(cx, options, tables[0].name, runs));
    ms_run_faults_note(cx, runs);
    return ms_pubruns_check_rules(cx, runs);
}

static ms_status validate_runs(ms_ctx *cx, const ms_args *args,
                               const validate_options *options,
                               const ms_table_file *tables, int num_tables)
{
    ms_pubruns runs;
    ms_pubrun_keys *keys = NULL;
    int num_keys = 0;
    if (options->by != NULL)
        MS_TRY(ms_pubrun_keys_parse(cx, "--by", options->by, &keys, &num_keys));
    ms_plot_target picture = {0};
    if (options->plot != NULL)
        MS_TRY(ms_validate_plot_open(cx, args, options->plot, tables[0].path, &picture));
    MS_TRY(read_runs(cx, options, tables, num_tables, &runs));
    ms_output out; /* opened before the work, so that write errors appear at once */
    MS_TRY(ms_output_open(cx, args->common.output, &out));
    ms_validation validation;
    ms_status status = ms_validate(cx, &runs, &validation);
    if (status != MS_OK) {
        ms_output_drop(cx, &out);
        return status;
    }
    ms_validation_group(cx->arena, keys, num_keys, &validation);
    MS_TRY(write_validation(cx, args, &out, options, &validation));
    if (options->plot != NULL)
        MS_TRY(ms_validate_plot_write(cx, &picture, &validation));
    return judge(cx, tables[0].name, &validation);
}

/* Loads all tables of the command line. Several must all be of published runs, and no
 * output may replace one of them. */
static ms_status load_tables(ms_ctx *cx, const ms_args *args, const char *plot,
                             ms_table_file *tables)
{
    int num = args->words.num_words;
    for (int i = 0; i < num; i++) {
        const char *path = args->words.words[i];
        MS_TRY(ms_output_check_distinct(
            cx, (const char *const[]){path, args->common.output, plot}, 3));
        MS_TRY(ms_table_file_load(cx, path, &tables[i]));
        if (num == 1 || tables[i].kind == MS_TABLE_RUNS)
            continue;
        ms_fail(cx, MS_EINPUT, (ms_loc){.file = path},
                "several tables must be of published runs, and this is one of %s",
                ms_table_kind_names[tables[i].kind]);
        return ms_hint(cx, "validate it by itself");
    }
    return MS_OK;
}

ms_status ms_cmd_validate(ms_ctx *cx, ms_args *args)
{
    validate_options options = {0};
    const ms_option_set set = {"options", validate_table, &options};
    MS_TRY(ms_args_read(cx, args, &set, 1));
    if (args->done)
        return MS_OK;
    if (args->words.num_words == 0) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "no table is given");
        return ms_hint(cx, "usage: meshsim validate RUNS.csv... [options]");
    }
    const ms_words *paths = &args->words;
    ms_table_file *tables = MS_NEW_ARRAY(cx->arena, paths->num_words, ms_table_file);
    MS_TRY(load_tables(cx, args, options.plot, tables));
    if (tables[0].kind == MS_TABLE_RUNS)
        return validate_runs(cx, args, &options, tables, paths->num_words);
    const char *given = ms_options_given(&set, "");
    if (given != NULL)
        return ms_fail(cx, MS_EINPUT, (ms_loc){.file = tables[0].path},
                       "%s is for published runs, and this is a table of %s", given,
                       ms_table_kind_names[tables[0].kind]);
    return ms_validate_measured(cx, args, &tables[0]);
}
