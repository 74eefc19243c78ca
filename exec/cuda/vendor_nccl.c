/* Communicators by NCCL. The first one and those for splits are non-blocking: their calls
 * return at once and are polled here, so that a missing rank becomes an error after a
 * deadline, and an abort by another thread ends any call (NCCL user guide, "Fault
 * tolerance"). NCCL gives each group of calls on a non-blocking communicator a thread; so
 * those that carry data are blocking. A split is as blocking as the communicator that is
 * split. */
#include "base/clock.h"
#include "exec/cuda/vendor_priv.h"

#include <assert.h>
#include <nccl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static_assert(MS_CUDA_ID_BYTES == NCCL_UNIQUE_ID_BYTES, "ids have the library's size");

/* Least version of NCCL: ncclCommSplit exists since 2.18. */
#define LEAST_VERSION    21800
#define OPEN_DEADLINE_S  300 /* seconds; libraries load slowly from network disks */
#define CLOSE_DEADLINE_S 10
/* Seconds for which an abort waits for a call in progress in another thread. */
#define ABORT_PATIENCE_S     1
#define YIELDS_BEFORE_SLEEPS 1000
#define SLEEP_NS             100000

/* ---- the library ---- */

/* Needed library functions: X(function, its field in nccl_table). */
#define FUNCTIONS(X)                                                                     \
    X(ncclGetVersion, get_version)                                                       \
    X(ncclGetUniqueId, get_unique_id)                                                    \
    X(ncclCommInitRankConfig, init_rank)                                                 \
    X(ncclCommSplit, split)                                                              \
    X(ncclCommFinalize, finalize)                                                        \
    X(ncclCommDestroy, destroy)                                                          \
    X(ncclCommAbort, abort)                                                              \
    X(ncclCommGetAsyncError, get_async_error)                                            \
    X(ncclGetErrorString, error_string)                                                  \
    X(ncclGetLastError, last_error)                                                      \
    X(ncclGroupStart, group_start)                                                       \
    X(ncclGroupEnd, group_end)                                                           \
    X(ncclAllGather, all_gather)                                                         \
    X(ncclReduceScatter, reduce_scatter)                                                 \
    X(ncclAllReduce, all_reduce)                                                         \
    X(ncclSend, send)                                                                    \
    X(ncclRecv, receive)
#define FIELD(function, field) __typeof__(function) *(field);
typedef struct nccl_table {
    FUNCTIONS(FIELD)
} nccl_table;
#define SYMBOL(function, field) {#function, offsetof(nccl_table, field)},
static const ms_cuda_symbol symbols[] = {FUNCTIONS(SYMBOL){NULL, 0}};

static const char *const files[] = {"libnccl.so.2", "libnccl.so", NULL};
static const ms_cuda_library library = {"NCCL", files, symbols};

static nccl_table nccl;
static int version; /* version of the loaded NCCL; 0 if it is not loaded */
static char load_reason[MS_CUDA_REASON];
static pthread_once_t load_once = PTHREAD_ONCE_INIT;

static void load(void)
{
    int found = 0;
    if (!ms_cuda_library_open(&library, &nccl, load_reason))
        return;
    if (nccl.get_version(&found) == ncclSuccess && found >= LEAST_VERSION) {
        version = found;
        return;
    }
    snprintf(load_reason, sizeof load_reason,
             "NCCL is too old: its version is %d, %d is needed", found, LEAST_VERSION);
}

int ms_cuda_comm_version(char reason[MS_CUDA_REASON])
{
    pthread_once(&load_once, load);
    snprintf(reason, MS_CUDA_REASON, "%s", load_reason);
    return version;
}

static ms_status need_library(ms_ctx *cx)
{
    char reason[MS_CUDA_REASON];
    if (ms_cuda_comm_version(reason) == 0)
        return ms_fail(cx, MS_EIO, MS_NOWHERE, "%s", reason);
    return MS_OK;
}

/* ---- errors and waiting ---- */

struct ms_cuda_comm {
    /* serializes calls on `handle`, since any thread may abort */
    pthread_mutex_t lock;
    ncclComm_t handle; /* NCCL's communicator; NULL after an abort, see handle_of */
    bool is_blocking;
};

/* NCCL's communicator, which another thread may abort in spite of the lock. */
static ncclComm_t handle_of(ms_cuda_comm *comm)
{
    return __atomic_load_n(&comm->handle, __ATOMIC_ACQUIRE);
}

static ms_status nccl_failed(ms_ctx *cx, ncclResult_t result, const char *call)
{
    const char *detail = nccl.last_error(NULL);
    return ms_fail(cx, MS_EIO, MS_NOWHERE, "NCCL: %.*s: %s%s%s", (int)strcspn(call, "("),
                   call, nccl.error_string(result),
                   detail != NULL && *detail != '\0' ? ": " : "",
                   detail != NULL ? detail : "");
}

static bool is_accepted(ncclResult_t result)
{
    return result == ncclSuccess || result == ncclInProgress;
}

#define TRY_NCCL(cx, call)                                                               \
    do {                                                                                 \
        ncclResult_t try_result_ = (call);                                               \
        if (!is_accepted(try_result_))                                                   \
            return nccl_failed((cx), try_result_, #call);                                \
    } while (0)

/* State of a communicator's last call, or ncclInvalidUsage if it has been aborted. */
static ncclResult_t state_of(ms_cuda_comm *comm)
{
    ncclResult_t state = ncclInvalidUsage;
    pthread_mutex_lock(&comm->lock);
    ncclComm_t handle = handle_of(comm);
    if (handle != NULL) {
        ncclResult_t asked = nccl.get_async_error(handle, &state);
        state = asked == ncclSuccess ? state : asked;
    }
    pthread_mutex_unlock(&comm->lock);
    return state;
}

/* Polls until NCCL has enqueued a call's work; MS_EIO after deadline_s seconds. */
static ms_status wait_until_accepted(ms_ctx *cx, ms_cuda_comm *comm, double deadline_s,
                                     const char *call)
{
    double since = ms_clock_s();
    for (int i = 0;; i++) {
        ncclResult_t state = state_of(comm);
        if (state == ncclSuccess)
            return MS_OK;
        if (state != ncclInProgress)
            return nccl_failed(cx, state, call);
        if (i < YIELDS_BEFORE_SLEEPS) {
            sched_yield();
            continue;
        }
        nanosleep(&(struct timespec){.tv_nsec = SLEEP_NS}, NULL);
        if (ms_clock_s() - since > deadline_s)
            return ms_fail(cx, MS_EIO, MS_NOWHERE,
                           "NCCL: %s: not all ranks came within %.0f s", call,
                           deadline_s);
    }
}

/* ---- open, split, close ---- */

ms_status ms_cuda_library_make_id(ms_ctx *cx, ms_cuda_id *out)
{
    ncclUniqueId id;
    MS_TRY(need_library(cx));
    TRY_NCCL(cx, nccl.get_unique_id(&id));
    memcpy(out->bytes, id.internal, sizeof out->bytes);
    return MS_OK;
}

static ms_status new_comm(ms_ctx *cx, ms_cuda_comm **out)
{
    *out = calloc(1, sizeof **out);
    if (*out == NULL)
        return ms_fail(cx, MS_EIO, MS_NOWHERE, "no memory for a communicator");
    pthread_mutex_init(&(*out)->lock, NULL);
    return MS_OK;
}

static void free_comm(ms_cuda_comm *comm)
{
    pthread_mutex_destroy(&comm->lock);
    free(comm);
}

/* Waits for calls in progress, which take microseconds unless they wait for a rank that is
 * lost: a blocking call then ends by the abort, and only so. */
void ms_cuda_library_abort_comm(ms_cuda_comm *comm)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += ABORT_PATIENCE_S;
    bool is_locked = pthread_mutex_timedlock(&comm->lock, &until) == 0;
    ncclComm_t handle = __atomic_exchange_n(&comm->handle, NULL, __ATOMIC_ACQ_REL);
    if (handle != NULL)
        (void)nccl.abort(handle);
    if (is_locked)
        pthread_mutex_unlock(&comm->lock);
}

ms_status ms_cuda_library_open_comm(ms_ctx *cx, ms_cuda_device *device,
                                    const ms_cuda_id *id, int rank, int size,
                                    ms_cuda_comm **out)
{
    (void)device; /* the calling thread has entered the device already */
    *out = NULL;
    MS_TRY(need_library(cx));
    ms_cuda_comm *comm = NULL;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId name;
    config.blocking = 0;
    memcpy(name.internal, id->bytes, sizeof id->bytes);
    MS_TRY(new_comm(cx, &comm));
    ncclResult_t result = nccl.init_rank(&comm->handle, size, name, rank, &config);
    ms_status status =
        is_accepted(result)
            ? wait_until_accepted(cx, comm, OPEN_DEADLINE_S, "ncclCommInitRankConfig")
            : nccl_failed(cx, result, "ncclCommInitRankConfig");
    if (status != MS_OK) {
        ms_cuda_library_abort_comm(comm);
        free_comm(comm);
        return status;
    }
    *out = comm;
    return MS_OK;
}

/* Communicators share buffers if the one from which they were split allows it: user guide,
 * ncclConfig_t, splitShare. */
static ncclConfig_t config_of(const ms_cuda_split *how)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = how->is_parent ? 0 : 1;
    config.splitShare = how->is_parent ? 1 : 0;
    if (how->max_ctas > 0) {
        config.minCTAs = 1;
        config.maxCTAs = how->max_ctas;
    }
    return config;
}

ms_status ms_cuda_library_split(ms_ctx *cx, ms_cuda_comm *comm, const ms_cuda_split *how,
                                ms_cuda_comm **out)
{
    *out = NULL;
    ms_cuda_comm *made = NULL;
    ncclConfig_t config = config_of(how);
    MS_TRY(new_comm(cx, &made));
    made->is_blocking = config.blocking != 0;
    pthread_mutex_lock(&comm->lock);
    ncclResult_t result = ncclInvalidUsage;
    ncclComm_t handle = handle_of(comm);
    if (handle != NULL)
        result = nccl.split(handle, how->color < 0 ? NCCL_SPLIT_NOCOLOR : how->color,
                            how->key, &made->handle, &config);
    pthread_mutex_unlock(&comm->lock);
    ms_status status =
        is_accepted(result)
            ? wait_until_accepted(cx, comm, OPEN_DEADLINE_S, "ncclCommSplit")
            : nccl_failed(cx, result, "ncclCommSplit");
    if (status != MS_OK && state_of(comm) == ncclInProgress)
        return status; /* `made` is not freed: a thread of NCCL writes to it */
    if (status == MS_OK && made->handle != NULL)
        status = wait_until_accepted(cx, made, OPEN_DEADLINE_S, "ncclCommSplit");
    if (status != MS_OK || made->handle == NULL) {
        ms_cuda_library_abort_comm(made);
        free_comm(made);
        return status;
    }
    *out = made;
    return MS_OK;
}

/* Destroying finalizes, too; a blocking communicator's ranks wait for each other. */
static void destroy_comm(ms_cuda_comm *comm)
{
    (void)nccl.destroy(comm->handle);
    comm->handle = NULL;
}

static void finalize_comm(ms_cuda_comm *comm)
{
    ms_ctx silent = {.arena = ms_arena_open()}; /* errors of closing are ignored */
    ncclResult_t result = nccl.finalize(comm->handle);
    if (is_accepted(result) && wait_until_accepted(&silent, comm, CLOSE_DEADLINE_S,
                                                   "ncclCommFinalize") == MS_OK) {
        destroy_comm(comm);
    }
    ms_arena_close(silent.arena);
}

void ms_cuda_library_close_comm(ms_cuda_comm *comm)
{
    if (comm == NULL)
        return;
    if (state_of(comm) == ncclSuccess)
        comm->is_blocking ? destroy_comm(comm) : finalize_comm(comm);
    ms_cuda_library_abort_comm(comm);
    free_comm(comm);
}

/* ---- collectives ---- */

static ncclDataType_t data_type(ms_scalar scalar)
{
    static const ncclDataType_t types[] = {[MS_SCALAR_FP32] = ncclFloat32,
                                           [MS_SCALAR_FP64] = ncclFloat64,
                                           [MS_SCALAR_BF16] = ncclBfloat16,
                                           [MS_SCALAR_LONG] = ncclInt64,
                                           [MS_SCALAR_BYTE] = ncclUint8};
    return types[scalar];
}

static ncclResult_t start(const ms_cuda_collective *c, ncclComm_t comm,
                          cudaStream_t stream)
{
    ncclDataType_t type = data_type(c->scalar);
    ncclRedOp_t operation = c->maximum ? ncclMax : ncclSum;
    size_t count = (size_t)c->count;
    switch (c->kind) {
    case MS_CUDA_ALL_GATHER:
        return nccl.all_gather(c->send, c->receive, count, type, comm, stream);
    case MS_CUDA_REDUCE_SCATTER:
        return nccl.reduce_scatter(c->send, c->receive, count, type, operation, comm,
                                   stream);
    case MS_CUDA_ALL_REDUCE:
        return nccl.all_reduce(c->send, c->receive, count, type, operation, comm, stream);
    case MS_CUDA_SEND:
        return nccl.send(c->send, count, type, c->peer, comm, stream);
    case MS_CUDA_RECEIVE:
        return nccl.receive(c->receive, count, type, c->peer, comm, stream);
    }
    return ncclInvalidArgument;
}

static ms_status start_all(ms_ctx *cx, ms_cuda_comm *comm, cudaStream_t stream,
                           const ms_cuda_collective *collectives, int num)
{
    ncclComm_t handle = handle_of(comm);
    if (handle == NULL)
        return ms_fail(cx, MS_EIO, MS_NOWHERE, "NCCL: the communicator was aborted");
    TRY_NCCL(cx, nccl.group_start());
    ncclResult_t result = ncclSuccess;
    for (int i = 0; i < num && is_accepted(result); i++)
        result = start(&collectives[i], handle, stream);
    ncclResult_t ended = nccl.group_end();
    if (!is_accepted(result))
        return nccl_failed(cx, result, "a collective");
    if (!is_accepted(ended))
        return nccl_failed(cx, ended, "ncclGroupEnd");
    return MS_OK;
}

ms_status ms_cuda_library_communicate(ms_ctx *cx, ms_cuda_comm *comm,
                                      ms_cuda_stream *stream,
                                      const ms_cuda_collective *collectives, int num)
{
    if (num == 0)
        return MS_OK;
    assert(comm->is_blocking);
    pthread_mutex_lock(&comm->lock);
    ms_status status = start_all(cx, comm, ms_cuda_stream_of(stream), collectives, num);
    pthread_mutex_unlock(&comm->lock);
    return status;
}

ms_status ms_cuda_library_check_comm(ms_ctx *cx, ms_cuda_comm *comm)
{
    ncclResult_t state = state_of(comm);
    return is_accepted(state) ? MS_OK : nccl_failed(cx, state, "a collective");
}
