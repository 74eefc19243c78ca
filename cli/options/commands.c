/* The table of commands, the common options, and --help. */
#include "cli/options/commands.h"

#include "base/paths.h"
#include "base/print.h"
#include "base/table.h"
#include "exec/measure/measure.h"

#include <assert.h>
#include <string.h>

#define MAX_THREADS  1024
#define MAX_COMPARED 1000 /* files */
#define MAX_PLOTTED  17   /* the kind of picture and files */

/* Commands in the order of the help: the most used first. */
const ms_command ms_commands[] = {
    {"search", ms_cmd_search, "", 0,
     "the fastest plans for a model on a number of GPUs, with a certificate",
     "meshsim search --gpus 512 --model 70b"},
    {"predict", ms_cmd_predict, "[PLAN.json]", 1,
     "step time, where it goes, memory and traffic of one plan",
     "meshsim predict --model 70b --gpus 512 --tp 8 --pp 4 --zero 1"},
    {"explain", ms_cmd_explain, "[PLAN.json]", 1,
     "why a plan costs what it does, or what communication a sharded einsum needs",
     "meshsim explain --model 70b --gpus 512 --tp 8 --pp 4 --zero 1"},
    {"simulate", ms_cmd_simulate, "[PLAN.json]", 1,
     "one plan's step task by task: contention, slowdowns, memory over time, traces",
     "meshsim simulate --model 70b --gpus 512 --tp 8 --pp 4 --trace step.json"},
    {"run", ms_cmd_run, "[PLAN.json]", 1,
     "execute training steps of a plan on CPUs or GPUs: measured beside predicted",
     "meshsim run --model llama-15m --dp-shard 2 --tp 2 --seq 128 --global-batch 8 "
     "--check"},
    {"compare", ms_cmd_compare, "A.json [B.json...]", MAX_COMPARED,
     "what explains the difference of two results; plans and searches as one table",
     "meshsim compare predicted.json measured.json"},
    {"schedule", ms_cmd_schedule, "[NAME|FILE.csv]", 1,
     "actions, bubbles and drawing of a pipeline schedule; without a name, all names",
     "meshsim schedule zb-h1 --pp 4 --microbatches 8"},
    {"model", ms_cmd_model, "[NAME|FILE]", 1,
     "parameters, FLOP per token and shapes of a model; without a name, all names",
     "meshsim model 70b --seq 8k"},
    {"cluster", ms_cmd_cluster, "[NAME|FILE]", 1,
     "devices and network levels of a cluster; without a name, all names",
     "meshsim cluster hgx-h100"},
    {"stack", ms_cmd_stack, "[NAME[@VERSION]|FILE]", 1,
     "rules, defaults and conventions of a framework; without a name, all frameworks",
     "meshsim stack megatron@0.12"},
    {"mesh", ms_cmd_mesh, "[PLAN.json]", 1,
     "layouts, groups, drawing and orders of a mesh; without a mesh, those in use",
     "meshsim mesh --mesh pp=2,dp_shard=2,cp=2,tp=2 --ep 4"},
    {"validate", ms_cmd_validate, "RUNS.csv...", 16,
     "predictions beside published measurements: errors by source, order of layouts",
     "meshsim validate runs.csv --json"},
    {"calibrate", ms_cmd_calibrate, "", 0,
     "measure this machine's kernels and collectives and write a cost profile",
     "meshsim calibrate --quick -o this.json"},
    {"plot", ms_cmd_plot, "KIND [FILE...]", MAX_PLOTTED,
     "draw a picture: a plan's pipeline, its memory, scaling with the number of GPUs",
     "meshsim plot timeline --model 70b --gpus 512 --tp 8 --pp 4 --zero 1"},
    {"sweep", ms_cmd_sweep, "", 0,
     "the fastest plan of many jobs: models, clusters, sizes; which to choose",
     "meshsim sweep --gpus 64..512 --clusters hgx-h100,hgx-h200 --models 8b,70b"},
    {"report", ms_cmd_report, "[PLAN.json|SEARCH.json|SWEEP.json]", 1,
     "one HTML page to defend the choice of a plan: answer, risk, pictures, sources",
     "meshsim report search.json -o report.html"},
    {"whatif", ms_cmd_whatif, "[PLAN.json]", 1,
     "what other hardware, efficiencies or prices would change; what more is worth",
     "meshsim whatif --gpus 512 --model 70b --price 2.5"},
    {"export", ms_cmd_export, "[PLAN.json]", 1,
     "a plan as the arguments or the configuration of a training framework",
     "meshsim export --model 70b --gpus 512 --tp 8 --pp 4 --format megatron"},
    {"import", ms_cmd_import, "FILE", 1,
     "a plan file from a framework's launch script or configuration",
     "meshsim import run.sh --from megatron -o plan.json"},
    {"info", ms_cmd_info, "", 0,
     "what this program was built with, and where its data is", "meshsim info"},
    {"version", ms_cmd_version, "", 0, "the version", "meshsim version --json"},
    {"help", ms_cmd_help, "[COMMAND]", 1, "all commands, or the options of one",
     "meshsim help model"},
    {0},
};

#define COMMON(row, member, ...) row(ms_common_options, member, __VA_ARGS__)

static const ms_option common_table[] = {
    COMMON(MS_OPT_FLAG, json, "--json", "write JSON instead of text"),
    COMMON(MS_OPT_FLAG, json_lines, "--json-lines",
           "progress of long commands as lines of JSON on standard error"),
    MS_OPT_ROW(MS_OPTION_TEXT, ms_common_options, output, "--output", .alias = "-o",
               .value = "FILE",
               .help =
                   "write the result to FILE, which appears only when it is complete"),
    COMMON(MS_OPT_FLAG, wide, "--wide",
           "tables with all columns, even if wider than the terminal"),
    COMMON(MS_OPT_FLAG, quiet, "--quiet", "no notes on standard error, errors only"),
    MS_OPT_ROW(MS_OPTION_FLAG, ms_common_options, verbose, "--verbose", .alias = "-v",
               .help = "print every default that is used on standard error"),
    COMMON(MS_OPT_INTEGER, threads, "--threads", "N", 1, MAX_THREADS,
           "worker threads of commands that compute in parallel"),
    MS_OPT_ROW(MS_OPTION_FLAG, ms_common_options, help, "--help", .alias = "-h",
               .help = "print this help"),
    {0},
};

const ms_command *ms_command_find(ms_ctx *cx, const char *name)
{
    const char *names[sizeof ms_commands / sizeof ms_commands[0]];
    int num_names = 0;
    for (const ms_command *command = ms_commands; command->name != NULL; command++) {
        if (strcmp(command->name, name) == 0)
            return command;
        names[num_names++] = command->name;
    }
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "unknown command \"%s\"", name);
    const char *nearest = ms_nearest(name, names, num_names);
    if (nearest != NULL)
        ms_hint(cx, "did you mean %s?", nearest);
    else
        ms_hint(cx, "\"meshsim help\" lists the commands");
    return NULL;
}

static bool asks_for_help(const ms_args *args)
{
    for (int i = 0; i < args->argc && strcmp(args->argv[i], "--") != 0; i++)
        if (strcmp(args->argv[i], "--help") == 0 || strcmp(args->argv[i], "-h") == 0)
            return true;
    return false;
}

static void limit_width(const ms_args *args)
{
    ms_table_limit_width(
        args->common.wide ? 0 : ms_output_width(args->common.output, MS_OUTPUT_WIDTH));
}

/* Prints the help whatever else is wrong with the command line. */
static ms_status print_help(ms_ctx *cx, ms_args *args, const ms_option_set *sets,
                            int num_sets)
{
    ms_ctx ignored = {.arena = cx->arena};
    (void)ms_options_parse(&ignored, sets, num_sets, args->argc, args->argv,
                           &args->words);
    limit_width(args);
    args->done = true;
    ms_output out;
    MS_TRY(ms_output_open(cx, args->common.output, &out));
    if (args->common.json)
        ms_help_write_json(&out.json, args->command, sets, num_sets);
    else
        ms_help_print(out.file, cx->arena, args->command, sets, num_sets);
    return ms_output_close(cx, &out, MS_OK);
}

ms_status ms_args_read(ms_ctx *cx, ms_args *args, const ms_option_set *sets, int num_sets)
{
    assert(num_sets <= MS_MAX_OPTION_SETS);
    ms_option_set all[MS_MAX_OPTION_SETS + 1];
    for (int i = 0; i < num_sets; i++)
        all[i] = sets[i];
    all[num_sets] =
        (ms_option_set){"options of every command", common_table, &args->common};
    if (asks_for_help(args))
        return print_help(cx, args, all, num_sets + 1);
    ms_status status =
        ms_options_parse(cx, all, num_sets + 1, args->argc, args->argv, &args->words);
    for (int i = args->command->max_words; i < args->words.num_words; i++) {
        status = ms_fail(cx, MS_EINPUT, MS_NOWHERE, "unexpected argument \"%s\"",
                         args->words.words[i]);
        ms_hint(cx, "usage: meshsim %s %s%s[options]", args->command->name,
                args->command->words, args->command->max_words > 0 ? " " : "");
    }
    for (int i = 0; i < args->words.num_words; i++)
        if (args->words.words[i][0] == '\0')
            status = ms_fail(cx, MS_EINPUT, MS_NOWHERE, "argument %d is empty", i + 1);
    if (args->common.quiet && args->common.verbose) {
        status = ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                         "--quiet and --verbose exclude each other");
        ms_hint(cx, "drop one of them");
    }
    limit_width(args);
    cx->num_threads = ms_args_threads(args);
    cx->verbosity = args->common.quiet ? -1 : args->common.verbose ? 1 : 0;
    const char *ignored = ms_config_ignored();
    if (ignored != NULL)
        ms_note(cx, "MESHSIM_CONFIGS is \"%s\", which is no folder: it has no effect",
                ignored);
    return status;
}

ms_status ms_args_check_listing(ms_ctx *cx, const ms_args *args, const ms_option_set *own)
{
    const ms_command *command = args->command;
    const char *given = ms_options_given(own, "");
    if (given == NULL)
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "%s is given, but not the %s that it is about",
            given, command->name);
    return ms_hint(cx, "for example: %s; without options, \"meshsim %s\" lists the names",
                   command->example, command->name);
}

ms_status ms_args_write_names(ms_ctx *cx, const ms_args *args, const char *kind,
                              const char *const *names, int num_names)
{
    ms_output out;
    MS_TRY(ms_output_open(cx, args->common.output, &out));
    if (!args->common.json) {
        for (int i = 0; i < num_names; i++)
            ms_print(out.file, "%s\n", names[i]);
        return ms_output_close(cx, &out, MS_OK);
    }
    ms_jout *json = &out.json;
    ms_jout_begin_object(json);
    ms_jout_text_field(json, "schema", ms_arena_printf(cx->arena, "meshsim.%s/1", kind));
    ms_jout_begin_array_field(json, kind);
    for (int i = 0; i < num_names; i++)
        ms_jout_text(json, names[i]);
    ms_jout_end_array(json);
    ms_jout_end_object(json);
    return ms_output_close(cx, &out, MS_OK);
}

int ms_args_threads(const ms_args *args)
{
    if (args->common.threads.given)
        return (int)args->common.threads.value;
    return (int)ms_machine_cores();
}
