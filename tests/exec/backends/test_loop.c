/* Tests of the loop backend, whose ranks are threads: every transfer over every group,
 * and runs in which a rank fails, is late or never comes. */
#include "exec/backends/rank_threads.h"
#include "tests/support/transfer_checks.h"

#include "tests/test.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

static ms_backend_job open_job(const ms_plan *plan, ms_real_type type)
{
    ms_ctx *cx = test_cx();
    ms_world *world = MS_NEW(cx->arena, ms_world);
    ms_plan *kept = MS_NEW(cx->arena, ms_plan);
    *kept = *plan;
    *world = ms_world_make(cx->arena, kept);
    ms_backend_job job = {.backend = &ms_backend_loop, .world = world, .type = type};
    ASSERT_OK(job.backend->open(cx, &job), cx);
    return job;
}

/* Runs `main` on 4 ranks (tp 2 x cp 2), expects that the run fails with `want`, and
 * returns its messages. */
static const char *failure_of(ms_rank_main *main, double timeout_s, ms_status want)
{
    ms_plan plan = ms_check_plan((long[]){1, 1, 1, 2, 2}, 1);
    ms_backend_job job = open_job(&plan, MS_REAL_FP64);
    job.timeout_s = timeout_s;
    ms_ctx *cx = test_cx();
    ASSERT_INT(job.backend->run(cx, &job, main, &job), want);
    job.backend->close(&job);
    return test_messages(cx);
}

/* ---- transfers ---- */

static void check_mesh(const long size[MS_NUM_PLAN_AXES], long ep, ms_real_type type)
{
    ms_plan plan = ms_check_plan(size, ep);
    ms_backend_job job = open_job(&plan, type);
    ms_ctx *cx = test_cx();
    ASSERT_OK(job.backend->run(cx, &job, ms_check_transfers, &job), cx);
    ASSERT_INT(cx->num_errors, 0);
    job.backend->close(&job);
}

static void every_transfer_over_every_group(void **state)
{
    (void)state;
    check_mesh((long[]){2, 1, 2, 2, 2}, 4, MS_REAL_FP32);
    check_mesh((long[]){2, 2, 2, 1, 2}, 2, MS_REAL_FP64);
    check_mesh((long[]){1, 2, 2, 1, 2}, 2, MS_REAL_BF16);
    check_mesh((long[]){1, 1, 3, 1, 2}, 1, MS_REAL_FP64);
    check_mesh((long[]){1, 1, 1, 1, 1}, 1, MS_REAL_FP64);
}

static void many_ranks(void **state)
{
    (void)state;
    check_mesh((long[]){2, 2, 4, 2, 2}, 8, MS_REAL_FP32);
}

static ms_transfer reduction(ms_traffic_group group, const char *name, double *x,
                             long count)
{
    return (ms_transfer){.kind = MS_TRANSFER_ALL_REDUCE,
                         .scalar = MS_SCALAR_FP64,
                         .group = (unsigned char)group,
                         .send = x,
                         .receive = x,
                         .count = count,
                         .name = name};
}

static ms_status carry_out(ms_ctx *cx, ms_device_rank *device, const ms_transfer *t)
{
    ms_event done;
    MS_TRY(ms_backend_loop.start(cx, device, t, NULL, 0, &done));
    return ms_backend_loop.wait(cx, device, done);
}

/* Sums 1/3, 1/4, ... over the ranks by an all-reduce: the sum must round as in the order
 * of the members. */
static ms_status sums_in_order(ms_ctx *cx, ms_device_rank *device, long rank, void *state)
{
    const ms_backend_job *job = state;
    ms_members all = job->world->members[MS_TRAFFIC_WORLD][rank];
    double sum = 0, x = 1.0 / (3 + (double)rank);
    for (int i = 0; i < all.size; i++)
        sum += 1.0 / (3 + (double)all.ranks[i]);
    ms_transfer t = reduction(MS_TRAFFIC_WORLD, "sum", &x, 1);
    MS_TRY(carry_out(cx, device, &t));
    return x == sum ? MS_OK : ms_fail(cx, MS_ECHECK, MS_NOWHERE, "%.17g", x - sum);
}

static void sums_are_taken_in_the_order_of_members(void **state)
{
    (void)state;
    ms_plan plan = ms_check_plan((long[]){1, 1, 1, 2, 8}, 1);
    ms_backend_job job = open_job(&plan, MS_REAL_FP64);
    ms_ctx *cx = test_cx();
    for (int i = 0; i < 10; i++) /* an open job can be run again */
        ASSERT_OK(job.backend->run(cx, &job, sums_in_order, &job), cx);
    job.backend->close(&job);
}

/* Passes a value around the ring of ranks: each send starts after the event of the
 * receive whose buffer it reads. */
static ms_status passes_on(ms_ctx *cx, ms_device_rank *device, long rank, void *state)
{
    long size = ((ms_backend_job *)state)->world->num_ranks;
    double x[2] = {(double)rank, 0};
    ms_event came = 0, sent = 0;
    for (long hop = 0; hop < size; hop++) {
        ms_transfer t = {.kind = MS_TRANSFER_SEND,
                         .scalar = MS_SCALAR_FP64,
                         .peer = (rank + 1) % size,
                         .tag = 1,
                         .send = &x[hop % 2],
                         .count = 1};
        MS_TRY(ms_backend_loop.start(cx, device, &t, &came, 1, &sent));
        t = (ms_transfer){.kind = MS_TRANSFER_RECEIVE,
                          .scalar = MS_SCALAR_FP64,
                          .peer = (rank + size - 1) % size,
                          .tag = 1,
                          .receive = &x[(hop + 1) % 2],
                          .count = 1};
        MS_TRY(ms_backend_loop.start(cx, device, &t, &sent, 1, &came));
    }
    MS_TRY(ms_backend_loop.wait(cx, device, came));
    return x[size % 2] == (double)rank
               ? MS_OK
               : ms_fail(cx, MS_ECHECK, MS_NOWHERE, "%g came back", x[size % 2]);
}

static void transfers_start_after_events(void **state)
{
    (void)state;
    ms_plan plan = ms_check_plan((long[]){1, 1, 1, 1, 5}, 1);
    ms_backend_job job = open_job(&plan, MS_REAL_FP64);
    ms_ctx *cx = test_cx();
    ASSERT_OK(job.backend->run(cx, &job, passes_on, &job), cx);
    job.backend->close(&job);
}

/* ---- kernels, memory and clocks ---- */

/* Adds two arrays of two numbers on the device: y[i] += x[i]. */
static ms_status add(ms_ctx *cx, ms_device_rank *device, double *x, double *y)
{
    ms_node node = {.op = MS_OP_ADD, .num_in = 2, .num_out = 1};
    ms_local a = {.data = x, .num_dims = 1, .shape = {2}, .count = 2}, b = a;
    b.data = y;
    ms_op_call call = {.node = &node, .in = {&a, &b}, .out = {&b}};
    return ms_backend_loop.kernel(cx, device, &call);
}

static ms_status uses_the_device(ms_ctx *cx, ms_device_rank *device, long rank,
                                 void *state)
{
    const ms_backend *b = &ms_backend_loop;
    sigset_t blocked;
    (void)state;
    (void)rank;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    if (!sigismember(&blocked, SIGINT) || sigismember(&blocked, SIGSEGV))
        return ms_fail(cx, MS_ECHECK, MS_NOWHERE, "signals");
    char *memory = b->allocate(device, 1000);
    bool aligned = (uintptr_t)memory % 64 == 0;
    memset(memory, 1, 1000);
    b->release(device, memory, 1000);
    if (!aligned || b->allocate(device, 0) != NULL ||
        b->allocate(device, SIZE_MAX) != NULL)
        return ms_fail(cx, MS_ECHECK, MS_NOWHERE, "memory");
    double x[2] = {1, 2}, y[2] = {10, 20}, before_s = b->now_s(device);
    MS_TRY(add(cx, device, x, y));
    b->idle(device, 100);
    MS_TRY(b->wait(cx, device, b->mark(device)));
    double took_s = b->now_s(device) - before_s;
    if (y[1] != 22 || before_s < 0 || before_s > 50 || took_s < 0 || took_s > 50)
        return ms_fail(cx, MS_ECHECK, MS_NOWHERE, "%g in %g s", y[1], took_s);
    return MS_OK;
}

static void memory_kernels_clock_and_signals(void **state)
{
    (void)state;
    ms_plan plan = ms_check_plan((long[]){1, 1, 1, 1, 2}, 1);
    ms_backend_job job = open_job(&plan, MS_REAL_FP64);
    ms_ctx *cx = test_cx();
    ASSERT_OK(job.backend->run(cx, &job, uses_the_device, &job), cx);
    assert_true(job.backend->carries(&job, 0) && job.backend->carries(&job, 1));
    assert_false(job.backend->carries(&job, 2) || job.backend->carries(&job, -1));
    job.backend->close(&job);
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    assert_false(sigismember(&blocked, SIGINT));
}

/* ---- failures ---- */

static ms_status rank_3_stays_away(ms_ctx *cx, ms_device_rank *device, long rank,
                                   void *state)
{
    (void)state;
    double x[2] = {0};
    ms_transfer t = reduction(MS_TRAFFIC_TP, "mlp.down", x, 2);
    return rank == 3 ? MS_OK : carry_out(cx, device, &t);
}

static ms_status only_rank_1_comes(ms_ctx *cx, ms_device_rank *device, long rank,
                                   void *state)
{
    (void)state;
    double x[2] = {0};
    ms_transfer t = reduction(MS_TRAFFIC_WORLD, "gradient norm", x, 2);
    return rank == 1 ? carry_out(cx, device, &t) : MS_OK;
}

static ms_status nobody_sends(ms_ctx *cx, ms_device_rank *device, long rank, void *state)
{
    (void)state;
    double x[2];
    ms_transfer t = {.kind = MS_TRANSFER_RECEIVE,
                     .scalar = MS_SCALAR_FP64,
                     .peer = 2,
                     .tag = 4,
                     .receive = x,
                     .count = 2,
                     .name = "activations"};
    return rank == 0 ? carry_out(cx, device, &t) : MS_OK;
}

static void who_waits_too_long_says_for_whom(void **state)
{
    (void)state;
    ASSERT_TEXT(failure_of(rank_3_stays_away, 0.1, MS_EIO),
                "error: rank 2: waited 0.1 s for mlp.down (all-reduce over tp): rank 3 "
                "has not come\n");
    ASSERT_TEXT(failure_of(only_rank_1_comes, 0.1, MS_EIO),
                "error: rank 1: waited 0.1 s for gradient norm (all-reduce over world): "
                "ranks 0, 2, 3 have not come\n");
    ASSERT_TEXT(
        failure_of(nobody_sends, 0.1, MS_EIO),
        "error: rank 0: waited 0.1 s for activations (receive from rank 2, tag 4): "
        "it was not sent\n");
}

/* Rank 2 fails while other ranks wait for it in an all-reduce, for its message and in
 * kernels, with transfers of other ranks under way. */
static ms_status rank_2_fails(ms_ctx *cx, ms_device_rank *device, long rank, void *state)
{
    (void)state;
    double x[2] = {0};
    ms_event ignored;
    ms_transfer t = reduction(MS_TRAFFIC_WORLD, "gradient norm", x, 2),
                receive = {.kind = MS_TRANSFER_RECEIVE,
                           .scalar = MS_SCALAR_FP64,
                           .peer = 2,
                           .receive = x},
                send = {.kind = MS_TRANSFER_SEND,
                        .scalar = MS_SCALAR_FP64,
                        .peer = 1,
                        .send = x,
                        .count = 2};
    if (rank == 2) {
        MS_TRY(ms_backend_loop.start(cx, device, &send, NULL, 0, &ignored));
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "the loss is %s", "nan");
        ms_hint(cx, "a smaller learning rate");
        return MS_EINPUT;
    }
    if (rank == 0)
        return carry_out(cx, device, &t);
    if (rank == 3)
        return carry_out(cx, device, &receive);
    while (add(cx, device, x, x) == MS_OK)
        sched_yield();
    return MS_OK; /* a failed run stays failed, whatever a rank returns */
}

static ms_status rank_1_aborts(ms_ctx *cx, ms_device_rank *device, long rank, void *state)
{
    (void)state;
    double x[2] = {0};
    ms_transfer t = reduction(MS_TRAFFIC_WORLD, "gradient norm", x, 2);
    if (rank != 1)
        return carry_out(cx, device, &t);
    ms_backend_loop.abort(device);
    return MS_OK;
}

static void one_failure_ends_all_and_is_told(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++)
        ASSERT_TEXT(failure_of(rank_2_fails, 0, MS_EINPUT),
                    "error: rank 2: the loss is nan\n  hint: a smaller learning rate\n");
    ASSERT_TEXT(failure_of(rank_1_aborts, 0, MS_EIO), "error: rank 1: gave up\n");
}

static ms_status counts_differ(ms_ctx *cx, ms_device_rank *device, long rank, void *state)
{
    (void)state;
    double x[5] = {0};
    ms_transfer t = reduction(MS_TRAFFIC_CP, "scores", x, rank == 0 ? 5 : 3);
    return rank % 2 == 0 ? carry_out(cx, device, &t) : MS_OK;
}

static ms_status lengths_differ(ms_ctx *cx, ms_device_rank *device, long rank,
                                void *state)
{
    (void)state;
    double x[5] = {0};
    ms_transfer t = {.kind = rank == 0 ? MS_TRANSFER_SEND : MS_TRANSFER_RECEIVE,
                     .scalar = MS_SCALAR_FP64,
                     .peer = 1 - rank,
                     .send = x,
                     .receive = x,
                     .count = rank == 0 ? 5 : 3,
                     .name = rank == 0 ? "output" : "input"};
    return rank < 2 ? carry_out(cx, device, &t) : MS_OK;
}

static void transfers_that_do_not_fit_each_other_are_told(void **state)
{
    (void)state;
    assert_non_null(strstr(failure_of(counts_differ, 0, MS_EIO),
                           " elements meets scores (all-reduce over cp) of "));
    ASSERT_TEXT(failure_of(lengths_differ, 0, MS_EIO),
                "error: rank 1: input (receive from rank 0, tag 0) of 3 elements gets "
                "output (send to rank 1, tag 0) of 5 elements\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_transfer_over_every_group),
        cmocka_unit_test(many_ranks),
        cmocka_unit_test(sums_are_taken_in_the_order_of_members),
        cmocka_unit_test(transfers_start_after_events),
        cmocka_unit_test(memory_kernels_clock_and_signals),
        cmocka_unit_test(who_waits_too_long_says_for_whom),
        cmocka_unit_test(one_failure_ends_all_and_is_told),
        cmocka_unit_test(transfers_that_do_not_fit_each_other_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
