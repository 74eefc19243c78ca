/* Tests of starting ranks with mpiexec: what its output and exit status mean, and that
 * signals reach the ranks. Shell scripts stand in for mpiexec. */
#include "exec/launch/launch.h"

#include "tests/test.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/meshsim-launch-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
    (void)state;
    char path[64];
    snprintf(path, sizeof path, "%s/mpiexec", folder);
    (void)remove(path);
    return remove(folder);
}

/* Launches ranks with a shell script in place of mpiexec; returns the launch's status. */
static ms_status run_script(ms_ctx *cx, const char *script)
{
    char *path = ms_arena_printf(cx->arena, "%s/mpiexec", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", script);
    fclose(file);
    assert_int_equal(chmod(path, 0700), 0);
    char *argv[] = {ms_arena_strdup(cx->arena, "run")};
    return ms_launch_run(cx, &(ms_launch_job){path, 2, 8, 1, argv, false});
}

static void exit_codes_of_ranks_pass(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ASSERT_INT(run_script(cx, "exit 0"), MS_OK);
    ASSERT_INT(run_script(cx, "exit 4"), MS_ECHECK);
    ASSERT_INT(run_script(cx, "exit 3"), MS_ENOFIT);
    ASSERT_INT(cx->num_errors, 0);
}

static void ranks_get_the_command_line_and_one_thread(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ASSERT_INT(run_script(cx, "[ $1 = -n ] && [ $2 = 2 ] && [ -x $3 ] && [ $4 = run ] && "
                              "[ -n \"$OPENBLAS_NUM_THREADS\" ] && "
                              "[ $MESHSIM_LAUNCHED = 1 ] || exit 4"),
               MS_OK);
}

/* Output of ranks is passed on, even if it is more than a pipe's buffer holds. */
static void what_ranks_print_is_printed(void **state)
{
    (void)state;
    FILE *file = tmpfile();
    assert_non_null(file);
    fflush(stdout);
    int before = dup(STDOUT_FILENO);
    ASSERT_INT(dup2(fileno(file), STDOUT_FILENO), STDOUT_FILENO);
    ms_status status = run_script(test_cx(), "seq 100000");
    fflush(stdout);
    ASSERT_INT(dup2(before, STDOUT_FILENO), STDOUT_FILENO);
    ASSERT_INT(close(before), 0);
    ASSERT_INT(status, MS_OK);
    const char *text = test_read_back(test_cx()->arena, file);
    ASSERT_INT(strlen(text), 588895);
    ASSERT_TEXT(text + 588895 - 13, "99999\n100000\n");
}

static void a_failing_mpiexec_is_told_with_its_own_words(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ASSERT_INT(run_script(cx, "echo -------------------------- >&2\n"
                              "echo There are not enough slots >&2\n"
                              "echo -------------------------- >&2; exit 1"),
               MS_EIO);
    assert_non_null(strstr(test_messages(cx), "not enough slots"));
    cx = test_cx();
    char *argv[] = {ms_arena_strdup(cx->arena, "run")};
    ms_status status =
        ms_launch_run(cx, &(ms_launch_job){"/no/mpiexec", 2, 8, 1, argv, false});
    assert_true(status != MS_OK);
}

static void a_rank_that_dies_is_named(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ASSERT_INT(run_script(cx, "echo -------------------------- >&2\n"
                              "echo mpirun noticed that process rank 3 with PID 77 on "
                              "node x exited on signal 11 >&2\n"
                              "echo -------------------------- >&2; exit 139"),
               MS_EIO);
    assert_non_null(strstr(test_messages(cx), "rank 3 died by signal 11"));
}

static void an_interrupt_asks_ranks_to_stop(void **state)
{
    (void)state;
    const char *const names[] = {"INT", "TERM", "USR1"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ms_ctx *cx = test_cx();
        ASSERT_INT(run_script(cx, ms_arena_printf(cx->arena,
                                                  "trap 'exit 130' USR1\nkill -%s $PPID\n"
                                                  "while :; do sleep 0.05; done",
                                                  names[i])),
                   MS_EINTERRUPTED);
    }
}

static void a_second_one_ends_them(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ASSERT_INT(run_script(cx, "trap '' USR1\nkill -INT $PPID\nsleep 0.3\n"
                              "kill -INT $PPID\nwhile :; do sleep 0.05; done"),
               MS_EINTERRUPTED);
}

static void asking_twice_is_no_force(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ASSERT_INT(run_script(cx, "trap : USR1\ntrap 'exit 0' TERM\n"
                              "kill -USR1 $PPID\nsleep 0.3\nkill -USR1 $PPID\n"
                              "sleep 0.3\necho error: told >&2; exit 130"),
               MS_EINTERRUPTED);
    ASSERT_INT(cx->num_errors, 0);
}

/* ---- output ---- */

static const char *filtered(const char *text, ms_launch_output *output)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    *output = ms_launch_output_open();
    /* byte by byte, as a pipe may deliver output */
    for (size_t i = 0; i < strlen(text); i++)
        ms_launch_output_add(output, &text[i], 1, file);
    ms_launch_output_close(output, file);
    return test_read_back(test_cx()->arena, file);
}

static void lines_of_ranks_pass_and_messages_of_mpiexec_are_kept(void **state)
{
    (void)state;
    ms_launch_output output;
    ASSERT_TEXT(filtered("note: one\n------------------------------\nPrimary job "
                         "ended\n------------------------------\nerror: rank 1: two",
                         &output),
                "note: one\nerror: rank 1: two\n");
    assert_true(output.has_error);
    assert_non_null(strstr(output.block, "Primary job ended"));
    ASSERT_INT(output.dead_rank, -1);
}

static void long_lines_do_no_harm(void **state)
{
    (void)state;
    char text[9000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    ms_launch_output output;
    assert_true(strlen(filtered(text, &output)) >= sizeof text - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exit_codes_of_ranks_pass),
        cmocka_unit_test(ranks_get_the_command_line_and_one_thread),
        cmocka_unit_test(what_ranks_print_is_printed),
        cmocka_unit_test(a_failing_mpiexec_is_told_with_its_own_words),
        cmocka_unit_test(a_rank_that_dies_is_named),
        cmocka_unit_test(an_interrupt_asks_ranks_to_stop),
        cmocka_unit_test(a_second_one_ends_them),
        cmocka_unit_test(asking_twice_is_no_force),
        cmocka_unit_test(lines_of_ranks_pass_and_messages_of_mpiexec_are_kept),
        cmocka_unit_test(long_lines_do_no_harm),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
