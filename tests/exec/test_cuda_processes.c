/* Runs on GPUs with a process a rank: over MPI, and over sockets where no MPI started them. The device is in the memory of each process, so data goes through host
 * memory. Losses, gradients and weights against those of one rank. The test starts itself again as the ranks. */
#include "exec/environment.h"
#include "tests/support/cuda_backend.h"
#include "tests/support/cuda_fake.h"
#include "tests/support/mpi_launch.h"
#include "tests/support/process_ranks.h"
#include "tests/support/run_cases.h"
#include "tests/support/transfer_checks.h"

#include "base/clock.h"
#include "tests/test.h"

#include <signal.h>
#include <time.h>

#define NUM_RANKS 4
#define NUM_PLANS 3

/* ---- as a rank ---- */

static ms_cuda_backend backend_of(ms_cuda_transport transport)
{
    ms_cuda_backend backend = ms_test_cuda_backend(transport);
    backend.inner = NULL; /* as started */
    ms_cuda_fake_begin(&(ms_cuda_fake_options){.seed = 3, .num_devices = 2});
    return backend;
}

/* The kernels of CPUs. */
static int run_plans(void)
{
    int num_wrong = 0;
    for (int i = 0; i < NUM_PLANS; i++) {
        ms_ctx *cx = test_cx();
        const ms_run_tolerance *how = i == 1 ? &ms_run_fp32 : &ms_run_fp64;
        ms_run_case c = ms_run_case_draw(cx, how, 61, i, NUM_RANKS);
        num_wrong += !ms_run_agrees(cx, &c, &ms_backend_tcp, how);
    }
    return num_wrong;
}

static int run_cuda(const ms_backend *want_inner)
{
    ms_ctx *cx = test_cx();
    ms_launch launch = ms_launch_environment();
    if (ms_cuda_inner_backend(&launch) != want_inner)
        return 1;
    ms_run_case c = ms_run_case_draw(cx, &ms_run_fp64, 71, 0, launch.size);
    ms_cuda_backend backend = backend_of(MS_CUDA_BY_HOST);
    int num_wrong = !ms_run_agrees(cx, &c, &backend.table, &ms_run_fp64);
    ms_cuda_fake_end();
    return num_wrong;
}

static ms_status use(ms_rank_main *main, ms_cuda_backend *backend)
{
    ms_ctx *cx = test_cx();
    ms_plan plan = ms_check_plan((long[]){1, 1, 1, 2, 2}, 1);
    ms_world world = ms_world_make(cx->arena, &plan);
    ms_backend_job job = {
        .backend = &backend->table, .world = &world, .type = MS_REAL_FP32};
    ms_status status = job.backend->open(cx, &job);
    if (status == MS_OK) {
        status = job.backend->run(cx, &job, main, &job);
        job.backend->close(&job);
    }
    ms_diag_print(cx, stdout);
    ms_cuda_fake_end();
    return status;
}

static ms_status reduce(ms_ctx *cx, ms_device_rank *device, const ms_backend *b)
{
    float *x = b->allocate(device, sizeof(float) * 3);
    ms_event done;
    ms_transfer sum = {.kind = MS_TRANSFER_ALL_REDUCE,
                       .scalar = MS_SCALAR_FP32,
                       .group = MS_TRAFFIC_WORLD,
                       .stream = MS_STREAM_TP,
                       .send = x,
                       .receive = x,
                       .count = 3,
                       .name = "mlp.down"};
    b->arrays->fill(device, MS_SCALAR_FP32, x, 1.0, 3);
    MS_TRY(b->start(cx, device, &sum, NULL, 0, &done));
    MS_TRY(b->wait(cx, device, done));
    b->release(device, x, sizeof(float) * 3);
    return MS_OK;
}

static ms_status rank_1_is_killed(ms_ctx *cx, ms_device_rank *device, long rank,
                                  void *state)
{
    const ms_backend *b = ((const ms_backend_job *)state)->backend;
    MS_TRY(reduce(cx, device, b));
    if (rank == 1)
        (void)raise(SIGKILL);
    return reduce(cx, device, b);
}

/* What NCCL would be told; communicators of the device in memory do not reach other processes. */
static ms_status say_id(ms_ctx *cx, ms_cuda_device *device, const ms_cuda_id *id,
                        int rank, int size, ms_cuda_comm **out)
{
    unsigned long sum = (unsigned long)size;
    (void)device;
    (void)rank;
    *out = NULL;
    for (int i = 0; i < MS_CUDA_ID_BYTES; i++)
        sum = sum * 31 + id->bytes[i];
    printf("the id is %lx\n", sum);
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL); /* others come, too */
    return ms_fail(cx, MS_EIO, MS_NOWHERE, "this was all");
}

static ms_cuda_driver driver;

static const ms_cuda_driver *driver_that_says_id(void)
{
    return &driver;
}

static ms_status say_ids(void)
{
    ms_cuda_backend backend = backend_of(MS_CUDA_BY_NCCL);
    ms_cuda_fake_begin(&(ms_cuda_fake_options){
        .seed = (uint64_t)ms_launch_environment().rank, .num_devices = NUM_RANKS});
    driver = ms_cuda_fake_driver;
    driver.open_comm = say_id;
    backend.driver = driver_that_says_id;
    return use(ms_check_transfers, &backend);
}

static int run_as_rank(const char *mode)
{
    ms_cuda_backend backend = backend_of(MS_CUDA_BY_HOST);
    int code = 0;
    if (strcmp(mode, "plans") == 0)
        code = run_plans();
    else if (strcmp(mode, "cuda") == 0)
        code = run_cuda(&ms_backend_tcp);
    else if (strcmp(mode, "mpi") == 0)
        code = run_cuda(ms_mpi_backend());
    else if (strcmp(mode, "ids") == 0)
        code = (int)say_ids();
    else
        code =
            (int)use(strcmp(mode, "killed") == 0 ? rank_1_is_killed : ms_check_transfers,
                     &backend);
    if (code == 0)
        printf("rank done\n");
    return code;
}

/* ---- as the test ---- */

static void check_all_done(ms_test_launcher launcher, const char *mode)
{
    ms_test_processes all;
    ms_test_start(&all, launcher, NUM_RANKS, 0, mode);
    ms_test_wait(&all);
    for (int rank = 0; rank < NUM_RANKS; rank++)
        ms_test_expect(&all, rank, 0, "rank done\n");
}

static void plans_over_sockets_equal_one_rank(void **state)
{
    (void)state;
    check_all_done(MS_TEST_TORCHRUN, "plans");
}

static void gpus_over_sockets_equal_one_rank(void **state)
{
    (void)state;
    check_all_done(MS_TEST_STORE, "cuda");
    check_all_done(MS_TEST_SLURM, "transfers");
}

static const char *own_name;

static void gpus_over_mpi_equal_one_rank(void **state)
{
    (void)state;
    ms_mpi_skip_if_missing();
    int code, num_done = 0;
    const char *said = ms_mpi_launch(2, own_name, "mpi", &code);
    for (const char *at = said; (at = strstr(at, "rank done\n")) != NULL; at++)
        num_done++;
    if (code != 0 || num_done != 2)
        fail_msg("exit code %d, %d ranks done:\n%s", code, num_done, said);
}

static void a_rank_that_is_killed_ends_all(void **state)
{
    (void)state;
    ms_test_processes all;
    double began_s = ms_clock_s();
    ms_test_start(&all, MS_TEST_TORCHRUN, NUM_RANKS, 0, "killed");
    ms_test_wait(&all);
    for (int rank = 0; rank < NUM_RANKS; rank++)
        ms_test_expect(&all, rank, rank == 1 ? 128 + SIGKILL : MS_EIO,
                       rank == 1 ? NULL : ": rank 1 has ");
    assert_true(ms_clock_s() - began_s < 0.5 * MS_DEFAULT_TIMEOUT_S);
}

/* The first to fail ends the others: on a very slow machine not all may come to say theirs. */
static void all_ranks_get_the_id_of_rank_0(void **state)
{
    (void)state;
    ms_test_processes all;
    const char *first = NULL;
    ms_test_start(&all, MS_TEST_TORCHRUN, NUM_RANKS, 0, "ids");
    ms_test_wait(&all);
    int num_said = 0;
    for (int rank = 0; rank < NUM_RANKS; rank++) {
        const char *said = strstr(all.rank[rank].said, "the id is ");
        ms_test_expect(&all, rank, MS_EIO, NULL);
        num_said += said != NULL;
        if (said != NULL && first != NULL)
            assert_int_equal(strncmp(said, first, strcspn(first, "\n") + 1), 0);
        first = said != NULL ? said : first;
    }
    assert_true(num_said > 1);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return run_as_rank(argv[1]);
    own_name = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_over_sockets_equal_one_rank),
        cmocka_unit_test(gpus_over_sockets_equal_one_rank),
        cmocka_unit_test(gpus_over_mpi_equal_one_rank),
        cmocka_unit_test(a_rank_that_is_killed_ends_all),
        cmocka_unit_test(all_ranks_get_the_id_of_rank_0),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
