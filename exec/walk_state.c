/* Parameters and gradients, part by part, as the step graph has them
 * (sim/step_graph_state.c): ZeRO-3 gathers one part ahead, gradients are reduced part by part. */
#include "exec/rank_run.h"

#include "sim/interference.h"
#include "sim/move_names.h"

static const ms_part_ops *ops_of(const ms_rank_part *part)
{
    return part->plan->ops;
}

static ms_sharding sharding_of(const ms_walk_run *w)
{
    return w->r->rank.planned->sharding;
}

/* On CPUs compute itself sets a transfer off, and makes room for what it moves: what that
 * took since `start_s`. The wait for it counts it. */
static void record_work(ms_rank_run *r, ms_stream stream, const char *name,
                        double start_s)
{
    ms_rank_run_record_wait(r, stream, name, true, start_s);
}

static double now_s(const ms_rank_run *r)
{
    return ms_rank_run_clock(r);
}

/* Compute waits for a transfer of parameters or gradients: with values, as a slice of
 * the record. */
static ms_status wait_recorded(ms_walk_run *w, ms_event event, ms_stream stream,
                               const char *name)
{
    const ms_rank *rank = &w->r->rank;
    double start_s = now_s(w->r);
    if (event == 0)
        return MS_OK;
    MS_TRY(rank->backend->wait(rank->cx, rank->device, event));
    ms_rank_run_record_wait(w->r, stream, name, false, start_s);
    return MS_OK;
}

/* ---- parameters ---- */

/* A part that has nothing to gather has come when those before it have. */
static ms_status gather_stage(ms_rank_run *r, ms_rank_stage *stage)
{
    ms_event last = 0;
    for (int i = 0; i < stage->num_parts; i++) {
        ms_event done;
        MS_TRY(ms_unit_gather(&r->rank, stage->parts[i].unit, NULL, 0, &done));
        last = done != 0 ? done : last;
        stage->gathered[i] = last;
    }
    return MS_OK;
}

ms_status ms_state_gather_all(ms_rank_run *r)
{
    double start_s = now_s(r);
    if (!r->job->gathers_once)
        return MS_OK;
    for (int s = 0; s < r->num_stages; s++)
        MS_TRY(gather_stage(r, &r->stages[s]));
    record_work(r, MS_STREAM_GATHER, MS_MOVE_GATHER, start_s);
    return MS_OK;
}

static ms_status gather(ms_walk_run *w, int part, const ms_event *after, int num)
{
    double start_s = now_s(w->r);
    MS_TRY(ms_unit_gather(&w->r->rank, ms_walk_run_part(w, part)->unit, after, num,
                          &w->params));
    if (w->params != 0)
        record_work(w->r, MS_STREAM_GATHER, MS_MOVE_GATHER, start_s);
    return MS_OK;
}

/* The first gather of a forward has nothing to hide behind; that of a backward starts
 * with the last part of the action before. */
static bool gathers_early(const ms_walk_run *w)
{
    return w->r->job->overlaps && w->part == 0 && w->pass != MS_PART_FORWARD;
}

/* Of other parts the gather was started with the part before. */
static ms_status gather_for_part(ms_walk_run *w)
{
    bool overlaps = w->r->job->overlaps;
    const ms_event *after;
    int num;
    if (!overlaps || (w->part == 0 && w->pass == MS_PART_FORWARD)) {
        after = ms_walk_run_after(w, &num);
        MS_TRY(gather(w, w->part, after, num));
    }
    ms_walk_run_arrives(w, w->params);
    if (w->r->rank.backend->has_values) {
        MS_TRY(wait_recorded(w, w->params, MS_STREAM_GATHER, MS_MOVE_GATHER));
        MS_TRY(ms_walk_run_settle(w));
    }
    if (!overlaps || w->part + 1 == w->stage->num_parts)
        return MS_OK;
    after = ms_walk_run_after(w, &num);
    return gather(w, w->part + 1, after, num);
}

static ms_status wait_for_part(ms_walk_run *w, ms_event gathered)
{
    ms_walk_run_arrives(w, gathered);
    return w->r->rank.backend->has_values
               ? wait_recorded(w, gathered, MS_STREAM_GATHER, MS_MOVE_GATHER)
               : MS_OK;
}

/* A stage's first forward takes parameters as they come; without overlap it waits for all
 * of its rank. */
static ms_status wait_for_gathered(ms_walk_run *w)
{
    if (w->r->job->overlaps)
        return wait_for_part(w, w->stage->gathered[w->part]);
    for (int s = 0; s < w->r->num_stages; s++) {
        const ms_rank_stage *stage = &w->r->stages[s];
        if (stage->num_parts > 0)
            MS_TRY(wait_for_part(w, stage->gathered[stage->num_parts - 1]));
    }
    return MS_OK;
}

static ms_status take_arrival(ms_walk_run *w)
{
    if (w->part > 0 || w->pass == MS_PART_BACKWARD_WEIGHT)
        return MS_OK;
    return ms_receive_for(w, &w->carried);
}

ms_status ms_state_before_part(ms_walk_run *w)
{
    ms_sharding sharding = sharding_of(w);
    bool forward = w->pass == MS_PART_FORWARD;
    bool gathers = sharding == MS_ZERO_3 && (forward || w->inputs);
    if (gathers && gathers_early(w))
        MS_TRY(gather(w, w->part, &w->r->part_start, 1));
    MS_TRY(take_arrival(w));
    if (gathers)
        MS_TRY(gather_for_part(w));
    if (w->r->job->gathers_once && w->first_forward)
        MS_TRY(wait_for_gathered(w));
    w->r->part_start = w->ready;
    if (w->r->rank.backend->has_values)
        MS_TRY(ms_walk_run_settle(w));
    if (!forward && w->weights && ms_shards_grads(sharding)) {
        double start_s = now_s(w->r);
        MS_TRY(ms_unit_begin_gradients(&w->r->rank, ms_walk_run_part(w, w->part)->unit));
        record_work(w->r, MS_STREAM_REDUCE, MS_MOVE_REDUCE, start_s);
    }
    return MS_OK;
}

/* ---- gradients ---- */

/* Rooms are used again: with values their contents have to be where they belong first.
 * The clock of predictions knows no such wait. */
static ms_status settle_reduction(ms_walk_run *w, ms_param_unit *unit)
{
    const ms_rank *rank = &w->r->rank;
    if (rank->backend->has_values)
        MS_TRY(wait_recorded(w, w->r->reduced, MS_STREAM_REDUCE, MS_MOVE_REDUCE));
    double start_s = now_s(w->r);
    MS_TRY(ms_unit_end_reduction(&w->r->rank, unit));
    record_work(w->r, MS_STREAM_REDUCE, MS_MOVE_REDUCE, start_s);
    return MS_OK;
}

static void note_reduced(ms_rank_run *r, ms_event done)
{
    r->reduced = done != 0 ? done : r->reduced;
}

/* A transfer that was set off since `start_s`; 0: there was none. */
static void note_last(ms_rank_run *r, ms_last_move move, double start_s)
{
    if (move.done == 0)
        return;
    note_reduced(r, move.done);
    record_work(r, (ms_stream)move.stream, move.name, start_s);
    r->last_moves[r->num_last_moves++] = move;
}

/* What a sharding moves once a step when the gradients are complete. */
static ms_status reduce_last(ms_rank_run *r, const ms_rank_part *part, ms_event ready)
{
    ms_sharding sharding = r->rank.planned->sharding;
    ms_event done = 0;
    double start_s = now_s(r);
    if (!ms_shards_grads(sharding)) {
        MS_TRY(ms_unit_reduce_last(&r->rank, part->unit, &ready, 1, &done));
        note_last(r, (ms_last_move){MS_MOVE_REDUCE, MS_STREAM_REDUCE, done}, start_s);
    }
    if (sharding == MS_ZERO_0)
        return MS_OK;
    done = 0;
    start_s = now_s(r);
    MS_TRY(ms_unit_replicate(&r->rank, part->unit, &ready, 1, &done));
    note_last(r, (ms_last_move){MS_MOVE_REPLICATE, MS_STREAM_REDUCE, done}, start_s);
    return MS_OK;
}

static ms_status reduce_over_tp(ms_rank_run *r, const ms_rank_part *part, ms_event ready)
{
    ms_event after[2] = {ready, r->reduced}, done = 0;
    double start_s = now_s(r);
    MS_TRY(ms_unit_reduce_over_tp(&r->rank, part->unit, after, 2, &done));
    note_last(r, (ms_last_move){MS_MOVE_TP_SYNC, MS_STREAM_TP, done}, start_s);
    return MS_OK;
}

/* A schedule from a file may run the last backward of a head after that of the embedding
 * on its rank, whose matrix it shares: with values such an embedding is reduced when all
 * actions are done. */
static bool is_reduced_late(const ms_rank_run *r, const ms_rank_part *part)
{
    const ms_planned *planned = r->rank.planned;
    return r->rank.backend->has_values && planned->schedule->shape.table != NULL &&
           planned->workload->model->tied_embeddings &&
           part->plan->program->key.part == MS_PART_EMBED &&
           ms_split_ends_meet(planned->pipeline.split);
}

static ms_status reduce_last_now(ms_walk_run *w, const ms_rank_part *part)
{
    return is_reduced_late(w->r, part) ? MS_OK : reduce_last(w->r, part, w->ready);
}

static ms_reduction_time reduces_when(const ms_walk_run *w)
{
    const ms_planned *planned = w->r->job->planned;
    return ms_stage_reduces_when(planned->workload->stack, w->stage->sums,
                                 planned->sharding);
}

static ms_interference interference_of(const ms_walk_run *w)
{
    return (ms_interference){.part = ops_of(ms_walk_run_part(w, w->part))->part,
                             .stage = w->stage->sums,
                             .forward = w->pass == MS_PART_FORWARD,
                             .inputs = w->inputs,
                             .weights = w->weights,
                             .first_forward = w->first_forward,
                             .last_backward = w->last_backward};
}

static ms_status make_ready(ms_walk_run *w)
{
    w->ready = w->r->reduced != 0 ? w->r->reduced : w->ready;
    return MS_OK;
}

ms_status ms_state_after_part(ms_walk_run *w)
{
    const ms_job *job = w->r->job;
    ms_sharding sharding = sharding_of(w);
    ms_rank_part *part = ms_walk_run_part(w, w->part);
    ms_interference at = interference_of(w);
    bool forward = w->pass == MS_PART_FORWARD;
    if (sharding == MS_ZERO_3 && (forward || w->inputs))
        ms_unit_release(&w->r->rank, part->unit);
    if (sharding == MS_ZERO_3 && job->overlaps)
        MS_TRY(ms_walk_run_spend(w, ms_part_interference_s(job->planned, &at)));
    if (job->overlaps)
        MS_TRY(ms_walk_run_spend(
            w, ms_action_interference_s(job->planned, &at, job->gathers_once)));
    if (forward || !w->weights)
        return MS_OK;
    if (ms_shards_grads(sharding)) {
        ms_event done = 0;
        double start_s = now_s(w->r);
        MS_TRY(ms_unit_reduce(&w->r->rank, part->unit, &w->ready, 1, &done));
        record_work(w->r, MS_STREAM_REDUCE, MS_MOVE_REDUCE, start_s);
        note_reduced(w->r, done);
        MS_TRY(settle_reduction(w, part->unit));
        if (!job->overlaps)
            MS_TRY(make_ready(w));
    }
    bool now = w->last_backward && reduces_when(w) == MS_REDUCE_BY_UNIT;
    return now ? reduce_last_now(w, part) : MS_OK;
}

/* With a stage placed twice each copy sends its gradients to the other; here for virtual
 * clocks, with values when all actions are done. */
static ms_status exchange_with_copy(ms_walk_run *w, const ms_rank_stage *stage)
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
        .name = MS_MOVE_TWIN,
        .predicted_s = ms_twin_s(&planned->pipeline, stage->sums, planned->sharding)};
    ms_event after[2] = {w->ready, w->r->reduced}, done = 0;
    if (transfer.predicted_s <= 0.0)
        return MS_OK;
    MS_TRY(rank->backend->start(rank->cx, rank->device, &transfer, after, 2, &done));
    note_reduced(w->r, done);
    return MS_OK;
}

static ms_status sum_over_tp(ms_walk_run *w, const ms_rank_stage *stage)
{
    for (int i = 0; i < stage->num_parts; i++)
        if (!is_reduced_late(w->r, &stage->parts[i]))
            MS_TRY(reduce_over_tp(w->r, &stage->parts[i], w->ready));
    return MS_OK;
}

static ms_status reduce_stage(ms_walk_run *w, const ms_rank_stage *stage)
{
    for (int i = 0; i < stage->num_parts; i++)
        MS_TRY(reduce_last_now(w, &stage->parts[i]));
    return MS_OK;
}

/* For all stages of the rank, when its last backward has ended. */
static ms_status for_all_stages(ms_walk_run *w,
                                ms_status (*move)(ms_walk_run *, const ms_rank_stage *))
{
    for (int s = 0; s < w->r->num_stages; s++)
        MS_TRY(move(w, &w->r->stages[s]));
    return MS_OK;
}

/* As the step graph has it (docs/formulas 6.8): what waits for what is the same. */
ms_status ms_state_after_walk(ms_walk_run *w)
{
    const ms_rank_run *r = w->r;
    ms_reduction_time when = reduces_when(w);
    bool goes_on = w->last_backward && when == MS_REDUCE_BY_UNIT;
    if (sharding_of(w) == MS_ZERO_2 && w->weights && !goes_on)
        MS_TRY(make_ready(w));
    if (!w->last_backward)
        return MS_OK;
    bool ends_rank = ms_schedule_last_complete(r->rank.planned->schedule,
                                               r->pipeline_rank) == w->stage->stage;
    if (when == MS_REDUCE_AFTER_STAGE)
        MS_TRY(reduce_stage(w, w->stage));
    if (when != MS_REDUCE_AFTER_RANK)
        MS_TRY(exchange_with_copy(w, w->stage));
    else if (ends_rank) {
        MS_TRY(for_all_stages(w, reduce_stage));
        MS_TRY(for_all_stages(w, exchange_with_copy));
    }
    return ends_rank ? for_all_stages(w, sum_over_tp) : MS_OK;
}

ms_status ms_state_reduce_late(ms_rank_run *r)
{
    for (int i = 0; i < r->num_parts; i++) {
        if (!is_reduced_late(r, r->parts[i]))
            continue;
        ms_event ready = r->rank.backend->mark(r->rank.device);
        MS_TRY(reduce_last(r, r->parts[i], ready));
        MS_TRY(reduce_over_tp(r, r->parts[i], ready));
    }
    return MS_OK;
}
