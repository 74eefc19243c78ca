#include "sim/simulate/interference.h"

#include "base/number.h"
#include "sim/step/overlap.h"

/* Seconds of the pass of one or more blocks. */
static ms_work work_of(const ms_interference *at, const ms_block_cost *block)
{
    if (at->forward)
        return (ms_work){block->forward_s, block->forward_host_s,
                         block->contended_forward_s};
    if (at->inputs && at->weights)
        return (ms_work){block->backward_s, block->backward_host_s,
                         block->contended_backward_s};
    return at->inputs
               ? (ms_work){block->input_s, block->input_host_s, block->contended_input_s}
               : (ms_work){block->weight_s, block->weight_host_s,
                           block->contended_weight_s};
}

static double slowed_s(double frac, ms_work w, double comm_s)
{
    return ms_slowed_s(frac, w.busy_s - w.host_s, w.contended_s, comm_s);
}

static double gather_s(const ms_block_cost *block, bool forward)
{
    return block->gather_s + block->frozen_gather_s -
           (forward ? 0.0 : block->regather_saved_s);
}

/* Seconds of the gathers and reductions of other blocks that move while the block runs. */
static double moved_beside_s(ms_sharding sharding, const ms_interference *at)
{
    double comm_s = 0.0;
    if (sharding == MS_ZERO_3 && (at->forward || at->inputs) && at->next != NULL)
        comm_s += at->next_blocks * gather_s(at->next, at->forward);
    /* a stage's backward gathers its last block again while the forward ends with that */
    if (sharding == MS_ZERO_3 && at->forward && at->next == NULL)
        comm_s += gather_s(at->block, false);
    if (!at->forward && at->weights && at->before != NULL) {
        bool replicates = sharding == MS_ZERO_3 && at->last_backward;
        double replicate_s = replicates ? at->before->replicate_s : 0.0;
        comm_s += at->before_blocks * (at->before->reduce_s + replicate_s);
    }
    return comm_s;
}

static double by_block_s(double frac, ms_sharding sharding, const ms_interference *at)
{
    return slowed_s(frac, work_of(at, at->block), moved_beside_s(sharding, at));
}

/* The block's share, by duration, of the seconds by which transfers of the whole stage slow
 * down an action. */
static double by_stage_s(double frac, ms_sharding sharding, const ms_interference *at)
{
    const ms_block_cost *sum = &at->stage->sum;
    ms_work whole = work_of(at, sum), own = work_of(at, at->block);
    double whole_s = whole.busy_s - whole.host_s;
    double tied_s = sharding == MS_ZERO_2 ? at->stage->tied_reduce_s : 0.0;
    double reduce_s = sharding == MS_ZERO_0 ? sum->all_reduce_s
                                            : sum->reduce_s + tied_s + sum->replicate_s;
    return whole_s > 0.0
               ? (own.busy_s - own.host_s) / whole_s *
                     slowed_s(frac, whole, at->forward ? sum->gather_s : reduce_s)
               : 0.0;
}

double ms_interference_s(const ms_planned *planned, const ms_interference *at,
                         bool gathers_once)
{
    const ms_stack *stack = planned->workload->stack;
    double frac = stack->interference_frac.value;
    ms_sharding sharding = planned->sharding;
    if (!ms_overlaps_sync(stack, sharding))
        return 0.0;
    if (sharding == MS_ZERO_3)
        return by_block_s(frac, sharding, at);
    if (at->forward)
        return at->first_forward && gathers_once && !at->stage->pipelined
                   ? by_stage_s(frac, sharding, at)
                   : 0.0;
    if (!at->weights)
        return 0.0;
    if (at->last_backward &&
        ms_stage_reduces_when(stack, at->stage, sharding) == MS_REDUCE_BY_UNIT)
        return by_stage_s(frac, sharding, at);
    return sharding == MS_ZERO_2 ? by_block_s(frac, sharding, at) : 0.0;
}

double ms_contention_s(const ms_planned *planned, const ms_interference *at)
{
    bool gathers = planned->sharding == MS_ZERO_3 && at->next != NULL &&
                   at->next->gather_s > 0.0 && (at->forward || at->inputs) &&
                   ms_overlaps_sync(planned->workload->stack, planned->sharding);
    return gathers ? ms_min(work_of(at, at->block).contended_s,
                            moved_beside_s(planned->sharding, at))
                   : 0.0;
}

double ms_launch_s(const ms_interference *at)
{
    ms_work w = work_of(at, at->block);
    return w.host_s > 0.0 ? w.busy_s : 0.0;
}

double ms_host_wait_s(const ms_interference *at, double interference_s)
{
    double host_s = at->in_pair ? at->pair_host_s : work_of(at, at->block).host_s;
    return ms_max(host_s - interference_s, 0.0);
}

static ms_stage_layout layout_of(const ms_planned *planned, int stage)
{
    return ms_split_layout(planned->pipeline.split, stage,
                           ms_plan_layer_mode(planned->plan),
                           planned->plan->recompute_layers);
}

/* A pair's wait counts a third in its forward, like the time of a host (ms_host_s). */
long ms_pair_host_waits(ms_arena *arena, const ms_planned *planned, int f, int b,
                        double **forward_s, double **backward_s)
{
    ms_stage_layout forward = layout_of(planned, f), backward = layout_of(planned, b);
    long num = ms_num_layer_pairs(&forward, &backward);
    *forward_s = MS_NEW_ARRAY(arena, num, double);
    *backward_s = MS_NEW_ARRAY(arena, num, double);
    ms_prices own = ms_planned_prices(planned, f);
    for (long i = 0; i < num; i++) {
        double host_s =
            ms_layer_pair_host_s(own.workload, own.blocks, &forward, &backward, i);
        (*forward_s)[i] = host_s / 3.0;
        (*backward_s)[i] = host_s - (*forward_s)[i];
    }
    return num;
}

int ms_comm_sms(const ms_workload *workload)
{
    double sms = (double)workload->cluster->device.num_sms;
    return (int)(0.5 + workload->stack->interference_frac.value * sms);
}
