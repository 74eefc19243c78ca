/* NCCL communicators of a rank: the world's, which is for splits only, and those that are
 * split from it in the order of exec/cuda/cuda_channels.h.
 *
 * Kinds of group that use one stream are split from a parent of their own and share its
 * buffers. Others do not: NCCL runs the kernels of communicators that share one after the
 * other, in the order of the calls on each rank, so that a message could hold up the
 * collective for which its receiver waits.
 *
 * NCCL connects ranks when a communicator is first used, and the host waits for them. So
 * each is used once, as the plan will use it, after all ranks have made all of them; later
 * uses of the same kind do not wait. */
#include "exec/cuda/cuda_backend_priv.h"

#include <assert.h>
#include <string.h>

#define ID_LONGS (long)(MS_CUDA_ID_BYTES / sizeof(long))

const ms_members *ms_cuda_members(const ms_device_rank *d, const ms_transfer *transfer)
{
    return &d->job->outer->world->members[transfer->group][d->rank];
}

/* ---- the world ---- */

/* Sums the words of all ranks' ids, and so waits for all ranks. */
static ms_status share_words(ms_ctx *cx, ms_device_rank *d, ms_cuda_id *id,
                             const char *name)
{
    long words[ID_LONGS];
    memcpy(words, id->bytes, sizeof words);
    ms_transfer all = {.kind = MS_TRANSFER_ALL_REDUCE,
                       .scalar = MS_SCALAR_LONG,
                       .on_host = true,
                       .group = MS_TRAFFIC_WORLD,
                       .send = words,
                       .receive = words,
                       .count = ID_LONGS,
                       .name = name};
    ms_event done;
    MS_TRY(d->job->inner->start(cx, d->inner, &all, NULL, 0, &done));
    MS_TRY(d->job->inner->wait(cx, d->inner, done));
    memcpy(id->bytes, words, sizeof words);
    return MS_OK;
}

/* Gives rank 0's NCCL id to all ranks, which wait for it; what can fail comes before. */
static ms_status share_id(ms_ctx *cx, ms_device_rank *d, ms_cuda_id *id)
{
    *id = (ms_cuda_id){{0}};
    if (d->rank == 0)
        MS_TRY(d->driver->make_id(cx, id));
    return share_words(cx, d, id, "begin of communication");
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

static ms_status split(ms_ctx *cx, ms_device_rank *d, ms_cuda_comm *from,
                       const ms_cuda_split *how, ms_cuda_comm **out)
{
    *out = NULL;
    MS_TRY(begin_call(cx, d, from));
    ms_status status = d->driver->split(cx, from, how, out);
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

/* Sends to and receives from every other member once, as an all-to-all does. */
static ms_status exchange_with_all(
    ms_ctx *cx, ms_device_rank *d, ms_cuda_comm *comm, const ms_members *members,
    double *scratch) /* NOLINT(readability-non-const-parameter) */
{
    ms_cuda_collective *all =
        MS_NEW_ARRAY(cx->arena, 2 * members->size, ms_cuda_collective);
    int num = 0;
    for (int peer = 0; peer < members->size; peer++) {
        if (peer == members->own)
            continue;
        all[num++] = (ms_cuda_collective){.kind = MS_CUDA_SEND,
                                          .scalar = MS_SCALAR_FP64,
                                          .peer = peer,
                                          .send = scratch,
                                          .count = 1};
        all[num++] = (ms_cuda_collective){.kind = MS_CUDA_RECEIVE,
                                          .scalar = MS_SCALAR_FP64,
                                          .peer = peer,
                                          .receive = scratch + members->size + peer,
                                          .count = 1};
    }
    return communicate_abortably(cx, d, comm, all, num);
}

/* Uses once what the plan will use: gathers of parameters, reductions of gradients, or all
 * kinds between layers; connections take memory. `scratch` has two doubles per member. */
static ms_status warm_up_group(ms_ctx *cx, ms_device_rank *d, const ms_cuda_kind *kind,
                               ms_cuda_comm *comm, double *scratch)
{
    const ms_members *members = &d->job->outer->world->members[kind->group][d->rank];
    ms_cuda_collective one = {.scalar = MS_SCALAR_FP64, .count = 1, .send = scratch};
    one.receive = scratch + members->size;
    for (int what = MS_CUDA_ALL_GATHER; what <= MS_CUDA_ALL_REDUCE; what++) {
        bool gathers = what == MS_CUDA_ALL_GATHER;
        if (kind->stream == (gathers ? MS_STREAM_REDUCE : MS_STREAM_GATHER))
            continue;
        one.kind = (ms_cuda_collective_kind)what;
        MS_TRY(communicate_abortably(cx, d, comm, &one, 1));
    }
    return kind->has_messages ? exchange_with_all(cx, d, comm, members, scratch) : MS_OK;
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

static ms_status warm_up_all(ms_ctx *cx, ms_device_rank *d, double *scratch)
{
    for (int i = 0; i < d->num_groups; i++)
        if (d->groups[i].comm != NULL)
            MS_TRY(warm_up_group(cx, d, &d->job->channels.kinds[i], d->groups[i].comm,
                                 scratch));
    for (int i = 0; i < d->num_lanes; i++)
        MS_TRY(warm_up_lane(cx, d, &d->lanes[i], scratch));
    return ms_cuda_finish(cx, d, d->compute);
}

static ms_status warm_up(ms_ctx *cx, ms_device_rank *d)
{
    long size = d->job->outer->world->num_ranks;
    size_t bytes = 2 * (size_t)size * sizeof(double);
    double *scratch = ms_cuda_memory_take(d->memory, bytes);
    if (scratch == NULL)
        return ms_cuda_no_memory(cx, d, bytes, "");
    ms_status status = d->driver->clear(cx, d->compute, scratch, bytes);
    if (status == MS_OK)
        status = warm_up_all(cx, d, scratch);
    if (status == MS_OK)
        ms_cuda_memory_give(d->memory, scratch);
    return status;
}

/* ---- opening ---- */

static ms_status open_parents(ms_ctx *cx, ms_device_rank *d)
{
    for (int s = 0; s < MS_NUM_STREAMS; s++) {
        const ms_cuda_split all = {.key = (int)d->rank, .is_parent = true};
        if (d->job->channels.shares[s])
            MS_TRY(split(cx, d, d->world, &all, &d->parents[s]));
    }
    return MS_OK;
}

static ms_status open_groups(ms_ctx *cx, ms_device_rank *d)
{
    const ms_cuda_channels *channels = &d->job->channels;
    for (int i = 0; i < channels->num_kinds; i++) {
        const ms_cuda_kind *kind = &channels->kinds[i];
        const ms_members *members = &d->job->outer->world->members[kind->group][d->rank];
        const ms_cuda_split how = {members->size > 1 ? (int)members->ranks[0] : -1,
                                   members->own, d->job->ctas.collective, false};
        ms_cuda_comm *comm;
        MS_TRY(split(cx, d, kind->shares ? d->parents[kind->stream] : d->world, &how,
                     &comm));
        d->groups[d->num_groups++] = (ms_cuda_group){comm, NULL};
    }
    return MS_OK;
}

static ms_status open_lane(ms_ctx *cx, ms_device_rank *d, long channel)
{
    const ms_cuda_channel *c = &d->job->channels.channels[channel];
    bool sends = c->from == d->rank;
    ms_cuda_lane *lane = &d->lanes[d->num_lanes];
    const ms_cuda_split how = {(int)channel, sends ? 0 : 1, d->job->ctas.message, false};
    *lane = (ms_cuda_lane){.peer = sends ? c->to : c->from, .sends = sends};
    MS_TRY(split(cx, d, d->world, &how, &lane->comm));
    d->num_lanes++;
    return d->driver->open_stream(cx, d->gpu, true, &lane->stream);
}

static ms_status open_lanes(ms_ctx *cx, ms_device_rank *d)
{
    const ms_cuda_channels *channels = &d->job->channels;
    const ms_cuda_split none = {.color = -1};
    d->lanes = MS_NEW_ARRAY(d->arena, channels->num_rounds, ms_cuda_lane);
    for (int round = 0; round < channels->num_rounds; round++) {
        long channel = ms_cuda_channel_of(channels, round, d->rank);
        ms_cuda_comm *ignored;
        if (channel >= 0)
            MS_TRY(open_lane(cx, d, channel));
        else
            MS_TRY(split(cx, d, d->world, &none, &ignored));
    }
    return MS_OK;
}

static ms_status open_all(ms_ctx *cx, ms_device_rank *d)
{
    ms_cuda_id ignored = {{0}};
    MS_TRY(open_world(cx, d));
    MS_TRY(open_parents(cx, d));
    MS_TRY(open_groups(cx, d));
    MS_TRY(open_lanes(cx, d));
    /* no rank waits in NCCL for one that has failed so far */
    MS_TRY(share_words(cx, d, &ignored, "communicators of all ranks"));
    return warm_up(cx, d);
}

ms_status ms_cuda_comms_open(ms_ctx *cx, ms_device_rank *d)
{
    if (d->job->backend->transport != MS_CUDA_BY_NCCL ||
        d->job->outer->world->num_ranks == 1)
        return MS_OK;
    ms_status status = open_all(cx, d);
    if (status != MS_OK)
        abort_waiting_ranks(d->job);
    return status;
}

/* ---- closing ---- */

/* Number `i` of the rank's communicators, those split from others before these; NULL: the
 * rank has none of that number. False: there are no more. */
static bool nth_comm(const ms_device_rank *d, int i, ms_cuda_comm **out)
{
    int groups = d->num_lanes, parents = groups + d->num_groups;
    if (i < groups)
        *out = d->lanes[i].comm;
    else if (i < parents)
        *out = d->groups[i - groups].comm;
    else if (i < parents + MS_NUM_STREAMS)
        *out = d->parents[i - parents];
    else
        *out = i == parents + MS_NUM_STREAMS ? d->world : NULL;
    return i <= parents + MS_NUM_STREAMS;
}

void ms_cuda_comms_abort(ms_device_rank *d)
{
    ms_cuda_comm *comm;
    for (int i = 0; nth_comm(d, i, &comm); i++)
        if (comm != NULL)
            d->driver->abort_comm(comm);
}

void ms_cuda_comms_close(ms_device_rank *d)
{
    ms_cuda_comm *comm;
    for (int i = 0; nth_comm(d, i, &comm); i++)
        if (comm != NULL)
            d->driver->close_comm(comm);
    for (int i = 0; i < d->num_lanes; i++)
        if (d->lanes[i].stream != NULL)
            d->driver->close_stream(d->lanes[i].stream);
    d->num_lanes = d->num_groups = 0;
    memset(d->parents, 0, sizeof d->parents);
    d->world = NULL;
}

ms_status ms_cuda_comms_check(ms_ctx *cx, ms_device_rank *d)
{
    ms_cuda_comm *comm;
    for (int i = 0; nth_comm(d, i, &comm); i++)
        if (comm != NULL)
            MS_TRY(d->driver->check_comm(cx, comm));
    return MS_OK;
}

int ms_cuda_lane_find(const ms_device_rank *d, long peer, bool sends)
{
    for (int i = 0; i < d->num_lanes; i++)
        if (d->lanes[i].peer == peer && d->lanes[i].sends == sends)
            return i;
    return -1;
}
