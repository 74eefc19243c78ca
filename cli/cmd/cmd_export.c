/* meshsim export: a plan as the arguments or the configuration file of a framework. */
#include "base/print.h"
#include "cli/options/output.h"
#include "cli/options/plan_command.h"
#include "costmodel/port/port.h"
#include "sim/step/bill_key.h"

typedef struct export_options {
    const char *format;
    ms_opt_choice launcher;
    bool lossy;
} export_options;

static const ms_option export_table[] = {
    MS_OPT_TEXT(
        export_options, format, "--format", "NAME",
        "framework whose words the plan takes: megatron, torchtitan, nanotron, deepspeed, accelerate "
        "(required)"),
    MS_OPT_CHOICE(
        export_options, launcher, "--launcher", ms_port_launchers,
        "what starts the processes; none: the settings alone (default torchrun; of "
        "deepspeed: its own launcher)"),
    MS_OPT_FLAG(export_options, lossy, "--lossy",
                "what the format cannot express becomes a comment, not an error"),
    {0},
};

/* The plan under the format's rules: a stack without them gives way to the format's own,
 * and the modules that it recomputes by default are stated. */
static ms_status take_stack(ms_ctx *cx, const ms_port_format *format, ms_plan *plan)
{
    const ms_stack *stack;
    MS_TRY(ms_stack_load(cx, plan->stack, &stack));
    const char *name = ms_port_format_stack(format, plan->stack, stack);
    if (name == plan->stack)
        return MS_OK;
    if (plan->recompute == MS_RECOMPUTE_SELECTIVE && plan->recompute_modules == 0)
        plan->recompute_modules = stack->selective_modules;
    ms_note(cx, "stack %s is not of this framework: rules and defaults are those of %s",
            plan->stack, name);
    plan->stack = name;
    return MS_OK;
}

/* States the layers of stages, the stack's own, where the format needs them. */
static void state_layers(ms_ctx *cx, const ms_port_format *format, ms_workload *workload,
                         ms_plan *plan)
{
    if (!ms_port_needs_layers(format, plan, workload->model))
        return;
    ms_bill_key key = ms_plan_bill_key(workload, plan);
    ms_bill_set *bills = ms_workload_bills(workload, &key);
    ms_schedule_shape shape = ms_workload_shape(workload, bills, plan);
    const ms_split *split = ms_workload_split(workload, bills, &shape, NULL);
    long *list = MS_NEW_ARRAY(cx->arena, split->num_stages, long);
    for (long i = 0; i < split->num_stages; i++)
        list[i] = split->layers[i];
    plan->num_stage_layers = split->num_stages;
    plan->layers_per_stage = list;
}

/* GPUs of a node that a launcher starts: the most that divide the job. */
static long launched_per_node(const ms_cluster *cluster, long gpus)
{
    long per_node = cluster->gpus_per_node > 0 ? cluster->gpus_per_node : 8;
    while (gpus % per_node != 0)
        per_node--;
    return per_node;
}

static void write_json(ms_jout *json, const ms_port_format *format,
                       const ms_rule_set *rules, const ms_port_exported *exported)
{
    ms_jout_begin_object(json);
    ms_jout_text_field(json, "schema", "meshsim.export/1");
    ms_jout_text_field(json, "format", ms_port_format_name(format));
    ms_jout_text_field(json, "version", rules->version);
    ms_jout_begin_array_field(json, "settings");
    for (int i = 0; i < exported->settings.num; i++) {
        ms_jout_begin_object(json);
        ms_jout_text_field(json, "key", exported->settings.rows[i].key);
        ms_jout_text_field(json, "value", exported->settings.rows[i].value);
        ms_jout_end_object(json);
    }
    ms_jout_end_array(json);
    ms_jout_begin_array_field(json, "left_out");
    for (int i = 0; i < exported->left_out.num; i++)
        ms_jout_text(json, exported->left_out.texts[i]);
    ms_jout_end_array(json);
    ms_jout_end_object(json);
}

static ms_status export_plan(ms_ctx *cx, const ms_args *args,
                             const export_options *options, const ms_port_format *format,
                             ms_workload *workload, ms_plan *plan)
{
    MS_TRY(ms_plan_fit_recompute(cx, workload, plan));
    state_layers(cx, format, workload, plan);
    ms_port_exported exported;
    ms_port_subject subject = {plan, workload->model, workload->stack, &workload->rules};
    MS_TRY(ms_port_export(cx, format, &subject, options->lossy, &exported));
    ms_port_export_options how = {.launcher = (ms_port_launcher)options->launcher.value,
                                  .gpus_per_node =
                                      launched_per_node(workload->cluster, plan->gpus)};
    ms_output out;
    MS_TRY(ms_output_open(cx, args->common.output, &out));
    if (args->common.json)
        write_json(&out.json, format, &workload->rules, &exported);
    else
        ms_port_write(out.file, cx->arena, format, plan, &exported, &how);
    return ms_output_close(cx, &out, MS_OK);
}

ms_status ms_cmd_export(ms_ctx *cx, ms_args *args)
{
    ms_plan_options plan_options = {0};
    export_options options = {0};
    const ms_option_set sets[] = {{"export", export_table, &options},
                                  {"plan", ms_plan_option_table(), &plan_options}};
    MS_TRY(ms_args_read(cx, args, sets, 2));
    if (args->done)
        return MS_OK;
    const ms_port_format *format;
    if (options.format == NULL) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "--format is missing");
        return ms_hint(cx, "formats: %s",
                       ms_choice_text(cx->arena, ms_port_format_names, ", "));
    }
    MS_TRY(ms_port_format_find(cx, options.format, &format));
    ms_plan plan;
    MS_TRY(ms_plan_of_command(cx, args, &plan_options, &plan));
    MS_TRY(take_stack(cx, format, &plan));
    ms_workload *workload;
    MS_TRY(ms_plan_open_workload(cx, &plan, &workload));
    ms_broken_rules broken;
    ms_status status =
        ms_plan_obey_rules(cx, workload, &plan, plan_options.ignore_rules, &broken);
    if (status == MS_OK)
        status = export_plan(cx, args, &options, format, workload, &plan);
    ms_workload_close(workload);
    return status;
}
