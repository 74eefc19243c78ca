/* Clearing, reduction and exchange of the gradients of a block's parameters. */
#include "exec/params/unit_priv.h"

#include "sim/simulate/move_names.h"

#include <assert.h>
#include <math.h>

static double own_bytes(const ms_param_unit *unit, const ms_segment *segment)
{
    return (double)ms_range_length(segment->own) *
           (double)ms_scalar_bytes(unit->precision.gradient);
}

static void zero(const ms_rank *rank, ms_scalar scalar, void *gradients, long count)
{
    if (gradients != NULL && count > 0)
        rank->backend->arrays->fill(rank->device, scalar, gradients, 0.0, count);
}

/* Marks the gradients of a segment's tensors as not written yet. */
static void empty_tensors(ms_param_unit *unit, int segment)
{
    for (int i = 0; i < unit->num_tensors; i++)
        if (unit->tensors[i].segment == segment && unit->tensors[i].same_as < 0)
            unit->tensors[i].is_empty = true;
}

/* Elements without a gradient, and padding, are zero from the beginning. */
void ms_unit_clear_gradients(ms_rank *rank, ms_param_unit *unit)
{
    unit->last = 0;
    for (int i = unit->num_borrowed; i < unit->num_segments; i++) {
        ms_segment *s = unit->segments[i];
        if (s->has_reduced)
            ms_rank_release_workspace(rank, own_bytes(unit, s), s->reduced);
        s->has_reduced = false;
        s->reduced = NULL;
        if (ms_segment_shares_gradients(unit, s))
            s->is_shard_empty = true;
        else if (i == unit->matrix)
            zero(rank, unit->precision.gradient, s->grads,
                 ms_range_length(s->kept_grads));
        else
            empty_tensors(unit, i);
    }
}

bool ms_unit_is_first(ms_param_unit *unit, int gradient)
{
    for (int i = 0; i < unit->num_tensors; i++) {
        ms_unit_tensor *tensor = &unit->tensors[i];
        if (tensor->gradient != gradient)
            continue;
        if (tensor->same_as >= 0)
            tensor = &unit->tensors[tensor->same_as];
        bool is_first = tensor->is_empty;
        tensor->is_empty = false;
        return is_first;
    }
    return false;
}

/* ---- once per micro-batch ---- */

/* Address of a segment's unsharded gradients in the shared gradient buffer. */
static void *gradient_buffer(const ms_param_unit *unit, int segment)
{
    const ms_segment *s = unit->segments[segment];
    return ms_unit_at(unit->precision.comm, unit->buffers->grads[s->is_expert],
                      unit->buffer_first[segment]);
}

ms_status ms_unit_begin_gradients(ms_rank *rank, ms_param_unit *unit)
{
    ms_unit_buffers *buffers = unit->buffers;
    if (!ms_shards_grads(unit->sharding))
        return MS_OK;
    assert(buffers != NULL && buffers->gradient_holder == NULL);
    buffers->gradient_holder = unit;
    for (int i = 0; i < unit->num_segments && rank->backend->has_values; i++) {
        const ms_segment *s = unit->segments[i];
        if (!ms_segment_has_gradient_shards(s))
            continue;
        empty_tensors(unit, i);
        ms_scalar comm = unit->precision.comm;
        zero(rank, comm, ms_unit_at(comm, gradient_buffer(unit, i), s->num_updated),
             s->count - s->num_updated);
    }
    return MS_OK;
}

/* Zeroes gradients that no node of a backward has written. */
static void zero_empty(const ms_rank *rank, ms_param_unit *unit)
{
    for (int i = 0; i < unit->num_tensors && rank->backend->has_values; i++) {
        ms_unit_tensor *tensor = &unit->tensors[i];
        if (!tensor->is_empty || tensor->gradient < 0)
            continue;
        const ms_segment *s = unit->segments[tensor->segment];
        bool is_shared = ms_segment_shares_gradients(unit, s);
        ms_scalar scalar = is_shared ? unit->precision.comm : unit->precision.gradient;
        void *first = is_shared ? gradient_buffer(unit, tensor->segment) : s->grads;
        zero(rank, scalar, ms_unit_at(scalar, first, tensor->first), tensor->local.count);
        tensor->is_empty = false;
    }
}

/* Address where a segment's reduced shard arrives: gradient offset / num_shards. */
static void *reduced_buffer(const ms_param_unit *unit, int segment)
{
    const ms_segment *s = unit->segments[segment];
    return ms_unit_at(unit->precision.comm, unit->buffers->reduced[s->is_expert],
                      unit->buffer_first[segment] / s->num_shards);
}

static ms_transfer reduce_scatter(const ms_segment *s, const void *whole, void *shard)
{
    return (ms_transfer){.kind = MS_TRANSFER_REDUCE_SCATTER,
                         .group = (unsigned char)s->shard_group,
                         .stream = MS_STREAM_REDUCE,
                         .send = whole,
                         .receive = shard,
                         .count = ms_range_length(s->own),
                         .name = MS_MOVE_REDUCE};
}

ms_status ms_unit_reduce(ms_rank *rank, ms_param_unit *unit, const ms_event *after,
                         int num_after, ms_event *done)
{
    *done = 0;
    if (!ms_shards_grads(unit->sharding))
        return MS_OK;
    const ms_unit_buffers *buffers = unit->buffers;
    assert(buffers->gradient_holder == unit);
    zero_empty(rank, unit);
    const ms_state_move *predicted = unit->options.ops->reduce;
    ms_unit_move move = {rank,  unit,      {predicted[0].seconds, predicted[1].seconds},
                         after, num_after, done};
    for (int i = 0; i < unit->num_segments; i++) {
        const ms_segment *s = unit->segments[i];
        if (!ms_segment_has_gradient_shards(s))
            continue;
        ms_transfer transfer =
            reduce_scatter(s, gradient_buffer(unit, i), reduced_buffer(unit, i));
        transfer.scalar = (unsigned char)unit->precision.comm;
        if (ms_segment_sent_bytes(rank, s) > 0)
            MS_TRY(ms_unit_quantize_gradients(rank, unit, i, &transfer));
        MS_TRY(ms_unit_start(&move, s, transfer));
    }
    return MS_OK;
}

ms_status ms_unit_end_reduction(ms_rank *rank, ms_param_unit *unit)
{
    if (!ms_shards_grads(unit->sharding))
        return MS_OK;
    assert(unit->buffers->gradient_holder == unit);
    const ms_precision *precision = &unit->precision;
    for (int i = 0; i < unit->num_segments; i++) {
        ms_segment *s = unit->segments[i];
        if (!ms_segment_has_gradient_shards(s) || s->grads == NULL)
            continue;
        if (ms_segment_sent_bytes(rank, s) > 0) {
            MS_TRY(ms_unit_add_quantized(rank, unit, i));
        } else {
            ms_unit_convert(rank, &(ms_conversion){.to_scalar = precision->gradient,
                                                   .from_scalar = precision->comm,
                                                   .to = s->grads,
                                                   .from = reduced_buffer(unit, i),
                                                   .adds = !s->is_shard_empty,
                                                   .count = ms_range_length(s->own)});
        }
        s->is_shard_empty = false;
    }
    unit->buffers->gradient_holder = NULL;
    return MS_OK;
}

/* ---- once per step ---- */

#define MAX_AFTER 16

/* Events that a reduction waits for: `after`, and the unit's previous reduction. */
typedef struct wait_list {
    int num;
    ms_event events[MAX_AFTER + 1];
} wait_list;

static wait_list make_wait_list(const ms_param_unit *unit, const ms_event *after,
                                int num_after)
{
    wait_list w = {.num = num_after + 1};
    assert(num_after <= MAX_AFTER);
    for (int i = 0; i < num_after; i++)
        w.events[i] = after[i];
    w.events[num_after] = unit->last;
    return w;
}

static void set_last_event(ms_param_unit *unit, ms_event done)
{
    unit->last = done != 0 ? done : unit->last;
}

static int group_size(const ms_rank *rank, ms_traffic_group group)
{
    return rank->world->members[group][rank->place->rank].size;
}

/* Reduces gradients that have another type than messages: casts them, waits for the
 * reduction, and casts its result back. */
static ms_status reduce_cast(ms_unit_move *move, const ms_segment *s,
                             ms_transfer transfer)
{
    ms_rank *rank = move->rank;
    const ms_precision *precision = &move->unit->precision;
    bool scatters = transfer.kind == MS_TRANSFER_REDUCE_SCATTER;
    ms_conversion in = {.to_scalar = precision->comm,
                        .from_scalar = precision->gradient,
                        .from = transfer.send,
                        .count = transfer.count * (scatters ? s->num_shards : 1)},
                  out = {.to_scalar = precision->gradient,
                         .from_scalar = precision->comm,
                         .to = transfer.receive,
                         .count = transfer.count};
    double each_bytes = (double)ms_scalar_bytes(precision->comm),
           bytes = each_bytes * (double)(in.count + (scatters ? out.count : 0));
    MS_TRY(ms_rank_workspace(rank, bytes, &in.to));
    transfer.send = in.to;
    transfer.receive = scatters ? ms_unit_at(precision->comm, in.to, in.count) : in.to;
    out.from = transfer.receive;
    ms_unit_convert(rank, &in);
    ms_status status = ms_unit_start(move, s, transfer);
    if (status == MS_OK)
        status = rank->backend->wait(rank->cx, rank->device, *move->done);
    if (status == MS_OK)
        ms_unit_convert(rank, &out);
    ms_rank_release_workspace(rank, bytes, in.to);
    return status;
}

/* Starts a reduction of gradients in the type of messages. */
static ms_status reduce(ms_unit_move *move, const ms_segment *s, ms_transfer transfer)
{
    const ms_precision *precision = &move->unit->precision;
    transfer.scalar = (unsigned char)precision->comm;
    return precision->comm != precision->gradient && move->rank->backend->has_values
               ? reduce_cast(move, s, transfer)
               : ms_unit_start(move, s, transfer);
}

/* Reduces a segment's gradients in as many equal pieces as its buckets. */
static ms_status all_reduce_pieces(ms_unit_move *move, const ms_segment *s,
                                   ms_transfer transfer)
{
    const ms_state_move *predicted = &move->unit->options.ops->all_reduce[s->is_expert];
    /* a backend without values times all pieces as the first */
    long pieces =
        move->rank->backend->has_values ? lround(predicted->split.per_block) : 1;
    for (long i = 0; i < pieces; i++) {
        long first = s->count * i / pieces;
        transfer.send = transfer.receive =
            ms_unit_at(move->unit->precision.gradient, s->grads, first);
        transfer.count = s->count * (i + 1) / pieces - first;
        if (transfer.count > 0)
            MS_TRY(reduce(move, s, transfer));
    }
    return MS_OK;
}

static ms_status all_reduce_segments(ms_unit_move *move)
{
    const ms_param_unit *unit = move->unit;
    for (int i = unit->num_borrowed; i < unit->num_segments; i++) {
        const ms_segment *s = unit->segments[i];
        ms_traffic_group group =
            ms_traffic_state_group(move->rank->world->plan, s->is_expert, false);
        if (s->is_frozen || group_size(move->rank, group) <= 1)
            continue;
        MS_TRY(all_reduce_pieces(move, s,
                                 (ms_transfer){.kind = MS_TRANSFER_ALL_REDUCE,
                                               .group = (unsigned char)group,
                                               .stream = MS_STREAM_REDUCE,
                                               .name = MS_MOVE_REDUCE}));
    }
    return MS_OK;
}

static ms_status reduce_scatter_segments(ms_unit_move *move)
{
    const ms_param_unit *unit = move->unit;
    for (int i = unit->num_borrowed; i < unit->num_segments; i++) {
        ms_segment *s = unit->segments[i];
        if (!ms_segment_has_gradient_shards(s))
            continue;
        MS_TRY(ms_rank_workspace(move->rank, own_bytes(unit, s), &s->reduced));
        s->has_reduced = true;
        MS_TRY(reduce(move, s, reduce_scatter(s, s->grads, s->reduced)));
    }
    return MS_OK;
}

ms_status ms_unit_reduce_last(ms_rank *rank, ms_param_unit *unit, const ms_event *after,
                              int num_after, ms_event *done)
{
    *done = 0;
    if (ms_shards_grads(unit->sharding))
        return MS_OK;
    zero_empty(rank, unit);
    bool whole = unit->sharding == MS_ZERO_0;
    const ms_block_ops *ops = unit->options.ops;
    wait_list w = make_wait_list(unit, after, num_after);
    const ms_state_move *predicted = whole ? ops->all_reduce : ops->reduce;
    ms_unit_move move = {rank,     unit,  {predicted[0].seconds, predicted[1].seconds},
                         w.events, w.num, done};
    MS_TRY(whole ? all_reduce_segments(&move) : reduce_scatter_segments(&move));
    set_last_event(unit, *done);
    return MS_OK;
}

static ms_status all_reduce_own(ms_unit_move *move, const ms_segment *s, ms_range overlap,
                                ms_transfer transfer)
{
    transfer.kind = MS_TRANSFER_ALL_REDUCE;
    transfer.receive = ms_segment_gradient(move->unit, s, overlap.first);
    transfer.send = transfer.receive;
    transfer.count = ms_range_length(overlap);
    return reduce(move, s, transfer);
}

/* A reduction with one predicted time for all segments, which the first carries. */
static ms_unit_move joint_move(
    ms_rank *rank, ms_param_unit *unit, const ms_state_move *predicted,
    const wait_list *after, ms_event *done) /* NOLINT(readability-non-const-parameter) */
{
    ms_unit_move move = {rank, unit, {0}, after->events, after->num, done};
    bool expert = unit->num_segments > unit->num_borrowed &&
                  unit->segments[unit->num_borrowed]->is_expert;
    move.predicted_s[expert] = predicted->seconds;
    return move;
}

ms_status ms_unit_replicate(ms_rank *rank, ms_param_unit *unit, const ms_event *after,
                            int num_after, ms_event *done)
{
    *done = 0;
    if (unit->sharding == MS_ZERO_0 || group_size(rank, MS_TRAFFIC_REPLICATE) <= 1)
        return MS_OK;
    wait_list w = make_wait_list(unit, after, num_after);
    ms_unit_move move = joint_move(rank, unit, &unit->options.ops->replicate, &w, done);
    for (int i = unit->num_borrowed; i < unit->num_segments; i++) {
        const ms_segment *s = unit->segments[i];
        if (s->is_frozen)
            continue;
        MS_TRY(all_reduce_own(&move, s, s->own,
                              (ms_transfer){.group = MS_TRAFFIC_REPLICATE,
                                            .stream = MS_STREAM_REDUCE,
                                            .name = MS_MOVE_REPLICATE}));
    }
    set_last_event(unit, *done);
    return MS_OK;
}

/* Ranks of a tp group own the same index range, so they reduce the same elements. */
ms_status ms_unit_reduce_over_tp(ms_rank *rank, ms_param_unit *unit,
                                 const ms_event *after, int num_after, ms_event *done)
{
    *done = 0;
    if (group_size(rank, MS_TRAFFIC_TP) <= 1)
        return MS_OK;
    wait_list w = make_wait_list(unit, after, num_after);
    ms_unit_move move = joint_move(rank, unit, &unit->options.ops->tp_sync, &w, done);
    for (int i = unit->num_borrowed; i < unit->num_segments; i++) {
        const ms_segment *s = unit->segments[i];
        ms_range overlap = ms_range_overlap(s->own, s->partial);
        bool is_empty = ms_range_length(overlap) == 0 && rank->backend->has_values;
        if (is_empty || s->is_frozen)
            continue;
        MS_TRY(all_reduce_own(&move, s, overlap,
                              (ms_transfer){.group = MS_TRAFFIC_TP,
                                            .stream = MS_STREAM_TP,
                                            .name = MS_MOVE_TP_SYNC}));
    }
    set_last_event(unit, *done);
    return MS_OK;
}

ms_status ms_unit_wait(ms_rank *rank, const ms_param_unit *unit)
{
    return rank->backend->wait(rank->cx, rank->device, unit->last);
}

/* ---- copies of key-value heads ---- */

/* Gathers `count` elements of all tp ranks' gradients into `all`. */
static ms_status gather_over_tp(ms_rank *rank, const ms_param_unit *unit, const void *own,
                                long count, void *all)
{
    const ms_event after[2] = {rank->backend->mark(rank->device), unit->last};
    const ms_transfer transfer = {.kind = MS_TRANSFER_ALL_GATHER,
                                  .scalar = (unsigned char)unit->precision.gradient,
                                  .group = MS_TRAFFIC_TP,
                                  .stream = MS_STREAM_TP,
                                  .send = own,
                                  .receive = all,
                                  .count = count,
                                  .name = MS_MOVE_COPIES};
    ms_event done = 0;
    MS_TRY(rank->backend->start(rank->cx, rank->device, &transfer, after, 2, &done));
    return rank->backend->wait(rank->cx, rank->device, done);
}

/* Sums elements `range` of a tensor's gradient over the ranks with the same head. */
static ms_status sum_copies(ms_rank *rank, const ms_param_unit *unit,
                            const ms_unit_tensor *t, ms_range range)
{
    const ms_array_ops *arrays = rank->backend->arrays;
    ms_scalar scalar = unit->precision.gradient;
    long count = ms_range_length(range);
    double bytes = (double)count * (double)ms_scalar_bytes(scalar),
           all_bytes = bytes * group_size(rank, MS_TRAFFIC_TP);
    void *own = ms_segment_gradient(unit, unit->segments[t->segment], range.first), *all;
    MS_TRY(ms_rank_workspace(rank, all_bytes, &all));
    ms_status status = gather_over_tp(rank, unit, own, count, all);
    long first = rank->place->tp - rank->place->tp % t->num_copies;
    for (int i = 0; i < t->num_copies && status == MS_OK; i++) {
        const void *from = ms_unit_at(scalar, all, (first + i) * count);
        if (i == 0)
            arrays->copy(rank->device, own, from, (size_t)bytes);
        else
            arrays->add(rank->device, scalar, own, from, count);
    }
    ms_rank_release_workspace(rank, all_bytes, all);
    return status;
}

/* Ranks of a tp group own the same index range, so they gather the same elements. */
ms_status ms_unit_sum_copies(ms_rank *rank, ms_param_unit *unit)
{
    for (int i = 0; i < unit->num_tensors && rank->backend->has_values; i++) {
        const ms_unit_tensor *t = &unit->tensors[i];
        ms_range range =
            ms_range_overlap(unit->segments[t->segment]->own,
                             (ms_range){t->first, t->first + t->local.count});
        if (t->num_copies > 1 && t->gradient >= 0 && ms_range_length(range) > 0)
            MS_TRY(sum_copies(rank, unit, t, range));
    }
    return MS_OK;
}

/* ---- replicas ---- */

static ms_status send_and_receive(ms_rank *rank, const ms_transfer *transfers,
                                  const ms_event *after)
{
    ms_event done[2];
    for (int i = 0; i < 2; i++)
        MS_TRY(rank->backend->start(rank->cx, rank->device, &transfers[i], after, 2,
                                    &done[i]));
    for (int i = 0; i < 2; i++)
        MS_TRY(rank->backend->wait(rank->cx, rank->device, done[i]));
    return MS_OK;
}

/* Adds another rank's gradients of a segment; `transfer` has peer, tag and name. */
static ms_status exchange_segment(ms_rank *rank, const ms_param_unit *unit,
                                  const ms_segment *s, ms_transfer transfer)
{
    if (!rank->backend->has_values || s->is_frozen)
        return MS_OK;
    void *own = ms_segment_gradient(unit, s, s->own.first), *other;
    MS_TRY(ms_rank_workspace(rank, own_bytes(unit, s), &other));
    transfer.count = ms_range_length(s->own);
    transfer.scalar = (unsigned char)unit->precision.gradient;
    transfer.stream = MS_STREAM_REDUCE;
    ms_transfer transfers[2] = {transfer, transfer};
    transfers[0].kind = MS_TRANSFER_SEND;
    transfers[0].send = own;
    transfers[1].kind = MS_TRANSFER_RECEIVE;
    transfers[1].receive = other;
    const ms_event after[2] = {rank->backend->mark(rank->device), unit->last};
    ms_status status = send_and_receive(rank, transfers, after);
    if (status == MS_OK)
        rank->backend->arrays->add(rank->device, unit->precision.gradient, own, other,
                                   ms_range_length(s->own));
    ms_rank_release_workspace(rank, own_bytes(unit, s), other);
    return status;
}

ms_status ms_unit_exchange_tied(ms_rank *rank, ms_param_unit *unit, long peer, int tag)
{
    assert(unit->matrix >= 0);
    return exchange_segment(
        rank, unit, unit->segments[unit->matrix],
        (ms_transfer){.peer = peer, .tag = tag, .name = MS_MOVE_TIED});
}

ms_status ms_unit_exchange_replica(ms_rank *rank, ms_param_unit *unit, long peer, int tag)
{
    for (int i = unit->num_borrowed; i < unit->num_segments; i++)
        MS_TRY(exchange_segment(
            rank, unit, unit->segments[i],
            (ms_transfer){.peer = peer, .tag = tag, .name = MS_MOVE_REPLICA}));
    return MS_OK;
}
