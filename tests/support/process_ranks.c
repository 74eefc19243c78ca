#include "tests/support/process_ranks.h"

#include "base/clock.h"
#include "exec/sockets.h"
#include "tests/support/mpi_launch.h"
#include "tests/test.h"

#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_OUTPUT (1 << 16)
#define MOST_S      120.0 /* with sanitizers, on a machine that does much else */

static void set_number(const char *name, long value)
{
    char text[24];
    snprintf(text, sizeof text, "%ld", value);
    setenv(name, text, 1);
}

static void set_address(bool is_local)
{
    char text[MS_HOST_TEXT] = "127.0.0.1";
    struct ifaddrs *all = NULL;
    const struct ifaddrs *one = NULL;
    if (!is_local && getifaddrs(&all) == 0)
        one = all;
    for (; one != NULL && ms_host_is_local(text); one = one->ifa_next)
        if (one->ifa_addr != NULL && one->ifa_addr->sa_family == AF_INET)
            (void)getnameinfo(one->ifa_addr, sizeof(struct sockaddr_in), text,
                              sizeof text, NULL, 0, NI_NUMERICHOST);
    if (all != NULL)
        freeifaddrs(all);
    setenv("MASTER_ADDR", text, 1);
}

static void set_variables(ms_test_launcher launcher, int num, int rank, long where)
{
    char text[80];
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    switch (launcher) {
    case MS_TEST_TORCHRUN:
    case MS_TEST_NETWORK:
        set_number("RANK", rank);
        set_number("WORLD_SIZE", num);
        set_number("LOCAL_RANK", rank);
        set_address(launcher == MS_TEST_TORCHRUN);
        set_number("MASTER_PORT", where);
        break;
    case MS_TEST_SLURM:
        set_number("SLURM_PROCID", rank);
        set_number("SLURM_NTASKS", num);
        set_number("SLURM_STEP_ID", 0);
        set_number("SLURM_JOB_ID", where);
        setenv("SLURM_STEP_NODELIST", "localhost,other[2-4]", 1);
        break;
    case MS_TEST_STORE:
        set_number("MESHSIM_RANK", rank);
        set_number("MESHSIM_SIZE", num);
        set_number("MESHSIM_LOCAL_RANK", rank);
        snprintf(text, sizeof text, "/tmp/meshsim-test-store-%ld", where);
        setenv("MESHSIM_STORE", text, 1);
        break;
    }
}

static void start(ms_test_process *process, ms_test_launcher launcher, int num, int rank,
                  long where, const char *argument)
{
    int ends[2];
    ASSERT_INT(pipe(ends), 0);
    process->output = ends[0];
    process->pid = fork();
    assert_true(process->pid >= 0);
    if (process->pid > 0) {
        ASSERT_INT(close(ends[1]), 0);
        return;
    }
    set_variables(launcher, num, rank, where);
    (void)dup2(ends[1], STDOUT_FILENO);
    (void)dup2(ends[1], STDERR_FILENO);
    (void)close(ends[0]);
    (void)close(ends[1]);
    execl("/proc/self/exe", "ranks", argument, (char *)NULL);
    _exit(127);
}

void ms_test_start(ms_test_processes *processes, ms_test_launcher launcher, int num,
                   int missing, const char *argument)
{
    bool at_address = launcher == MS_TEST_TORCHRUN || launcher == MS_TEST_NETWORK;
    long where = at_address ? ms_mpi_free_port() : (long)getpid();
    *processes = (ms_test_processes){.num = num - missing};
    assert_true(num <= MS_TEST_PROCESSES);
    fflush(NULL);
    /* rank 0 last: the others wait for it */
    for (int rank = num - missing - 1; rank >= 0; rank--)
        start(&processes->rank[rank], launcher, num, rank, where, argument);
}

/* Up to its end. */
static const char *read_all(int output, double until_s)
{
    char *text = ms_arena_alloc(test_cx()->arena, MOST_OUTPUT);
    size_t length = 0;
    for (;;) {
        struct pollfd ready = {.fd = output, .events = POLLIN};
        if (ms_clock_s() > until_s)
            break;
        if (poll(&ready, 1, 100) <= 0)
            continue;
        ssize_t num = read(output, text + length, MOST_OUTPUT - 1 - length);
        if (num < 0 && errno == EINTR)
            continue;
        if (num <= 0)
            break;
        length += (size_t)num;
    }
    text[length] = '\0';
    return text;
}

void ms_test_wait(ms_test_processes *processes)
{
    double until_s = ms_clock_s() + MOST_S;
    for (int rank = 0; rank < processes->num; rank++) {
        ms_test_process *p = &processes->rank[rank];
        int status;
        p->said = read_all(p->output, until_s);
        (void)close(p->output);
        if (ms_clock_s() > until_s)
            (void)kill(p->pid, SIGKILL);
        ASSERT_INT(waitpid(p->pid, &status, 0), p->pid);
        p->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    if (ms_clock_s() > until_s)
        fail_msg("ranks do not end; rank 0 said:\n%s", processes->rank[0].said);
}

void ms_test_expect(const ms_test_processes *processes, int rank, int code,
                    const char *text)
{
    const ms_test_process *p = &processes->rank[rank];
    if (p->code != code || (text != NULL && strstr(p->said, text) == NULL))
        fail_msg("rank %d: exit code %d, not %d, or not \"%s\", in\n%s", rank, p->code,
                 code, text == NULL ? "" : text, p->said);
}
