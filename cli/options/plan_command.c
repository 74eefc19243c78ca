#include "cli/options/plan_command.h"

#include "cli/options/interrupt.h"
#include "cli/options/output.h"
#include "costmodel/plan/plan_field.h"
#include "sim/step/idle_choices.h"
#include "sim/step/recompute_fit.h"
#include "topo/allocation.h"

#include <string.h>

const char *ms_shell_quoted(ms_arena *arena, const char *text)
{
    static const char harmless[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./+=:@%,";
    if (strspn(text, harmless) == strlen(text))
        return text;
    char *out = ms_arena_strdup(arena, "'");
    for (const char *rest = text; *rest != '\0';) {
        size_t length = strcspn(rest, "'");
        bool quote = rest[length] == '\'';
        out = ms_arena_printf(arena, "%s%.*s%s", out, (int)length, rest,
                              quote ? "'\\''" : "");
        rest += length + quote;
    }
    return ms_arena_printf(arena, "%s'", out);
}

static char *add_flag(ms_arena *arena, char *text, const ms_plan *plan, ms_choice choice)
{
    if (ms_plan_fields[choice].flag == NULL || !ms_plan_needs_flag(plan, choice))
        return text;
    return ms_arena_printf(
        arena, "%s%s%s %s", text, text[0] == '\0' ? "" : " ", ms_plan_fields[choice].flag,
        ms_shell_quoted(arena, ms_plan_value_text(arena, plan, choice)));
}

/* Writes flags of inputs (model, batch) first; omits values that all stacks default
 * to. */
char *ms_plan_command_text(ms_arena *arena, const ms_plan *plan)
{
    static const ms_choice inputs[] = {
        MS_CHOOSE_MODEL,           MS_CHOOSE_CLUSTER,          MS_CHOOSE_STACK,
        MS_CHOOSE_PROFILE,         MS_CHOOSE_RANKS_PER_DOMAIN, MS_CHOOSE_GPUS,
        MS_CHOOSE_SEQUENCE_LENGTH, MS_CHOOSE_GLOBAL_BATCH,     MS_CHOOSE_COMPUTE};
    char *text = ms_arena_strdup(arena, "");
    bool done[MS_NUM_CHOICES] = {false};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        text = add_flag(arena, text, plan, inputs[i]);
        done[inputs[i]] = true;
    }
    for (int i = 0; i < MS_NUM_CHOICES; i++)
        if (!done[i])
            text = add_flag(arena, text, plan, (ms_choice)i);
    return text;
}

void ms_note_unread_keys(ms_ctx *cx, const ms_model *model)
{
    if (model->unread_keys != NULL)
        ms_note(cx, "keys of %s that are not read and may change the model: %s",
                model->name, model->unread_keys);
}

void ms_note_allocation(ms_ctx *cx, const ms_cluster *cluster, long num_gpus)
{
    const char *text = ms_allocation_text(cx->arena, cluster, num_gpus);
    if (text != NULL)
        ms_note(cx, "%s", text);
}

void ms_note_idle_choices(ms_ctx *cx, ms_workload *workload, const ms_plan *plan,
                          bool of_job)
{
    for (ms_choice choice = 0; choice < MS_NUM_CHOICES; choice++) {
        const char *text = ms_idle_choice_text(cx->arena, workload, plan, choice, of_job);
        if (text != NULL)
            ms_note(cx, "%s", text);
    }
}

ms_status ms_plan_open_workload(ms_ctx *cx, const ms_plan *plan, ms_workload **out)
{
    ms_workload *workload;
    MS_TRY(ms_workload_open(cx, plan, &workload));
    ms_note_unread_keys(cx, workload->model);
    if (plan->profile != NULL && cx->verbosity > 0)
        ms_note(cx, "costs are of profile \"%s\", in place of \"%s\"",
                workload->profile->name, workload->cluster->device.profile);
    ms_status status = ms_plan_check(cx, plan, workload->model, MS_NOWHERE);
    if (status == MS_OK)
        status = ms_plan_check_cluster(cx, plan, workload->cluster);
    if (status != MS_OK) {
        ms_workload_close(workload);
        return status;
    }
    ms_note_idle_choices(cx, workload, plan, false);
    ms_note_allocation(cx, workload->cluster, plan->gpus);
    *out = workload;
    return MS_OK;
}

ms_status ms_plan_obey_rules(ms_ctx *cx, ms_workload *workload, const ms_plan *plan,
                             bool ignore_rules, ms_broken_rules *broken)
{
    *broken = ms_workload_broken_rules(workload, plan, cx->arena);
    if (ignore_rules || broken->num == 0)
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "%s",
            ms_broken_rule_text(workload, plan, broken->rules[0], cx->arena));
    return ms_hint(cx, "%s; --ignore-rules prices it all the same",
                   broken->rules[0]->source);
}

ms_status ms_plan_of_command(ms_ctx *cx, const ms_args *args, ms_plan_options *options,
                             ms_plan *out)
{
    MS_TRY(ms_plan_options_word(cx, options, args->words.words[0]));
    MS_TRY(ms_plan_from_options(cx, options, out));
    return ms_plan_options_check_output(cx, options, out, args->common.output);
}

ms_status ms_plan_open_fitted(ms_ctx *cx, ms_plan *plan, ms_workload **out)
{
    MS_TRY(ms_plan_open_workload(cx, plan, out));
    const ms_rule *rule = ms_workload_broken_rule(*out, plan);
    if (rule != NULL)
        ms_note(cx, "%s", ms_broken_rule_text(*out, plan, rule, cx->arena));
    ms_status status = ms_plan_fit_recompute(cx, *out, plan);
    if (status != MS_OK)
        ms_workload_close(*out);
    return status;
}

ms_status ms_plan_fit_recompute(ms_ctx *cx, ms_workload *workload, ms_plan *plan)
{
    double asked = plan->recompute_budget_frac;
    MS_TRY(ms_recompute_fit(workload, plan));
    if (plan->recompute_budget_frac != asked)
        ms_note_default(cx, "--recompute-budget %g", plan->recompute_budget_frac);
    return MS_OK;
}

ms_status ms_plan_check_fits(ms_ctx *cx, const ms_args *args, ms_workload *workload,
                             const ms_prediction *prediction, const ms_plan *plan,
                             ms_shortfall *out)
{
    if (prediction->fits)
        return MS_OK;
    ms_search_options search = {.num_threads = ms_args_threads(args),
                                .interrupted = &ms_interrupted};
    ms_shortfall_of_plan(cx, workload, plan, prediction, &search, out);
    return ms_shortfall_fail(cx, out);
}
