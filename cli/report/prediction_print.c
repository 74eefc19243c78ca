/* A prediction as one page of text; memory in GiB, traffic in GB. */
#include "base/print.h"
#include "base/table.h"
#include "base/wrap.h"
#include "cli/report/report.h"
#include "sim/step/prediction_text.h"

#include <math.h>
#include <string.h>

#define BAR_WIDTH 40

static const char *experts_note(ms_arena *arena, const ms_plan *plan)
{
    if (plan->expert_loads != NULL)
        return ms_arena_printf(arena, "; experts loaded as in %s", plan->expert_loads);
    if (plan->ep == 1)
        return "";
    return plan->expert_imbalance <= 1.0
               ? "; experts equally loaded"
               : ms_arena_printf(arena, "; the fullest experts have %.3g times the mean",
                                 plan->expert_imbalance);
}

const char *ms_assumed_text(ms_arena *arena, const ms_plan *plan, const ms_prediction *p)
{
    const char *padding = "";
    if (p->padded_vocab > 0)
        padding = ms_arena_printf(arena, "; vocabulary padded to %ld", p->padded_vocab);
    if (p->kv_copies > 1)
        padding = ms_arena_printf(arena, "%s; each key-value head on %ld ranks", padding,
                                  p->kv_copies);
    return ms_arena_printf(arena,
                           "states in the bytes that stack %s keeps; no other traffic, "
                           "no %sstragglers%s%s",
                           plan->stack, plan->slow_nodes == NULL ? "" : "other ",
                           experts_note(arena, plan), padding);
}

static void print_inputs(FILE *out, ms_arena *arena, const ms_plan *plan,
                         const ms_prediction *p)
{
    ms_print(out, "%s\n", ms_plan_inputs_text(arena, plan, p->unit));
    ms_print(out, "plan     %s\n", ms_plan_text(arena, plan));
    ms_print(out, "assumed  %s\n", ms_assumed_text(arena, plan, p));
}

/* Prints where the step time lies if nothing disturbs it, if runs were disturbed. */
static void print_undisturbed(FILE *out, const ms_prediction *p)
{
    const ms_error_interval *interval = &p->interval;
    int decimals = ms_decimals(p->step_s);
    if (isnan(p->step_low_s) || !(interval->disturbed_frac > 0.0))
        return;
    ms_print(out,
             "              undisturbed %.*f to %.*f s, unverified; %.0f %% of runs take "
             "%.0f %% longer\n",
             decimals, p->step_low_s, decimals,
             p->step_s * interval->undisturbed_high_frac,
             100.0 * interval->disturbed_frac, 100.0 * interval->disturbed_slowdown_frac);
}

static void print_step(FILE *out, const ms_prediction *p)
{
    int decimals = ms_decimals(p->step_s);
    bool by_events = p->engine == MS_ENGINE_EVENT;
    ms_print(out, "\nstep time     %.*f s by %s", decimals, p->step_s,
             by_events ? "events" : "replay");
    if (by_events)
        ms_print(out, ", %+.2f %% against the %.*f s by replay",
                 100.0 * (p->step_s / p->replay_step_s - 1.0), decimals,
                 p->replay_step_s);
    if (!isnan(p->step_low_s) && !isnan(p->step_high_s))
        ms_print(out, "; 90 %% interval %.*f to %.*f s", decimals, p->step_low_s,
                 decimals, p->step_high_s);
    fputc('\n', out);
    print_undisturbed(out, p);
}

const char *ms_peak_rate_text(ms_arena *arena, ms_dtype compute, const ms_prediction *p)
{
    char rate[64];
    const char *dtype = ms_dtype_names[compute];
    if (!(p->measured_peak_flop_per_s > 0.0))
        return ms_arena_printf(arena, "the dense %s peak", dtype);
    return ms_arena_printf(
        arena, "the fastest %s product measured, %s (above the listed peak)", dtype,
        ms_format_quantity(rate, sizeof rate, p->measured_peak_flop_per_s,
                           MS_UNIT_FLOP_PER_S));
}

static void print_peak_interval(FILE *out, ms_arena *arena, const ms_plan *plan,
                                const ms_prediction *p)
{
    if (isnan(p->peak_low_bytes) || isnan(p->peak_high_bytes))
        return;
    ms_print(out,
             "              90 %% interval of the peak %.2f to %.2f GiB; %.0f %% risk of "
             "running out of memory\n",
             ms_gib(p->peak_low_bytes), ms_gib(p->peak_high_bytes),
             100.0 * (1.0 - p->fits_probability));
    const char *few = ms_few_peaks_text(arena, plan->stack, p);
    if (few != NULL)
        ms_wrap_print(out, ms_arena_printf(arena, "              %s", few),
                      (size_t)ms_table_most_width(), 14);
}

static void print_summary(FILE *out, ms_arena *arena, const ms_plan *plan,
                          const ms_prediction *p)
{
    double free_bytes = ms_prediction_free_bytes(p, p->peak_bytes);
    print_step(out, p);
    ms_print(out, "tokens/s      %.*f\n", ms_decimals(p->tokens_per_s), p->tokens_per_s);
    ms_print(out, "tokens/s/%-4s %.*f\n", p->unit != NULL ? p->unit : "GPU",
             ms_decimals(p->tokens_per_s_per_gpu), p->tokens_per_s_per_gpu);
    if (p->has_lengths)
        ms_print(out, "useful        %.*f tokens/s, %.1f %% of those computed\n",
                 ms_decimals(p->useful_tokens_per_s), p->useful_tokens_per_s,
                 100.0 * p->useful_tokens_per_s / p->tokens_per_s);
    ms_print(out, "MFU           %.1f %% of %s: model FLOP, all attention pairs\n",
             100.0 * p->mfu_frac, ms_peak_rate_text(arena, plan->compute, p));
    ms_print(out,
             "causal        MFU %.1f %%: pairs that a mask leaves; HFU %.1f %%: executed "
             "FLOP, with recomputation\n",
             100.0 * p->mfu_causal_frac, 100.0 * p->hfu_frac);
    ms_print(out, "peak memory   %.2f GiB%s of %.2f GiB: ", ms_gib(p->peak_bytes),
             ms_outside_text(arena, p), ms_gib(p->capacity_bytes));
    if (p->fits)
        ms_print(out, "%.2f GiB free\n", ms_gib(free_bytes));
    else
        ms_print(out, "DOES NOT FIT, %.2f GiB short\n", ms_gib(-free_bytes));
    print_peak_interval(out, arena, plan, p);
    if (p->host_bytes > 0.0)
        ms_print(out, "host memory   %.2f GiB of a rank\n", ms_gib(p->host_bytes));
}

static void print_times(FILE *out, ms_arena *arena, const ms_prediction *p)
{
    const char *const names[] = {"compute", "exposed communication", "pipeline bubble",
                                 "optimizer", "waiting for the host"};
    const double seconds[] = {p->compute_s, p->exposed_comm_s, p->bubble_s,
                              p->optimizer_s, p->host_s};
    int decimals = ms_decimals(p->step_s) + 1;
    ms_table *table =
        MS_TABLE(arena, "lrrl9", "where the step goes", "time (s)", "share (%)", "");
    for (int i = 0; i < 5; i++) {
        double frac = seconds[i] / p->step_s;
        int length = (int)fmin(fmax(round(frac * BAR_WIDTH), 0.0), BAR_WIDTH);
        ms_table_cells(table, "%s\t%.*f\t%.1f\t%.*s", names[i], decimals, seconds[i],
                       100.0 * frac, length, "########################################");
    }
    fputc('\n', out);
    ms_table_print(table, out);
    if (ms_shows_host(p))
        ms_wrap_print(out, ms_arena_printf(arena, "host: %s", ms_host_use_text(arena, p)),
                      (size_t)ms_table_most_width(), 6);
}

static void memory_row(ms_table *table, const char *name, double bytes,
                       double capacity_bytes)
{
    ms_table_cells(table, "%s\t%.2f\t%.1f", name, ms_gib(bytes),
                   100.0 * bytes / capacity_bytes);
}

static void print_memory(FILE *out, ms_arena *arena, const ms_prediction *p)
{
    ms_table *table = MS_TABLE(
        arena, "lrr", ms_arena_printf(arena, "memory on pipeline rank %d", p->worst_rank),
        "size (GiB)", "of capacity (%)");
    for (int part = 0; part < MS_NUM_MEMORY_CATEGORIES; part++)
        memory_row(table, ms_memory_category_names[part], p->memory[part],
                   p->capacity_bytes);
    memory_row(table, "peak", p->peak_bytes, p->capacity_bytes);
    if (p->outside_bytes > 0.0) {
        memory_row(table, "context, communicators", p->outside_bytes, p->capacity_bytes);
        memory_row(table, "on the device", p->peak_bytes + p->outside_bytes,
                   p->capacity_bytes);
    }
    double free_bytes = ms_prediction_free_bytes(p, p->peak_bytes);
    memory_row(table, p->fits ? "free" : "missing", fabs(free_bytes), p->capacity_bytes);
    fputc('\n', out);
    ms_table_print(table, out);
}

/* Prints the devices of each pipeline rank of a mixed cluster, and the busiest rank. */
static void print_devices(FILE *out, ms_arena *arena, const ms_prediction *p)
{
    if (p->stages[0].device == NULL)
        return;
    ms_table *table = MS_TABLE(arena, "lrl", "pipeline ranks", "memory (GiB)", "devices");
    int busiest = 0;
    for (int i = 0, first = 0; i < p->num_stages; i++) {
        const ms_stage_prediction *stage = &p->stages[i];
        busiest = stage->busy_s > p->stages[busiest].busy_s ? i : busiest;
        bool more = i + 1 < p->num_stages && strcmp(stage[1].device, stage->device) == 0;
        if (more)
            continue;
        const char *ranks = first == i ? ms_arena_printf(arena, "%d", i)
                                       : ms_arena_printf(arena, "%d to %d", first, i);
        ms_table_cells(table, "%s\t%.1f\t%s", ranks, ms_gib(stage->capacity_bytes),
                       stage->device);
        first = i + 1;
    }
    fputc('\n', out);
    ms_table_print(table, out);
    const ms_stage_prediction *stage = &p->stages[busiest];
    ms_print(out,
             "pipeline rank %d is busiest, %.1f %% of the step, on %s; the least room is "
             "on rank %d\n",
             busiest, 100.0 * stage->busy_s / p->step_s, stage->device, p->worst_rank);
}

static void print_stages(FILE *out, ms_arena *arena, const ms_prediction *p)
{
    ms_table *table = MS_TABLE(arena, "rrrrrrrrr", "pipeline rank", "layers",
                               "forward (ms)", "backward (ms)", "busy (s)", "busy (%)",
                               "peak (GiB)", "left (GiB)", "in flight");
    for (int i = 0; i < p->num_stages; i++) {
        const ms_stage_prediction *stage = &p->stages[i];
        ms_table_cells(table, "%d\t%ld\t%.3f\t%.3f\t%.*f\t%.1f\t%.2f\t%.2f\t%d",
                       stage->rank, stage->num_layers, 1e3 * stage->forward_s,
                       1e3 * stage->backward_s, ms_decimals(p->step_s), stage->busy_s,
                       100.0 * stage->busy_s / p->step_s, ms_gib(stage->peak_bytes),
                       ms_gib(ms_prediction_free_bytes(p, stage->peak_bytes) +
                              stage->capacity_bytes - p->capacity_bytes),
                       stage->live_microbatches);
    }
    fputc('\n', out);
    ms_table_print(table, out);
    fputs("forward and backward are of one micro-batch; in flight counts chunks at the "
          "peak\n",
          out);
}

static void print_axes(FILE *out, ms_arena *arena, const ms_prediction *p)
{
    if (p->num_axes == 0)
        return;
    int decimals = ms_decimals(p->step_s) + 1;
    ms_table *table = MS_TABLE(arena, "lrrlrrr", "axis", "size", "ranks per node", "tier",
                               "sent (GB/step)", "time (s)", "exposed (s)");
    for (int i = 0; i < p->num_axes; i++) {
        const ms_axis_prediction *axis = &p->axes[i];
        ms_table_cells(table, "%s\t%ld\t%ld\t%s\t%.*f\t%.*f\t%.*f", axis->axis,
                       axis->size, axis->ranks_per_node, axis->tier,
                       ms_decimals(axis->bytes / 1e9), axis->bytes / 1e9, decimals,
                       axis->seconds, decimals, axis->exposed_s);
    }
    fputc('\n', out);
    ms_table_print(table, out);
}

void ms_prediction_print(FILE *out, ms_arena *arena, const ms_plan *plan,
                         const ms_prediction *prediction)
{
    print_inputs(out, arena, plan, prediction);
    print_summary(out, arena, plan, prediction);
    print_times(out, arena, prediction);
    print_memory(out, arena, prediction);
    print_stages(out, arena, prediction);
    print_devices(out, arena, prediction);
    print_axes(out, arena, prediction);
}
