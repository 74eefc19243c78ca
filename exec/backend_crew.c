#include "exec/backend_crew.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct ms_crew_pending {
    ms_event event;
    ms_transfer transfer;
    ms_round *round; /* of collectives */
    long *counts;    /* what an all-to-all gets from each member */
    ms_crew_pending *next;
};

void ms_crew_rank_open(ms_device_rank *device)
{
    device->end = &device->first;
}

void ms_crew_rank_close(ms_device_rank *device)
{
    while (device->first != NULL) {
        ms_crew_pending *p = device->first;
        device->first = p->next;
        free(p);
    }
    device->end = &device->first;
}

/* ---- memory, kernels, clock ---- */

void *ms_crew_rank_allocate(ms_device_rank *device, size_t bytes)
{
    return ms_pool_take(device->pool, bytes);
}

void ms_crew_rank_release(ms_device_rank *device, void *memory, size_t bytes)
{
    ms_pool_give(device->pool, memory, bytes);
}

ms_status ms_crew_rank_kernel(ms_ctx *cx, ms_device_rank *device, const ms_op_call *call)
{
    MS_TRY(ms_crew_check(cx, device->crew));
    ms_kernel *kernel = device->kernels->op[call->node->op];
    assert(kernel != NULL);
    kernel(call);
    return MS_OK;
}

double ms_crew_rank_now_s(ms_device_rank *device)
{
    return ms_crew_elapsed_s(device->crew);
}

/* ---- what members get ---- */

static bool is_collective(const ms_transfer *transfer)
{
    return transfer->kind < MS_TRANSFER_SEND;
}

const ms_members *ms_crew_rank_members(const ms_device_rank *device,
                                       const ms_transfer *transfer)
{
    return &device->world->members[transfer->group][device->rank];
}

/* A defect of the caller, told before memory is overwritten. */
static ms_status check_round(ms_ctx *cx, const ms_device_rank *device,
                             const ms_crew_pending *p, const ms_post *posts)
{
    const ms_members *members = ms_crew_rank_members(device, &p->transfer);
    const ms_parcel *own = posts[members->own].data;
    for (int i = 0; i < members->size; i++) {
        const ms_parcel *other = posts[i].data;
        bool fits = ms_parcels_agree(own, other) &&
                    (p->transfer.kind != MS_TRANSFER_ALL_TO_ALL ||
                     ms_parcel_for(other, members->own).count == p->counts[i]);
        if (fits)
            continue;
        return ms_fail(cx, MS_EIO, MS_NOWHERE,
                       "%s of %ld elements meets %s of %ld elements on rank %ld",
                       ms_transfer_text(cx->arena, device->world, &p->transfer),
                       p->transfer.count,
                       ms_transfer_text(cx->arena, device->world, &other->transfer),
                       other->transfer.count, members->ranks[i]);
    }
    return MS_OK;
}

static ms_status combine(ms_ctx *cx, const ms_device_rank *device,
                         const ms_crew_pending *p, const ms_post *posts)
{
    const ms_members *members = ms_crew_rank_members(device, &p->transfer);
    bool is_done = device->forward == NULL && p->transfer.kind == MS_TRANSFER_ALL_REDUCE;
    int num = is_done ? 1 : members->size;
    ms_portion *parts = malloc((size_t)num * sizeof *parts);
    if (parts == NULL)
        return ms_transfer_no_memory(cx, device->world, &p->transfer);
    for (int i = 0; i < num; i++)
        parts[i] = ms_parcel_for(posts[i].data, members->own);
    ms_parcel_combine(&p->transfer, parts, num);
    free(parts);
    return MS_OK;
}

static ms_status finish_collective(ms_ctx *cx, ms_device_rank *device,
                                   const ms_crew_pending *p)
{
    const ms_post *posts;
    MS_TRY(ms_crew_await(cx, device->crew, device->rank, p->round, &p->transfer, &posts));
    MS_TRY(check_round(cx, device, p, posts));
    MS_TRY(combine(cx, device, p, posts));
    ms_crew_leave(device->crew, p->round);
    return MS_OK;
}

static ms_status finish_receive(ms_ctx *cx, ms_device_rank *device,
                                const ms_crew_pending *p)
{
    ms_post post;
    MS_TRY(ms_crew_receive(cx, device->crew, device->rank, &p->transfer, &post));
    ms_status status = ms_parcel_receive(cx, device->world, &p->transfer, post.data);
    ms_parcel_drop(post.data);
    return status;
}

/* ---- transfers ---- */

static ms_status finish(ms_ctx *cx, ms_device_rank *device, ms_crew_pending **at)
{
    ms_crew_pending *p = *at;
    ms_status status = is_collective(&p->transfer) ? finish_collective(cx, device, p)
                                                   : finish_receive(cx, device, p);
    *at = p->next;
    if (device->end == &p->next)
        device->end = at;
    free(p);
    return status;
}

ms_status ms_crew_rank_wait(ms_ctx *cx, ms_device_rank *device, ms_event event)
{
    MS_TRY(ms_crew_check(cx, device->crew));
    ms_crew_pending *wanted = device->first;
    while (wanted != NULL && wanted->event != event)
        wanted = wanted->next;
    if (wanted == NULL)
        return MS_OK;
    ms_transfer transfer = wanted->transfer;
    for (ms_crew_pending **at = &device->first; *at != NULL;) {
        bool is_wanted = (*at)->event == event;
        if (is_wanted || ms_transfer_comes_before(&(*at)->transfer, &transfer))
            MS_TRY(finish(cx, device, at));
        else
            at = &(*at)->next;
        if (is_wanted)
            break;
    }
    return MS_OK;
}

static ms_status add_pending(ms_ctx *cx, ms_device_rank *device,
                             const ms_transfer *transfer, ms_crew_pending **out)
{
    bool uneven = transfer->kind == MS_TRANSFER_ALL_TO_ALL;
    size_t counts_bytes =
        uneven ? (size_t)ms_crew_rank_members(device, transfer)->size * sizeof(long) : 0;
    ms_crew_pending *p = malloc(sizeof *p + counts_bytes);
    *out = p;
    if (p == NULL)
        return ms_transfer_no_memory(cx, device->world, transfer);
    *p = (ms_crew_pending){.event = ++device->last_event, .transfer = *transfer};
    if (uneven) {
        p->counts = (long *)(void *)(p + 1);
        memcpy(p->counts, transfer->receive_counts, counts_bytes);
    }
    *device->end = p;
    device->end = &p->next;
    return MS_OK;
}

/* The parcel becomes the crew's. */
static ms_status arrive(ms_ctx *cx, ms_device_rank *device, ms_parcel *own,
                        ms_event *done)
{
    ms_crew_pending *p;
    const ms_transfer *transfer = &own->transfer;
    ms_status status = add_pending(cx, device, transfer, &p);
    if (status != MS_OK) {
        ms_parcel_drop(own);
        return status;
    }
    *done = p->event;
    if (device->forward != NULL)
        status = device->forward(cx, device, own);
    p->round = ms_crew_arrive(device->crew, device->rank,
                              (ms_traffic_group)transfer->group, (ms_post){own, 0});
    return status;
}

static ms_status send(ms_ctx *cx, ms_device_rank *device, ms_parcel *own)
{
    const ms_transfer *transfer = &own->transfer;
    if (device->forward == NULL || transfer->peer == device->rank) {
        ms_crew_send(device->crew, device->rank, transfer->peer, transfer->tag,
                     (ms_post){own, 0});
        return MS_OK;
    }
    ms_status status = device->forward(cx, device, own);
    ms_parcel_drop(own);
    return status;
}

ms_status ms_crew_rank_start(ms_ctx *cx, ms_device_rank *device,
                             const ms_transfer *transfer, const ms_event *after,
                             int num_after, ms_event *done)
{
    *done = 0;
    MS_TRY(ms_crew_check(cx, device->crew));
    for (int i = 0; i < num_after; i++)
        MS_TRY(ms_crew_rank_wait(cx, device, after[i]));
    if (transfer->kind == MS_TRANSFER_RECEIVE) {
        ms_crew_pending *p;
        MS_TRY(add_pending(cx, device, transfer, &p));
        *done = p->event;
        return MS_OK;
    }
    int size = is_collective(transfer) ? ms_crew_rank_members(device, transfer)->size : 1;
    ms_parcel *own = ms_parcel_pack(device->pool, transfer, size);
    if (own == NULL)
        return ms_transfer_no_memory(cx, device->world, transfer);
    return is_collective(transfer) ? arrive(cx, device, own, done)
                                   : send(cx, device, own);
}
