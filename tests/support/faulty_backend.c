#include "tests/support/faulty_backend.h"

struct ms_device_rank {
    ms_faulty *faulty;
    ms_device_rank *inner;
    bool counts; /* this rank's calls are counted */
};

typedef struct wrapped_main {
    ms_faulty *faulty;
    ms_rank_main *main;
    void *state;
} wrapped_main;

/* The wrapper of a job, which is the job's state. */
static ms_faulty *of(const ms_backend_job *job)
{
    return job->state;
}

static const ms_backend *inner(const ms_device_rank *device)
{
    return device->faulty->inner;
}

/* Counts a call; returns whether it is to fail. */
static bool is_due(ms_device_rank *device)
{
    if (!device->counts)
        return false;
    bool due = ++device->faulty->num_calls == device->faulty->fail_at;
    device->faulty->failed = device->faulty->failed || due;
    if (!due || device->faulty->interrupted == NULL)
        return due;
    *device->faulty->interrupted = 1;
    return false;
}

static ms_status fail(ms_ctx *cx, const ms_device_rank *device, const char *what)
{
    return ms_fail(cx, MS_EIO, MS_NOWHERE, "call %ld (%s) was made to fail",
                   device->faulty->fail_at, what);
}

/* ---- open, run, close ---- */

static ms_status faulty_open(ms_ctx *cx, ms_backend_job *job)
{
    ms_faulty *f = of(job);
    f->job = *job;
    f->job.backend = f->inner;
    f->job.state = NULL;
    return f->inner->open(cx, &f->job);
}

static void faulty_close(ms_backend_job *job)
{
    of(job)->inner->close(&of(job)->job);
}

static bool faulty_carries(const ms_backend_job *job, long rank)
{
    return of(job)->inner->carries(&of(job)->job, rank);
}

static ms_status run_rank(ms_ctx *cx, ms_device_rank *device, long rank, void *state)
{
    const wrapped_main *w = state;
    ms_device_rank outer = {w->faulty, device, rank == w->faulty->rank};
    return w->main(cx, &outer, rank, w->state);
}

static ms_status faulty_run(ms_ctx *cx, ms_backend_job *job, ms_rank_main *main,
                            void *state)
{
    ms_faulty *f = of(job);
    f->num_calls = 0;
    f->failed = false;
    wrapped_main wrapped = {f, main, state};
    return f->inner->run(cx, &f->job, run_rank, &wrapped);
}

/* ---- calls that can fail ---- */

static void *faulty_allocate(ms_device_rank *device, size_t bytes)
{
    return is_due(device) ? NULL : inner(device)->allocate(device->inner, bytes);
}

static ms_status faulty_kernel(ms_ctx *cx, ms_device_rank *device, const ms_op_call *call)
{
    if (is_due(device))
        return fail(cx, device,
                    ms_arena_printf(cx->arena, "%s %s", ms_op_names[call->node->op],
                                    call->node->name));
    return inner(device)->kernel(cx, device->inner, call);
}

static ms_status faulty_start(ms_ctx *cx, ms_device_rank *device,
                              const ms_transfer *transfer, const ms_event *after,
                              int num_after, ms_event *done)
{
    if (is_due(device)) {
        return fail(cx, device,
                    ms_arena_printf(cx->arena, "%s %s",
                                    ms_transfer_kind_names[transfer->kind],
                                    transfer->name));
    }
    return inner(device)->start(cx, device->inner, transfer, after, num_after, done);
}

static ms_status faulty_wait(ms_ctx *cx, ms_device_rank *device, ms_event event)
{
    if (is_due(device))
        return fail(cx, device, "wait");
    return inner(device)->wait(cx, device->inner, event);
}

/* ---- calls that cannot ---- */

static void faulty_release(ms_device_rank *device, void *memory, size_t bytes)
{
    inner(device)->release(device->inner, memory, bytes);
}

static void faulty_idle(ms_device_rank *device, double seconds)
{
    inner(device)->idle(device->inner, seconds);
}

static ms_event faulty_mark(ms_device_rank *device)
{
    return inner(device)->mark(device->inner);
}

static double faulty_now_s(ms_device_rank *device)
{
    return inner(device)->now_s(device->inner);
}

static void faulty_abort(ms_device_rank *device)
{
    inner(device)->abort(device->inner);
}

/* ---- arrays: those of the backends on CPUs use the device for sums only, whose memory
 * is the inner one's ---- */

static void add_sum(ms_device_rank *device, ms_scalar scalar, int slot, const void *x,
                    long count)
{
    inner(device)->arrays->add_sum(device->inner, scalar, slot, x, count);
}

static void add_squares(ms_device_rank *device, ms_scalar scalar, int slot, const void *x,
                        long count)
{
    inner(device)->arrays->add_squares(device->inner, scalar, slot, x, count);
}

static ms_status read_sums(ms_ctx *cx, ms_device_rank *device, double *sums, int num)
{
    if (is_due(device))
        return fail(cx, device, "read sums");
    return inner(device)->arrays->read_sums(cx, device->inner, sums, num);
}

void ms_faulty_wrap(ms_faulty *faulty, ms_backend_job *job)
{
    if (faulty->inner->arrays != NULL) {
        faulty->arrays = *faulty->inner->arrays;
        faulty->arrays.add_sum = add_sum;
        faulty->arrays.add_squares = add_squares;
        faulty->arrays.read_sums = read_sums;
    }
    faulty->table = (ms_backend){.name = faulty->inner->name,
                                 .has_values = faulty->inner->has_values,
                                 .arrays = &faulty->arrays,
                                 .workspace_bytes = faulty->inner->workspace_bytes,
                                 .open = faulty_open,
                                 .run = faulty_run,
                                 .close = faulty_close,
                                 .carries = faulty_carries,
                                 .allocate = faulty_allocate,
                                 .release = faulty_release,
                                 .kernel = faulty_kernel,
                                 .idle = faulty_idle,
                                 .mark = faulty_mark,
                                 .start = faulty_start,
                                 .wait = faulty_wait,
                                 .now_s = faulty_now_s,
                                 .abort = faulty_abort};
    job->backend = &faulty->table;
    job->state = faulty;
}
