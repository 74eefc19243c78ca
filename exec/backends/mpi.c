/* The mpi backend: runs one process per rank, with CPU kernels and an MPI communicator
 * for each of its groups. Waiting polls non-blocking transfers, to notice timeouts.
 * Messages are sent from copies, so that a sender never waits for its receiver. */
#include "base/clock.h"
#include "exec/cpu/host_backend.h"
#include "exec/cpu/pool.h"
#include "exec/launch/environment.h"

#include <assert.h>
#include <limits.h>
#include <mpi.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ALIGNMENT          64
#define POLLS_BEFORE_YIELD 200

/* A started MPI operation. `event`: 0 for a send, awaited only at the end of the run. */
typedef struct pending {
    ms_event event;
    ms_transfer transfer;
    MPI_Request request;
    MPI_Datatype type;
    int *counts; /* all-to-all: send counts, send offsets, then the same to receive */
    void *copy;  /* copy of a sent message */
    size_t copy_bytes;
    struct pending *next;
} pending;

struct ms_device_rank {
    ms_host_rank host;
    const ms_backend_job *job;
    long rank;
    double timeout_s;
    double began_s;
    const ms_kernels *kernels;
    bool initialised_here;
    bool failed;    /* MPI_Finalize is then skipped, so that all ranks end */
    MPI_Comm world; /* communicator of messages: MPI ranks equal the plan's ranks */
    int max_tag;
    MPI_Op bf16_ops[2]; /* [maximum]: reductions of numbers that MPI has no type for */
    MPI_Comm of_group[MS_NUM_TRAFFIC_GROUPS];
    ms_event last_event;
    pending *first, **end;
};

static ms_status check_failed(ms_ctx *cx, const ms_device_rank *device)
{
    return device->failed
               ? ms_fail(cx, MS_EIO, MS_NOWHERE, "this rank has failed already")
               : MS_OK;
}

static ms_status check_mpi(ms_ctx *cx, int rc, const char *what)
{
    if (rc == MPI_SUCCESS)
        return MS_OK;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(rc, text, &length);
    return ms_fail(cx, MS_EIO, MS_NOWHERE, "MPI could not carry out %s: %s", what, text);
}

/* ---- open and close ---- */

static void drop_pending(ms_device_rank *device, pending **at)
{
    pending *p = *at;
    *at = p->next;
    if (device->end == &p->next)
        device->end = at;
    free(p->counts);
    ms_pool_give(device->host.pool, p->copy, p->copy_bytes);
    free(p);
}

static ms_status initialise_mpi(ms_ctx *cx, ms_device_rank *device)
{
    int is_up = 0, is_over = 0, provided = 0;
    MPI_Initialized(&is_up);
    MPI_Finalized(&is_over);
    if (is_over)
        return ms_fail(cx, MS_EIO, MS_NOWHERE,
                       "MPI has ended in this process and cannot begin again");
    device->initialised_here = !is_up;
    return is_up ? MS_OK
                 : check_mpi(cx,
                             MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided),
                             "its initialisation");
}

/* Reports a launcher of another MPI: each process has an MPI_COMM_WORLD of its own. */
static ms_status fail_foreign_launcher(ms_ctx *cx, const ms_launch *launch)
{
    ms_fail(cx, MS_EINPUT, MS_NOWHERE,
            "%s started this process as rank %ld of %ld, but MPI knows of no other",
            ms_launcher_names[launch->launcher], launch->rank, launch->size);
    return ms_hint(cx, launch->launcher == MS_LAUNCHER_SLURM
                           ? "srun --mpi=pmix (\"srun --mpi=list\" names what there is)"
                           : "start it with mpiexec of the MPI that it is built with");
}

static ms_status check_size(ms_ctx *cx, const ms_backend_job *job)
{
    int size = 0;
    ms_launch launch = ms_launch_environment();
    MS_TRY(check_mpi(cx, MPI_Comm_size(MPI_COMM_WORLD, &size), "the count of ranks"));
    if (size == 1 && launch.size > 1)
        return fail_foreign_launcher(cx, &launch);
    if (size == job->world->num_ranks)
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE,
            "the plan has %ld ranks, but %d MPI rank%s started", job->world->num_ranks,
            size, size == 1 ? " was" : "s were");
    return ms_hint(cx, "start it with mpiexec -n %ld, or use --backend loop",
                   job->world->num_ranks);
}

static ms_status find_max_tag(ms_ctx *cx, ms_device_rank *device)
{
    int *most = NULL, is_set = 0;
    MS_TRY(check_mpi(cx, MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &is_set),
                     "the query of its largest tag"));
    /* MPI_TAG_UB is not set: 32767 is the least that the MPI standard guarantees */
    device->max_tag = is_set ? *most : 32767;
    return MS_OK;
}

/* NOLINTBEGIN(readability-non-const-parameter): MPI_User_function has these types */

/* Every addition is rounded to bf16, as in NCCL. */
static void add_bf16(void *from, void *to, int *count, MPI_Datatype *type)
{
    (void)type;
    ms_cpu_kernels(MS_REAL_BF16)->add(to, from, *count);
}

static void maximum_bf16(void *from, void *to, int *count, MPI_Datatype *type)
{
    (void)type;
    ms_cpu_kernels(MS_REAL_BF16)->maximum(to, from, *count);
}

/* NOLINTEND(readability-non-const-parameter) */

static ms_status make_reductions(ms_ctx *cx, ms_device_rank *device)
{
    MPI_User_function *const functions[2] = {add_bf16, maximum_bf16};
    for (int i = 0; i < 2; i++)
        MS_TRY(check_mpi(cx, MPI_Op_create(functions[i], true, &device->bf16_ops[i]),
                         "a reduction of bf16"));
    return MS_OK;
}

/* Splits MPI_COMM_WORLD once per kind of group; one-rank groups get MPI_COMM_SELF. */
static ms_status open_communicators(ms_ctx *cx, ms_device_rank *device)
{
    int rank = 0;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MS_TRY(check_mpi(cx, MPI_Comm_rank(MPI_COMM_WORLD, &rank), "the numbering of ranks"));
    MS_TRY(check_mpi(cx, MPI_Comm_dup(MPI_COMM_WORLD, &device->world), "a communicator"));
    device->rank = rank;
    MS_TRY(find_max_tag(cx, device));
    MS_TRY(make_reductions(cx, device));
    for (int g = 0; g < MS_NUM_TRAFFIC_GROUPS; g++) {
        const ms_members *members = &device->job->world->members[g][rank];
        device->of_group[g] = MPI_COMM_SELF;
        if (members->size == 1)
            continue;
        int rc = MPI_Comm_split(MPI_COMM_WORLD, (int)members->ranks[0], members->own,
                                &device->of_group[g]);
        MS_TRY(check_mpi(cx, rc, "the division into groups"));
    }
    return MS_OK;
}

static void close_communicators(ms_device_rank *device)
{
    for (int g = 0; g < MS_NUM_TRAFFIC_GROUPS; g++)
        if (device->of_group[g] != MPI_COMM_SELF && device->of_group[g] != MPI_COMM_NULL)
            MPI_Comm_free(&device->of_group[g]);
    for (int i = 0; i < 2; i++)
        if (device->bf16_ops[i] != MPI_OP_NULL)
            MPI_Op_free(&device->bf16_ops[i]);
    if (device->world != MPI_COMM_NULL)
        MPI_Comm_free(&device->world);
    if (device->initialised_here)
        MPI_Finalize();
}

static void mpi_close(ms_backend_job *job)
{
    ms_device_rank *device = job->state;
    if (device == NULL)
        return;
    if (!device->failed)
        close_communicators(device);
    while (device->first != NULL)
        drop_pending(device, &device->first);
    ms_pool_close(device->host.pool);
    free(device);
    job->state = NULL;
}

static ms_status no_memory_for_mpi(ms_ctx *cx)
{
    return ms_fail(cx, MS_EIO, MS_NOWHERE, "no memory is left for MPI");
}

static ms_status mpi_open(ms_ctx *cx, ms_backend_job *job)
{
    ms_device_rank *device = malloc(sizeof *device);
    job->state = device;
    if (device == NULL)
        return no_memory_for_mpi(cx);
    *device =
        (ms_device_rank){.job = job, .world = MPI_COMM_NULL, .host.pool = ms_pool_open()};
    device->timeout_s = job->timeout_s > 0 ? job->timeout_s : MS_DEFAULT_TIMEOUT_S;
    device->kernels = ms_cpu_run_kernels(job->type);
    device->end = &device->first;
    device->bf16_ops[0] = device->bf16_ops[1] = MPI_OP_NULL;
    for (int g = 0; g < MS_NUM_TRAFFIC_GROUPS; g++)
        device->of_group[g] = MPI_COMM_NULL;
    ms_status status = device->host.pool == NULL ? no_memory_for_mpi(cx) : MS_OK;
    if (status == MS_OK)
        status = initialise_mpi(cx, device);
    if (status == MS_OK)
        status = check_size(cx, job);
    if (status == MS_OK)
        status = open_communicators(cx, device);
    if (status != MS_OK)
        mpi_close(job);
    return status;
}

static bool mpi_carries(const ms_backend_job *job, long rank)
{
    return rank == ((const ms_device_rank *)job->state)->rank;
}

/* ---- kernels, clock ---- */

static ms_status mpi_kernel(ms_ctx *cx, ms_device_rank *device, const ms_op_call *call)
{
    MS_TRY(check_failed(cx, device));
    ms_kernel *kernel = device->kernels->op[call->node->op];
    assert(kernel != NULL);
    kernel(call);
    return MS_OK;
}

static double mpi_now_s(ms_device_rank *device)
{
    return ms_clock_s() - device->began_s;
}

/* ---- completion ---- */

/* Frees the copies of sent messages that MPI has delivered. */
static ms_status collect_sent(ms_ctx *cx, ms_device_rank *device)
{
    for (pending **at = &device->first; *at != NULL;) {
        int is_done = 0;
        if ((*at)->event == 0)
            MS_TRY(check_mpi(cx, MPI_Test(&(*at)->request, &is_done, MPI_STATUS_IGNORE),
                             "a send"));
        if (is_done)
            drop_pending(device, at);
        else
            at = &(*at)->next;
    }
    return MS_OK;
}

/* Fails if a message is shorter than its receiver requested, which MPI itself accepts. */
static ms_status check_length(ms_ctx *cx, const ms_device_rank *device, const pending *p,
                              const MPI_Status *received)
{
    int count = 0;
    if (p->transfer.kind != MS_TRANSFER_RECEIVE)
        return MS_OK;
    MPI_Get_count(received, p->type, &count);
    if (count == p->transfer.count)
        return MS_OK;
    return ms_fail(cx, MS_EIO, MS_NOWHERE, "%s of %ld elements gets %d",
                   ms_transfer_text(cx->arena, device->job->world, &p->transfer),
                   p->transfer.count, count);
}

static bool is_interrupted(const ms_device_rank *device)
{
    return device->job->interrupted != NULL && *device->job->interrupted != 0;
}

/* Polls until an MPI operation is complete, at times yielding the CPU to other ranks. */
static ms_status complete_pending(ms_ctx *cx, ms_device_rank *device, pending *p)
{
    double began_s = ms_clock_s();
    for (long polls = 1;; polls++) {
        int is_done = 0;
        MPI_Status received;
        int rc = MPI_Test(&p->request, &is_done, &received);
        if (rc != MPI_SUCCESS)
            return check_mpi(
                cx, rc, ms_transfer_text(cx->arena, device->job->world, &p->transfer));
        if (is_done)
            return check_length(cx, device, p, &received);
        if (ms_clock_s() - began_s > device->timeout_s)
            return ms_transfer_waited(cx, device->job->world, device->rank, &p->transfer,
                                      device->timeout_s);
        if (polls % POLLS_BEFORE_YIELD != 0)
            continue;
        sched_yield();
        if (is_interrupted(device) && ms_clock_s() - began_s > MS_INTERRUPTED_WAIT_S)
            return MS_EINTERRUPTED;
    }
}

static ms_status mpi_wait(ms_ctx *cx, ms_device_rank *device, ms_event event)
{
    MS_TRY(check_failed(cx, device));
    MS_TRY(collect_sent(cx, device));
    const pending *wanted = device->first;
    while (wanted != NULL && (event == 0 || wanted->event != event))
        wanted = wanted->next;
    if (wanted == NULL)
        return MS_OK;
    const ms_transfer transfer = wanted->transfer;
    for (pending **at = &device->first; *at != NULL;) {
        bool is_wanted = (*at)->event == event;
        if (!is_wanted && !ms_transfer_comes_before(&(*at)->transfer, &transfer)) {
            at = &(*at)->next;
            continue;
        }
        MS_TRY(complete_pending(cx, device, *at));
        drop_pending(device, at);
        if (is_wanted)
            break;
    }
    return MS_OK;
}

/* Waits until receivers have taken all messages that this rank sent. */
static ms_status complete_sent(ms_ctx *cx, ms_device_rank *device)
{
    for (pending **at = &device->first; *at != NULL;) {
        if ((*at)->event != 0) {
            at = &(*at)->next;
            continue;
        }
        MS_TRY(complete_pending(cx, device, *at));
        drop_pending(device, at);
    }
    return MS_OK;
}

/* ---- start ---- */

/* MPI type of elements; bf16 is sent as 16-bit integers, with reductions of our own. */
static MPI_Datatype type_of(const ms_transfer *transfer)
{
    const MPI_Datatype types[MS_NUM_SCALARS] = {[MS_SCALAR_FP32] = MPI_FLOAT,
                                                [MS_SCALAR_FP64] = MPI_DOUBLE,
                                                [MS_SCALAR_BF16] = MPI_UINT16_T,
                                                [MS_SCALAR_LONG] = MPI_LONG,
                                                [MS_SCALAR_BYTE] = MPI_BYTE};
    return types[transfer->scalar];
}

static ms_status fail_too_many(ms_ctx *cx, const ms_device_rank *device,
                               const ms_transfer *transfer, long count)
{
    return ms_fail(
        cx, MS_EIO, MS_NOWHERE, "%s moves %ld elements at once, but MPI counts to %d",
        ms_transfer_text(cx->arena, device->job->world, transfer), count, INT_MAX);
}

/* Starts an all-to-all; fails if a count or displacement exceeds MPI's int. */
static ms_status start_all_to_all(ms_ctx *cx, ms_device_rank *device, pending *p)
{
    const ms_transfer *t = &p->transfer;
    int size = device->job->world->members[t->group][device->rank].size;
    p->counts = malloc(4 * (size_t)size * sizeof *p->counts);
    if (p->counts == NULL)
        return ms_transfer_no_memory(cx, device->job->world, t);
    int *counts[2] = {p->counts, p->counts + 2 * size};
    const long *given[2] = {t->send_counts, t->receive_counts};
    for (int way = 0; way < 2; way++) {
        long at = 0;
        for (int i = 0; i < size; i++) {
            counts[way][size + i] = (int)at;
            counts[way][i] = (int)given[way][i];
            at += given[way][i];
            if (at > INT_MAX)
                return fail_too_many(cx, device, t, at);
        }
    }
    MPI_Datatype type = type_of(t);
    int rc =
        MPI_Ialltoallv(t->send, counts[0], counts[0] + size, type, t->receive, counts[1],
                       counts[1] + size, type, device->of_group[t->group], &p->request);
    return check_mpi(cx, rc, "an all-to-all");
}

static ms_status start_send(ms_ctx *cx, ms_device_rank *device, pending *p)
{
    const ms_transfer *t = &p->transfer;
    size_t bytes = (size_t)t->count * ms_scalar_bytes((ms_scalar)t->scalar);
    p->copy = ms_pool_take(device->host.pool, bytes);
    p->copy_bytes = bytes;
    if (bytes > 0 && p->copy == NULL)
        return ms_transfer_no_memory(cx, device->job->world, t);
    if (bytes > 0)
        memcpy(p->copy, t->send, bytes);
    int rc = MPI_Isend(p->copy, (int)t->count, p->type, (int)t->peer, t->tag,
                       device->world, &p->request);
    return check_mpi(cx, rc, "a send");
}

/* Whether an all-gather's own shard is at its place in `receive` (MPI_IN_PLACE). */
static bool is_shard_in_place(const ms_device_rank *device, const pending *p)
{
    const ms_transfer *t = &p->transfer;
    if (t->kind != MS_TRANSFER_ALL_GATHER)
        return false;
    const ms_members *members = &device->job->world->members[t->group][device->rank];
    size_t bytes = ms_scalar_bytes((ms_scalar)t->scalar);
    return t->send ==
           (const char *)t->receive + (size_t)(members->own * t->count) * bytes;
}

static ms_status start_kind(ms_ctx *cx, ms_device_rank *device, pending *p)
{
    const ms_transfer *t = &p->transfer;
    MPI_Comm comm = device->of_group[t->group];
    MPI_Datatype type = p->type;
    MPI_Op op = t->scalar == MS_SCALAR_BF16 ? device->bf16_ops[t->maximum]
                : t->maximum                ? MPI_MAX
                                            : MPI_SUM;
    const void *send = t->send == t->receive ? MPI_IN_PLACE : t->send;
    const void *shard = is_shard_in_place(device, p) ? MPI_IN_PLACE : t->send;
    int count = (int)t->count, rc = MPI_SUCCESS;
    switch ((ms_transfer_kind)t->kind) {
    case MS_TRANSFER_ALL_GATHER:
        rc = MPI_Iallgather(shard, count, type, t->receive, count, type, comm,
                            &p->request);
        break;
    case MS_TRANSFER_REDUCE_SCATTER:
        rc = MPI_Ireduce_scatter_block(t->send, t->receive, count, type, op, comm,
                                       &p->request);
        break;
    case MS_TRANSFER_ALL_REDUCE:
        rc = MPI_Iallreduce(send, t->receive, count, type, op, comm, &p->request);
        break;
    case MS_TRANSFER_RECEIVE:
        rc = MPI_Irecv(t->receive, count, type, (int)t->peer, t->tag, device->world,
                       &p->request);
        break;
    case MS_TRANSFER_ALL_TO_ALL:
        return start_all_to_all(cx, device, p);
    case MS_TRANSFER_SEND:
        return start_send(cx, device, p);
    case MS_NUM_TRANSFER_KINDS:
        assert(false);
    }
    return check_mpi(cx, rc, ms_transfer_kind_names[t->kind]);
}

static ms_status mpi_start(ms_ctx *cx, ms_device_rank *device,
                           const ms_transfer *transfer, const ms_event *after,
                           int num_after, ms_event *done)
{
    *done = 0;
    MS_TRY(check_failed(cx, device));
    for (int i = 0; i < num_after; i++)
        MS_TRY(mpi_wait(cx, device, after[i]));
    MS_TRY(collect_sent(cx, device));
    if (transfer->kind >= MS_TRANSFER_SEND && transfer->tag > device->max_tag)
        return ms_fail(cx, MS_EIO, MS_NOWHERE, "%s: this MPI has tags up to %d only",
                       ms_transfer_text(cx->arena, device->job->world, transfer),
                       device->max_tag);
    if (transfer->count > INT_MAX && transfer->kind != MS_TRANSFER_ALL_TO_ALL)
        return fail_too_many(cx, device, transfer, transfer->count);
    pending *p = malloc(sizeof *p);
    if (p == NULL)
        return ms_transfer_no_memory(cx, device->job->world, transfer);
    *p = (pending){
        .transfer = *transfer, .request = MPI_REQUEST_NULL, .type = type_of(transfer)};
    if (transfer->kind != MS_TRANSFER_SEND)
        *done = p->event = ++device->last_event;
    *device->end = p;
    device->end = &p->next;
    return start_kind(cx, device, p);
}

/* ---- run ---- */

/* Waits, at most timeout_s, until all ranks call this: clocks then start together. */
static ms_status meet_all(ms_ctx *cx, ms_device_rank *device)
{
    long nothing = 0;
    ms_transfer all = {.kind = MS_TRANSFER_ALL_REDUCE,
                       .scalar = MS_SCALAR_LONG,
                       .on_host = true,
                       .group = MS_TRAFFIC_WORLD,
                       .send = &nothing,
                       .receive = &nothing,
                       .count = 1,
                       .name = "all ranks"};
    ms_event done;
    MS_TRY(mpi_start(cx, device, &all, NULL, 0, &done));
    return mpi_wait(cx, device, done);
}

/* Prints the diagnostics of cx in one write: of output before an abort, the launcher of
 * MPICH (Hydra) forwards only what it has read by then. */
static void print_at_once(const ms_ctx *cx)
{
    char *text = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&text, &length);
    if (file == NULL)
        return;
    ms_diag_print(cx, file);
    fclose(file);
    fwrite(text, 1, length, stderr);
    free(text);
}

/* Ends the other ranks when this process fails. With Open MPI, mpiexec does that by
 * itself, and MPI_Abort sometimes hangs (seen: Open MPI 4.1.4 with PMIx 4.2.2). Under
 * other launchers, such as srun, ranks may continue unless MPI_Abort is called. */
static void end_others(const ms_ctx *cx, ms_status status)
{
    if (ms_launch_environment().by_open_mpi)
        return;
    fflush(stdout);
    print_at_once(cx);
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    MPI_Abort(MPI_COMM_WORLD, (int)status);
}

static void mpi_abort(ms_device_rank *device)
{
    device->failed = true;
}

static ms_status mpi_run(ms_ctx *cx, ms_backend_job *job, ms_rank_main *main, void *state)
{
    ms_device_rank *device = job->state;
    ms_ctx own = {.arena = ms_arena_open(), .verbosity = cx->verbosity};
    device->job = job;
    ms_status status = meet_all(&own, device);
    device->began_s = ms_clock_s();
    if (status == MS_OK)
        status = main(&own, device, device->rank, state);
    if (status == MS_OK)
        status = complete_sent(&own, device);
    device->failed = device->failed || status != MS_OK;
    if (device->failed) {
        status = ms_rank_failed(cx, device->rank, &own, status);
        /* after an interruption the other ranks may still print their results */
        if (status != MS_EINTERRUPTED)
            end_others(cx, status);
    }
    ms_arena_close(own.arena);
    return status;
}

const ms_backend ms_backend_mpi = {
    .name = "mpi",
    .has_values = true,
    .arrays = &ms_host_arrays,
    .computes = {[MS_REAL_FP32] = true,
                 [MS_REAL_FP64] = true,
                 [MS_REAL_BF16] = true,
                 [MS_REAL_FP8] = true,
                 [MS_REAL_FP4] = true},
    .workspace_bytes = ms_host_workspace_bytes,
    .open = mpi_open,
    .run = mpi_run,
    .close = mpi_close,
    .carries = mpi_carries,
    .allocate = ms_host_allocate,
    .release = ms_host_release,
    .kernel = mpi_kernel,
    .idle = ms_host_idle,
    .mark = ms_host_mark,
    .start = mpi_start,
    .wait = mpi_wait,
    .now_s = mpi_now_s,
    .abort = mpi_abort,
};
