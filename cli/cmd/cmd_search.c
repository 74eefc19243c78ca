/* meshsim search: the fastest plans of a space, with a certificate that none is faster.
 * Flags of a plan fix a choice; --fix and --limit narrow others. */
#include "base/log.h"
#include "base/print.h"
#include "base/units.h"
#include "cli/cmd/search_allow.h"
#include "cli/cmd/search_objective.h"
#include "cli/cmd/search_outputs.h"
#include "cli/cmd/search_stacks.h"
#include "cli/cmd/search_why.h"
#include "cli/options/commands.h"
#include "cli/options/interrupt.h"
#include "cli/options/plan_command.h"
#include "cli/options/searched_plan.h"
#include "cli/report/campaign_report.h"
#include "cli/report/objective_report.h"
#include "cli/report/report.h"
#include "sim/engine/graph.h"
#include "sim/search/search_report.h"
#include "sim/search/ties.h"
#include "sim/simulate/predict_events.h"
#include "sim/step/prediction_text.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_TOP 10
#define MAX_TOP     10000
#define MAX_VALUE   16777216

static const ms_option search_table[] = {
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

/* ---- the result ---- */

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

static void write_json(const ms_search_request *r, ms_jout *out,
                       const ms_search_report *report, const ms_campaign_answer *campaign)
{
    ms_jout_begin_object(out);
    ms_search_write_fields(out, report);
    if (r->objective != NULL)
        ms_objective_write_field(out, r->cx->arena, r->objective);
    if (campaign != NULL)
        ms_campaign_write_field(out, campaign);
    ms_jout_end_object(out);
}

/* " --layers-per-stage 20,12" if the plan would have others by itself, else "". */
static const char *layers_flag(ms_arena *arena, const ms_plan *plan)
{
    const char *text = plan->num_stage_layers > 0 ? " --layers-per-stage " : "";
    for (long i = 0; i < plan->num_stage_layers; i++)
        text = ms_arena_printf(arena, "%s%s%ld", text, i == 0 ? "" : ",",
                               plan->layers_per_stage[i]);
    return text;
}

static void write_result(const ms_search_request *r, ms_output *to, bool as_json,
                         const ms_search_report *report,
                         const ms_campaign_answer *campaign)
{
    if (as_json) {
        write_json(r, &to->json, report, campaign);
        return;
    }
    ms_ctx *cx = r->cx;
    FILE *out = to->file;
    if (r->objective != NULL)
        ms_objective_print(out, cx->arena, r->objective);
    ms_search_print(out, cx->arena, report);
    if (report->result->num_found > 0)
        ms_print(out, "try          meshsim predict %s%s\n",
                 ms_plan_command_text(cx->arena, &report->plans[0]),
                 layers_flag(cx->arena, &report->result->found[0].plan));
    if (report->layout != NULL)
        ms_print(out, "stages       --pipeline-model-parallel-layout '%s'\n",
                 report->layout);
    if (campaign != NULL)
        ms_campaign_print(out, cx->arena, campaign);
    if (report->why != NULL)
        ms_search_why_print(out, cx->arena, report->why);
}

/* Status of a search: records an error if it was interrupted or no plan fits. */
static ms_status judge(ms_ctx *cx, ms_workload *workload, ms_search_report *report,
                       const ms_search_options *options, ms_shortfall *shortfall)
{
    if (ms_interrupted && (!report->result->optimal || report->result->num_found > 0)) {
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
    if (ms_interrupted)
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
static ms_status open_report(const ms_search_request *r, const ms_search_options *options,
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

/* Completes a search that has begun and fills the report, which points to results in
 * cx->arena; MS_OK also if nothing was found. */
static ms_status finish(const ms_search_request *r, const ms_search_options *options,
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
    MS_TRY(open_report(r, options, workload, report));
    MS_TRY(begin_why(r, options, workload, &why));
    ms_search_state *begun = ms_search_begin(r->cx, workload, r->space, options);
    MS_TRY(finish(r, options, workload, begun, report));
    ms_search_find_gains(workload, report);
    return finish_why(r, options, workload, why, report);
}

/* Progress in a line of the terminal, cleared at the end. */
static void show_progress(void *payload, const ms_search_progress *p)
{
    (void)payload;
    fputs("\r\033[K", stderr);
    if (p->done_frac < 1.0) {
        fprintf(stderr, "%.0f %% of the search done", 100.0 * p->done_frac);
        if (p->done_frac > 0.0)
            fprintf(stderr, ", about %.0f s left",
                    p->elapsed_s * (1.0 / p->done_frac - 1.0));
        if (!isnan(p->best_step_s))
            fprintf(stderr, "; fastest plan so far %.4g s", p->best_step_s);
    }
    (void)fflush(stderr);
}

static ms_search_options make_options(const ms_search_request *r, const ms_args *args,
                                      int num_best)
{
    ms_search_options options = {.variants = r->search->variants,
                                 .num_best = num_best,
                                 .num_threads = ms_args_threads(args),
                                 .interrupted = &ms_interrupted};
    if (r->cx->verbosity >= 0 && isatty(STDERR_FILENO))
        options.progress = show_progress;
    if (!args->common.threads.given)
        ms_note_default(r->cx, "--threads %d", options.num_threads);
    return options;
}

static ms_status run(ms_ctx *cx, const ms_args *args, const ms_search_request *r,
                     ms_workload *workload)
{
    MS_TRY(ms_search_request_memory(r, workload));
    bool has_top = r->search->top.given;
    if (!has_top)
        ms_note_default(cx, "--top %d", DEFAULT_TOP);
    ms_search_options options =
        make_options(r, args, has_top ? (int)r->search->top.value : DEFAULT_TOP);
    ms_search_outputs out;
    MS_TRY(ms_search_outputs_open(r, args, &out));
    ms_search_report report = {0};
    ms_status status = find(r, &options, workload, &report);
    if (status == MS_OK)
        status = judge(cx, workload, &report, &options, MS_NEW(cx->arena, ms_shortfall));
    const ms_campaign_answer *campaign = NULL;
    if (status == MS_OK)
        status = reckon(r, workload, &report, &campaign);
    if (report.result == NULL || status == MS_EIO || status == MS_EINPUT) {
        ms_search_outputs_drop(cx, &out);
        return status;
    }
    write_result(r, &out.report, args->common.json, &report, campaign);
    status = ms_output_close(cx, &out.report, status);
    ms_status saved = ms_search_save_plan(
        cx, &out.plan, report.result->num_found > 0 ? report.plans : NULL);
    return saved != MS_OK ? saved : status;
}

static ms_status search(ms_ctx *cx, const ms_args *args, ms_search_request *r,
                        ms_workload *workload)
{
    const ms_plan *base = &r->space->base;
    MS_TRY(ms_plan_check_cluster(cx, base, workload->cluster));
    MS_TRY(ms_plan_check_positions(cx, base, workload->model, MS_NOWHERE));
    MS_TRY(ms_search_request_space(r));
    if (r->search->why != NULL)
        MS_TRY(ms_search_why_read(cx, r->search->why, base, workload->stack, r->why));
    return run(cx, args, r, workload);
}

/* ---- several stacks ---- */

/* The search of one of several stacks; its own context, because bad input may be bad for
 * this stack alone. */
typedef struct stack_search {
    ms_ctx cx;
    ms_plan_options options; /* the user's, with this stack */
    ms_space space;
    ms_search_request request;
    ms_workload *workload; /* NULL: not opened */
    ms_search_options how;
    ms_search_state *begun; /* NULL: bad input for this stack */
    ms_search_report report;
} stack_search;

/* Opens the files of a stack, with errors in its own context. A plan file is read once,
 * since it may be standard input: `first` is the search that read it, NULL for the first. */
static ms_status open_stack(const ms_search_request *r, const char *stack,
                            const stack_search *first, stack_search *s)
{
    ms_plan base;
    s->cx = (ms_ctx){.arena = r->cx->arena, .verbosity = r->cx->verbosity};
    s->options = *r->plan;
    s->options.of[MS_CHOOSE_STACK].text = stack;
    s->space.base.stack = stack;
    if (first == NULL || r->plan->plan_file == NULL) {
        MS_TRY(ms_plan_base_from_options(&s->cx, &s->options, &base));
    } else {
        base = first->space.base;
        base.stack = stack;
    }
    s->space.base = base;
    MS_TRY(ms_workload_open(&s->cx, &base, &s->workload));
    if (first == NULL) {
        ms_note_unread_keys(r->cx, s->workload->model);
        ms_note_idle_choices(r->cx, s->workload, &base, true);
        ms_note_allocation(r->cx, s->workload->cluster, base.gpus);
    }
    s->space = ms_space_all(&base, s->workload->stack);
    s->request = *r;
    s->request.cx = &s->cx;
    s->request.plan = &s->options;
    s->request.space = &s->space;
    return MS_OK;
}

static ms_status fail_as(ms_ctx *cx, const stack_search *s)
{
    cx->first = s->cx.first;
    cx->last = s->cx.last;
    cx->num_errors = s->cx.num_errors;
    return cx->status = s->cx.status;
}

/* Opens the ceiling and the stacks; what is bad input for some of them alone is the reason
 * why these have no plan. Notes on defaults of all stacks are those of the first, the
 * ceiling. */
static ms_status open_stacks(const ms_search_request *r, const char *const *names,
                             int num, stack_search *searches)
{
    int verbosity = r->cx->verbosity, num_open = 0;
    const ms_stack *known; /* unknown names are errors */
    for (int i = 0; i < num; i++)
        MS_TRY(ms_stack_load(r->cx, names[i], &known));
    for (int i = 0; i <= num; i++) {
        const char *name = i == 0 ? MS_CEILING_STACK : names[i - 1];
        ms_status status =
            open_stack(r, name, i == 0 ? NULL : &searches[0], &searches[i]);
        if (verbosity > 0)
            r->cx->verbosity = 0;
        num_open += status == MS_OK;
        if (status != MS_OK && (status != MS_EINPUT || searches[0].space.base.gpus == 0))
            return fail_as(r->cx, &searches[i]);
    }
    r->cx->verbosity = verbosity;
    return num_open > 0 ? MS_OK : fail_as(r->cx, &searches[0]);
}

/* Begins a stack's search, which finds a first plan. */
static ms_status begin_stack(stack_search *s, const ms_args *args)
{
    const ms_plan *base = &s->space.base;
    MS_TRY(ms_plan_check_cluster(&s->cx, base, s->workload->cluster));
    MS_TRY(ms_plan_check_positions(&s->cx, base, s->workload->model, MS_NOWHERE));
    MS_TRY(ms_search_request_space(&s->request));
    MS_TRY(ms_search_request_memory(&s->request, s->workload));
    /* the fastest plan, and the one to take of those in its tie band */
    s->how = make_options(&s->request, args, 2);
    MS_TRY(open_report(&s->request, &s->how, s->workload, &s->report));
    s->begun = ms_search_begin(&s->cx, s->workload, &s->space, &s->how);
    return MS_OK;
}

/* Completes a stack's search, and frees its cache; bad input for this stack alone is the
 * reason why it has no plan. */
static ms_status complete_stack(stack_search *s, bool is_ceiling, ms_stack_best *best)
{
    if (s->begun == NULL) {
        *best = (ms_stack_best){.stack = s->space.base.stack,
                                .outcome = MS_STACK_NOT_LEGAL,
                                .reason = s->cx.first->message};
        return MS_OK;
    }
    MS_TRY(finish(&s->request, &s->how, s->workload, s->begun, &s->report));
    *best = ms_stacks_best(&s->cx, s->workload, &s->report, is_ceiling);
    ms_workload_forget(s->workload);
    return MS_OK;
}

/* Searches the stacks, and then the ceiling, whose errors are those of every stack; all
 * have a first plan before one search is complete. */
static ms_status search_each(ms_ctx *cx, const ms_args *args, stack_search *searches,
                             ms_stacks_report *report)
{
    int num = report->num_stacks;
    for (int i = 0; i <= num; i++) {
        if (searches[i].workload == NULL)
            continue;
        ms_status status = begin_stack(&searches[i], args);
        if (status != MS_OK && (status != MS_EINPUT || report->inputs == NULL))
            return fail_as(cx, &searches[i]);
        if (report->inputs == NULL)
            report->inputs = &searches[i].report;
    }
    for (int k = 1; k <= num + 1; k++) {
        int i = k % (num + 1);
        ms_stack_best *best = i == 0 ? &report->ceiling : &report->stacks[i - 1];
        ms_status status = complete_stack(&searches[i], i == 0, best);
        if (status != MS_OK)
            return fail_as(cx, &searches[i]);
        if (best->search != NULL)
            report->elapsed_s += best->search->result->elapsed_s;
    }
    for (int i = 1; i <= num && report->ceiling.plan != NULL; i++)
        if (searches[i].workload != NULL)
            report->stacks[i - 1].refused = ms_workload_broken_rules(
                searches[i].workload, report->ceiling.plan, cx->arena);
    ms_stacks_order(report);
    return MS_OK;
}

static ms_status report_stacks(ms_ctx *cx, const ms_args *args,
                               const ms_search_request *r, stack_search *searches,
                               ms_stacks_report *report)
{
    ms_search_outputs out;
    for (int i = 1; i <= report->num_stacks; i++)
        MS_TRY(ms_plan_options_check_output(cx, r->plan, &searches[i].space.base,
                                            args->common.output));
    MS_TRY(ms_search_outputs_open(r, args, &out));
    ms_status status = search_each(cx, args, searches, report);
    if (status != MS_OK) {
        ms_search_outputs_drop(cx, &out);
        return status;
    }
    const ms_plan *best = report->num_found > 0 ? report->stacks[0].plan : NULL;
    if (args->common.json)
        ms_stacks_write_json(&out.report.json, report);
    else
        ms_stacks_print(out.report.file, cx->arena, report);
    status = ms_output_close(cx, &out.report, ms_stacks_judge(cx, report));
    ms_status saved = ms_search_save_plan(cx, &out.plan, best);
    return saved != MS_OK ? saved : status;
}

static ms_status search_several(ms_ctx *cx, const ms_args *args, ms_search_request *r,
                                const ms_sizes *sizes)
{
    const char *const *names;
    int num;
    MS_TRY(ms_stacks_check_request(r, sizes));
    MS_TRY(ms_stacks_list(cx, r->plan->of[MS_CHOOSE_STACK].text, &names, &num));
    stack_search *searches = MS_NEW_ARRAY(cx->arena, num + 1, stack_search);
    ms_stacks_report report = {.num_stacks = num,
                               .stacks = MS_NEW_ARRAY(cx->arena, num, ms_stack_best)};
    ms_status status = open_stacks(r, names, num, searches);
    r->space = &searches[0].space;
    if (status == MS_OK)
        status = report_stacks(cx, args, r, searches, &report);
    for (int i = 0; i <= num; i++)
        if (searches[i].workload != NULL)
            ms_workload_close(searches[i].workload);
    return status;
}

static ms_status search_one(ms_ctx *cx, const ms_args *args, ms_search_request *r)
{
    ms_plan base;
    MS_TRY(ms_plan_base_from_options(cx, r->plan, &base));
    ms_workload *workload;
    MS_TRY(ms_workload_open(cx, &base, &workload));
    ms_note_unread_keys(cx, workload->model);
    ms_note_idle_choices(cx, workload, &base, true);
    ms_note_allocation(cx, workload->cluster, base.gpus);
    r->space = MS_NEW(cx->arena, ms_space);
    *r->space = ms_space_all(&base, workload->stack);
    r->why = MS_NEW(cx->arena, ms_why_question);
    ms_status status = search(cx, args, r, workload);
    ms_workload_close(workload);
    ms_log("search", "at most %zu bytes in arenas", ms_arena_peak_bytes());
    return status;
}

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
static ms_status search_best(ms_search_request *r, const ms_args *args,
                             const ms_sizes *sizes, ms_plan_options *plan)
{
    ms_objective_answer *objective = MS_NEW(r->cx->arena, ms_objective_answer);
    ms_status status = ms_search_by_objective(r, args, sizes, objective);
    if (status == MS_OK && nothing_fits(objective))
        return search_one(r->cx, args, r);
    if (status == MS_OK && objective->best < 0)
        status = fail_objective(r->cx, objective);
    if (status == MS_EINTERRUPTED || status == MS_ENOFIT)
        return ms_search_report_none(r, args, objective, status);
    MS_TRY(status);
    ms_plan_give(plan, MS_CHOOSE_GPUS, objective->jobs[objective->best].gpus);
    r->objective = objective;
    return search_one(r->cx, args, r);
}

ms_status ms_cmd_search(ms_ctx *cx, ms_args *args)
{
    ms_search_flags options = {0};
    ms_memory_options memory = {0};
    ms_plan_options plan_options = {0};
    ms_campaign_options campaign = {0};
    static const char *const own[] = {"--gpus", NULL};
    const ms_option_set sets[] = {
        {"search", search_table, &options},
        {"memory", ms_memory_option_table, &memory},
        {"campaign", ms_campaign_option_table, &campaign},
        {"plan", ms_searched_plan_table(cx, NULL, own), &plan_options}};
    MS_TRY(ms_args_read(cx, args, sets, 4));
    if (args->done)
        return MS_OK;
    MS_TRY(ms_search_fix_kept(cx, &options.fix, &plan_options));
    ms_sizes sizes;
    MS_TRY(ms_search_read_sizes(cx, options.gpus, &plan_options, &sizes));
    if (plan_options.plan_file != NULL)
        ms_note(cx,
                "the plan file sets model, cluster, stack, GPUs and batch; the search "
                "replaces its other choices");
    ms_search_request r = {.cx = cx,
                           .plan = &plan_options,
                           .search = &options,
                           .memory = &memory,
                           .limits = "",
                           .campaign = &campaign};
    MS_TRY(ms_campaign_options_check(cx, &campaign, &r.asks_campaign));
    if (ms_stacks_are_several(plan_options.of[MS_CHOOSE_STACK].text))
        return search_several(cx, args, &r, &sizes);
    bool by_objective = ms_search_asks_objective(&r, &sizes);
    if (options.allow != NULL && by_objective) {
        return ms_fail(
            cx, MS_EINPUT, MS_NOWHERE,
            "--allow compares step times: not with an objective, a deadline, a "
            "budget or several numbers of GPUs");
    }
    if (options.allow != NULL)
        MS_TRY(ms_search_allow(&r, args, options.allow, &plan_options));
    return by_objective ? search_best(&r, args, &sizes, &plan_options)
                        : search_one(cx, args, &r);
}
