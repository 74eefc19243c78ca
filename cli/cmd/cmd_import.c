/* meshsim import: a plan file from a launch script or a configuration of a framework, a
 * cluster file from what a tool says about a machine, or a table of measurements. */
#include "base/csv.h"
#include "base/paths.h"
#include "cli/options/commands.h"
#include "cli/options/output.h"
#include "costmodel/port/port.h"
#include "sim/measured/measured.h"
#include "topo/site.h"

#include <string.h>

typedef struct import_options {
    const char *from, *model, *cluster, *stack, *plan;
    ms_opt_choice collective;
    ms_opt_integer gpus, sequence;
    ms_opt_quantity nic, nvlink;
} import_options;

static const ms_option import_table[] = {
    MS_OPT_TEXT(
        import_options, from, "--from", "NAME",
        "what the file is (required). A plan: megatron, torchtitan, nanotron, deepspeed, "
        "accelerate, maxtext; a cluster: nvidia-smi, slurm, nccl-topology; measurements: "
        "nccl-tests, megatron-log, torchtitan-log, nanotron-log, deepspeed-log"),
    MS_OPT_INTEGER(import_options, gpus, "--gpus", "N", 1, 16777216,
                   "number of GPUs (default: as many as the file's launcher starts)"),
    MS_OPT_INTEGER(import_options, sequence, "--seq", "TOKENS", 1, 1073741824,
                   "sequence length, for files that do not say it (default 8k)"),
    MS_OPT_TEXT(import_options, model, "--model", "NAME|FILE",
                "model of the plan (default: the one whose shapes the file states)"),
    MS_OPT_TEXT(
        import_options, cluster, "--cluster", "NAME|FILE",
        "cluster of the plan (default hgx-h100), base of a cluster, or the cluster "
        "that nccl-tests measured"),
    MS_OPT_TEXT(import_options, plan, "--plan", "PLAN.json",
                "of logs: the plan that ran"),
    MS_OPT_CHOICE(import_options, collective, "--collective", ms_nccl_tests_names,
                  "of nccl-tests: the collective, for texts that do not state it"),
    MS_OPT_TEXT(import_options, stack, "--stack", "NAME|FILE",
                "stack of the plan (default: that of the format), such as megatron@0.12"),
    MS_OPT_ROW(MS_OPTION_QUANTITY, import_options, nic, "--nic", .value = "RATE",
               .unit = MS_UNIT_BYTES_PER_S, .above_low = true, .high = 1e12,
               .help =
                   "of a cluster: rate of a NIC, such as \"400 Gb/s\" (default: as the "
                   "file says, or the base's)"),
    MS_OPT_ROW(MS_OPTION_QUANTITY, import_options, nvlink, "--nvlink", .value = "RATE",
               .unit = MS_UNIT_BYTES_PER_S, .above_low = true, .high = 1e12,
               .help = "of a cluster: rate of one NVLink each way, such as \"25 GB/s\" "
                       "(default: all of a GPU as the base's)"),
    {0},
};

enum {
    FOUND,
    IGNORED,
    ASSUMED,
    NUM_LISTS
};
static const char *const list_names[NUM_LISTS] = {"found", "ignored", "assumed"};

/* A plan, cluster or table that an import made, with lists of texts about it. */
typedef struct import_result {
    const ms_plan *plan; /* one of three is not NULL */
    const ms_cluster *cluster;
    const ms_measured_table *table;
    const ms_texts *lists[NUM_LISTS]; /* NULL: there is no such list */
} import_result;

static void write_rows(ms_jout *json, const ms_measured_table *table)
{
    ms_jout_begin_array_field(json, "rows");
    for (int i = 0; i < table->num_rows; i++) {
        ms_jout_begin_object(json);
        for (int j = 0; j < table->num_columns; j++) {
            const char *cell = table->cells[(ptrdiff_t)i * table->num_columns + j];
            if (cell != NULL)
                ms_jout_text_field(json, table->columns[j], cell);
        }
        ms_jout_end_object(json);
    }
    ms_jout_end_array(json);
}

static void write_json(ms_jout *json, const import_result *r)
{
    ms_jout_begin_object(json);
    ms_jout_text_field(json, "schema", "meshsim.import/1");
    if (r->plan != NULL) {
        ms_jout_key(json, "plan");
        ms_plan_write_json(json, r->plan);
    } else if (r->cluster != NULL) {
        ms_jout_key(json, "cluster");
        ms_cluster_write_file(json, r->cluster);
    } else {
        write_rows(json, r->table);
    }
    for (int i = 0; i < NUM_LISTS; i++) {
        const ms_texts *list = r->lists[i];
        if (list == NULL)
            continue;
        ms_jout_begin_array_field(json, list_names[i]);
        for (int k = 0; k < list->num; k++)
            ms_jout_text(json, list->texts[k]);
        ms_jout_end_array(json);
    }
    ms_jout_end_object(json);
}

/* Writes the plan, cluster or table as a file of its own, and the lists as notes; with
 * --json all of it as one object. */
static ms_status write_result(ms_ctx *cx, const ms_args *args, const import_result *r)
{
    for (int i = 0; !args->common.json && i < NUM_LISTS; i++)
        for (int k = 0; r->lists[i] != NULL && k < r->lists[i]->num; k++)
            ms_note(cx, "%s: %s", list_names[i], r->lists[i]->texts[k]);
    ms_output out;
    MS_TRY(ms_output_open(cx, args->common.output, &out));
    if (args->common.json)
        write_json(&out.json, r);
    else if (r->plan != NULL)
        ms_plan_write_json(&out.json, r->plan);
    else if (r->cluster != NULL)
        ms_cluster_write_file(&out.json, r->cluster);
    else
        ms_measured_write_csv(out.file, r->table);
    return ms_output_close(cx, &out, MS_OK);
}

/* MS_EINPUT: the plan is not legal for its model. Notes a rule of the framework that it
 * breaks: the script may be of another version. */
static ms_status check(ms_ctx *cx, const char *file, const ms_plan *plan,
                       const ms_model *model)
{
    const ms_stack *stack;
    ms_rule_set rules;
    MS_TRY(ms_plan_check(cx, plan, model, (ms_loc){.file = file}));
    MS_TRY(ms_stack_load(cx, plan->stack, &stack));
    MS_TRY(ms_rule_set_load(cx, stack, &rules));
    ms_facts facts = ms_facts_of(plan, model, stack);
    const ms_rule *rule =
        ms_rule_broken(&rules, &facts, MS_ALL_VARIABLES, MS_ALL_VARIABLES);
    if (rule != NULL)
        ms_note(cx, "stack %s refuses the plan: rule %s: %s (%s)", plan->stack,
                rule->name, rule->says, ms_rule_values_text(cx->arena, rule, &facts));
    return MS_OK;
}

static ms_status import_file(ms_ctx *cx, const ms_args *args,
                             const ms_port_format *format, const char *path,
                             const ms_port_import_options *options)
{
    ms_csv text;
    ms_port_imported imported;
    const ms_model *model;
    MS_TRY(ms_csv_load(cx, path, &text));
    MS_TRY(ms_port_import(cx, format, text.text, text.length, options, &imported));
    MS_TRY(ms_port_find_model(cx, format, options, &imported, &model));
    MS_TRY(check(cx, options->name, &imported.plan, model));
    const import_result made = {
        .plan = &imported.plan,
        .lists = {[IGNORED] = &imported.ignored, [ASSUMED] = &imported.assumed}};
    return write_result(cx, args, &made);
}

/* MS_EINPUT: an option is given that a format does not take. `others`: the options without
 * those that it takes. */
static ms_status refuse_others(ms_ctx *cx, const char *from, import_options others)
{
    others.from = NULL;
    const char *given = ms_options_given_in(import_table, &others, "");
    if (given == NULL)
        return MS_OK;
    return ms_fail(cx, MS_EINPUT, MS_NOWHERE, "--from %s does not take %s", from, given);
}

/* MS_EINPUT: an option of other formats is given, or no base. */
static ms_status check_site_options(ms_ctx *cx, const import_options *options)
{
    import_options others = *options;
    others.cluster = NULL;
    others.nic = others.nvlink = (ms_opt_quantity){0};
    MS_TRY(refuse_others(cx, options->from, others));
    if (options->cluster != NULL)
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE,
            "--cluster is missing: the file does not say the devices and their rates");
    return ms_hint(cx, "name the most similar cluster: --cluster hgx-h100");
}

static ms_status import_site(ms_ctx *cx, const ms_args *args, int format,
                             const char *path, const import_options *options)
{
    ms_csv text;
    ms_site site;
    ms_site_options how = {.name = strcmp(path, "-") == 0 ? "standard input" : path,
                           .nic_bytes_per_s = options->nic.value,
                           .nvlink_bytes_per_s = options->nvlink.value};
    MS_TRY(check_site_options(cx, options));
    MS_TRY(ms_cluster_load(cx, options->cluster, &how.base));
    MS_TRY(ms_csv_load(cx, path, &text));
    MS_TRY(ms_site_read(cx, format, text.text, text.length, &how, &site));
    const import_result made = {.cluster = &site.cluster,
                                .lists = {&site.found, &site.ignored, &site.assumed}};
    return write_result(cx, args, &made);
}

/* ---- measurements ---- */

/* Loads what the rows of a format need: the measured cluster, or the plan that ran.
 * MS_EINPUT: it is not given, or an option that the format does not take is. */
static ms_status open_measured(ms_ctx *cx, bool is_log, const import_options *options,
                               ms_plan *plan, ms_measured_options *how)
{
    import_options others = *options;
    if (is_log) {
        others.plan = NULL;
    } else {
        others.cluster = NULL;
        others.collective = (ms_opt_choice){0};
    }
    MS_TRY(refuse_others(cx, options->from, others));
    if (is_log && options->plan == NULL) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                "--plan is missing: a log does not say what ran");
        return ms_hint(cx,
                       "meshsim import run.sh --from megatron -o plan.json writes it");
    }
    if (is_log) {
        how->plan = plan;
        return ms_plan_load(cx, options->plan, plan);
    }
    if (options->cluster == NULL) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                "--cluster is missing: the file does not say the network");
        return ms_hint(cx, "name the cluster that was measured: --cluster hgx-h100");
    }
    how->system = options->cluster;
    if (options->collective.given)
        how->collective = options->collective.text;
    return ms_cluster_load(cx, options->cluster, &how->cluster);
}

static ms_status import_measured(ms_ctx *cx, const ms_args *args, int format,
                                 const char *path, const import_options *options)
{
    ms_csv text;
    ms_plan plan;
    ms_measured_table table;
    ms_measured_options how = {.name = strcmp(path, "-") == 0 ? "standard input" : path};
    MS_TRY(open_measured(cx, ms_measured_is_log(format), options, &plan, &how));
    MS_TRY(ms_csv_load(cx, path, &text));
    MS_TRY(ms_measured_read(cx, format, text.text, text.length, &how, &table));
    const import_result made = {.table = &table,
                                .lists = {&table.found, &table.ignored, &table.assumed}};
    return write_result(cx, args, &made);
}

ms_status ms_cmd_import(ms_ctx *cx, ms_args *args)
{
    import_options options = {0};
    const ms_option_set sets[] = {{"import", import_table, &options}};
    MS_TRY(ms_args_read(cx, args, sets, 1));
    if (args->done)
        return MS_OK;
    const ms_port_format *format;
    const char *names = ms_choice_text(cx->arena, ms_port_format_names, ", ");
    if (args->words.num_words == 0) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "no file is given");
        return ms_hint(cx, "meshsim import run.sh --from megatron; - is standard input");
    }
    if (options.from == NULL) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "--from is missing");
        return ms_hint(cx, "formats: %s; of clusters: %s; of measurements: %s", names,
                       ms_choice_text(cx->arena, ms_site_format_names, ", "),
                       ms_choice_text(cx->arena, ms_measured_format_names, ", "));
    }
    const char *path = args->words.words[0];
    MS_TRY(ms_output_check_differ(cx, path, args->common.output));
    int measured_format = ms_choice_find(options.from, ms_measured_format_names);
    if (measured_format >= 0)
        return import_measured(cx, args, measured_format, path, &options);
    int site_format = ms_choice_find(options.from, ms_site_format_names);
    if (site_format >= 0)
        return import_site(cx, args, site_format, path, &options);
    import_options others = {.nic = options.nic,
                             .nvlink = options.nvlink,
                             .plan = options.plan,
                             .collective = options.collective};
    MS_TRY(refuse_others(cx, options.from, others));
    MS_TRY(ms_port_format_find(cx, options.from, &format));
    ms_port_import_options how = {
        .name = strcmp(path, "-") == 0 ? "standard input" : path,
        .model = options.model,
        .cluster = options.cluster,
        .stack = options.stack,
        .gpus = options.gpus.given ? options.gpus.value : 0,
        .sequence_length = options.sequence.given ? options.sequence.value : 0};
    return import_file(cx, args, format, path, &how);
}
