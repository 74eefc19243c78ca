#include "exec/cuda/cuda_backend_priv.h"

#include "exec/cpu/host_backend.h"
#include "exec/cuda/cuda_gemm_choices.h"
#include "exec/launch/environment.h"

#include <assert.h>
#include <math.h>

const char *const ms_cuda_transport_names[] = {[MS_CUDA_BY_NCCL] = "nccl",
                                               [MS_CUDA_BY_HOST] = "host",
                                               [MS_CUDA_MODELLED] = "modelled",
                                               NULL};

const char *const ms_run_attention_names[] = {[MS_RUN_ATTENTION_OWN] = "own",
                                              [MS_RUN_ATTENTION_CUDNN] = "cudnn",
                                              [MS_RUN_ATTENTION_CUDNN_DETERMINISTIC] =
                                                  "cudnn-deterministic",
                                              NULL};

/* Least bytes per request for GPU memory, unless the backend sets least_block_bytes. */
#define LEAST_BLOCK_BYTES ((size_t)256 << 20)
#define GPU_PAGE_BYTES    ((size_t)2 << 20)
#define SMALL_PAGE_BYTES  ((size_t)4 << 10)

static ms_cuda_job *job_of(const ms_backend_job *job)
{
    return job->state;
}

/* ---- memory ---- */

static void *allocate_block(void *state, size_t bytes)
{
    const ms_device_rank *d = state;
    return d->driver->allocate(d->gpu, bytes);
}

static void release_block(void *state, void *memory)
{
    const ms_device_rank *d = state;
    d->driver->release(d->gpu, memory);
}

static void open_memory(ms_device_rank *d)
{
    size_t least = d->job->backend->least_block_bytes;
    const ms_cuda_memory_source source = {allocate_block, release_block, d,
                                          least > 0 ? least : LEAST_BLOCK_BYTES,
                                          least > 0 ? SMALL_PAGE_BYTES : GPU_PAGE_BYTES};
    d->memory = ms_cuda_memory_open(d->arena, &source);
}

static void *take_memory(ms_device_rank *d, size_t bytes)
{
    return ms_cuda_memory_take(d->memory, bytes);
}

static void give_memory(ms_device_rank *d, void *memory, size_t bytes)
{
    (void)bytes;
    ms_cuda_memory_give(d->memory, memory);
}

/* ---- one rank ---- */

static ms_status open_rank(ms_ctx *cx, ms_device_rank *d)
{
    ms_cuda_gemm_choices *choices = d->job->outer->gemm_choices;
    MS_TRY(d->driver->open(cx, d->ordinal, &d->gpu));
    if (choices != NULL)
        d->driver->choose_gemms(d->gpu, choices, ms_cuda_gemm_choices_times(choices));
    MS_TRY(ms_cuda_order_open(cx, d));
    MS_TRY(ms_cuda_kernels_open(cx, d));
    MS_TRY(ms_cuda_comms_open(cx, d));
    d->is_open = true;
    return MS_OK;
}

/* Closes a rank's GPU, from any thread; aborts its communicators if the job failed. */
static void close_rank(ms_device_rank *d)
{
    ms_ctx ignored = {.arena = d->arena, .verbosity = -1};
    if (d->gpu == NULL)
        return;
    d->driver->enter(d->gpu);
    if (d->job->failed)
        ms_cuda_comms_abort(d);
    for (int i = 0; i < d->num_lanes; i++)
        if (d->lanes[i].stream != NULL)
            (void)d->driver->finish(&ignored, d->lanes[i].stream);
    for (int s = 0; s < MS_NUM_STREAMS; s++)
        if (d->stream[s] != NULL)
            (void)d->driver->finish(&ignored, d->stream[s]);
    if (d->compute != NULL)
        (void)d->driver->finish(&ignored, d->compute);
    ms_cuda_host_close(d);
    ms_cuda_comms_close(d);
    ms_cuda_kernels_close(d);
    ms_cuda_order_close(d);
    ms_cuda_memory_close(d->memory);
    d->driver->close(d->gpu);
    d->gpu = NULL;
}

static void *close_rank_main(void *rank)
{
    close_rank(rank);
    return NULL;
}

/* Closes all ranks at the same time: closing a communicator may wait for its ranks. */
static void close_ranks(ms_cuda_job *job)
{
    long num_ranks = job->outer->world->num_ranks;
    pthread_t *threads = MS_NEW_ARRAY(job->arena, num_ranks, pthread_t);
    bool *has_thread = MS_NEW_ARRAY(job->arena, num_ranks, bool);
    for (long rank = 0; rank < num_ranks; rank++) {
        ms_device_rank *d = &job->ranks[rank];
        bool has_comms = d->world != NULL;
        has_thread[rank] =
            has_comms && pthread_create(&threads[rank], NULL, close_rank_main, d) == 0;
    }
    for (long rank = 0; rank < num_ranks; rank++)
        if (!has_thread[rank])
            close_rank(&job->ranks[rank]);
    for (long rank = 0; rank < num_ranks; rank++)
        if (has_thread[rank])
            pthread_join(threads[rank], NULL);
}

static ms_status finish_rank(ms_ctx *cx, ms_device_rank *d)
{
    for (int i = 0; i < d->num_lanes; i++)
        MS_TRY(ms_cuda_finish(cx, d, d->lanes[i].stream));
    for (int s = 0; s < MS_NUM_STREAMS; s++)
        if (d->stream[s] != NULL)
            MS_TRY(ms_cuda_finish(cx, d, d->stream[s]));
    MS_TRY(d->driver->check(cx, d->gpu));
    return d->status != MS_OK ? ms_cuda_check_rank(cx, d) : MS_OK;
}

static void note_communicators(const ms_device_rank *d, ms_cuda_used *used)
{
    ms_cuda_comm_memory of_nccl = {0};
    if (d->job->backend->transport == MS_CUDA_BY_NCCL)
        of_nccl = ms_cuda_channels_memory(&d->job->channels, d->job->outer->world,
                                          d->rank, &d->job->ctas);
    used->num_communicators = of_nccl.num;
    used->communicator_bytes =
        ms_nccl_has_default_buffers() ? of_nccl.buffer_bytes : (double)NAN;
}

/* Records the rank's GPU memory use, for ms_cuda_job_used. */
static void note_use(ms_device_rank *d)
{
    ms_ctx silent = {.arena = d->cx->arena, .verbosity = -1};
    ms_cuda_used *used = &d->job->used[d->rank];
    double free_bytes;
    used->ordinal = d->ordinal;
    used->lacks_fp8 = d->lacks_fp8;
    used->attention = d->attention;
    used->memory = ms_cuda_memory_look(d->memory);
    used->device_used_bytes = used->device_total_bytes = 0.0;
    if (d->driver->memory(&silent, d->gpu, &free_bytes, &used->device_total_bytes) ==
        MS_OK)
        used->device_used_bytes = used->device_total_bytes - free_bytes;
    bool is_known = used->device_total_bytes > 0.0 && !d->job->shares_gpus;
    used->outside_arena_bytes =
        is_known ? used->device_used_bytes - used->memory.held_bytes : (double)NAN;
    note_communicators(d, used);
    d->job->was_used[d->rank] = true;
}

/* Runs one rank; no lock, as its own thread and the job's never use it at one time. */
static ms_status run_rank(ms_ctx *cx, ms_device_rank *inner, long rank, void *state)
{
    ms_cuda_job *job = state;
    ms_device_rank *d = &job->ranks[rank];
    d->cx = cx;
    d->inner = inner;
    ms_status status = MS_OK;
    if (d->is_open)
        d->driver->enter(d->gpu);
    else
        status = open_rank(cx, d);
    if (status == MS_OK)
        status = ms_cuda_clock_begin(cx, d);
    if (status == MS_OK)
        status = job->main(cx, d, rank, job->main_state);
    if (status == MS_OK)
        status = finish_rank(cx, d);
    if (status == MS_OK)
        note_use(d);
    else
        ms_cuda_comms_abort(d);
    d->failed = d->failed || status != MS_OK;
    d->inner = NULL;
    return status;
}

/* The host forgets stamps after each step. From the second on steps may be measured:
 * their GEMMs are timed no more. */
static void forget_stamps(ms_device_rank *d)
{
    ms_cuda_gemm_choices *choices = d->job->outer->gemm_choices;
    ms_cuda_forget_stamps(d);
    if (choices != NULL)
        d->driver->choose_gemms(d->gpu, choices, false);
}

static void abort_rank(ms_device_rank *d)
{
    d->failed = true;
    ms_cuda_comms_abort(d);
    if (d->inner != NULL)
        d->job->inner->abort(d->inner);
}

/* ---- the job ---- */

static ms_status find_devices(ms_ctx *cx, ms_cuda_job *job)
{
    MS_TRY(job->driver->find(cx, &job->num_devices));
    return job->num_devices > 0 ? MS_OK
                                : ms_fail(cx, MS_EIO, MS_NOWHERE, "there is no GPU");
}

#define SHARING_VERSION 23000 /* NCCL 2.30.0, in NCCL's encoding of versions */

/* Fails because ranks share GPUs. `how`, `also`: ends of the message and of its hint. */
static ms_status refuse_sharing(ms_ctx *cx, const ms_cuda_job *job, long num_here,
                                const char *how, const char *also)
{
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "%ld ranks share %d GPU%s%s", num_here,
            job->num_devices, job->num_devices == 1 ? "" : "s", how);
    ms_hint(cx,
            "--transport host exchanges through host memory, for tests of correctness%s",
            also);
    return MS_EINPUT;
}

static ms_status share_gpus(ms_ctx *cx, ms_cuda_job *job, long num_here)
{
    ms_cuda_facts facts;
    if (!ms_nccl_shares_gpus())
        return refuse_sharing(
            cx, job, num_here, ", and NCCL gives a GPU to one rank only",
            "; NCCL 2.30 and later shares them with NCCL_MULTI_RANK_GPU_ENABLE=1");
    MS_TRY(job->driver->describe(cx, 0, &facts));
    int version = facts.nccl_version;
    job->shares_gpus = version >= SHARING_VERSION;
    if (job->shares_gpus)
        return MS_OK;
    const char *how =
        ": NCCL_MULTI_RANK_GPU_ENABLE needs NCCL 2.30, and none is installed";
    if (version != 0) { /* `version` is major x 10000 + minor x 100 + patch */
        how = ms_arena_printf(
            cx->arena,
            ": NCCL_MULTI_RANK_GPU_ENABLE needs NCCL 2.30, and %d.%d.%d is installed",
            version / 10000, version % 10000 / 100, version % 100);
    }
    return refuse_sharing(cx, job, num_here, how, "");
}

/* Fails if a GPU lacks FP8, which needs Ada (cuBLAS documentation, cublasLtMatmul()). */
static ms_status check_fp8(ms_ctx *cx, const ms_cuda_job *job)
{
    const int first_major = 8, first_minor = 9;
    for (int i = 0; i < job->num_devices; i++) {
        ms_cuda_facts facts;
        MS_TRY(job->driver->describe(cx, i, &facts));
        if (facts.major > first_major ||
            (facts.major == first_major && facts.minor >= first_minor))
            continue;
        ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                "fp8 needs a GPU of compute capability %d.%d or later, and GPU %d, "
                "\"%s\", has %d.%d",
                first_major, first_minor, i, facts.name, facts.major, facts.minor);
        ms_hint(cx, "--dtype bf16");
        return MS_EINPUT;
    }
    return MS_OK;
}

/* Bounds NCCL's kernels such that all that may run at one time fit on a GPU with its
 * `sharers` ranks, and checks that each of their streams has a hardware queue, of which
 * a process has some on each GPU: a kernel that waits in one holds up all behind it. */
static ms_status bound_communication(ms_ctx *cx, ms_cuda_job *job, long sharers)
{
    ms_cuda_facts facts;
    const int num_fixed = 1 + MS_STREAM_SEND; /* compute, and TP to SEND */
    int num_streams = (int)sharers * ms_cuda_channels_streams(&job->channels, num_fixed);
    MS_TRY(job->driver->describe(cx, 0, &facts));
    if (facts.num_queues > 0 && facts.num_queues < num_streams) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                "%d streams of %ld rank%s share %d hardware queue%s of the GPU, in which "
                "communication can wait for itself",
                num_streams, sharers, sharers == 1 ? "" : "s", facts.num_queues,
                facts.num_queues == 1 ? "" : "s");
        ms_hint(cx, "unset %s, or set it to 32", MS_QUEUES_VARIABLE);
        return MS_EINPUT;
    }
    if (ms_cuda_channels_ctas(&job->channels, facts.num_sms / (int)sharers,
                              job->outer->held_sms, &job->ctas))
        return MS_OK;
    return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                   "the GPU's %d multiprocessors are too few for the plan's "
                   "communicators: a rank may use %d at a time",
                   facts.num_sms,
                   job->channels.num_streams + job->channels.most_channels);
}

static ms_status place_ranks(ms_ctx *cx, ms_cuda_job *job)
{
    long num_ranks = job->outer->world->num_ranks, num_here = num_ranks, first = 0;
    ms_launch launch = ms_launch_environment();
    if (!job->inner->carries(&job->inner_job, 0) ||
        (num_ranks > 1 && !job->inner->carries(&job->inner_job, num_ranks - 1))) {
        num_here = launch.local_size > 0 ? launch.local_size : 1;
        first = launch.local_rank >= 0 ? launch.rank - launch.local_rank : 0;
    }
    for (long rank = 0; rank < num_ranks; rank++)
        job->ranks[rank].ordinal =
            (int)(((rank - first) % job->num_devices + job->num_devices) %
                  job->num_devices);
    if (num_ranks == 1 || job->backend->transport != MS_CUDA_BY_NCCL)
        return MS_OK;
    if (num_here > job->num_devices)
        MS_TRY(share_gpus(cx, job, num_here));
    return bound_communication(cx, job,
                               (num_here + job->num_devices - 1) / job->num_devices);
}

const ms_backend *ms_cuda_inner_backend(const ms_launch *launch)
{
    const ms_backend *mpi = launch->size > 1 ? ms_mpi_backend() : NULL;
    return mpi != NULL ? mpi : &ms_backend_loop;
}

static ms_status open_inner(ms_ctx *cx, ms_cuda_job *job)
{
    ms_backend_job *outer = job->outer;
    ms_launch launch = ms_launch_environment();
    job->inner = job->backend->inner != NULL ? job->backend->inner
                                             : ms_cuda_inner_backend(&launch);
    job->inner_job = (ms_backend_job){.backend = job->inner,
                                      .world = outer->world,
                                      .type = outer->type == MS_REAL_FP64 ? MS_REAL_FP64
                                                                          : MS_REAL_FP32,
                                      .timeout_s = outer->timeout_s,
                                      .interrupted = outer->interrupted,
                                      .replayed_rank = outer->replayed_rank};
    return job->inner->open(cx, &job->inner_job);
}

static void make_ranks(ms_cuda_job *job)
{
    long num_ranks = job->outer->world->num_ranks;
    job->ranks = MS_NEW_ARRAY(job->arena, num_ranks, ms_device_rank);
    job->used = MS_NEW_ARRAY(job->arena, num_ranks, ms_cuda_used);
    job->was_used = MS_NEW_ARRAY(job->arena, num_ranks, bool);
    for (long rank = 0; rank < num_ranks; rank++) {
        ms_device_rank *d = &job->ranks[rank];
        *d = (ms_device_rank){.job = job,
                              .rank = rank,
                              .driver = job->driver,
                              .kernels = job->backend->kernels,
                              .precision = ms_precision_of(job->outer->type),
                              .arena = ms_arena_open(),
                              .end_pending = &d->first_pending};
        open_memory(d);
    }
}

static void drop_job(ms_cuda_job *job)
{
    for (long rank = 0; rank < job->outer->world->num_ranks; rank++)
        ms_arena_close(job->ranks[rank].arena);
    pthread_mutex_destroy(&job->lock);
    job->outer->state = NULL;
    ms_arena_close(job->arena);
}

static ms_status cuda_open(ms_ctx *cx, ms_backend_job *outer)
{
    const ms_cuda_backend *backend = (const void *)outer->backend;
    ms_arena *arena = ms_arena_open();
    ms_cuda_job *job = MS_NEW(arena, ms_cuda_job);
    *job = (ms_cuda_job){.backend = backend,
                         .driver = backend->driver(),
                         .outer = outer,
                         .arena = arena,
                         .channels = ms_cuda_channels_make(arena, outer->world)};
    job->timeout_s = outer->timeout_s > 0 ? outer->timeout_s : MS_DEFAULT_TIMEOUT_S;
    pthread_mutex_init(&job->lock, NULL);
    outer->state = job;
    make_ranks(job);
    ms_status status = find_devices(cx, job);
    if (status == MS_OK && ms_precision_of(outer->type).has_fp8)
        status = check_fp8(cx, job);
    if (status == MS_OK)
        status = open_inner(cx, job);
    if (status == MS_OK) {
        status = place_ranks(cx, job);
        if (status != MS_OK)
            job->inner->close(&job->inner_job);
    }
    if (status != MS_OK)
        drop_job(job);
    return status;
}

static ms_status cuda_run(ms_ctx *cx, ms_backend_job *outer, ms_rank_main *main,
                          void *state)
{
    ms_cuda_job *job = job_of(outer);
    job->outer = outer;
    job->inner_job.interrupted = outer->interrupted;
    job->main = main;
    job->main_state = state;
    ms_status status = job->inner->run(cx, &job->inner_job, run_rank, job);
    job->failed = job->failed || status != MS_OK;
    return status;
}

/* Closes all ranks. After a failure, aborts all before: ranks may wait for each other. */
static void cuda_close(ms_backend_job *outer)
{
    ms_cuda_job *job = job_of(outer);
    if (job == NULL)
        return;
    job->outer = outer;
    long num_ranks = outer->world->num_ranks;
    for (long rank = 0; rank < num_ranks && job->failed; rank++)
        if (job->ranks[rank].gpu != NULL)
            ms_cuda_comms_abort(&job->ranks[rank]);
    close_ranks(job);
    job->inner->close(&job->inner_job);
    drop_job(job);
}

static bool cuda_carries(const ms_backend_job *outer, long rank)
{
    const ms_cuda_job *job = job_of(outer);
    return job->inner->carries(&job->inner_job, rank);
}

ms_cuda_transport ms_cuda_job_transport(const ms_backend_job *job)
{
    return ((const ms_cuda_backend *)(const void *)job->backend)->transport;
}

bool ms_cuda_job_shares_gpus(const ms_backend_job *job)
{
    return job_of(job)->shares_gpus;
}

bool ms_cuda_job_used(const ms_backend_job *outer, long rank, ms_cuda_used *out)
{
    const ms_cuda_job *job = job_of(outer);
    if (rank < 0 || rank >= outer->world->num_ranks || !job->was_used[rank])
        return false;
    *out = job->used[rank];
    ms_ctx silent = {.arena = job->arena, .verbosity = -1};
    return job->driver->describe(&silent, out->ordinal, &out->facts) == MS_OK;
}

const ms_backend ms_cuda_backend_table = {
    .name = "cuda",
    .has_values = true,
    .on_gpu = true,
    .arrays = &ms_cuda_arrays,
    .computes = {[MS_REAL_FP32] = true,
                 [MS_REAL_FP64] = true,
                 [MS_REAL_BF16] = true,
                 [MS_REAL_FP8] = true},
    .open = cuda_open,
    .run = cuda_run,
    .close = cuda_close,
    .carries = cuda_carries,
    .allocate = take_memory,
    .release = give_memory,
    .kernel = ms_cuda_kernel,
    .idle = ms_host_idle,
    .mark = ms_cuda_mark,
    .start = ms_cuda_start,
    .wait = ms_cuda_wait,
    .now_s = ms_cuda_now_s,
    .read_clock = ms_cuda_read_clock,
    .forget_stamps = forget_stamps,
    .take_moves = ms_cuda_take_moves,
    .abort = abort_rank,
};
