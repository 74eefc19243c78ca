/* Tests of runs on a fake GPU (tests/support/cuda_fake.h) in which a driver call or a
 * piece of work fails, or a rank never comes or gives up: all ranks end soon, with a
 * message of the reason, and nothing stays allocated. */
#include "tests/support/cuda_backend.h"
#include "tests/support/cuda_fake.h"
#include "tests/support/transfer_checks.h"

#include "base/clock.h"
#include "base/rng.h"
#include "tests/test.h"

#define SOON_S 20.0 /* time limit of a failing run, s: generous for a slow machine */

static ms_cuda_fake_options options_of(uint64_t seed, int num_devices)
{
    return (ms_cuda_fake_options){
        .seed = seed, .num_devices = num_devices, .stuck_seconds = 1.0};
}

/* Opens, runs and closes a job of 2 pipeline stages x tp 2 with NCCL transfers. */
static ms_status run_on(ms_ctx *cx, ms_rank_main *main, double timeout_s)
{
    ms_plan plan = ms_check_plan((long[]){2, 1, 1, 1, 2}, 1);
    ms_world world = ms_world_make(cx->arena, &plan);
    ms_cuda_backend backend = ms_test_cuda_backend(MS_CUDA_BY_NCCL);
    ms_backend_job job = {.backend = &backend.table,
                          .world = &world,
                          .type = MS_REAL_FP32,
                          .timeout_s = timeout_s};
    MS_TRY(job.backend->open(cx, &job));
    ms_status status = job.backend->run(cx, &job, main, &job);
    job.backend->close(&job);
    return status;
}

/* Body of a rank: one collective, messages, reads and writes. */
static ms_status short_main(ms_ctx *cx, ms_device_rank *device, long rank, void *state)
{
    const ms_backend_job *job = state;
    const ms_backend *b = job->backend;
    double values[3] = {(double)rank, 1, 2};
    float *x = b->allocate(device, sizeof(float) * 3);
    if (x == NULL)
        return ms_fail(cx, MS_EIO, MS_NOWHERE, "no memory is left");
    MS_TRY(b->arrays->write(cx, device, MS_SCALAR_FP32, x, values, 3));
    ms_transfer sum = {.kind = MS_TRANSFER_ALL_REDUCE,
                       .scalar = MS_SCALAR_FP32,
                       .group = MS_TRAFFIC_TP,
                       .stream = MS_STREAM_TP,
                       .send = x,
                       .receive = x,
                       .count = 3,
                       .name = "mlp.down"};
    ms_event done;
    MS_TRY(b->start(cx, device, &sum, NULL, 0, &done));
    MS_TRY(b->wait(cx, device, done));
    ms_transfer message = {.kind = rank < 2 ? MS_TRANSFER_SEND : MS_TRANSFER_RECEIVE,
                           .scalar = MS_SCALAR_FP32,
                           .peer = (rank + 2) % 4,
                           .tag = 3,
                           .send = x,
                           .receive = x,
                           .count = 3,
                           .name = "activations"};
    MS_TRY(b->start(cx, device, &message, NULL, 0, &done));
    MS_TRY(b->wait(cx, device, done));
    b->arrays->scale(device, MS_SCALAR_FP32, x, 2.0, 3);
    double start_s = b->now_s(device);
    MS_TRY(b->read_clock(cx, device, &start_s, 1));
    MS_TRY(b->arrays->read(cx, device, MS_SCALAR_FP32, values, x, 3));
    b->release(device, x, sizeof(float) * 3);
    if (values[0] == 2.0 && values[1] == 4.0)
        return MS_OK;
    return ms_fail(cx, MS_ECHECK, MS_NOWHERE, "%g %g", values[0], values[1]);
}

static void nothing_is_left(void)
{
    ASSERT_INT(ms_cuda_fake_num_pending(), 0);
    for (int i = 0; i < 4; i++)
        assert_true(ms_cuda_fake_used_bytes(i) == 0.0);
    ASSERT_TEXT(ms_cuda_fake_defect(), "");
    ms_cuda_fake_end();
}

static void expect_failure(ms_status status, ms_ctx *cx, double began_s, const char *what)
{
    if (status != MS_EIO || cx->first == NULL)
        fail_msg("%s: status %d", what, (int)status);
    if (ms_clock_s() - began_s > SOON_S)
        fail_msg("%s: took %g s", what, ms_clock_s() - began_s);
}

/* ---- calls ---- */

static long count_calls(ms_cuda_fake_call call)
{
    ms_cuda_fake_options options = options_of(1, 4);
    ms_ctx *cx = test_cx();
    ms_cuda_fake_begin(&options);
    ASSERT_OK(run_on(cx, short_main, 0), cx);
    long num = ms_cuda_fake_calls(call);
    nothing_is_left();
    return num;
}

static void fail_each(ms_cuda_fake_call call, const char *name, int num_tried)
{
    long num = count_calls(call);
    ms_rng rng = ms_rng_seed((uint64_t)call + 77);
    assert_true(num > 0);
    for (int i = 0; i < num_tried; i++) {
        long number =
            1 + (num <= num_tried ? i % num : (long)ms_rng_below(&rng, (uint64_t)num));
        ms_cuda_fake_options options = options_of((uint64_t)i + 1, 4);
        ms_ctx *cx = test_cx();
        const char *what =
            ms_arena_printf(cx->arena, "%s %ld of %ld fails", name, number, num);
        ms_cuda_fake_begin(&options);
        ms_cuda_fake_fail(call, number);
        double began_s = ms_clock_s();
        ms_status status = run_on(cx, short_main, 5);
        /* polling calls: a run may make too few to reach the one that fails */
        bool may_pass =
            call == MS_FAKE_QUERY || call == MS_FAKE_CHECK_COMM || call == MS_FAKE_CHECK;
        if (!may_pass || status != MS_OK)
            expect_failure(status, cx, began_s, what);
        nothing_is_left();
    }
}

static void a_call_that_fails_ends_all_ranks(void **state)
{
    (void)state;
    static const struct {
        ms_cuda_fake_call call;
        const char *name;
    } calls[] = {{MS_FAKE_FIND, "find"},
                 {MS_FAKE_OPEN, "open"},
                 {MS_FAKE_ALLOCATE_HOST, "allocate_host"},
                 {MS_FAKE_OPEN_STREAM, "open_stream"},
                 {MS_FAKE_OPEN_EVENT, "open_event"},
                 {MS_FAKE_RECORD, "record"},
                 {MS_FAKE_WAIT, "wait"},
                 {MS_FAKE_QUERY, "query"},
                 {MS_FAKE_ELAPSED, "elapsed"},
                 {MS_FAKE_CHECK, "check"},
                 {MS_FAKE_LAUNCH, "launch"},
                 {MS_FAKE_COPY, "copy"},
                 {MS_FAKE_CLEAR, "clear"},
                 {MS_FAKE_MAKE_ID, "make_id"},
                 {MS_FAKE_OPEN_COMM, "open_comm"},
                 {MS_FAKE_SPLIT, "split"},
                 {MS_FAKE_COMMUNICATE, "communicate"}};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        fail_each(calls[i].call, calls[i].name, 6);
}

/* GPUs of 4096 bytes: a run fails only where every smaller block is refused, too. */
static void a_device_without_memory_ends_all_ranks(void **state)
{
    (void)state;
    ms_cuda_fake_options options = options_of(3, 4);
    options.memory_bytes = 4096;
    ms_ctx *cx = test_cx();
    ms_cuda_fake_begin(&options);
    ASSERT_INT(run_on(cx, short_main, 5), MS_EIO);
    assert_non_null(strstr(test_messages(cx), "no memory is left on GPU "));
    nothing_is_left();
}

/* ---- work ---- */

static void work_that_fails_ends_all_ranks(void **state)
{
    (void)state;
    for (int i = 0; i < 30; i++) {
        ms_cuda_fake_options options = options_of((uint64_t)i + 1, 4);
        ms_ctx *cx = test_cx();
        ms_cuda_fake_begin(&options);
        ms_cuda_fake_fail_work(1 + 3 * i);
        double began_s = ms_clock_s();
        expect_failure(run_on(cx, short_main, 5), cx, began_s, "work");
        nothing_is_left();
    }
}

static void a_collective_that_never_ends_is_found(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        ms_cuda_fake_options options = options_of((uint64_t)i + 1, 4);
        ms_ctx *cx = test_cx();
        ms_cuda_fake_begin(&options);
        ms_cuda_fake_fail_collective(1 + i);
        double began_s = ms_clock_s();
        expect_failure(run_on(cx, short_main, 5), cx, began_s, "collective");
        nothing_is_left();
    }
}

/* ---- ranks ---- */

static const char *failure_of(ms_rank_main *main, double timeout_s, ms_status want)
{
    ms_cuda_fake_options options = options_of(5, 4);
    ms_ctx *cx = test_cx();
    ms_cuda_fake_begin(&options);
    double began_s = ms_clock_s();
    ASSERT_INT(run_on(cx, main, timeout_s), want);
    assert_true(ms_clock_s() - began_s < SOON_S);
    nothing_is_left();
    return test_messages(cx);
}

static ms_status reduce(ms_ctx *cx, ms_device_rank *device, const ms_backend *b,
                        ms_traffic_group group, const char *name)
{
    double values[2] = {0};
    void *x = b->allocate(device, sizeof values);
    ms_event done;
    ms_transfer t = {.kind = MS_TRANSFER_ALL_REDUCE,
                     .scalar = MS_SCALAR_FP64,
                     .group = (unsigned char)group,
                     .stream = MS_STREAM_TP,
                     .send = x,
                     .receive = x,
                     .count = 2,
                     .name = name};
    b->arrays->fill(device, MS_SCALAR_FP64, x, 1.0, 2);
    MS_TRY(b->start(cx, device, &t, NULL, 0, &done));
    MS_TRY(b->wait(cx, device, done));
    MS_TRY(b->arrays->read(cx, device, MS_SCALAR_FP64, values, x, 2));
    b->release(device, x, sizeof values);
    return MS_OK;
}

static ms_status rank_3_stays_away(ms_ctx *cx, ms_device_rank *device, long rank,
                                   void *state)
{
    const ms_backend *b = ((ms_backend_job *)state)->backend;
    return rank == 3 ? MS_OK : reduce(cx, device, b, MS_TRAFFIC_TP, "mlp.down");
}

static ms_status nobody_sends(ms_ctx *cx, ms_device_rank *device, long rank, void *state)
{
    const ms_backend *b = ((ms_backend_job *)state)->backend;
    ms_event done;
    ms_transfer t = {.kind = MS_TRANSFER_RECEIVE,
                     .scalar = MS_SCALAR_FP32,
                     .peer = 2,
                     .tag = 4,
                     .receive = b->allocate(device, 8),
                     .count = 2,
                     .name = "activations"};
    if (rank != 0)
        return MS_OK;
    MS_TRY(b->start(cx, device, &t, NULL, 0, &done));
    return b->wait(cx, device, done);
}

static void who_waits_too_long_says_for_whom(void **state)
{
    (void)state;
    ASSERT_TEXT(failure_of(rank_3_stays_away, 1.5, MS_EIO),
                "error: rank 2: waited 1.5 s for mlp.down (all-reduce over tp): rank 3 "
                "has not come\n");
    ASSERT_TEXT(failure_of(nobody_sends, 1.5, MS_EIO),
                "error: rank 0: waited 1.5 s for activations (receive from rank 2): it "
                "was not sent\n");
}

static ms_status rank_2_fails(ms_ctx *cx, ms_device_rank *device, long rank, void *state)
{
    const ms_backend *b = ((ms_backend_job *)state)->backend;
    if (rank == 2) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "the loss is %s", "nan");
        ms_hint(cx, "a smaller learning rate");
        return MS_EINPUT;
    }
    if (rank == 0)
        return nobody_sends(cx, device, rank, state);
    return reduce(cx, device, b, MS_TRAFFIC_WORLD, "gradient norm");
}

static ms_status rank_1_aborts(ms_ctx *cx, ms_device_rank *device, long rank, void *state)
{
    const ms_backend *b = ((ms_backend_job *)state)->backend;
    if (rank != 1)
        return reduce(cx, device, b, MS_TRAFFIC_WORLD, "gradient norm");
    b->abort(device);
    return MS_OK;
}

static void one_failure_ends_all_and_is_told(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++)
        ASSERT_TEXT(failure_of(rank_2_fails, 0, MS_EINPUT),
                    "error: rank 2: the loss is nan\n  hint: a smaller learning rate\n");
    assert_non_null(strstr(failure_of(rank_1_aborts, 0, MS_EIO), "error: rank 1: "));
}

static ms_status lengths_differ(ms_ctx *cx, ms_device_rank *device, long rank,
                                void *state)
{
    const ms_backend *b = ((ms_backend_job *)state)->backend;
    void *x = b->allocate(device, 64);
    ms_event done;
    ms_transfer t = {.kind = rank == 0 ? MS_TRANSFER_SEND : MS_TRANSFER_RECEIVE,
                     .scalar = MS_SCALAR_FP64,
                     .peer = 2 - rank,
                     .send = x,
                     .receive = x,
                     .count = rank == 0 ? 5 : 3,
                     .name = rank == 0 ? "output" : "input"};
    if (rank % 2 != 0)
        return MS_OK;
    b->arrays->fill(device, MS_SCALAR_FP64, x, 1.0, 5);
    MS_TRY(b->start(cx, device, &t, NULL, 0, &done));
    return b->wait(cx, device, done);
}

static void messages_that_do_not_fit_are_told(void **state)
{
    (void)state;
    ASSERT_TEXT(failure_of(lengths_differ, 0, MS_EIO),
                "error: rank 2: input (receive from rank 0, tag 0) of 3 fp64 elements "
                "gets 5 of fp64\n");
}

/* ---- devices ---- */

static void what_is_missing_is_said(void **state)
{
    (void)state;
    ms_cuda_fake_options options = options_of(1, 4);
    options.missing = "no CUDA driver is installed";
    ms_ctx *cx = test_cx();
    ms_cuda_fake_begin(&options);
    ASSERT_INT(run_on(cx, short_main, 0), MS_EIO);
    assert_non_null(strstr(test_messages(cx), "no CUDA driver is installed"));
    ms_cuda_fake_end();
    options = options_of(1, 3);
    cx = test_cx();
    ms_cuda_fake_begin(&options);
    ASSERT_INT(run_on(cx, short_main, 0), MS_EINPUT);
    assert_non_null(strstr(test_messages(cx), "4 ranks share 3 GPUs"));
    assert_non_null(strstr(test_messages(cx), "--transport host"));
    ms_cuda_fake_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_that_fails_ends_all_ranks),
        cmocka_unit_test(a_device_without_memory_ends_all_ranks),
        cmocka_unit_test(work_that_fails_ends_all_ranks),
        cmocka_unit_test(a_collective_that_never_ends_is_found),
        cmocka_unit_test(who_waits_too_long_says_for_whom),
        cmocka_unit_test(one_failure_ends_all_and_is_told),
        cmocka_unit_test(messages_that_do_not_fit_are_told),
        cmocka_unit_test(what_is_missing_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
