/* Streams, events and queued work of the fake GPU. */
#include "exec/cuda/cuda_gemm_choices.h"
#include "tests/support/cuda_fake_priv.h"

#include <math.h>
#include <sched.h>
#include <string.h>

/* One in this many queries does work, fewer than MOST_QUERY_STEPS pieces: switching
 * memory protection for each piece would be slow. */
#define QUERY_WORKS_ONE_IN 4
#define MOST_QUERY_STEPS   64

/* Whether work can be given to a stream; false, with a defect noted: the stream is closed
 * or its device not entered. */
static bool expect_stream(const ms_cuda_stream *stream, const char *what)
{
    if (!fake_expect_entered(stream->device, what))
        return false;
    if (!stream->is_open)
        fake_note_defect("%s: the stream is closed", what);
    return stream->is_open;
}

static void expect_event(const ms_cuda_event *event, const char *what)
{
    if (!event->is_open)
        fake_note_defect("%s: the event is closed", what);
}

/* ---- streams and events ---- */

ms_status fake_open_stream(ms_ctx *cx, ms_cuda_device *device, bool urgent,
                           ms_cuda_stream **out)
{
    pthread_mutex_lock(&fake_lock);
    bool fails = fake_call(MS_FAKE_OPEN_STREAM) || device->has_failed;
    fake_expect_entered(device, "open_stream");
    if (!fails) {
        ms_cuda_stream *stream = FAKE_NEW(ms_cuda_stream);
        stream->device = device;
        stream->is_open = true;
        stream->is_urgent = urgent;
        stream->priority = ms_rng_next(&fake.rng);
        int number = fake.num_streams[device->ordinal]++;
        if (fake.options.num_connections > 0)
            stream->queue = number % fake.options.num_connections;
        fake.num_urgent += urgent;
        stream->next = fake.streams;
        fake.streams = stream;
        *out = stream;
    }
    pthread_mutex_unlock(&fake_lock);
    return fails ? fake_failure(cx, "open_stream") : MS_OK;
}

void fake_close_stream(ms_cuda_stream *stream)
{
    if (stream == NULL)
        return;
    pthread_mutex_lock(&fake_lock);
    if (!stream->is_open)
        fake_note_defect("a stream is closed twice");
    if (stream->first != NULL && !stream->device->has_failed)
        fake_note_defect("a stream is closed before its work is done");
    stream->is_open = false;
    pthread_mutex_unlock(&fake_lock);
}

ms_status fake_open_event(ms_ctx *cx, ms_cuda_device *device, bool timed,
                          ms_cuda_event **out)
{
    pthread_mutex_lock(&fake_lock);
    bool fails = fake_call(MS_FAKE_OPEN_EVENT) || device->has_failed;
    fake_expect_entered(device, "open_event");
    if (!fails) {
        ms_cuda_event *event = FAKE_NEW(ms_cuda_event);
        event->device = device;
        event->is_open = true;
        event->is_timed = timed;
        event->next = fake.events;
        fake.events = event;
        *out = event;
    }
    pthread_mutex_unlock(&fake_lock);
    return fails ? fake_failure(cx, "open_event") : MS_OK;
}

void fake_close_event(ms_cuda_event *event)
{
    if (event == NULL)
        return;
    pthread_mutex_lock(&fake_lock);
    if (!event->is_open)
        fake_note_defect("an event is closed twice");
    event->is_open = false;
    pthread_mutex_unlock(&fake_lock);
}

ms_status fake_record(ms_ctx *cx, ms_cuda_event *event, ms_cuda_stream *stream)
{
    pthread_mutex_lock(&fake_lock);
    bool fails = fake_call(MS_FAKE_RECORD) || stream->device->has_failed;
    fails = !expect_stream(stream, "record") || fails;
    expect_event(event, "record");
    if (!fails) {
        fake_item *item = fake_give(stream, FAKE_RECORD);
        item->event = event;
        item->number = ++event->num_recorded;
    }
    pthread_mutex_unlock(&fake_lock);
    return fails ? fake_failure(cx, "record") : MS_OK;
}

ms_status fake_wait(ms_ctx *cx, ms_cuda_stream *stream, ms_cuda_event *event)
{
    pthread_mutex_lock(&fake_lock);
    bool fails = fake_call(MS_FAKE_WAIT) || stream->device->has_failed;
    fails = !expect_stream(stream, "wait") || fails;
    expect_event(event, "wait");
    if (!fails) {
        fake_item *item = fake_give(stream, FAKE_WAIT);
        item->event = event;
        /* 0: the event was never recorded, nothing to wait for */
        item->number = event->num_recorded;
    }
    pthread_mutex_unlock(&fake_lock);
    return fails ? fake_failure(cx, "wait") : MS_OK;
}

static bool has_happened(const ms_cuda_event *event)
{
    return event->num_happened >= event->num_recorded;
}

ms_status fake_query(ms_ctx *cx, ms_cuda_event *event, bool *happened)
{
    pthread_mutex_lock(&fake_lock);
    bool fails = fake_call(MS_FAKE_QUERY);
    expect_event(event, "query");
    bool works = ms_rng_below(&fake.rng, QUERY_WORKS_ONE_IN) == 0;
    for (uint64_t steps = works ? ms_rng_below(&fake.rng, MOST_QUERY_STEPS) : 0;
         steps > 0 && !has_happened(event) && fake_step();)
        steps--;
    fake_steps_end();
    *happened = has_happened(event);
    fails = fails || event->device->has_failed;
    pthread_mutex_unlock(&fake_lock);
    if (!fails && !*happened)
        sched_yield(); /* lets other threads take the lock */
    return fails ? fake_failure(cx, "query") : MS_OK;
}

ms_status fake_elapsed(ms_ctx *cx, ms_cuda_event *from, ms_cuda_event *to,
                       double *seconds)
{
    pthread_mutex_lock(&fake_lock);
    bool fails = fake_call(MS_FAKE_ELAPSED) || from->num_happened == 0 ||
                 to->num_happened == 0 || !has_happened(from) || !has_happened(to);
    expect_event(from, "elapsed");
    expect_event(to, "elapsed");
    if (!from->is_timed || !to->is_timed)
        fake_note_defect("elapsed: an event is not timed");
    *seconds = to->time_s - from->time_s;
    pthread_mutex_unlock(&fake_lock);
    return fails ? fake_failure(cx, "elapsed") : MS_OK;
}

/* Does work until a stream is empty; needs the lock. */
static bool finish_locked(ms_cuda_stream *stream)
{
    struct timespec since = fake_now();
    while (stream->first != NULL) {
        if (fake_step()) {
            since = fake_now();
            continue;
        }
        fake_steps_end();
        if (!fake_pause(since)) {
            fake_note_defect(
                "a stream can never end: its work waits for an event or for other ranks");
            return false;
        }
    }
    fake_steps_end();
    return !stream->device->has_failed;
}

ms_status fake_finish(ms_ctx *cx, ms_cuda_stream *stream)
{
    pthread_mutex_lock(&fake_lock);
    bool fails = fake_call(MS_FAKE_FINISH);
    fails = !expect_stream(stream, "finish") || fails;
    fails = !finish_locked(stream) || fails;
    pthread_mutex_unlock(&fake_lock);
    return fails ? fake_failure(cx, "finish") : MS_OK;
}

/* ---- work ---- */

void ms_cuda_fake_enqueue(ms_cuda_stream *stream, void (*run)(void *state), void *state)
{
    pthread_mutex_lock(&fake_lock);
    if (!expect_stream(stream, "a launch") || fake_call(MS_FAKE_LAUNCH) ||
        stream->device->has_failed) {
        stream->device->launch_failed = true;
        free(state);
    } else {
        fake_item *item = fake_give(stream, FAKE_LAUNCH);
        item->run = run;
        item->state = state;
    }
    pthread_mutex_unlock(&fake_lock);
}

static bool copy_locked(ms_cuda_stream *stream, fake_item what, bool to_host,
                        bool from_host)
{
    bool is_ok = true;
    if (what.bytes == 0)
        return true;
    bool waits = to_host && fake_block_of(what.to, true) == NULL;
    bool takes = from_host && fake_block_of(what.from, true) == NULL;
    if (!waits)
        is_ok = fake_expect_memory(what.to, what.bytes, to_host, "copy to");
    if (!takes && is_ok)
        is_ok = fake_expect_memory(what.from, what.bytes, from_host, "copy from");
    if (!is_ok)
        return false;
    fake_item *item = fake_give(stream, FAKE_COPY);
    item->to = what.to;
    item->from = what.from;
    item->bytes = what.bytes;
    if (takes) {
        item->state = fake_zeroed(what.bytes);
        memcpy(item->state, what.from, what.bytes);
        item->from = NULL;
    }
    return !waits || finish_locked(stream);
}

ms_status fake_copy(ms_ctx *cx, ms_cuda_stream *stream, void *to, const void *from,
                    size_t bytes, ms_cuda_direction direction)
{
    if (stream == NULL) {
        memmove(to, from, bytes);
        return MS_OK;
    }
    pthread_mutex_lock(&fake_lock);
    bool fails = fake_call(MS_FAKE_COPY) || stream->device->has_failed;
    fails = !expect_stream(stream, "copy") || fails;
    if (!fails)
        fails =
            !copy_locked(stream, (fake_item){.to = to, .from = from, .bytes = bytes},
                         direction == MS_CUDA_TO_HOST, direction == MS_CUDA_TO_DEVICE);
    pthread_mutex_unlock(&fake_lock);
    return fails ? fake_failure(cx, "copy") : MS_OK;
}

ms_status fake_clear(ms_ctx *cx, ms_cuda_stream *stream, void *to, size_t bytes)
{
    if (stream == NULL) {
        memset(to, 0, bytes);
        return MS_OK;
    }
    pthread_mutex_lock(&fake_lock);
    bool fails = fake_call(MS_FAKE_CLEAR) || stream->device->has_failed;
    fails = !expect_stream(stream, "clear") || fails;
    if (!fails && bytes > 0 && fake_expect_memory(to, bytes, false, "clear")) {
        fake_item *item = fake_give(stream, FAKE_CLEAR);
        item->to = to;
        item->bytes = bytes;
    }
    pthread_mutex_unlock(&fake_lock);
    return fails ? fake_failure(cx, "clear") : MS_OK;
}

/* Whether cuBLASLt supports this FP8 product (on Hopper). */
static bool is_fp8_product(const ms_cuda_gemm *p)
{
    return ms_scalar_is_fp8(p->type_b) &&
           (p->type == MS_SCALAR_E4M3 || p->type_b == MS_SCALAR_E4M3) &&
           (p->result == MS_SCALAR_BF16 || p->result == MS_SCALAR_FP32) &&
           p->num_batch <= 1 && !p->transpose_a && p->transpose_b && p->k % 16 == 0 &&
           p->n % 16 == 0 && p->ld_a % 16 == 0 && p->ld_b % 16 == 0 &&
           (uintptr_t)p->a % 16 == 0 && (uintptr_t)p->b % 16 == 0 &&
           (uintptr_t)p->c % 16 == 0 && p->scale_a != NULL && p->scale_b != NULL;
}

static bool is_product(const ms_cuda_gemm *p)
{
    bool types = ms_scalar_is_fp8(p->type) ? is_fp8_product(p)
                 : p->result == p->type
                     ? p->type == MS_SCALAR_FP32 || p->type == MS_SCALAR_FP64 ||
                           p->type == MS_SCALAR_BF16
                     : p->type == MS_SCALAR_BF16 && p->result == MS_SCALAR_FP32;
    return types && p->m >= 0 && p->n >= 0 && p->k >= 0 &&
           p->ld_a >= (p->transpose_a ? p->m : p->k) &&
           p->ld_b >= (p->transpose_b ? p->k : p->n) && p->ld_c >= p->n;
}

/* Keeps that the GEMM's only algorithm was chosen, after timing or without. */
static void choose(const ms_cuda_device *device, const ms_cuda_gemm *p)
{
    double time_s = MS_CUDA_FAKE_WORK_S;
    if (!device->times_gemms)
        time_s = NAN;
    const ms_cuda_gemm_choice choice = {.device = "fake device",
                                        .library_version = 1,
                                        .key = ms_cuda_gemm_key_of(p),
                                        .time_s = time_s,
                                        .first_s = time_s};
    if (device->choices != NULL && p->m > 0 && p->n > 0 && p->k > 0)
        (void)ms_cuda_gemm_choices_add(device->choices, &choice);
}

ms_status fake_product(ms_ctx *cx, ms_cuda_stream *stream, const ms_cuda_gemm *p)
{
    if (stream == NULL) {
        if (!is_product(p))
            return fake_failure(cx, "product");
        fake_run_product(p);
        return MS_OK;
    }
    pthread_mutex_lock(&fake_lock);
    bool fails = fake_call(MS_FAKE_GEMM) || stream->device->has_failed;
    fails = !expect_stream(stream, "product") || fails;
    if (!is_product(p))
        fake_note_defect("product: types %d and %d, or leading dims", (int)p->type,
                         (int)p->result);
    if (!fails &&
        fake_expect_memory(p->a, fake_product_bytes(p, 0), false, "product: a") &&
        fake_expect_memory(p->b, fake_product_bytes(p, 1), false, "product: b") &&
        fake_expect_memory(p->c, fake_product_bytes(p, 2), false, "product: c") &&
        (!ms_scalar_is_fp8(p->type) ||
         (fake_expect_memory(p->scale_a, sizeof(float), false, "product: scale") &&
          fake_expect_memory(p->scale_b, sizeof(float), false, "product: scale"))))
        fake_give(stream, FAKE_GEMM)->product = *p;
    choose(stream->device, p);
    pthread_mutex_unlock(&fake_lock);
    return fails ? fake_failure(cx, "product") : MS_OK;
}

ms_status fake_has_product(ms_ctx *cx, const ms_cuda_gemm *p, bool *has)
{
    (void)cx;
    *has = is_product(p);
    return MS_OK;
}
