/* Tests of the CUDA driver's communicators without a GPU: the code that calls NCCL runs
 * on a mock library that answers as NCCL does: a split is as blocking as what is split. */
#include "tests/test.h"

#if __has_include(<nccl.h>)

#include "exec/cuda/vendor_nccl.c"
#include "tests/support/library_symbols.h"

/* ---- the library ---- */

struct ncclComm {
    int num_in_progress; /* times the mock still answers ncclInProgress; -1: for ever */
    ncclResult_t result; /* the mock's answer once it is no longer in progress */
    int rank, size;
    bool is_blocking, shares, was_aborted;
    int max_ctas;
};

#define MOST_STARTED 16

static int num_comms, num_destroyed, num_aborted, num_finalized, group_depth;
static int next_in_progress; /* num_in_progress that the next call sets */
static ncclResult_t next_result;
static int found_version = 22800;
static struct started {
    const char *what;
    const void *send, *receive;
    size_t count;
    ncclDataType_t type;
    ncclRedOp_t operation;
    int peer;
    bool in_group;
    cudaStream_t stream;
} started[MOST_STARTED];
static int num_started;
static ncclResult_t start_result;

/* A blocking call that waits for ever ends by an abort. */
static ncclResult_t block(ncclComm_t comm)
{
    for (;;) {
        if (__atomic_load_n(&comm->was_aborted, __ATOMIC_ACQUIRE)) {
            free(comm);
            return ncclInternalError;
        }
        sched_yield();
    }
}

static ncclResult_t begin(ncclComm_t comm)
{
    if (comm->is_blocking)
        return next_in_progress < 0 ? block(comm) : next_result;
    comm->num_in_progress = next_in_progress;
    comm->result = next_result;
    return next_in_progress != 0 ? ncclInProgress : next_result;
}

static ncclComm_t new_handle(int rank, int size)
{
    ncclComm_t comm = calloc(1, sizeof *comm);
    comm->rank = rank;
    comm->size = size;
    num_comms++;
    return comm;
}

static ncclResult_t get_version(int *out)
{
    *out = found_version;
    return ncclSuccess;
}

static ncclResult_t get_unique_id(ncclUniqueId *id)
{
    for (int i = 0; i < NCCL_UNIQUE_ID_BYTES; i++)
        id->internal[i] = (char)i;
    return ncclSuccess;
}

static ncclResult_t init_rank(ncclComm_t *comm, int size, ncclUniqueId id, int rank,
                              ncclConfig_t *config)
{
    assert_int_equal(config->blocking, 0);
    assert_int_equal(id.internal[100], 100);
    assert_int_equal(config->splitShare, NCCL_CONFIG_UNDEF_INT);
    *comm = new_handle(rank, size);
    return begin(*comm);
}

static ncclResult_t split(ncclComm_t comm, int color, int key, ncclComm_t *out,
                          ncclConfig_t *config)
{
    assert_false(comm->is_blocking); /* the host would wait inside for missing ranks */
    *out = NULL;
    if (color != NCCL_SPLIT_NOCOLOR) {
        *out = new_handle(key, color);
        (*out)->result = next_result;
        (*out)->is_blocking = config->blocking != 0;
        (*out)->shares = config->splitShare == 1;
        (*out)->max_ctas = config->maxCTAs;
        assert_true(config->maxCTAs < 0 || config->minCTAs == 1);
    }
    return begin(comm);
}

static ncclResult_t finalize(ncclComm_t comm)
{
    num_finalized++;
    return begin(comm);
}

/* Ends a call that waits in another thread, which then frees the communicator. */
static ncclResult_t abort_it(ncclComm_t comm)
{
    num_comms--;
    num_aborted++;
    if (comm->is_blocking && next_in_progress < 0)
        __atomic_store_n(&comm->was_aborted, true, __ATOMIC_RELEASE);
    else
        free(comm);
    return ncclSuccess;
}

static ncclResult_t destroy(ncclComm_t comm)
{
    num_comms--;
    num_destroyed++;
    free(comm);
    return ncclSuccess;
}

static ncclResult_t get_async_error(ncclComm_t comm, ncclResult_t *out)
{
    *out = comm->num_in_progress == 0 ? comm->result : ncclInProgress;
    comm->num_in_progress -= comm->num_in_progress > 0;
    return ncclSuccess;
}

static const char *error_string(ncclResult_t result)
{
    return result == ncclRemoteError ? "a remote process exited" : "another error";
}

static const char *last_error(ncclComm_t comm)
{
    (void)comm;
    return "peer 3 closed its socket";
}

/* communicator of the last started operation; NULL: none */
static ncclComm_t in_group;

static ncclResult_t group_start(void)
{
    group_depth++;
    return ncclSuccess;
}

static ncclResult_t group_end(void)
{
    group_depth--;
    return in_group != NULL ? begin(in_group) : ncclSuccess;
}

static ncclResult_t start_one(struct started s, ncclComm_t comm)
{
    s.in_group = group_depth == 1;
    in_group = comm;
    started[num_started++] = s;
    return start_result;
}

static ncclResult_t all_gather(const void *send, void *receive, size_t count,
                               ncclDataType_t type, ncclComm_t comm, cudaStream_t stream)
{
    return start_one((struct started){.what = "all-gather",
                                      .send = send,
                                      .receive = receive,
                                      .count = count,
                                      .type = type,
                                      .stream = stream},
                     comm);
}

static ncclResult_t reduce_scatter(const void *send, void *receive, size_t count,
                                   ncclDataType_t type, ncclRedOp_t operation,
                                   ncclComm_t comm, cudaStream_t stream)
{
    return start_one((struct started){"reduce-scatter", send, receive, count, type,
                                      operation, -1, false, stream},
                     comm);
}

static ncclResult_t all_reduce(const void *send, void *receive, size_t count,
                               ncclDataType_t type, ncclRedOp_t operation,
                               ncclComm_t comm, cudaStream_t stream)
{
    return start_one((struct started){"all-reduce", send, receive, count, type, operation,
                                      -1, false, stream},
                     comm);
}

static ncclResult_t send_it(const void *send, size_t count, ncclDataType_t type, int peer,
                            ncclComm_t comm, cudaStream_t stream)
{
    return start_one((struct started){.what = "send",
                                      .send = send,
                                      .count = count,
                                      .type = type,
                                      .peer = peer,
                                      .stream = stream},
                     comm);
}

static ncclResult_t receive_it(void *receive, size_t count, ncclDataType_t type, int peer,
                               ncclComm_t comm, cudaStream_t stream)
{
    return start_one((struct started){.what = "receive",
                                      .receive = receive,
                                      .count = count,
                                      .type = type,
                                      .peer = peer,
                                      .stream = stream},
                     comm);
}

bool ms_cuda_library_open(const ms_cuda_library *of, void *table,
                          char reason[MS_CUDA_REASON])
{
    static const nccl_table functions = {
        get_version, get_unique_id,   init_rank,    split,      finalize,    destroy,
        abort_it,    get_async_error, error_string, last_error, group_start, group_end,
        all_gather,  reduce_scatter,  all_reduce,   send_it,    receive_it};
    size_t num = 0;
    while (of->symbols[num].name != NULL)
        num++;
    /* the number of loaded functions is that of the table */
    assert_int_equal(num * sizeof(void *), sizeof functions);
    memcpy(table, &functions, sizeof functions);
    reason[0] = '\0';
    return true;
}

/* ---- tests ---- */

static void reset(int in_progress, ncclResult_t result)
{
    assert_int_equal(num_comms, 0);
    num_destroyed = num_aborted = num_finalized = num_started = 0;
    next_in_progress = in_progress;
    next_result = result;
    start_result = ncclSuccess;
    in_group = NULL;
}

static ms_cuda_comm *open_one(ms_ctx *cx)
{
    ms_cuda_id id;
    ms_cuda_comm *comm = NULL;
    ASSERT_OK(ms_cuda_library_make_id(cx, &id), cx);
    ASSERT_OK(ms_cuda_library_open_comm(cx, NULL, &id, 2, 4, &comm), cx);
    ASSERT_INT(comm->handle->rank, 2);
    ASSERT_INT(comm->handle->size, 4);
    return comm;
}

/* A communicator that carries data: they are split from the world's. */
static ms_cuda_comm *split_one(ms_ctx *cx, ms_cuda_comm *world)
{
    ms_cuda_comm *part = NULL;
    ASSERT_OK(ms_cuda_library_split(cx, world, &(ms_cuda_split){0}, &part), cx);
    return part;
}

static void a_communicator_is_waited_for_and_ends_well(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    reset(5, ncclSuccess);
    ms_cuda_comm *comm = open_one(cx);
    ASSERT_INT(comm->handle->num_in_progress, 0);
    ASSERT_OK(ms_cuda_library_check_comm(cx, comm), cx);
    ms_cuda_library_close_comm(comm);
    ASSERT_INT(num_finalized, 1);
    ASSERT_INT(num_destroyed, 1);
    ASSERT_INT(num_aborted, 0);
}

static void a_communicator_that_fails_to_open_is_aborted(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_cuda_id id;
    ms_cuda_comm *comm = NULL;
    reset(3, ncclRemoteError);
    ASSERT_OK(ms_cuda_library_make_id(cx, &id), cx);
    ASSERT_INT(ms_cuda_library_open_comm(cx, NULL, &id, 0, 2, &comm), MS_EIO);
    assert_null(comm);
    ASSERT_INT(num_aborted, 1);
    const char *text = test_messages(cx);
    assert_non_null(strstr(text, "ncclCommInitRankConfig: a remote process exited"));
    assert_non_null(strstr(text, "peer 3 closed its socket"));
}

static void colors_form_communicators(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    reset(2, ncclSuccess);
    ms_cuda_comm *comm = open_one(cx), *part = NULL, *none = comm;
    ASSERT_OK(ms_cuda_library_split(cx, comm, &(ms_cuda_split){7, 1, 20, false}, &part),
              cx);
    /* the mock split returns the color as size, and the key as rank */
    ASSERT_INT(part->handle->size, 7);
    ASSERT_INT(part->handle->rank, 1);
    assert_true(part->handle->is_blocking && !part->handle->shares);
    ASSERT_INT(part->handle->max_ctas, 20);
    /* a split carries data: calls on it do not wait for a thread of NCCL */
    ASSERT_INT(comm->handle->num_in_progress, 0);
    ASSERT_OK(ms_cuda_library_split(cx, comm, &(ms_cuda_split){.color = -1}, &none), cx);
    assert_null(none);
    next_result = ncclSystemError;
    ASSERT_INT(ms_cuda_library_split(cx, comm, &(ms_cuda_split){0}, &none), MS_EIO);
    assert_null(none);
    next_result = ncclSuccess;
    ms_cuda_library_close_comm(part);
    ASSERT_INT(num_destroyed, 1);
    ASSERT_INT(num_finalized, 0);
    /* a failed communicator is aborted when it is closed */
    ms_cuda_library_close_comm(comm);
    ASSERT_INT(num_comms, 0);
    ASSERT_INT(num_aborted, 2);
}

static void collectives_are_started_in_one_group(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    char memory[8];
    ms_cuda_stream *stream = (ms_cuda_stream *)(void *)memory;
    reset(1, ncclSuccess);
    ms_cuda_comm *world = open_one(cx), *comm = split_one(cx, world);
    const ms_cuda_collective all[] = {
        {MS_CUDA_ALL_GATHER, MS_SCALAR_BF16, false, 0, memory, memory + 1, 5},
        {MS_CUDA_REDUCE_SCATTER, MS_SCALAR_FP32, false, 0, memory + 2, memory + 3, 6},
        {MS_CUDA_ALL_REDUCE, MS_SCALAR_FP64, true, 0, memory + 4, memory + 4, 7},
        {MS_CUDA_SEND, MS_SCALAR_BYTE, false, 3, memory + 5, NULL, 0},
        {MS_CUDA_RECEIVE, MS_SCALAR_LONG, false, 1, NULL, memory + 6, 9}};
    const char *const what[] = {"all-gather", "reduce-scatter", "all-reduce", "send",
                                "receive"};
    const ncclDataType_t types[] = {ncclBfloat16, ncclFloat32, ncclFloat64, ncclUint8,
                                    ncclInt64};
    ASSERT_OK(ms_cuda_library_communicate(cx, comm, stream, all, 5), cx);
    ASSERT_INT(num_started, 5);
    for (int i = 0; i < 5; i++) {
        ASSERT_TEXT(started[i].what, what[i]);
        ASSERT_INT(started[i].type, types[i]);
        ASSERT_INT(started[i].count, all[i].count);
        assert_ptr_equal(started[i].send, all[i].send);
        assert_ptr_equal(started[i].receive, all[i].receive);
        assert_ptr_equal(started[i].stream, memory);
        assert_true(started[i].in_group);
    }
    ASSERT_INT(started[1].operation, ncclSum);
    ASSERT_INT(started[2].operation, ncclMax);
    ASSERT_INT(started[3].peer, 3);
    ASSERT_INT(started[4].peer, 1);
    ASSERT_OK(ms_cuda_library_communicate(cx, comm, stream, NULL, 0), cx);
    ASSERT_INT(num_started, 5);
    ms_cuda_library_close_comm(comm);
    ms_cuda_library_close_comm(world);
}

static void failures_of_collectives_are_told(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    char memory[1];
    reset(0, ncclSuccess);
    ms_cuda_comm *world = open_one(cx), *comm = split_one(cx, world);
    ms_cuda_collective c = {
        .kind = MS_CUDA_ALL_GATHER, .send = memory, .receive = memory};
    start_result = ncclInvalidArgument;
    ASSERT_INT(ms_cuda_library_communicate(cx, comm, NULL, &c, 1), MS_EIO);
    ASSERT_INT(group_depth, 0); /* ncclGroupEnd was called despite the failure */
    start_result = ncclSuccess;
    ASSERT_OK(ms_cuda_library_communicate(cx, comm, NULL, &c, 1), cx);
    /* an asynchronous error, reported by a later check */
    comm->handle->result = ncclRemoteError;
    ASSERT_INT(ms_cuda_library_check_comm(cx, comm), MS_EIO);
    ms_cuda_library_abort_comm(comm);
    ms_cuda_library_abort_comm(comm);
    ASSERT_INT(num_aborted, 1);
    ASSERT_INT(ms_cuda_library_check_comm(cx, comm), MS_EIO);
    ASSERT_INT(ms_cuda_library_communicate(cx, comm, NULL, &c, 1), MS_EIO);
    ms_cuda_library_close_comm(comm);
    ASSERT_INT(num_aborted, 1);
    ASSERT_INT(num_finalized, 0);
    ms_cuda_library_close_comm(world);
}

static void *abort_later(void *comm)
{
    nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
    ms_cuda_library_abort_comm(comm);
    return NULL;
}

/* A peer never comes, so the split would wait for it for ever: an abort from another thread
 * ends the wait. */
static void an_abort_ends_a_wait_in_another_thread(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    pthread_t thread;
    reset(0, ncclSuccess);
    ms_cuda_comm *comm = open_one(cx), *part = NULL;
    next_in_progress = -1;
    ASSERT_INT(pthread_create(&thread, NULL, abort_later, comm), 0);
    ASSERT_INT(
        ms_cuda_library_split(cx, comm, &(ms_cuda_split){.is_parent = true}, &part),
        MS_EIO);
    pthread_join(thread, NULL);
    next_in_progress = 0;
    ms_cuda_library_close_comm(comm);
    ASSERT_INT(num_comms, 0);
}

/* A blocking call holds the communicator's lock while it waits. */
static void an_abort_ends_a_blocking_call(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    char memory[1];
    pthread_t thread;
    reset(0, ncclSuccess);
    ms_cuda_comm *comm = open_one(cx), *part = NULL;
    ASSERT_OK(ms_cuda_library_split(cx, comm, &(ms_cuda_split){0}, &part), cx);
    const ms_cuda_collective c = {
        .kind = MS_CUDA_ALL_GATHER, .send = memory, .receive = memory};
    ASSERT_OK(ms_cuda_library_communicate(cx, part, NULL, &c, 1), cx);
    next_in_progress = -1;
    ASSERT_INT(pthread_create(&thread, NULL, abort_later, part), 0);
    ASSERT_INT(ms_cuda_library_communicate(cx, part, NULL, &c, 1), MS_EIO);
    pthread_join(thread, NULL);
    ASSERT_INT(ms_cuda_library_check_comm(cx, part), MS_EIO);
    next_in_progress = 0;
    ms_cuda_library_close_comm(part);
    ms_cuda_library_close_comm(comm);
    ASSERT_INT(num_aborted, 1);
}

/* Communicators split from a parent share its buffers; the parent is polled. */
static void a_parent_shares_and_is_polled(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    reset(2, ncclSuccess);
    ms_cuda_comm *comm = open_one(cx), *parent = NULL, *part = NULL;
    ASSERT_OK(
        ms_cuda_library_split(cx, comm, &(ms_cuda_split){.is_parent = true}, &parent),
        cx);
    assert_true(parent->handle->shares && !parent->handle->is_blocking);
    ASSERT_OK(ms_cuda_library_split(cx, parent, &(ms_cuda_split){0}, &part), cx);
    ASSERT_INT(parent->handle->num_in_progress, 0);
    assert_true(part->handle->is_blocking);
    ms_cuda_library_close_comm(part);
    ms_cuda_library_close_comm(parent);
    ms_cuda_library_close_comm(comm);
    ASSERT_INT(num_comms, 0);
}

MS_LIBRARY_TEST(nccl_table)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_abort_ends_a_blocking_call),
        cmocka_unit_test(a_parent_shares_and_is_polled),
        cmocka_unit_test(the_installed_library_has_all_functions),
        cmocka_unit_test(a_communicator_is_waited_for_and_ends_well),
        cmocka_unit_test(a_communicator_that_fails_to_open_is_aborted),
        cmocka_unit_test(colors_form_communicators),
        cmocka_unit_test(collectives_are_started_in_one_group),
        cmocka_unit_test(failures_of_collectives_are_told),
        cmocka_unit_test(an_abort_ends_a_wait_in_another_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static void communicators_by_nccl(void **state)
{
    (void)state;
    skip(); /* built without the NCCL header */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(communicators_by_nccl)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
