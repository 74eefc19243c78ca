/* Tests of finding out from environment variables which launcher (mpiexec, srun, ...)
 * started a process. */
#include "exec/launch/environment.h"

#include "tests/test.h"

static void clear(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK",
                                        "OMPI_COMM_WORLD_SIZE",
                                        "OMPI_COMM_WORLD_LOCAL_RANK",
                                        "PMI_RANK",
                                        "PMI_SIZE",
                                        "MPI_LOCALRANKID",
                                        "RANK",
                                        "WORLD_SIZE",
                                        "LOCAL_RANK",
                                        "SLURM_PROCID",
                                        "SLURM_NTASKS",
                                        "SLURM_LOCALID",
                                        "SLURM_STEP_ID",
                                        "SLURM_NODEID",
                                        "SLURM_STEP_TASKS_PER_NODE",
                                        "OMPI_COMM_WORLD_LOCAL_SIZE",
                                        "MPI_LOCALNRANKS",
                                        "LOCAL_WORLD_SIZE",
                                        "MASTER_ADDR",
                                        "MESHSIM_RANK",
                                        "MESHSIM_SIZE",
                                        "MESHSIM_LOCAL_RANK",
                                        "MESHSIM_LOCAL_SIZE"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
}

/* Sets environment variables from alternating names and values, up to NULL. */
static void set(const char *const *variables)
{
    clear();
    for (; *variables != NULL; variables += 2)
        setenv(variables[0], variables[1], 1);
}

static void check(const char *const *variables, ms_launch want)
{
    set(variables);
    ms_launch got = ms_launch_environment();
    ASSERT_TEXT(ms_launcher_names[got.launcher], ms_launcher_names[want.launcher]);
    ASSERT_INT(got.rank, want.rank);
    ASSERT_INT(got.size, want.size);
    ASSERT_INT(got.local_rank, want.local_rank);
    ASSERT_INT(got.by_open_mpi, want.by_open_mpi);
    ASSERT_INT(got.local_size, want.local_size);
}

#define VARIABLES(...)                                                                   \
    (const char *const[])                                                                \
    {                                                                                    \
        __VA_ARGS__, NULL                                                                \
    }

static void each_launcher_is_known(void **state)
{
    (void)state;
    check(VARIABLES("HOME", "/"), (ms_launch){MS_LAUNCHER_NONE, 0, 1, -1, false, 0});
    check(VARIABLES("OMPI_COMM_WORLD_RANK", "3", "OMPI_COMM_WORLD_SIZE", "4",
                    "OMPI_COMM_WORLD_LOCAL_RANK", "1"),
          (ms_launch){MS_LAUNCHER_MPI, 3, 4, 1, true, 0});
    check(VARIABLES("PMI_RANK", "0", "PMI_SIZE", "2"),
          (ms_launch){MS_LAUNCHER_MPI, 0, 2, -1, false, 0});
    check(VARIABLES("RANK", "8", "WORLD_SIZE", "16", "LOCAL_RANK", "0"),
          (ms_launch){MS_LAUNCHER_TORCHRUN, 8, 16, 0, false, 0});
    check(VARIABLES("SLURM_PROCID", "5", "SLURM_NTASKS", "6", "SLURM_STEP_ID", "0",
                    "SLURM_LOCALID", "2"),
          (ms_launch){MS_LAUNCHER_SLURM, 5, 6, 2, false, 0});
    check(VARIABLES("MESHSIM_RANK", "1", "MESHSIM_SIZE", "3", "MESHSIM_LOCAL_RANK", "1",
                    "MESHSIM_LOCAL_SIZE", "2"),
          (ms_launch){MS_LAUNCHER_SCRIPT, 1, 3, 1, false, 2});
}

static void the_nearest_launcher_counts(void **state)
{
    (void)state;
    check(VARIABLES("SLURM_PROCID", "0", "SLURM_NTASKS", "1", "SLURM_STEP_ID", "0",
                    "OMPI_COMM_WORLD_RANK", "1", "OMPI_COMM_WORLD_SIZE", "2"),
          (ms_launch){MS_LAUNCHER_MPI, 1, 2, -1, true, 0});
}

static void what_is_not_a_rank_of_a_size_is_no_launcher(void **state)
{
    (void)state;
    const ms_launch none = {MS_LAUNCHER_NONE, 0, 1, -1, false, 0};
    check(VARIABLES("OMPI_COMM_WORLD_RANK", "3"), none);
    check(VARIABLES("OMPI_COMM_WORLD_RANK", "4", "OMPI_COMM_WORLD_SIZE", "4"), none);
    check(VARIABLES("OMPI_COMM_WORLD_RANK", "-1", "OMPI_COMM_WORLD_SIZE", "4"), none);
    check(VARIABLES("OMPI_COMM_WORLD_RANK", "1x", "OMPI_COMM_WORLD_SIZE", "4"), none);
    check(VARIABLES("PMI_RANK", "", "PMI_SIZE", "99999999999999999999"), none);
    /* variables that many programs set */
    check(VARIABLES("RANK", "1", "WORLD_SIZE", "2"), none);
    /* variables of a batch script's own process */
    check(VARIABLES("SLURM_PROCID", "0", "SLURM_NTASKS", "8"), none);
}

static void ranks_of_a_node_are_counted(void **state)
{
    (void)state;
    check(VARIABLES("OMPI_COMM_WORLD_RANK", "1", "OMPI_COMM_WORLD_SIZE", "8",
                    "OMPI_COMM_WORLD_LOCAL_SIZE", "4"),
          (ms_launch){MS_LAUNCHER_MPI, 1, 8, -1, true, 4});
    check(VARIABLES("RANK", "1", "WORLD_SIZE", "8", "MASTER_ADDR", "a",
                    "LOCAL_WORLD_SIZE", "2"),
          (ms_launch){MS_LAUNCHER_TORCHRUN, 1, 8, -1, false, 2});
    static const char *const nodes[] = {"0", "1", "2", "3", "4"};
    const long want[] = {2, 2, 1, 3, 0};
    for (int i = 0; i < 5; i++)
        check(VARIABLES("SLURM_PROCID", "0", "SLURM_NTASKS", "8", "SLURM_STEP_ID", "0",
                        "SLURM_NODEID", nodes[i], "SLURM_STEP_TASKS_PER_NODE",
                        "2(x2),1,3"),
              (ms_launch){MS_LAUNCHER_SLURM, 0, 8, -1, false, want[i]});
    check(VARIABLES("SLURM_PROCID", "0", "SLURM_NTASKS", "8", "SLURM_STEP_ID", "0",
                    "SLURM_NODEID", "0", "SLURM_STEP_TASKS_PER_NODE", "x"),
          (ms_launch){MS_LAUNCHER_SLURM, 0, 8, -1, false, 0});
}

static void what_is_missing_is_told(void **state)
{
    (void)state;
    ms_arena *arena = test_cx()->arena;
    clear();
    assert_null(ms_launch_unclear(arena));
    setenv("RANK", "1", 1);
    ASSERT_TEXT(ms_launch_unclear(arena),
                "RANK is \"1\", WORLD_SIZE is not set, LOCAL_RANK is not set");
    clear();
    setenv("PMI_RANK", "3", 1);
    setenv("PMI_SIZE", "2", 1);
    ASSERT_TEXT(ms_launch_unclear(arena), "PMI_RANK is \"3\", PMI_SIZE is \"2\"");
    set(VARIABLES("MESHSIM_RANK", "2"));
    ASSERT_TEXT(ms_launch_unclear(arena),
                "MESHSIM_RANK is \"2\", MESHSIM_SIZE is not set");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_launcher_is_known),
        cmocka_unit_test(the_nearest_launcher_counts),
        cmocka_unit_test(ranks_of_a_node_are_counted),
        cmocka_unit_test(what_is_missing_is_told),
        cmocka_unit_test(what_is_not_a_rank_of_a_size_is_no_launcher),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
