#include "tests/support/cuda_fake.h"

#include "tests/support/cuda_fake_priv.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_MEMORY_BYTES  ((double)(1 << 30))
#define DEFAULT_STUCK_SECONDS 20
#define DEFAULT_SMS           132

fake_world fake;
pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t fake_change = PTHREAD_COND_INITIALIZER;
static _Thread_local const ms_cuda_device *entered;
static _Thread_local int num_ranges;

/* ---- for the other files ---- */

void *fake_zeroed(size_t bytes)
{
    void *memory = calloc(1, bytes > 0 ? bytes : 1);
    if (memory == NULL)
        abort();
    return memory;
}

void fake_note_defect(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (fake.num_defects++ == 0)
        vsnprintf(fake.defect, sizeof fake.defect, format, args);
    va_end(args);
    if (!fake.options.record_defects) {
        fprintf(stderr, "fake device: %s\n", fake.defect);
        abort();
    }
}

bool fake_call(ms_cuda_fake_call call)
{
    fake.num_calls[call]++;
    return fake.fail_call[call] > 0 && --fake.fail_call[call] == 0;
}

ms_status fake_failure(ms_ctx *cx, const char *what)
{
    return ms_fail(cx, MS_EIO, MS_NOWHERE, "fake device: %s failed", what);
}

bool fake_expect_entered(const ms_cuda_device *device, const char *what)
{
    bool has_entered = entered != NULL && entered->ordinal == device->ordinal;
    if (!device->is_open)
        fake_note_defect("%s: the device is closed", what);
    else if (!has_entered)
        fake_note_defect("%s: the thread has not entered device %d", what,
                         device->ordinal);
    return device->is_open && has_entered;
}

void fake_enter(ms_cuda_device *device)
{
    entered = device;
}

/* ---- begin, end ---- */

#define FREE_ALL(list)                                                                   \
    while ((list) != NULL) {                                                             \
        void *first_ = (list);                                                           \
        (list) = (list)->next;                                                           \
        free(first_);                                                                    \
    }

static void free_everything(void)
{
    for (ms_cuda_stream *s = fake.streams; s != NULL; s = s->next) {
        while (s->first != NULL) {
            fake_item *item = s->first;
            s->first = item->next;
            fake_free_item(item);
        }
    }
    fake_free_groups();
    fake_free_blocks();
    FREE_ALL(fake.streams);
    FREE_ALL(fake.events);
    FREE_ALL(fake.devices);
}

void ms_cuda_fake_begin(const ms_cuda_fake_options *options)
{
    pthread_mutex_lock(&fake_lock);
    free_everything();
    fake = (fake_world){.lost_rank = -1};
    if (options != NULL)
        fake.options = *options;
    ms_cuda_fake_options *o = &fake.options;
    o->num_devices = o->num_devices > 0 ? o->num_devices : 1;
    o->memory_bytes = o->memory_bytes > 0 ? o->memory_bytes : DEFAULT_MEMORY_BYTES;
    o->stuck_seconds = o->stuck_seconds > 0 ? o->stuck_seconds : DEFAULT_STUCK_SECONDS;
    fake.rng = ms_rng_seed(o->seed);
    entered = NULL;
    pthread_mutex_unlock(&fake_lock);
}

void ms_cuda_fake_alone(void)
{
    fake.is_alone = true;
}

static int num_open(void)
{
    int num = 0;
    for (ms_cuda_device *d = fake.devices; d != NULL; d = d->next)
        num += d->is_open;
    for (ms_cuda_stream *s = fake.streams; s != NULL; s = s->next)
        num += s->is_open;
    for (ms_cuda_event *e = fake.events; e != NULL; e = e->next)
        num += e->is_open;
    for (ms_cuda_comm *c = fake.comms; c != NULL; c = c->next)
        num += c->is_open;
    for (fake_block *b = fake.blocks; b != NULL; b = b->next)
        num += b->is_live;
    return num;
}

void ms_cuda_fake_end(void)
{
    pthread_mutex_lock(&fake_lock);
    int num = num_open();
    if (num > 0)
        fake_note_defect("%d things have not been closed or released", num);
    free_everything();
    pthread_mutex_unlock(&fake_lock);
}

/* ---- knobs and counts ---- */

void ms_cuda_fake_fail(ms_cuda_fake_call call, long number)
{
    pthread_mutex_lock(&fake_lock);
    fake.fail_call[call] = number;
    pthread_mutex_unlock(&fake_lock);
}

void ms_cuda_fake_fail_work(long number)
{
    pthread_mutex_lock(&fake_lock);
    fake.fail_work = number;
    pthread_mutex_unlock(&fake_lock);
}

void ms_cuda_fake_fail_collective(long number)
{
    pthread_mutex_lock(&fake_lock);
    fake.fail_collective = number;
    pthread_mutex_unlock(&fake_lock);
}

void ms_cuda_fake_lose_rank(int rank)
{
    pthread_mutex_lock(&fake_lock);
    fake.lost_rank = rank;
    pthread_mutex_unlock(&fake_lock);
}

long ms_cuda_fake_calls(ms_cuda_fake_call call)
{
    pthread_mutex_lock(&fake_lock);
    long num = fake.num_calls[call];
    pthread_mutex_unlock(&fake_lock);
    return num;
}

long ms_cuda_fake_num_defects(void)
{
    pthread_mutex_lock(&fake_lock);
    long num = fake.num_defects;
    pthread_mutex_unlock(&fake_lock);
    return num;
}

long ms_cuda_fake_num_urgent(void)
{
    pthread_mutex_lock(&fake_lock);
    long num = fake.num_urgent;
    pthread_mutex_unlock(&fake_lock);
    return num;
}

const char *ms_cuda_fake_defect(void)
{
    return fake.defect;
}

double ms_cuda_fake_used_bytes(int ordinal)
{
    return fake.used_bytes[ordinal];
}

double ms_cuda_fake_most_bytes(int ordinal)
{
    return fake.most_bytes[ordinal];
}

/* ---- devices ---- */

static ms_status find(ms_ctx *cx, int *num_devices)
{
    pthread_mutex_lock(&fake_lock);
    bool fails = fake_call(MS_FAKE_FIND);
    const char *missing = fake.options.missing;
    *num_devices = fake.options.num_devices;
    pthread_mutex_unlock(&fake_lock);
    if (missing != NULL)
        return ms_fail(cx, MS_EIO, MS_NOWHERE, "%s", missing);
    return fails ? fake_failure(cx, "find") : MS_OK;
}

static ms_status open_device(ms_ctx *cx, int ordinal, ms_cuda_device **out)
{
    pthread_mutex_lock(&fake_lock);
    bool fails = fake_call(MS_FAKE_OPEN) || ordinal < 0 ||
                 ordinal >= fake.options.num_devices || ordinal >= FAKE_MAX_DEVICES;
    if (!fails) {
        ms_cuda_device *device = FAKE_NEW(ms_cuda_device);
        *device =
            (ms_cuda_device){.next = fake.devices, .ordinal = ordinal, .is_open = true};
        fake.devices = device;
        entered = device;
        *out = device;
    }
    pthread_mutex_unlock(&fake_lock);
    return fails ? fake_failure(cx, "open") : MS_OK;
}

static void close_device(ms_cuda_device *device)
{
    if (device == NULL)
        return;
    pthread_mutex_lock(&fake_lock);
    bool has_more = false;
    for (ms_cuda_stream *s = fake.streams; s != NULL; s = s->next)
        has_more = has_more || (s->is_open && s->device == device);
    for (ms_cuda_event *e = fake.events; e != NULL; e = e->next)
        has_more = has_more || (e->is_open && e->device == device);
    for (ms_cuda_comm *c = fake.comms; c != NULL; c = c->next)
        has_more = has_more || (c->is_open && c->device == device);
    for (fake_block *b = fake.blocks; b != NULL; b = b->next)
        has_more = has_more || (b->is_live && b->device == device);
    if (!device->is_open || has_more)
        fake_note_defect("a device is closed twice, or before what belongs to it");
    device->is_open = false;
    if (entered == device)
        entered = NULL;
    pthread_mutex_unlock(&fake_lock);
}

static ms_status describe(ms_ctx *cx, int ordinal, ms_cuda_facts *out)
{
    pthread_mutex_lock(&fake_lock);
    int capability = fake.options.capability > 0 ? fake.options.capability : 90;
    bool fails = fake_call(MS_FAKE_DESCRIBE) || ordinal >= fake.options.num_devices;
    *out = (ms_cuda_facts){.name = "fake device",
                           .major = capability / 10,
                           .minor = capability % 10,
                           .num_sms = fake.options.num_sms > 0 ? fake.options.num_sms
                                                               : DEFAULT_SMS,
                           .num_queues = fake.options.num_connections,
                           .memory_bytes = fake.options.memory_bytes,
                           .shared_bytes = 1 << 16,
                           .l2_bytes = 1 << 20,
                           .clock_hz = 1e9,
                           .nccl_version = fake.options.nccl_version};
    pthread_mutex_unlock(&fake_lock);
    return fails ? fake_failure(cx, "describe") : MS_OK;
}

static ms_status memory(ms_ctx *cx, ms_cuda_device *device, double *free_bytes,
                        double *total_bytes)
{
    pthread_mutex_lock(&fake_lock);
    bool fails = fake_call(MS_FAKE_MEMORY);
    *total_bytes = fake.options.memory_bytes;
    *free_bytes = *total_bytes - fake.used_bytes[device->ordinal];
    pthread_mutex_unlock(&fake_lock);
    return fails ? fake_failure(cx, "memory") : MS_OK;
}

static ms_status check(ms_ctx *cx, ms_cuda_device *device)
{
    pthread_mutex_lock(&fake_lock);
    bool fails = fake_call(MS_FAKE_CHECK) || device->has_failed || device->launch_failed;
    device->launch_failed = false;
    pthread_mutex_unlock(&fake_lock);
    return fails ? fake_failure(cx, "a launch or earlier work") : MS_OK;
}

/* The fake device has one algorithm a GEMM: fake_product. */
static void choose_gemms(ms_cuda_device *device, ms_cuda_gemm_choices *choices,
                         bool times)
{
    pthread_mutex_lock(&fake_lock);
    device->choices = choices;
    device->times_gemms = times;
    pthread_mutex_unlock(&fake_lock);
}

/* ---- attention ---- */

/* The fake GPU has no fused attention: programs must go on without. */
static ms_status attention(ms_ctx *cx, ms_cuda_stream *stream, const ms_cuda_fused *how,
                           const char **why)
{
    (void)cx;
    (void)stream;
    (void)how;
    *why = "the fake device has no cuDNN";
    return MS_OK;
}

/* ---- ranges ---- */

static void push_range(const char *name)
{
    (void)name;
    num_ranges++;
    pthread_mutex_lock(&fake_lock);
    fake_call(MS_FAKE_PUSH_RANGE);
    pthread_mutex_unlock(&fake_lock);
}

static void pop_range(void)
{
    pthread_mutex_lock(&fake_lock);
    fake_call(MS_FAKE_POP_RANGE);
    if (--num_ranges < 0)
        fake_note_defect("a range ends that never began");
    pthread_mutex_unlock(&fake_lock);
}

const ms_cuda_driver ms_cuda_fake_driver = {
    .name = "fake",
    .find = find,
    .open = open_device,
    .enter = fake_enter,
    .close = close_device,
    .describe = describe,
    .memory = memory,
    .allocate = fake_allocate,
    .release = fake_release,
    .allocate_host = fake_allocate_host,
    .release_host = fake_release_host,
    .open_stream = fake_open_stream,
    .close_stream = fake_close_stream,
    .open_event = fake_open_event,
    .close_event = fake_close_event,
    .record = fake_record,
    .wait = fake_wait,
    .query = fake_query,
    .elapsed = fake_elapsed,
    .finish = fake_finish,
    .check = check,
    .copy = fake_copy,
    .clear = fake_clear,
    .product = fake_product,
    .has_product = fake_has_product,
    .choose_gemms = choose_gemms,
    .attention = attention,
    .make_id = fake_make_id,
    .open_comm = fake_open_comm,
    .split = fake_split_comm,
    .communicate = fake_communicate,
    .check_comm = fake_check_comm,
    .abort_comm = fake_abort_comm,
    .close_comm = fake_close_comm,
    .push_range = push_range,
    .pop_range = pop_range,
};
