/* Tests of training on GPUs with one MPI process per rank: losses, gradients and weights
 * against one rank. Each process has its own fake GPU (tests/support/cuda_fake.h), so
 * data goes through host memory. The test program starts itself again with mpiexec. */
#include "exec/launch/environment.h"
#include "tests/support/cuda_backend.h"
#include "tests/support/cuda_fake.h"
#include "tests/support/mpi_launch.h"
#include "tests/support/run_cases.h"
#include "tests/support/transfer_checks.h"

#include "tests/test.h"

#include <time.h>

#define NUM_RANKS 4

/* ---- ranks ---- */

static ms_cuda_backend backend_of(ms_cuda_transport transport)
{
    ms_cuda_backend backend = ms_test_cuda_backend(transport);
    backend.inner = NULL; /* NULL: chosen by the launcher's environment variables */
    ms_cuda_fake_begin(&(ms_cuda_fake_options){.seed = 3, .num_devices = 2});
    return backend;
}

static int run_plan(void)
{
    ms_ctx *cx = test_cx();
    ms_launch launch = ms_launch_environment();
    if (ms_cuda_inner_backend(&launch) != ms_mpi_backend())
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

/* Mock of NCCL's initialisation: prints a hash of the NCCL id that the rank got, then
 * fails, as fake communicators do not reach other processes. */
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
    fflush(stdout); /* mpiexec may end this process next */
    /* leaves time for the other ranks to print */
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
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
    if (strcmp(mode, "plan") == 0)
        code = run_plan();
    else if (strcmp(mode, "ids") == 0)
        code = (int)say_ids();
    else
        code = (int)use(ms_check_transfers, &backend);
    if (code == 0)
        printf("rank done\n");
    return code;
}

/* ---- tests ---- */

static const char *own_name;

static void check_all_done(int num_ranks, const char *mode)
{
    int code, num_done = 0;
    const char *said = ms_mpi_launch(num_ranks, own_name, mode, &code);
    for (const char *at = said; (at = strstr(at, "rank done\n")) != NULL; at++)
        num_done++;
    if (code != 0 || num_done != num_ranks)
        fail_msg("exit code %d, %d ranks done:\n%s", code, num_done, said);
}

static void gpus_over_mpi_equal_one_rank(void **state)
{
    (void)state;
    ms_mpi_skip_if_missing();
    check_all_done(2, "plan");
    check_all_done(NUM_RANKS, "transfers");
}

/* All ranks get the NCCL id of rank 0. Not all must have printed it: the first to fail
 * ends the others. */
static void all_ranks_get_the_id_of_rank_0(void **state)
{
    (void)state;
    ms_mpi_skip_if_missing();
    int code, num_said = 0;
    const char *said = ms_mpi_launch(NUM_RANKS, own_name, "ids", &code), *first = NULL;
    ASSERT_INT(code, MS_EIO);
    for (const char *at = said; (at = strstr(at, "the id is ")) != NULL; at++) {
        if (first == NULL)
            first = at;
        assert_int_equal(strncmp(at, first, strcspn(first, "\n") + 1), 0);
        num_said++;
    }
    assert_true(num_said > 1);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return run_as_rank(argv[1]);
    own_name = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpus_over_mpi_equal_one_rank),
        cmocka_unit_test(all_ranks_get_the_id_of_rank_0),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
