#include "sim/planning/best_plan.h"

#include "base/number.h"
#include "costmodel/plan/stack_choices.h"
#include "sim/step/prediction_text.h"
#include "topo/allocation.h"

#include <math.h>
#include <string.h>

bool ms_best_plan_keeps_limits(const ms_best_plan *best)
{
    return best->found &&
           (!best->has_campaign || ms_campaign_keeps_limits(&best->campaign));
}

const ms_best_plan *ms_best_plans_stuck(const ms_best_plan *plans, int num)
{
    const ms_best_plan *stuck = NULL;
    for (int i = 0; i < num; i++) {
        if (!plans[i].found)
            continue;
        if (!plans[i].has_campaign || ms_campaign_advances(&plans[i].campaign.campaign))
            return NULL;
        stuck = stuck == NULL ? &plans[i] : stuck;
    }
    return stuck;
}

static const char *reason_for_no_plan(ms_ctx *cx, const ms_workload *workload,
                                      const ms_search_result *result)
{
    if (!isfinite(result->least_needed_bytes))
        return "no legal plan";
    return ms_arena_printf(cx->arena, "needs %.1f of %.1f GiB",
                           ms_gib(result->least_needed_bytes),
                           ms_gib(workload->memory.limit_bytes));
}

static ms_status open_workload(ms_ctx *cx, const ms_best_question *question,
                               const ms_plan *plan, ms_workload **out)
{
    const ms_best_files *files = question->files;
    if (files == NULL)
        return ms_workload_open(cx, plan, out);
    ms_workload_inputs inputs = {.model = files->others->model,
                                 .profile = files->profile,
                                 .stack = files->others->stack,
                                 .group_profiles = files->group_profiles};
    MS_TRY(ms_cluster_for_job(cx, files->cluster, plan->gpus, plan->ranks_per_domain,
                              &inputs.cluster));
    return ms_workload_make_like(cx, files->others, &inputs, plan, out);
}

static ms_status complete(ms_ctx *cx, ms_workload *workload,
                          const ms_best_question *question, const ms_plan *plan,
                          ms_best_plan *out)
{
    out->found = true;
    MS_TRY(ms_predict(cx, workload, plan, &out->prediction));
    out->plan = ms_prediction_plan(plan, &out->prediction);
    out->needed_bytes = ms_needed_bytes(&workload->memory, out->prediction.peak_bytes,
                                        out->prediction.outside_bytes);
    out->has_campaign = question->campaign != NULL;
    if (out->has_campaign)
        out->campaign =
            ms_campaign_of_plan(question->campaign, workload, plan, &out->prediction);
    return MS_OK;
}

static ms_status search(ms_ctx *cx, ms_workload *workload,
                        const ms_best_question *question, const ms_space *space,
                        const ms_search_options *options, ms_best_plan *out)
{
    ms_search_options fastest = *options;
    fastest.num_best = 1;
    ms_search_result result;
    ms_status status = ms_search(cx, workload, space, &fastest, &result);
    if (status != MS_OK && status != MS_ENOFIT)
        return status;
    if (ms_is_interrupted(options->interrupted) && !result.optimal)
        return ms_fail(cx, MS_EINTERRUPTED, MS_NOWHERE,
                       "interrupted while %ld GPUs were searched", space->base.gpus);
    out->optimal = result.optimal;
    out->open_bound_s = result.smallest_open_bound_s;
    if (result.num_found > 0)
        return complete(cx, workload, question, &result.found[0].plan, out);
    out->reason = reason_for_no_plan(cx, workload, &result);
    out->too_large = isfinite(result.least_needed_bytes);
    out->needed_bytes = out->too_large ? result.least_needed_bytes : (double)NAN;
    return MS_OK;
}

ms_status ms_best_plan_in(ms_ctx *cx, ms_workload *workload,
                          const ms_best_question *question,
                          const ms_search_options *options, ms_best_plan *out)
{
    const ms_plan_limits *limits = question->limits;
    *out = (ms_best_plan){.open_bound_s = NAN};
    MS_TRY(ms_plan_check_cluster(cx, &question->base, workload->cluster));
    MS_TRY(ms_plan_check_positions(cx, &question->base, workload->model, MS_NOWHERE));
    ms_workload_set_memory_rule(workload, &limits->memory);
    ms_space space = question->space != NULL
                         ? *question->space
                         : ms_space_all(&question->base, workload->stack);
    space.stack = workload->stack;
    for (int i = 0; i < limits->num; i++)
        MS_TRY(ms_space_limit(cx, &space, limits->texts[i]));
    return search(cx, workload, question, &space, options, out);
}

ms_status ms_best_plan_find(ms_ctx *cx, const ms_best_question *question,
                            const ms_search_options *options, ms_best_plan *out)
{
    ms_workload *workload;
    MS_TRY(open_workload(cx, question, &question->base, &workload));
    ms_status status = ms_best_plan_in(cx, workload, question, options, out);
    ms_workload_close(workload);
    return status;
}

static bool is_of_job(const ms_plan *plan, const ms_plan *base)
{
    ms_plan job = *base;
    job.recompute_budget_frac = plan->recompute_budget_frac; /* a search tries several */
    return strcmp(plan->model, base->model) == 0 &&
           strcmp(plan->cluster, base->cluster) == 0 &&
           strcmp(plan->stack, base->stack) == 0 && plan->gpus == base->gpus &&
           ms_plan_same_workload(plan, &job);
}

ms_status ms_best_plan_again(ms_ctx *cx, const ms_best_question *question,
                             const ms_plan *plan, ms_best_plan *out)
{
    const ms_plan *base = &question->base;
    ms_plan known = *plan;
    ms_workload *workload;
    *out = (ms_best_plan){.open_bound_s = NAN};
    if (!is_of_job(plan, base))
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                       "the plan is not of %s on %ld GPUs of %s", base->model, base->gpus,
                       base->cluster);
    known.profile = base->profile; /* plan files do not have it */
    MS_TRY(open_workload(cx, question, &known, &workload));
    ms_workload_set_memory_rule(workload, &question->limits->memory);
    ms_status status = ms_plan_check(cx, &known, workload->model, MS_NOWHERE);
    if (status == MS_OK)
        status = complete(cx, workload, question, &known, out);
    ms_workload_close(workload);
    return status;
}
