#include "cli/report/objective_report.h"

#include "base/print.h"
#include "base/table.h"
#include "sim/planning/campaign_text.h"
#include "sim/step/prediction_text.h"

#include <math.h>

static bool has_campaign(const ms_objective_job *job)
{
    return job->best.found && job->best.has_campaign;
}

/* The answered job whose campaign ends first; NULL if none has a plan. */
static const ms_objective_job *soonest(const ms_objective_answer *answer)
{
    const ms_objective_job *first = NULL;
    for (int i = 0; i < answer->num_jobs; i++) {
        const ms_objective_job *job = &answer->jobs[i];
        if (has_campaign(job) &&
            (first == NULL || job->best.campaign.campaign.elapsed_s <
                                  first->best.campaign.campaign.elapsed_s))
            first = job;
    }
    return first;
}

static const char *limit_broken(ms_arena *arena, const ms_campaign_answer *a)
{
    const ms_campaign *c = &a->campaign;
    if (!ms_campaign_advances(c))
        return "does not advance";
    if (c->elapsed_s > a->deadline_s)
        return ms_arena_printf(arena, "late by %s",
                               ms_long_time_text(arena, c->elapsed_s - a->deadline_s));
    if (c->cost > a->budget)
        return ms_arena_printf(arena, "over budget by %s",
                               ms_large_text(arena, c->cost - a->budget, ""));
    return NULL;
}

const char *ms_objective_reason(ms_arena *arena, const ms_objective_answer *answer)
{
    if (answer->best >= 0)
        return NULL;
    const ms_objective_job *first = soonest(answer);
    if (first == NULL)
        return "no plan fits on any of these numbers of GPUs";
    const ms_campaign_answer *a = &first->best.campaign;
    return ms_arena_printf(
        arena, "no plan keeps the limits: the fastest training, on %ld GPUs, takes %s%s",
        first->best.plan.gpus, ms_long_time_text(arena, a->campaign.elapsed_s),
        isnan(a->campaign.cost)
            ? ""
            : ms_arena_printf(arena, " and costs %s",
                              ms_large_text(arena, a->campaign.cost, "")));
}

static const char *remark(ms_arena *arena, const ms_objective_answer *answer, int index)
{
    const ms_objective_job *job = &answer->jobs[index];
    if (!job->answered)
        return "not searched";
    if (!job->best.found)
        return ms_arena_printf(arena, "none: %s", job->best.reason);
    if (index == answer->best)
        return "best";
    const char *broken =
        job->best.has_campaign ? limit_broken(arena, &job->best.campaign) : NULL;
    return broken != NULL ? broken : "";
}

static void print_jobs(FILE *out, ms_arena *arena, const ms_objective_answer *answer)
{
    ms_table *table = MS_TABLE(arena, "rrrrrrrrL", "GPUs", "step (s)", "tokens/s", "days",
                               "GPU-hours", "cost", "MWh", "need (GiB)", "");
    for (int i = 0; i < answer->num_jobs; i++) {
        const ms_objective_job *job = &answer->jobs[i];
        const ms_prediction *p = &job->best.prediction;
        const ms_campaign *c = &job->best.campaign.campaign;
        bool found = job->best.found, campaign = has_campaign(job);
        double none = (double)NAN;
        ms_table_cell(table, "%ld", job->gpus);
        ms_table_cells(table, "%.3f\t%.0f\t%.1f", found ? p->step_s : none,
                       found ? p->tokens_per_s : none,
                       campaign ? c->elapsed_s / MS_DAY_S : none);
        ms_table_cell(table, "%s",
                      campaign ? ms_large_text(arena, c->gpu_hours, "") : "-");
        ms_table_cell(table, "%s",
                      campaign && !isnan(c->cost) ? ms_large_text(arena, c->cost, "")
                                                  : "-");
        ms_table_cells(table, "%.4g\t%.1f", campaign ? c->energy_kwh / 1e3 : none,
                       found ? ms_gib(job->best.needed_bytes) : none);
        ms_table_cell(table, "%s", remark(arena, answer, i));
    }
    ms_table_print(table, out);
}

void ms_objective_print(FILE *out, ms_arena *arena, const ms_objective_answer *answer)
{
    const char *name = ms_objective_names[answer->objective];
    const char *reason = ms_objective_reason(arena, answer);
    if (reason != NULL)
        ms_print(out, "least %-7s %s\n\n", name, reason);
    else
        ms_print(out, "least %-7s %ld GPUs%s\n\n", name, answer->jobs[answer->best].gpus,
                 answer->optimal ? ", proven: no plan on any of these numbers is better"
                                 : "; not proven");
    print_jobs(out, arena, answer);
    fputc('\n', out);
}

static void write_job(ms_jout *out, const ms_objective_job *job)
{
    const ms_best_plan *best = &job->best;
    const ms_campaign *c = &best->campaign.campaign;
    double none = (double)NAN;
    bool campaign = has_campaign(job);
    ms_jout_begin_object(out);
    ms_jout_number_field(out, "gpus", (double)job->gpus);
    ms_jout_bool_field(out, "found", best->found);
    ms_jout_text_field(out, "reason", job->answered ? best->reason : "not searched");
    ms_jout_bool_field(out, "keeps_limits", job->keeps_limits);
    ms_jout_number_field(out, "value", job->value);
    ms_jout_number_field(out, "step_s", best->found ? best->prediction.step_s : none);
    ms_jout_number_field(out, "tokens_per_s",
                         best->found ? best->prediction.tokens_per_s : none);
    ms_jout_number_field(out, "needed_bytes", best->found ? best->needed_bytes : none);
    ms_jout_number_field(out, "elapsed_s", campaign ? c->elapsed_s : none);
    ms_jout_number_field(out, "gpu_hours", campaign ? c->gpu_hours : none);
    ms_jout_number_field(out, "cost", campaign ? c->cost : none);
    ms_jout_number_field(out, "energy_kwh", campaign ? c->energy_kwh : none);
    ms_jout_number_field(out, "goodput_frac", campaign ? c->goodput_frac : none);
    ms_jout_end_object(out);
}

void ms_objective_write_field(ms_jout *out, const ms_objective_answer *answer)
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
        write_job(out, &answer->jobs[i]);
    ms_jout_end_array(out);
    ms_jout_end_object(out);
}
