#include "sim/simulate/interference.h"

#include "base/number.h"
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

/* Seconds of the gathers and reductions of other blocks that move while the block runs. */
static double moved_beside_s(ms_sharding sharding, const ms_interference *at)
{
    double comm_s = 0.0;
    if (sharding == MS_ZERO_3 && (at->forward || at->inputs) && at->next != NULL)
        comm_s += at->next->gather_s;
    /* a stage's backward gathers its last block again while the forward ends with that */
    if (sharding == MS_ZERO_3 && at->forward && at->next == NULL)
        comm_s += at->block->gather_s;
    if (!at->forward && at->weights && at->before != NULL)
        comm_s +=
            at->before->reduce_s +
            (sharding == MS_ZERO_3 && at->last_backward ? at->before->replicate_s : 0.0);
    return comm_s;
}

static double contended_s(const ms_interference *at)
{
    return at->forward ? at->block->contended_forward_s
                       : contended_halves_s(at, at->block);
}

static double by_block_s(double frac, ms_sharding sharding, const ms_interference *at)
{
    const ms_block_cost *block = at->block;
    double comm_s = moved_beside_s(sharding, at);
    double busy_s = at->forward ? block->forward_s : halves_s(at, block);
    return ms_slowed_s(frac, busy_s, contended_s(at), comm_s);
}

/* The block's share, by duration, of the seconds by which transfers of the whole stage slow
 * down an action. */
static double by_stage_s(double frac, ms_sharding sharding, const ms_interference *at)
{
    const ms_block_cost *sum = &at->stage->sum;
    double whole_s = at->forward ? sum->forward_s : halves_s(at, sum);
    double own_s = at->forward ? at->block->forward_s : halves_s(at, at->block);
    if (whole_s <= 0.0)
        return 0.0;
    if (at->forward)
        return own_s / whole_s *
               ms_slowed_s(frac, whole_s, sum->contended_forward_s, sum->gather_s);
    double tied_s = sharding == MS_ZERO_2 ? at->stage->tied_reduce_s : 0.0;
    double comm_s = sharding == MS_ZERO_0 ? sum->all_reduce_s
                                          : sum->reduce_s + tied_s + sum->replicate_s;
    return own_s / whole_s *
           ms_slowed_s(frac, whole_s, contended_halves_s(at, sum), comm_s);
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
    return gathers ? ms_min(contended_s(at), moved_beside_s(planned->sharding, at)) : 0.0;
}

int ms_comm_sms(const ms_workload *workload)
{
    double sms = (double)workload->cluster->device.num_sms;
    return (int)(0.5 + workload->stack->interference_frac.value * sms);
}
