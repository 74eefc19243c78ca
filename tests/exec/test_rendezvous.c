/* Processes that meet at an address of this machine. */
#include "exec/rendezvous.h"

#include "base/clock.h"
#include "tests/support/mpi_launch.h"
#include "tests/test.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NUM_RANKS 4

static ms_launch rank_of(long rank)
{
    return (ms_launch){.launcher = MS_LAUNCHER_TORCHRUN, .rank = rank, .size = NUM_RANKS};
}

/* Rank 0 tells everybody one thing, and each another. */
static int act(ms_ctx *cx, const ms_rendezvous *r)
{
    char all[MS_RENDEZVOUS_TEXT] = "", one[MS_RENDEZVOUS_TEXT] = "";
    if (r->rank == 0)
        snprintf(all, sizeof all, "for all");
    if (ms_rendezvous_tell_all(cx, r, all) != MS_OK || strcmp(all, "for all") != 0)
        return 1;
    for (long rank = r->rank == 0 ? 1 : r->rank;
         rank < (r->rank == 0 ? r->size : r->rank + 1); rank++) {
        if (r->rank == 0)
            snprintf(one, sizeof one, "for %ld", rank);
        if (ms_rendezvous_tell(cx, r, rank, one) != MS_OK)
            return 2;
    }
    if (r->rank > 0 && strcmp(one, ms_arena_printf(cx->arena, "for %ld", r->rank)) != 0)
        return 3;
    return 0;
}

static long wait_for_missing(const ms_rendezvous *r)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    for (int i = 0; i < 1000 && ms_rendezvous_missing(r) < 0; i++)
        nanosleep(&pause, NULL);
    return ms_rendezvous_missing(r);
}

/* The last rank leaves without a word: rank 0 sees it and leaves, which the others see. */
static int run_rank(ms_ctx *cx, long rank, long port)
{
    ms_rendezvous r;
    ms_launch launch = rank_of(rank);
    const long last = NUM_RANKS - 1;
    const ms_meeting_point at = {.address = "127.0.0.1", .port = port};
    if (ms_rendezvous_open(cx, &launch, &at, 20.0, NULL, &r) != MS_OK)
        return 10;
    int wrong = act(cx, &r);
    if (wrong == 0 && rank < last && wait_for_missing(&r) != (rank == 0 ? last : 0))
        wrong = 5;
    ms_rendezvous_close(&r);
    return wrong;
}

static void ranks_meet_talk_and_are_missed(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    pid_t others[NUM_RANKS];
    long port = ms_mpi_free_port();
    for (long rank = 1; rank < NUM_RANKS; rank++) {
        others[rank] = fork();
        if (others[rank] == 0)
            _exit(run_rank(cx, rank, port));
    }
    ASSERT_INT(run_rank(cx, 0, port), 0);
    for (long rank = 1; rank < NUM_RANKS; rank++) {
        int status;
        ASSERT_INT(waitpid(others[rank], &status, 0), others[rank]);
        assert_true(WIFEXITED(status));
        ASSERT_INT(WEXITSTATUS(status), 0);
    }
}

static void who_waits_in_vain_says_so(void **state)
{
    (void)state;
    ms_rendezvous r;
    const ms_meeting_point at = {.address = "127.0.0.1", .port = ms_mpi_free_port()};
    for (long rank = 0; rank < 2; rank++) {
        ms_ctx *cx = test_cx();
        ms_launch launch = rank_of(rank);
        ASSERT_INT(ms_rendezvous_open(cx, &launch, &at, 0.2, NULL, &r), MS_EIO);
        const char *said = cx->first->message;
        assert_non_null(strstr(said, rank == 0 ? "3 of 4 did not come, rank 1 first"
                                               : "does not listen"));
    }
}

/* A rank whose number is none of rank 0's is told as well, long before the time is over. */
static void other_sizes_are_told_at_once(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_rendezvous r;
    const ms_meeting_point at = {.address = "127.0.0.1", .port = ms_mpi_free_port()};
    pid_t other = fork();
    if (other == 0) {
        ms_launch launch = rank_of(NUM_RANKS - 1);
        _exit(ms_rendezvous_open(cx, &launch, &at, 20.0, NULL, &r) != MS_OK);
    }
    ms_launch launch = {.launcher = MS_LAUNCHER_TORCHRUN, .rank = 0, .size = 2};
    double began_s = ms_clock_s();
    ASSERT_INT(ms_rendezvous_open(cx, &launch, &at, 20.0, NULL, &r), MS_EIO);
    assert_true(ms_clock_s() - began_s < 10.0);
    ASSERT_TEXT(cx->first->message, "rank 3 was started as one of 4, rank 0 as one of 2");
    ASSERT_INT(waitpid(other, NULL, 0), other);
}

static volatile int stopped;

static void stop(int signal_number)
{
    (void)signal_number;
    stopped = 1;
}

static void take_alarm_after_1_s(void)
{
    struct sigaction action = {.sa_handler = stop};
    sigemptyset(&action.sa_mask);
    stopped = 0;
    ASSERT_INT(sigaction(SIGALRM, &action, NULL), 0);
    (void)alarm(1);
}

/* Neither rank 0 nor another waits on after a signal that stops the run. */
static void who_is_interrupted_waits_no_more(void **state)
{
    (void)state;
    ms_rendezvous r;
    const ms_meeting_point at = {.address = "127.0.0.1", .port = ms_mpi_free_port()};
    for (long rank = 0; rank < 2; rank++) {
        ms_ctx *cx = test_cx();
        ms_launch launch = rank_of(rank);
        double began_s = ms_clock_s();
        take_alarm_after_1_s();
        ASSERT_INT(ms_rendezvous_open(cx, &launch, &at, 20.0, &stopped, &r),
                   MS_EINTERRUPTED);
        assert_true(ms_clock_s() - began_s < 10.0);
        assert_null(cx->first);
    }
}

/* A signal that does not is no reason to end. */
static void other_signals_change_nothing(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_rendezvous r;
    const ms_meeting_point at = {.address = "127.0.0.1", .port = ms_mpi_free_port()};
    ms_launch launch = rank_of(0);
    take_alarm_after_1_s();
    ASSERT_INT(ms_rendezvous_open(cx, &launch, &at, 1.5, NULL, &r), MS_EIO);
    ASSERT_INT(stopped, 1);
    assert_non_null(strstr(cx->first->message, "3 of 4 did not come"));
}

/* The listener gets the last descriptor, and whoever comes none. */
static void who_has_no_descriptors_left_says_so(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_rendezvous r;
    const ms_meeting_point at = {.address = "127.0.0.1", .port = ms_mpi_free_port()};
    pid_t other = fork();
    if (other == 0) {
        ms_launch launch = rank_of(1);
        _exit(ms_rendezvous_open(cx, &launch, &at, 20.0, NULL, &r) != MS_OK);
    }
    struct rlimit before, few;
    ASSERT_INT(getrlimit(RLIMIT_NOFILE, &before), 0);
    int next = dup(STDIN_FILENO);
    assert_true(next >= 0 && close(next) == 0);
    few = before;
    few.rlim_cur = (rlim_t)next + 1;
    ms_launch launch = rank_of(0);
    double began_s = ms_clock_s();
    ASSERT_INT(setrlimit(RLIMIT_NOFILE, &few), 0);
    ms_status status = ms_rendezvous_open(cx, &launch, &at, 20.0, NULL, &r);
    ASSERT_INT(setrlimit(RLIMIT_NOFILE, &before), 0);
    ASSERT_INT(status, MS_EIO);
    assert_true(ms_clock_s() - began_s < 10.0);
    assert_non_null(strstr(cx->first->message, strerror(EMFILE)));
    ASSERT_INT(kill(other, SIGKILL), 0);
    ASSERT_INT(waitpid(other, NULL, 0), other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_meet_talk_and_are_missed),
        cmocka_unit_test(who_waits_in_vain_says_so),
        cmocka_unit_test(other_sizes_are_told_at_once),
        cmocka_unit_test(who_is_interrupted_waits_no_more),
        cmocka_unit_test(other_signals_change_nothing),
        cmocka_unit_test(who_has_no_descriptors_left_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
