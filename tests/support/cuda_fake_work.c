/* Execution of the fake GPU's stream work: which piece can run, and in which random
 * order. */
#include "tests/support/cuda_fake_priv.h"

#include <assert.h>
#include <string.h>

/* one step in 8 draws new stream priorities: streams run far ahead, in changing order */
#define REDRAW_ONE_IN 8
#define PAUSE_NS      20000000

/* ---- items ---- */

fake_item *fake_give(ms_cuda_stream *stream, fake_kind kind)
{
    fake_item *item = FAKE_NEW(fake_item);
    item->stream = stream;
    item->kind = kind;
    item->order = ++fake.num_given;
    if (stream->last != NULL)
        stream->last->next = item;
    else
        stream->first = item;
    stream->last = item;
    fake.last_change = fake_now();
    pthread_cond_broadcast(&fake_change);
    return item;
}

void fake_free_item(fake_item *item)
{
    free(item->state);
    free(item->collectives);
    free(item->is_done);
    free(item);
}

static void take_from_comm(fake_item *item)
{
    ms_cuda_comm *comm = item->comm;
    fake_item **at = &comm->first;
    fake_item *before = NULL;
    while (*at != item) {
        before = *at;
        at = &before->next_of_comm;
    }
    *at = item->next_of_comm;
    if (comm->last == item)
        comm->last = before;
}

static void take_first(ms_cuda_stream *stream)
{
    fake_item *item = stream->first;
    stream->first = item->next;
    if (stream->first == NULL)
        stream->last = NULL;
    if (item->comm != NULL)
        take_from_comm(item);
    fake_release_sms(item);
    fake_free_item(item);
}

static bool overlaps(const void *memory, size_t bytes, const fake_block *block)
{
    const unsigned char *at = memory;
    return bytes > 0 && at < block->memory + block->bytes && at + bytes > block->memory;
}

static bool item_uses(const fake_item *item, const fake_block *block)
{
    if (item->kind == FAKE_LAUNCH)
        /* a launch's operands are unknown: it may use any device memory */
        return !block->is_host;
    for (int i = 0; i < item->num_collectives; i++) {
        const ms_cuda_collective *c = &item->collectives[i];
        if (overlaps(c->send, c->send != NULL, block) ||
            overlaps(c->receive, c->receive != NULL, block))
            return true;
    }
    if (item->kind == FAKE_GEMM) {
        return overlaps(item->product.a, 1, block) ||
               overlaps(item->product.b, 1, block) ||
               overlaps(item->product.c, 1, block) ||
               overlaps(item->product.scale_a, item->product.scale_a != NULL, block);
    }
    return overlaps(item->to, item->bytes, block) ||
           overlaps(item->from, item->bytes, block);
}

bool fake_uses(const ms_cuda_device *device, const fake_block *block)
{
    if (device->has_failed)
        return false;
    for (ms_cuda_stream *s = fake.streams; s != NULL; s = s->next)
        for (const fake_item *i = s->first; i != NULL && s->device == device; i = i->next)
            if (item_uses(i, block))
                return true;
    return false;
}

long ms_cuda_fake_num_pending(void)
{
    long num = 0;
    pthread_mutex_lock(&fake_lock);
    for (ms_cuda_stream *s = fake.streams; s != NULL; s = s->next)
        for (const fake_item *i = s->first; i != NULL; i = i->next)
            num++;
    pthread_mutex_unlock(&fake_lock);
    return num;
}

/* ---- doing it ---- */

static bool can_run(fake_item *item)
{
    if (item->stream->device->has_failed)
        return true; /* the device has failed: its remaining work is dropped */
    bool is_aborted = item->comm != NULL && item->comm->is_aborted;
    if (!is_aborted && fake_is_held_up(item))
        return false;
    if (item->kind == FAKE_WAIT)
        return item->event->num_happened >= item->number ||
               item->event->device->has_failed;
    if (item->kind == FAKE_COMMUNICATE)
        return is_aborted || fake_places(item) || fake_communicate_step(item, true);
    return true;
}

static void run_copy(fake_item *item)
{
    const void *from = item->state != NULL ? item->state : item->from;
    assert(from != NULL);
    bool from_host = item->state == NULL && item->from != NULL &&
                     fake_block_of(item->from, true) != NULL;
    /* the source of the copy may have been released since the call */
    if (from_host && !fake_expect_memory(item->from, item->bytes, true, "copy"))
        return;
    memmove(item->to, from, item->bytes);
}

static void run(fake_item *item)
{
    switch (item->kind) {
    case FAKE_LAUNCH:
        item->run(item->state);
        item->state = NULL;
        break;
    case FAKE_COPY:
        run_copy(item);
        break;
    case FAKE_CLEAR:
        memset(item->to, 0, item->bytes);
        break;
    case FAKE_GEMM:
        fake_run_product(&item->product);
        break;
    case FAKE_RECORD:
        item->event->num_happened = item->number;
        item->event->time_s = fake.clock_s;
        break;
    case FAKE_WAIT:
    case FAKE_COMMUNICATE:
        break;
    }
}

static bool is_done(const fake_item *item)
{
    for (int i = 0; i < item->num_collectives; i++)
        if (!item->is_done[i])
            return false;
    return true;
}

static void do_item(fake_item *item)
{
    ms_cuda_device *device = item->stream->device;
    if (fake.fail_work > 0 && --fake.fail_work == 0)
        device->has_failed = true;
    bool is_dropped =
        device->has_failed || (item->comm != NULL && item->comm->is_aborted);
    if (!is_dropped && fake_place(item))
        return;
    if (!is_dropped && item->kind == FAKE_COMMUNICATE &&
        !fake_communicate_step(item, false))
        return;
    fake.clock_s += MS_CUDA_FAKE_WORK_S;
    if (!is_dropped)
        run(item);
    if (is_dropped || is_done(item))
        take_first(item->stream);
}

static void draw_priorities(void)
{
    for (ms_cuda_stream *s = fake.streams; s != NULL; s = s->next)
        s->priority = ms_rng_next(&fake.rng);
}

bool fake_step(void)
{
    if (ms_rng_below(&fake.rng, REDRAW_ONE_IN) == 0)
        draw_priorities();
    ms_cuda_stream *best = NULL;
    for (ms_cuda_stream *s = fake.streams; s != NULL; s = s->next)
        if (s->first != NULL && (best == NULL || s->priority > best->priority) &&
            can_run(s->first))
            best = s;
    if (best == NULL)
        return false;
    if (!fake.is_unprotected) {
        fake_protect_all(false);
        fake.is_unprotected = true;
    }
    do_item(best->first);
    fake.last_change = fake_now();
    /* a collective's step also completes it at the head of other ranks' streams */
    for (ms_cuda_stream *s = fake.streams; s != NULL; s = s->next)
        while (s->first != NULL && s->first->kind == FAKE_COMMUNICATE &&
               is_done(s->first))
            take_first(s);
    return true;
}

void fake_steps_end(void)
{
    if (!fake.is_unprotected)
        return;
    fake.is_unprotected = false;
    fake_protect_all(true);
    pthread_cond_broadcast(&fake_change);
}

/* ---- waiting ---- */

struct timespec fake_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now;
}

static double seconds_between(struct timespec from, struct timespec to)
{
    return (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
}

bool fake_pause(struct timespec since)
{
    struct timespec until = fake_now();
    if (fake.is_alone)
        return false;
    if (seconds_between(since, until) > fake.options.stuck_seconds &&
        seconds_between(fake.last_change, until) > fake.options.stuck_seconds)
        return false;
    until.tv_nsec += PAUSE_NS;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_cond_timedwait(&fake_change, &fake_lock, &until);
    return true;
}
