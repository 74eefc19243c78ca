#include "cli/report/objective_report.h"

#include "base/print.h"
#include "base/table.h"
#include "sim/planning/campaign_text.h"
#include "sim/planning/objective_text.h"
#include "sim/step/prediction_text.h"

#include <math.h>

static bool advances(const ms_objective_job *job)
{
    return job->best.found && job->best.has_campaign &&
           ms_campaign_advances(&job->best.campaign.campaign);
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
        job->best.has_campaign ? ms_broken_limit_text(arena, &job->best.campaign) : NULL;
    return broken != NULL ? broken : "";
}

static void print_jobs(FILE *out, ms_arena *arena, const ms_objective_answer *answer)
{
    ms_table *table =
        MS_TABLE(arena, "rr1r2r1r2rr3r2r1L", "GPUs", "step (s)", "tokens/s", "days",
                 "GPU-hours", "cost", "MWh", "goodput (%)", "need (GiB)", "choice");
    for (int i = 0; i < answer->num_jobs; i++) {
        const ms_objective_job *job = &answer->jobs[i];
        const ms_prediction *p = &job->best.prediction;
        const ms_campaign *c = &job->best.campaign.campaign;
        bool found = job->best.found, campaign = advances(job);
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
        ms_table_cells(table, "%.4g\t%.1f\t%.1f", campaign ? c->energy_kwh / 1e3 : none,
                       campaign ? 100.0 * c->goodput_frac : none,
                       found ? ms_gib(job->best.needed_bytes) : none);
        ms_table_cell(table, "%s", remark(arena, answer, i));
    }
    ms_table_print(table, out);
}

void ms_objective_print(FILE *out, ms_arena *arena, const ms_objective_answer *answer)
{
    static const char *const words[MS_NUM_OBJECTIVES] = {
        [MS_OBJECTIVE_TIME] = "least time",     [MS_OBJECTIVE_COST] = "least cost",
        [MS_OBJECTIVE_GPUS] = "fewest GPUs",    [MS_OBJECTIVE_ENERGY] = "least energy",
        [MS_OBJECTIVE_MEMORY] = "least memory", [MS_OBJECTIVE_GOODPUT] = "least time"};
    const char *reason = ms_objective_reason(arena, answer);
    if (reason != NULL) {
        ms_print(out, "%-12s  %s\n\n", words[answer->objective], reason);
    } else {
        ms_print(out, "%-12s  %ld GPUs%s%s\n\n", words[answer->objective],
                 answer->jobs[answer->best].gpus,
                 answer->objective == MS_OBJECTIVE_GOODPUT ? ", all losses included" : "",
                 answer->optimal ? ", proven: no plan on any of these numbers is better"
                                 : "; not proven");
    }
    print_jobs(out, arena, answer);
    fputc('\n', out);
    if (reason == NULL)
        fputs("each row is the fastest plan of its size; below are the plans of the size "
              "taken, of\ntied ones the simplest first\n\n",
              out);
}
