#include "sim/step/step.h"

#include "base/number.h"
#include "sim/step/message.h"
#include "sim/step/offload.h"

#include <math.h>

double ms_step_sync_s(const ms_workload *workload, const ms_links *links,
                      const ms_block_costs *blocks, const ms_split *split)
{
    double norm_s = ms_collective_s(&links->world, MS_NORM_BYTES);
    if (!workload->model->tied_embeddings || ms_split_ends_meet(split))
        return norm_s;
    return norm_s + ms_collective_s(&links->send, workload->stack->grad_comm_bytes.value *
                                                      blocks->head_params);
}

ms_prices ms_pipeline_prices(const ms_pipeline *pipeline, int stage)
{
    if (pipeline->of_kinds == NULL)
        return (ms_prices){pipeline->workload, NULL, pipeline->links, pipeline->blocks};
    return pipeline->of_kinds[ms_split_kinds(pipeline->split, stage)];
}

/* Seconds of an update beyond the streams of ms_update_s. */
static double matrix_update_s(const ms_pipeline *pipeline, const ms_links *links,
                              const ms_update_cost *update, ms_sharding sharding)
{
    if (sharding < MS_ZERO_1)
        return update->update_s[0] + update->update_s[1];
    const ms_sync_group groups[2] = {MS_SYNC_FSDP, MS_SYNC_EXPERT_FSDP};
    const double shards[2] = {pipeline->shards.dense, pipeline->shards.expert};
    double own_s = 0.0, gather_s = 0.0;
    for (int i = 0; i < 2; i++) {
        own_s += update->update_s[i] / shards[i];
        if (update->matrix_params[i] > 0.0 && shards[i] > 1.0)
            gather_s +=
                ms_collective_s(&links->gather[groups[i]],
                                ms_dtype_bytes(MS_BF16) * update->matrix_params[i]);
    }
    return ms_max(own_s, update->longest_s) + gather_s;
}

double ms_rank_update_s(const ms_pipeline *pipeline, int rank, const ms_rank_load *load,
                        ms_sharding sharding)
{
    ms_prices own =
        ms_pipeline_prices(pipeline, ms_split_stage(pipeline->split, rank, 0));
    double params = ms_rank_params(load, &pipeline->shards, sharding >= MS_ZERO_1);
    double seconds = ms_states_update_s(own.workload, own.links, params);
    return own.workload->updates_matrices
               ? seconds + matrix_update_s(pipeline, own.links, &load->update, sharding)
               : seconds;
}

double ms_optimizer_s(const ms_pipeline *pipeline, ms_sharding sharding,
                      int *slowest_rank)
{
    double most = -1.0;
    for (int i = 0; i < pipeline->split->num_runs; i++) {
        double seconds = ms_rank_update_s(pipeline, pipeline->split->runs[i].first_rank,
                                          &pipeline->loads[i], sharding);
        if (seconds > most) {
            most = seconds;
            *slowest_rank = pipeline->split->runs[i].first_rank;
        }
    }
    return pipeline->world_sync_s + most;
}

void ms_pipeline_set_sends(ms_pipeline *pipeline, double message_s)
{
    bool has_messages = pipeline->shape.num_ranks > 1;
    pipeline->send_hold_s = has_messages
                                ? ms_message_hold_s(pipeline->workload->stack,
                                                    pipeline->shape.kind, message_s)
                                : 0.0;
    pipeline->send_s = has_messages && pipeline->send_hold_s == 0.0 ? message_s : 0.0;
}

static void hold_for_sends(const ms_pipeline *pipeline, int stage_class,
                           ms_stage_times *times)
{
    int stage = pipeline->split->stage_of_class[stage_class];
    bool has_next = stage < pipeline->split->num_stages - 1;
    double forward_s = has_next ? pipeline->send_hold_s : 0.0;
    double backward_s = stage > 0 ? pipeline->send_hold_s : 0.0;
    times->forward_s += forward_s;
    times->first_forward_s += forward_s;
    times->backward_s += backward_s;
    times->last_backward_s += backward_s;
}

ms_stage_times ms_step_class_durations(const ms_pipeline *pipeline, ms_sharding sharding,
                                       int stage_class)
{
    const ms_stage *stage = &pipeline->stages[stage_class];
    ms_prices own =
        ms_pipeline_prices(pipeline, pipeline->split->stage_of_class[stage_class]);
    ms_stage_times times =
        ms_stage_durations(own.workload, stage, sharding, pipeline->send_s);
    hold_for_sends(pipeline, stage_class, &times);
    if (ms_schedule_placement(pipeline->shape.kind) == MS_PLACE_BOTH_WAYS)
        times.after_rank_s += ms_replica_s(pipeline, stage, sharding);
    return times;
}

double ms_replica_bytes(const ms_pipeline *pipeline, const ms_stage *stage,
                        ms_sharding sharding)
{
    bool sharded = sharding != MS_ZERO_0;
    double params = stage->sum.dense_params / (sharded ? pipeline->shards.dense : 1.0) +
                    stage->sum.expert_params / (sharded ? pipeline->shards.expert : 1.0);
    return params * pipeline->workload->stack->grad_comm_bytes.value;
}

double ms_replica_s(const ms_pipeline *pipeline, const ms_stage *stage,
                    ms_sharding sharding)
{
    return ms_collective_s(&pipeline->links->send,
                           ms_replica_bytes(pipeline, stage, sharding));
}

/* Seconds of a rank's parameter gathers that precede the gather of `chunk`: those of
 * earlier chunks; if gathers do not overlap with compute, those of all other chunks. */
static double gathered_first_s(const ms_pipeline *pipeline, ms_sharding sharding,
                               int rank, int chunk)
{
    const ms_split *split = pipeline->split;
    bool overlaps = ms_overlaps_sync(pipeline->workload->stack, sharding);
    double seconds = 0.0;
    for (int c = 0; c < (overlaps ? chunk : split->num_chunks); c++) {
        const ms_stage *stage =
            &pipeline->stages[split->class_of_stage[ms_split_stage(split, rank, c)]];
        seconds += c != chunk ? stage->sum.gather_s : 0.0;
    }
    return seconds;
}

bool ms_pipeline_overlaps_pairs(const ms_pipeline *pipeline, ms_sharding sharding)
{
    return ms_schedule_traits_of(pipeline->shape.kind).overlaps &&
           pipeline->links->span[MS_BILL_EP].size > 1 && !ms_shards_grads(sharding);
}

double ms_pipeline_pair_saved_s(const ms_pipeline *pipeline, int forward_stage,
                                int backward_stage)
{
    ms_stage_layout f = ms_split_layout(pipeline->split, forward_stage, pipeline->mode,
                                        pipeline->recompute_layers);
    ms_stage_layout b = ms_split_layout(pipeline->split, backward_stage, pipeline->mode,
                                        pipeline->recompute_layers);
    ms_prices own = ms_pipeline_prices(pipeline, forward_stage);
    return ms_pair_saved_s(own.workload, own.blocks, &f, &b);
}

/* (num_chunks): [c]: seconds saved if `chunk`'s forward overlaps chunk c's backward. */
static const double *pair_savings(const ms_pipeline *pipeline, int rank, int chunk,
                                  ms_arena *arena)
{
    const ms_split *split = pipeline->split;
    double *saved_s = MS_NEW_ARRAY(arena, split->num_chunks, double);
    for (int c = 0; c < split->num_chunks; c++)
        saved_s[c] = ms_pipeline_pair_saved_s(
            pipeline, ms_split_stage(split, rank, chunk), ms_split_stage(split, rank, c));
    return saved_s;
}

void ms_step_durations(const ms_pipeline *pipeline, ms_sharding sharding, ms_arena *arena,
                       ms_stage_times *times)
{
    const ms_split *split = pipeline->split;
    bool pairs = ms_pipeline_overlaps_pairs(pipeline, sharding);
    for (int rank = 0; rank < split->num_ranks; rank++) {
        for (int chunk = 0; chunk < split->num_chunks; chunk++) {
            int placed = ms_schedule_stage(&pipeline->shape, rank, chunk);
            int stage_class = split->class_of_stage[ms_split_stage(split, rank, chunk)];
            times[placed] = ms_step_class_durations(pipeline, sharding, stage_class);
            if (times[placed].release_s > 0.0)
                times[placed].release_s +=
                    gathered_first_s(pipeline, sharding, rank, chunk);
            if (pairs)
                times[placed].pair_saved_s = pair_savings(pipeline, rank, chunk, arena);
        }
    }
}

static ms_step_time longest_span(const ms_pipeline *pipeline, ms_sharding sharding,
                                 const ms_replay_result *result)
{
    ms_step_time longest = {.step_s = -1.0};
    for (int i = 0; i < pipeline->split->num_runs; i++) {
        const ms_rank_class *run = &pipeline->split->runs[i];
        double optimizer_s =
            ms_rank_update_s(pipeline, run->first_rank, &pipeline->loads[i], sharding);
        for (int r = run->first_rank; r < run->first_rank + run->num_ranks; r++) {
            double span_s = result->end_s[r] - result->start_s[r] + optimizer_s;
            if (span_s > longest.step_s)
                longest = (ms_step_time){span_s, optimizer_s, r};
        }
    }
    return longest;
}

ms_step_time ms_step_time_of(const ms_pipeline *pipeline, ms_sharding sharding,
                             const ms_schedule *schedule, const ms_stage_times *times,
                             ms_arena *scratch)
{
    ms_arena_mark mark = ms_arena_save(scratch);
    bool global = pipeline->workload->stack->optimizer_sync == MS_SYNC_GLOBAL;
    int num_ranks = schedule->shape.num_ranks;
    ms_replay_result result = {0};
    if (!global) {
        result.end_s = MS_NEW_ARRAY(scratch, num_ranks, double);
        result.start_s = MS_NEW_ARRAY(scratch, num_ranks, double);
    } else {
        result.enough_s = pipeline->enough_s;
    }
    ms_replay(schedule, times, scratch, &result);
    ms_step_time time = {0};
    if (global) {
        time.optimizer_s = ms_optimizer_s(pipeline, sharding, &time.last_rank);
        time.step_s = result.makespan_s + time.optimizer_s;
    } else {
        time = longest_span(pipeline, sharding, &result);
    }
    ms_arena_rewind(scratch, mark);
    return time;
}

double ms_step_exact_s(const ms_pipeline *pipeline, ms_sharding sharding,
                       const ms_schedule *schedule, ms_arena *scratch)
{
    ms_arena_mark mark = ms_arena_save(scratch);
    ms_stage_times *times = MS_NEW_ARRAY(scratch, schedule->num_stages, ms_stage_times);
    ms_step_durations(pipeline, sharding, scratch, times);
    ms_step_time time = ms_step_time_of(pipeline, sharding, schedule, times, scratch);
    ms_arena_rewind(scratch, mark);
    return time.step_s;
}

/* Peak bytes that leave as much room on a device of the whole workload as `peak_bytes`
 * leave on a device of `own`. */
static double same_room_bytes(const ms_pipeline *pipeline, const ms_workload *own,
                              double peak_bytes)
{
    const ms_memory_limit *limit = &pipeline->workload->memory;
    double outside_bytes = ms_rank_outside_bytes(own, &pipeline->shards) -
                           ms_rank_outside_bytes(pipeline->workload, &pipeline->shards);
    double less_bytes = limit->limit_bytes - own->memory.limit_bytes;
    return peak_bytes + (outside_bytes + less_bytes) / limit->peak_factor;
}

double ms_step_peak_bytes(const ms_pipeline *pipeline, ms_sharding sharding,
                          int *worst_rank)
{
    double peak = -INFINITY;
    for (int i = 0; i < pipeline->split->num_runs; i++) {
        double parts[MS_NUM_MEMORY_CATEGORIES], total = 0.0;
        const ms_workload *own =
            ms_pipeline_prices(
                pipeline,
                pipeline->split->stage_of_class[pipeline->split->runs[i].classes[0]])
                .workload;
        ms_rank_memory(own, &pipeline->loads[i], sharding, &pipeline->shards, parts);
        for (int j = 0; j < MS_NUM_MEMORY_CATEGORIES; j++)
            total += parts[j];
        if (pipeline->of_kinds != NULL)
            total = same_room_bytes(pipeline, own, total);
        if (total > peak) {
            peak = total;
            *worst_rank = pipeline->split->runs[i].first_rank;
        }
    }
    return peak;
}
