/* The loop backend: runs all ranks as threads of this process, on the CPU. Starting a
 * transfer posts a copy of its data and never waits. Reductions add in the order of
 * members: results are equal on all ranks and in every run. */
#include "exec/backends/rank_threads.h"
#include "exec/backends/transfer_copy.h"
#include "exec/cpu/host_backend.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A started collective or receive that the rank has not waited for yet. */
typedef struct pending {
    ms_event event;
    ms_transfer transfer;
    ms_round *round; /* record of the collective; NULL for a receive */
    long *counts;    /* elements that an all-to-all gets from each member */
    struct pending *next;
} pending;

struct ms_device_rank {
    ms_host_rank host;
    ms_rank_threads *threads;
    const ms_world *world;
    const ms_kernels *kernels;
    long rank;
    ms_event last_event;
    pending *first, **end;
};

/* ---- open, run, close ---- */

static ms_status loop_open(ms_ctx *cx, ms_backend_job *job)
{
    job->state = ms_pool_open();
    return job->state != NULL ? MS_OK
                              : ms_fail(cx, MS_EIO, MS_NOWHERE, "no memory is left");
}

static void loop_close(ms_backend_job *job)
{
    ms_pool_close(job->state);
    job->state = NULL;
}

/* Computes an all-reduce once for all members, into the first member's posted copy. */
static void complete_round(const ms_rank_threads *threads, ms_post *posts, int size)
{
    (void)threads;
    ms_transfer_copy *first = posts[0].data;
    if (first->transfer.kind != MS_TRANSFER_ALL_REDUCE)
        return;
    for (int i = 1; i < size; i++)
        if (!ms_transfer_copies_agree(first, posts[i].data))
            return; /* every member reports the mismatch in check_round */
    for (int i = 1; i < size; i++)
        ms_transfer_copy_fold(first, first->data,
                              ((const ms_transfer_copy *)posts[i].data)->data,
                              first->count);
}

/* Frees the records of transfers that the rank never waited for. */
static void close_rank(ms_device_rank *device)
{
    while (device->first != NULL) {
        pending *p = device->first;
        device->first = p->next;
        free(p);
    }
}

static ms_status loop_run(ms_ctx *cx, ms_backend_job *job, ms_rank_main *main,
                          void *state)
{
    long num_ranks = job->world->num_ranks;
    ms_arena *arena = ms_arena_open();
    ms_rank_threads *threads = ms_rank_threads_open(
        job, (ms_rank_threads_ops){.complete = complete_round,
                                   .release = ms_transfer_copy_drop});
    ms_device_rank *all = MS_NEW_ARRAY(arena, num_ranks, ms_device_rank);
    ms_device_rank **devices = MS_NEW_ARRAY(arena, num_ranks, ms_device_rank *);
    for (long rank = 0; rank < num_ranks; rank++) {
        devices[rank] = &all[rank];
        all[rank] = (ms_device_rank){.threads = threads,
                                     .world = job->world,
                                     .kernels = ms_cpu_run_kernels(job->type),
                                     .host.pool = job->state,
                                     .rank = rank,
                                     .end = &all[rank].first};
    }
    ms_status status = ms_rank_threads_run(cx, threads, main, devices, state);
    for (long rank = 0; rank < num_ranks; rank++)
        close_rank(devices[rank]);
    ms_rank_threads_close(threads);
    ms_arena_close(arena);
    return status;
}

static void loop_abort(ms_device_rank *device)
{
    ms_rank_threads_fail(device->threads, device->rank);
}

/* ---- kernels, clock ---- */

static ms_status loop_kernel(ms_ctx *cx, ms_device_rank *device, const ms_op_call *call)
{
    MS_TRY(ms_rank_threads_check(cx, device->threads));
    ms_kernel *kernel = device->kernels->op[call->node->op];
    assert(kernel != NULL);
    kernel(call);
    return MS_OK;
}

static double loop_now_s(ms_device_rank *device)
{
    return ms_rank_threads_elapsed_s(device->threads);
}

/* ---- collectives ---- */

static bool is_collective(const ms_transfer *transfer)
{
    return transfer->kind < MS_TRANSFER_SEND;
}

static const ms_members *members_of(const ms_device_rank *device,
                                    const ms_transfer *transfer)
{
    return &device->world->members[transfer->group][device->rank];
}

/* Fails if members of a group started different collectives; receives nothing then. */
static ms_status check_round(ms_ctx *cx, const ms_device_rank *device, const pending *p,
                             const ms_post *posts)
{
    const ms_members *members = members_of(device, &p->transfer);
    const ms_transfer_copy *own = posts[members->own].data;
    for (int i = 0; i < members->size; i++) {
        const ms_transfer_copy *other = posts[i].data;
        bool fits = ms_transfer_copies_agree(own, other) &&
                    (p->transfer.kind != MS_TRANSFER_ALL_TO_ALL ||
                     ms_transfer_copy_for(other, members->own).count == p->counts[i]);
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

static void copy_portion(void *to, const ms_portion *portion)
{
    if (portion->bytes > 0)
        memcpy(to, portion->data, portion->bytes);
}

/* Writes transfer->receive: the members' portions for this rank, added up
 * (reduce-scatter) or concatenated; for an all-reduce the sum, which posts[0] holds. */
static void combine_portions(const ms_members *members, const ms_transfer *transfer,
                             const ms_post *posts)
{
    bool adds = transfer->kind == MS_TRANSFER_REDUCE_SCATTER;
    int num = transfer->kind == MS_TRANSFER_ALL_REDUCE ? 1 : members->size;
    char *to = transfer->receive;
    for (int i = 0; i < num; i++) {
        ms_portion portion = ms_transfer_copy_for(posts[i].data, members->own);
        if (adds && i > 0)
            ms_transfer_copy_fold(posts[i].data, to, portion.data, portion.count);
        else
            copy_portion(to, &portion);
        if (!adds)
            to += portion.bytes;
    }
}

static ms_status finish_collective(ms_ctx *cx, ms_device_rank *device, const pending *p)
{
    const ms_post *posts;
    MS_TRY(ms_rank_threads_await(cx, device->threads, device->rank, p->round,
                                 &p->transfer, &posts));
    MS_TRY(check_round(cx, device, p, posts));
    combine_portions(members_of(device, &p->transfer), &p->transfer, posts);
    ms_rank_threads_leave(device->threads, p->round);
    return MS_OK;
}

static ms_status copy_received(ms_ctx *cx, const ms_world *world,
                               const ms_transfer *transfer,
                               const ms_transfer_copy *message)
{
    if (message->count == transfer->count &&
        message->transfer.scalar == transfer->scalar) {
        ms_portion whole = ms_transfer_copy_for(message, 0);
        copy_portion(transfer->receive, &whole);
        return MS_OK;
    }
    return ms_fail(cx, MS_EIO, MS_NOWHERE, "%s of %ld elements gets %s of %ld elements",
                   ms_transfer_text(cx->arena, world, transfer), transfer->count,
                   ms_transfer_text(cx->arena, world, &message->transfer),
                   message->count);
}

static ms_status finish_receive(ms_ctx *cx, ms_device_rank *device, const pending *p)
{
    ms_post post;
    MS_TRY(
        ms_rank_threads_receive(cx, device->threads, device->rank, &p->transfer, &post));
    ms_status status = copy_received(cx, device->world, &p->transfer, post.data);
    ms_transfer_copy_drop(post.data);
    return status;
}

/* ---- transfers ---- */

static ms_status finish_transfer(ms_ctx *cx, ms_device_rank *device, pending **at)
{
    pending *p = *at;
    ms_status status = is_collective(&p->transfer) ? finish_collective(cx, device, p)
                                                   : finish_receive(cx, device, p);
    *at = p->next;
    if (device->end == &p->next)
        device->end = at;
    free(p);
    return status;
}

static ms_status loop_wait(ms_ctx *cx, ms_device_rank *device, ms_event event)
{
    MS_TRY(ms_rank_threads_check(cx, device->threads));
    pending *wanted = device->first;
    while (wanted != NULL && wanted->event != event)
        wanted = wanted->next;
    if (wanted == NULL)
        return MS_OK;
    ms_transfer transfer = wanted->transfer;
    for (pending **at = &device->first; *at != NULL;) {
        bool is_wanted = (*at)->event == event;
        if (is_wanted || ms_transfer_comes_before(&(*at)->transfer, &transfer))
            MS_TRY(finish_transfer(cx, device, at));
        else
            at = &(*at)->next;
        if (is_wanted)
            break;
    }
    return MS_OK;
}

static ms_status add_pending(ms_ctx *cx, ms_device_rank *device,
                             const ms_transfer *transfer, pending **out)
{
    bool uneven = transfer->kind == MS_TRANSFER_ALL_TO_ALL;
    size_t counts_bytes =
        uneven ? (size_t)members_of(device, transfer)->size * sizeof(long) : 0;
    pending *p = malloc(sizeof *p + counts_bytes);
    *out = p;
    if (p == NULL)
        return ms_transfer_no_memory(cx, device->world, transfer);
    *p = (pending){.event = ++device->last_event, .transfer = *transfer};
    if (uneven) {
        p->counts = (long *)(void *)(p + 1);
        memcpy(p->counts, transfer->receive_counts, counts_bytes);
    }
    *device->end = p;
    device->end = &p->next;
    return MS_OK;
}

static ms_status start_collective(ms_ctx *cx, ms_device_rank *device,
                                  ms_transfer_copy *own, ms_event *done)
{
    pending *p;
    ms_status status = add_pending(cx, device, &own->transfer, &p);
    if (status != MS_OK) {
        ms_transfer_copy_drop(own);
        return status;
    }
    *done = p->event;
    p->round =
        ms_rank_threads_arrive(device->threads, device->rank,
                               (ms_traffic_group)own->transfer.group, (ms_post){own, 0});
    return MS_OK;
}

static ms_status loop_start(ms_ctx *cx, ms_device_rank *device,
                            const ms_transfer *transfer, const ms_event *after,
                            int num_after, ms_event *done)
{
    *done = 0;
    MS_TRY(ms_rank_threads_check(cx, device->threads));
    for (int i = 0; i < num_after; i++)
        MS_TRY(loop_wait(cx, device, after[i]));
    if (transfer->kind == MS_TRANSFER_RECEIVE) {
        pending *p;
        MS_TRY(add_pending(cx, device, transfer, &p));
        *done = p->event;
        return MS_OK;
    }
    int size = is_collective(transfer) ? members_of(device, transfer)->size : 1;
    ms_transfer_copy *own = ms_transfer_copy_pack(device->host.pool, transfer, size);
    if (own == NULL)
        return ms_transfer_no_memory(cx, device->world, transfer);
    if (is_collective(transfer))
        return start_collective(cx, device, own, done);
    ms_rank_threads_send(device->threads, device->rank, transfer->peer, transfer->tag,
                         (ms_post){own, 0});
    return MS_OK;
}

const ms_backend ms_backend_loop = {
    .name = "loop",
    .has_values = true,
    .in_process = true,
    .arrays = &ms_host_arrays,
    .computes = {[MS_REAL_FP32] = true,
                 [MS_REAL_FP64] = true,
                 [MS_REAL_BF16] = true,
                 [MS_REAL_FP8] = true,
                 [MS_REAL_FP4] = true},
    .workspace_bytes = ms_host_workspace_bytes,
    .open = loop_open,
    .run = loop_run,
    .close = loop_close,
    .carries = ms_rank_threads_carries,
    .allocate = ms_host_allocate,
    .release = ms_host_release,
    .kernel = loop_kernel,
    .idle = ms_host_idle,
    .mark = ms_host_mark,
    .start = loop_start,
    .wait = loop_wait,
    .now_s = loop_now_s,
    .abort = loop_abort,
};
