/* The null backend: executes a plan on virtual clocks. Nothing is computed or moved, but
 * each rank has a clock per stream and waits for other ranks as real backends do.
 * Durations are predicted; the order of events results from the execution. The
 * simulator's replay of a step (sim/simulate/step_graph_node.c) must give bitwise equal
 * times. */
#include "exec/backends/rank_threads.h"
#include "exec/cpu/host_backend.h"

#include "base/number.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

/* The virtual time of an event; that of a receive is set once its message is taken. */
typedef struct moment {
    double time_s;
    ms_transfer *awaited; /* receive (owned) that will set time_s; NULL: time_s is set */
} moment;

/* Start times of the kernels of one block (embedding, layer or head) in one pass. */
typedef struct active_block {
    const ms_block_op *ops;
    int num, room;
    double *began_s; /* (num) virtual start time of each op; NaN if the op has not run */
} active_block;

struct ms_device_rank {
    ms_rank_threads *threads;
    const ms_world *world;
    long rank;
    double free_s[MS_NUM_STREAMS]; /* virtual time when the stream's work so far ends */
    int num_moments, room;
    moment *moments; /* (num_moments) times of events, indexed by event - 1 */
    active_block active[MS_NUM_BILL_PASSES];
};

/* ---- open, run, close ---- */

static ms_status null_open(ms_ctx *cx, ms_backend_job *job)
{
    (void)cx;
    job->state = NULL;
    return MS_OK;
}

static void null_close(ms_backend_job *job)
{
    (void)job;
}

static void *grown_memory(void *memory, size_t bytes)
{
    void *out = realloc(memory, bytes);
    if (out == NULL)
        abort(); /* arenas abort too when no memory is left */
    return out;
}

static void free_rank(ms_device_rank *device)
{
    for (int i = 0; i < device->num_moments; i++)
        free(device->moments[i].awaited);
    free(device->moments);
    for (int pass = 0; pass < MS_NUM_BILL_PASSES; pass++)
        free(device->active[pass].began_s);
}

static ms_status null_run(ms_ctx *cx, ms_backend_job *job, ms_rank_main *main,
                          void *state)
{
    long num_ranks = job->world->num_ranks;
    ms_arena *arena = ms_arena_open();
    ms_rank_threads *threads = ms_rank_threads_open(job, (ms_rank_threads_ops){0});
    ms_device_rank *all = MS_NEW_ARRAY(arena, num_ranks, ms_device_rank);
    ms_device_rank **devices = MS_NEW_ARRAY(arena, num_ranks, ms_device_rank *);
    for (long rank = 0; rank < num_ranks; rank++) {
        devices[rank] = &all[rank];
        all[rank] =
            (ms_device_rank){.threads = threads, .world = job->world, .rank = rank};
    }
    ms_status status = ms_rank_threads_run(cx, threads, main, devices, state);
    for (long rank = 0; rank < num_ranks; rank++)
        free_rank(devices[rank]);
    ms_rank_threads_close(threads);
    ms_arena_close(arena);
    return status;
}

/* ---- memory ---- */

static void *null_allocate(ms_device_rank *device, size_t bytes)
{
    (void)device;
    (void)bytes;
    return NULL;
}

static void null_release(ms_device_rank *device, void *memory, size_t bytes)
{
    (void)device;
    (void)memory;
    (void)bytes;
}

/* ---- events ---- */

static ms_event add_moment(ms_device_rank *device, moment added)
{
    if (device->num_moments == device->room) {
        device->room = device->room == 0 ? 256 : 2 * device->room;
        device->moments =
            grown_memory(device->moments, (size_t)device->room * sizeof *device->moments);
    }
    device->moments[device->num_moments++] = added;
    return device->num_moments;
}

static ms_status receive_message(ms_ctx *cx, ms_device_rank *device, moment *at)
{
    ms_post post;
    MS_TRY(
        ms_rank_threads_receive(cx, device->threads, device->rank, at->awaited, &post));
    free(at->awaited);
    *at = (moment){.time_s = post.number};
    return MS_OK;
}

static ms_status time_of(ms_ctx *cx, ms_device_rank *device, ms_event event,
                         double *time_s)
{
    *time_s = 0.0;
    if (event == 0)
        return MS_OK;
    moment *at = &device->moments[event - 1];
    if (at->awaited != NULL)
        MS_TRY(receive_message(cx, device, at));
    *time_s = at->time_s;
    return MS_OK;
}

static ms_status latest_of(ms_ctx *cx, ms_device_rank *device, const ms_event *events,
                           int num, double *time_s)
{
    *time_s = 0.0;
    for (int i = 0; i < num; i++) {
        double event_s;
        MS_TRY(time_of(cx, device, events[i], &event_s));
        *time_s = ms_max(*time_s, event_s);
    }
    return MS_OK;
}

static ms_event null_mark(ms_device_rank *device)
{
    return add_moment(device, (moment){.time_s = device->free_s[MS_STREAM_COMPUTE]});
}

static ms_status null_wait(ms_ctx *cx, ms_device_rank *device, ms_event event)
{
    double time_s, *free_s = &device->free_s[MS_STREAM_COMPUTE];
    MS_TRY(ms_rank_threads_check(cx, device->threads));
    MS_TRY(time_of(cx, device, event, &time_s));
    *free_s = ms_max(*free_s, time_s);
    return MS_OK;
}

static double null_now_s(ms_device_rank *device)
{
    double now_s = 0.0;
    for (int stream = 0; stream < MS_NUM_STREAMS; stream++)
        now_s = ms_max(now_s, device->free_s[stream]);
    return now_s;
}

static void null_abort(ms_device_rank *device)
{
    ms_rank_threads_fail(device->threads, device->rank);
}

/* ---- kernels ---- */

static void null_begin_block(ms_device_rank *device, const ms_block_ops *block, int pass)
{
    active_block *at = &device->active[pass];
    at->ops = block->ops[pass];
    at->num = block->num_ops[pass];
    if (at->num > at->room) {
        at->room = at->num;
        at->began_s = grown_memory(at->began_s, (size_t)at->room * sizeof *at->began_s);
    }
    for (int i = 0; i < at->num; i++)
        at->began_s[i] = NAN;
}

/* The active block among whose ops is `op`, as element *index; NULL if there is none. */
static active_block *active_block_of(ms_device_rank *device, const ms_block_op *op,
                                     int *index)
{
    for (int pass = 0; pass < MS_NUM_BILL_PASSES; pass++) {
        active_block *at = &device->active[pass];
        uintptr_t first = (uintptr_t)at->ops, end = (uintptr_t)(at->ops + at->num);
        if (at->ops == NULL || (uintptr_t)op < first || (uintptr_t)op >= end)
            continue;
        *index = (int)(op - at->ops);
        return at;
    }
    return NULL;
}

static ms_status null_kernel(ms_ctx *cx, ms_device_rank *device, const ms_op_call *call)
{
    int index;
    double *free_s = &device->free_s[MS_STREAM_COMPUTE];
    MS_TRY(ms_rank_threads_check(cx, device->threads));
    if (call->predicted == NULL)
        return MS_OK;
    active_block *at = active_block_of(device, call->predicted, &index);
    if (at != NULL)
        at->began_s[index] = *free_s;
    *free_s += call->predicted->compute_s;
    return MS_OK;
}

static void null_idle(ms_device_rank *device, double seconds)
{
    device->free_s[MS_STREAM_COMPUTE] += seconds;
}

/* ---- transfers ---- */

/* Raises *time_s to the latest time at which a member of the transfer's group arrived. */
static ms_status meet_group(ms_ctx *cx, ms_device_rank *device,
                            const ms_transfer *transfer, double *time_s)
{
    const ms_members *members = &device->world->members[transfer->group][device->rank];
    if (members->size <= 1)
        return MS_OK;
    const ms_post *posts;
    ms_round *round = ms_rank_threads_arrive(device->threads, device->rank,
                                             (ms_traffic_group)transfer->group,
                                             (ms_post){.number = *time_s});
    MS_TRY(ms_rank_threads_await(cx, device->threads, device->rank, round, transfer,
                                 &posts));
    for (int i = 0; i < members->size; i++)
        *time_s = ms_max(*time_s, posts[i].number);
    ms_rank_threads_leave(device->threads, round);
    return MS_OK;
}

/* Keeps a stream busy for `seconds`, from after_s or, if later, the end of its work;
 * returns the end. The gather and the reduce stream count as one. */
static double take_stream(ms_device_rank *device, int stream, double after_s,
                          double seconds)
{
    double *free_s =
        &device->free_s[stream == MS_STREAM_REDUCE ? MS_STREAM_GATHER : stream];
    *free_s = ms_max(*free_s, after_s) + seconds;
    return *free_s;
}

static bool ran(const void *active, int op)
{
    return !isnan(((const active_block *)active)->began_s[op]);
}

/* Start time of the first kernel that collective `op` overlaps; if none has run, the
 * later of after_s and the time when the compute stream is free. */
static double overlap_start_s(ms_device_rank *device, const ms_block_op *op,
                              double after_s)
{
    int index;
    const active_block *at = active_block_of(device, op, &index);
    int first = at != NULL ? ms_first_overlapped(at->ops, index, ran, at) : -1;
    return first >= 0 ? at->began_s[first]
                      : ms_max(after_s, device->free_s[MS_STREAM_COMPUTE]);
}

/* Advances clocks by a collective: hidden_s overlaps kernels, exposed_s does not. */
static ms_status start_predicted(ms_ctx *cx, ms_device_rank *device,
                                 const ms_transfer *transfer, double after_s,
                                 ms_event *done)
{
    const ms_block_op *op = transfer->predicted;
    if (op->hidden_s > 0.0 && !op->overlaps_later_ops) {
        double start_s = overlap_start_s(device, op, after_s);
        MS_TRY(meet_group(cx, device, transfer, &start_s));
        take_stream(device, transfer->stream, start_s, op->hidden_s);
    }
    if (!op->waits_later) {
        MS_TRY(meet_group(cx, device, transfer, &after_s));
        double end_s = take_stream(device, transfer->stream, after_s, op->exposed_s);
        *done = add_moment(device, (moment){.time_s = end_s});
    }
    if (op->hidden_s > 0.0 && op->overlaps_later_ops)
        take_stream(device, transfer->stream, 0.0, op->hidden_s);
    return MS_OK;
}

/* Predicts a send. To another rank it occupies no stream; to the rank itself, it occupies
 * transfer->stream. */
static void send_message(ms_device_rank *device, const ms_transfer *transfer,
                         double after_s, ms_event *done)
{
    double end_s = after_s + transfer->predicted_s;
    if (transfer->peer == device->rank)
        end_s = take_stream(device, transfer->stream, after_s, transfer->predicted_s);
    else
        ms_rank_threads_send(device->threads, device->rank, transfer->peer, transfer->tag,
                             (ms_post){.number = end_s});
    *done = add_moment(device, (moment){.time_s = end_s});
}

static void start_receive(ms_device_rank *device, const ms_transfer *transfer,
                          ms_event *done)
{
    ms_transfer *awaited = grown_memory(NULL, sizeof *awaited);
    *awaited = *transfer;
    *done = add_moment(device, (moment){.awaited = awaited});
}

static ms_status null_start(ms_ctx *cx, ms_device_rank *device,
                            const ms_transfer *transfer, const ms_event *after,
                            int num_after, ms_event *done)
{
    double after_s;
    *done = 0;
    MS_TRY(ms_rank_threads_check(cx, device->threads));
    if (transfer->kind == MS_TRANSFER_RECEIVE) {
        start_receive(device, transfer, done);
        return MS_OK;
    }
    MS_TRY(latest_of(cx, device, after, num_after, &after_s));
    if (transfer->kind == MS_TRANSFER_SEND) {
        send_message(device, transfer, after_s, done);
        return MS_OK;
    }
    if (transfer->predicted != NULL)
        return start_predicted(cx, device, transfer, after_s, done);
    MS_TRY(meet_group(cx, device, transfer, &after_s));
    double end_s = take_stream(device, transfer->stream, after_s, transfer->predicted_s);
    *done = add_moment(device, (moment){.time_s = end_s});
    return MS_OK;
}

const ms_backend ms_backend_null = {
    .name = "null",
    .in_process = true,
    .has_values = false,
    .computes = {true, true, true},
    .workspace_bytes = ms_host_workspace_bytes,
    .open = null_open,
    .run = null_run,
    .close = null_close,
    .carries = ms_rank_threads_carries,
    .allocate = null_allocate,
    .release = null_release,
    .begin_block = null_begin_block,
    .kernel = null_kernel,
    .idle = null_idle,
    .mark = null_mark,
    .start = null_start,
    .wait = null_wait,
    .now_s = null_now_s,
    .abort = null_abort,
};
