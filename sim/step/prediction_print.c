/* One page for people and one object for programs. Shares are of the step time, memory is in GiB,
 * traffic in GB; every unit stands in a heading or a key. */
#include "sim/step/prediction_print.h"

#include "base/print.h"
#include "base/table.h"
#include "sim/engine/graph.h"

#include <math.h>

#define BAR_WIDTH 40

bool ms_prediction_is_by_events(const ms_prediction *prediction)
{
    return prediction->engine == MS_ENGINE_EVENT;
}

double ms_gib(double bytes)
{
    return bytes / 1073741824.0;
}

int ms_decimals(double value)
{
    if (!isfinite(value) || value <= 0.0)
        return 3;
    double decimals = 3.0 - floor(log10(value));
    return (int)fmin(fmax(decimals, 0.0), 9.0);
}

const char *ms_amount_text(ms_arena *arena, double value)
{
    return ms_arena_printf(arena, fabs(value) < 1e4 ? "%.4g" : "%.0f", value);
}

ms_plan ms_prediction_plan(const ms_plan *plan, const ms_prediction *prediction)
{
    ms_plan used = *plan;
    used.num_stage_layers = prediction->num_stage_layers;
    used.layers_per_stage = prediction->layers_per_stage;
    return used;
}

static const char *unit_or_gpu(const char *unit)
{
    return unit != NULL ? unit : "GPU";
}

char *ms_plan_inputs_text(ms_arena *arena, const ms_plan *plan, const char *unit)
{
    return ms_arena_printf(arena,
                           "%s on %ld %s%s of %s, stack %s, %ld sequence%s of %ld tokens "
                           "a step, %s",
                           plan->model, plan->gpus, unit_or_gpu(unit),
                           plan->gpus == 1 ? "" : "s", plan->cluster, plan->stack,
                           plan->global_batch, plan->global_batch == 1 ? "" : "s",
                           plan->sequence_length, ms_dtype_names[plan->compute]);
}

static char *runs_text(ms_arena *arena, const ms_error_interval *interval,
                       ms_error_level level)
{
    int runs = interval->num_runs[level], sources = interval->num_sources[level];
    return ms_arena_printf(arena, "%d run%s of %d source%s", runs, runs == 1 ? "" : "s",
                           sources, sources == 1 ? "" : "s");
}

char *ms_interval_text(ms_arena *arena, const ms_plan *plan,
                       const ms_prediction *prediction)
{
    const ms_error_interval *interval = &prediction->interval;
    if (isnan(prediction->step_low_s) || isnan(prediction->step_high_s))
        return NULL;
    const char *all = runs_text(arena, interval, MS_ERRORS_OF_ALL);
    return ms_arena_printf(
        arena,
        "90 %% interval by the errors of %s (spreads/" MS_STEP_SPREAD
        "); at this scale (%s %d GPUs) %s; with stack %s %s, %s of them at this scale",
        all, plan->gpus <= MS_FEW_GPUS ? "up to" : "more than", MS_FEW_GPUS,
        runs_text(arena, interval, MS_ERRORS_OF_SCALE), plan->stack,
        runs_text(arena, interval, MS_ERRORS_OF_STACK),
        runs_text(arena, interval, MS_ERRORS_OF_BOTH));
}

char *ms_peak_interval_text(ms_arena *arena, const ms_plan *plan,
                            const ms_prediction *prediction)
{
    const ms_error_interval *interval = &prediction->peak_interval;
    if (isnan(prediction->peak_low_bytes) || isnan(prediction->peak_high_bytes))
        return NULL;
    const char *all = runs_text(arena, interval, MS_ERRORS_OF_ALL);
    return ms_arena_printf(arena,
                           "peak memory: 90 %% interval by the errors of %s "
                           "(spreads/" MS_PEAK_SPREAD "); with stack %s %s",
                           all, plan->stack,
                           runs_text(arena, interval, MS_ERRORS_OF_STACK));
}

/* ---- JSON ---- */

void ms_step_time_write_fields(ms_jout *out, double compute_s, double exposed_comm_s,
                               double bubble_s, double optimizer_s, double host_s)
{
    ms_jout_number_field(out, "compute_s", compute_s);
    ms_jout_number_field(out, "exposed_comm_s", exposed_comm_s);
    ms_jout_number_field(out, "bubble_s", bubble_s);
    ms_jout_number_field(out, "optimizer_s", optimizer_s);
    ms_jout_number_field(out, "host_s", host_s);
}

static void write_parts(ms_jout *out, const double parts[MS_NUM_MEMORY_CATEGORIES])
{
    ms_jout_begin_object_field(out, "parts");
    for (int part = 0; part < MS_NUM_MEMORY_CATEGORIES; part++)
        ms_jout_number_field(out, ms_memory_category_names[part], parts[part]);
    ms_jout_end_object(out);
}

static void write_memory(ms_jout *out, const ms_prediction *p)
{
    ms_jout_begin_object_field(out, "memory");
    ms_jout_bool_field(out, "fits", p->fits);
    ms_jout_number_field(out, "capacity_bytes", p->capacity_bytes);
    ms_jout_number_field(out, "peak_bytes", p->peak_bytes);
    ms_jout_number_field(out, "peak_bytes_low", p->peak_low_bytes);
    ms_jout_number_field(out, "peak_bytes_high", p->peak_high_bytes);
    ms_jout_number_field(out, "fits_probability", p->fits_probability);
    ms_jout_number_field(out, "device_bytes", p->peak_bytes + p->outside_bytes);
    ms_jout_number_field(out, "worst_rank", p->worst_rank);
    write_parts(out, p->memory);
    ms_jout_end_object(out);
}

static void write_stage(ms_jout *out, const ms_prediction *p,
                        const ms_stage_prediction *stage)
{
    ms_jout_begin_object(out);
    ms_jout_number_field(out, "rank", stage->rank);
    ms_jout_number_field(out, "layers", (double)stage->num_layers);
    ms_jout_number_field(out, "forward_s", stage->forward_s);
    ms_jout_number_field(out, "backward_s", stage->backward_s);
    ms_jout_number_field(out, "busy_s", stage->busy_s);
    ms_jout_number_field(out, "peak_in_flight", stage->live_microbatches);
    ms_jout_begin_object_field(out, "memory");
    ms_jout_bool_field(out, "fits",
                       stage->peak_bytes + p->outside_bytes <= p->capacity_bytes);
    ms_jout_number_field(out, "capacity_bytes", p->capacity_bytes);
    ms_jout_number_field(out, "peak_bytes", stage->peak_bytes);
    ms_jout_number_field(out, "device_bytes", stage->peak_bytes + p->outside_bytes);
    write_parts(out, stage->memory);
    ms_jout_end_object(out);
    ms_jout_end_object(out);
}

void ms_axis_write_fields(ms_jout *out, const ms_axis_prediction *axis)
{
    ms_jout_text_field(out, "axis", axis->axis);
    ms_jout_number_field(out, "size", (double)axis->size);
    ms_jout_number_field(out, "ranks_per_node", (double)axis->ranks_per_node);
    ms_jout_text_field(out, "tier", axis->tier);
    ms_jout_number_field(out, "sent_bytes", axis->bytes);
    ms_jout_number_field(out, "nic_bytes", axis->nic_bytes);
    ms_jout_number_field(out, "comm_s", axis->seconds);
    ms_jout_number_field(out, "exposed_s", axis->exposed_s);
}

static void write_times(ms_jout *out, const ms_prediction *p)
{
    ms_jout_text_field(out, "engine", ms_engine_names[p->engine]);
    ms_jout_number_field(out, "step_s", p->step_s);
    ms_jout_number_field(out, "step_s_low", p->step_low_s);
    ms_jout_number_field(out, "step_s_high", p->step_high_s);
    ms_jout_number_field(out, "bound_s", p->bound_s);
    ms_jout_number_field(out, "replay_step_s", p->replay_step_s);
    ms_jout_number_field(out, "tokens_per_s", p->tokens_per_s);
    ms_jout_number_field(out, "tokens_per_s_per_gpu", p->tokens_per_s_per_gpu);
    ms_jout_number_field(out, "mfu_frac", p->mfu_frac);
    if (p->measured_peak_flop_per_s > 0.0)
        ms_jout_number_field(out, "measured_peak_flop_per_s",
                             p->measured_peak_flop_per_s);
    ms_jout_number_field(out, "hfu_frac", p->hfu_frac);
    ms_step_time_write_fields(out, p->compute_s, p->exposed_comm_s, p->bubble_s,
                              p->optimizer_s, p->host_s);
}

void ms_prediction_write_fields(ms_jout *out, const ms_prediction *p)
{
    ms_jout_text_field(out, "schema", "meshsim.prediction/1");
    write_times(out, p);
    write_memory(out, p);
    ms_jout_begin_array_field(out, "layers_per_stage");
    for (long i = 0; i < p->num_stage_layers; i++)
        ms_jout_number(out, (double)p->layers_per_stage[i]);
    ms_jout_end_array(out);
    ms_jout_begin_array_field(out, "stages");
    for (int i = 0; i < p->num_stages; i++)
        write_stage(out, p, &p->stages[i]);
    ms_jout_end_array(out);
    ms_jout_begin_array_field(out, "axes");
    for (int i = 0; i < p->num_axes; i++) {
        ms_jout_begin_object(out);
        ms_axis_write_fields(out, &p->axes[i]);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
}

void ms_prediction_write_json(ms_jout *out, const ms_prediction *prediction)
{
    ms_jout_begin_object(out);
    ms_prediction_write_fields(out, prediction);
    ms_jout_end_object(out);
}

/* ---- text ---- */

static const char *precision_note(ms_arena *arena, const ms_plan *plan)
{
    const char *const names[] = {"params", "grads", "optimizer", "comm"};
    const char *const types[] = {plan->param_dtype, plan->grad_dtype,
                                 plan->optimizer_dtype, plan->comm_dtype};
    const char *text = "";
    for (int i = 0; i < 4; i++)
        if (types[i] != NULL)
            text = ms_arena_printf(arena, "%s%s%s %s", text, text[0] == '\0' ? "" : ", ",
                                   names[i], types[i]);
    if (text[0] == '\0')
        return "";
    return ms_arena_printf(arena, " (the plan's %s is recorded but not priced)", text);
}

static void print_inputs(FILE *out, ms_arena *arena, const ms_plan *plan,
                         const ms_prediction *p)
{
    const char *padding = "";
    if (p->padded_vocab > 0)
        padding = ms_arena_printf(arena, "; vocabulary padded to %ld", p->padded_vocab);
    if (p->kv_copies > 1)
        padding = ms_arena_printf(arena, "%s; each key-value head on %ld ranks", padding,
                                  p->kv_copies);
    ms_print(out, "%s\n", ms_plan_inputs_text(arena, plan, p->unit));
    ms_print(out, "plan     %s\n", ms_plan_text(arena, plan));
    ms_print(out,
             "assumed  states in the bytes that stack %s keeps%s; no other traffic, no "
             "stragglers%s%s\n",
             plan->stack, precision_note(arena, plan),
             plan->ep > 1 ? "; experts equally loaded" : "", padding);
}

static void print_step(FILE *out, const ms_prediction *p)
{
    int decimals = ms_decimals(p->step_s);
    bool by_events = ms_prediction_is_by_events(p);
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
}

static const char *peak_text(ms_arena *arena, ms_dtype compute, const ms_prediction *p)
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

const char *ms_outside_text(ms_arena *arena, const ms_prediction *p)
{
    return p->outside_bytes > 0.0
               ? ms_arena_printf(arena, " + %.2f GiB of context and communicators",
                                 ms_gib(p->outside_bytes))
               : "";
}

static void print_peak_interval(FILE *out, const ms_prediction *p)
{
    if (isnan(p->peak_low_bytes) || isnan(p->peak_high_bytes))
        return;
    ms_print(out,
             "              90 %% interval of the peak %.2f to %.2f GiB; it fits with "
             "probability %.2f\n",
             ms_gib(p->peak_low_bytes), ms_gib(p->peak_high_bytes), p->fits_probability);
}

static void print_summary(FILE *out, ms_arena *arena, const ms_plan *plan,
                          const ms_prediction *p)
{
    double free_bytes = ms_prediction_free_bytes(p, p->peak_bytes);
    print_step(out, p);
    ms_print(out, "tokens/s      %.*f\n", ms_decimals(p->tokens_per_s), p->tokens_per_s);
    ms_print(out, "tokens/s/%-4s %.*f\n", unit_or_gpu(p->unit),
             ms_decimals(p->tokens_per_s_per_gpu), p->tokens_per_s_per_gpu);
    ms_print(out, "MFU           %.1f %% of %s: model FLOP, all attention pairs\n",
             100.0 * p->mfu_frac, peak_text(arena, plan->compute, p));
    ms_print(out, "HFU           %.1f %%: executed FLOP, causal, with recomputation\n",
             100.0 * p->hfu_frac);
    ms_print(out, "peak memory   %.2f GiB%s of %.2f GiB: ", ms_gib(p->peak_bytes),
             ms_outside_text(arena, p), ms_gib(p->capacity_bytes));
    if (p->fits)
        ms_print(out, "%.2f GiB free\n", ms_gib(free_bytes));
    else
        ms_print(out, "DOES NOT FIT, %.2f GiB short\n", ms_gib(-free_bytes));
    print_peak_interval(out, p);
}

static const char *bar(ms_arena *arena, double frac)
{
    int length = (int)fmin(fmax(round(frac * BAR_WIDTH), 0.0), BAR_WIDTH);
    static const char full[] = "########################################";
    return ms_arena_strndup(arena, full, (size_t)length);
}

static void print_times(FILE *out, ms_arena *arena, const ms_prediction *p)
{
    const char *const names[] = {"compute", "exposed communication", "pipeline bubble",
                                 "optimizer", "waiting for the host"};
    const double seconds[] = {p->compute_s, p->exposed_comm_s, p->bubble_s,
                              p->optimizer_s, p->host_s};
    int decimals = ms_decimals(p->step_s) + 1;
    ms_table *table =
        MS_TABLE(arena, "lrrl", "where the step goes", "time (s)", "share (%)", "");
    for (int i = 0; i < 5; i++) {
        double frac = seconds[i] / p->step_s;
        ms_table_cell(table, "%s", names[i]);
        ms_table_cell(table, "%.*f", decimals, seconds[i]);
        ms_table_cell(table, "%.1f", 100.0 * frac);
        ms_table_cell(table, "%s", bar(arena, frac));
    }
    fputc('\n', out);
    ms_table_print(table, out);
}

static void memory_row(ms_table *table, const char *name, double bytes,
                       double capacity_bytes)
{
    ms_table_cell(table, "%s", name);
    ms_table_cell(table, "%.2f", ms_gib(bytes));
    ms_table_cell(table, "%.1f", 100.0 * bytes / capacity_bytes);
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

static void print_stages(FILE *out, ms_arena *arena, const ms_prediction *p)
{
    ms_table *table = MS_TABLE(arena, "rrrrrrrrr", "pipeline rank", "layers",
                               "forward (ms)", "backward (ms)", "busy (s)", "busy (%)",
                               "peak (GiB)", "left (GiB)", "in flight");
    for (int i = 0; i < p->num_stages; i++) {
        const ms_stage_prediction *stage = &p->stages[i];
        ms_table_cell(table, "%d", stage->rank);
        ms_table_cell(table, "%ld", stage->num_layers);
        ms_table_cell(table, "%.3f", 1e3 * stage->forward_s);
        ms_table_cell(table, "%.3f", 1e3 * stage->backward_s);
        ms_table_cell(table, "%.*f", ms_decimals(p->step_s), stage->busy_s);
        ms_table_cell(table, "%.1f", 100.0 * stage->busy_s / p->step_s);
        ms_table_cell(table, "%.2f", ms_gib(stage->peak_bytes));
        ms_table_cell(table, "%.2f",
                      ms_gib(ms_prediction_free_bytes(p, stage->peak_bytes)));
        ms_table_cell(table, "%d", stage->live_microbatches);
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
        ms_table_cell(table, "%s", axis->axis);
        ms_table_cell(table, "%ld", axis->size);
        ms_table_cell(table, "%ld", axis->ranks_per_node);
        ms_table_cell(table, "%s", axis->tier);
        ms_table_cell(table, "%.*f", ms_decimals(axis->bytes / 1e9), axis->bytes / 1e9);
        ms_table_cell(table, "%.*f", decimals, axis->seconds);
        ms_table_cell(table, "%.*f", decimals, axis->exposed_s);
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
    print_axes(out, arena, prediction);
}
