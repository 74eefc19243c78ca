/* The fastest plans of a space, with a certificate that none is faster. Flags of a plan fix
 * a choice; --fix and --limit narrow others. */
#include "sim/request/search_answer.h"

#include "base/log.h"
#include "base/note.h"
#include "sim/engine/graph.h"
#include "sim/planning/campaign_text.h"
#include "sim/planning/objective_text.h"
#include "sim/request/opened_plan.h"
#include "sim/request/search_allow.h"
#include "sim/request/search_objective.h"
#include "sim/request/search_why.h"
#include "sim/request/searched_plan.h"
#include "sim/search/ties.h"
#include "sim/simulate/predict_events.h"
#include "sim/step/prediction_text.h"

#define DEFAULT_TOP 10
#define MAX_TOP     10000
#define MAX_VALUE   16777216

const ms_option ms_search_option_table[] = {
    MS_OPT_TEXT(ms_search_flags, gpus, "--gpus", "N|A..B|A,B,...",
                "number of GPUs, or several of which the best by --objective is taken: "
                "64..4096 doubles from 64"),
    MS_OPT_INTEGER(ms_search_flags, top, "--top", "N", 1, MAX_TOP,
                   "number of plans, each with another mesh (default 10)"),
    MS_OPT_LIST(ms_search_flags, fix, "--fix", "CHOICE=VALUE,...",
                "only this value: tp=8, schedule=1f1b; may be repeated"),
    MS_OPT_LIST(ms_search_flags, limit, "--limit", "CHOICE<=VALUE,...",
                "only these values: tp<=8, pp>=2, recompute=none; may be repeated"),
    MS_OPT_TEXT(ms_search_flags, allow, "--allow", "NAME,...",
                "take these, too, where the fastest plan gains: fp8, bf16-states, "
                "adam8bit, quantized (they change numbers), offload (it needs the "
                "host's memory)"),
    MS_OPT_INTEGER(ms_search_flags, max_virtual_stages, "--max-virtual-stages", "N", 1,
                   MAX_VALUE, "maximum of model chunks per pipeline rank (default 8)"),
    MS_OPT_INTEGER(ms_search_flags, max_microbatch, "--max-microbatch", "SEQUENCES", 1,
                   MAX_VALUE, "maximum of sequences per micro-batch (default 16)"),
    MS_OPT_FLAG(ms_search_flags, variants, "--variants",
                "list the fastest plans even when they share a mesh"),
    MS_OPT_TEXT(ms_search_flags, save_plan, "--save-plan", "FILE",
                "write the first plan of the list to FILE (meshsim.plan/1)"),
    MS_OPT_TEXT(
        ms_search_flags, tie_band, "--tie-band", "SHARE%",
        "plans by less than this slower than the fastest are tied, and the "
        "simplest comes first; 0: by step time alone (default: what the errors of "
        "published layouts leave undecided)"),
    MS_OPT_TEXT(ms_search_flags, why, "--why", "CHOICE=VALUE,...",
                "why this plan is or is not listed, stage by stage: tp=8,pp=4,zero=1"),
    MS_OPT_CHOICE(
        ms_search_flags, engine, "--engine", ms_engine_names,
        "times of the listed plans: by the replay that the search uses, or by events "
        "(default replay)"),
    MS_OPT_CHOICE(
        ms_search_flags, objective, "--objective", ms_objective_names,
        "what is to be least, under --deadline and --budget: time of the steps, "
        "money, number of GPUs, energy, device memory needed, time with all "
        "losses (goodput) (default time)"),
    {0},
};

int ms_search_option_sets(ms_ctx *cx, ms_search_inputs *inputs,
                          ms_option_set sets[MS_NUM_SEARCH_SETS])
{
    static const char *const own[] = {"--gpus", NULL};
    *inputs = (ms_search_inputs){0};
    sets[0] = (ms_option_set){"search", ms_search_option_table, &inputs->search};
    sets[1] = (ms_option_set){"memory", ms_memory_option_table, &inputs->memory};
    sets[2] = (ms_option_set){"campaign", ms_campaign_option_table, &inputs->campaign};
    sets[3] =
        (ms_option_set){"plan", ms_searched_plan_table(cx, NULL, own), &inputs->plan};
    return MS_NUM_SEARCH_SETS;
}

/* ---- one search ---- */

/* Predicts the plans found; they stay in the order of the step times that replay
 * predicts, and of ties. */
static ms_status complete(ms_ctx *cx, ms_workload *workload, bool by_events,
                          ms_search_report *report)
{
    int num = report->result->num_found;
    ms_plan *plans = MS_NEW_ARRAY(cx->arena, num, ms_plan);
    ms_prediction *predictions = MS_NEW_ARRAY(cx->arena, num, ms_prediction);
    for (int i = 0; i < num; i++) {
        const ms_plan *plan = &report->result->found[i].plan;
        MS_TRY(by_events ? ms_predict_by_events(cx, workload, plan, &predictions[i])
                         : ms_predict(cx, workload, plan, &predictions[i]));
        plans[i] = ms_prediction_plan(plan, &predictions[i]);
    }
    report->plans = plans;
    report->predictions = predictions;
    if (num > 0)
        report->layout = ms_plan_layout_text(cx->arena, &plans[0], workload->model,
                                             workload->stack, &workload->rules);
    return MS_OK;
}

/* The campaign of the first plan; *out is NULL if none was asked for or found. */
static ms_status reckon(const ms_search_request *r, const ms_workload *workload,
                        const ms_search_report *report, const ms_campaign_answer **out)
{
    *out = NULL;
    if (!r->asks_campaign || report->result->num_found == 0)
        return MS_OK;
    ms_campaign_answer *answer = MS_NEW(r->cx->arena, ms_campaign_answer);
    *out = answer;
    return ms_campaign_options_apply(r->cx, r->campaign, workload, &report->plans[0],
                                     &report->predictions[0], answer);
}

/* Status of a search: records an error if it was interrupted or no plan fits. */
static ms_status judge(ms_ctx *cx, ms_workload *workload, ms_search_report *report,
                       const ms_search_options *options, ms_shortfall *shortfall)
{
    if (ms_is_interrupted(cx->interrupted) &&
        (!report->result->optimal || report->result->num_found > 0)) {
        const char *found =
            report->result->optimal
                ? "the fastest plan is proven, but simpler ones may be missing"
            : report->result->num_found > 0
                ? "these are the best of the plans explored so far"
                : "no plan was found so far";
        return ms_fail(cx, MS_EINTERRUPTED, MS_NOWHERE, "interrupted: %s", found);
    }
    if (report->result->num_found > 0)
        return MS_OK;
    ms_shortfall_of_search(cx, workload, report->space, options, report->result,
                           shortfall);
    report->shortfall = shortfall;
    if (ms_is_interrupted(cx->interrupted))
        return ms_fail(cx, MS_EINTERRUPTED, MS_NOWHERE,
                       "interrupted while looking for a change that fits: %s",
                       shortfall->reason);
    return ms_shortfall_fail(cx, shortfall);
}

/* Prepares the answer to --why before the search; *out is NULL without --why. */
static ms_status begin_why(const ms_search_request *r, const ms_search_options *options,
                           ms_workload *workload, ms_why **out)
{
    *out = NULL;
    if (r->search->why == NULL)
        return MS_OK;
    *out = MS_NEW(r->cx->arena, ms_why);
    return ms_why_ask(r->cx, workload, r->space, options, r->why, *out);
}

static ms_status finish_why(const ms_search_request *r, const ms_search_options *options,
                            ms_workload *workload, ms_why *why, ms_search_report *report)
{
    if (why == NULL)
        return MS_OK;
    const ms_search_result *result = report->result;
    int fastest = ms_search_fastest(result);
    ms_why_context known = {r->cx,    workload,
                            r->space, options,
                            result,   fastest < 0 ? NULL : &report->predictions[fastest]};
    report->why = why;
    return ms_why_answer(&known, why);
}

/* Fills what the report says before the search. */
ms_status ms_search_report_open(const ms_search_request *r,
                                const ms_search_options *options,
                                const ms_workload *workload, ms_search_report *report)
{
    *report = (ms_search_report){.space = r->space,
                                 .limits = r->limits,
                                 .memory = &workload->memory,
                                 .rules = &workload->rules,
                                 .unit = workload->cluster->device.unit,
                                 .num_threads = options->num_threads};
    return ms_search_request_tie_band(r, workload, report);
}

ms_status ms_search_finish(const ms_search_request *r, const ms_search_options *options,
                           ms_workload *workload, ms_search_state *begun,
                           ms_search_report *report)
{
    ms_ctx *cx = r->cx;
    ms_search_result *result = MS_NEW(cx->arena, ms_search_result);
    ms_status status = ms_search_complete(begun, result);
    if (status != MS_OK && status != MS_ENOFIT)
        return status;
    ms_search_tie(cx, workload, r->space, options, report->tie_band_frac, result);
    report->result = result;
    return complete(cx, workload, r->search->engine.value == MS_ENGINE_EVENT, report);
}

static ms_status find(const ms_search_request *r, const ms_search_options *options,
                      ms_workload *workload, ms_search_report *report)
{
    ms_why *why;
    MS_TRY(ms_search_report_open(r, options, workload, report));
    MS_TRY(begin_why(r, options, workload, &why));
    ms_search_state *begun = ms_search_begin(r->cx, workload, r->space, options);
    MS_TRY(ms_search_finish(r, options, workload, begun, report));
    ms_search_find_gains(workload, r->search->allow, report);
    return finish_why(r, options, workload, why, report);
}

ms_search_options ms_search_request_options(const ms_search_request *r, int num_best)
{
    const ms_search_listener *listener = r->listener;
    return (ms_search_options){.variants = r->search->variants,
                               .num_best = num_best,
                               .num_threads = ms_ctx_threads(r->cx),
                               .interrupted = r->cx->interrupted,
                               .progress = listener == NULL ? NULL : listener->progress,
                               .payload = listener == NULL ? NULL : listener->payload};
}

ms_status ms_search_ready(const ms_search_request *r)
{
    const ms_search_listener *listener = r->listener;
    return listener == NULL || listener->ready == NULL
               ? MS_OK
               : listener->ready(listener->payload, r);
}

static ms_status run(const ms_search_request *r, ms_search_answer *out)
{
    ms_ctx *cx = r->cx;
    MS_TRY(ms_search_request_memory(r, out->workload));
    bool has_top = r->search->top.given;
    if (!has_top)
        ms_note_default(cx, "--top %d", DEFAULT_TOP);
    ms_search_options options =
        ms_search_request_options(r, has_top ? (int)r->search->top.value : DEFAULT_TOP);
    MS_TRY(ms_search_ready(r));
    ms_status status = find(r, &options, out->workload, &out->report);
    if (status == MS_OK)
        status = judge(cx, out->workload, &out->report, &options,
                       MS_NEW(cx->arena, ms_shortfall));
    if (status == MS_OK)
        status = reckon(r, out->workload, &out->report, &out->campaign);
    out->is_complete =
        out->report.result != NULL && status != MS_EIO && status != MS_EINPUT;
    return status;
}

static ms_status search(ms_search_request *r, ms_search_answer *out)
{
    ms_ctx *cx = r->cx;
    const ms_plan *base = &r->space->base;
    const ms_workload *workload = out->workload;
    MS_TRY(ms_plan_check_cluster(cx, base, workload->cluster));
    MS_TRY(ms_plan_check_positions(cx, base, workload->model, MS_NOWHERE));
    MS_TRY(ms_search_request_space(r));
    if (r->search->why != NULL)
        MS_TRY(ms_search_why_read(cx, r->search->why, base, workload->stack, r->why));
    return run(r, out);
}

static ms_status search_one(ms_search_request *r, ms_search_answer *out)
{
    ms_ctx *cx = r->cx;
    ms_plan base;
    MS_TRY(ms_plan_base_from_options(cx, r->plan, &base));
    MS_TRY(ms_workload_open(cx, &base, &out->workload));
    const ms_workload *workload = out->workload;
    ms_note_unread_keys(cx, workload->model);
    ms_note_idle_choices(cx, out->workload, &base, true);
    ms_note_allocation(cx, workload->cluster, base.gpus);
    r->space = MS_NEW(cx->arena, ms_space);
    *r->space = ms_space_all(&base, workload->stack);
    r->why = MS_NEW(cx->arena, ms_why_question);
    ms_status status = search(r, out);
    ms_log("search", "at most %zu bytes in arenas", ms_arena_peak_bytes());
    return status;
}

/* ---- an objective ---- */

/* Records why no number of GPUs is taken. */
static ms_status fail_objective(ms_ctx *cx, const ms_objective_answer *objective)
{
    const ms_best_plan *stuck = ms_objective_stuck(objective);
    if (stuck != NULL)
        return ms_campaign_fail_progress(cx, &stuck->campaign);
    return ms_fail(cx, MS_ENOFIT, MS_NOWHERE, "%s",
                   ms_objective_reason(cx->arena, objective));
}

/* Whether nothing fits on the only number of GPUs: its search says what would. */
static bool nothing_fits(const ms_objective_answer *objective)
{
    return objective->num_jobs == 1 && objective->jobs[0].answered &&
           !objective->jobs[0].best.found;
}

/* Chooses the number of GPUs, then searches it as if it had been given. */
static ms_status search_best(ms_search_request *r, const ms_sizes *sizes,
                             ms_plan_options *plan, ms_search_answer *out)
{
    ms_objective_answer *objective = MS_NEW(r->cx->arena, ms_objective_answer);
    ms_status status = ms_search_by_objective(r, sizes, objective);
    if (status == MS_OK && nothing_fits(objective))
        return search_one(r, out);
    if (status == MS_OK && objective->best < 0)
        status = fail_objective(r->cx, objective);
    if (status == MS_EINTERRUPTED || status == MS_ENOFIT) {
        out->objective = objective;
        out->is_complete = true;
        return status;
    }
    MS_TRY(status);
    ms_plan_give(plan, MS_CHOOSE_GPUS, objective->jobs[objective->best].gpus);
    out->objective = r->objective = objective;
    return search_one(r, out);
}

ms_status ms_search_ask(ms_ctx *cx, ms_search_inputs *inputs,
                        const ms_search_listener *listener, ms_search_answer *out)
{
    const ms_search_flags *flags = &inputs->search;
    ms_plan_options *plan = &inputs->plan;
    ms_sizes sizes;
    *out = (ms_search_answer){0};
    MS_TRY(ms_search_fix_kept(cx, &flags->fix, plan));
    MS_TRY(ms_search_read_sizes(cx, flags->gpus, plan, &sizes));
    if (plan->plan_file != NULL || plan->plan_text != NULL)
        ms_note(cx,
                "the plan file sets model, cluster, stack, GPUs and batch; the search "
                "replaces its other choices");
    ms_search_request r = {.cx = cx,
                           .plan = plan,
                           .search = flags,
                           .memory = &inputs->memory,
                           .limits = "",
                           .campaign = &inputs->campaign,
                           .listener = listener};
    MS_TRY(ms_campaign_options_check(cx, &inputs->campaign, &r.asks_campaign));
    if (ms_stacks_are_several(plan->of[MS_CHOOSE_STACK].text)) {
        out->stacks = MS_NEW(cx->arena, ms_stacks_answer);
        ms_status status = ms_stacks_search(&r, &sizes, out->stacks);
        out->is_complete = out->stacks->is_complete;
        return status;
    }
    bool by_objective = ms_search_asks_objective(&r, &sizes);
    if (flags->allow != NULL && by_objective) {
        return ms_fail(
            cx, MS_EINPUT, MS_NOWHERE,
            "--allow compares step times: not with an objective, a deadline, a "
            "budget or several numbers of GPUs");
    }
    if (flags->allow != NULL)
        MS_TRY(ms_search_allow(&r, flags->allow, plan));
    return by_objective ? search_best(&r, &sizes, plan, out) : search_one(&r, out);
}

void ms_search_answer_close(ms_search_answer *answer)
{
    if (answer->workload != NULL)
        ms_workload_close(answer->workload);
    if (answer->stacks != NULL)
        ms_stacks_answer_close(answer->stacks);
}

const ms_plan *ms_search_answer_plan(const ms_search_answer *answer)
{
    if (answer->stacks != NULL)
        return answer->stacks->report.num_found > 0
                   ? answer->stacks->report.stacks[0].plan
                   : NULL;
    const ms_search_result *result = answer->report.result;
    return result != NULL && result->num_found > 0 ? answer->report.plans : NULL;
}

/* ---- JSON ---- */

/* The jobs of an objective for which no number of GPUs is taken, as a search's result. */
static void write_none(ms_jout *out)
{
    ms_jout_text_field(out, "schema", "meshsim.search/1");
    ms_jout_begin_array_field(out, "plans");
    ms_jout_end_array(out);
}

void ms_search_answer_write_json(ms_jout *out, ms_arena *arena,
                                 const ms_search_answer *answer)
{
    if (answer->stacks != NULL) {
        ms_stacks_write_json(out, &answer->stacks->report);
        return;
    }
    ms_jout_begin_object(out);
    if (answer->report.result == NULL)
        write_none(out);
    else
        ms_search_write_fields(out, &answer->report);
    if (answer->objective != NULL)
        ms_objective_write_field(out, arena, answer->objective);
    if (answer->campaign != NULL)
        ms_campaign_write_field(out, answer->campaign);
    ms_jout_end_object(out);
}
