#include "sim/planning/objective.h"

#include <math.h>

typedef struct objective_row {
    const char *unit;
    bool needs_campaign;
    double (*value)(const ms_objective_job *job);
} objective_row;

static double time_of(const ms_objective_job *job)
{
    return 1.0 / job->best.prediction.useful_tokens_per_s;
}

static double cost_of(const ms_objective_job *job)
{
    return job->best.campaign.campaign.cost;
}

static double gpus_of(const ms_objective_job *job)
{
    return (double)job->best.plan.gpus;
}

static double energy_of(const ms_objective_job *job)
{
    return job->best.campaign.campaign.energy_kwh;
}

static double memory_of(const ms_objective_job *job)
{
    return job->best.needed_bytes;
}

static double elapsed_of(const ms_objective_job *job)
{
    const ms_campaign_answer *a = &job->best.campaign;
    return a->campaign.elapsed_s / (a->campaign.num_steps * a->step.tokens);
}

const char *const ms_objective_names[] = {"time",   "cost",    "gpus", "energy",
                                          "memory", "goodput", NULL};

static const objective_row rows[MS_NUM_OBJECTIVES] = {
    [MS_OBJECTIVE_TIME] = {"s per token", false, time_of},
    [MS_OBJECTIVE_COST] = {"currency of --price", true, cost_of},
    [MS_OBJECTIVE_GPUS] = {"GPUs", false, gpus_of},
    [MS_OBJECTIVE_ENERGY] = {"kWh", true, energy_of},
    [MS_OBJECTIVE_MEMORY] = {"bytes", false, memory_of},
    [MS_OBJECTIVE_GOODPUT] = {"s per token", true, elapsed_of}};

const char *ms_objective_unit(ms_objective objective)
{
    return rows[objective].unit;
}

bool ms_objective_needs_campaign(ms_objective objective)
{
    return rows[objective].needs_campaign;
}

/* Whether job `a` is to be taken rather than `b`: by value, then by time. */
static bool is_better(const ms_objective_job *a, const ms_objective_job *b)
{
    if (a->value != b->value)
        return a->value < b->value;
    return time_of(a) < time_of(b);
}

static void judge(ms_objective_answer *answer)
{
    answer->best = -1;
    answer->optimal = true;
    for (int i = 0; i < answer->num_jobs; i++) {
        ms_objective_job *job = &answer->jobs[i];
        answer->optimal = answer->optimal && job->answered &&
                          (job->best.optimal || job->best.reason != NULL);
        job->value = job->best.found ? rows[answer->objective].value(job) : (double)NAN;
        job->keeps_limits = ms_best_plan_keeps_limits(&job->best);
        if (job->keeps_limits && !isnan(job->value) &&
            (answer->best < 0 || is_better(job, &answer->jobs[answer->best])))
            answer->best = i;
    }
}

static ms_status note_answered(void *payload, int index, const ms_best_plan *best)
{
    ms_objective_job *job = &((ms_objective_job *)payload)[index];
    job->answered = true;
    job->best = *best;
    return MS_OK;
}

static ms_status find_fastest(ms_ctx *cx, const ms_objective_question *question,
                              ms_objective_job *jobs)
{
    ms_best_batch batch = {.num = question->num_jobs,
                           .questions = question->jobs,
                           .num_threads = question->num_threads,
                           .interrupted = question->interrupted,
                           .answered = note_answered,
                           .payload = jobs};
    int num_answered;
    return ms_best_batch_answer(cx, &batch,
                                MS_NEW_ARRAY(cx->arena, question->num_jobs, ms_best_plan),
                                &num_answered);
}

static ms_status find_least_memory(ms_ctx *cx, const ms_objective_question *question,
                                   ms_objective_job *jobs)
{
    ms_search_options options = {.num_threads = question->num_threads,
                                 .interrupted = question->interrupted};
    for (int i = 0; i < question->num_jobs; i++) {
        ms_best_plan best;
        MS_TRY(ms_least_memory_find(cx, &question->jobs[i], &options, &best));
        note_answered(jobs, i, &best);
    }
    return MS_OK;
}

ms_status ms_objective_find(ms_ctx *cx, const ms_objective_question *question,
                            ms_objective_answer *out)
{
    *out = (ms_objective_answer){
        .objective = question->objective,
        .num_jobs = question->num_jobs,
        .jobs = MS_NEW_ARRAY(cx->arena, question->num_jobs, ms_objective_job)};
    for (int i = 0; i < out->num_jobs; i++) {
        const ms_plan *base = &question->jobs[i].base;
        out->jobs[i].gpus = base->gpus;
        out->jobs[i].global_batch = base->global_batch;
    }
    ms_status status = question->objective == MS_OBJECTIVE_MEMORY
                           ? find_least_memory(cx, question, out->jobs)
                           : find_fastest(cx, question, out->jobs);
    judge(out);
    return status;
}

const ms_best_plan *ms_objective_stuck(const ms_objective_answer *answer)
{
    const ms_best_plan *stuck = NULL;
    for (int i = answer->num_jobs - 1; i >= 0; i--) {
        const ms_best_plan *best = &answer->jobs[i].best;
        if (best->found && ms_best_plans_stuck(best, 1) == NULL)
            return NULL;
        stuck = best->found ? best : stuck;
    }
    return stuck;
}
