#include "exec/backends/modelled.h"

#include "base/clock.h"
#include "base/number.h"
#include "base/rng.h"
#include "exec/cpu/host_backend.h"

#include <assert.h>
#include <math.h>
#include <string.h>

typedef struct modelled_job {
    ms_pool *pool;
    bool times_kernels; /* the clock counts real kernel times, otherwise predicted ones */
} modelled_job;

struct ms_device_rank {
    ms_host_rank host;
    const ms_backend_job *job;
    const ms_kernels *kernels;
    ms_rng rng;
    /* clock: real seconds since began_s, if kernels are timed, plus added_s */
    double began_s, added_s;
    double free_s[MS_NUM_STREAMS]; /* when the stream's transfers so far end */
    ms_arena *arena;
    int num_events, room;
    double *end_s; /* (num_events): when each event happens, indexed by event - 1 */
    int num_moves, moves_room;
    ms_recorded *moves; /* (num_moves): transfers since modelled_take_moves */
};

/* ---- open, run, close ---- */

static ms_status open_job(ms_ctx *cx, ms_backend_job *job, bool times_kernels)
{
    modelled_job *state = MS_NEW(cx->arena, modelled_job);
    *state = (modelled_job){ms_pool_open(), times_kernels};
    job->state = state;
    return state->pool != NULL ? MS_OK
                               : ms_fail(cx, MS_EIO, MS_NOWHERE, "no memory is left");
}

static ms_status modelled_open(ms_ctx *cx, ms_backend_job *job)
{
    return open_job(cx, job, true);
}

static ms_status untimed_open(ms_ctx *cx, ms_backend_job *job)
{
    return open_job(cx, job, false);
}

static void modelled_close(ms_backend_job *job)
{
    ms_pool_close(((modelled_job *)job->state)->pool);
    job->state = NULL;
}

static ms_status modelled_run(ms_ctx *cx, ms_backend_job *job, ms_rank_main *main,
                              void *state)
{
    modelled_job *own = job->state;
    ms_ctx apart = {.arena = ms_arena_open(), .verbosity = cx->verbosity};
    ms_device_rank device = {.host.pool = own->pool,
                             .job = job,
                             .kernels = ms_cpu_kernels(job->type),
                             .rng = ms_rng_seed((uint64_t)job->replayed_rank),
                             .arena = apart.arena,
                             .began_s = ms_clock_s()};
    ms_status status = main(&apart, &device, job->replayed_rank, state);
    if (status != MS_OK)
        status = ms_rank_failed(cx, job->replayed_rank, &apart, status);
    ms_arena_close(apart.arena);
    return status;
}

static bool modelled_carries(const ms_backend_job *job, long rank)
{
    return rank == job->replayed_rank;
}

static void modelled_abort(ms_device_rank *device)
{
    (void)device;
}

/* ---- clock, events, kernels ---- */

static bool times_kernels(const ms_device_rank *device)
{
    return ((const modelled_job *)device->job->state)->times_kernels;
}

static double modelled_now_s(ms_device_rank *device)
{
    return device->added_s +
           (times_kernels(device) ? ms_clock_s() - device->began_s : 0.0);
}

static double time_of(const ms_device_rank *device, ms_event event)
{
    return event == 0 ? 0.0 : device->end_s[event - 1];
}

static ms_event add_event(ms_device_rank *device, double end_s)
{
    MS_MAKE_ROOM(device->arena, device->end_s, device->num_events, device->room, 256);
    device->end_s[device->num_events++] = end_s;
    return device->num_events;
}

static ms_status modelled_wait(ms_ctx *cx, ms_device_rank *device, ms_event event)
{
    (void)cx;
    device->added_s += ms_max(0.0, time_of(device, event) - modelled_now_s(device));
    return MS_OK;
}

static ms_status modelled_kernel(ms_ctx *cx, ms_device_rank *device,
                                 const ms_op_call *call)
{
    (void)cx;
    ms_kernel *kernel = device->kernels->op[call->node->op];
    assert(kernel != NULL);
    kernel(call);
    if (!times_kernels(device) && call->predicted != NULL)
        device->added_s += call->predicted->compute_s;
    return MS_OK;
}

/* Counts time by which transfers slow kernels down, which they do not here. */
static void modelled_idle(ms_device_rank *device, double seconds)
{
    device->added_s += seconds;
}

/* ---- data of other ranks ---- */

/* Sets count elements to those at `from`, each with a random sign. */
static void copy_with_signs(ms_device_rank *device, ms_scalar scalar, void *to,
                            const void *from, long count)
{
    size_t bytes = ms_scalar_bytes(scalar), sign = bytes - 1; /* little-endian */
    memcpy(to, from, (size_t)count * bytes);
    if (scalar > MS_SCALAR_BF16)
        return;
    uint64_t bits = 0;
    for (long i = 0; i < count; i++, bits >>= 1) {
        if (i % 64 == 0)
            bits = ms_rng_next(&device->rng);
        ((unsigned char *)to)[(size_t)i * bytes + sign] ^=
            (unsigned char)((bits & 1) << 7);
    }
}

/* Fills what a message brings with uniform values of mean 0 and variance 1. */
static void draw_message(ms_device_rank *device, const ms_transfer *t)
{
    const ms_kernels *kernels = ms_cpu_scalar_kernels((ms_scalar)t->scalar);
    for (long i = 0; i < t->count; i++) {
        double value = sqrt(12.0) * (ms_rng_uniform(&device->rng) - 0.5);
        kernels->from_double((char *)t->receive + (size_t)i * kernels->real_bytes, &value,
                             1);
    }
}

static void make_gathered(ms_device_rank *device, const ms_transfer *t,
                          const ms_members *members)
{
    size_t bytes = (size_t)t->count * ms_scalar_bytes((ms_scalar)t->scalar);
    char *to = t->receive;
    if (bytes == 0)
        return;
    memmove(to + (size_t)members->own * bytes, t->send, bytes);
    const char *own = to + (size_t)members->own * bytes;
    for (int i = 0; i < members->size; i++)
        if (i != members->own)
            copy_with_signs(device, (ms_scalar)t->scalar, to + (size_t)i * bytes, own,
                            t->count);
}

/* Numbers of rows that balanced experts receive: what the rank sends, in equal parts. */
static void make_counts(const ms_transfer *t, const ms_members *members)
{
    const long *sent = t->send;
    long num_sent = 0, num_received = 0, total = 0, *to = t->receive;
    for (int i = 0; i < members->size; i++) {
        num_sent += t->send_counts[i];
        num_received += t->receive_counts[i];
    }
    for (long i = 0; i < num_sent; i++)
        total += sent[i];
    for (long i = 0; i < num_received; i++)
        to[i] = total / num_received + (i < total % num_received);
}

/* Fills what members send in an all-to-all with what the rank sends to itself, again and
 * again. */
static void make_exchanged(ms_device_rank *device, const ms_transfer *t,
                           const ms_members *members)
{
    size_t bytes = ms_scalar_bytes((ms_scalar)t->scalar);
    const char *own = t->send;
    char *to = t->receive;
    for (int i = 0; i < members->own; i++)
        own += (size_t)t->send_counts[i] * bytes;
    long num_own = t->send_counts[members->own];
    for (int i = 0; i < members->size; i++) {
        for (long done = 0, num; done < t->receive_counts[i]; done += num) {
            num = t->receive_counts[i] - done;
            if (num_own == 0) {
                memset(to, 0, (size_t)num * bytes);
            } else {
                num = num < num_own ? num : num_own;
                copy_with_signs(device, (ms_scalar)t->scalar, to, own, num);
            }
            to += (size_t)num * bytes;
        }
    }
}

static void make_received(ms_device_rank *device, const ms_transfer *t)
{
    const ms_members *members =
        t->kind < MS_TRANSFER_SEND
            ? &device->job->world->members[t->group][device->job->replayed_rank]
            : NULL;
    size_t bytes = (size_t)t->count * ms_scalar_bytes((ms_scalar)t->scalar);
    switch ((ms_transfer_kind)t->kind) {
    case MS_TRANSFER_ALL_GATHER:
        make_gathered(device, t, members);
        break;
    case MS_TRANSFER_REDUCE_SCATTER:
        if (bytes > 0)
            memmove(t->receive, (const char *)t->send + (size_t)members->own * bytes,
                    bytes);
        break;
    case MS_TRANSFER_ALL_REDUCE:
        if (bytes > 0)
            memmove(t->receive, t->send, bytes);
        break;
    case MS_TRANSFER_ALL_TO_ALL:
        if (t->scalar == MS_SCALAR_LONG)
            make_counts(t, members);
        else
            make_exchanged(device, t, members);
        break;
    case MS_TRANSFER_RECEIVE:
        draw_message(device, t);
        break;
    case MS_TRANSFER_SEND:
    case MS_NUM_TRANSFER_KINDS:
        break;
    }
}

/* ---- transfers ---- */

/* When the transfer ends that starts at `start_s`: sends leave, and stages' messages have
 * come, at once; others take their stream, of which gathers and reductions share one. */
static double transfer_end_s(ms_device_rank *device, const ms_transfer *t, double start_s)
{
    int stream = t->stream == MS_STREAM_REDUCE ? MS_STREAM_GATHER : t->stream;
    if (t->kind == MS_TRANSFER_SEND || stream == MS_STREAM_RECEIVE)
        return start_s;
    double *free_s = &device->free_s[stream];
    double begin_s = ms_max(*free_s, start_s);
    *free_s = begin_s + t->predicted_s;
    if (t->on_host || t->predicted_s <= 0.0)
        return *free_s;
    MS_MAKE_ROOM(device->arena, device->moves, device->num_moves, device->moves_room,
                 256);
    device->moves[device->num_moves++] = ms_transfer_moves(t, begin_s, *free_s);
    return *free_s;
}

static ms_status modelled_take_moves(ms_ctx *cx, ms_device_rank *device, ms_recorder *out)
{
    (void)cx;
    for (int i = 0; i < device->num_moves; i++)
        ms_recorder_add(out, device->moves[i]);
    device->num_moves = 0;
    return MS_OK;
}

static ms_status modelled_start(ms_ctx *cx, ms_device_rank *device,
                                const ms_transfer *transfer, const ms_event *after,
                                int num_after, ms_event *done)
{
    (void)cx;
    double began_s = ms_clock_s(), start_s = modelled_now_s(device);
    for (int i = 0; i < num_after; i++)
        start_s = ms_max(start_s, time_of(device, after[i]));
    make_received(device, transfer);
    *done = add_event(device, transfer_end_s(device, transfer, start_s));
    if (times_kernels(device))
        device->added_s -= ms_clock_s() - began_s;
    return MS_OK;
}

#define MODELLED(open_function)                                                          \
    {                                                                                    \
        .name = "loop", .has_values = true, .in_process = true,                          \
        .arrays = &ms_host_arrays,                                                       \
        .computes =                                                                      \
            {[MS_REAL_FP32] = true, [MS_REAL_FP64] = true, [MS_REAL_BF16] = true},       \
        .workspace_bytes = ms_host_workspace_bytes, .open = (open_function),             \
        .run = modelled_run, .close = modelled_close, .carries = modelled_carries,       \
        .allocate = ms_host_allocate, .release = ms_host_release,                        \
        .kernel = modelled_kernel, .idle = modelled_idle, .mark = ms_host_mark,          \
        .start = modelled_start, .wait = modelled_wait, .now_s = modelled_now_s,         \
        .take_moves = modelled_take_moves, .abort = modelled_abort,                      \
    }

const ms_backend ms_backend_modelled = MODELLED(modelled_open);
const ms_backend ms_backend_modelled_untimed = MODELLED(untimed_open);
