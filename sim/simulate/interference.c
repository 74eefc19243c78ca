#include "sim/simulate/interference.h"

#include "sim/step/overlap.h"

static double halves_s(const ms_interference *at, const ms_block_cost *block)
{
    return (at->inputs ? block->backward_s - block->weight_s : 0.0) +
           (at->weights ? block->weight_s : 0.0);
}

static double contended_halves_s(const ms_interference *at, const ms_block_cost *block)
{
    return (at->inputs ? block->contended_backward_s - block->contended_weight_s : 0.0) +
           (at->weights ? block->contended_weight_s : 0.0);
}

double ms_block_interference_s(const ms_planned *planned, const ms_interference *at)
{
    const ms_block_cost *block = at->block;
    double frac = planned->workload->stack->interference_frac.value;
    if (at->forward) {
        return ms_slowed_s(frac, block->forward_s, block->contended_forward_s,
                           block->gather_s);
    }
    double comm_s =
        (at->inputs ? block->gather_s : 0.0) + (at->weights ? block->reduce_s : 0.0);
    if (at->weights && at->last_backward)
        comm_s += block->replicate_s;
    return ms_slowed_s(frac, halves_s(at, block), contended_halves_s(at, block), comm_s);
}

/* Seconds by which transfers for the whole stage slow down a schedule action. */
static double stage_interference_s(const ms_planned *planned, const ms_interference *at,
                                   bool gathers_once)
{
    const ms_block_cost *sum = &at->stage->sum;
    ms_sharding sharding = planned->sharding;
    double frac = planned->workload->stack->interference_frac.value;
    if (at->forward) {
        bool gathers = at->first_forward && gathers_once && !at->stage->pipelined;
        return gathers ? ms_slowed_s(frac, sum->forward_s, sum->contended_forward_s,
                                     sum->gather_s)
                       : 0.0;
    }
    if (!at->weights)
        return 0.0;
    double comm_s = 0.0, reduce_s = sum->reduce_s;
    if (sharding == MS_ZERO_2)
        reduce_s += at->stage->tied_reduce_s;
    ms_reduction_time when =
        ms_stage_reduces_when(planned->workload->stack, at->stage, sharding);
    if (at->last_backward && when == MS_REDUCE_AFTER_STAGE)
        return 0.0;
    if (at->last_backward && when == MS_REDUCE_BY_UNIT) {
        comm_s = sharding == MS_ZERO_0   ? sum->all_reduce_s
                 : sharding == MS_ZERO_3 ? 0.0
                                         : reduce_s + sum->replicate_s;
    } else if (sharding == MS_ZERO_2) {
        comm_s = reduce_s;
    }
    return ms_slowed_s(frac, halves_s(at, sum), contended_halves_s(at, sum), comm_s);
}

double ms_action_interference_s(const ms_planned *planned, const ms_interference *at,
                                bool gathers_once)
{
    const ms_block_cost *sum = &at->stage->sum;
    double whole_s = at->forward ? sum->forward_s : halves_s(at, sum);
    double own_s = at->forward ? at->block->forward_s : halves_s(at, at->block);
    double share = whole_s > 0.0 ? own_s / whole_s : 0.0;
    return stage_interference_s(planned, at, gathers_once) * share;
}
