/* Messages from GPU to GPU. NCCL matches sends and receives of two ranks by their order
 * alone, a program matches them by tags: a receiver may ask for a later message first. So
 * the sender announces each message, with tag and length, through the inner backend, and
 * the receiver accepts messages in the order of announcements. Messages that the program
 * has not asked for yet are received into memory of their own. A receive is passed to
 * NCCL when the host waits for it; on the GPU it follows only work enqueued before its
 * start, and so overlaps later compute.
 *
 * A send copies its data on the device first: NCCL ends a send only when the data are
 * received, and the sender must not wait for that. */
#include "exec/cuda/cuda_backend_priv.h"

/* message tag of announcements; larger than any tag of a program */
#define ANNOUNCEMENT_TAG MS_MAX_TAG

enum {
    TAG,
    COUNT,
    SCALAR,
    NUM_WORDS
};

/* NCCL ranks of a lane's two ends; a lane is a communicator for one direction. */
#define SENDER   0
#define RECEIVER 1

static ms_transfer announcement(const ms_transfer *of, long *words)
{
    return (ms_transfer){.kind = of->kind,
                         .scalar = MS_SCALAR_LONG,
                         .on_host = true,
                         .stream = of->stream,
                         .peer = of->peer,
                         .tag = ANNOUNCEMENT_TAG,
                         .send = words,
                         .receive = words,
                         .count = NUM_WORDS,
                         .name = of->name};
}

/* ---- send ---- */

static ms_status drop_received(ms_ctx *cx, ms_device_rank *d)
{
    for (ms_cuda_copy **at = &d->copies; *at != NULL;) {
        ms_cuda_copy *copy = *at;
        bool happened;
        MS_TRY(d->driver->query(cx, copy->received, &happened));
        if (!happened) {
            at = &copy->next;
            continue;
        }
        ms_cuda_memory_give(d->memory, copy->memory);
        ms_cuda_give_event(d, MS_CUDA_ORDERS, copy->received);
        *at = copy->next;
        copy->next = d->idle_copies;
        d->idle_copies = copy;
    }
    return MS_OK;
}

/* Keeps a message's copy until `stream`, which sends it, has done its present work. */
static ms_status keep_copy(ms_ctx *cx, ms_device_rank *d, void *memory,
                           ms_cuda_stream *stream)
{
    ms_cuda_event *received;
    MS_TRY(ms_cuda_take_event(cx, d, MS_CUDA_ORDERS, &received));
    ms_cuda_copy *copy = d->idle_copies;
    if (copy == NULL)
        copy = MS_NEW(d->arena, ms_cuda_copy);
    else
        d->idle_copies = copy->next;
    *copy = (ms_cuda_copy){memory, received, d->copies};
    d->copies = copy;
    return d->driver->record(cx, received, stream);
}

static ms_status announce(ms_ctx *cx, ms_device_rank *d, const ms_transfer *transfer)
{
    long words[NUM_WORDS] = {
        [TAG] = transfer->tag, [COUNT] = transfer->count, [SCALAR] = transfer->scalar};
    ms_transfer announced = announcement(transfer, words);
    ms_event ignored;
    return d->job->inner->start(cx, d->inner, &announced, NULL, 0, &ignored);
}

/* Sends a copy of the data. MS_STREAM_SEND makes the copy, after the events that the
 * caller has made it wait for. */
ms_status ms_cuda_send(ms_ctx *cx, ms_device_rank *d, const ms_transfer *transfer,
                       int lane, ms_event *done)
{
    const ms_cuda_lane *l = &d->lanes[lane];
    size_t bytes = (size_t)transfer->count * ms_scalar_bytes((ms_scalar)transfer->scalar);
    MS_TRY(drop_received(cx, d));
    MS_TRY(announce(cx, d, transfer));
    if (bytes == 0)
        return MS_OK;
    void *copy = ms_cuda_memory_take(d->memory, bytes);
    if (copy == NULL)
        return ms_transfer_no_memory(cx, d->job->outer->world, transfer);
    MS_TRY(d->driver->copy(cx, d->stream[MS_STREAM_SEND], copy, transfer->send, bytes,
                           MS_CUDA_ON_DEVICE));
    MS_TRY(ms_cuda_point_make(cx, d, d->stream[MS_STREAM_SEND], transfer, done));
    MS_TRY(ms_cuda_after(cx, d, l->stream, *done));
    const ms_cuda_collective message = {.kind = MS_CUDA_SEND,
                                        .scalar = (ms_scalar)transfer->scalar,
                                        .peer = RECEIVER,
                                        .send = copy,
                                        .count = transfer->count};
    MS_TRY(d->driver->communicate(cx, l->comm, l->stream, &message, 1));
    return keep_copy(cx, d, copy, l->stream);
}

/* ---- receive ---- */

static ms_status post_receive(ms_ctx *cx, ms_device_rank *d, const ms_cuda_lane *lane,
                              void *to, const long *words)
{
    const ms_cuda_collective message = {.kind = MS_CUDA_RECEIVE,
                                        .scalar = (ms_scalar)words[SCALAR],
                                        .peer = SENDER,
                                        .receive = to,
                                        .count = words[COUNT]};
    return words[COUNT] > 0
               ? d->driver->communicate(cx, lane->comm, lane->stream, &message, 1)
               : MS_OK;
}

static ms_status check_length(ms_ctx *cx, const ms_device_rank *d, const ms_transfer *t,
                              long count, long scalar)
{
    if (count == t->count && scalar == t->scalar)
        return MS_OK;
    return ms_fail(cx, MS_EIO, MS_NOWHERE, "%s of %ld %s elements gets %ld of %s",
                   ms_transfer_text(cx->arena, d->job->outer->world, t), t->count,
                   ms_scalar_names[t->scalar], count, ms_scalar_names[scalar]);
}

static ms_cuda_pending *find_posted_receive(const ms_device_rank *d, int lane, long tag)
{
    ms_cuda_pending *p = d->first_pending;
    while (p != NULL && (p->by_host || p->channel != lane || p->transfer.tag != tag))
        p = p->next;
    return p;
}

static ms_status deliver(ms_ctx *cx, ms_device_rank *d, ms_cuda_pending *p,
                         const long *words)
{
    const ms_cuda_lane *lane = &d->lanes[p->channel];
    MS_TRY(check_length(cx, d, &p->transfer, words[COUNT], words[SCALAR]));
    MS_TRY(ms_cuda_after(cx, d, lane->stream, p->before));
    MS_TRY(post_receive(cx, d, lane, p->transfer.receive, words));
    MS_TRY(ms_cuda_point_fulfil(cx, d, p->event, lane->stream));
    ms_cuda_pending_drop(d, p);
    return MS_OK;
}

static ms_status store_unexpected(ms_ctx *cx, ms_device_rank *d, int lane,
                                  const ms_transfer *waiting, const long *words)
{
    ms_cuda_lane *l = &d->lanes[lane];
    size_t bytes = (size_t)words[COUNT] * ms_scalar_bytes((ms_scalar)words[SCALAR]);
    ms_cuda_unexpected *stored = MS_NEW(d->arena, ms_cuda_unexpected),
                       **end = &l->unasked;
    *stored =
        (ms_cuda_unexpected){(int)words[TAG], words[COUNT], (ms_scalar)words[SCALAR],
                             ms_cuda_memory_take(d->memory, bytes), NULL};
    if (bytes > 0 && stored->memory == NULL)
        return ms_transfer_no_memory(cx, d->job->outer->world, waiting);
    while (*end != NULL)
        end = &(*end)->next;
    *end = stored;
    MS_TRY(ms_cuda_after_compute(cx, d, l->stream));
    return post_receive(cx, d, l, stored->memory, words);
}

ms_status ms_cuda_receive_resolve(ms_ctx *cx, ms_device_rank *d, ms_cuda_pending *wanted)
{
    const ms_transfer transfer = wanted->transfer;
    const ms_event event = wanted->event;
    int lane = wanted->channel;
    for (;;) {
        long words[NUM_WORDS];
        ms_event announced_event;
        ms_transfer announced = announcement(&transfer, words);
        MS_TRY(d->job->inner->start(cx, d->inner, &announced, NULL, 0, &announced_event));
        MS_TRY(d->job->inner->wait(cx, d->inner, announced_event));
        ms_cuda_pending *p = find_posted_receive(d, lane, words[TAG]);
        if (p == NULL)
            MS_TRY(store_unexpected(cx, d, lane, &transfer, words));
        else
            MS_TRY(deliver(cx, d, p, words));
        const ms_cuda_point *point = ms_cuda_point_of(d, event);
        if (point == NULL || point->pending == NULL)
            return MS_OK;
    }
}

static ms_status receive_stored(ms_ctx *cx, ms_device_rank *d, const ms_transfer *t,
                                const ms_cuda_lane *lane,
                                const ms_cuda_unexpected *stored)
{
    size_t bytes = (size_t)stored->count * ms_scalar_bytes(stored->scalar);
    MS_TRY(check_length(cx, d, t, stored->count, stored->scalar));
    MS_TRY(ms_cuda_after_compute(cx, d, lane->stream));
    return bytes == 0 ? MS_OK
                      : d->driver->copy(cx, lane->stream, t->receive, stored->memory,
                                        bytes, MS_CUDA_ON_DEVICE);
}

ms_status ms_cuda_receive(ms_ctx *cx, ms_device_rank *d, const ms_transfer *transfer,
                          int lane, ms_event *done)
{
    ms_cuda_lane *l = &d->lanes[lane];
    ms_cuda_unexpected **at = &l->unasked;
    while (*at != NULL && (*at)->tag != transfer->tag)
        at = &(*at)->next;
    ms_cuda_unexpected *stored = *at;
    if (stored == NULL) {
        ms_event before = ms_cuda_mark(d);
        ms_cuda_pending *p = ms_cuda_pending_add(cx, d, transfer);
        p->channel = lane;
        p->before = before;
        *done = p->event;
        return MS_OK;
    }
    *at = stored->next;
    MS_TRY(receive_stored(cx, d, transfer, l, stored));
    MS_TRY(ms_cuda_point_make(cx, d, l->stream, transfer, done));
    ms_cuda_point_of(d, *done)->release = stored->memory;
    return MS_OK;
}
