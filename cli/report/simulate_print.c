/* Text of a simulation; percentages are of the step time. */
#include "cli/report/simulate_report.h"

#include "base/print.h"
#include "base/table.h"
#include "sim/simulate/simulated_timeline.h"
#include "sim/step/prediction_text.h"

#include <math.h>

#define MAX_LINKS 5 /* busiest links listed */

static double percent(double of, double to)
{
    return 100.0 * (of / to - 1.0);
}

static const char *slow_text(ms_arena *arena, const ms_simulate_options *options)
{
    const char *text = "";
    for (int i = 0; i < options->num_slow; i++) {
        const ms_slowdown *part = &options->slow[i];
        const char *name =
            part->is_link ? part->link : ms_arena_printf(arena, "rank %ld", part->rank);
        text = ms_arena_printf(arena, "%s%s%s takes %.4g times as long", text,
                               text[0] == '\0' ? "" : ", ", name, part->factor);
    }
    if (options->jitter_frac > 0.0)
        text = ms_arena_printf(arena, "%s%sdurations vary by %.3g %% (seed %lu)", text,
                               text[0] == '\0' ? "" : ", ", 100.0 * options->jitter_frac,
                               options->seed);
    return text;
}

static const char *sharing_text(const ms_simulation *s)
{
    if (s->options.engine == MS_ENGINE_REPLAY)
        return "longest path, nothing is shared";
    if (s->options.unshared)
        return "nothing is shared";
    if (s->graph->num_links == 0 && s->graph->num_pools == 0)
        return "its tasks carry no load on links or SMs that could be shared";
    return s->num_rate_changes > 0 ? "links, SMs and HBM are shared"
                                   : "links, SMs and HBM are shared; none was contended";
}

static void print_engine(FILE *out, const ms_simulation *s)
{
    const ms_simulate_options *options = &s->options;
    ms_print(out, "engine   %s: %s; a task is %s; %s%s\n",
             ms_engine_names[options->engine], sharing_text(s),
             options->detail == MS_DETAIL_ACTION ? "an action of the schedule"
                                                 : "a node of a layer's program",
             options->rendezvous ? "sends wait for their receiver" : "eager sends",
             options->first_step ? "; the first step after initialisation" : "");
}

static void print_sync(FILE *out, const ms_simulate_report *r)
{
    static const char *const waits[] = {
        [MS_SYNC_GLOBAL] = "for the norm of all gradients",
        [MS_SYNC_POST_VALIDATION] =
            "for its own gradients only; the step is the longest span of a rank",
    };
    ms_optimizer_sync sync = r->simulation->optimizer_sync;
    ms_print(out, "update   %s: a rank waits %s%s\n", ms_optimizer_sync_names[sync],
             waits[sync], r->own_sync ? " (--optimizer-sync)" : "");
}

static void print_inputs(FILE *out, ms_arena *arena, const ms_simulate_report *r)
{
    const ms_simulation *s = r->simulation;
    const char *slow = slow_text(arena, &s->options);
    ms_print(out, "%s\n", ms_plan_inputs_text(arena, r->plan, r->prediction->unit));
    ms_print(out, "plan     %s\n", ms_plan_text(arena, r->plan));
    for (int i = 0; i < r->broken.num; i++)
        ms_print(out, "ignored  rule %s: %s\n", r->broken.rules[i]->name,
                 r->broken.rules[i]->says);
    print_engine(out, s);
    print_sync(out, r);
    ms_print(out, "ranks    %d of %ld simulated%s\n", s->num_actors, s->fold.num_ranks,
             s->num_actors < s->fold.num_ranks ? ", each for all that behave like it"
                                               : "");
    if (slow[0] != '\0')
        ms_print(out, "slow     %s\n", slow);
}

static void print_steady(FILE *out, const ms_simulate_report *r)
{
    const ms_simulation *s = r->simulation, *steady = r->steady;
    if (steady == NULL)
        return;
    ms_print(
        out,
        "first step    %+.2f %% against the %.*f s of later steps; peak memory %+.2f GiB "
        "against their %.2f GiB\n",
        percent(s->step_s, steady->step_s), ms_decimals(s->step_s), steady->step_s,
        ms_gib(ms_most_actor(s)->peak_bytes - ms_most_actor(steady)->peak_bytes),
        ms_gib(ms_most_actor(steady)->peak_bytes));
}

static void print_memory_line(FILE *out, ms_arena *arena, const ms_simulate_report *r)
{
    const ms_simulation *s = r->simulation;
    const ms_actor *worst = ms_most_actor(s);
    double free_bytes = ms_prediction_free_bytes(r->prediction, worst->peak_bytes);
    ms_print(out, "peak memory   %.2f GiB%s of %.2f GiB on rank %ld: ",
             ms_gib(worst->peak_bytes), ms_outside_text(arena, r->prediction),
             ms_gib(r->prediction->capacity_bytes), worst->rank);
    if (r->shortfall == NULL)
        ms_print(out, "%.2f GiB free\n", ms_gib(free_bytes));
    else
        ms_print(out, "DOES NOT FIT, %.2f GiB short\n", ms_gib(-free_bytes));
}

static void print_summary(FILE *out, ms_arena *arena, const ms_simulate_report *r)
{
    const ms_simulation *s = r->simulation;
    int decimals = ms_decimals(s->step_s);
    double tokens = ms_prediction_tokens(r->plan, r->prediction);
    ms_print(out,
             "\nstep time     %.*f s: %+.2f %% against the %.*f s that predict's replay "
             "gives\n",
             decimals, s->step_s, percent(s->step_s, s->predicted_step_s), decimals,
             s->predicted_step_s);
    if (r->undisturbed != NULL)
        ms_print(out, "slowdowns     %+.2f %%: without them the step takes %.*f s\n",
                 percent(s->step_s, r->undisturbed->step_s), decimals,
                 r->undisturbed->step_s);
    print_steady(out, r);
    ms_print(out, "tokens/s      %.*f\n", ms_decimals(tokens / s->step_s),
             tokens / s->step_s);
    ms_print(out, "tasks         %d, %ld events, %ld changes of rates\n",
             s->graph->num_tasks, s->num_events, s->num_rate_changes);
    print_memory_line(out, arena, r);
}

/* ---- tables of ranks ---- */

static void rank_cells(ms_table *table, const ms_actor *actor)
{
    ms_table_cells(table, "%ld\t%d", actor->rank, actor->pipeline_rank);
}

static const char *remark(ms_arena *arena, const ms_simulation *s, int actor)
{
    double factor = s->actors[actor].slow_factor;
    const char *last = actor == s->last_actor ? "ends last" : "";
    if (factor == 1.0)
        return last;
    return ms_arena_printf(arena, "%.4g times as slow%s%s", factor,
                           last[0] == '\0' ? "" : ", ", last);
}

static void print_times(FILE *out, ms_arena *arena, const ms_simulate_report *r)
{
    const ms_simulation *s = r->simulation;
    int decimals = ms_decimals(s->step_s);
    ms_table *table =
        MS_TABLE(arena, "rrr1rrrrrrL", "rank", "pp", "stands for", "compute",
                 "exposed comm", "bubble", "optimizer", "host", "ends", "");
    for (int i = 0; i < r->num_actors; i++) {
        const ms_actor *actor = &s->actors[r->actors[i]];
        const double seconds[] = {actor->compute_s, actor->exposed_comm_s,
                                  actor->bubble_s,  actor->optimizer_s,
                                  actor->host_s,    actor->end_s};
        rank_cells(table, actor);
        ms_table_cell(table, "%ld", actor->multiplicity);
        for (int k = 0; k < 6; k++)
            ms_table_cell(table, "%.*f", decimals, seconds[k]);
        ms_table_cell(table, "%s", remark(arena, s, r->actors[i]));
    }
    fputs("\nwhere the step goes (s)\n", out);
    ms_table_print(table, out);
}

static void memory_row(ms_table *table, ms_arena *arena, const ms_simulation *s,
                       const ms_actor *actor)
{
    const ms_memory_sample *peak = &actor->samples[actor->peak_sample];
    rank_cells(table, actor);
    ms_table_cells(table, "%.2f\t%.1f\t%s", ms_gib(actor->peak_bytes), 1e3 * peak->time_s,
                   actor->peak_task == 0 ? ""
                                         : ms_task_phrase(arena, s, actor->peak_task));
    for (int part = MS_MEMORY_PARAMS; part <= MS_MEMORY_GATHERED_PARAMS; part++)
        ms_table_cell(table, "%.2f", ms_gib(peak->bytes[part]));
    ms_table_cell(table, "%.2f",
                  ms_gib(peak->bytes[MS_MEMORY_COMM_BUFFERS] +
                         peak->bytes[MS_MEMORY_CONTEXT] +
                         peak->bytes[MS_MEMORY_FRAGMENTATION]));
}

static void print_memory(FILE *out, ms_arena *arena, const ms_simulate_report *r)
{
    ms_table *table = MS_TABLE(arena, "rrrrl2rrrrrrr1", "rank", "pp", "peak", "at (ms)",
                               "during", "params", "grads", "optimizer", "activations",
                               "logits", "gathered", "other");
    bool any = false;
    for (int i = 0; i < r->num_actors; i++) {
        const ms_actor *actor = &r->simulation->actors[r->actors[i]];
        if (actor->num_samples == 0)
            continue;
        memory_row(table, arena, r->simulation, actor);
        any = true;
    }
    if (!any)
        return;
    fputs("\nmemory at the peak (GiB); other: communication buffers, context, "
          "fragmentation\n",
          out);
    ms_table_print(table, out);
}

static void print_links(FILE *out, ms_arena *arena, const ms_simulation *s)
{
    ms_link_busy *busy;
    int num_used = ms_links_busy(arena, s, &busy);
    if (num_used == 0)
        return;
    ms_table *table =
        MS_TABLE(arena, "lrr", "busiest links", "use over the step (%)", "at most (%)");
    for (int i = 0; i < num_used && i < MAX_LINKS; i++) {
        ms_table_cells(table, "%s\t%.1f\t%.1f", s->graph->link_names[busy[i].link],
                       100.0 * busy[i].used_frac, 100.0 * busy[i].most_frac);
    }
    fputc('\n', out);
    ms_table_print(table, out);
}

void ms_simulate_print(FILE *out, ms_arena *arena, const ms_simulate_report *report)
{
    print_inputs(out, arena, report);
    print_summary(out, arena, report);
    print_times(out, arena, report);
    print_memory(out, arena, report);
    print_links(out, arena, report->simulation);
    if (report->gantt == MS_SIMULATE_GANTT_NONE)
        return;
    fputc('\n', out);
    ms_simulate_draw(out, arena, report);
}
