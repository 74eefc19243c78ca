/* NCCL communicators of a rank: the world's, from which all others are split in the order
 * of exec/cuda/cuda_channels.h.
 *
 * NCCL connects ranks when a communicator is first used, and the host waits for them. So
 * each is used once, right after all ranks have made it; later uses do not wait. */
#include "exec/cuda/cuda_backend_priv.h"

#include <assert.h>
#include <string.h>

#define ID_LONGS (long)(MS_CUDA_ID_BYTES / sizeof(long))

const ms_members *ms_cuda_members(const ms_device_rank *d, const ms_transfer *transfer)
{
    return &d->job->outer->world->members[transfer->group][d->rank];
}

/* ---- the world ---- */

/* Gives rank 0's NCCL id to all ranks, which wait for it; what can fail comes before. */
static ms_status share_id(ms_ctx *cx, ms_device_rank *d, ms_cuda_id *id)
{
    long words[ID_LONGS] = {0};
    if (d->rank == 0) {
        MS_TRY(d->driver->make_id(cx, id));
        memcpy(words, id->bytes, sizeof words);
    }
    ms_transfer all = {.kind = MS_TRANSFER_ALL_REDUCE,
                       .scalar = MS_SCALAR_LONG,
                       .on_host = true,
                       .group = MS_TRAFFIC_WORLD,
                       .send = words,
                       .receive = words,
                       .count = ID_LONGS,
                       .name = "begin of communication"};
    ms_event done;
    MS_TRY(d->job->inner->start(cx, d->inner, &all, NULL, 0, &done));
    MS_TRY(d->job->inner->wait(cx, d->inner, done));
    memcpy(id->bytes, words, sizeof words);
    return MS_OK;
}

/* Begins an NCCL call in which the host waits for other ranks. NCCL would not see them
 * fail: a failing rank aborts the communicators waited on, and then begin_call fails. */
static ms_status begin_call(ms_ctx *cx, ms_device_rank *d, ms_cuda_comm *comm)
{
    pthread_mutex_lock(&d->job->lock);
    bool has_failed = d->job->opening_failed;
    d->waits_on = has_failed ? NULL : comm;
    pthread_mutex_unlock(&d->job->lock);
    return has_failed ? ms_fail(cx, MS_EIO, MS_NOWHERE, "another rank has failed")
                      : MS_OK;
}

static void end_call(ms_device_rank *d)
{
    pthread_mutex_lock(&d->job->lock);
    d->waits_on = NULL;
    pthread_mutex_unlock(&d->job->lock);
}

static void abort_waiting_ranks(ms_cuda_job *job)
{
    pthread_mutex_lock(&job->lock);
    job->opening_failed = true;
    for (long rank = 0; rank < job->outer->world->num_ranks; rank++)
        if (job->ranks[rank].waits_on != NULL)
            job->driver->abort_comm(job->ranks[rank].waits_on);
    pthread_mutex_unlock(&job->lock);
}

static ms_status open_world(ms_ctx *cx, ms_device_rank *d)
{
    ms_cuda_id id;
    MS_TRY(share_id(cx, d, &id));
    return d->driver->open_comm(cx, d->gpu, &id, (int)d->rank,
                                (int)d->job->outer->world->num_ranks, &d->world);
}

static ms_status split_world(ms_ctx *cx, ms_device_rank *d, int color, int key,
                             ms_cuda_comm **out)
{
    *out = NULL;
    MS_TRY(begin_call(cx, d, d->world));
    ms_status status = d->driver->split(cx, d->world, color, key, out);
    end_call(d);
    return status;
}

/* ---- first use ---- */

static ms_status communicate_abortably(ms_ctx *cx, ms_device_rank *d, ms_cuda_comm *comm,
                                       const ms_cuda_collective *all, int num)
{
    MS_TRY(begin_call(cx, d, comm));
    ms_status status = d->driver->communicate(cx, comm, d->compute, all, num);
    end_call(d);
    return status;
}

/* Uses each kind of collective once, then sends and receives between all members.
 * `scratch` has two doubles per member. */
static ms_status warm_up_group(ms_ctx *cx, ms_device_rank *d, ms_cuda_comm *comm,
                               const ms_members *members, double *scratch)
{
    ms_cuda_collective one = {.scalar = MS_SCALAR_FP64, .count = 1, .send = scratch};
    one.receive = scratch + members->size;
    for (int kind = MS_CUDA_ALL_GATHER; kind <= MS_CUDA_ALL_REDUCE; kind++) {
        one.kind = (ms_cuda_collective_kind)kind;
        MS_TRY(communicate_abortably(cx, d, comm, &one, 1));
    }
    ms_cuda_collective *all =
        MS_NEW_ARRAY(cx->arena, 2 * members->size, ms_cuda_collective);
    int num = 0;
    for (int peer = 0; peer < members->size; peer++) {
        if (peer == members->own)
            continue;
        one.peer = peer;
        one.kind = MS_CUDA_SEND;
        one.send = scratch;
        one.receive = NULL;
        all[num++] = one;
        one.kind = MS_CUDA_RECEIVE;
        one.send = NULL;
        one.receive = scratch + members->size + peer;
        all[num++] = one;
    }
    return communicate_abortably(cx, d, comm, all, num);
}

static ms_status warm_up_lane(ms_ctx *cx, ms_device_rank *d, const ms_cuda_lane *lane,
                              double *scratch)
{
    ms_cuda_collective one = {.kind = lane->sends ? MS_CUDA_SEND : MS_CUDA_RECEIVE,
                              .scalar = MS_SCALAR_FP64,
                              .peer = lane->sends ? 1 : 0,
                              .count = 1};
    if (lane->sends)
        one.send = scratch;
    else
        one.receive = scratch + 1;
    return communicate_abortably(cx, d, lane->comm, &one, 1);
}

/* ---- opening ---- */

static ms_status open_groups(ms_ctx *cx, ms_device_rank *d, double *scratch)
{
    const ms_cuda_channels *channels = &d->job->channels;
    for (int i = 0; i < channels->num_kinds; i++) {
        const ms_cuda_kind *kind = &channels->kinds[i];
        const ms_members *members = &d->job->outer->world->members[kind->group][d->rank];
        ms_cuda_comm *comm = d->world;
        if (!kind->is_world)
            MS_TRY(split_world(cx, d, members->size > 1 ? (int)members->ranks[0] : -1,
                               members->own, &comm));
        d->groups[d->num_groups++] = (ms_cuda_group){comm, NULL};
        if (comm != NULL)
            MS_TRY(warm_up_group(cx, d, comm, members, scratch));
    }
    return MS_OK;
}

static ms_status open_lane(ms_ctx *cx, ms_device_rank *d, long channel, double *scratch)
{
    const ms_cuda_channel *c = &d->job->channels.channels[channel];
    bool sends = c->from == d->rank;
    ms_cuda_lane *lane = &d->lanes[d->num_lanes];
    *lane = (ms_cuda_lane){.peer = sends ? c->to : c->from, .sends = sends};
    MS_TRY(split_world(cx, d, (int)channel, sends ? 0 : 1, &lane->comm));
    d->num_lanes++;
    MS_TRY(d->driver->open_stream(cx, d->gpu, &lane->stream));
    return warm_up_lane(cx, d, lane, scratch);
}

static ms_status open_lanes(ms_ctx *cx, ms_device_rank *d, double *scratch)
{
    const ms_cuda_channels *channels = &d->job->channels;
    d->lanes = MS_NEW_ARRAY(d->arena, channels->num_rounds, ms_cuda_lane);
    for (int round = 0; round < channels->num_rounds; round++) {
        long channel = ms_cuda_channel_of(channels, round, d->rank);
        ms_cuda_comm *none;
        if (channel >= 0)
            MS_TRY(open_lane(cx, d, channel, scratch));
        else
            MS_TRY(split_world(cx, d, -1, 0, &none));
    }
    return MS_OK;
}

static ms_status open_all(ms_ctx *cx, ms_device_rank *d)
{
    long size = d->job->outer->world->num_ranks;
    size_t bytes = 2 * (size_t)size * sizeof(double);
    double *scratch = ms_cuda_memory_take(d->memory, bytes);
    if (scratch == NULL)
        return ms_cuda_no_memory(cx, d, bytes, "");
    ms_status status = d->driver->clear(cx, d->compute, scratch, bytes);
    if (status == MS_OK)
        status = open_groups(cx, d, scratch);
    if (status == MS_OK)
        status = open_lanes(cx, d, scratch);
    if (status == MS_OK)
        status = ms_cuda_finish(cx, d, d->compute);
    if (status == MS_OK)
        ms_cuda_memory_give(d->memory, scratch);
    return status;
}

ms_status ms_cuda_comms_open(ms_ctx *cx, ms_device_rank *d)
{
    if (d->job->backend->transport != MS_CUDA_BY_NCCL ||
        d->job->outer->world->num_ranks == 1)
        return MS_OK;
    ms_status status = open_world(cx, d);
    if (status == MS_OK)
        status = open_all(cx, d);
    if (status != MS_OK)
        abort_waiting_ranks(d->job);
    return status;
}

/* ---- closing ---- */

void ms_cuda_comms_abort(ms_device_rank *d)
{
    for (int i = 0; i < d->num_lanes; i++)
        if (d->lanes[i].comm != NULL)
            d->driver->abort_comm(d->lanes[i].comm);
    for (int i = 0; i < d->num_groups; i++)
        if (d->groups[i].comm != NULL && d->groups[i].comm != d->world)
            d->driver->abort_comm(d->groups[i].comm);
    if (d->world != NULL)
        d->driver->abort_comm(d->world);
}

void ms_cuda_comms_close(ms_device_rank *d)
{
    for (int i = 0; i < d->num_lanes; i++) {
        if (d->lanes[i].comm != NULL)
            d->driver->close_comm(d->lanes[i].comm);
        if (d->lanes[i].stream != NULL)
            d->driver->close_stream(d->lanes[i].stream);
    }
    for (int i = 0; i < d->num_groups; i++)
        if (d->groups[i].comm != NULL && d->groups[i].comm != d->world)
            d->driver->close_comm(d->groups[i].comm);
    d->num_lanes = d->num_groups = 0;
    if (d->world != NULL)
        d->driver->close_comm(d->world);
    d->world = NULL;
}

ms_status ms_cuda_comms_check(ms_ctx *cx, ms_device_rank *d)
{
    if (d->world != NULL)
        MS_TRY(d->driver->check_comm(cx, d->world));
    for (int i = 0; i < d->num_groups; i++)
        if (d->groups[i].comm != NULL && d->groups[i].comm != d->world)
            MS_TRY(d->driver->check_comm(cx, d->groups[i].comm));
    for (int i = 0; i < d->num_lanes; i++)
        if (d->lanes[i].comm != NULL)
            MS_TRY(d->driver->check_comm(cx, d->lanes[i].comm));
    return MS_OK;
}

int ms_cuda_lane_find(const ms_device_rank *d, long peer, bool sends)
{
    for (int i = 0; i < d->num_lanes; i++)
        if (d->lanes[i].peer == peer && d->lanes[i].sends == sends)
            return i;
    return -1;
}
