/* Points (events in a rank's GPU work), time stamps, and how the host waits for both. */
#include "exec/cuda/cuda_backend_priv.h"

#include "base/clock.h"

#include <assert.h>
#include <sched.h>
#include <time.h>

/* If more points (events) are kept, the oldest that the GPU has reached are dropped. */
#define MAX_OPEN_POINTS 64
#define FIRST_CAPACITY  256
/* If more time stamps are unread, the oldest are read. */
#define MAX_OPEN_STAMPS 512
/* Seconds after which the clock's anchor moves on: CUDA's float ms would be imprecise. */
#define ANCHOR_S 0.5

#define POLLS_BEFORE_REST 200
#define REST_NS           20000
/* Kernels queued on a shared GPU may run longer than a rank waits for others. */
#define OWN_WORK_DEADLINES 10
#define CHECK_INTERVAL_S   0.002 /* seconds between checks of other ranks and NCCL */

/* ---- errors ---- */

void ms_cuda_keep_status(ms_device_rank *d, ms_status status)
{
    if (d->status == MS_OK)
        d->status = status;
}

ms_status ms_cuda_check_rank(ms_ctx *cx, ms_device_rank *d)
{
    if (d->status != MS_OK) /* the rank's first failure has left a message already */
        return cx->first != NULL
                   ? d->status
                   : ms_fail(cx, d->status, MS_NOWHERE, "this rank has failed already");
    if (d->failed)
        return ms_fail(cx, MS_EIO, MS_NOWHERE, "this rank has been aborted");
    return d->inner != NULL ? d->job->inner->wait(cx, d->inner, 0) : MS_OK;
}

/* ---- events ---- */

ms_status ms_cuda_take_event(ms_ctx *cx, ms_device_rank *d, ms_cuda_event_kind kind,
                             ms_cuda_event **out)
{
    ms_cuda_idle_events *idle = &d->idle_events[kind];
    if (idle->num == 0)
        return d->driver->open_event(cx, d->gpu, kind == MS_CUDA_TIMES, out);
    *out = idle->events[--idle->num];
    return MS_OK;
}

void ms_cuda_give_event(ms_device_rank *d, ms_cuda_event_kind kind, ms_cuda_event *event)
{
    ms_cuda_idle_events *idle = &d->idle_events[kind];
    if (event == NULL)
        return;
    MS_MAKE_ROOM(d->arena, idle->events, idle->num, idle->room, FIRST_CAPACITY);
    idle->events[idle->num++] = event;
}

static void close_idle_events(ms_device_rank *d)
{
    for (int kind = 0; kind < MS_CUDA_NUM_EVENT_KINDS; kind++) {
        ms_cuda_idle_events *idle = &d->idle_events[kind];
        while (idle->num > 0)
            d->driver->close_event(idle->events[--idle->num]);
    }
}

void ms_cuda_moved(ms_device_rank *d)
{
    d->points.compute_moved = d->clock.compute_moved = true;
}

/* ---- waiting ---- */

static const ms_transfer *first_open_transfer(ms_ctx *cx, ms_device_rank *d)
{
    for (ms_event n = d->points.first; n < d->points.next; n++) {
        const ms_cuda_point *p = &d->points.ring[n & (d->points.room - 1)];
        bool happened = p->event == NULL;
        if (!p->has_transfer || happened ||
            d->driver->query(cx, p->event, &happened) != MS_OK || happened)
            continue;
        return &p->transfer;
    }
    return NULL;
}

/* Fails once other ranks have stayed away for the job's deadline, or the GPU's own kernels
 * have taken OWN_WORK_DEADLINES times as long. */
static ms_status check_deadline(ms_ctx *cx, ms_device_rank *d, double waited_s)
{
    double deadline_s = d->job->timeout_s;
    if (waited_s <= deadline_s)
        return MS_OK;
    const ms_transfer *transfer = first_open_transfer(cx, d);
    if (transfer != NULL)
        return ms_transfer_waited(cx, d->job->outer->world, d->rank, transfer,
                                  deadline_s);
    if (waited_s <= OWN_WORK_DEADLINES * deadline_s)
        return MS_OK;
    return ms_fail(cx, MS_EIO, MS_NOWHERE, "waited %g s for GPU %d", waited_s,
                   d->ordinal);
}

static ms_status check_for_failures(ms_ctx *cx, ms_device_rank *d, double waited_s)
{
    const volatile int *interrupted = d->job->outer->interrupted;
    MS_TRY(check_deadline(cx, d, waited_s));
    if (interrupted != NULL && *interrupted != 0 && waited_s > MS_INTERRUPTED_WAIT_S)
        return MS_EINTERRUPTED;
    MS_TRY(ms_cuda_check_rank(cx, d));
    MS_TRY(d->driver->check(cx, d->gpu));
    return ms_cuda_comms_check(cx, d);
}

ms_status ms_cuda_finish_event(ms_ctx *cx, ms_device_rank *d, ms_cuda_event *event)
{
    double began_s = 0.0, checked_s = 0.0;
    const struct timespec rest = {.tv_nsec = REST_NS};
    for (long polls = 1;; polls++) {
        bool happened = false;
        MS_TRY(d->driver->query(cx, event, &happened));
        if (happened)
            return MS_OK;
        double now_s = ms_clock_s();
        if (polls == 1)
            began_s = checked_s = now_s;
        if (now_s - checked_s > CHECK_INTERVAL_S) {
            MS_TRY(check_for_failures(cx, d, now_s - began_s));
            checked_s = now_s;
        }
        if (polls > POLLS_BEFORE_REST)
            (void)nanosleep(&rest, NULL);
        else
            (void)sched_yield();
    }
}

ms_status ms_cuda_take_recorded(ms_ctx *cx, ms_device_rank *d, ms_cuda_event_kind kind,
                                ms_cuda_stream *stream, ms_cuda_event **out)
{
    MS_TRY(ms_cuda_take_event(cx, d, kind, out));
    ms_status status = d->driver->record(cx, *out, stream);
    if (status != MS_OK)
        ms_cuda_give_event(d, kind, *out);
    return status;
}

ms_status ms_cuda_finish(ms_ctx *cx, ms_device_rank *d, ms_cuda_stream *stream)
{
    ms_cuda_event *event;
    MS_TRY(ms_cuda_take_recorded(cx, d, MS_CUDA_ORDERS, stream, &event));
    ms_status status = ms_cuda_finish_event(cx, d, event);
    ms_cuda_give_event(d, MS_CUDA_ORDERS, event);
    return status;
}

/* ---- points ---- */

/* Drops the oldest points (events) that the GPU has reached; ignores errors. */
static void drop_reached_points(ms_ctx *cx, ms_device_rank *d)
{
    ms_cuda_points *all = &d->points;
    while (all->first < all->next) {
        ms_cuda_point *p = &all->ring[all->first & (all->room - 1)];
        bool happened = p->event == NULL && p->pending == NULL;
        if (p->release != NULL || p->pending != NULL)
            return;
        if (!happened &&
            (d->driver->query(cx, p->event, &happened) != MS_OK || !happened))
            return;
        ms_cuda_give_event(d, MS_CUDA_ORDERS, p->event);
        all->first++;
    }
}

static void grow_points(ms_device_rank *d)
{
    ms_cuda_points *all = &d->points;
    if (all->next - all->first < all->room)
        return;
    ms_cuda_point *old = all->ring;
    long room = all->room;
    all->room = room > 0 ? 2 * room : FIRST_CAPACITY;
    all->ring = MS_NEW_ARRAY(d->arena, all->room, ms_cuda_point);
    for (ms_event n = all->first; n < all->next; n++)
        all->ring[n & (all->room - 1)] = old[n & (room - 1)];
}

static ms_cuda_point *add_point(ms_ctx *cx, ms_device_rank *d, ms_event *out)
{
    if (d->points.next - d->points.first >= MAX_OPEN_POINTS)
        drop_reached_points(cx, d);
    grow_points(d);
    *out = d->points.next++;
    ms_cuda_point *p = &d->points.ring[*out & (d->points.room - 1)];
    *p = (ms_cuda_point){0};
    return p;
}

ms_status ms_cuda_point_make(ms_ctx *cx, ms_device_rank *d, ms_cuda_stream *stream,
                             const ms_transfer *transfer, ms_event *out)
{
    ms_cuda_event *event;
    *out = 0;
    MS_TRY(ms_cuda_take_recorded(cx, d, MS_CUDA_ORDERS, stream, &event));
    ms_cuda_point *p = add_point(cx, d, out);
    p->event = event;
    p->stream = stream;
    p->has_transfer = transfer != NULL;
    if (transfer != NULL)
        p->transfer = *transfer;
    return MS_OK;
}

ms_event ms_cuda_point_reserve(ms_ctx *cx, ms_device_rank *d, ms_cuda_pending *pending)
{
    ms_event made;
    add_point(cx, d, &made)->pending = pending;
    return made;
}

ms_status ms_cuda_point_fulfil(ms_ctx *cx, ms_device_rank *d, ms_event event,
                               ms_cuda_stream *stream)
{
    ms_cuda_event *now;
    MS_TRY(ms_cuda_take_recorded(cx, d, MS_CUDA_ORDERS, stream, &now));
    ms_cuda_point *p = ms_cuda_point_of(d, event);
    p->event = now;
    p->stream = stream;
    p->has_transfer = true;
    p->transfer = p->pending->transfer;
    return MS_OK;
}

ms_cuda_point *ms_cuda_point_of(ms_device_rank *d, ms_event event)
{
    assert(event < d->points.next);
    if (event < d->points.first)
        return NULL;
    return &d->points.ring[event & (d->points.room - 1)];
}

ms_status ms_cuda_after(ms_ctx *cx, ms_device_rank *d, ms_cuda_stream *stream,
                        ms_event event)
{
    MS_TRY(ms_cuda_resolve_event(cx, d, event));
    const ms_cuda_point *p = ms_cuda_point_of(d, event);
    if (p == NULL || p->event == NULL || p->stream == stream)
        return MS_OK;
    return d->driver->wait(cx, stream, p->event);
}

ms_status ms_cuda_after_compute(ms_ctx *cx, ms_device_rank *d, ms_cuda_stream *stream)
{
    if (stream == d->compute)
        return MS_OK;
    ms_event now = ms_cuda_mark(d);
    MS_TRY(ms_cuda_check_rank(cx, d));
    return ms_cuda_after(cx, d, stream, now);
}

ms_event ms_cuda_mark(ms_device_rank *d)
{
    ms_event made = d->points.last_mark;
    if (!d->points.compute_moved)
        return made;
    ms_cuda_keep_status(d, ms_cuda_point_make(d->cx, d, d->compute, NULL, &made));
    d->points.last_mark = made;
    d->points.compute_moved = false;
    return made;
}

/* ---- the clock ---- */

static double host_clock_s(const ms_device_rank *d, double began_s)
{
    return d->inner != NULL ? d->job->inner->now_s(d->inner) : ms_clock_s() - began_s;
}

ms_status ms_cuda_clock_begin(ms_ctx *cx, ms_device_rank *d)
{
    double began_s = ms_clock_s();
    ms_cuda_clock *clock = &d->clock;
    ms_cuda_forget_stamps(d);
    if (clock->anchor == NULL)
        MS_TRY(ms_cuda_take_event(cx, d, MS_CUDA_TIMES, &clock->anchor));
    MS_TRY(d->driver->record(cx, clock->anchor, d->compute));
    MS_TRY(ms_cuda_finish_event(cx, d, clock->anchor));
    clock->anchor_s = host_clock_s(d, began_s);
    clock->compute_moved = true;
    return ms_cuda_moves_begin(cx, d);
}

/* Computes the time of a stamp whose event has happened, and releases the event. */
static ms_status compute_stamp_time(ms_ctx *cx, ms_device_rank *d, ms_cuda_stamp *stamp)
{
    ms_cuda_clock *clock = &d->clock;
    double since_s;
    MS_TRY(d->driver->elapsed(cx, clock->anchor, stamp->event, &since_s));
    stamp->seconds = clock->anchor_s + since_s;
    ms_cuda_event *done = stamp->event;
    stamp->event = NULL;
    if (since_s > ANCHOR_S) {
        ms_cuda_event *before = clock->anchor;
        clock->anchor = done;
        clock->anchor_s = stamp->seconds;
        done = before;
    }
    ms_cuda_give_event(d, MS_CUDA_TIMES, done);
    return MS_OK;
}

/* Computes the times of the oldest open stamps that have happened; frees their events. */
static ms_status read_open_stamps(ms_ctx *cx, ms_device_rank *d)
{
    ms_cuda_clock *clock = &d->clock;
    for (; clock->first_open < clock->num; clock->first_open++) {
        ms_cuda_stamp *stamp = &clock->stamps[clock->first_open];
        bool happened = true;
        if (stamp->event == NULL)
            continue;
        MS_TRY(d->driver->query(cx, stamp->event, &happened));
        if (!happened)
            return MS_OK;
        MS_TRY(compute_stamp_time(cx, d, stamp));
    }
    return MS_OK;
}

static ms_status add_stamp(ms_ctx *cx, ms_device_rank *d)
{
    ms_cuda_clock *clock = &d->clock;
    ms_cuda_event *event;
    if (clock->num - clock->first_open > MAX_OPEN_STAMPS)
        MS_TRY(read_open_stamps(cx, d));
    MS_TRY(ms_cuda_take_recorded(cx, d, MS_CUDA_TIMES, d->compute, &event));
    MS_MAKE_ROOM(d->arena, clock->stamps, clock->num, clock->room, FIRST_CAPACITY);
    clock->stamps[clock->num++] = (ms_cuda_stamp){.event = event};
    clock->compute_moved = false;
    return MS_OK;
}

/* Number (not seconds) of a time stamp after all work so far; if no work came since the
 * last time stamp, the number of that one. */
double ms_cuda_now_s(ms_device_rank *d)
{
    if (d->clock.compute_moved || d->clock.num == 0)
        ms_cuda_keep_status(d, add_stamp(d->cx, d));
    return (double)d->clock.num;
}

ms_status ms_cuda_read_clock(ms_ctx *cx, ms_device_rank *d, double *stamps, long num)
{
    for (long i = 0; i < num; i++) {
        if (d->status != MS_OK)
            return ms_cuda_check_rank(cx, d);
        long at = (long)stamps[i] - 1;
        assert(at >= 0 && at < d->clock.num);
        ms_cuda_stamp *stamp = &d->clock.stamps[at];
        if (stamp->event != NULL) {
            MS_TRY(ms_cuda_finish_event(cx, d, stamp->event));
            MS_TRY(compute_stamp_time(cx, d, stamp));
        }
        stamps[i] = stamp->seconds;
    }
    return MS_OK;
}

void ms_cuda_forget_stamps(ms_device_rank *d)
{
    for (int i = d->clock.first_open; i < d->clock.num; i++)
        ms_cuda_give_event(d, MS_CUDA_TIMES, d->clock.stamps[i].event);
    d->clock.num = d->clock.first_open = 0;
    d->clock.compute_moved = true;
}

/* ---- open and close ---- */

/* Opens a rank's streams. MS_STREAM_SEND copies messages; lanes (streams) send them.
 * Compute yields to communication: other ranks wait for the latter. */
ms_status ms_cuda_order_open(ms_ctx *cx, ms_device_rank *d)
{
    d->points.next = d->points.first = 1;
    MS_TRY(d->driver->open_stream(cx, d->gpu, false, &d->compute));
    for (int s = MS_STREAM_TP; s <= MS_STREAM_SEND; s++)
        MS_TRY(d->driver->open_stream(cx, d->gpu, true, &d->stream[s]));
    d->stream[MS_STREAM_COMPUTE] = d->compute;
    return MS_OK;
}

void ms_cuda_order_close(ms_device_rank *d)
{
    ms_cuda_forget_stamps(d);
    ms_cuda_moves_close(d);
    for (ms_event n = d->points.first; n < d->points.next; n++)
        ms_cuda_give_event(d, MS_CUDA_ORDERS,
                           d->points.ring[n & (d->points.room - 1)].event);
    for (ms_cuda_copy *copy = d->copies; copy != NULL; copy = copy->next)
        ms_cuda_give_event(d, MS_CUDA_ORDERS, copy->received);
    ms_cuda_give_event(d, MS_CUDA_TIMES, d->clock.anchor);
    close_idle_events(d);
    for (int s = MS_STREAM_TP; s <= MS_STREAM_SEND; s++)
        if (d->stream[s] != NULL)
            d->driver->close_stream(d->stream[s]);
    if (d->compute != NULL)
        d->driver->close_stream(d->compute);
}
