#include "sim/step/unit_overlap.h"

#include "base/number.h"
#include "sim/step/overlap.h"

#include <math.h>

/* Seconds until work, and communication beside it, are both done. The host launches the
 * work meanwhile, however much communication slows it. */
static double overlapped_s(const ms_unit_overlap *walk, ms_work w, double comm_s)
{
    return comm_s > 0.0 ? ms_max(w.busy_s,
                                 ms_overlap_s(walk->interference_frac,
                                              w.busy_s - w.host_s, w.contended_s, comm_s))
                        : w.busy_s;
}

/* Seconds of work slowed by communication at the same time, which may end later. */
static double slowed_s(const ms_unit_overlap *walk, ms_work w, double comm_s)
{
    double gpu_s = w.busy_s - w.host_s;
    return comm_s > 0.0
               ? ms_max(w.busy_s, gpu_s + ms_slowed_s(walk->interference_frac, gpu_s,
                                                      w.contended_s, comm_s))
               : w.busy_s;
}

/* Seconds of work whose kernels and communication take longer by a fraction. */
static double lengthened_s(ms_work w, double frac)
{
    return ms_max(w.busy_s, (w.busy_s - w.host_s) * (1.0 + frac));
}

/* Adds `count` blocks that each compute for work_s and then transfer for moved_s: compute
 * of one block overlaps with transfers of those before it. */
static void pass_lane(ms_lane *lane, double work_s, double moved_s, double count)
{
    double first_s = ms_max(lane->moved_s, lane->worked_s + work_s);
    lane->worked_s += count * work_s;
    lane->moved_s = ms_max(first_s + count * moved_s, lane->worked_s + moved_s);
}

static ms_work times(double blocks, ms_work w)
{
    return (ms_work){blocks * w.busy_s, blocks * w.host_s, blocks * w.contended_s};
}

/* Seconds in which the last backward of a step reduces a unit's gradients. */
static double last_reduce_s(const ms_moved_unit *unit)
{
    return unit->reduce_s +
           (unit->block != NULL ? unit->blocks * unit->block->replicate_s : 0.0);
}

/* Adds transfers of the current blocks that delay no block's compute. */
static void add_transfers(ms_unit_overlap *walk, ms_work forward, ms_work whole,
                          ms_work weight, const ms_moved_unit *before, double count)
{
    const ms_block_cost *block = walk->at.block;
    double blocks = walk->at.blocks, before_s = before->reduce_s;
    double replicate_s = blocks * block->replicate_s;
    double shards_s = blocks * block->reduce_s + replicate_s;
    pass_lane(&walk->whole, slowed_s(walk, whole, before_s), walk->at.reduce_s, count);
    pass_lane(&walk->weight, slowed_s(walk, weight, before_s), walk->at.reduce_s, count);
    pass_lane(&walk->last_weight, slowed_s(walk, weight, last_reduce_s(before)),
              walk->at.reduce_s + replicate_s, count);
    const double moved_s[] = {[MS_REDUCES_SHARDS] = shards_s,
                              [MS_REDUCES_WHOLE] = blocks * block->all_reduce_s};
    for (int i = 0; i < MS_NUM_STEP_REDUCTIONS; i++) {
        pass_lane(&walk->last[i], lengthened_s(whole, walk->slow_backward_frac[i]),
                  moved_s[i], count);
        pass_lane(&walk->last_half[i], lengthened_s(weight, walk->slow_weight_frac[i]),
                  moved_s[i], count);
        walk->out->last_unit_s[i] = moved_s[i];
    }
    pass_lane(&walk->gathers, lengthened_s(forward, walk->slow_forward_frac),
              blocks * block->gather_s, count);
    walk->out->first_gather_s = blocks * block->gather_s;
}

/* Adds `count` blocks to a step's last backward. The next block's gather comes after the
 * previous block's reduction; without a gather, reductions may outlast compute. */
static void add_last_backward(ms_unit_overlap *walk, ms_work whole, double each_s,
                              double gather_s, double count)
{
    ms_unit_times *t = walk->out;
    double worked_s = count * slowed_s(walk, whole, each_s + gather_s);
    double moved_s = walk->pending_reduce_s + count * (each_s + gather_s);
    if (gather_s > 0.0) {
        double contended_s = ms_min(count * whole.contended_s, moved_s);
        t->last_backward_s += ms_max(worked_s, moved_s + contended_s);
        walk->pending_reduce_s = 0.0;
        return;
    }
    t->last_backward_s += worked_s;
    walk->pending_reduce_s = ms_max(moved_s - worked_s, 0.0);
}

/* Adds the transfers at the end of a backward, and at the start of a forward. */
static void add_ends(ms_unit_overlap *walk)
{
    const ms_moved_unit *at = &walk->at;
    ms_unit_times *t = walk->out;
    t->tail_s = walk->pending_reduce_s + last_reduce_s(at);
    /* no compute hides a backward's last reduction, nor a forward's first gather */
    t->backward_s += at->reduce_s;
    t->forward_s += at->gather_s;
}

/* Adds the times of `count` current units. A backward runs `before`, the current units,
 * then `after`; a forward runs them in the reverse order. */
static void add_blocks(ms_unit_overlap *walk, const ms_moved_unit *before,
                       const ms_moved_unit *after, double count)
{
    const ms_block_cost *block = walk->at.block;
    double n = walk->at.blocks, regather_s = walk->at.regather_s;
    ms_unit_times *t = walk->out;
    ms_work forward = times(n, (ms_work){block->forward_s, block->forward_host_s,
                                         block->contended_forward_s}),
            whole = times(n, (ms_work){block->backward_s, block->backward_host_s,
                                       block->contended_backward_s}),
            weight = times(n, (ms_work){block->weight_s, block->weight_host_s,
                                        block->contended_weight_s}),
            input = times(n, (ms_work){block->input_s, block->input_host_s,
                                       block->contended_input_s});
    /* the stage's last unit: the backward gathers it again */
    if (before->block == NULL) {
        double forward_s = slowed_s(walk, forward, regather_s);
        double exposed_s = ms_max(regather_s - forward_s, 0.0);
        t->forward_s += forward_s;
        t->regather_s = regather_s;
        t->late_gather_s = exposed_s;
    } else {
        t->forward_s += count * overlapped_s(walk, forward, before->gather_s);
    }
    t->backward_s +=
        count * overlapped_s(walk, whole, before->reduce_s + after->regather_s);
    t->input_s += count * overlapped_s(walk, input, after->regather_s);
    add_transfers(walk, forward, whole, weight, before, count);
    add_last_backward(walk, whole, last_reduce_s(before), after->regather_s, count);
    if (after->block == NULL)
        add_ends(walk);
}

static void add_current_blocks(ms_unit_overlap *walk, const ms_moved_unit *next)
{
    const ms_moved_unit *at = &walk->at;
    if (at->block == NULL)
        return;
    double count = at->count;
    add_blocks(walk, &walk->before, count > 1.0 ? at : next, 1.0);
    if (count > 2.0)
        add_blocks(walk, at, at, count - 2.0);
    if (count > 1.0)
        add_blocks(walk, at, next, 1.0);
}

/* Adds `count` equal units of so many equal blocks. */
static void pass_units(ms_unit_overlap *walk, const ms_block_cost *block,
                       const ms_block_cost *moved, double blocks, double count)
{
    double gather_s = blocks * (moved->gather_s + moved->frozen_gather_s);
    ms_moved_unit next = {.block = block,
                          .blocks = blocks,
                          .gather_s = gather_s,
                          .regather_s = gather_s - blocks * moved->regather_saved_s,
                          .reduce_s = blocks * moved->reduce_s,
                          .count = count};
    add_current_blocks(walk, &next);
    walk->before = walk->at;
    walk->at = next;
}

void ms_unit_overlap_pass(ms_unit_overlap *walk, const ms_block_cost *block,
                          const ms_block_cost *moved, double count)
{
    double blocks = ms_max(block->unit_layers, 1.0), units = floor(count / blocks);
    double rest = count - units * blocks;
    if (rest > 0.0)
        pass_units(walk, block, moved, rest, 1.0);
    if (units > 0.0)
        pass_units(walk, block, moved, blocks, units);
}

/* ---- periods ---- */

#define NUM_LANES (4 + 2 * MS_NUM_STEP_REDUCTIONS)

static void list_lanes(ms_unit_overlap *walk, ms_lane *lanes[NUM_LANES])
{
    int num = 0;
    lanes[num++] = &walk->whole;
    lanes[num++] = &walk->weight;
    lanes[num++] = &walk->last_weight;
    lanes[num++] = &walk->gathers;
    for (int i = 0; i < MS_NUM_STEP_REDUCTIONS; i++) {
        lanes[num++] = &walk->last[i];
        lanes[num++] = &walk->last_half[i];
    }
}

/* One period from lanes that begin with `lane` and the given pending reductions. */
static ms_unit_overlap one_period(const ms_unit_overlap *walk,
                                  const ms_block_group *groups, int num, ms_lane lane,
                                  double pending_s)
{
    ms_unit_times times = {0};
    ms_unit_overlap one = *walk;
    ms_lane *lanes[NUM_LANES];
    one.out = &times;
    one.pending_reduce_s = pending_s;
    list_lanes(&one, lanes);
    for (int i = 0; i < NUM_LANES; i++)
        *lanes[i] = lane;
    for (int i = 0; i < num; i++)
        ms_unit_overlap_pass(&one, groups[i].block, groups[i].block, groups[i].count);
    one.out = NULL;
    return one;
}

/* Adds the seconds of so many periods; returns those of one's last backward. */
static double add_times(ms_unit_overlap *walk, const ms_block_group *groups, int num,
                        double times)
{
    ms_unit_times of_one = {0}, *out = walk->out;
    ms_unit_overlap one = *walk;
    one.out = &of_one;
    for (int i = 0; i < num; i++)
        ms_unit_overlap_pass(&one, groups[i].block, groups[i].block, groups[i].count);
    out->forward_s += times * of_one.forward_s;
    out->backward_s += times * of_one.backward_s;
    out->input_s += times * of_one.input_s;
    out->last_backward_s += times * of_one.last_backward_s;
    return of_one.last_backward_s;
}

static bool gathers_any(const ms_block_group *groups, int num)
{
    bool any = false;
    for (int i = 0; i < num; i++)
        any = any || groups[i].block->gather_s + groups[i].block->frozen_gather_s >
                         groups[i].block->regather_saved_s;
    return any;
}

/* Transfers of more_s beyond the compute, after `times` periods: each adds lag.moved_s, and
 * after the first they are at least lag.worked_s above the compute so far, of which each
 * period adds work_s. */
static double after_periods_s(double more_s, double work_s, ms_lane lag, double times)
{
    return ms_max(more_s + times * lag.moved_s,
                  lag.worked_s + (times - 1.0) * ms_max(work_s, lag.moved_s));
}

void ms_unit_overlap_repeat(ms_unit_overlap *walk, const ms_block_group *groups, int num,
                            double times)
{
    const ms_lane no_transfers = {0.0, -INFINITY}, no_work = {-INFINITY, 0.0};
    double last_s = add_times(walk, groups, num, times);
    /* reductions of a whole period's backward never run out within it */
    ms_unit_overlap late = one_period(walk, groups, num, no_work, last_s);
    ms_unit_overlap early = one_period(walk, groups, num, no_transfers, -INFINITY);
    ms_lane *lanes[NUM_LANES], *moved[NUM_LANES], *worked[NUM_LANES];
    list_lanes(walk, lanes);
    list_lanes(&late, moved);
    list_lanes(&early, worked);
    for (int i = 0; i < NUM_LANES; i++) {
        ms_lane lag = {worked[i]->moved_s, moved[i]->moved_s};
        double work_s = worked[i]->worked_s, before_s = lanes[i]->worked_s;
        lanes[i]->moved_s =
            before_s + after_periods_s(lanes[i]->moved_s - before_s, work_s, lag, times);
        lanes[i]->worked_s = before_s + times * work_s;
    }
    /* where a block gathers, all periods leave as many reductions pending as the first */
    ms_lane pending = {early.pending_reduce_s, late.pending_reduce_s - last_s};
    if (!gathers_any(groups, num))
        walk->pending_reduce_s =
            after_periods_s(walk->pending_reduce_s, 0.0, pending, times);
}

void ms_unit_overlap_end(ms_unit_overlap *walk)
{
    add_current_blocks(walk, &(ms_moved_unit){0});
    walk->out->reduced_backward_s = walk->whole.moved_s;
    walk->out->weight_s = walk->weight.moved_s;
    walk->out->last_weight_s = walk->last_weight.worked_s;
    walk->out->weight_tail_s = walk->last_weight.moved_s - walk->last_weight.worked_s;
    walk->out->slowed_forward_s = walk->gathers.worked_s;
    walk->out->gathering_s = walk->gathers.moved_s - walk->gathers.worked_s;
    for (int i = 0; i < MS_NUM_STEP_REDUCTIONS; i++) {
        walk->out->slowed_backward_s[i] = walk->last[i].worked_s;
        walk->out->slowed_weight_s[i] = walk->last_half[i].worked_s;
        walk->out->late_s[i] = walk->last[i].moved_s - walk->last[i].worked_s;
        walk->out->weight_late_s[i] =
            walk->last_half[i].moved_s - walk->last_half[i].worked_s;
    }
}
