#include "cli/report/campaign_report.h"

#include "base/print.h"
#include "sim/planning/campaign_text.h"

#include <math.h>

static void print_time(FILE *out, ms_arena *arena, const ms_campaign_answer *a)
{
    const ms_campaign *c = &a->campaign;
    ms_print(out, "training      %s for %s tokens in %.0f steps\n",
             ms_long_time_text(arena, c->elapsed_s),
             ms_large_text(arena, a->terms.tokens, ""), c->num_steps);
    if (!isnan(c->elapsed_low_s)) {
        ms_print(out,
                 "              90 %% interval %s to %s, by that of the step; GPU-hours, "
                 "cost and energy %+.0f %% to %+.0f %% likewise\n",
                 ms_long_time_text(arena, c->elapsed_low_s),
                 ms_long_time_text(arena, c->elapsed_high_s),
                 100.0 * (c->elapsed_low_s / c->elapsed_s - 1.0),
                 100.0 * (c->elapsed_high_s / c->elapsed_s - 1.0));
    }
    ms_print(out,
             "goodput       %.1f %%: interrupted every %s, %.0f times; %s until the next "
             "step\n",
             100.0 * c->goodput_frac, ms_long_time_text(arena, c->job.mean_s),
             c->num_interruptions, ms_long_time_text(arena, c->job.restart_s));
    ms_print(
        out, "checkpoints   every %.0f steps (%s); %.4g GB each, stopping the job %s\n",
        c->interval_steps, ms_long_time_text(arena, c->interval_steps * a->step.step_s),
        a->step.checkpoint_bytes / 1e9, ms_long_time_text(arena, c->job.checkpoint_s));
    if (a->simulated)
        ms_print(out, "simulated     %s, goodput %.1f %%, interrupted %ld times\n",
                 ms_long_time_text(arena, a->failures.elapsed_s),
                 100.0 * a->failures.goodput_frac, a->failures.num_interruptions);
}

static void print_energy(FILE *out, ms_arena *arena, const ms_campaign *c)
{
    const char *co2 = isnan(c->co2_kg)
                          ? ""
                          : ms_arena_printf(arena, ", %.0f t of CO2", c->co2_kg / 1e3);
    ms_print(out, "energy        %sWh%s\n",
             ms_large_text(arena, 1e3 * c->energy_kwh, " "), co2);
}

static void print_resources(FILE *out, ms_arena *arena, const ms_campaign *c)
{
    const char *cost =
        isnan(c->cost)
            ? ""
            : ms_arena_printf(arena, ", cost %s", ms_large_text(arena, c->cost, ""));
    ms_print(out, "GPU-hours     %s%s\n", ms_large_text(arena, c->gpu_hours, ""), cost);
    if (c->spare_nodes >= 0.0)
        ms_print(out,
                 "spare nodes   %.0f, counted in GPU-hours: enough 95 %% of the time\n",
                 c->spare_nodes);
    if (!isnan(c->energy_kwh))
        print_energy(out, arena, c);
}

/* "deadline      60 days: exceeded by 3 days" */
static void print_limits(FILE *out, ms_arena *arena, const ms_campaign_answer *a)
{
    const char *deadline = ms_deadline_text(arena, a), *budget = ms_budget_text(arena, a);
    if (deadline != NULL)
        ms_print(out, "deadline      %s: %s\n", ms_long_time_text(arena, a->deadline_s),
                 deadline);
    if (budget != NULL)
        ms_print(out, "budget        %s: %s\n", ms_large_text(arena, a->budget, ""),
                 budget);
}

void ms_campaign_print(FILE *out, ms_arena *arena, const ms_campaign_answer *answer)
{
    fputc('\n', out);
    print_time(out, arena, answer);
    print_resources(out, arena, &answer->campaign);
    print_limits(out, arena, answer);
}
