#include "sim/planning/objective_text.h"

#include "sim/planning/campaign_text.h"

#include <math.h>

static bool has_campaign(const ms_objective_job *job)
{
    return job->best.found && job->best.has_campaign;
}

/* The found job with the least of a figure of its campaign; NULL: of none it is known. */
static const ms_objective_job *least_of(const ms_objective_answer *answer,
                                        double (*figure)(const ms_campaign *c))
{
    const ms_objective_job *first = NULL;
    for (int i = 0; i < answer->num_jobs; i++) {
        const ms_objective_job *job = &answer->jobs[i];
        if (!has_campaign(job) || isnan(figure(&job->best.campaign.campaign)))
            continue;
        if (first == NULL ||
            figure(&job->best.campaign.campaign) < figure(&first->best.campaign.campaign))
            first = job;
    }
    return first;
}

static double time_of(const ms_campaign *c)
{
    return c->elapsed_s;
}

static double cost_of(const ms_campaign *c)
{
    return c->cost;
}

/* "the fastest training, on 512 GPUs, takes 2.4 days and costs 59.43k" */
static const char *job_text(ms_arena *arena, const char *which,
                            const ms_objective_job *job)
{
    const ms_campaign *c = &job->best.campaign.campaign;
    return ms_arena_printf(
        arena, "the %s training, on %ld GPUs, takes %s%s", which, job->best.plan.gpus,
        ms_long_time_text(arena, c->elapsed_s),
        isnan(c->cost)
            ? ""
            : ms_arena_printf(arena, " and costs %s", ms_large_text(arena, c->cost, "")));
}

/* Says of the job that needs the least memory how far it is from fitting. */
static const char *unfit_text(ms_arena *arena, const ms_objective_answer *answer)
{
    const ms_objective_job *nearest = NULL;
    for (int i = 0; i < answer->num_jobs; i++) {
        const ms_objective_job *job = &answer->jobs[i];
        if (job->best.too_large &&
            (nearest == NULL || job->best.needed_bytes < nearest->best.needed_bytes))
            nearest = job;
    }
    const char *begin = "no plan fits on any of these numbers of GPUs";
    return nearest == NULL ? begin
                           : ms_arena_printf(arena, "%s: on %ld a device %s", begin,
                                             nearest->gpus, nearest->best.reason);
}

const char *ms_objective_reason(ms_arena *arena, const ms_objective_answer *answer)
{
    if (answer->best >= 0)
        return NULL;
    const ms_best_plan *stuck = ms_objective_stuck(answer);
    if (stuck != NULL && stuck->has_campaign)
        return ms_no_progress_text(arena, &stuck->campaign);
    const ms_objective_job *first = least_of(answer, time_of),
                           *cheapest = least_of(answer, cost_of);
    if (first == NULL)
        return unfit_text(arena, answer);
    const char *text = ms_arena_printf(arena, "no plan keeps the limits: %s",
                                       job_text(arena, "fastest", first));
    if (isnan(first->best.campaign.budget) || cheapest == NULL || cheapest == first)
        return text;
    return ms_arena_printf(arena, "%s; %s", text, job_text(arena, "cheapest", cheapest));
}

static void write_job(ms_jout *out, ms_arena *arena, const ms_objective_job *job)
{
    const ms_best_plan *best = &job->best;
    const ms_campaign *c = &best->campaign.campaign;
    double none = (double)NAN;
    bool campaign = has_campaign(job);
    const char *broken = campaign ? ms_broken_limit_text(arena, &best->campaign) : NULL;
    ms_jout_begin_object(out);
    ms_jout_number_field(out, "gpus", (double)job->gpus);
    ms_jout_number_field(out, "global_batch", (double)job->global_batch);
    ms_jout_bool_field(out, "found", best->found);
    ms_jout_text_field(out, "reason", job->answered ? best->reason : "not searched");
    ms_jout_bool_field(out, "keeps_limits", job->keeps_limits);
    ms_jout_text_field(out, "broken_limit", broken);
    ms_jout_number_field(out, "value", job->value);
    ms_jout_number_field(out, "step_s", best->found ? best->prediction.step_s : none);
    ms_jout_number_field(out, "tokens_per_s",
                         best->found ? best->prediction.tokens_per_s : none);
    ms_jout_number_field(out, "mfu_frac", best->found ? best->prediction.mfu_frac : none);
    ms_jout_number_field(out, "peak_bytes",
                         best->found ? best->prediction.peak_bytes : none);
    ms_jout_number_field(out, "needed_bytes", best->found ? best->needed_bytes : none);
    ms_jout_number_field(out, "elapsed_s", campaign ? c->elapsed_s : none);
    ms_jout_number_field(out, "gpu_hours", campaign ? c->gpu_hours : none);
    ms_jout_number_field(out, "cost", campaign ? c->cost : none);
    ms_jout_number_field(out, "energy_kwh", campaign ? c->energy_kwh : none);
    ms_jout_number_field(out, "goodput_frac", campaign ? c->goodput_frac : none);
    ms_jout_end_object(out);
}

void ms_objective_write_field(ms_jout *out, ms_arena *arena,
                              const ms_objective_answer *answer)
{
    double none = (double)NAN;
    bool found = answer->best >= 0;
    ms_jout_begin_object_field(out, "objective");
    ms_jout_text_field(out, "name", ms_objective_names[answer->objective]);
    ms_jout_text_field(out, "unit", ms_objective_unit(answer->objective));
    ms_jout_number_field(out, "gpus",
                         found ? (double)answer->jobs[answer->best].gpus : none);
    ms_jout_begin_object_field(out, "certificate");
    ms_jout_bool_field(out, "optimal", answer->optimal);
    ms_jout_number_field(out, "best", found ? answer->jobs[answer->best].value : none);
    ms_jout_number_field(out, "smallest_open_bound", answer->optimal ? none : 0.0);
    ms_jout_end_object(out);
    ms_jout_begin_array_field(out, "jobs");
    for (int i = 0; i < answer->num_jobs; i++)
        write_job(out, arena, &answer->jobs[i]);
    ms_jout_end_array(out);
    ms_jout_end_object(out);
}
