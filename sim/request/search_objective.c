#include "sim/request/search_objective.h"

#include "base/note.h"
#include "sim/request/plan_flags.h"

#include <string.h>

ms_status ms_search_read_sizes(ms_ctx *cx, const char *gpus, ms_plan_options *plan,
                               ms_sizes *out)
{
    *out = (ms_sizes){0};
    if (gpus == NULL)
        return MS_OK;
    MS_TRY(ms_sizes_parse(cx, "--gpus", gpus, MS_MAX_GPUS, out));
    ms_plan_give(plan, MS_CHOOSE_GPUS, out->sizes[0]);
    return MS_OK;
}

bool ms_search_asks_objective(const ms_search_request *r, const ms_sizes *sizes)
{
    const ms_campaign_options *c = r->campaign;
    return r->search->objective.given || sizes->num > 1 || c->deadline_s.given ||
           c->budget.given;
}

static ms_status check(const ms_search_request *r, const ms_sizes *sizes)
{
    ms_ctx *cx = r->cx;
    const ms_search_flags *flags = r->search;
    if (ms_objective_needs_campaign((ms_objective)flags->objective.value) &&
        !r->asks_campaign) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                "--objective %s is about a whole training, and its length is not given",
                flags->objective.text);
        return ms_hint(cx, "add --tokens 15T, --chinchilla or --flop 3.8e25");
    }
    if (sizes->num > 1 && r->plan->plan_file != NULL &&
        strcmp(r->plan->plan_file, "-") == 0) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                "a plan from standard input is for one number of GPUs");
        return ms_hint(cx, "give it as a file");
    }
    return MS_OK;
}

/* The job on one number of GPUs, with the space that the options leave. */
static ms_status make_job(const ms_search_request *r, long gpus,
                          const ms_plan_limits *limits,
                          const ms_campaign_question *campaign, ms_best_question *out)
{
    ms_ctx *cx = r->cx;
    ms_search_request of_size = *r;
    ms_plan_options options = *r->plan;
    ms_space *space = MS_NEW(cx->arena, ms_space);
    of_size.plan = &options;
    of_size.space = space;
    if (gpus > 0)
        ms_plan_give(&options, MS_CHOOSE_GPUS, gpus);
    *out = (ms_best_question){.limits = limits, .space = space, .campaign = campaign};
    MS_TRY(ms_plan_base_from_options(cx, &options, &out->base));
    ms_workload *workload;
    MS_TRY(ms_workload_open(cx, &out->base, &workload));
    ms_status status = ms_memory_options_check(cx, &limits->memory, workload->cluster);
    *space = ms_space_all(&out->base, workload->stack);
    if (status == MS_OK)
        status = ms_search_request_space(&of_size);
    /* unknown price: no number of GPUs would have a cost */
    ms_campaign_terms terms = campaign != NULL
                                  ? ms_campaign_terms_of(campaign, workload, 1.0)
                                  : ms_campaign_question_empty().given;
    ms_workload_close(workload);
    if (status == MS_OK && r->search->objective.value == MS_OBJECTIVE_COST &&
        !(terms.gpu_hour_price > 0.0)) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "--objective cost needs a price of GPUs");
        return ms_hint(cx, "add --price 2.5");
    }
    return status;
}

static ms_status make_jobs(const ms_search_request *r, const ms_sizes *sizes,
                           ms_objective_question *question)
{
    ms_ctx *cx = r->cx;
    ms_plan_limits *limits = MS_NEW(cx->arena, ms_plan_limits);
    MS_TRY(ms_memory_options_rule(cx, r->memory, &limits->memory));
    ms_campaign_question *campaign = NULL;
    if (r->asks_campaign) {
        campaign = MS_NEW(cx->arena, ms_campaign_question);
        *campaign = ms_campaign_options_question(r->campaign);
    }
    int num = sizes->num > 0 ? sizes->num : 1;
    ms_best_question *jobs = MS_NEW_ARRAY(cx->arena, num, ms_best_question);
    int verbosity = cx->verbosity;
    ms_status status = MS_OK;
    for (int i = 0; i < num && status == MS_OK; i++) {
        cx->verbosity = -1; /* the search of the chosen number prints its notes */
        status =
            make_job(r, sizes->num > 0 ? sizes->sizes[i] : 0, limits, campaign, &jobs[i]);
    }
    cx->verbosity = verbosity;
    question->num_jobs = num;
    question->jobs = jobs;
    return status;
}

ms_status ms_search_by_objective(const ms_search_request *r, const ms_sizes *sizes,
                                 ms_objective_answer *out)
{
    *out = (ms_objective_answer){.best = -1};
    MS_TRY(check(r, sizes));
    if (!r->search->objective.given)
        ms_note_default(r->cx, "--objective time");
    ms_objective_question question = {.objective =
                                          (ms_objective)r->search->objective.value,
                                      .num_threads = ms_ctx_threads(r->cx),
                                      .interrupted = r->cx->interrupted};
    MS_TRY(make_jobs(r, sizes, &question));
    return ms_objective_find(r->cx, &question, out);
}
