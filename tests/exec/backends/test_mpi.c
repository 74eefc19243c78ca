/* Tests of the MPI backend, whose ranks are processes: transfers, failures and messages
 * of ranks. The test program starts itself again with mpiexec and checks what its ranks
 * print. Skipped without MPI or mpiexec. */
#include "exec/launch/environment.h"
#include "tests/support/mpi_launch.h"
#include "tests/support/transfer_checks.h"

#include "tests/test.h"

#include <limits.h>

#define NUM_RANKS 4

static const char *own_name;

/* ---- ranks ---- */

static ms_status carry_out(ms_ctx *cx, const ms_backend *b, ms_device_rank *device,
                           const ms_transfer *t)
{
    ms_event done;
    MS_TRY(b->start(cx, device, t, NULL, 0, &done));
    return b->wait(cx, device, done);
}

static ms_status reduce(ms_ctx *cx, ms_device_rank *device, const ms_backend_job *job,
                        ms_traffic_group group)
{
    double x[2] = {0};
    ms_transfer t = {.kind = MS_TRANSFER_ALL_REDUCE,
                     .group = (unsigned char)group,
                     .send = x,
                     .receive = x,
                     .count = 2,
                     .name = "mlp.down"};
    return carry_out(cx, job->backend, device, &t);
}

/* Starts a send of 2^31 elements, more than MPI can count: it must be refused without
 * reading them. */
static ms_status start_too_much(ms_ctx *cx, ms_device_rank *device,
                                const ms_backend_job *job)
{
    ms_transfer t = {.kind = MS_TRANSFER_SEND, .count = (long)INT_MAX + 1};
    ms_event done;
    ms_status status = job->backend->start(cx, device, &t, NULL, 0, &done);
    return status == MS_EIO ? MS_OK
                            : ms_fail(cx, MS_ECHECK, MS_NOWHERE, "2^31 were sent");
}

static ms_status rank_3_stays_away(ms_ctx *cx, ms_device_rank *device, long rank,
                                   void *state)
{
    return rank == 3 ? start_too_much(cx, device, state)
                     : reduce(cx, device, state, MS_TRAFFIC_TP);
}

static ms_status rank_2_fails(ms_ctx *cx, ms_device_rank *device, long rank, void *state)
{
    if (rank != 2)
        return reduce(cx, device, state, MS_TRAFFIC_WORLD);
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "the loss is %s", "nan");
    ms_hint(cx, "a smaller learning rate");
    return MS_EINPUT;
}

static ms_status sends_too_little(ms_ctx *cx, ms_device_rank *device, long rank,
                                  void *state)
{
    const ms_backend_job *job = state;
    double x[5] = {0};
    ms_transfer t = {.kind = rank == 0 ? MS_TRANSFER_SEND : MS_TRANSFER_RECEIVE,
                     .peer = 1 - rank,
                     .send = x,
                     .receive = x,
                     .count = rank == 0 ? 3 : 5,
                     .name = "input"};
    if (rank < 2 && carry_out(cx, job->backend, device, &t) != MS_OK)
        /* the aborted run must fail although this rank returns MS_OK */
        job->backend->abort(device);
    return MS_OK;
}

typedef struct rank_mode {
    const char *name;
    ms_rank_main *main;
    long tp; /* tp size; the test runs 2 x tp ranks */
    ms_real_type type;
} rank_mode;
static const rank_mode modes[] = {
    {"transfers", ms_check_transfers, 2, MS_REAL_FP32},
    {"bf16", ms_check_transfers, 2, MS_REAL_BF16},
    {"late", rank_3_stays_away, 2, MS_REAL_FP32},
    {"fails", rank_2_fails, 2, MS_REAL_FP32},
    {"short", sends_too_little, 2, MS_REAL_FP32},
    {"size", ms_check_transfers, 4, MS_REAL_FP32},
};

static int run_as_rank(const char *name)
{
    const rank_mode *mode = modes;
    while (strcmp(mode->name, name) != 0)
        mode++;
    ms_ctx *cx = test_cx();
    ms_plan plan = ms_check_plan((long[]){1, 1, 1, 2, mode->tp}, 1);
    ms_world world = ms_world_make(cx->arena, &plan);
    ms_backend_job job = {
        .backend = ms_mpi_backend(), .world = &world, .type = mode->type};
    job.timeout_s = mode->main == rank_3_stays_away ? 0.2 : 0;
    ms_status status = job.backend->open(cx, &job);
    if (status == MS_OK) {
        long rank = ms_launch_environment().rank;
        if (!job.backend->carries(&job, rank) || job.backend->carries(&job, rank + 1))
            status = ms_fail(cx, MS_ECHECK, MS_NOWHERE, "carries another rank");
        else
            status = job.backend->run(cx, &job, mode->main, &job);
        job.backend->close(&job);
    }
    if (status == MS_OK)
        printf("rank done\n");
    ms_diag_print(cx, stdout);
    return (int)status;
}

/* ---- tests ---- */

static int count_of(const char *text, const char *part)
{
    int count = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part))
        count++;
    return count;
}

/* Runs the ranks in `mode`; expects the exit code, and `part` in their output `times`
 * times (0: at least once). */
static void expect(const char *mode, const char *part, int times, int want_code)
{
    int code;
    const char *said = ms_mpi_launch(NUM_RANKS, own_name, mode, &code);
    int found = count_of(said, part);
    if (found == 0 || (times > 0 && found != times) || code != want_code)
        fail_msg("%s: exit code %d, not %d; \"%s\" %d times, not %d, in\n%s", mode, code,
                 want_code, part, found, times, said);
}

static void every_transfer_over_every_group(void **state)
{
    (void)state;
    ms_mpi_skip_if_missing();
    expect("transfers", "rank done\n", 0, 0); /* exit code 0: all ranks succeeded */
    expect("bf16", "rank done\n", 0, 0);
}

static void who_waits_too_long_says_for_whom(void **state)
{
    (void)state;
    ms_mpi_skip_if_missing();
    expect(
        "late",
        "error: rank 2: waited 0.2 s for mlp.down (all-reduce over tp): rank 3 has not "
        "come\n",
        1, MS_EIO);
}

static void one_failure_ends_all_and_is_told(void **state)
{
    (void)state;
    ms_mpi_skip_if_missing();
    expect("fails", "error: rank 2: the loss is nan\n  hint: a smaller learning rate\n",
           1, MS_EINPUT);
    expect("short",
           "error: rank 1: input (receive from rank 0, tag 0) of 5 elements gets 3\n", 1,
           MS_EIO);
}

static void a_plan_of_another_size_is_refused(void **state)
{
    (void)state;
    ms_mpi_skip_if_missing();
    expect("size",
           "error: the plan has 8 ranks, but 4 MPI ranks were started\n  hint: start it "
           "with mpiexec -n 8, or use --backend loop\n",
           0, MS_EINPUT); /* the first failing process ends the others */
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return run_as_rank(argv[1]);
    own_name = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_transfer_over_every_group),
        cmocka_unit_test(who_waits_too_long_says_for_whom),
        cmocka_unit_test(one_failure_ends_all_and_is_told),
        cmocka_unit_test(a_plan_of_another_size_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
