#include "sim/request/opened_plan.h"

#include "base/note.h"
#include "sim/step/idle_choices.h"
#include "sim/step/recompute_fit.h"
#include "topo/allocation.h"

void ms_note_unread_keys(ms_ctx *cx, const ms_model *model)
{
    if (model->unread_keys != NULL)
        ms_note(cx, "keys of %s that are not read and may change the model: %s",
                model->name, model->unread_keys);
    if (model->checkpoint_note != NULL)
        ms_note(cx, "%s", model->checkpoint_note);
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

ms_status ms_plan_check_fits(ms_ctx *cx, ms_workload *workload,
                             const ms_prediction *prediction, const ms_plan *plan,
                             ms_shortfall *out)
{
    if (prediction->fits)
        return MS_OK;
    ms_search_options search = {.num_threads = ms_ctx_threads(cx),
                                .interrupted = cx->interrupted};
    ms_shortfall_of_plan(cx, workload, plan, prediction, &search, out);
    return ms_shortfall_fail(cx, out);
}
