/* meshsim import: a plan file from a launch script or a configuration of a framework, or a
 * cluster file from what a tool says about a machine. */
#include "base/csv.h"
#include "base/paths.h"
#include "cli/options/commands.h"
#include "cli/options/output.h"
#include "costmodel/port/port.h"
#include "topo/site.h"

#include <string.h>

typedef struct import_options {
    const char *from, *model, *cluster, *stack;
    ms_opt_integer gpus, sequence;
    ms_opt_quantity nic, nvlink;
} import_options;

static const ms_option import_table[] = {
    MS_OPT_TEXT(
        import_options, from, "--from", "NAME",
        "what the file is of: megatron, torchtitan, nanotron, deepspeed, accelerate; a cluster: "
        "nvidia-smi "
        "(required)"),
    MS_OPT_INTEGER(import_options, gpus, "--gpus", "N", 1, 16777216,
                   "number of GPUs (default: as many as the file's launcher starts)"),
    MS_OPT_INTEGER(import_options, sequence, "--seq", "TOKENS", 1, 1073741824,
                   "sequence length, for files that do not say it (default 8k)"),
    MS_OPT_TEXT(import_options, model, "--model", "NAME|FILE",
                "model of the plan (default: the one whose shapes the file states)"),
    MS_OPT_TEXT(import_options, cluster, "--cluster", "NAME|FILE",
                "cluster of the plan (default hgx-h100), or base of a cluster"),
    MS_OPT_TEXT(import_options, stack, "--stack", "NAME|FILE",
                "stack of the plan (default: that of the format), such as megatron@0.12"),
    MS_OPT_ROW(MS_OPTION_QUANTITY, import_options, nic, "--nic", .value = "RATE",
               .unit = MS_UNIT_BYTES_PER_S, .above_low = true, .high = 1e12,
               .help =
                   "of a cluster: rate of a NIC, such as \"400 Gb/s\" (default: as the "
                   "base's)"),
    MS_OPT_ROW(MS_OPTION_QUANTITY, import_options, nvlink, "--nvlink", .value = "RATE",
               .unit = MS_UNIT_BYTES_PER_S, .above_low = true, .high = 1e12,
               .help = "of a cluster: rate of one NVLink each way, such as \"25 GB/s\" "
                       "(default: all of a GPU as the base's)"),
    {0},
};

/* A plan or a cluster that an import made, with lists of texts about it. */
typedef struct import_result {
    const ms_plan *plan; /* NULL: a cluster */
    const ms_cluster *cluster;
    struct {
        const char *key;
        const char *const *texts;
        int num;
    } lists[3]; /* a list without key is none */
} import_result;

#define NUM_LISTS(r) ((int)(sizeof(r)->lists / sizeof *(r)->lists))

static void write_made(ms_jout *json, const import_result *r)
{
    if (r->plan != NULL)
        ms_plan_write_json(json, r->plan);
    else
        ms_cluster_write_file(json, r->cluster);
}

static void write_json(ms_jout *json, const import_result *r)
{
    ms_jout_begin_object(json);
    ms_jout_text_field(json, "schema", "meshsim.import/1");
    ms_jout_key(json, r->plan != NULL ? "plan" : "cluster");
    write_made(json, r);
    for (int i = 0; i < NUM_LISTS(r) && r->lists[i].key != NULL; i++) {
        ms_jout_begin_array_field(json, r->lists[i].key);
        for (int k = 0; k < r->lists[i].num; k++)
            ms_jout_text(json, r->lists[i].texts[k]);
        ms_jout_end_array(json);
    }
    ms_jout_end_object(json);
}

/* Writes the plan or cluster, and the lists as notes; with --json all of it as one. */
static ms_status write_result(ms_ctx *cx, const ms_args *args, const import_result *r)
{
    for (int i = 0; !args->common.json && i < NUM_LISTS(r); i++)
        for (int k = 0; k < r->lists[i].num; k++)
            ms_note(cx, "%s: %s", r->lists[i].key, r->lists[i].texts[k]);
    ms_output out;
    MS_TRY(ms_output_open(cx, args->common.output, &out));
    if (args->common.json)
        write_json(&out.json, r);
    else
        write_made(&out.json, r);
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
        .lists = {{"ignored", imported.ignored.texts, imported.ignored.num},
                  {"assumed", imported.assumed.texts, imported.assumed.num}}};
    return write_result(cx, args, &made);
}

/* MS_EINPUT: an option of plans is given, or no base. */
static ms_status check_site_options(ms_ctx *cx, const import_options *options)
{
    const char *given = options->model != NULL    ? "--model"
                        : options->stack != NULL  ? "--stack"
                        : options->gpus.given     ? "--gpus"
                        : options->sequence.given ? "--seq"
                                                  : NULL;
    if (given != NULL)
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                       "%s is of plans, but --from %s is a cluster", given,
                       options->from);
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
    const import_result made = {
        .cluster = &site.cluster,
        .lists = {{"found", site.found.texts, site.found.num},
                  {"ignored", site.ignored.texts, site.ignored.num},
                  {"assumed", site.assumed.texts, site.assumed.num}}};
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
        return ms_hint(cx, "formats: %s; of clusters: %s", names,
                       ms_choice_text(cx->arena, ms_site_format_names, ", "));
    }
    const char *path = args->words.words[0];
    MS_TRY(ms_output_check_differ(cx, path, args->common.output));
    int site_format = ms_choice_find(options.from, ms_site_format_names);
    if (site_format >= 0)
        return import_site(cx, args, site_format, path, &options);
    if (options.nic.given || options.nvlink.given)
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                       "%s is of clusters, but --from %s is a plan",
                       options.nic.given ? "--nic" : "--nvlink", options.from);
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
