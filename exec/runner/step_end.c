/* The end of a step: completes gradients, reduces their norm over all ranks, updates
 * parameters. */
#include "exec/runner/rank_run.h"

#include "sim/simulate/move_names.h"

#include <math.h>
#include <string.h>

#define CLIP_EPSILON 1e-6 /* value in PyTorch's torch/nn/utils/clip_grad.py */

typedef ms_status unit_visit(ms_rank_run *r, ms_rank_stage *stage, int block);

static ms_status for_each_unit(ms_rank_run *r, unit_visit *visit)
{
    for (int s = 0; s < r->num_stages; s++)
        for (int i = 0; i < r->stages[s].num_blocks; i++)
            MS_TRY(visit(r, &r->stages[s], i));
    return MS_OK;
}

/* ---- gradients with copies on other ranks ---- */

static bool is_placed_twice(const ms_rank_run *r)
{
    return ms_schedule_placement(r->rank.planned->schedule->shape.kind) ==
           MS_PLACE_BOTH_WAYS;
}

static long peer_on(const ms_rank_run *r, int pipeline_rank)
{
    return r->rank.world->members[MS_TRAFFIC_PP][r->rank.place->rank]
        .ranks[pipeline_rank];
}

static int tag_of_unit(const ms_rank_run *r, const ms_rank_stage *stage, int block)
{
    return (int)r->job->tags.first_copy + stage->model_stage * r->job->tags.blocks +
           block;
}

static ms_status exchange_replica(ms_rank_run *r, ms_rank_stage *stage, int block)
{
    int ranks = r->rank.planned->schedule->shape.num_ranks;
    long peer = peer_on(r, ranks - 1 - r->pipeline_rank);
    double start_s = ms_rank_run_clock(r);
    MS_TRY(ms_unit_exchange_replica(&r->rank, stage->blocks[block].unit, peer,
                                    tag_of_unit(r, stage, block)));
    ms_rank_run_record_wait(r, MS_STREAM_REDUCE, MS_MOVE_REPLICA, false, start_s);
    return MS_OK;
}

/* Stages placed twice: exchanges gradients with the rank of the other copy. Both ranks go
 * in model order, so that neither waits for the other forever. */
static ms_status exchange_replicas(ms_rank_run *r)
{
    int num = ms_schedule_model_stages(&r->rank.planned->schedule->shape);
    for (int model_stage = 0; model_stage < num; model_stage++) {
        for (int s = 0; s < r->num_stages; s++) {
            ms_rank_stage *stage = &r->stages[s];
            for (int i = 0; stage->model_stage == model_stage && i < stage->num_blocks;
                 i++)
                MS_TRY(exchange_replica(r, stage, i));
        }
    }
    return MS_OK;
}

/* Adds up gradients of a matrix shared by embedding and head on different ranks. */
static ms_status exchange_tied(ms_rank_run *r, ms_rank_stage *stage, int block)
{
    const ms_split *split = r->rank.planned->pipeline.split;
    const ms_schedule_shape *shape = &r->rank.planned->schedule->shape;
    int kind = stage->blocks[block].plan->program->key.block;
    if (!ms_head_shares_weights(r->rank.planned->workload) || kind == MS_BLOCK_LAYER ||
        ms_split_ends_meet(split))
        return MS_OK;
    int other = kind == MS_BLOCK_EMBED ? ms_schedule_model_stages(shape) - 1 : 0;
    long peer = peer_on(r, ms_schedule_rank(shape, other));
    double start_s = ms_rank_run_clock(r);
    MS_TRY(ms_unit_exchange_tied(&r->rank, stage->blocks[block].unit, peer,
                                 (int)r->job->tags.tied));
    ms_rank_run_record_wait(r, MS_STREAM_REDUCE, MS_MOVE_TIED, false, start_s);
    return MS_OK;
}

/* ---- reductions over all ranks ---- */

enum {
    LOSS_SUM,
    SUM_OF_SQUARES,
    INTERRUPTED,
    MODULE_LOSSES, /* sums of each module of multi-token prediction */
    NUM_SUMS = MODULE_LOSSES + MS_MAX_NEXTN_LAYERS
};

static ms_status all_reduce(ms_rank_run *r, double sums[NUM_SUMS], const char *name,
                            double predicted_s)
{
    ms_rank *rank = &r->rank;
    int num = MODULE_LOSSES + ms_workload_num_modules(rank->planned->workload);
    /* in: sums of this rank; out: of all */
    void *all = sums;
    ms_transfer transfer = {.kind = MS_TRANSFER_ALL_REDUCE,
                            .scalar = MS_SCALAR_FP64,
                            .on_host = true,
                            .group = MS_TRAFFIC_WORLD,
                            .stream = MS_STREAM_REDUCE,
                            .send = all,
                            .receive = all,
                            .count = num,
                            .name = name,
                            .predicted_s = predicted_s};
    ms_event after = rank->backend->mark(rank->device), done = 0;
    double start_s = ms_rank_run_clock(r);
    MS_TRY(rank->backend->start(rank->cx, rank->device, &transfer, &after, 1, &done));
    MS_TRY(rank->backend->wait(rank->cx, rank->device, done));
    ms_rank_run_record(r,
                       (ms_recorded){.stream = MS_STREAM_REDUCE,
                                     .kind = MS_TASK_COLLECTIVE,
                                     .name = name,
                                     .predicted_s = predicted_s,
                                     .bytes = num * 8.0,
                                     .waits = true},
                       start_s);
    return MS_OK;
}

/* Waits for `last_moves` in the order of their starts; records each wait as a slice. */
static ms_status wait_for_last_moves(ms_rank_run *r)
{
    const ms_rank *rank = &r->rank;
    for (int i = 0; i < r->num_last_moves; i++) {
        const ms_last_move *move = &r->last_moves[i];
        double start_s = ms_rank_run_clock(r);
        MS_TRY(rank->backend->wait(rank->cx, rank->device, move->done));
        ms_rank_run_record_wait(r, (ms_stream)move->stream, move->name, false, start_s);
    }
    return MS_OK;
}

static ms_status wait_for_gradients(ms_rank_run *r)
{
    ms_rank *rank = &r->rank;
    MS_TRY(rank->backend->wait(rank->cx, rank->device, r->ready));
    if (rank->backend->has_values)
        MS_TRY(wait_for_last_moves(r));
    MS_TRY(rank->backend->wait(rank->cx, rank->device, r->reduced));
    for (int i = 0; i < r->num_blocks && rank->backend->has_values; i++)
        MS_TRY(ms_unit_wait(rank, r->blocks[i]->unit));
    return MS_OK;
}

/* ---- update ---- */

static double update_s(const ms_rank_run *r)
{
    const ms_planned *p = r->rank.planned;
    ms_rank_load load = ms_planned_load(r->rank.cx, p, r->pipeline_rank);
    return ms_rank_update_s(&p->pipeline, r->pipeline_rank, &load, p->sharding);
}

static ms_status end_on_clock(ms_rank_run *r)
{
    const ms_rank *rank = &r->rank;
    double sums[NUM_SUMS] = {0};
    MS_TRY(all_reduce(r, sums, "all gradients are there", 0.0));
    rank->backend->idle(rank->device, rank->planned->pipeline.world_sync_s + update_s(r));
    return MS_OK;
}

static ms_status update_all(ms_rank_run *r, double norm)
{
    const ms_runner_options *options = r->job->options;
    ms_adamw how = options->optimizer;
    ms_rank *rank = &r->rank;
    double start_s = ms_rank_run_clock(r);
    how.step = r->step + 1;
    how.gradient_scale = 1.0;
    if (options->clip_norm > 0.0 && norm > options->clip_norm)
        how.gradient_scale = options->clip_norm / (norm + CLIP_EPSILON);
    for (int i = 0; i < r->num_blocks; i++)
        MS_TRY(ms_unit_update(rank, r->blocks[i]->unit, &how));
    ms_rank_run_record(r,
                       (ms_recorded){.stream = MS_STREAM_COMPUTE,
                                     .kind = MS_TASK_OPTIMIZER,
                                     .name = MS_MOVE_OPTIMIZER,
                                     .predicted_s = update_s(r)},
                       start_s);
    return MS_OK;
}

int ms_loss_slot(int microbatch)
{
    int slot = MS_LOSS_SLOT + microbatch;
    return slot < MS_MAX_SUMS ? slot : MS_MAX_SUMS - 1;
}

static ms_status compute_local_sums(ms_rank_run *r, double sums[NUM_SUMS])
{
    ms_rank *rank = &r->rank;
    double slots[MS_MAX_SUMS];
    for (int i = 0; i < r->num_blocks; i++)
        ms_unit_add_squares(rank, r->blocks[i]->unit, MS_SQUARES_SLOT);
    MS_TRY(rank->backend->arrays->read_sums(rank->cx, rank->device, slots, MS_MAX_SUMS));
    sums[SUM_OF_SQUARES] = slots[MS_SQUARES_SLOT];
    sums[LOSS_SUM] = 0.0;
    for (int i = 0; i < MS_MAX_NEXTN_LAYERS; i++)
        sums[MODULE_LOSSES + i] = slots[MS_MODULE_LOSS_SLOT + i];
    for (int slot = MS_LOSS_SLOT; slot < MS_MAX_SUMS; slot++) {
        sums[LOSS_SUM] += slots[slot];
        if (!isfinite(slots[slot])) {
            return ms_fail(rank->cx, MS_EIO, MS_NOWHERE,
                           "the loss of micro-batch %d%s is not finite in step %ld",
                           slot - MS_LOSS_SLOT,
                           slot == MS_MAX_SUMS - 1 ? " or a later one" : "", r->step + 1);
        }
    }
    return MS_OK;
}

/* Adds up gradients of key-value heads that several tp ranks hold. */
static ms_status sum_copies(ms_rank_run *r)
{
    const ms_planned *planned = r->rank.planned;
    if (!ms_plan_copies_kv_heads(planned->plan, planned->workload->model))
        return MS_OK;
    double start_s = ms_rank_run_clock(r);
    for (int i = 0; i < r->num_blocks; i++)
        MS_TRY(ms_unit_sum_copies(&r->rank, r->blocks[i]->unit));
    ms_rank_run_record_wait(r, MS_STREAM_TP, MS_MOVE_COPIES, false, start_s);
    return MS_OK;
}

ms_status ms_rank_run_complete_gradients(ms_rank_run *r)
{
    MS_TRY(ms_state_reduce_late(r));
    MS_TRY(wait_for_gradients(r));
    MS_TRY(ms_sends_end(r));
    if (!r->rank.backend->has_values)
        return MS_OK;
    if (is_placed_twice(r))
        MS_TRY(exchange_replicas(r));
    MS_TRY(sum_copies(r));
    return for_each_unit(r, exchange_tied);
}

ms_status ms_rank_run_end_step(ms_rank_run *r, ms_step_outcome *out)
{
    const ms_runner_options *options = r->job->options;
    if (!r->rank.backend->has_values)
        return end_on_clock(r);
    double sums[NUM_SUMS] = {[INTERRUPTED] =
                                 options->interrupted != NULL && *options->interrupted};
    MS_TRY(compute_local_sums(r, sums));
    MS_TRY(all_reduce(r, sums, MS_MOVE_NORM, r->rank.planned->pipeline.world_sync_s));
    out->loss = sums[LOSS_SUM] / ms_rank_run_step_tokens(r);
    out->gradient_norm = sqrt(sums[SUM_OF_SQUARES]);
    out->interrupted = sums[INTERRUPTED] > 0.0;
    for (int i = 0; i < MS_MAX_NEXTN_LAYERS; i++) {
        out->module_losses[i] = sums[MODULE_LOSSES + i] / ms_rank_run_step_tokens(r);
        if (!isfinite(out->module_losses[i])) {
            return ms_fail(r->rank.cx, MS_EIO, MS_NOWHERE,
                           "the loss of module %d of multi-token prediction is not "
                           "finite in step %ld",
                           i + 1, r->step + 1);
        }
    }
    if (!isfinite(out->loss) || !isfinite(out->gradient_norm))
        return ms_fail(r->rank.cx, MS_EIO, MS_NOWHERE,
                       "loss %g and gradient norm %g of step %ld are not finite",
                       out->loss, out->gradient_norm, r->step + 1);
    return update_all(r, out->gradient_norm);
}
