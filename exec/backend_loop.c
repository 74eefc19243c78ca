/* All ranks in this process, a thread each. A transfer leaves a copy of its data at `start`, so
 * that it never waits there, and takes what it gets in `wait`. Members are added in their order:
 * results are the same on all, and in every run. */
#include "exec/backend_host.h"
#include "exec/backend_pool.h"
#include "exec/meeting.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 64

/* A transfer as it is left for the others: what it is, the counts of an all-to-all, and its data. */
typedef struct parcel {
    ms_pool *pool; /* whose memory it is, */
    size_t bytes;  /* all of it */
    ms_transfer transfer;
    size_t element_bytes;
    long *counts; /* what was sent to each member */
    char *data;
} parcel;

/* Started, not yet waited for. */
typedef struct pending {
    ms_event event;
    ms_transfer transfer;
    ms_round *round; /* of collectives */
    long *counts;    /* what an all-to-all gets from each member */
    struct pending *next;
} pending;

struct ms_device_rank {
    ms_host_rank host;
    ms_crew *crew;
    const ms_backend_job *job;
    const ms_world *world;
    const ms_kernels *kernels;
    ms_pool *pool; /* of all ranks */
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

static bool loop_carries(const ms_backend_job *job, long rank)
{
    return rank >= 0 && rank < job->world->num_ranks;
}

static void drop_pending(ms_device_rank *device)
{
    while (device->first != NULL) {
        pending *p = device->first;
        device->first = p->next;
        free(p);
    }
}

static void complete_round(const ms_crew *crew, ms_post *posts, int size);

static void drop_parcel(void *data)
{
    parcel *p = data;
    ms_pool_give(p->pool, p, p->bytes);
}

static ms_status loop_run(ms_ctx *cx, ms_backend_job *job, ms_rank_main *main,
                          void *state)
{
    long num_ranks = job->world->num_ranks;
    ms_arena *arena = ms_arena_open();
    ms_crew *crew = ms_crew_open(job, (ms_crew_habits){complete_round, drop_parcel, 0});
    ms_device_rank *all = MS_NEW_ARRAY(arena, num_ranks, ms_device_rank);
    ms_device_rank **devices = MS_NEW_ARRAY(arena, num_ranks, ms_device_rank *);
    for (long rank = 0; rank < num_ranks; rank++) {
        devices[rank] = &all[rank];
        all[rank] = (ms_device_rank){.crew = crew,
                                     .job = job,
                                     .world = job->world,
                                     .kernels = ms_cpu_kernels(job->type),
                                     .pool = job->state,
                                     .rank = rank,
                                     .end = &all[rank].first};
    }
    ms_status status = ms_crew_run(cx, crew, main, devices, state);
    for (long rank = 0; rank < num_ranks; rank++)
        drop_pending(devices[rank]);
    ms_crew_close(crew);
    ms_arena_close(arena);
    return status;
}

/* ---- memory, kernels, clock ---- */

static void *loop_allocate(ms_device_rank *device, size_t bytes)
{
    return ms_pool_take(device->pool, bytes);
}

static void loop_release(ms_device_rank *device, void *memory, size_t bytes)
{
    ms_pool_give(device->pool, memory, bytes);
}

static ms_status loop_kernel(ms_ctx *cx, ms_device_rank *device, const ms_op_call *call)
{
    MS_TRY(ms_crew_check(cx, device->crew));
    ms_kernel *kernel = device->kernels->op[call->node->op];
    assert(kernel != NULL);
    kernel(call);
    return MS_OK;
}

static double loop_now_s(ms_device_rank *device)
{
    return ms_crew_elapsed_s(device->crew);
}

static void loop_abort(ms_device_rank *device)
{
    ms_crew_fail(device->crew, device->rank);
}

/* ---- sums and maxima ---- */

static void fold_float(float *to, const float *from, long count, bool maximum)
{
    for (long i = 0; i < count; i++) {
        if (!maximum)
            to[i] += from[i];
        else if (from[i] > to[i])
            to[i] = from[i];
    }
}

static void fold_double(double *to, const double *from, long count, bool maximum)
{
    for (long i = 0; i < count; i++) {
        if (!maximum)
            to[i] += from[i];
        else if (from[i] > to[i])
            to[i] = from[i];
    }
}

static void fold_long(long *to, const long *from, long count, bool maximum)
{
    for (long i = 0; i < count; i++) {
        if (!maximum)
            to[i] += from[i];
        else if (from[i] > to[i])
            to[i] = from[i];
    }
}

static void fold(const parcel *like, void *to, const void *from, long count)
{
    bool maximum = like->transfer.maximum;
    if (like->transfer.scalar == MS_SCALAR_LONG)
        fold_long(to, from, count, maximum);
    else if (like->transfer.scalar == MS_SCALAR_FP32)
        fold_float(to, from, count, maximum);
    else
        fold_double(to, from, count, maximum);
}

/* ---- parcels ---- */

static void copy(void *to, const void *from, size_t bytes)
{
    if (bytes > 0)
        memcpy(to, from, bytes);
}

static long sum(const long *counts, int num)
{
    long total = 0;
    for (int i = 0; i < num; i++)
        total += counts[i];
    return total;
}

static bool is_collective(const ms_transfer *transfer)
{
    return transfer->kind < MS_TRANSFER_SEND;
}

static const ms_members *members_of(const ms_device_rank *device,
                                    const ms_transfer *transfer)
{
    return &device->world->members[transfer->group][device->rank];
}

/* NULL: no memory is left. */
static parcel *pack(const ms_device_rank *device, const ms_transfer *transfer)
{
    int size = is_collective(transfer) ? members_of(device, transfer)->size : 1;
    bool uneven = transfer->kind == MS_TRANSFER_ALL_TO_ALL;
    long elements = transfer->count;
    if (uneven)
        elements = sum(transfer->send_counts, size);
    else if (transfer->kind == MS_TRANSFER_REDUCE_SCATTER)
        elements *= size;
    size_t each = ms_scalar_bytes((ms_scalar)transfer->scalar);
    size_t head = sizeof(parcel) + (uneven ? (size_t)size * sizeof(long) : 0);
    head = (head + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    size_t bytes = head + (size_t)elements * each;
    char *memory = ms_pool_take(device->pool, bytes);
    if (memory == NULL)
        return NULL;
    parcel *made = (parcel *)(void *)memory;
    *made = (parcel){device->pool, bytes, *transfer, each, NULL, memory + head};
    if (uneven) {
        made->counts = (long *)(void *)(memory + sizeof(parcel));
        copy(made->counts, transfer->send_counts, (size_t)size * sizeof(long));
    }
    copy(made->data, transfer->send, (size_t)elements * each);
    return made;
}

static bool agree(const ms_transfer *a, const ms_transfer *b)
{
    return a->kind == b->kind && a->scalar == b->scalar && a->maximum == b->maximum &&
           (a->count == b->count || a->kind == MS_TRANSFER_ALL_TO_ALL);
}

/* An all-reduce is done once, in the first member's copy. */
static void complete_round(const ms_crew *crew, ms_post *posts, int size)
{
    (void)crew;
    parcel *first = posts[0].data;
    if (first->transfer.kind != MS_TRANSFER_ALL_REDUCE)
        return;
    for (int i = 1; i < size; i++) {
        const parcel *from = posts[i].data;
        if (!agree(&first->transfer, &from->transfer))
            return; /* every member finds this out */
    }
    for (int i = 1; i < size; i++)
        fold(first, first->data, ((const parcel *)posts[i].data)->data,
             first->transfer.count);
}

/* ---- what members get ---- */

static void get_all_gather(const ms_transfer *transfer, const ms_post *posts,
                           const ms_members *members)
{
    char *to = transfer->receive;
    for (int i = 0; i < members->size; i++) {
        const parcel *from = posts[i].data;
        size_t bytes = (size_t)transfer->count * from->element_bytes;
        copy(to + (size_t)i * bytes, from->data, bytes);
    }
}

static void get_reduce_scatter(const ms_transfer *transfer, const ms_post *posts,
                               const ms_members *members)
{
    for (int i = 0; i < members->size; i++) {
        const parcel *from = posts[i].data;
        size_t bytes = (size_t)transfer->count * from->element_bytes;
        const char *part = from->data + (size_t)members->own * bytes;
        if (i == 0)
            copy(transfer->receive, part, bytes);
        else
            fold(from, transfer->receive, part, transfer->count);
    }
}

static void get_all_to_all(const pending *p, const ms_post *posts,
                           const ms_members *members)
{
    char *to = p->transfer.receive;
    for (int i = 0; i < members->size; i++) {
        const parcel *from = posts[i].data;
        size_t bytes = (size_t)p->counts[i] * from->element_bytes;
        long before = sum(from->counts, members->own);
        copy(to, from->data + (size_t)before * from->element_bytes, bytes);
        to += bytes;
    }
}

/* A defect of the caller, told before memory is overwritten. */
static ms_status check_round(ms_ctx *cx, const ms_device_rank *device, const pending *p,
                             const ms_post *posts)
{
    const ms_members *members = members_of(device, &p->transfer);
    for (int i = 0; i < members->size; i++) {
        const parcel *other = posts[i].data;
        bool fits = agree(&p->transfer, &other->transfer) &&
                    (p->transfer.kind != MS_TRANSFER_ALL_TO_ALL ||
                     other->counts[members->own] == p->counts[i]);
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

static ms_status finish_collective(ms_ctx *cx, ms_device_rank *device, const pending *p)
{
    const ms_members *members = members_of(device, &p->transfer);
    const ms_post *posts;
    ms_status status =
        ms_crew_await(cx, device->crew, device->rank, p->round, &p->transfer, &posts);
    if (status == MS_OK)
        status = check_round(cx, device, p, posts);
    if (status != MS_OK)
        return status;
    const parcel *first = posts[0].data;
    if (p->transfer.kind == MS_TRANSFER_ALL_GATHER)
        get_all_gather(&p->transfer, posts, members);
    else if (p->transfer.kind == MS_TRANSFER_REDUCE_SCATTER)
        get_reduce_scatter(&p->transfer, posts, members);
    else if (p->transfer.kind == MS_TRANSFER_ALL_TO_ALL)
        get_all_to_all(p, posts, members);
    else
        copy(p->transfer.receive, first->data,
             (size_t)p->transfer.count * first->element_bytes);
    ms_crew_leave(device->crew, p->round);
    return MS_OK;
}

static ms_status finish_receive(ms_ctx *cx, ms_device_rank *device, const pending *p)
{
    ms_post post;
    MS_TRY(ms_crew_receive(cx, device->crew, device->rank, &p->transfer, &post));
    parcel *came = post.data;
    bool fits = came->transfer.count == p->transfer.count &&
                came->transfer.scalar == p->transfer.scalar;
    if (fits)
        copy(p->transfer.receive, came->data,
             (size_t)p->transfer.count * came->element_bytes);
    const ms_transfer sent = came->transfer;
    drop_parcel(came);
    if (fits)
        return MS_OK;
    return ms_fail(cx, MS_EIO, MS_NOWHERE, "%s of %ld elements gets %s of %ld elements",
                   ms_transfer_text(cx->arena, device->world, &p->transfer),
                   p->transfer.count, ms_transfer_text(cx->arena, device->world, &sent),
                   sent.count);
}

/* ---- transfers ---- */

static ms_status finish(ms_ctx *cx, ms_device_rank *device, pending **at)
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
    MS_TRY(ms_crew_check(cx, device->crew));
    pending *wanted = device->first;
    while (wanted != NULL && wanted->event != event)
        wanted = wanted->next;
    if (wanted == NULL)
        return MS_OK;
    ms_transfer transfer = wanted->transfer;
    for (pending **at = &device->first; *at != NULL;) {
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
                             const ms_transfer *transfer, parcel *own, ms_event *done)
{
    bool uneven = transfer->kind == MS_TRANSFER_ALL_TO_ALL;
    size_t counts_bytes =
        uneven ? (size_t)members_of(device, transfer)->size * sizeof(long) : 0;
    pending *p = malloc(sizeof *p + counts_bytes);
    if (p == NULL) {
        if (own != NULL)
            drop_parcel(own);
        return ms_transfer_no_memory(cx, device->world, transfer);
    }
    *p = (pending){.event = ++device->last_event, .transfer = *transfer};
    if (uneven) {
        p->counts = (long *)(void *)(p + 1);
        copy(p->counts, transfer->receive_counts, counts_bytes);
    }
    if (own != NULL)
        p->round = ms_crew_arrive(device->crew, device->rank,
                                  (ms_traffic_group)transfer->group, (ms_post){own, 0});
    *device->end = p;
    device->end = &p->next;
    *done = p->event;
    return MS_OK;
}

static ms_status loop_start(ms_ctx *cx, ms_device_rank *device,
                            const ms_transfer *transfer, const ms_event *after,
                            int num_after, ms_event *done)
{
    *done = 0;
    MS_TRY(ms_crew_check(cx, device->crew));
    for (int i = 0; i < num_after; i++)
        MS_TRY(loop_wait(cx, device, after[i]));
    if (transfer->kind == MS_TRANSFER_RECEIVE)
        return add_pending(cx, device, transfer, NULL, done);
    parcel *own = pack(device, transfer);
    if (own == NULL)
        return ms_transfer_no_memory(cx, device->world, transfer);
    if (is_collective(transfer))
        return add_pending(cx, device, transfer, own, done);
    ms_crew_send(device->crew, device->rank, transfer->peer, transfer->tag,
                 (ms_post){own, 0});
    return MS_OK;
}

const ms_backend ms_backend_loop = {
    .name = "loop",
    .has_values = true,
    .arrays = &ms_host_arrays,
    .computes = {[MS_REAL_FP32] = true, [MS_REAL_FP64] = true},
    .workspace_bytes = ms_host_workspace_bytes,
    .open = loop_open,
    .run = loop_run,
    .close = loop_close,
    .carries = loop_carries,
    .allocate = loop_allocate,
    .release = loop_release,
    .kernel = loop_kernel,
    .idle = ms_host_idle,
    .mark = ms_host_mark,
    .start = loop_start,
    .wait = loop_wait,
    .now_s = loop_now_s,
    .abort = loop_abort,
};
