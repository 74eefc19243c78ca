#include "sim/step/rank_memory.h"

#include "base/number.h"

#include <string.h>

const char *const ms_memory_category_names[] = {
    "params",          "grads",        "optimizer", "activations",   "logits",
    "gathered_params", "comm_buffers", "context",   "fragmentation", NULL,
};

const char *const ms_memory_kind_names[] = {"reported", "allocated", "active",
                                            "reserved", "device",    NULL};

/* ---- saved activations ---- */

int ms_rank_class_distinct(const ms_rank_class *run, int chunk)
{
    int i = 0;
    while (run->distinct[i] != run->classes[chunk])
        i++;
    return i;
}

ms_rank_live ms_rank_live_make(ms_arena *arena, const ms_rank_class *run,
                               const ms_schedule *lists, int first_rank, int num_ranks)
{
    int *class_of = MS_NEW_ARRAY(arena, lists->num_chunks, int);
    for (int chunk = 0; chunk < lists->num_chunks; chunk++)
        class_of[chunk] = ms_rank_class_distinct(run, chunk);
    ms_live_ranks ranks = {first_rank, num_ranks, run->num_distinct, class_of};
    return (ms_rank_live){run, ms_schedule_live_rows(arena, lists, &ranks)};
}

double ms_message_buffer_bytes(const ms_stack *stack, const ms_rank_sides *sides,
                               double send_bytes, int num_microbatches)
{
    /* per neighbour an activation and a gradient, received while others are in use */
    return stack->receives_apart ? send_bytes * sides->messages * num_microbatches
                                 : 2.0 * send_bytes * sides->neighbours;
}

double ms_held_output_bytes(const ms_stack *stack, const ms_stage *stages,
                            const ms_rank_class *run, int num_microbatches)
{
    double bytes = 0.0;
    for (int i = 0; i < run->num_distinct; i++) {
        const ms_stage *stage = &stages[run->distinct[i]];
        if (stage->pipelined)
            bytes += (double)run->multiplicity[i] * stage->sum.memory.saved.logits_bytes;
    }
    return bytes * num_microbatches * stack->held_logit_bytes.value /
           stack->logit_bytes.value;
}

/* ---- load of a rank ---- */

ms_live_bytes ms_saved_bytes_of(const ms_stage *stages, const ms_rank_class *run,
                                const int *counts)
{
    ms_live_bytes live = {0};
    for (int i = 0; i < run->num_distinct; i++) {
        const ms_bill_memory *memory = &stages[run->distinct[i]].sum.memory;
        double whole = counts[i], delayed = counts[run->num_distinct + i];
        live.activation_bytes += whole * memory->saved.activation_bytes +
                                 delayed * memory->delayed.activation_bytes;
        live.logits_bytes +=
            whole * memory->saved.logits_bytes + delayed * memory->delayed.logits_bytes;
        live.host_bytes += whole * memory->host_bytes;
    }
    return live;
}

ms_live_bytes ms_live_bytes_of(const ms_stage *stages, const ms_rank_class *run,
                               const int *counts, int at_work, int kind)
{
    ms_bill_half half = kind == MS_BACKWARD         ? MS_BILL_WHOLE
                        : kind == MS_BACKWARD_INPUT ? MS_BILL_INPUT_HALF
                                                    : MS_BILL_WEIGHT_HALF;
    const ms_live_bytes *transient = &stages[run->distinct[at_work]].transient[half];
    ms_live_bytes live = ms_saved_bytes_of(stages, run, counts);
    live.activation_bytes += transient->activation_bytes;
    live.logits_bytes += transient->logits_bytes;
    live.head_grad_bytes = transient->head_grad_bytes;
    return live;
}

void ms_rank_load_peak(const ms_stage *stages, const ms_rank_live *live,
                       ms_rank_load *out)
{
    int width = 2 * live->run->num_distinct;
    double peak_bytes = -1.0;
    const ms_live_rows *rows = &live->rows;
    for (int i = 0; i < rows->num; i++) {
        ms_live_bytes at =
            ms_live_bytes_of(stages, live->run, rows->counts + (long)i * width,
                             rows->at_work[i], rows->kinds[i]);
        double bytes = at.activation_bytes + at.logits_bytes + at.head_grad_bytes;
        out->host_bytes = ms_max(out->host_bytes, at.host_bytes);
        if (bytes > peak_bytes) {
            peak_bytes = bytes;
            out->activation_bytes = at.activation_bytes;
            out->logits_bytes = at.logits_bytes;
            out->head_grad_bytes = at.head_grad_bytes;
        }
    }
}

void ms_rank_load_states(const ms_stage *stages, const ms_rank_class *run,
                         double buffer_bytes, ms_rank_load *out)
{
    *out = (ms_rank_load){.buffer_bytes = buffer_bytes};
    for (int i = 0; i < run->num_distinct; i++) {
        const ms_stage *stage = &stages[run->distinct[i]];
        double chunks = (double)run->multiplicity[i];
        out->dense_params += chunks * stage->sum.dense_params;
        out->expert_params += chunks * stage->sum.expert_params;
        out->unit_dense_params = ms_max(out->unit_dense_params, stage->unit_dense_params);
        out->unit_expert_params =
            ms_max(out->unit_expert_params, stage->unit_expert_params);
        out->frozen.dense += chunks * stage->sum.frozen.dense;
        out->frozen.expert += chunks * stage->sum.frozen.expert;
        for (int k = 0; k < 2; k++)
            out->unit_gathered_bytes[k] =
                ms_max(out->unit_gathered_bytes[k], stage->unit_gathered_bytes[k]);
        ms_update_cost_sum(&out->update, &stage->update, chunks);
    }
}

void ms_rank_load_make(const ms_stage *stages, const ms_rank_live *live,
                       double buffer_bytes, ms_rank_load *out)
{
    ms_rank_load_states(stages, live->run, buffer_bytes, out);
    ms_rank_load_peak(stages, live, out);
}

/* ---- states ---- */

ms_shard_sizes ms_shard_sizes_of(const ms_links *links, long num_microbatches)
{
    ms_shard_sizes sizes = {.dense = (double)links->sync_span[MS_SYNC_FSDP].size,
                            .expert = (double)links->sync_span[MS_SYNC_EXPERT_FSDP].size,
                            .num_communicators = links->world_span.size > 1,
                            .data_parallel = links->sync_span[MS_SYNC_ALL].size > 1,
                            .pipeline = links->pipeline_span.size > 1};
    for (int i = 0; i < 2 && links->has_secondary; i++)
        sizes.secondary[i] = (double)links->sync_span[(int)MS_SYNC_SECONDARY + i].size;
    sizes.num_losses = sizes.pipeline && num_microbatches > 1 ? 2 : 1;
    for (int axis = 0; axis < MS_NUM_BILL_AXES; axis++)
        sizes.num_communicators += links->span[axis].size > 1;
    sizes.num_communicators += links->sync_span[MS_SYNC_FSDP].size > 1;
    sizes.num_communicators += links->sync_span[MS_SYNC_REPLICATE].size > 1;
    sizes.num_communicators += links->pipeline_span.size > 1;
    bool has_experts = links->span[MS_BILL_EP].size > 1;
    sizes.num_communicators +=
        has_experts && links->sync_span[MS_SYNC_EXPERT_FSDP].size > 1;
    return sizes;
}

double ms_rank_params(const ms_rank_load *load, const ms_shard_sizes *shards,
                      bool over_shards)
{
    if (!over_shards)
        return load->dense_params + load->expert_params;
    return load->dense_params / shards->dense + load->expert_params / shards->expert;
}

/* Bytes of whole parameters and gradients that exist besides the shards. ZeRO-3:
 * parameters of two units (the current and the prefetched one), gradients of one, and the
 * copy for backward of fewer shards (hpZ of ZeRO++, Wang et al. 2023, section 3.2). */
static double gathered_bytes(const ms_workload *workload, const ms_rank_load *load,
                             ms_sharding sharding, const ms_shard_sizes *shards)
{
    const ms_stack *stack = workload->stack;
    double stored_bytes = ms_stored_bytes(workload->compute);
    /* quantized values exist beside those that they are made of, or become: parameters as
     * a gather without codes brings them, which are no wider than the stored ones */
    double restored_bytes = ms_min(stored_bytes, stack->param_bytes.value);
    double param_bytes =
        stack->param_comm_bytes.value + (stack->quantizes_gathers ? restored_bytes : 0.0);
    double grad_bytes =
        stack->grad_comm_bytes.value + (stack->quantizes_reductions ? stored_bytes : 0.0);
    const double units[2] = {load->unit_dense_params, load->unit_expert_params};
    const double whole[2] = {load->dense_params, load->expert_params};
    const double frozen[2] = {load->frozen.dense, load->frozen.expert};
    const double counts[2] = {shards->dense, shards->expert};
    double total = 0.0;
    for (int i = 0; i < 2; i++) {
        if (counts[i] <= 1.0 || sharding < MS_ZERO_2)
            continue;
        if (ms_shards_grads(sharding))
            total += units[i] * grad_bytes;
        if (sharding == MS_ZERO_3 && shards->secondary[i] > 0.0)
            total += (whole[i] * stack->param_comm_bytes.value + frozen[i]) /
                     shards->secondary[i];
        if (sharding == MS_ZERO_3)
            total += 2.0 * ms_max(units[i] * param_bytes, load->unit_gathered_bytes[i]);
        else if (sharding == MS_ZERO_3_NO_RESHARD)
            total +=
                whole[i] * (stack->quantizes_gathers ? restored_bytes : param_bytes) +
                frozen[i];
    }
    return total;
}

/* Bytes of a parameter between micro-batches, casts to 8 bits included. Source:
 * Transformer Engine, weights cached in FP8 with their transpose, which GEMMs of Hopper
 * need since its FP8 tensor cores multiply rows by rows only (docs of cuBLASLt, "FP8
 * matrices must be transposed"). */
static double param_bytes(const ms_workload *workload)
{
    const ms_stack *stack = workload->stack;
    double cast_bytes = stack->cast_param_bytes.value;
    bool are_adapters = stack->frozen_param_bytes > 0.0; /* not cast */
    if (ms_dtype_bytes(workload->compute) != 1.0 || cast_bytes == 0.0 || are_adapters)
        return stack->param_bytes.value;
    if (workload->cluster->device.peak_flop_per_s[MS_FP4] > 0.0)
        cast_bytes /= 2.0;
    return cast_bytes + (stack->gathers_cast ? 0.0 : stack->param_bytes.value);
}

static double frozen_bytes(const ms_rank_load *load, const ms_shard_sizes *shards,
                           bool over_shards)
{
    return load->frozen.dense / (over_shards ? shards->dense : 1.0) +
           load->frozen.expert / (over_shards ? shards->expert : 1.0);
}

/* Bytes of gradient copies: bucket_bytes (data parallel), late_grad_bytes (pipelines). */
static double more_gradients_bytes(const ms_stack *stack, const ms_rank_load *load,
                                   const ms_shard_sizes *shards)
{
    double bytes = 0.0;
    if (shards->data_parallel)
        bytes += stack->bucket_bytes.value;
    if (shards->pipeline)
        bytes += stack->late_grad_bytes.value;
    return bytes * ms_rank_params(load, shards, false);
}

/* Bytes of cuBLAS's workspaces in the framework's allocator. Source: PyTorch
 * CUDABlas.cpp, getChosenWorkspaceSize (large on compute capability 9.0 and 10.x; one per
 * handle and stream, and the thread that runs backward has a handle of its own);
 * Transformer Engine pytorch/module/base.py, get_cublas_workspace_size_bytes (large from
 * 9.0 on), get_multi_stream_cublas_workspace; from memory. PyTorch's deterministic
 * algorithms demand CUBLAS_WORKSPACE_CONFIG, of which :4096:8 is the large size. */
static double workspace_bytes(const ms_workload *workload, const ms_rank_load *load)
{
    const ms_stack *stack = workload->stack;
    double capability = workload->cluster->device.compute_capability;
    bool is_older = capability < 9.0, is_small = is_older || capability >= 11.0;
    double engine_bytes = is_older ? stack->older_engine_workspace_bytes.value
                                   : stack->engine_workspace_bytes.value;
    double streams = load->expert_params > 0.0 ? stack->engine_streams.value : 0.0;
    return (is_small && !stack->deterministic && stack->older_workspace_bytes.value > 0.0
                ? stack->older_workspace_bytes.value
                : stack->workspace_bytes.value) +
           engine_bytes * (1.0 + streams);
}

static double communicators_bytes(const ms_workload *workload,
                                  const ms_shard_sizes *shards)
{
    double more = shards->pipeline ? workload->stack->more_communicators.value : 0.0;
    return (shards->num_communicators + more) *
           workload->profile->communicator_bytes.value;
}

static double context_bytes(const ms_workload *workload)
{
    return workload->profile->context_bytes.value +
           workload->stack->eager_kernels_bytes.value;
}

double ms_rank_driver_bytes(const ms_workload *workload, const ms_shard_sizes *shards)
{
    return communicators_bytes(workload, shards) + context_bytes(workload);
}

double ms_rank_outside_bytes(const ms_workload *workload, const ms_shard_sizes *shards)
{
    return workload->stack->counts_context ? 0.0 : ms_rank_driver_bytes(workload, shards);
}

double ms_rank_memory_of_kind(const ms_workload *workload, const ms_shard_sizes *shards,
                              const double parts[MS_NUM_MEMORY_CATEGORIES],
                              ms_memory_kind kind)
{
    const ms_stack *stack = workload->stack;
    double driver_bytes = ms_rank_driver_bytes(workload, shards), peak_bytes = 0.0;
    for (int i = 0; i < MS_NUM_MEMORY_CATEGORIES; i++)
        peak_bytes += parts[i];
    if (kind == MS_MEMORY_AS_REPORTED)
        return peak_bytes;
    double used_bytes = peak_bytes - (stack->counts_context ? driver_bytes : 0.0);
    if (kind == MS_MEMORY_ALLOCATED || kind == MS_MEMORY_ACTIVE)
        return used_bytes - parts[MS_MEMORY_FRAGMENTATION];
    double room_bytes = workload->cluster->device.memory_bytes - driver_bytes;
    double reserved_bytes = ms_max(
        used_bytes, ms_min(room_bytes, used_bytes * (1.0 + stack->reserve_frac.value)));
    return reserved_bytes + (kind == MS_MEMORY_DEVICE ? driver_bytes : 0.0);
}

double ms_rank_state_bytes(const ms_rank_load *load, ms_sharding sharding,
                           const ms_shard_sizes *shards, double bytes_per_param)
{
    bool is_sharded = sharding >= MS_ZERO_1;
    const double *more_bytes = load->update.state_bytes;
    return bytes_per_param * ms_rank_params(load, shards, is_sharded) +
           (is_sharded ? more_bytes[0] / shards->dense + more_bytes[1] / shards->expert
                       : more_bytes[0] + more_bytes[1]);
}

double ms_rank_host_bytes(const ms_workload *workload, const ms_rank_load *load,
                          ms_sharding sharding, const ms_shard_sizes *shards)
{
    const ms_stack *stack = workload->stack;
    if (stack->host_optimizer == MS_HOST_NO_OPTIMIZER)
        return load->host_bytes;
    double state_bytes = stack->master_bytes.value + stack->moment_bytes.value;
    if (stack->host_optimizer == MS_HOST_UPDATE && stack->offloads_gradients)
        state_bytes += stack->grad_bytes.value;
    return load->host_bytes + ms_rank_state_bytes(load, sharding, shards, state_bytes);
}

void ms_rank_memory(const ms_workload *workload, const ms_rank_load *load,
                    ms_sharding sharding, const ms_shard_sizes *shards,
                    double parts[MS_NUM_MEMORY_CATEGORIES])
{
    const ms_stack *stack = workload->stack;
    bool params_sharded = sharding == MS_ZERO_3 || sharding == MS_ZERO_3_NO_RESHARD;
    parts[MS_MEMORY_PARAMS] =
        param_bytes(workload) * ms_rank_params(load, shards, params_sharded) +
        frozen_bytes(load, shards, params_sharded);
    bool grads_on_host =
        stack->host_optimizer == MS_HOST_UPDATE && stack->offloads_gradients;
    parts[MS_MEMORY_GRADS] = (grads_on_host ? 0.0 : stack->grad_bytes.value) *
                                 ms_rank_params(load, shards, ms_shards_grads(sharding)) +
                             load->head_grad_bytes +
                             more_gradients_bytes(stack, load, shards);
    /* backward frees activations and makes gradients: the peak is at one of its ends */
    if (stack->frees_gradients && load->is_only_backward)
        parts[MS_MEMORY_GRADS] = ms_max(
            0.0, parts[MS_MEMORY_GRADS] - load->activation_bytes - load->logits_bytes);
    parts[MS_MEMORY_OPTIMIZER] =
        stack->host_optimizer != MS_HOST_NO_OPTIMIZER
            ? 0.0
            : ms_rank_state_bytes(load, sharding, shards,
                                  stack->master_bytes.value + stack->moment_bytes.value);
    parts[MS_MEMORY_ACTIVATIONS] = load->activation_bytes;
    parts[MS_MEMORY_LOGITS] = load->logits_bytes;
    parts[MS_MEMORY_GATHERED_PARAMS] = gathered_bytes(workload, load, sharding, shards);
    parts[MS_MEMORY_COMM_BUFFERS] = load->buffer_bytes;
    parts[MS_MEMORY_CONTEXT] = workspace_bytes(workload, load);
    double allocated = 0.0;
    for (int i = 0; i <= MS_MEMORY_CONTEXT; i++)
        allocated += parts[i];
    parts[MS_MEMORY_FRAGMENTATION] =
        stack->fragmentation_frac.value * allocated +
        shards->num_losses * stack->loss_reserve_frac.value * load->logits_bytes;
    if (stack->counts_context) {
        parts[MS_MEMORY_COMM_BUFFERS] += communicators_bytes(workload, shards);
        parts[MS_MEMORY_CONTEXT] += context_bytes(workload);
    }
}
