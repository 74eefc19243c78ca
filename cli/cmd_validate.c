/* meshsim validate: predictions beside published measurements. */
#include "base/csv.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/validate_collectives.h"
#include "cli/validate_kernels.h"
#include "cli/validate_plot.h"
#include "sim/validation_by.h"
#include "sim/validation_worst.h"

#include <string.h>
#include <sys/stat.h>

#define MAX_LINE_NOTES 10

typedef struct validate_options {
    const char *source;
    const char *id;
    const char *by;
    ms_opt_integer worst;
    const char *plot;
} validate_options;

#define MAX_WORST 1000000

static const ms_option validate_table[] = {
    MS_OPT_TEXT(validate_options, source, "--source", "TEXT",
                "only rows whose source contains TEXT"),
    MS_OPT_TEXT(validate_options, id, "--id", "ID", "only the row with this id"),
    MS_OPT_TEXT(validate_options, by, "--by", "KEY,...",
                "errors by framework, gpu_type, model, precision, gpus, pp, tp, ... too; "
                "gpu_type+precision is by both"),
    MS_OPT_INTEGER(
        validate_options, worst, "--worst", "N", 1, MAX_WORST,
        "the N largest errors of step time, and where the predicted time goes"),
    MS_OPT_TEXT(
        validate_options, plot, "--plot", "FILE",
        "a picture of predicted against measured; FILE ends in .png, .svg or .pdf"),
    {0},
};

/* Keeps the rows that were asked for; malformed ones belong to no source. */
static void filter(const validate_options *options, ms_published_runs *runs)
{
    int num_kept = 0;
    for (int i = 0; i < runs->num_runs; i++) {
        const ms_published_run *run = &runs->runs[i];
        if (options->source != NULL &&
            (run->source == NULL || strstr(run->source, options->source) == NULL))
            continue;
        if (options->id != NULL && strcmp(run->id, options->id) != 0)
            continue;
        runs->runs[num_kept++] = *run;
    }
    runs->num_runs = num_kept;
}

static void note_faults(const ms_ctx *cx, const ms_published_runs *runs)
{
    int num_faults = 0;
    for (int i = 0; i < runs->num_runs; i++) {
        const ms_published_run *run = &runs->runs[i];
        if (run->fault == NULL)
            continue;
        num_faults++;
        if (num_faults <= MAX_LINE_NOTES || cx->verbosity > 0)
            ms_note(cx, "line %d is skipped: %s", run->line, run->fault);
    }
    if (num_faults > MAX_LINE_NOTES && cx->verbosity <= 0)
        ms_note(cx, "%d more malformed rows are skipped; -v lists them",
                num_faults - MAX_LINE_NOTES);
}

static void note_defaults(const ms_ctx *cx, const ms_published_runs *runs)
{
    int num_runs = 0;
    for (int i = 0; i < runs->num_runs; i++) {
        const ms_published_run *run = &runs->runs[i];
        if (run->reason != NULL || run->defaults == NULL)
            continue;
        num_runs++;
        ms_note_default(cx, "%s: %s", run->id, run->defaults);
    }
    if (num_runs > 0 && cx->verbosity <= 0)
        ms_note(cx, "%d rows leave something open that was filled in; -v lists what",
                num_runs);
}

static ms_status write_result(ms_ctx *cx, const ms_args *args, ms_output *out,
                              const ms_validation *validation)
{
    if (args->common.json) {
        ms_jout json = ms_jout_open(out->file);
        ms_validation_write_json(&json, validation);
        ms_jout_close(&json);
    } else {
        ms_validation_print(out->file, cx->arena, validation, !args->common.quiet);
    }
    return ms_output_close(cx, out, MS_OK);
}

static ms_status validate_runs(ms_ctx *cx, const ms_args *args,
                               const validate_options *options, const char *path)
{
    ms_published_runs runs;
    ms_run_keys *keys = NULL;
    int num_keys = 0;
    if (options->by != NULL)
        MS_TRY(ms_run_keys_parse(cx, "--by", options->by, &keys, &num_keys));
    ms_plot_target picture = {0};
    if (options->plot != NULL)
        MS_TRY(ms_validate_plot_open(cx, args, options->plot, path, &picture));
    MS_TRY(ms_runs_load(cx, path, &runs));
    filter(options, &runs);
    note_faults(cx, &runs);
    ms_output out; /* before the work, so that what cannot be written is known at once */
    MS_TRY(ms_output_open(cx, args->common.output, &out));
    ms_validation validation;
    ms_status status = ms_validate(cx, &runs, &validation);
    if (status != MS_OK) {
        ms_output_drop(cx, &out);
        return status;
    }
    ms_validation_group(cx->arena, keys, num_keys, &validation);
    if (options->worst.given)
        ms_validation_find_worst(cx->arena, (int)options->worst.value, &validation);
    note_defaults(cx, &runs);
    MS_TRY(write_result(cx, args, &out, &validation));
    return options->plot == NULL ? MS_OK
                                 : ms_validate_plot_write(cx, &picture, &validation);
}

/* ---- tables of other measurements ---- */

#define MAX_TELLING_COLUMNS 8

typedef struct table_kind {
    const char *name; /* "collectives" */
    /* a header that has them all is one of this kind */
    const char *columns[MAX_TELLING_COLUMNS];
    ms_status (*command)(ms_ctx *cx, const ms_args *args, const char *path);
} table_kind;

/* All that are no published runs. A row:
 *     {"collectives", {"system", "collective", "algo", "time_us"}, ms_validate_collectives_command}, */
static const table_kind table_kinds[] = {
    {"collectives",
     {"system", "collective", "algo", "time_us"},
     ms_validate_collectives_command},
    {"kernels", {"gpu", "op", "k_or_seq", "tflops"}, ms_validate_kernels_command},
    {0},
};

static bool has_column(const ms_csv_row *header, const char *name)
{
    for (int i = 0; i < header->num_cells; i++)
        if (strcmp(header->cells[i], name) == 0)
            return true;
    return false;
}

static bool is_of_kind(const ms_csv_row *header, const table_kind *kind)
{
    for (int i = 0; i < MAX_TELLING_COLUMNS && kind->columns[i] != NULL; i++)
        if (!has_column(header, kind->columns[i]))
            return false;
    return true;
}

/* NULL: published runs. What can be read only once, a pipe or standard input, is taken for them. */
static ms_status find_kind(ms_ctx *cx, const char *path, const table_kind **out)
{
    struct stat facts;
    ms_csv csv;
    ms_csv_row header;
    *out = NULL;
    if (strcmp(path, "-") == 0 || stat(path, &facts) != 0 || !S_ISREG(facts.st_mode))
        return MS_OK;
    MS_TRY(ms_csv_load(cx, path, &csv));
    if (!ms_csv_next(cx->arena, &csv, &header))
        return MS_OK;
    for (const table_kind *kind = table_kinds; kind->name != NULL && *out == NULL; kind++)
        if (is_of_kind(&header, kind))
            *out = kind;
    return MS_OK;
}

static ms_status refuse_options_of_runs(ms_ctx *cx, const ms_option_set *set,
                                        const char *path, const table_kind *kind)
{
    const char *given = ms_options_given(set, "");
    if (given == NULL)
        return MS_OK;
    return ms_fail(cx, MS_EINPUT, (ms_loc){.file = path},
                   "%s is for published runs, and this is a table of %s", given,
                   kind->name);
}

ms_status ms_cmd_validate(ms_ctx *cx, ms_args *args)
{
    validate_options options = {0};
    const ms_option_set set = {"options", validate_table, &options};
    MS_TRY(ms_args_read(cx, args, &set, 1));
    if (args->done)
        return MS_OK;
    if (args->words.num_words == 0) {
        ms_status status =
            ms_fail(cx, MS_EINPUT, MS_NOWHERE, "which file? a CSV of published runs");
        ms_hint(cx, "usage: meshsim validate RUNS.csv [options]");
        return status;
    }
    const char *path = args->words.words[0];
    MS_TRY(ms_output_check_distinct(cx, (const char *const[]){path, args->common.output},
                                    2));
    const table_kind *kind;
    MS_TRY(find_kind(cx, path, &kind));
    if (kind == NULL)
        return validate_runs(cx, args, &options, path);
    MS_TRY(refuse_options_of_runs(cx, &set, path, kind));
    return kind->command(cx, args, path);
}
