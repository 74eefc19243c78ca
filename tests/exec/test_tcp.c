/* Ranks as processes with nothing but sockets between them: every transfer over every group, and what becomes of a run in which a rank fails, is late, is
 * killed or never comes. The test starts itself again as the ranks. */
#include "exec/environment.h"
#include "tests/support/process_ranks.h"
#include "tests/support/transfer_checks.h"

#include "base/clock.h"
#include "tests/test.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#define NUM_RANKS 4
#define SOON_S    30.0 /* half the default of what ranks wait for each other */

/* ---- as a rank ---- */

static ms_status carry_out(ms_ctx *cx, ms_device_rank *device, const ms_transfer *t)
{
    ms_event done;
    MS_TRY(ms_backend_tcp.start(cx, device, t, NULL, 0, &done));
    return ms_backend_tcp.wait(cx, device, done);
}

static ms_status reduce(ms_ctx *cx, ms_device_rank *device, ms_traffic_group group,
                        long count)
{
    double x[8] = {0};
    ms_transfer t = {.kind = MS_TRANSFER_ALL_REDUCE,
                     .scalar = MS_SCALAR_FP64,
                     .group = (unsigned char)group,
                     .send = x,
                     .receive = x,
                     .count = count,
                     .name = "mlp.down"};
    return carry_out(cx, device, &t);
}

static ms_status rank_3_stays_away(ms_ctx *cx, ms_device_rank *device, long rank,
                                   void *state)
{
    (void)state;
    if (rank == 3) /* until the others are through */
        nanosleep(&(struct timespec){.tv_sec = 3}, NULL);
    MS_TRY(rank == 3 ? MS_OK : reduce(cx, device, MS_TRAFFIC_TP, 2));
    if (rank < 2) /* so that rank 2 is the first to have waited too long */
        nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    return MS_OK;
}

static ms_status rank_2_fails(ms_ctx *cx, ms_device_rank *device, long rank, void *state)
{
    (void)state;
    if (rank != 2)
        return reduce(cx, device, MS_TRAFFIC_WORLD, 2);
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "the loss is %s", "nan");
    ms_hint(cx, "a smaller learning rate");
    return MS_EINPUT;
}

static ms_status rank_1_aborts(ms_ctx *cx, ms_device_rank *device, long rank, void *state)
{
    (void)state;
    if (rank != 1)
        return reduce(cx, device, MS_TRAFFIC_WORLD, 2);
    ms_backend_tcp.abort(device);
    return MS_OK;
}

static ms_status rank_2_is_killed(ms_ctx *cx, ms_device_rank *device, long rank,
                                  void *state)
{
    (void)state;
    MS_TRY(reduce(cx, device, MS_TRAFFIC_WORLD, 2));
    if (rank == 2)
        (void)raise(SIGKILL);
    return reduce(cx, device, MS_TRAFFIC_WORLD, 2);
}

static ms_status counts_differ(ms_ctx *cx, ms_device_rank *device, long rank, void *state)
{
    (void)state;
    return reduce(cx, device, MS_TRAFFIC_WORLD, rank == 1 ? 5 : 3);
}

static ms_status sends_too_little(ms_ctx *cx, ms_device_rank *device, long rank,
                                  void *state)
{
    (void)state;
    double x[5] = {0};
    ms_transfer t = {.kind = rank == 0 ? MS_TRANSFER_SEND : MS_TRANSFER_RECEIVE,
                     .scalar = MS_SCALAR_FP64,
                     .peer = 1 - rank,
                     .send = x,
                     .receive = x,
                     .count = rank == 0 ? 3 : 5,
                     .name = rank == 0 ? "output" : "input"};
    return rank < 2 ? carry_out(cx, device, &t) : MS_OK;
}

static volatile int stopped;

static void stop(int signal_number)
{
    (void)signal_number;
    stopped = 1;
}

/* All but rank 3 wait, and get the signal. */
static ms_status is_interrupted(ms_ctx *cx, ms_device_rank *device, long rank,
                                void *state)
{
    (void)state;
    if (rank == 3)
        nanosleep(&(struct timespec){.tv_sec = 3}, NULL);
    else
        (void)alarm(1);
    return rank == 3 ? MS_OK : reduce(cx, device, MS_TRAFFIC_WORLD, 2);
}

#define LARGE (1L << 20) /* numbers: more than systems keep for a connection */

static void number_all(double *x, long from)
{
    for (long i = 0; i < LARGE; i++)
        x[i] = (double)(from * LARGE + i);
}

/* All send to all at once, before anybody receives. */
static ms_status all_send_much(ms_ctx *cx, ms_device_rank *device, long rank, void *state)
{
    (void)state;
    double *x = MS_NEW_ARRAY(cx->arena, LARGE, double);
    ms_event ignored;
    ms_transfer t = {.scalar = MS_SCALAR_FP64, .send = x, .receive = x, .count = LARGE};
    number_all(x, rank);
    for (t.peer = 0; t.peer < NUM_RANKS; t.peer++) {
        t.kind = MS_TRANSFER_SEND;
        if (t.peer != rank)
            MS_TRY(ms_backend_tcp.start(cx, device, &t, NULL, 0, &ignored));
    }
    for (t.peer = 0; t.peer < NUM_RANKS; t.peer++) {
        t.kind = MS_TRANSFER_RECEIVE;
        if (t.peer == rank)
            continue;
        MS_TRY(carry_out(cx, device, &t));
        for (long i = 0; i < LARGE; i++)
            if (x[i] != (double)(t.peer * LARGE + i))
                return ms_fail(cx, MS_ECHECK, MS_NOWHERE, "number %ld of rank %ld is %g",
                               i, t.peer, x[i]);
    }
    return MS_OK;
}

/* What has been received is the same on all ranks to the bit, whatever the order in which they come. */
static ms_status sums_have_an_order(ms_ctx *cx, ms_device_rank *device, long rank,
                                    void *state)
{
    static const double given[NUM_RANKS] = {1e16, 1.0, -1e16, 3.0};
    (void)state;
    for (int i = 0; i < 50; i++) {
        double x = given[rank];
        ms_transfer t = {.kind = MS_TRANSFER_ALL_REDUCE,
                         .scalar = MS_SCALAR_FP64,
                         .group = MS_TRAFFIC_WORLD,
                         .send = &x,
                         .receive = &x,
                         .count = 1};
        nanosleep(&(struct timespec){.tv_nsec = (rank * 7 + i * 3) % 5 * 200000}, NULL);
        MS_TRY(carry_out(cx, device, &t));
        if (x != 3.0) /* 1e16 + 1 is 1e16 */
            return ms_fail(cx, MS_ECHECK, MS_NOWHERE, "the sum is %g", x);
    }
    return MS_OK;
}

typedef struct rank_mode {
    const char *name;
    ms_rank_main *main;
    double timeout_s;
} rank_mode;
static const rank_mode modes[] = {
    {"transfers", ms_check_transfers, 0}, {"late", rank_3_stays_away, 2.0},
    {"fails", rank_2_fails, 0},           {"aborts", rank_1_aborts, 0},
    {"killed", rank_2_is_killed, 0},      {"counts", counts_differ, 0},
    {"short", sends_too_little, 0},       {"interrupted", is_interrupted, 0},
    {"large", all_send_much, 0},          {"sums", sums_have_an_order, 0},
    {"missing", ms_check_transfers, 2.0}, {"size", ms_check_transfers, 0},
    {"gives up", ms_check_transfers, 0},
};

/* Twice, so that a rank that is ahead comes to the next job while others are at this one. */
static ms_status run_jobs(ms_ctx *cx, const rank_mode *mode)
{
    bool wrong_size = strcmp(mode->name, "size") == 0;
    ms_plan plan = ms_check_plan((long[]){1, 1, 1, 2, wrong_size ? 4 : 2}, 1);
    ms_world world = ms_world_make(cx->arena, &plan);
    ms_status status = MS_OK;
    int num_jobs = strcmp(mode->name, "gives up") == 0 ? 1 : 2;
    for (int i = 0; i < num_jobs && status == MS_OK; i++) {
        ms_backend_job job = {.backend = &ms_backend_tcp,
                              .world = &world,
                              .type = MS_REAL_FP64,
                              .timeout_s = mode->timeout_s,
                              .interrupted = &stopped};
        MS_TRY(job.backend->open(cx, &job));
        long rank = ms_launch_environment().rank;
        if (!job.backend->carries(&job, rank) || job.backend->carries(&job, rank + 1))
            status = ms_fail(cx, MS_ECHECK, MS_NOWHERE, "carries another rank");
        bool gives_up = strcmp(mode->name, "gives up") == 0 && rank == 1;
        for (int n = 0; n < 2 && status == MS_OK && !gives_up; n++)
            status = job.backend->run(cx, &job, mode->main, &job);
        job.backend->close(&job);
    }
    return status;
}

static int run_as_rank(const char *name)
{
    const rank_mode *mode = modes;
    struct sigaction action = {.sa_handler = stop};
    while (strcmp(mode->name, name) != 0)
        mode++;
    ASSERT_INT(sigaction(SIGALRM, &action, NULL), 0);
    ms_ctx *cx = test_cx();
    ms_status status = run_jobs(cx, mode);
    if (status == MS_OK)
        printf("rank done\n");
    ms_diag_print(cx, stdout);
    return (int)status;
}

/* ---- as the test ---- */

static void launch(ms_test_processes *all, ms_test_launcher launcher, const char *mode)
{
    double began_s = ms_clock_s();
    ms_test_start(all, launcher, NUM_RANKS, 0, mode);
    ms_test_wait(all);
    if (ms_clock_s() - began_s > SOON_S)
        fail_msg("%s: %g s", mode, ms_clock_s() - began_s);
}

static void expect_all(const ms_test_processes *all, int code, const char *text)
{
    for (int rank = 0; rank < all->num; rank++)
        ms_test_expect(all, rank, code, text);
}

static void every_transfer_over_every_group(void **state)
{
    static const ms_test_launcher launchers[] = {MS_TEST_TORCHRUN, MS_TEST_NETWORK,
                                                 MS_TEST_SLURM, MS_TEST_STORE};
    ms_test_processes all;
    (void)state;
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        launch(&all, launchers[i], "transfers");
        expect_all(&all, MS_OK, "rank done\n");
    }
}

static void sums_are_taken_in_the_order_of_members(void **state)
{
    ms_test_processes all;
    (void)state;
    launch(&all, MS_TEST_TORCHRUN, "sums");
    expect_all(&all, MS_OK, "rank done\n");
}

static void all_may_send_at_once(void **state)
{
    ms_test_processes all;
    (void)state;
    launch(&all, MS_TEST_TORCHRUN, "large");
    expect_all(&all, MS_OK, "rank done\n");
}

static void who_waits_too_long_says_for_whom(void **state)
{
    ms_test_processes all;
    (void)state;
    launch(&all, MS_TEST_TORCHRUN, "late");
    ms_test_expect(&all, 2, MS_EIO,
                   "error: rank 2: waited 2 s for mlp.down (all-reduce over tp): rank "
                   "3 has not come\n");
}

static void one_failure_ends_all_and_is_told(void **state)
{
    ms_test_processes all;
    (void)state;
    launch(&all, MS_TEST_TORCHRUN, "fails");
    for (int rank = 0; rank < NUM_RANKS; rank++)
        if (rank != 2)
            ms_test_expect(&all, rank, MS_EIO, ": rank 2 has failed\n");
    ms_test_expect(&all, 2, MS_EINPUT,
                   "error: rank 2: the loss is nan\n  hint: a smaller learning rate\n");
    launch(&all, MS_TEST_STORE, "aborts");
    ms_test_expect(&all, 0, MS_EIO, "error: rank 0: rank 1 has failed\n");
    ms_test_expect(&all, 1, MS_EIO, "error: rank 1: gave up\n");
}

static void a_rank_that_is_killed_ends_all(void **state)
{
    ms_test_processes all;
    (void)state;
    launch(&all, MS_TEST_TORCHRUN, "killed");
    for (int rank = 0; rank < NUM_RANKS; rank++)
        ms_test_expect(&all, rank, rank == 2 ? 128 + SIGKILL : MS_EIO,
                       rank == 2 ? NULL : ": rank 2 has ");
}

static void a_rank_that_closes_without_a_run_ends_all(void **state)
{
    ms_test_processes all;
    (void)state;
    launch(&all, MS_TEST_TORCHRUN, "gives up");
    ms_test_expect(&all, 0, MS_EIO, "error: rank 0: rank 1 has failed\n");
    ms_test_expect(&all, 2, MS_EIO, "error: rank 2: rank ");
}

static void a_rank_that_never_comes_is_named(void **state)
{
    static const ms_test_launcher launchers[] = {MS_TEST_TORCHRUN, MS_TEST_STORE};
    ms_test_processes all;
    (void)state;
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        ms_test_start(&all, launchers[i], NUM_RANKS, 1, "missing");
        ms_test_wait(&all);
        ms_test_expect(&all, 0, MS_EIO,
                       "rank 0: waited 2 s for all ranks: 1 of 4 did not come, rank 3 "
                       "first\n");
        ms_test_expect(&all, 1, MS_EIO, "rank 1: rank 0 is gone, or silent for 2 s\n");
    }
}

static void transfers_that_do_not_fit_each_other_are_told(void **state)
{
    ms_test_processes all;
    (void)state;
    launch(&all, MS_TEST_TORCHRUN, "counts");
    ms_test_expect(&all, 1, MS_EIO, NULL);
    bool is_told = false;
    for (int rank = 0; rank < NUM_RANKS; rank++)
        is_told = is_told ||
                  strstr(all.rank[rank].said,
                         " elements meets mlp.down (all-reduce over world) of ") != NULL;
    assert_true(is_told);
    launch(&all, MS_TEST_TORCHRUN, "short");
    ms_test_expect(&all, 1, MS_EIO,
                   "error: rank 1: input (receive from rank 0, tag 0) of 5 elements gets "
                   "output (send to rank 1, tag 0) of 3 elements\n");
}

static void who_is_interrupted_waits_no_more(void **state)
{
    ms_test_processes all;
    (void)state;
    launch(&all, MS_TEST_TORCHRUN, "interrupted");
    for (int rank = 0; rank < 3; rank++)
        ms_test_expect(&all, rank, MS_EINTERRUPTED, NULL);
}

static void a_plan_of_another_size_is_refused(void **state)
{
    ms_test_processes all;
    (void)state;
    launch(&all, MS_TEST_TORCHRUN, "size");
    expect_all(&all, MS_EINPUT,
               "error: the plan has 8 ranks, but 4 processes were started\n");
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return run_as_rank(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_transfer_over_every_group),
        cmocka_unit_test(sums_are_taken_in_the_order_of_members),
        cmocka_unit_test(all_may_send_at_once),
        cmocka_unit_test(who_waits_too_long_says_for_whom),
        cmocka_unit_test(one_failure_ends_all_and_is_told),
        cmocka_unit_test(a_rank_that_is_killed_ends_all),
        cmocka_unit_test(a_rank_that_closes_without_a_run_ends_all),
        cmocka_unit_test(a_rank_that_never_comes_is_named),
        cmocka_unit_test(transfers_that_do_not_fit_each_other_are_told),
        cmocka_unit_test(who_is_interrupted_waits_no_more),
        cmocka_unit_test(a_plan_of_another_size_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
