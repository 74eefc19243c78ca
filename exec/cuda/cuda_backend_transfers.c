/* Starts and waits for a rank's transfers: collectives by NCCL here, messages in
 * cuda_backend_messages.c, transfers through host memory in cuda_backend_host.c.
 *
 * Why ranks never deadlock: a transfer on the GPU waits for (1) work enqueued on the
 * compute stream before its start, (2) transfers started before it on its stream or
 * communicator, and (3) the start of the same transfer on other ranks. Each rank's
 * program terminates, in the order of its calls, on backends that wait in `wait` (loop),
 * so the calls of all ranks have an order in which each follows what it waits for. (1)
 * and the events that compute waits for precede a call in that order. (2) is required of
 * every backend by exec/core/backend.h: members of a group start its transfers in the
 * same order, and groups of one stream follow each other in the same order on all their
 * ranks. (3) holds because no start makes the host wait. Sends are copies, and only the
 * copy is waited for: a message may stay on its lane (one pair of ranks, one direction,
 * one stream, one communicator) for any time; the receiver takes messages in the sender's
 * order, and asks for another only when the host waits for one (cuda_backend_messages.c),
 * as on a CPU backend. */
#include "exec/cuda/cuda_backend_priv.h"

#include <assert.h>

/* ---- pending transfers ---- */

ms_cuda_pending *ms_cuda_pending_add(ms_ctx *cx, ms_device_rank *d,
                                     const ms_transfer *transfer)
{
    ms_cuda_pending *p = d->idle_pending;
    if (p == NULL)
        p = MS_NEW(d->arena, ms_cuda_pending);
    else
        d->idle_pending = p->next;
    *p = (ms_cuda_pending){.transfer = *transfer};
    p->event = ms_cuda_point_reserve(cx, d, p);
    *d->end_pending = p;
    d->end_pending = &p->next;
    return p;
}

void ms_cuda_pending_drop(ms_device_rank *d, ms_cuda_pending *pending)
{
    ms_cuda_pending **at = &d->first_pending;
    while (*at != pending)
        at = &(*at)->next;
    *at = pending->next;
    if (d->end_pending == &pending->next)
        d->end_pending = at;
    ms_cuda_point *point = ms_cuda_point_of(d, pending->event);
    if (point != NULL)
        point->pending = NULL;
    pending->next = d->idle_pending;
    d->idle_pending = pending;
}

/* Finishes `wanted` and, before it, the host-memory transfers that must end earlier. */
static ms_status finish_by_host_in_order(ms_ctx *cx, ms_device_rank *d,
                                         ms_cuda_pending *wanted)
{
    const ms_transfer transfer = wanted->transfer;
    for (ms_cuda_pending *p = d->first_pending, *next; p != NULL; p = next) {
        next = p->next;
        bool is_last = p == wanted;
        if (p->by_host && (is_last || ms_transfer_comes_before(&p->transfer, &transfer)))
            MS_TRY(ms_cuda_finish_by_host(cx, d, p));
        if (is_last)
            break;
    }
    return MS_OK;
}

ms_status ms_cuda_resolve_event(ms_ctx *cx, ms_device_rank *d, ms_event event)
{
    const ms_cuda_point *point = ms_cuda_point_of(d, event);
    if (point == NULL || point->pending == NULL)
        return MS_OK;
    return point->pending->by_host ? finish_by_host_in_order(cx, d, point->pending)
                                   : ms_cuda_receive_resolve(cx, d, point->pending);
}

ms_status ms_cuda_wait(ms_ctx *cx, ms_device_rank *d, ms_event event)
{
    MS_TRY(ms_cuda_check_rank(cx, d));
    MS_TRY(ms_cuda_resolve_event(cx, d, event));
    ms_cuda_point *point = ms_cuda_point_of(d, event);
    if (point == NULL || point->stream == d->compute)
        return MS_OK;
    if (point->event != NULL) {
        MS_TRY(d->driver->wait(cx, d->compute, point->event));
        ms_cuda_moved(d);
    }
    ms_cuda_memory_give(d->memory, point->release);
    point->release = NULL;
    return MS_OK;
}

/* ---- collectives by NCCL ---- */

static ms_cuda_stream *stream_of(const ms_device_rank *d, const ms_transfer *t)
{
    bool has_own = t->stream >= MS_STREAM_TP && t->stream <= MS_STREAM_REDUCE;
    return d->stream[has_own ? t->stream : MS_STREAM_REDUCE];
}

/* Makes `stream` wait for the other stream, if any, with the communicator's last call. */
static ms_status order_after_last_stream(ms_ctx *cx, ms_device_rank *d,
                                         ms_cuda_group *group, ms_cuda_stream *stream)
{
    ms_cuda_event *before;
    ms_cuda_stream *last = group->last_stream;
    group->last_stream = stream;
    if (last == NULL || last == stream)
        return MS_OK;
    MS_TRY(ms_cuda_take_event(cx, d, MS_CUDA_ORDERS, &before));
    ms_status status = d->driver->record(cx, before, last);
    if (status == MS_OK)
        status = d->driver->wait(cx, stream, before);
    ms_cuda_give_event(d, MS_CUDA_ORDERS, before);
    return status;
}

static ms_status copy_own(ms_ctx *cx, ms_device_rank *d, const ms_transfer *t,
                          ms_cuda_stream *stream)
{
    size_t bytes = (size_t)ms_cuda_num_sent(t, 1) * ms_scalar_bytes((ms_scalar)t->scalar);
    if (bytes == 0 || t->send == t->receive)
        return MS_OK;
    return d->driver->copy(cx, stream, t->receive, t->send, bytes, MS_CUDA_ON_DEVICE);
}

/* All-to-all as one NCCL group of sends and receives; the rank's own part is copied. */
static ms_status all_to_all(ms_ctx *cx, ms_device_rank *d, const ms_transfer *t,
                            ms_cuda_group *group, ms_cuda_stream *stream)
{
    const ms_members *members = ms_cuda_members(d, t);
    size_t each = ms_scalar_bytes((ms_scalar)t->scalar);
    ms_arena_mark mark = ms_arena_save(cx->arena);
    ms_cuda_collective *all =
        MS_NEW_ARRAY(cx->arena, 2 * members->size, ms_cuda_collective);
    const char *from = t->send;
    char *to = t->receive;
    int num = 0;
    ms_status status = MS_OK;
    for (int peer = 0; peer < members->size && status == MS_OK; peer++) {
        long sent = t->send_counts[peer], received = t->receive_counts[peer];
        ms_cuda_collective one = {.scalar = (ms_scalar)t->scalar, .peer = peer};
        if (peer == members->own && sent > 0)
            status = d->driver->copy(cx, stream, to, from, (size_t)sent * each,
                                     MS_CUDA_ON_DEVICE);
        if (peer != members->own && sent > 0) {
            all[num] = one;
            all[num].kind = MS_CUDA_SEND;
            all[num].send = from;
            all[num++].count = sent;
        }
        if (peer != members->own && received > 0) {
            all[num] = one;
            all[num].kind = MS_CUDA_RECEIVE;
            all[num].receive = to;
            all[num++].count = received;
        }
        from += (size_t)sent * each;
        to += (size_t)received * each;
    }
    if (status == MS_OK && num > 0)
        status = d->driver->communicate(cx, group->comm, stream, all, num);
    if (status == MS_OK)
        ms_arena_rewind(cx->arena, mark);
    return status;
}

static ms_status communicate(ms_ctx *cx, ms_device_rank *d, const ms_transfer *t,
                             ms_cuda_group *group, ms_cuda_stream *stream)
{
    static const ms_cuda_collective_kind kinds[] = {
        [MS_TRANSFER_ALL_GATHER] = MS_CUDA_ALL_GATHER,
        [MS_TRANSFER_REDUCE_SCATTER] = MS_CUDA_REDUCE_SCATTER,
        [MS_TRANSFER_ALL_REDUCE] = MS_CUDA_ALL_REDUCE};
    MS_TRY(order_after_last_stream(cx, d, group, stream));
    if (t->kind == MS_TRANSFER_ALL_TO_ALL)
        return all_to_all(cx, d, t, group, stream);
    const ms_cuda_collective one = {.kind = kinds[t->kind],
                                    .scalar = (ms_scalar)t->scalar,
                                    .maximum = t->maximum,
                                    .send = t->send,
                                    .receive = t->receive,
                                    .count = t->count};
    return t->count > 0 ? d->driver->communicate(cx, group->comm, stream, &one, 1)
                        : MS_OK;
}

static ms_status start_collective(ms_ctx *cx, ms_device_rank *d, const ms_transfer *t,
                                  const ms_event *after, int num_after, ms_event *done)
{
    ms_cuda_stream *stream = stream_of(d, t);
    for (int i = 0; i < num_after; i++)
        MS_TRY(ms_cuda_after(cx, d, stream, after[i]));
    MS_TRY(ms_cuda_after_compute(cx, d, stream));
    int kind = d->job->channels.kind_of[t->group][t->stream];
    if (ms_cuda_members(d, t)->size == 1) {
        MS_TRY(copy_own(cx, d, t, stream));
    } else {
        assert(kind >= 0 && kind < d->num_groups);
        MS_TRY(communicate(cx, d, t, &d->groups[kind], stream));
    }
    return ms_cuda_point_make(cx, d, stream, t, done);
}

/* ---- start ---- */

static bool goes_by_host(const ms_device_rank *d, const ms_transfer *t, int lane)
{
    bool alone = t->kind < MS_TRANSFER_SEND && ms_cuda_members(d, t)->size == 1;
    if (t->on_host || d->job->backend->transport == MS_CUDA_BY_HOST)
        return t->on_host || !alone;
    if (t->kind < MS_TRANSFER_SEND)
        return !alone && d->job->channels.kind_of[t->group][t->stream] < 0;
    return lane < 0;
}

/* Starts a transfer through host memory once the events `after` have happened. */
static ms_status start_by_host(ms_ctx *cx, ms_device_rank *d, const ms_transfer *t,
                               const ms_event *after, int num_after, ms_event *done)
{
    for (int i = 0; i < num_after; i++) {
        if (!t->on_host)
            MS_TRY(ms_cuda_after(cx, d, d->compute, after[i]));
        else
            MS_TRY(ms_cuda_resolve_event(cx, d, after[i]));
    }
    return ms_cuda_start_by_host(cx, d, t, done);
}

/* Makes the stream of a receive, or of a send's copy, wait for the events `after`. */
static ms_status start_message(ms_ctx *cx, ms_device_rank *d, const ms_transfer *t,
                               const ms_event *after, int num_after, int lane)
{
    bool sends = t->kind == MS_TRANSFER_SEND;
    ms_cuda_stream *stream = sends ? d->stream[MS_STREAM_SEND] : d->lanes[lane].stream;
    for (int i = 0; i < num_after; i++)
        MS_TRY(ms_cuda_after(cx, d, stream, after[i]));
    return sends ? ms_cuda_after_compute(cx, d, stream) : MS_OK;
}

ms_status ms_cuda_start(ms_ctx *cx, ms_device_rank *d, const ms_transfer *transfer,
                        const ms_event *after, int num_after, ms_event *done)
{
    int lane = -1;
    *done = 0;
    MS_TRY(ms_cuda_check_rank(cx, d));
    if (d->job->backend->transport == MS_CUDA_MODELLED) {
        if (!transfer->on_host)
            return ms_cuda_model_start(cx, d, transfer, after, num_after, done);
        ms_cuda_model_host(d, transfer->predicted_s);
    }
    bool is_message = transfer->kind >= MS_TRANSFER_SEND;
    if (is_message)
        lane = ms_cuda_lane_find(d, transfer->peer, transfer->kind == MS_TRANSFER_SEND);
    if (goes_by_host(d, transfer, lane))
        return start_by_host(cx, d, transfer, after, num_after, done);
    if (!is_message)
        return start_collective(cx, d, transfer, after, num_after, done);
    MS_TRY(start_message(cx, d, transfer, after, num_after, lane));
    return transfer->kind == MS_TRANSFER_SEND
               ? ms_cuda_send(cx, d, transfer, lane, done)
               : ms_cuda_receive(cx, d, transfer, lane, done);
}
