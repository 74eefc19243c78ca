/* Gathers parameters and reduces gradients around the blocks of a forward or backward, as
 * in sim/simulate/step_graph_state.c: ZeRO-3 gathers one block ahead, gradients are
 * reduced per block. */
#include "exec/runner/rank_run.h"

#include "sim/simulate/interference.h"
#include "sim/simulate/move_names.h"

static ms_sharding sharding_of(const ms_walk_run *w)
{
    return w->r->rank.planned->sharding;
}

/* Records the time since `start_s`, which the host spent on starting a transfer and
 * allocating its buffers. The transfer itself is counted by the slice of its wait. */
static void record_work(ms_rank_run *r, ms_stream stream, const char *name,
                        double start_s)
{
    ms_rank_run_record_wait(r, stream, name, true, start_s);
}

static ms_status wait_recorded(ms_walk_run *w, ms_event event, ms_stream stream,
                               const char *name)
{
    const ms_rank *rank = &w->r->rank;
    double start_s = ms_rank_run_clock(w->r);
    if (event == 0)
        return MS_OK;
    MS_TRY(rank->backend->wait(rank->cx, rank->device, event));
    ms_rank_run_record_wait(w->r, stream, name, false, start_s);
    return MS_OK;
}

/* ---- parameters ---- */

/* Starts a stage's gathers; blocks that need none get the previous gather's event. */
static ms_status gather_stage(ms_rank_run *r, ms_rank_stage *stage)
{
    ms_event last = 0;
    for (int i = 0; i < stage->num_blocks; i++) {
        ms_event done;
        MS_TRY(ms_unit_gather(&r->rank, stage->blocks[i].unit, NULL, 0, &done));
        last = done != 0 ? done : last;
        stage->gathered[i] = last;
    }
    return MS_OK;
}

ms_status ms_state_gather_all(ms_rank_run *r)
{
    double start_s = ms_rank_run_clock(r);
    if (!r->job->gathers_once)
        return MS_OK;
    for (int s = 0; s < r->num_stages; s++)
        MS_TRY(gather_stage(r, &r->stages[s]));
    record_work(r, MS_STREAM_GATHER, MS_MOVE_GATHER, start_s);
    return MS_OK;
}

static ms_status gather(ms_walk_run *w, int block, const ms_event *after, int num)
{
    double start_s = ms_rank_run_clock(w->r);
    MS_TRY(ms_unit_gather(&w->r->rank, ms_walk_run_block(w, block)->unit, after, num,
                          &w->params));
    if (w->params != 0)
        record_work(w->r, MS_STREAM_GATHER, MS_MOVE_GATHER, start_s);
    return MS_OK;
}

/* Whether the parameter gather of a walk's first block starts early, along with the last
 * block of the previous action: only in backwards. */
static bool gathers_early(const ms_walk_run *w)
{
    return w->r->job->overlaps && w->block == 0 && w->pass != MS_BLOCK_PASS_FORWARD;
}

/* Cost of the walk's block number `block`; NULL: there is none. */
static const ms_block_cost *cost_of_block(const ms_walk_run *w, int block)
{
    return block >= 0 && block < w->stage->num_blocks
               ? ms_walk_run_block(w, block)->plan->ops->block
               : NULL;
}

static bool is_layer(const ms_walk_run *w, int block)
{
    return ms_walk_run_block(w, block)->plan->program->key.block == MS_BLOCK_LAYER;
}

static ms_interference interference_of(const ms_walk_run *w)
{
    long layer = w->block - !is_layer(w, 0);
    bool in_pair = is_layer(w, w->block) && layer < w->num_pairs;
    return (ms_interference){.in_pair = in_pair,
                             .pair_host_s = in_pair ? w->pair_host_s[layer] : 0.0,
                             .block = cost_of_block(w, w->block),
                             .before = cost_of_block(w, w->block - 1),
                             .next = cost_of_block(w, w->block + 1),
                             .before_blocks = 1.0, /* a run's units are blocks */
                             .next_blocks = 1.0,
                             .stage = w->stage->sums,
                             .forward = w->pass == MS_BLOCK_PASS_FORWARD,
                             .inputs = w->inputs,
                             .weights = w->weights,
                             .first_forward = w->first_forward,
                             .last_backward = w->last_backward};
}

/* On virtual clocks, lengthens the gather of the next block by what the current block
 * communicates over its links meanwhile. */
static ms_status contend(ms_walk_run *w)
{
    const ms_rank *rank = &w->r->rank;
    ms_interference at = interference_of(w);
    ms_transfer transfer = {.kind = MS_TRANSFER_SEND,
                            .stream = MS_STREAM_GATHER,
                            .peer = rank->place->rank,
                            .name = MS_MOVE_GATHER,
                            .predicted_s = ms_contention_s(rank->planned, &at)};
    if (rank->backend->has_values || transfer.predicted_s <= 0.0)
        return MS_OK;
    ms_event after = w->params;
    return rank->backend->start(rank->cx, rank->device, &transfer, &after, 1, &w->params);
}

/* Waits for the parameter gather of the current block, then starts that of the next
 * block, which overlaps with the current block's kernels. */
static ms_status gather_for_block(ms_walk_run *w)
{
    bool overlaps = w->r->job->overlaps;
    const ms_event *after;
    int num;
    if (!overlaps || (w->block == 0 && w->pass == MS_BLOCK_PASS_FORWARD)) {
        after = ms_walk_run_after(w, &num);
        MS_TRY(gather(w, w->block, after, num));
    }
    ms_walk_run_arrives(w, w->params);
    if (w->r->rank.backend->has_values) {
        MS_TRY(wait_recorded(w, w->params, MS_STREAM_GATHER, MS_MOVE_GATHER));
        MS_TRY(ms_walk_run_wait_arrivals(w));
        MS_TRY(ms_unit_restore(&w->r->rank, ms_walk_run_block(w, w->block)->unit));
    }
    if (!overlaps || w->block + 1 == w->stage->num_blocks)
        return MS_OK;
    after = ms_walk_run_after(w, &num);
    MS_TRY(gather(w, w->block + 1, after, num));
    return contend(w);
}

static ms_status wait_for_block(ms_walk_run *w, ms_event gathered)
{
    ms_walk_run_arrives(w, gathered);
    return w->r->rank.backend->has_values
               ? wait_recorded(w, gathered, MS_STREAM_GATHER, MS_MOVE_GATHER)
               : MS_OK;
}

/* Makes the first forward of a stage wait until the current block's parameters are
 * gathered; without overlap, those of all blocks of the rank. */
static ms_status wait_for_gathered(ms_walk_run *w)
{
    if (w->r->job->overlaps)
        return wait_for_block(w, w->stage->gathered[w->block]);
    for (int s = 0; s < w->r->num_stages; s++) {
        const ms_rank_stage *stage = &w->r->stages[s];
        if (stage->num_blocks > 0)
            MS_TRY(wait_for_block(w, stage->gathered[stage->num_blocks - 1]));
    }
    return MS_OK;
}

ms_status ms_state_before_block(ms_walk_run *w)
{
    ms_sharding sharding = sharding_of(w);
    bool forward = w->pass == MS_BLOCK_PASS_FORWARD;
    bool gathers = sharding == MS_ZERO_3 && (forward || w->inputs);
    if (gathers && gathers_early(w))
        MS_TRY(gather(w, w->block, &w->r->block_start, 1));
    if (w->block == 0 && w->pass != MS_BLOCK_PASS_BACKWARD_WEIGHT && !w->received)
        MS_TRY(ms_receive_for(w, &w->carried));
    if (gathers)
        MS_TRY(gather_for_block(w));
    if (w->r->job->gathers_once && w->first_forward)
        MS_TRY(wait_for_gathered(w));
    w->r->block_start = w->ready;
    if (w->r->rank.backend->has_values)
        MS_TRY(ms_walk_run_wait_arrivals(w));
    if (!forward && w->weights && ms_shards_grads(sharding)) {
        double start_s = ms_rank_run_clock(w->r);
        MS_TRY(
            ms_unit_begin_gradients(&w->r->rank, ms_walk_run_block(w, w->block)->unit));
        record_work(w->r, MS_STREAM_REDUCE, MS_MOVE_REDUCE, start_s);
    }
    return MS_OK;
}

/* ---- gradients ---- */

/* Ends a block's gradient reduction. Real backends first wait for `reduced`, as the
 * reduction buffers are reused; simulating backends do not. */
static ms_status end_reduction(ms_walk_run *w, ms_param_unit *unit)
{
    const ms_rank *rank = &w->r->rank;
    if (rank->backend->has_values)
        MS_TRY(wait_recorded(w, w->r->reduced, MS_STREAM_REDUCE, MS_MOVE_REDUCE));
    double start_s = ms_rank_run_clock(w->r);
    MS_TRY(ms_unit_end_reduction(&w->r->rank, unit));
    record_work(w->r, MS_STREAM_REDUCE, MS_MOVE_REDUCE, start_s);
    return MS_OK;
}

static void note_reduced(ms_rank_run *r, ms_event done)
{
    r->reduced = done != 0 ? done : r->reduced;
}

/* Adds to `last_moves` a reduction begun at `start_s`; move.done 0: there is none. */
static void note_last_move(ms_rank_run *r, ms_last_move move, double start_s)
{
    if (move.done == 0)
        return;
    note_reduced(r, move.done);
    record_work(r, (ms_stream)move.stream, move.name, start_s);
    r->last_moves[r->num_last_moves++] = move;
}

static ms_status reduce_last(ms_rank_run *r, const ms_rank_block *block, ms_event ready)
{
    ms_sharding sharding = r->rank.planned->sharding;
    ms_event done = 0;
    double start_s = ms_rank_run_clock(r);
    if (!ms_shards_grads(sharding)) {
        MS_TRY(ms_unit_reduce_last(&r->rank, block->unit, &ready, 1, &done));
        note_last_move(r, (ms_last_move){MS_MOVE_REDUCE, MS_STREAM_REDUCE, done},
                       start_s);
    }
    if (sharding == MS_ZERO_0)
        return MS_OK;
    done = 0;
    start_s = ms_rank_run_clock(r);
    MS_TRY(ms_unit_replicate(&r->rank, block->unit, &ready, 1, &done));
    note_last_move(r, (ms_last_move){MS_MOVE_REPLICATE, MS_STREAM_REDUCE, done}, start_s);
    return MS_OK;
}

static ms_status reduce_over_tp(ms_rank_run *r, const ms_rank_block *block,
                                ms_event ready)
{
    ms_event after[2] = {ready, r->reduced}, done = 0;
    double start_s = ms_rank_run_clock(r);
    MS_TRY(ms_unit_reduce_over_tp(&r->rank, block->unit, after, 2, &done));
    note_last_move(r, (ms_last_move){MS_MOVE_TP_SYNC, MS_STREAM_TP, done}, start_s);
    return MS_OK;
}

/* Whether a block's gradients are reduced only after all actions of a step. So, in real
 * backends, are those of an embedding tied to a head on its rank: a schedule from a file
 * may run the head's last backward later than the embedding's. */
static bool is_reduced_late(const ms_rank_run *r, const ms_rank_block *block)
{
    const ms_planned *planned = r->rank.planned;
    return r->rank.backend->has_values && planned->schedule->shape.table != NULL &&
           ms_head_shares_weights(planned->workload) &&
           block->plan->program->key.block == MS_BLOCK_EMBED &&
           ms_split_ends_meet(planned->pipeline.split);
}

static ms_status reduce_last_now(ms_walk_run *w, const ms_rank_block *block)
{
    return is_reduced_late(w->r, block) ? MS_OK : reduce_last(w->r, block, w->ready);
}

static ms_reduction_time reduces_when(const ms_walk_run *w)
{
    const ms_planned *planned = w->r->job->planned;
    return ms_stage_reduces_when(planned->workload->stack, w->stage->sums,
                                 planned->sharding);
}

static void wait_for_reductions(ms_walk_run *w)
{
    w->ready = w->r->reduced;
}

ms_status ms_state_after_block(ms_walk_run *w)
{
    const ms_job *job = w->r->job;
    ms_sharding sharding = sharding_of(w);
    ms_rank_block *block = ms_walk_run_block(w, w->block);
    ms_interference at = interference_of(w);
    bool forward = w->pass == MS_BLOCK_PASS_FORWARD;
    if (sharding == MS_ZERO_3 && (forward || w->inputs))
        ms_unit_release(&w->r->rank, block->unit);
    double slowed_s = ms_interference_s(job->planned, &at, job->gathers_once);
    MS_TRY(ms_walk_run_spend(w, slowed_s));
    MS_TRY(ms_walk_run_spend(w, ms_host_wait_s(&at, slowed_s)));
    if (forward || !w->weights)
        return MS_OK;
    if (ms_shards_grads(sharding)) {
        ms_event done = 0;
        double start_s = ms_rank_run_clock(w->r);
        MS_TRY(ms_unit_reduce(&w->r->rank, block->unit, &w->ready, 1, &done));
        record_work(w->r, MS_STREAM_REDUCE, MS_MOVE_REDUCE, start_s);
        note_reduced(w->r, done);
        MS_TRY(end_reduction(w, block->unit));
        w->reduces = w->reduces || done != 0;
        if (!job->overlaps && done != 0)
            wait_for_reductions(w);
    }
    bool now = w->last_backward && reduces_when(w) == MS_REDUCE_BY_UNIT;
    return now ? reduce_last_now(w, block) : MS_OK;
}

/* On virtual clocks, times the gradient exchange between the two copies of a stage; real
 * backends exchange after all actions (exec/runner/step_end.c). */
static ms_status exchange_with_replica(ms_walk_run *w, const ms_rank_stage *stage)
{
    const ms_rank *rank = &w->r->rank;
    const ms_planned *planned = rank->planned;
    if (rank->backend->has_values ||
        ms_schedule_placement(planned->schedule->shape.kind) != MS_PLACE_BOTH_WAYS)
        return MS_OK;
    ms_transfer transfer = {
        .kind = MS_TRANSFER_SEND,
        .stream = MS_STREAM_REDUCE,
        .peer = rank->place->rank,
        .name = MS_MOVE_REPLICA,
        .predicted_s = ms_replica_s(&planned->pipeline, stage->sums, planned->sharding)};
    ms_event after[2] = {w->ready, w->r->reduced}, done = 0;
    if (transfer.predicted_s <= 0.0)
        return MS_OK;
    MS_TRY(rank->backend->start(rank->cx, rank->device, &transfer, after, 2, &done));
    note_reduced(w->r, done);
    return MS_OK;
}

static ms_status sum_over_tp(ms_walk_run *w, const ms_rank_stage *stage)
{
    for (int i = 0; i < stage->num_blocks; i++)
        if (!is_reduced_late(w->r, &stage->blocks[i]))
            MS_TRY(reduce_over_tp(w->r, &stage->blocks[i], w->ready));
    return MS_OK;
}

static ms_status reduce_stage(ms_walk_run *w, const ms_rank_stage *stage)
{
    for (int i = 0; i < stage->num_blocks; i++)
        MS_TRY(reduce_last_now(w, &stage->blocks[i]));
    return MS_OK;
}

static ms_status for_all_stages(ms_walk_run *w,
                                ms_status (*move)(ms_walk_run *, const ms_rank_stage *))
{
    for (int s = 0; s < w->r->num_stages; s++)
        MS_TRY(move(w, &w->r->stages[s]));
    return MS_OK;
}

/* Starts reductions at the end of a forward or backward (docs/formulas 6.8). */
ms_status ms_state_after_walk(ms_walk_run *w)
{
    const ms_rank_run *r = w->r;
    ms_reduction_time when = reduces_when(w);
    bool goes_on = w->last_backward && when == MS_REDUCE_BY_UNIT;
    if (w->reduces && !goes_on)
        wait_for_reductions(w);
    if (!w->last_backward)
        return MS_OK;
    bool ends_rank = ms_schedule_last_complete(r->rank.planned->schedule,
                                               r->pipeline_rank) == w->stage->stage;
    if (when == MS_REDUCE_AFTER_STAGE)
        MS_TRY(reduce_stage(w, w->stage));
    if (!ends_rank)
        return MS_OK;
    if (when == MS_REDUCE_AFTER_RANK)
        MS_TRY(for_all_stages(w, reduce_stage));
    MS_TRY(for_all_stages(w, exchange_with_replica));
    return for_all_stages(w, sum_over_tp);
}

ms_status ms_state_reduce_late(ms_rank_run *r)
{
    for (int i = 0; i < r->num_blocks; i++) {
        if (!is_reduced_late(r, r->blocks[i]))
            continue;
        ms_event ready = r->rank.backend->mark(r->rank.device);
        MS_TRY(reduce_last(r, r->blocks[i], ready));
        MS_TRY(reduce_over_tp(r, r->blocks[i], ready));
    }
    return MS_OK;
}
