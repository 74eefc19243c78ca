#include "sim/memory.h"

#include "base/number.h"

const char *const ms_memory_part_names[] = {
    "params",          "grads",        "optimizer", "activations",   "logits",
    "gathered_params", "comm_buffers", "context",   "fragmentation", NULL,
};

/* ---- load of a rank ---- */

static void add_states(ms_rank_load *load, const ms_workload *w, const ms_stage *stage)
{
    load->dense_params += stage->sum.dense_params;
    load->expert_params += stage->sum.expert_params;
    load->unit_dense_params = ms_max(load->unit_dense_params, stage->unit_dense_params);
    load->unit_expert_params = ms_max(load->unit_expert_params, stage->unit_expert_params);
    load->head_grad_bytes += stage->head_params * w->stack->head_grad_bytes.value;
}

/* What one vector of live micro-batches keeps; the logits among them apart. */
typedef struct kept {
    double bytes, logits_bytes;
} kept;

static kept kept_by(const ms_workload *w, const ms_split *split, const ms_stage *stages, int rank, const int *counts)
{
    kept sum = {0.0, 0.0};
    for (int s = rank; s < split->num_stages; s += split->num_ranks, counts++) {
        const ms_stage *stage = &stages[split->class_of_stage[s]];
        sum.bytes += *counts * stage->sum.saved_bytes;
        sum.logits_bytes += *counts * stage->logits * w->stack->logit_bytes.value;
    }
    return sum;
}

static void find_peak(const ms_workload *w, const ms_split *split, const ms_stage *stages, int rank,
                      const ms_schedule *live, ms_rank_load *out)
{
    int width = live->shape.virtual_stages;
    double peak_bytes = -1.0;
    for (int i = live->first_live[rank]; i < live->first_live[rank + 1]; i++) {
        kept sum = kept_by(w, split, stages, rank, live->live + (long)i * width);
        if (sum.bytes + sum.logits_bytes > peak_bytes) {
            peak_bytes = sum.bytes + sum.logits_bytes;
            out->activation_bytes = sum.bytes;
            out->logits_bytes = sum.logits_bytes;
        }
    }
}

void ms_rank_load_make(const ms_workload *w, const ms_split *split, const ms_stage *stages, int rank,
                       const ms_schedule *live, double send_bytes, ms_rank_load *out)
{
    double transient_bytes = 0.0;
    *out = (ms_rank_load){0};
    for (int s = rank; s < split->num_stages; s += split->num_ranks) {
        const ms_stage *stage = &stages[split->class_of_stage[s]];
        add_states(out, w, stage);
        transient_bytes = ms_max(transient_bytes, stage->sum.transient_bytes);
    }
    find_peak(w, split, stages, rank, live, out);
    out->activation_bytes += transient_bytes;
    if (split->num_ranks > 1) /* one activation and one gradient, each received while the one before is used */
        out->buffer_bytes = 2.0 * send_bytes * (rank == 0 || rank == split->num_ranks - 1 ? 1.0 : 2.0);
}

/* ---- states ---- */

ms_shard_sizes ms_shard_sizes_of(const ms_links *links)
{
    ms_shard_sizes sizes = {(double)links->sync_span[MS_SYNC_FSDP].size,
                            (double)links->sync_span[MS_SYNC_EXPERT_FSDP].size, 1};
    for (int axis = 0; axis < MS_NUM_BILL_AXES; axis++)
        sizes.num_communicators += links->span[axis].size > 1;
    sizes.num_communicators += links->sync_span[MS_SYNC_FSDP].size > 1;
    sizes.num_communicators += links->sync_span[MS_SYNC_REPLICATE].size > 1;
    sizes.num_communicators += links->pipeline_span.size > 1;
    return sizes;
}

static double sharded(const ms_rank_load *load, const ms_shard_sizes *shards, bool over_shards)
{
    if (!over_shards)
        return load->dense_params + load->expert_params;
    return load->dense_params / shards->dense + load->expert_params / shards->expert;
}

/* Whole parameters and gradients that exist beside the shards. With ZeRO-3 the unit at work and the one fetched
 * ahead, and one unit's gradients on their way to the reduction. */
static double gathered_bytes(const ms_stack *stack, const ms_rank_load *load, ms_sharding sharding,
                             const ms_shard_sizes *shards)
{
    double param_bytes = stack->param_comm_bytes.value, grad_bytes = stack->grad_comm_bytes.value;
    double units[2] = {load->unit_dense_params, load->unit_expert_params};
    const double counts[2] = {shards->dense, shards->expert};
    double total = 0.0;
    for (int i = 0; i < 2; i++) {
        if (counts[i] <= 1.0 || sharding < MS_ZERO_2)
            continue;
        double whole = i == 0 ? load->dense_params : load->expert_params;
        total += units[i] * grad_bytes;
        if (sharding == MS_ZERO_3)
            total += 2.0 * units[i] * param_bytes;
        else if (sharding == MS_ZERO_3_KEEP)
            total += whole * param_bytes;
    }
    return total;
}

void ms_rank_memory(const ms_workload *w, const ms_rank_load *load, ms_sharding sharding,
                    const ms_shard_sizes *shards, double parts[MS_NUM_MEMORY_PARTS])
{
    const ms_stack *stack = w->stack;
    bool params_sharded = sharding == MS_ZERO_3 || sharding == MS_ZERO_3_KEEP;
    parts[MS_MEMORY_PARAMS] = stack->param_bytes.value * sharded(load, shards, params_sharded);
    parts[MS_MEMORY_GRADS] =
        stack->grad_bytes.value * sharded(load, shards, sharding >= MS_ZERO_2) + load->head_grad_bytes;
    parts[MS_MEMORY_OPTIMIZER] = (stack->master_bytes.value + stack->moment_bytes.value) *
                                 sharded(load, shards, sharding >= MS_ZERO_1);
    parts[MS_MEMORY_ACTIVATIONS] = load->activation_bytes;
    parts[MS_MEMORY_LOGITS] = load->logits_bytes;
    parts[MS_MEMORY_GATHERED_PARAMS] = gathered_bytes(stack, load, sharding, shards);
    parts[MS_MEMORY_COMM_BUFFERS] = load->buffer_bytes;
    parts[MS_MEMORY_CONTEXT] = 0.0;
    double allocated = 0.0;
    for (int i = 0; i < MS_MEMORY_CONTEXT; i++)
        allocated += parts[i];
    parts[MS_MEMORY_FRAGMENTATION] = stack->fragmentation_frac.value * allocated;
    if (stack->counts_context) {
        parts[MS_MEMORY_COMM_BUFFERS] += shards->num_communicators * w->profile->communicator_bytes.value;
        parts[MS_MEMORY_CONTEXT] = w->profile->context_bytes.value;
    }
}
