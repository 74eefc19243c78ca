/* Random plans of four ranks as processes of MPI give what one rank gives. The test starts itself again with mpiexec. */
#include "tests/support/mpi_launch.h"
#include "tests/support/run_cases.h"

#include "base/clock.h"
#include "exec/rendezvous.h"
#include "tests/test.h"

#include <string.h>

#define NUM_RANKS 4
#define NUM_PLANS TEST_CASES(48, 12)

static const char *own_name;

/* MPI is open from the first job on: it begins once in a process. */
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
        const ms_run_tolerance *how = i % 2 == 0 ? &ms_run_fp64 : &ms_run_fp32;
        ms_run_case c = ms_run_case_draw(cx, how, 41, i, NUM_RANKS);
        num_wrong += !ms_run_agrees(cx, &c, ms_mpi_backend(), how);
    }
    job.backend->close(&job);
    printf("rank done, %d wrong\n", num_wrong);
    return num_wrong > 0;
}

/* Such processes join once. */
static int run_as_joined_rank(void)
{
    ms_ctx *cx = test_cx();
    ms_run_case c = ms_run_case_draw(cx, &ms_run_fp64, 43, 0, NUM_RANKS);
    bool agrees = ms_run_agrees(cx, &c, ms_mpi_backend(), &ms_run_fp64);
    printf("rank done, %d wrong\n", !agrees);
    return !agrees;
}

/* The last one is gone when rank 0 already waits for it within MPI. */
static int run_as_rank_that_may_leave(void)
{
    ms_rendezvous r;
    ms_meeting_point at;
    ms_launch launch = ms_launch_environment();
    char text[MS_RENDEZVOUS_TEXT] = "";
    if (launch.rank < NUM_RANKS - 1)
        return run_as_joined_rank();
    if (!ms_launch_meeting_point(&at) ||
        ms_rendezvous_open(test_cx(), &launch, &at, 20.0, NULL, &r) != MS_OK)
        return 1;
    while (strcmp(text, "come") != 0)
        if (ms_rendezvous_tell(test_cx(), &r, launch.rank, text) != MS_OK)
            return 1;
    printf("the last rank leaves\n");
    return 0;
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

/* Ranks that find each other by the variables of torchrun. */
static void processes_that_joined_are_ranks_as_well(void **state)
{
    (void)state;
    int code;
    ms_mpi_skip_if_missing();
    ms_mpi_skip_if_not_joining();
    const char *said = ms_mpi_launch_joined(NUM_RANKS, own_name, "joined", &code);
    check_all_done(said, code);
}

static void ranks_end_when_one_leaves_before_it_joins(void **state)
{
    (void)state;
    int code;
    ms_mpi_skip_if_missing();
    ms_mpi_skip_if_not_joining();
    double began_s = ms_clock_s();
    const char *said = ms_mpi_launch_joined(NUM_RANKS, own_name, "leaving", &code);
    bool is_told = strstr(said, "rank 0: rank 3 has ended while rank 3 joins") != NULL;
    if (code != MS_EIO || !is_told || strstr(said, "the last rank leaves") == NULL)
        fail_msg("exit code %d:\n%s", code, said);
    assert_true(ms_clock_s() - began_s < 0.5 * MS_DEFAULT_TIMEOUT_S);
}

static int run_as(const char *what)
{
    if (strcmp(what, "leaving") == 0)
        return run_as_rank_that_may_leave();
    return strcmp(what, "joined") == 0 ? run_as_joined_rank() : run_as_rank();
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return run_as(argv[1]);
    own_name = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_plans_on_processes_equal_one_rank),
        cmocka_unit_test(processes_that_joined_are_ranks_as_well),
        cmocka_unit_test(ranks_end_when_one_leaves_before_it_joins)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
