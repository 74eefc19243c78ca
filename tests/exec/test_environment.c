/* Which launcher started a process, from its environment. */
#include "exec/environment.h"

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
                                        "MASTER_PORT",
                                        "TORCHELASTIC_USE_AGENT_STORE",
                                        "SLURM_JOB_ID",
                                        "SLURM_JOB_NODELIST",
                                        "SLURM_STEP_NODELIST",
                                        "MESHSIM_RANK",
                                        "MESHSIM_SIZE",
                                        "MESHSIM_LOCAL_RANK",
                                        "MESHSIM_LOCAL_SIZE",
                                        "MESHSIM_STORE"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
}

/* Names and values in turn, up to NULL. */
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
          (ms_launch){MS_LAUNCHER_HAND, 1, 3, 1, false, 2});
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
    check(VARIABLES("RANK", "1", "WORLD_SIZE", "2"), none); /* anybody's variables */
    check(VARIABLES("SLURM_PROCID", "0", "SLURM_NTASKS", "8"), none); /* a batch script */
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
    set(VARIABLES("MESHSIM_SIZE", "2"));
    ASSERT_TEXT(ms_launch_unclear(arena),
                "MESHSIM_RANK is not set, MESHSIM_SIZE is \"2\"");
    set(VARIABLES("MESHSIM_STORE", "/f"));
    ASSERT_TEXT(
        ms_launch_unclear(arena),
        "MESHSIM_RANK is not set, MESHSIM_SIZE is not set, MESHSIM_STORE is \"/f\"");
}

/* ---- where ranks meet ---- */

static void check_meeting(const char *const *variables, const char *address, long port,
                          const char *file)
{
    ms_meeting_point got;
    ms_ctx *cx = test_cx();
    set(variables);
    ms_launch launch = ms_launch_environment();
    ASSERT_OK(ms_launch_meeting(cx, &launch, &got), cx);
    ASSERT_TEXT(got.file, file);
    if (file == NULL) {
        ASSERT_TEXT(got.address, address);
        ASSERT_INT(got.port, port);
    }
}

static void check_no_meeting(const char *const *variables, const char *message)
{
    ms_meeting_point got;
    ms_ctx *cx = test_cx();
    set(variables);
    ms_launch launch = ms_launch_environment();
    ASSERT_INT(ms_launch_meeting(cx, &launch, &got), MS_EINPUT);
    ASSERT_INT(cx->num_errors, 1);
    ASSERT_TEXT(cx->first->message, message);
}

#define TORCHRUN "RANK", "0", "WORLD_SIZE", "2", "LOCAL_RANK", "0"
#define STEP                                                                             \
    "SLURM_PROCID", "0", "SLURM_NTASKS", "2", "SLURM_STEP_ID", "3", "SLURM_JOB_ID",      \
        "123456"
#define HAND "MESHSIM_RANK", "0", "MESHSIM_SIZE", "2"

static void ranks_meet_where_their_launcher_says(void **state)
{
    (void)state;
    check_meeting(VARIABLES(TORCHRUN, "MASTER_ADDR", "h", "MASTER_PORT", "29500"), "h",
                  29500, NULL);
    check_meeting(VARIABLES(TORCHRUN, "MASTER_ADDR", "h", "MASTER_PORT", "29500",
                            "TORCHELASTIC_USE_AGENT_STORE", "True"),
                  "h", 29501, NULL);
    check_meeting(VARIABLES(HAND, "MESHSIM_STORE", "/shared/f"), NULL, 0, "/shared/f");
    check_meeting(VARIABLES(TORCHRUN, "MASTER_ADDR", "h", "MASTER_PORT", "29500",
                            "MESHSIM_STORE", "/shared/f"),
                  NULL, 0, "/shared/f");
    check_meeting(VARIABLES(HAND, "MASTER_ADDR", "h", "MASTER_PORT", "29500"), "h", 29500,
                  NULL);
}

/* Port: 3456 x 16 + 3 = 55299. */
static void tasks_of_slurm_meet_on_the_first_node(void **state)
{
    static const char *const lists[][2] = {
        {"n1", "n1"},
        {"n[07-12,15],other", "n07"},
        {"n-3,other", "n-3"},
        {"rack[2-3]node[10,12]-ib.x,y", "rack2node10-ib.x"},
        {"gpu[001]", "gpu001"}};
    (void)state;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        check_meeting(VARIABLES(STEP, "SLURM_STEP_NODELIST", lists[i][0]), lists[i][1],
                      25299, NULL);
        check_meeting(VARIABLES(STEP, "SLURM_JOB_NODELIST", lists[i][0]), lists[i][1],
                      25299, NULL);
    }
    check_meeting(VARIABLES(STEP, "SLURM_JOB_NODELIST", "a,b", "SLURM_STEP_NODELIST", "b",
                            "MASTER_PORT", "29500"),
                  "b", 29500, NULL);
    check_meeting(VARIABLES(STEP, "SLURM_STEP_NODELIST", "b", "MASTER_ADDR", "ib0"),
                  "ib0", 25299, NULL);
}

static void variables_that_say_too_little_or_too_much_are_told(void **state)
{
    (void)state;
    check_no_meeting(VARIABLES(HAND),
                     "started as rank 0 of 2, but nothing says where ranks meet: "
                     "MASTER_ADDR is not set, MASTER_PORT is not set, MESHSIM_STORE is "
                     "not set");
    check_no_meeting(VARIABLES(TORCHRUN, "MASTER_ADDR", "h", "MASTER_PORT", "x"),
                     "started as rank 0 of 2, but nothing says where ranks meet: "
                     "MASTER_ADDR is \"h\", MASTER_PORT is \"x\", MESHSIM_STORE is not "
                     "set");
    check_no_meeting(VARIABLES(STEP),
                     "started as rank 0 of 2, but nothing says where ranks meet: "
                     "MASTER_ADDR is not set, MASTER_PORT is not set, MESHSIM_STORE is "
                     "not set");
    check_no_meeting(VARIABLES(TORCHRUN, "MESHSIM_RANK", "1", "MESHSIM_STORE", "/f"),
                     "MESHSIM_RANK is \"1\", MESHSIM_SIZE is not set, but torchrun "
                     "started this as rank 0 of 2");
    check_meeting(VARIABLES(TORCHRUN, "MESHSIM_RANK", "0", "MESHSIM_SIZE", "2",
                            "MESHSIM_STORE", "/f"),
                  NULL, 0, "/f");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_launcher_is_known),
        cmocka_unit_test(the_nearest_launcher_counts),
        cmocka_unit_test(ranks_of_a_node_are_counted),
        cmocka_unit_test(what_is_missing_is_told),
        cmocka_unit_test(ranks_meet_where_their_launcher_says),
        cmocka_unit_test(tasks_of_slurm_meet_on_the_first_node),
        cmocka_unit_test(variables_that_say_too_little_or_too_much_are_told),
        cmocka_unit_test(what_is_not_a_rank_of_a_size_is_no_launcher),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
