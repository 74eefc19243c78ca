#include "sim/request/export_answer.h"

#include "base/note.h"
#include "base/texts.h"
#include "sim/step/bill_key.h"

const ms_option ms_export_option_table[] = {
    MS_OPT_TEXT(
        ms_export_inputs, format, "--format", "NAME",
        "framework whose words the plan takes: megatron, torchtitan, nanotron, deepspeed, "
        "accelerate, maxtext (required)"),
    MS_OPT_CHOICE(
        ms_export_inputs, launcher, "--launcher", ms_port_launchers,
        "what starts the processes; none: the settings alone (default torchrun; of "
        "deepspeed: its own launcher)"),
    MS_OPT_FLAG(ms_export_inputs, lossy, "--lossy",
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

static ms_status export_plan(ms_ctx *cx, const ms_export_inputs *inputs,
                             ms_export_answer *a)
{
    const ms_workload *workload = a->workload;
    MS_TRY(ms_plan_fit_recompute(cx, a->workload, &a->plan));
    state_layers(cx, a->format, a->workload, &a->plan);
    long per_node = launched_per_node(workload->cluster, a->plan.gpus);
    ms_port_subject subject = {&a->plan, workload->model, workload->stack,
                               &workload->rules, per_node};
    MS_TRY(ms_port_export(cx, a->format, &subject, inputs->lossy, &a->exported));
    a->how = (ms_port_export_options){
        .launcher = (ms_port_launcher)inputs->launcher.value, .gpus_per_node = per_node};
    a->is_complete = true;
    return MS_OK;
}

ms_status ms_export_ask(ms_ctx *cx, const ms_export_inputs *inputs, const ms_plan *plan,
                        ms_export_answer *out)
{
    *out = (ms_export_answer){.plan = *plan};
    ms_broken_rules broken;
    MS_TRY(ms_export_check(cx, inputs, &out->format));
    MS_TRY(take_stack(cx, out->format, &out->plan));
    MS_TRY(ms_plan_open_workload(cx, &out->plan, &out->workload));
    MS_TRY(
        ms_plan_obey_rules(cx, out->workload, &out->plan, inputs->ignore_rules, &broken));
    return export_plan(cx, inputs, out);
}

ms_status ms_export_check(ms_ctx *cx, const ms_export_inputs *inputs,
                          const ms_port_format **format)
{
    if (inputs->format != NULL)
        return ms_port_format_find(cx, inputs->format, format);
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "--format is missing");
    return ms_hint(cx, "formats: %s",
                   ms_choice_text(cx->arena, ms_port_format_names, ", "));
}

void ms_export_answer_close(ms_export_answer *answer)
{
    if (answer->workload != NULL)
        ms_workload_close(answer->workload);
}

void ms_export_answer_write(FILE *out, ms_arena *arena, const ms_export_answer *answer)
{
    ms_port_write(out, arena, answer->format, &answer->plan, &answer->exported,
                  &answer->how);
}

typedef struct written {
    ms_arena *arena;
    const ms_export_answer *answer;
} written;

static void write_text(FILE *out, const void *payload)
{
    const written *w = payload;
    ms_export_answer_write(out, w->arena, w->answer);
}

void ms_export_answer_write_json(ms_jout *out, ms_arena *arena,
                                 const ms_export_answer *answer)
{
    const ms_port_settings *settings = &answer->exported.settings;
    const ms_texts *left_out = &answer->exported.left_out;
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "schema", "meshsim.export/1");
    ms_jout_text_field(out, "format", ms_port_format_name(answer->format));
    ms_jout_text_field(out, "version", answer->workload->rules.version);
    ms_jout_begin_array_field(out, "settings");
    for (int i = 0; i < settings->num; i++) {
        ms_jout_begin_object(out);
        ms_jout_text_field(out, "key", settings->rows[i].key);
        ms_jout_text_field(out, "value", settings->rows[i].value);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
    ms_jout_begin_array_field(out, "left_out");
    for (int i = 0; i < left_out->num; i++)
        ms_jout_text(out, left_out->texts[i]);
    ms_jout_end_array(out);
    ms_jout_text_field(out, "text",
                       ms_text_written(arena, write_text, &(written){arena, answer}));
    ms_jout_end_object(out);
}
