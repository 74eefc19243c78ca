#include "sim/memory.h"

#include "base/number.h"

#include <string.h>

const char *const ms_memory_part_names[] = {
    "params",          "grads",        "optimizer", "activations",   "logits",
    "gathered_params", "comm_buffers", "context",   "fragmentation", NULL,
};

/* ---- load of a rank ---- */

static bool covers(const int *by, const int *counts, int width)
{
    for (int i = 0; i < width; i++)
        if (counts[i] > by[i])
            return false;
    return true;
}

/* Adds a vector unless another covers it, and drops those that it covers. */
static int add_vector(int *vectors, int num, int width, const int *counts)
{
    int kept = 0;
    for (int i = 0; i < num; i++)
        if (covers(vectors + (long)i * width, counts, width))
            return num;
    for (int i = 0; i < num; i++)
        if (!covers(counts, vectors + (long)i * width, width))
            memmove(vectors + (long)kept++ * width, vectors + (long)i * width,
                    (size_t)width * sizeof *counts);
    memcpy(vectors + (long)kept * width, counts, (size_t)width * sizeof *counts);
    return kept + 1;
}

static int distinct_of(const ms_run *run, int chunk)
{
    int i = 0;
    while (run->distinct[i] != run->classes[chunk])
        i++;
    return i;
}

ms_rank_live ms_rank_live_make(ms_arena *arena, const ms_run *run,
                               const ms_schedule *live, int rank)
{
    int first = live->first_live[rank], last = live->first_live[rank + 1],
        width = run->num_distinct;
    int virtual_stages = live->shape.virtual_stages;
    int *vectors = MS_NEW_ARRAY(arena, (long)(last - first) * width, int);
    int *counts = MS_NEW_ARRAY(arena, width, int);
    int num = 0;
    for (int i = first; i < last; i++) {
        memset(counts, 0, (size_t)width * sizeof *counts);
        for (int chunk = 0; chunk < virtual_stages; chunk++)
            counts[distinct_of(run, chunk)] +=
                live->live[(long)i * virtual_stages + chunk];
        num = add_vector(vectors, num, width, counts);
    }
    return (ms_rank_live){run, num, vectors};
}

int ms_num_neighbours(const ms_split *split, int rank)
{
    return (rank > 0) + (rank < split->num_ranks - 1);
}

static void add_states(ms_rank_load *load, const ms_stage *stage, double chunks)
{
    load->dense_params += chunks * stage->sum.dense_params;
    load->expert_params += chunks * stage->sum.expert_params;
    load->unit_dense_params = ms_max(load->unit_dense_params, stage->unit_dense_params);
    load->unit_expert_params =
        ms_max(load->unit_expert_params, stage->unit_expert_params);
}

/* What is alive beside the kept activations, at the two instants that can be the peak: while the head's backward runs (all
 * logits, the gradient of its matrix), and while a layer's does (the logits of that micro-batch are gone). */
typedef struct instants {
    double layer_transient_bytes, head_transient_bytes;
    double logits_bytes; /* of one micro-batch */
    double head_grad_bytes;
} instants;

static void set_peak(ms_rank_load *out, const instants *at, double kept_bytes,
                     double logits_bytes)
{
    double head_bytes = at->head_transient_bytes + at->head_grad_bytes + at->logits_bytes;
    bool at_head = at->logits_bytes > 0.0 && head_bytes > at->layer_transient_bytes;
    out->activation_bytes =
        kept_bytes + (at_head ? at->head_transient_bytes : at->layer_transient_bytes);
    out->logits_bytes =
        at_head ? logits_bytes : ms_max(logits_bytes - at->logits_bytes, 0.0);
    out->head_grad_bytes = at_head ? at->head_grad_bytes : 0.0;
}

static void find_peak(const ms_workload *workload, const ms_stage *stages,
                      const ms_rank_live *live, const instants *at, ms_rank_load *out)
{
    int width = live->run->num_distinct;
    double peak_bytes = -1.0;
    for (int i = 0; i < live->num_vectors; i++) {
        double bytes = 0.0, logits_bytes = 0.0;
        for (int j = 0; j < width; j++) {
            const ms_stage *stage = &stages[live->run->distinct[j]];
            double count = live->counts[(long)i * width + j];
            bytes += count * stage->sum.saved_bytes;
            logits_bytes += count * stage->logits * workload->stack->logit_bytes.value;
        }
        if (bytes + logits_bytes > peak_bytes) {
            peak_bytes = bytes + logits_bytes;
            set_peak(out, at, bytes, logits_bytes);
        }
    }
}

void ms_rank_load_make(const ms_workload *workload, const ms_stage *stages,
                       const ms_rank_live *live, double send_bytes, int num_neighbours,
                       ms_rank_load *out)
{
    instants at = {0};
    *out = (ms_rank_load){0};
    for (int i = 0; i < live->run->num_distinct; i++) {
        const ms_stage *stage = &stages[live->run->distinct[i]];
        add_states(out, stage, (double)live->run->multiplicity[i]);
        at.layer_transient_bytes =
            ms_max(at.layer_transient_bytes, stage->sum.transient_bytes);
        at.head_transient_bytes += stage->head_transient_bytes;
        at.logits_bytes += stage->logits * workload->stack->logit_bytes.value;
        at.head_grad_bytes += stage->head_params * workload->stack->head_grad_bytes.value;
    }
    find_peak(workload, stages, live, &at, out);
    /* per neighbour an activation and a gradient, received while the one before is used */
    out->buffer_bytes = 2.0 * send_bytes * num_neighbours;
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

/* Whole parameters and gradients that exist beside the shards. With ZeRO-3 the unit at work and the one fetched
 * ahead, and one unit's gradients on their way to the reduction. */
static double gathered_bytes(const ms_stack *stack, const ms_rank_load *load,
                             ms_sharding sharding, const ms_shard_sizes *shards)
{
    double param_bytes = stack->param_comm_bytes.value,
           grad_bytes = stack->grad_comm_bytes.value;
    double units[2] = {load->unit_dense_params, load->unit_expert_params};
    const double counts[2] = {shards->dense, shards->expert};
    double total = 0.0;
    for (int i = 0; i < 2; i++) {
        if (counts[i] <= 1.0 || sharding < MS_ZERO_2)
            continue;
        double whole = i == 0 ? load->dense_params : load->expert_params;
        if (ms_shards_grads(sharding))
            total += units[i] * grad_bytes;
        if (sharding == MS_ZERO_3)
            total += 2.0 * units[i] * param_bytes;
        else if (sharding == MS_ZERO_3_KEEP)
            total += whole * param_bytes;
    }
    return total;
}

void ms_rank_memory(const ms_workload *workload, const ms_rank_load *load,
                    ms_sharding sharding, const ms_shard_sizes *shards,
                    double parts[MS_NUM_MEMORY_PARTS])
{
    const ms_stack *stack = workload->stack;
    bool params_sharded = sharding == MS_ZERO_3 || sharding == MS_ZERO_3_KEEP;
    parts[MS_MEMORY_PARAMS] =
        stack->param_bytes.value * ms_rank_params(load, shards, params_sharded);
    parts[MS_MEMORY_GRADS] = stack->grad_bytes.value *
                                 ms_rank_params(load, shards, ms_shards_grads(sharding)) +
                             load->head_grad_bytes;
    parts[MS_MEMORY_OPTIMIZER] = (stack->master_bytes.value + stack->moment_bytes.value) *
                                 ms_rank_params(load, shards, sharding >= MS_ZERO_1);
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
        parts[MS_MEMORY_COMM_BUFFERS] +=
            shards->num_communicators * workload->profile->communicator_bytes.value;
        parts[MS_MEMORY_CONTEXT] = workload->profile->context_bytes.value;
    }
}
