/* The searches of several stacks, one after the other. */
#include "sim/request/search_stacks.h"

#include "base/note.h"
#include "sim/request/opened_plan.h"
#include "sim/request/search_answer.h"

/* Opens the files of a stack, with errors in its own context. A plan file is read once,
 * since it may be standard input: `first` is the search that read it, NULL for the first. */
static ms_status open_stack(const ms_search_request *r, const char *stack,
                            const ms_stack_search *first, ms_stack_search *s)
{
    ms_plan base;
    s->cx = ms_ctx_quiet(r->cx, r->cx->arena);
    s->cx.verbosity = r->cx->verbosity;
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

static ms_status fail_as(ms_ctx *cx, const ms_stack_search *s)
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
                             int num, ms_stack_search *searches)
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
static ms_status begin_stack(ms_stack_search *s)
{
    const ms_plan *base = &s->space.base;
    MS_TRY(ms_plan_check_cluster(&s->cx, base, s->workload->cluster));
    MS_TRY(ms_plan_check_positions(&s->cx, base, s->workload->model, MS_NOWHERE));
    MS_TRY(ms_search_request_space(&s->request));
    MS_TRY(ms_search_request_memory(&s->request, s->workload));
    /* the fastest plan, and the one to take of those in its tie band */
    s->how = ms_search_request_options(&s->request, 2);
    MS_TRY(ms_search_report_open(&s->request, &s->how, s->workload, &s->report));
    s->begun = ms_search_begin(&s->cx, s->workload, &s->space, &s->how);
    return MS_OK;
}

/* Completes a stack's search, and frees its cache; bad input for this stack alone is the
 * reason why it has no plan. */
static ms_status complete_stack(ms_stack_search *s, bool is_ceiling, ms_stack_best *best)
{
    if (s->begun == NULL) {
        *best = (ms_stack_best){.stack = s->space.base.stack,
                                .outcome = MS_STACK_NOT_LEGAL,
                                .reason = s->cx.first->message};
        return MS_OK;
    }
    MS_TRY(ms_search_finish(&s->request, &s->how, s->workload, s->begun, &s->report));
    *best = ms_stacks_best(&s->cx, s->workload, &s->report, is_ceiling);
    ms_workload_forget(s->workload);
    return MS_OK;
}

/* Searches the stacks, and then the ceiling, whose errors are those of every stack; all
 * have a first plan before one search is complete. */
static ms_status search_each(ms_ctx *cx, ms_stack_search *searches,
                             ms_stacks_report *report)
{
    int num = report->num_stacks;
    for (int i = 0; i <= num; i++) {
        if (searches[i].workload == NULL)
            continue;
        ms_status status = begin_stack(&searches[i]);
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

/* Tells the listener of each stack that the search is about to begin. */
static ms_status tell_ready(const ms_search_request *r, int num,
                            ms_stack_search *searches)
{
    for (int i = 1; i <= num; i++) {
        ms_search_request one = *r;
        one.space = &searches[i].space;
        MS_TRY(ms_search_ready(&one));
    }
    return MS_OK;
}

ms_status ms_stacks_search(ms_search_request *r, const ms_sizes *sizes,
                           ms_stacks_answer *out)
{
    ms_ctx *cx = r->cx;
    const char *const *names = NULL;
    int num = 0;
    *out = (ms_stacks_answer){0};
    MS_TRY(ms_stacks_check_request(r, sizes));
    MS_TRY(ms_stacks_list(cx, r->plan->of[MS_CHOOSE_STACK].text, &names, &num));
    out->searches = MS_NEW_ARRAY(cx->arena, num + 1, ms_stack_search);
    out->num_searches = num + 1;
    ms_stacks_report *report = &out->report;
    report->num_stacks = num;
    report->stacks = MS_NEW_ARRAY(cx->arena, num, ms_stack_best);
    MS_TRY(open_stacks(r, names, num, out->searches));
    r->space = &out->searches[0].space;
    MS_TRY(tell_ready(r, num, out->searches));
    MS_TRY(search_each(cx, out->searches, report));
    out->is_complete = true;
    return ms_stacks_judge(cx, report);
}

void ms_stacks_answer_close(ms_stacks_answer *search)
{
    for (int i = 0; i < search->num_searches; i++)
        if (search->searches[i].workload != NULL)
            ms_workload_close(search->searches[i].workload);
}
