/* A process a rank, with nothing between them but sockets: what carries the ranks of cuda
 * where they are processes that no MPI started. Each has a crew (exec/meeting.h) in which
 * the others take part by what they send: members of a group send each other their parts
 * of a collective and add them in the order of members. That is simple, the same in every
 * run, and no way to be fast: data of GPUs goes by NCCL. */
#include "exec/backend_crew.h"
#include "exec/backend_tcp_wire.h"
#include "exec/environment.h"

#include <stdlib.h>

/* So long the others may take to read what was sent to them last. */
#define LEAVE_S        2.0
#define FAILED_LEAVE_S 0.5

typedef struct tcp_job {
    ms_backend_job job; /* the crew's */
    ms_arena *arena;
    ms_rendezvous meeting;
    ms_crew *crew;
    ms_wire *wire;
    ms_pool *pool;
    ms_device_rank device;
    bool has_run;
    /* why another rank, or this one, ended; written by the wire's thread before it says so */
    const char *why, *own_why;
} tcp_job;

/* ---- what comes from others ---- */

static bool is_interrupted(const tcp_job *tcp)
{
    return tcp->job.interrupted != NULL && *tcp->job.interrupted != 0;
}

static bool is_member(const ms_members *members, long rank)
{
    for (int i = 0; i < members->size; i++)
        if (members->ranks[i] == rank)
            return true;
    return false;
}

static bool take_parcel(void *state, long from, ms_parcel *parcel)
{
    tcp_job *tcp = state;
    const ms_transfer *t = &parcel->transfer;
    if (t->kind == MS_TRANSFER_SEND) {
        ms_crew_send(tcp->crew, from, tcp->meeting.rank, t->tag, (ms_post){parcel, 0});
        return true;
    }
    if (t->kind == MS_TRANSFER_RECEIVE ||
        !is_member(ms_crew_rank_members(&tcp->device, t), from))
        return false;
    ms_crew_arrive(tcp->crew, from, (ms_traffic_group)t->group, (ms_post){parcel, 0});
    return true;
}

/* Ranks that are interrupted end in any order. */
static void take_failure(void *state, long rank, const char *why)
{
    tcp_job *tcp = state;
    if (is_interrupted(tcp) && rank != tcp->meeting.rank)
        return;
    if (rank == tcp->meeting.rank)
        tcp->own_why = why;
    else if (tcp->why == NULL)
        tcp->why = why;
    ms_crew_fail(tcp->crew, rank);
}

/* ---- open and close ---- */

static ms_status check_size(ms_ctx *cx, const ms_backend_job *job,
                            const ms_launch *launch)
{
    if (launch->size == job->world->num_ranks)
        return MS_OK;
    return ms_fail(
        cx, MS_EINPUT, MS_NOWHERE, "the plan has %ld ranks, but %ld process%s started",
        job->world->num_ranks, launch->size, launch->size == 1 ? " was" : "es were");
}

static ms_status meet(ms_ctx *cx, tcp_job *tcp, const ms_launch *launch)
{
    ms_meeting_point at;
    double timeout_s = tcp->job.timeout_s > 0 ? tcp->job.timeout_s : MS_DEFAULT_TIMEOUT_S;
    MS_TRY(ms_launch_meeting(cx, launch, &at));
    ms_ctx kept = {.arena = tcp->arena, .verbosity = cx->verbosity};
    ms_rendezvous *r = &tcp->meeting;
    ms_status status =
        ms_rendezvous_open(&kept, launch, &at, timeout_s, tcp->job.interrupted, r);
    if (status == MS_OK)
        status = ms_rendezvous_connect_all(&kept, r);
    return status == MS_OK ? MS_OK : ms_rank_failed(cx, launch->rank, &kept, status);
}

static void tcp_close(ms_backend_job *job)
{
    tcp_job *tcp = job->state;
    if (tcp == NULL)
        return;
    bool failed = tcp->crew != NULL && ms_crew_failed(tcp->crew) >= 0;
    if (tcp->wire != NULL && !tcp->has_run) /* who opened it has failed since */
        ms_wire_send_failure(tcp->wire, tcp->meeting.rank);
    ms_wire_close(tcp->wire, failed ? FAILED_LEAVE_S : LEAVE_S);
    ms_rendezvous_close(&tcp->meeting);
    ms_crew_rank_close(&tcp->device);
    if (tcp->crew != NULL)
        ms_crew_close(tcp->crew);
    ms_pool_close(tcp->pool);
    ms_arena_close(tcp->arena);
    free(tcp);
    job->state = NULL;
}

static ms_status forward(ms_ctx *cx, ms_device_rank *device, ms_parcel *parcel)
{
    const ms_transfer *t = &parcel->transfer;
    ms_wire *wire = ((const tcp_job *)device->state)->wire;
    const ms_portion whole = {parcel->data, parcel->count};
    bool has_room = true;
    if (t->kind == MS_TRANSFER_SEND) {
        has_room = ms_wire_send(wire, t->peer, parcel, whole);
    } else {
        const ms_members *members = ms_crew_rank_members(device, t);
        for (int i = 0; i < members->size && has_room; i++)
            if (i != members->own)
                has_room = ms_wire_send(wire, members->ranks[i], parcel,
                                        ms_parcel_for(parcel, i));
    }
    return has_room ? MS_OK : ms_transfer_no_memory(cx, device->world, t);
}

static ms_status open_crew(ms_ctx *cx, tcp_job *tcp, const ms_launch *launch)
{
    const ms_wire_listener listener = {tcp, take_parcel, take_failure};
    tcp->crew = ms_crew_open(
        &tcp->job, (ms_crew_habits){.release = ms_parcel_drop, .is_alone = true});
    tcp->device = (ms_device_rank){.crew = tcp->crew,
                                   .world = tcp->job.world,
                                   .kernels = ms_cpu_kernels(tcp->job.type),
                                   .pool = tcp->pool,
                                   .rank = launch->rank,
                                   .forward = forward,
                                   .state = tcp};
    ms_crew_rank_open(&tcp->device);
    return ms_wire_open(cx, &tcp->meeting, tcp->pool, &listener, &tcp->wire);
}

static ms_status tcp_open(ms_ctx *cx, ms_backend_job *job)
{
    ms_launch launch = ms_launch_environment();
    tcp_job *tcp = calloc(1, sizeof *tcp);
    job->state = tcp;
    if (tcp == NULL)
        return ms_fail(cx, MS_EIO, MS_NOWHERE, "no memory is left");
    tcp->job = *job;
    tcp->arena = ms_arena_open();
    tcp->pool = ms_pool_open();
    ms_crew_rank_open(&tcp->device);
    ms_status status = check_size(cx, job, &launch);
    if (status == MS_OK && tcp->pool == NULL)
        status = ms_fail(cx, MS_EIO, MS_NOWHERE, "no memory is left");
    if (status == MS_OK)
        status = meet(cx, tcp, &launch);
    if (status == MS_OK)
        status = open_crew(cx, tcp, &launch);
    if (status != MS_OK)
        tcp_close(job);
    return status;
}

static bool tcp_carries(const ms_backend_job *job, long rank)
{
    return rank == ((const tcp_job *)job->state)->meeting.rank;
}

/* ---- run ---- */

static void tcp_abort(ms_device_rank *device)
{
    ms_crew_fail(device->crew, device->rank);
}

static ms_status leave_sent(ms_ctx *cx, tcp_job *tcp)
{
    double timeout_s = tcp->job.timeout_s > 0 ? tcp->job.timeout_s : MS_DEFAULT_TIMEOUT_S;
    if (ms_wire_flush(tcp->wire, timeout_s))
        return MS_OK;
    return ms_fail(cx, MS_EIO, MS_NOWHERE,
                   "waited %g s for other ranks to take what was sent to them",
                   timeout_s);
}

/* Everybody hears of it. The rank itself may only know that another has. */
static ms_status end_failed(ms_ctx *cx, tcp_job *tcp, const ms_ctx *own, ms_status status)
{
    long rank = tcp->meeting.rank;
    ms_crew_fail(tcp->crew, rank); /* unless another was before it */
    long failed = ms_crew_failed(tcp->crew);
    ms_wire_send_failure(tcp->wire, failed);
    if (status == MS_EINTERRUPTED || (failed == rank && tcp->own_why == NULL))
        return ms_rank_failed(cx, rank, own, status);
    if (failed == rank)
        return ms_fail(cx, MS_EIO, MS_NOWHERE, "rank %ld %s", rank, tcp->own_why);
    return ms_fail(cx, MS_EIO, MS_NOWHERE, "rank %ld: rank %ld %s", rank, failed,
                   tcp->why);
}

static ms_status tcp_run(ms_ctx *cx, ms_backend_job *job, ms_rank_main *main, void *state)
{
    tcp_job *tcp = job->state;
    ms_device_rank *device = &tcp->device;
    ms_ctx own = {.arena = ms_arena_open(), .verbosity = cx->verbosity};
    tcp->has_run = true;
    ms_status status = ms_host_meet_all(&own, &ms_backend_tcp, device);
    ms_crew_begin_clock(tcp->crew);
    if (status == MS_OK)
        status = main(&own, device, device->rank, state);
    if (status == MS_OK)
        status = leave_sent(&own, tcp);
    if (status != MS_OK || ms_crew_failed(tcp->crew) >= 0)
        status = end_failed(cx, tcp, &own, status);
    ms_arena_close(own.arena);
    return status;
}

const ms_backend ms_backend_tcp = {
    .name = "tcp",
    .has_values = true,
    .arrays = &ms_host_arrays,
    .computes = {[MS_REAL_FP32] = true, [MS_REAL_FP64] = true},
    .workspace_bytes = ms_host_workspace_bytes,
    .open = tcp_open,
    .run = tcp_run,
    .close = tcp_close,
    .carries = tcp_carries,
    .allocate = ms_crew_rank_allocate,
    .release = ms_crew_rank_release,
    .kernel = ms_crew_rank_kernel,
    .idle = ms_host_idle,
    .mark = ms_host_mark,
    .start = ms_crew_rank_start,
    .wait = ms_crew_rank_wait,
    .now_s = ms_crew_rank_now_s,
    .abort = tcp_abort,
};
