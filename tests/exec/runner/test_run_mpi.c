/* Tests of training runs on the MPI backend: random plans of four MPI processes give the
 * results of one rank, and launcher environments and exit codes are handled. The test
 * program starts itself again with mpiexec. */
#include "tests/support/mpi_launch.h"
#include "tests/support/run_cases.h"

#include "tests/test.h"

#include <string.h>

#define NUM_RANKS 4
#define NUM_PLANS TEST_CASES(48, 12)

static const char *own_name;

/* Body of one MPI process: executes all random plans with one MPI initialisation. */
static int run_as_rank(void)
{
    ms_ctx *cx = test_cx();
    ms_plan first = ms_run_base_plan();
    first.size[MS_TP] = first.gpus = NUM_RANKS;
    ms_world world = ms_world_make(cx->arena, &first);
    ms_backend_job job = {
        .backend = ms_mpi_backend(), .world = &world, .type = MS_REAL_FP32};
    int num_wrong = 0;
    ASSERT_OK(job.backend->open(cx, &job), cx);
    for (int i = 0; i < NUM_PLANS; i++) {
        const ms_run_tolerance *const types[] = {&ms_run_fp64, &ms_run_fp32,
                                                 &ms_run_bf16};
        const ms_run_tolerance *how = types[i % 3];
        ms_run_case c = ms_run_case_draw(cx, how, 41, i, NUM_RANKS);
        num_wrong += !ms_run_agrees(cx, &c, ms_mpi_backend(), how);
    }
    job.backend->close(&job);
    printf("rank done, %d wrong\n", num_wrong);
    return num_wrong > 0;
}

static void check_all_done(const char *said, int code)
{
    int num_done = 0;
    for (const char *at = said; (at = strstr(at, "rank done, 0 wrong")) != NULL; at++)
        num_done++;
    if (code != 0 || num_done != NUM_RANKS)
        fail_msg("exit code %d, %d ranks done:\n%s", code, num_done, said);
}

static void random_plans_on_processes_equal_one_rank(void **state)
{
    (void)state;
    ms_mpi_skip_if_missing();
    int code;
    const char *said = ms_mpi_launch(NUM_RANKS, own_name, "rank", &code);
    check_all_done(said, code);
}

/* ---- the program ---- */

#define RUN "run --model llama-15m --tp 2 --seq 32 --global-batch 2 --steps 1"

static const char *program(void)
{
    const char *given = getenv("MESHSIM");
    return given != NULL ? given : "build/opt/meshsim";
}

/* Runs the program with environment `variables` and standard output redirected to `to`;
 * expects the exit code and a text in its output. */
static void expect_end(const char *variables, const char *to, int want_code,
                       const char *want)
{
    int code;
    char command[1000];
    snprintf(command, sizeof command,
             "ASAN_OPTIONS=detect_leaks=0 %s %s " RUN " --backend mpi 2>&1 %s </dev/null",
             variables, program(), to);
    const char *said = ms_test_shell(command, &code);
    if (code != want_code || strstr(said, want) == NULL)
        fail_msg("%s: exit code %d, not %d, or not \"%s\" in\n%s", command, code,
                 want_code, want, said);
}

static void a_lost_result_is_no_success(void **state)
{
    (void)state;
    int code;
    ms_mpi_skip_if_missing();
    expect_end("", ">/dev/full", MS_EIO,
               "error: cannot write standard output: No space left on device\n");
    expect_end("", ">&-", MS_EIO,
               "error: cannot write standard output: Bad file descriptor\n");
    expect_end("", "", MS_OK, "llama-15m on 2 ranks of cpu");
    const char *said = ms_mpi_launch(2, program(), RUN " -o /dev/full", &code);
    ASSERT_INT(code, MS_EIO);
    assert_non_null(strstr(said, "error: cannot write /dev/full: No space left"));
}

/* Launcher variables that name two processes, where MPI itself sees one process only, are
 * refused. */
static void a_process_that_mpi_finds_alone_is_refused(void **state)
{
    (void)state;
    ms_mpi_skip_if_missing();
    expect_end("PMI_RANK=1 PMI_SIZE=2", "", MS_EINPUT,
               "error: mpiexec started this process as rank 1 of 2, but MPI knows of no "
               "other\n");
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return run_as_rank();
    own_name = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_plans_on_processes_equal_one_rank),
        cmocka_unit_test(a_lost_result_is_no_success),
        cmocka_unit_test(a_process_that_mpi_finds_alone_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
