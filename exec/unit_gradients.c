/* Gradients on their way to where they are kept. */
#include "exec/unit_priv.h"

#include <assert.h>

static long own_count(const ms_segment *segment)
{
    return segment->own.end - segment->own.first;
}

static double own_bytes(const ms_param_unit *unit, const ms_segment *segment)
{
    return (double)own_count(segment) * (double)unit->real_bytes;
}

void ms_unit_clear_gradients(ms_rank *rank, ms_param_unit *unit)
{
    unit->last = 0;
    for (int i = unit->num_borrowed; i < unit->num_segments; i++) {
        ms_segment *s = unit->segments[i];
        if (s->has_reduced)
            ms_rank_release_workspace(rank, own_bytes(unit, s), s->reduced);
        s->has_reduced = false;
        s->reduced = NULL;
        if (s->grads != NULL)
            rank->kernels->fill(s->grads, 0.0, s->kept_grads.end - s->kept_grads.first);
    }
}

/* ---- with every micro-batch ---- */

ms_status ms_unit_begin_gradients(ms_rank *rank, ms_param_unit *unit)
{
    ms_unit_rooms *rooms = unit->rooms;
    if (!ms_shards_grads(unit->sharding))
        return MS_OK;
    assert(rooms != NULL && rooms->gradient_holder == NULL);
    rooms->gradient_holder = unit;
    for (int expert = 0; expert < 2; expert++)
        if (rooms->grads[expert] != NULL)
            rank->kernels->fill(rooms->grads[expert], 0.0, rooms->room_count[expert]);
    return MS_OK;
}

/* Where the shard of a segment arrives: as the room, each part by the number of shards smaller. */
static void *arrival(const ms_param_unit *unit, int segment)
{
    const ms_segment *s = unit->segments[segment];
    return ms_unit_at(unit, unit->rooms->reduced[s->is_expert],
                      unit->room_first[segment] / s->num_shards);
}

ms_status ms_unit_reduce(ms_rank *rank, ms_param_unit *unit, const ms_event *after,
                         int num_after, ms_event *done)
{
    *done = 0;
    if (!ms_shards_grads(unit->sharding))
        return MS_OK;
    assert(unit->rooms->gradient_holder == unit);
    const ms_state_move *moves = unit->options.ops->reduce;
    double predicted_s[2] = {moves[0].seconds, moves[1].seconds};
    for (int i = 0; i < unit->num_segments; i++) {
        const ms_segment *s = unit->segments[i];
        if (s->num_shards <= 1)
            continue;
        ms_transfer transfer = {.kind = MS_TRANSFER_REDUCE_SCATTER,
                                .group = (unsigned char)s->shard_group,
                                .stream = MS_STREAM_REDUCE,
                                .send = ms_unit_at(unit, unit->rooms->grads[s->is_expert],
                                                   unit->room_first[i]),
                                .receive = arrival(unit, i),
                                .count = own_count(s),
                                .name = "reduce gradients"};
        MS_TRY(ms_unit_start(rank, &transfer, &predicted_s[s->is_expert], after,
                             num_after, done));
    }
    return MS_OK;
}

ms_status ms_unit_end_reduction(ms_rank *rank, ms_param_unit *unit)
{
    if (!ms_shards_grads(unit->sharding))
        return MS_OK;
    assert(unit->rooms->gradient_holder == unit);
    for (int i = 0; i < unit->num_segments; i++) {
        const ms_segment *s = unit->segments[i];
        if (s->num_shards > 1 && s->grads != NULL)
            rank->kernels->add(s->grads, arrival(unit, i), own_count(s));
    }
    unit->rooms->gradient_holder = NULL;
    return MS_OK;
}

/* ---- once a step ---- */

/* What the last transfers of a unit wait for: its own transfer before them, and what the caller says. */
typedef struct waits {
    ms_event events[3];
    int num;
} waits;

static waits waits_of(const ms_param_unit *unit, const ms_event *after, int num_after)
{
    waits w = {.num = num_after < 2 ? num_after : 2};
    for (int i = 0; i < w.num; i++)
        w.events[i] = after[i];
    w.events[w.num++] = unit->last;
    return w;
}

/* Starts a transfer of gradients that are complete for this step. */
static ms_status start_last(ms_rank *rank, ms_param_unit *unit, ms_transfer transfer,
                            waits w, double *predicted_s, ms_event *done)
{
    MS_TRY(ms_unit_start(rank, &transfer, predicted_s, w.events, w.num, done));
    unit->last = *done != 0 ? *done : unit->last;
    return MS_OK;
}

static int group_size(const ms_rank *rank, ms_traffic_group group)
{
    return rank->world->members[group][rank->place->rank].size;
}

static ms_status all_reduce_all(ms_rank *rank, ms_param_unit *unit, waits w,
                                ms_event *done)
{
    const ms_state_move *moves = unit->options.ops->all_reduce;
    double predicted_s[2] = {moves[0].seconds, moves[1].seconds};
    for (int i = unit->num_borrowed; i < unit->num_segments; i++) {
        ms_segment *s = unit->segments[i];
        ms_traffic_group group =
            ms_traffic_state_group(rank->world->plan, s->is_expert, false);
        if (group_size(rank, group) <= 1)
            continue;
        ms_transfer transfer = {.kind = MS_TRANSFER_ALL_REDUCE,
                                .group = (unsigned char)group,
                                .stream = MS_STREAM_REDUCE,
                                .send = s->grads,
                                .receive = s->grads,
                                .count = s->count,
                                .name = "reduce gradients"};
        MS_TRY(start_last(rank, unit, transfer, w, &predicted_s[s->is_expert], done));
    }
    return MS_OK;
}

ms_status ms_unit_reduce_last(ms_rank *rank, ms_param_unit *unit, const ms_event *after,
                              int num_after, ms_event *done)
{
    waits w = waits_of(unit, after, num_after);
    *done = 0;
    if (unit->sharding == MS_ZERO_0)
        return all_reduce_all(rank, unit, w, done);
    if (ms_shards_grads(unit->sharding))
        return MS_OK;
    const ms_state_move *moves = unit->options.ops->reduce;
    double predicted_s[2] = {moves[0].seconds, moves[1].seconds};
    for (int i = unit->num_borrowed; i < unit->num_segments; i++) {
        ms_segment *s = unit->segments[i];
        if (s->num_shards <= 1)
            continue;
        MS_TRY(ms_rank_workspace(rank, own_bytes(unit, s), &s->reduced));
        s->has_reduced = true;
        ms_transfer transfer = {.kind = MS_TRANSFER_REDUCE_SCATTER,
                                .group = (unsigned char)s->shard_group,
                                .stream = MS_STREAM_REDUCE,
                                .send = s->grads,
                                .receive = s->reduced,
                                .count = own_count(s),
                                .name = "reduce gradients"};
        MS_TRY(start_last(rank, unit, transfer, w, &predicted_s[s->is_expert], done));
    }
    return MS_OK;
}

/* All-reduce in place of a part of the own shard. */
static ms_transfer all_reduce_of(const ms_param_unit *unit, const ms_segment *s,
                                 ms_range part, ms_transfer transfer)
{
    transfer.kind = MS_TRANSFER_ALL_REDUCE;
    transfer.receive = ms_segment_gradient(unit, s, part.first);
    transfer.send = transfer.receive;
    transfer.count = part.end - part.first;
    return transfer;
}

ms_status ms_unit_replicate(ms_rank *rank, ms_param_unit *unit, const ms_event *after,
                            int num_after, ms_event *done)
{
    *done = 0;
    if (unit->sharding == MS_ZERO_0 || group_size(rank, MS_TRAFFIC_REPLICATE) <= 1)
        return MS_OK;
    waits w = waits_of(unit, after, num_after);
    double predicted_s = unit->options.ops->replicate.seconds;
    const ms_transfer transfer = {.group = MS_TRAFFIC_REPLICATE,
                                  .stream = MS_STREAM_REDUCE,
                                  .name = "reduce over replicas"};
    for (int i = unit->num_borrowed; i < unit->num_segments; i++) {
        const ms_segment *s = unit->segments[i];
        MS_TRY(start_last(rank, unit, all_reduce_of(unit, s, s->own, transfer), w,
                          &predicted_s, done));
    }
    return MS_OK;
}

/* All tp ranks hold the same shard, so that they agree on whether something of it is partial. */
ms_status ms_unit_reduce_over_tp(ms_rank *rank, ms_param_unit *unit,
                                 const ms_event *after, int num_after, ms_event *done)
{
    *done = 0;
    if (group_size(rank, MS_TRAFFIC_TP) <= 1)
        return MS_OK;
    waits w = waits_of(unit, after, num_after);
    double predicted_s = unit->options.ops->tp_sync.seconds;
    const ms_transfer transfer = {
        .group = MS_TRAFFIC_TP, .stream = MS_STREAM_TP, .name = "reduce over tp"};
    for (int i = unit->num_borrowed; i < unit->num_segments; i++) {
        const ms_segment *s = unit->segments[i];
        ms_range part = ms_range_overlap(s->own, s->partial);
        if (part.end > part.first || !rank->backend->has_values)
            MS_TRY(start_last(rank, unit, all_reduce_of(unit, s, part, transfer), w,
                              &predicted_s, done));
    }
    return MS_OK;
}

/* ---- copies ---- */

static ms_status swap(ms_rank *rank, const ms_transfer *transfers, const ms_event *after)
{
    ms_event done[2];
    for (int i = 0; i < 2; i++)
        MS_TRY(rank->backend->start(rank->cx, rank->device, &transfers[i], after, 2,
                                    &done[i]));
    for (int i = 0; i < 2; i++)
        MS_TRY(rank->backend->wait(rank->cx, rank->device, done[i]));
    return MS_OK;
}

/* `transfer`: peer, tag and name. */
static ms_status exchange(ms_rank *rank, const ms_param_unit *unit, const ms_segment *s,
                          ms_transfer transfer)
{
    if (!rank->backend->has_values)
        return MS_OK;
    void *own = ms_segment_gradient(unit, s, s->own.first), *other;
    MS_TRY(ms_rank_workspace(rank, own_bytes(unit, s), &other));
    transfer.count = own_count(s);
    transfer.stream = MS_STREAM_REDUCE;
    ms_transfer transfers[2] = {transfer, transfer};
    transfers[0].kind = MS_TRANSFER_SEND;
    transfers[0].send = own;
    transfers[1].kind = MS_TRANSFER_RECEIVE;
    transfers[1].receive = other;
    const ms_event after[2] = {rank->backend->mark(rank->device), unit->last};
    ms_status status = swap(rank, transfers, after);
    if (status == MS_OK)
        rank->kernels->add(own, other, own_count(s));
    ms_rank_release_workspace(rank, own_bytes(unit, s), other);
    return status;
}

ms_status ms_unit_exchange_tied(ms_rank *rank, ms_param_unit *unit, long peer, int tag)
{
    assert(unit->matrix >= 0);
    return exchange(
        rank, unit, unit->segments[unit->matrix],
        (ms_transfer){.peer = peer, .tag = tag, .name = "exchange tied embedding"});
}

ms_status ms_unit_exchange_twin(ms_rank *rank, ms_param_unit *unit, long peer, int tag)
{
    for (int i = unit->num_borrowed; i < unit->num_segments; i++)
        MS_TRY(exchange(
            rank, unit, unit->segments[i],
            (ms_transfer){.peer = peer, .tag = tag, .name = "exchange with the copy"}));
    return MS_OK;
}
