#include "sim/step/prediction_text.h"

#include <math.h>

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

char *ms_plan_inputs_text(ms_arena *arena, const ms_plan *plan, const char *unit)
{
    return ms_arena_printf(arena,
                           "%s on %ld %s%s of %s, stack %s, %ld sequence%s of %ld tokens "
                           "a step, %s",
                           plan->model, plan->gpus, unit != NULL ? unit : "GPU",
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

const char *ms_few_peaks_text(ms_arena *arena, const char *stack, const ms_prediction *p)
{
    const ms_error_interval *interval = &p->peak_interval;
    if (isnan(p->peak_low_bytes) || interval->num_sources[MS_ERRORS_OF_STACK] > 1)
        return NULL;
    return ms_arena_printf(arena,
                           "few peaks of stack %s were measured (%s): the risk is "
                           "mostly by errors of other stacks",
                           stack, runs_text(arena, interval, MS_ERRORS_OF_STACK));
}

const char *ms_margin_text(ms_arena *arena, const ms_memory_limit *limit)
{
    return limit->peak_factor > 1.0
               ? ms_arena_printf(arena, " with a margin of %.0f %% for errors",
                                 100.0 * (limit->peak_factor - 1.0))
               : "";
}

const char *ms_headroom_text(ms_arena *arena, const ms_workload *workload)
{
    double headroom_bytes =
        workload->cluster->device.memory_bytes - workload->memory.limit_bytes;
    return headroom_bytes > 0.0 ? ms_arena_printf(arena, " beside a headroom of %.2f GiB",
                                                  ms_gib(headroom_bytes))
                                : "";
}

const char *ms_outside_text(ms_arena *arena, const ms_prediction *p)
{
    return p->outside_bytes > 0.0
               ? ms_arena_printf(arena, " + %.2f GiB of context and communicators",
                                 ms_gib(p->outside_bytes))
               : "";
}

/* ---- the host ---- */

static const char *const block_names[] = {"embedding", "layers", "head"};
static const char *const pass_names[] = {"forward", "backward"};
static const char *const pass_keys[] = {"forward_s", "backward_s"};

bool ms_shows_host(const ms_prediction *p)
{
    return p->host.is_chosen || p->host_s > 1e-3 * p->step_s;
}

const char *ms_host_use_text(ms_arena *arena, const ms_prediction *p)
{
    int decimals = ms_decimals(p->step_s) + 1;
    const char *text = ms_arena_printf(arena, "%.0f launches a step in %.*f s",
                                       p->host.launches, decimals, p->host.launch_s);
    const char *joint = "; waiting: ";
    for (int block = 0; block < MS_NUM_BLOCK_KINDS; block++) {
        for (int pass = 0; pass < MS_NUM_BILL_PASSES; pass++) {
            double wait_s = p->host.wait_s[block][pass];
            if (wait_s < 1e-4 * p->step_s)
                continue;
            text =
                ms_arena_printf(arena, "%s%s%s %s %.*f s", text, joint,
                                block_names[block], pass_names[pass], decimals, wait_s);
            joint = ", ";
        }
    }
    return text;
}

static void write_host(ms_jout *out, const ms_prediction *p)
{
    if (!ms_shows_host(p))
        return;
    ms_jout_begin_object_field(out, "host");
    ms_jout_number_field(out, "launches", p->host.launches);
    ms_jout_number_field(out, "launch_s", p->host.launch_s);
    for (int block = 0; block < MS_NUM_BLOCK_KINDS; block++) {
        const double *wait_s = p->host.wait_s[block];
        ms_jout_begin_object_field(out, block_names[block]);
        for (int pass = 0; pass < MS_NUM_BILL_PASSES; pass++)
            ms_jout_number_field(out, pass_keys[pass], wait_s[pass]);
        ms_jout_end_object(out);
    }
    ms_jout_end_object(out);
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

static void write_kinds(ms_jout *out, const ms_stage_prediction *stage)
{
    ms_jout_number_field(out, "allocated_bytes", stage->kind_bytes[MS_MEMORY_ALLOCATED]);
    ms_jout_number_field(out, "reserved_bytes", stage->kind_bytes[MS_MEMORY_RESERVED]);
}

/* Writes bytes in host memory, if the plan has any there. */
static void write_host_bytes(ms_jout *out, double host_bytes)
{
    if (host_bytes > 0.0)
        ms_jout_number_field(out, "host_bytes", host_bytes);
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
    write_kinds(out, &p->stages[p->worst_rank]);
    ms_jout_number_field(out, "device_bytes", p->peak_bytes + p->outside_bytes);
    write_host_bytes(out, p->host_bytes);
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
    if (stage->device != NULL)
        ms_jout_text_field(out, "device", stage->device);
    ms_jout_number_field(out, "forward_s", stage->forward_s);
    ms_jout_number_field(out, "backward_s", stage->backward_s);
    ms_jout_number_field(out, "busy_s", stage->busy_s);
    ms_jout_number_field(out, "peak_in_flight", stage->live_microbatches);
    ms_jout_begin_object_field(out, "memory");
    ms_jout_bool_field(out, "fits",
                       stage->peak_bytes + p->outside_bytes <= stage->capacity_bytes);
    ms_jout_number_field(out, "capacity_bytes", stage->capacity_bytes);
    ms_jout_number_field(out, "peak_bytes", stage->peak_bytes);
    write_kinds(out, stage);
    ms_jout_number_field(out, "device_bytes", stage->peak_bytes + p->outside_bytes);
    write_host_bytes(out, stage->host_bytes);
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

static void write_undisturbed(ms_jout *out, const ms_prediction *p)
{
    const ms_error_interval *interval = &p->interval;
    ms_jout_number_field(out, "undisturbed_s_low", p->step_s * interval->low_frac);
    ms_jout_number_field(out, "undisturbed_s_high",
                         p->step_s * interval->undisturbed_high_frac);
    ms_jout_number_field(out, "disturbed_frac", interval->disturbed_frac);
    ms_jout_number_field(out, "disturbed_slowdown_frac",
                         interval->disturbed_slowdown_frac);
}

static void write_times(ms_jout *out, const ms_prediction *p)
{
    ms_jout_text_field(out, "engine", ms_engine_names[p->engine]);
    ms_jout_number_field(out, "step_s", p->step_s);
    ms_jout_number_field(out, "step_s_low", p->step_low_s);
    ms_jout_number_field(out, "step_s_high", p->step_high_s);
    write_undisturbed(out, p);
    ms_jout_number_field(out, "bound_s", p->bound_s);
    ms_jout_number_field(out, "replay_step_s", p->replay_step_s);
    ms_jout_number_field(out, "tokens_per_s", p->tokens_per_s);
    ms_jout_number_field(out, "tokens_per_s_per_gpu", p->tokens_per_s_per_gpu);
    if (p->has_lengths) {
        ms_jout_number_field(out, "useful_tokens_per_s", p->useful_tokens_per_s);
        ms_jout_number_field(out, "useful_frac",
                             p->useful_tokens_per_s / p->tokens_per_s);
    }
    ms_jout_number_field(out, "mfu_frac", p->mfu_frac);
    if (p->measured_peak_flop_per_s > 0.0)
        ms_jout_number_field(out, "measured_peak_flop_per_s",
                             p->measured_peak_flop_per_s);
    ms_jout_number_field(out, "mfu_causal_frac", p->mfu_causal_frac);
    ms_jout_number_field(out, "hfu_frac", p->hfu_frac);
    ms_step_time_write_fields(out, p->compute_s, p->exposed_comm_s, p->bubble_s,
                              p->optimizer_s, p->host_s);
}

void ms_prediction_write_fields(ms_jout *out, const ms_prediction *p)
{
    ms_jout_text_field(out, "schema", "meshsim.prediction/1");
    write_times(out, p);
    write_host(out, p);
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
