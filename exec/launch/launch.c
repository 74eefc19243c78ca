/* Starts the ranks of a run by mpiexec. Signals are waited for together with output, so
 * that no state is shared with a handler. mpiexec leads its own process group: Ctrl-C
 * reaches only this process, which asks the ranks to stop. */
#include "exec/launch/launch.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#define FORCE_AFTER_S 7.0 /* seconds from the request to stop to SIGTERM */
#define KILL_AFTER_S  9.0 /* seconds from the request to stop to SIGKILL */

#define PROGRESS_VARIABLE "MESHSIM_PROGRESS"

/* ---- the command line ---- */

static const char *find_in_path(ms_arena *arena, const char *name)
{
    const char *path = getenv("PATH");
    for (const char *rest = path; rest != NULL && *rest != '\0';) {
        size_t length = strcspn(rest, ":");
        const char *file = ms_arena_printf(arena, "%.*s/%s", (int)length, rest, name);
        if (length > 0 && access(file, X_OK) == 0)
            return file;
        rest = rest[length] == ':' ? rest + length + 1 : NULL;
    }
    return NULL;
}

const char *ms_launch_find(ms_arena *arena)
{
    const char *found = find_in_path(arena, "mpiexec");
    return found != NULL ? found : find_in_path(arena, "mpirun");
}

bool ms_launch_is_own(void)
{
    return getenv(MS_LAUNCHED_VARIABLE) != NULL;
}

bool ms_launch_shows_progress(void)
{
    return ms_launch_is_own() && getenv(PROGRESS_VARIABLE) != NULL;
}

/* Environment variables of ranks; other libraries than Open MPI ignore OMPI_*. */
static const char *const common_variables[] = {"OMPI_MCA_rmaps_base_oversubscribe=1",
                                               MS_LAUNCHED_VARIABLE "=1", NULL};
static const char *const root_variables[] = {"OMPI_ALLOW_RUN_AS_ROOT=1",
                                             "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", NULL};
static const char *const oversubscribed_variables[] = {
    "OMPI_MCA_mpi_yield_when_idle=1", "OMPI_MCA_hwloc_base_binding_policy=none", NULL};
static const char *const progress_variables[] = {PROGRESS_VARIABLE "=1", NULL};
static const char *const thread_variables[] = {"OPENBLAS_NUM_THREADS=1",
                                               "OMP_NUM_THREADS=1", NULL};

static void add_variables(char **words, int *num, ms_arena *arena,
                          const char *const *variables)
{
    for (int i = 0; variables[i] != NULL; i++) {
        size_t length = strcspn(variables[i], "=");
        if (getenv(ms_arena_strndup(arena, variables[i], length)) == NULL)
            words[(*num)++] = ms_arena_strdup(arena, variables[i]);
    }
}

/* Command line with environment, for Open MPI (also as root), MPICH and Intel MPI. */
static char **command_line(ms_arena *arena, const ms_launch_job *launch,
                           const char *program)
{
    char **words = MS_NEW_ARRAY(arena, launch->argc + 32, char *);
    int num = 0;
    words[num++] = ms_arena_strdup(arena, "env");
    add_variables(words, &num, arena, common_variables);
    add_variables(words, &num, arena, thread_variables);
    if (launch->shows_progress)
        add_variables(words, &num, arena, progress_variables);
    if (geteuid() == 0)
        add_variables(words, &num, arena, root_variables);
    if (launch->num_ranks > launch->num_cores)
        add_variables(words, &num, arena, oversubscribed_variables);
    words[num++] = ms_arena_strdup(arena, launch->mpiexec);
    words[num++] = ms_arena_strdup(arena, "-n");
    words[num++] = ms_arena_printf(arena, "%ld", launch->num_ranks);
    words[num++] = ms_arena_strdup(arena, program);
    for (int i = 0; i < launch->argc; i++)
        words[num++] = ms_arena_strdup(arena, launch->argv[i]);
    return words;
}

/* ---- the process ---- */

enum {
    OUTPUT,
    ERRORS,
    NUM_STREAMS
};

typedef struct process {
    pid_t pid;
    struct pollfd read_ends[NUM_STREAMS]; /* output pipes; fd is -1 once one has ended */
    FILE *captured;                       /* captures standard output */
    sigset_t before;
    bool ended;
    int code;
    double asked_at_s; /* time of the request to stop; 0 if there was none */
    bool terminated;
} process;

/* Lets the calling child process end when its parent does, however that ends. */
static void follow_parent(void)
{
#ifdef __linux__
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
#endif
}

static void exec_command(const process *p, const int *write_ends, char *const *command)
{
    follow_parent();
    (void)setpgid(0, 0);
    (void)sigprocmask(SIG_SETMASK, &p->before, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    int nothing = open("/dev/null", O_RDONLY);
    /* a background process must not read a terminal */
    (void)dup2(nothing, STDIN_FILENO);
    (void)dup2(write_ends[OUTPUT], STDOUT_FILENO);
    (void)dup2(write_ends[ERRORS], STDERR_FILENO);
    for (int i = 0; i < NUM_STREAMS; i++) {
        (void)close(write_ends[i]);
        (void)close(p->read_ends[i].fd);
    }
    execvp(command[0], command);
    dprintf(STDERR_FILENO, "error: cannot start %s: %s\n", command[0], strerror(errno));
    _exit(MS_EIO);
}

static ms_status open_pipes(ms_ctx *cx, process *p, int *write_ends)
{
    for (int i = 0; i < NUM_STREAMS; i++) {
        int ends[2];
        if (pipe(ends) != 0)
            return ms_fail(cx, MS_EIO, MS_NOWHERE, "cannot make a pipe: %s",
                           strerror(errno));
        p->read_ends[i] = (struct pollfd){.fd = ends[0], .events = POLLIN};
        write_ends[i] = ends[1];
    }
    return MS_OK;
}

static ms_status start_process(ms_ctx *cx, char *const *command, process *p)
{
    int write_ends[NUM_STREAMS] = {-1, -1};
    MS_TRY(open_pipes(cx, p, write_ends));
    fflush(NULL);
    p->pid = fork();
    if (p->pid == 0)
        exec_command(p, write_ends, command);
    int error = errno;
    for (int i = 0; i < NUM_STREAMS; i++)
        (void)close(write_ends[i]);
    if (p->pid < 0)
        return ms_fail(cx, MS_EIO, MS_NOWHERE, "cannot start a process: %s",
                       strerror(error));
    (void)setpgid(p->pid, p->pid); /* set in parent and child, as either may run first */
    return MS_OK;
}

static void read_stream(process *p, int stream, ms_launch_output *output)
{
    char bytes[4096];
    ssize_t num = read(p->read_ends[stream].fd, bytes, sizeof bytes);
    if (num > 0 && stream == OUTPUT) {
        (void)fwrite(bytes, 1, (size_t)num, p->captured);
    } else if (num > 0) {
        ms_launch_output_add(output, bytes, num, p->terminated ? NULL : stderr);
    } else if (num == 0 || errno != EINTR) {
        (void)close(p->read_ends[stream].fd);
        p->read_ends[stream].fd = -1;
    }
}

/* Reads what ranks have written; false if nothing can be read within wait_ms. */
static bool read_streams(process *p, ms_launch_output *output, int wait_ms)
{
    if (poll(p->read_ends, NUM_STREAMS, wait_ms) <= 0)
        return false;
    for (int i = 0; i < NUM_STREAMS; i++)
        if (p->read_ends[i].revents != 0)
            read_stream(p, i, output);
    return true;
}

/* Forwards the first signal as a request to stop (SIGUSR1). A second one or FORCE_AFTER_S
 * ends mpiexec (SIGTERM), KILL_AFTER_S its process group (SIGKILL). */
static void handle_signals(process *p, const sigset_t *signals)
{
    struct timespec none = {0};
    int signal_number = sigtimedwait(signals, NULL, &none);
    if (signal_number > 0 && p->asked_at_s == 0.0) {
        p->asked_at_s = ms_clock_s();
        (void)kill(p->pid, SIGUSR1);
        return;
    }
    if (p->asked_at_s == 0.0)
        return;
    double waited_s = ms_clock_s() - p->asked_at_s;
    bool insists = signal_number == SIGINT || signal_number == SIGTERM;
    if (!p->terminated && (insists || waited_s > FORCE_AFTER_S)) {
        p->terminated = true;
        (void)kill(p->pid, SIGTERM); /* mpiexec then ends its ranks */
    }
    if (waited_s > KILL_AFTER_S)
        (void)kill(-p->pid, SIGKILL);
}

static void reap_if_ended(process *p)
{
    int status;
    if (p->ended || waitpid(p->pid, &status, WNOHANG) != p->pid)
        return;
    p->ended = true;
    p->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    (void)kill(-p->pid, SIGKILL); /* ends mpiexec's remaining child processes */
}

/* Forwards output and signals until mpiexec ends, then the remaining output. */
static void wait_for_process(process *p, const sigset_t *signals,
                             ms_launch_output *output)
{
    while (!p->ended) {
        (void)read_streams(p, output, 50);
        handle_signals(p, signals);
        reap_if_ended(p);
    }
    while (read_streams(p, output, 0)) {
    }
    ms_launch_output_close(output, stderr);
}

static const char *own_program(ms_arena *arena)
{
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    if (length <= 0 || length == (ssize_t)sizeof path)
        return "meshsim";
    return ms_arena_strndup(arena, path, (size_t)length);
}

static ms_status judge_interrupted(ms_ctx *cx, const ms_launch_output *output)
{
    if (output->has_error)
        return MS_EINTERRUPTED; /* rank 0 has reported the interruption */
    return ms_fail(cx, MS_EINTERRUPTED, MS_NOWHERE,
                   "interrupted, and no rank reported its progress");
}

ms_status ms_launch_run(ms_ctx *cx, const ms_launch_job *launch)
{
    char **command = command_line(cx->arena, launch, own_program(cx->arena));
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGUSR1);
    char *captured = NULL;
    size_t length = 0;
    process p = {.read_ends = {{.fd = -1}, {.fd = -1}},
                 .captured = open_memstream(&captured, &length)};
    if (p.captured == NULL)
        return ms_fail(cx, MS_EIO, MS_NOWHERE,
                       "no memory is left for the output of ranks");
    (void)sigprocmask(SIG_BLOCK, &signals, &p.before);
    ms_launch_output output = ms_launch_output_open();
    ms_status status = start_process(cx, command, &p);
    if (status == MS_OK) {
        wait_for_process(&p, &signals, &output);
        status = p.asked_at_s > 0.0 ? judge_interrupted(cx, &output)
                                    : ms_launch_judge(cx, &output, p.code);
    }
    (void)sigprocmask(SIG_SETMASK, &p.before, NULL);
    for (int i = 0; i < NUM_STREAMS; i++)
        if (p.read_ends[i].fd >= 0)
            (void)close(p.read_ends[i].fd);
    (void)fclose(p.captured);
    (void)fwrite(captured, 1, length, stdout);
    free(captured);
    return status;
}
