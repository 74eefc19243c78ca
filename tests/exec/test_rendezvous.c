/* Processes that meet at an address of this machine. */
#include "exec/rendezvous.h"

#include "base/clock.h"
#include "exec/sockets.h"
#include "tests/support/mpi_launch.h"
#include "tests/test.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
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
static int run_rank(ms_ctx *cx, long rank, const ms_meeting_point *at)
{
    ms_rendezvous r;
    ms_launch launch = rank_of(rank);
    const long last = NUM_RANKS - 1;
    if (ms_rendezvous_open(cx, &launch, at, 20.0, NULL, &r) != MS_OK)
        return 10;
    int wrong = act(cx, &r);
    if (wrong == 0 && rank < last && wait_for_missing(&r) != (rank == 0 ? last : 0))
        wrong = 5;
    ms_rendezvous_close(&r);
    return wrong;
}

/* Rank 0 comes last, `late_ns` after the others. */
static void meet_at(const ms_meeting_point *at, long late_ns)
{
    ms_ctx *cx = test_cx();
    pid_t others[NUM_RANKS];
    for (long rank = 1; rank < NUM_RANKS; rank++) {
        others[rank] = fork();
        if (others[rank] == 0)
            _exit(run_rank(cx, rank, at));
    }
    nanosleep(&(struct timespec){.tv_nsec = late_ns}, NULL);
    ASSERT_INT(run_rank(cx, 0, at), 0);
    for (long rank = 1; rank < NUM_RANKS; rank++) {
        int status;
        ASSERT_INT(waitpid(others[rank], &status, 0), others[rank]);
        assert_true(WIFEXITED(status));
        ASSERT_INT(WEXITSTATUS(status), 0);
    }
}

static void ranks_meet_talk_and_are_missed(void **state)
{
    (void)state;
    meet_at(&(ms_meeting_point){.address = "127.0.0.1", .port = ms_mpi_free_port()}, 0);
}

static const char *path_of_file(void)
{
    return ms_arena_printf(test_cx()->arena, "/tmp/meshsim-test-meeting-%ld",
                           (long)getpid());
}

static void write_file(const char *path, long port)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "meshsim meeting 1\n0123456789abcdef\n%ld\nanother\n127.0.0.1\n", port);
    ASSERT_INT(fclose(file), 0);
}

/* What an earlier run left says a port that nobody has, or nothing. The file is gone in the end. */
static void ranks_meet_by_a_file(void **state)
{
    (void)state;
    const char *path = path_of_file();
    const ms_meeting_point at = {.file = path};
    meet_at(&at, 0);
    ASSERT_INT(access(path, F_OK), -1);
    write_file(path, ms_mpi_free_port());
    meet_at(&at, 300000000);
    ASSERT_INT(access(path, F_OK), -1);
    write_file(path, 1L << 20); /* and what is none */
    meet_at(&at, 100000000);
    ASSERT_INT(access(path, F_OK), -1);
}

/* Where it says, somebody else is now. */
static void a_stale_file_leads_to_nobody(void **state)
{
    (void)state;
    long port;
    int error;
    const char *path = path_of_file();
    int listener = ms_socket_listen_anywhere(true, &port, &error);
    assert_true(listener >= 0);
    pid_t stranger = fork();
    while (stranger == 0) { /* ends what comes */
        (void)poll(&(struct pollfd){.fd = listener, .events = POLLIN}, 1, -1);
        (void)close(accept(listener, NULL, NULL));
    }
    write_file(path, port);
    meet_at(&(ms_meeting_point){.file = path}, 300000000);
    ASSERT_INT(kill(stranger, SIGKILL), 0);
    ASSERT_INT(waitpid(stranger, NULL, 0), stranger);
    ASSERT_INT(close(listener), 0);
}

/* Who named the wrong file does not lose it; a file that another run has written since stays. */
static void files_of_others_are_kept(void **state)
{
    (void)state;
    ms_rendezvous r;
    ms_ctx *cx = test_cx();
    const char *path = path_of_file();
    const ms_meeting_point at = {.file = path};
    ms_launch launch = rank_of(0);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "a model\n");
    ASSERT_INT(fclose(file), 0);
    ASSERT_INT(ms_rendezvous_open(cx, &launch, &at, 0.2, NULL, &r), MS_EIO);
    assert_non_null(strstr(cx->first->message, "it is something else"));
    ASSERT_INT(truncate(path, 0), 0);
    pid_t other = fork();
    if (other == 0) {
        nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
        write_file(path, 1);
        _exit(0);
    }
    cx = test_cx();
    ASSERT_INT(ms_rendezvous_open(cx, &launch, &at, 1.5, NULL, &r), MS_EIO);
    assert_non_null(strstr(cx->first->message, "did not come"));
    ASSERT_INT(waitpid(other, NULL, 0), other);
    ASSERT_INT(unlink(path), 0);
}

#define NUM_STRANGERS 20

/* They come before all ranks, and stay: one has begun to speak, the others are silent. */
static int come_after_strangers(const ms_meeting_point *at)
{
    const char *why;
    int error, strangers[NUM_STRANGERS], wrong = 0;
    ms_patience patience = ms_patience_for(10.0, NULL);
    struct addrinfo *found = ms_host_find(at->address, at->port, &why);
    for (int i = 0; i < NUM_STRANGERS; i++)
        while (ms_socket_reach(&patience, found, &strangers[i], &error) != MS_OK)
            if (ms_clock_s() > patience.until_s)
                return 20;
    if (ms_socket_put(&patience, strangers[0], "meshsim rank 1", 10) != MS_OK)
        return 21;
    for (long rank = 1; rank < NUM_RANKS; rank++)
        if (fork() == 0)
            _exit(run_rank(test_cx(), rank, at));
    for (long rank = 1; rank < NUM_RANKS; rank++) {
        int status;
        (void)wait(&status);
        wrong = wrong != 0 || !WIFEXITED(status) ? 22 : WEXITSTATUS(status);
    }
    freeaddrinfo(found);
    return wrong;
}

static void strangers_keep_no_rank_waiting(void **state)
{
    (void)state;
    const ms_meeting_point at = {.address = "127.0.0.1", .port = ms_mpi_free_port()};
    int status;
    double began_s = ms_clock_s();
    pid_t others = fork();
    if (others == 0)
        _exit(come_after_strangers(&at));
    ASSERT_INT(run_rank(test_cx(), 0, &at), 0);
    ASSERT_INT(waitpid(others, &status, 0), others);
    assert_true(WIFEXITED(status));
    ASSERT_INT(WEXITSTATUS(status), 0);
    assert_true(ms_clock_s() - began_s < MS_GREETING_S);
}

/* A port that the system gives to who connects is given to each of them in turn: some would meet themselves. */
static void nobody_meets_itself(void **state)
{
    (void)state;
    const char *why;
    int error = 0, out;
    ms_patience patience = ms_patience_for(60.0, NULL);
    struct addrinfo *found = ms_host_find("127.0.0.1", ms_mpi_free_port() & ~1L, &why);
    assert_non_null(found);
    for (int i = 0; i < 40000; i++)
        if (ms_socket_reach(&patience, found, &out, &error) == MS_OK)
            fail_msg("it meets itself after %d others", i);
    ASSERT_INT(error, ECONNREFUSED);
    freeaddrinfo(found);
}

static void who_waits_in_vain_for_a_file_says_so(void **state)
{
    (void)state;
    ms_rendezvous r;
    const char *path = path_of_file();
    const ms_meeting_point at = {.file = path}, nowhere = {.file = "/no/folder/file"};
    ms_ctx *cx = test_cx();
    ms_launch launch = rank_of(1);
    ASSERT_INT(ms_rendezvous_open(cx, &launch, &at, 0.2, NULL, &r), MS_EIO);
    assert_non_null(strstr(cx->first->message, "does not say where it is"));
    cx = test_cx();
    write_file(path, ms_mpi_free_port());
    ASSERT_INT(ms_rendezvous_open(cx, &launch, &at, 0.2, NULL, &r), MS_EIO);
    assert_non_null(strstr(cx->first->message, "but it does not answer there"));
    cx = test_cx();
    launch = rank_of(0);
    ASSERT_INT(ms_rendezvous_open(cx, &launch, &at, 0.2, NULL, &r), MS_EIO);
    assert_non_null(strstr(cx->first->message, "3 of 4 did not come, rank 1 first"));
    ASSERT_INT(access(path, F_OK), -1);
    cx = test_cx();
    ASSERT_INT(ms_rendezvous_open(cx, &launch, &nowhere, 0.2, NULL, &r), MS_EIO);
    assert_non_null(strstr(cx->first->message, "cannot write /no/folder/file"));
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
        cmocka_unit_test(ranks_meet_by_a_file),
        cmocka_unit_test(a_stale_file_leads_to_nobody),
        cmocka_unit_test(files_of_others_are_kept),
        cmocka_unit_test(strangers_keep_no_rank_waiting),
        cmocka_unit_test(nobody_meets_itself),
        cmocka_unit_test(who_waits_in_vain_for_a_file_says_so),
        cmocka_unit_test(who_waits_in_vain_says_so),
        cmocka_unit_test(other_sizes_are_told_at_once),
        cmocka_unit_test(who_is_interrupted_waits_no_more),
        cmocka_unit_test(other_signals_change_nothing),
        cmocka_unit_test(who_has_no_descriptors_left_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
