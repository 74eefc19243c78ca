/* Signals are waited for beside the output of the ranks, not handled, so that no state is
 * shared with a handler. mpiexec is the leader of a process group of its own: a Ctrl-C
 * reaches this process alone, which asks the ranks to stop. */
#include "exec/launch.h"

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

#define FORCE_AFTER_S 7.0 /* ranks that were asked to stop */
#define KILL_AFTER_S  9.0

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

/* Others take what is a variable of the environment here as no more than that. */
static const char *const always[] = {"OMPI_MCA_rmaps_base_oversubscribe=1",
                                     MS_LAUNCHED_VARIABLE "=1", NULL};
static const char *const as_root[] = {"OMPI_ALLOW_RUN_AS_ROOT=1",
                                      "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", NULL};
static const char *const crowded[] = {"OMPI_MCA_mpi_yield_when_idle=1",
                                      "OMPI_MCA_hwloc_base_binding_policy=none", NULL};
static const char *const progress[] = {PROGRESS_VARIABLE "=1", NULL};
static const char *const threads[] = {"OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1",
                                      NULL};

static void add_variables(char **words, int *num, ms_arena *arena,
                          const char *const *variables)
{
    for (int i = 0; variables[i] != NULL; i++) {
        size_t length = strcspn(variables[i], "=");
        if (getenv(ms_arena_strndup(arena, variables[i], length)) == NULL)
            words[(*num)++] = ms_arena_strdup(arena, variables[i]);
    }
}

/* The environment and command line of Open MPI (also as root, also with more ranks than
 * cores), MPICH or Intel MPI; NULL-ended, in the arena. */
static char **command_line(ms_arena *arena, const ms_launch_job *launch,
                           const char *program)
{
    char **words = MS_NEW_ARRAY(arena, launch->argc + 32, char *);
    int num = 0;
    words[num++] = ms_arena_strdup(arena, "env");
    add_variables(words, &num, arena, always);
    add_variables(words, &num, arena, threads);
    if (launch->shows_progress)
        add_variables(words, &num, arena, progress);
    if (geteuid() == 0)
        add_variables(words, &num, arena, as_root);
    if (launch->num_ranks > launch->num_cores)
        add_variables(words, &num, arena, crowded);
    words[num++] = ms_arena_strdup(arena, launch->mpiexec);
    words[num++] = ms_arena_strdup(arena, "-n");
    words[num++] = ms_arena_printf(arena, "%ld", launch->num_ranks);
    words[num++] = ms_arena_strdup(arena, program);
    for (int i = 0; i < launch->argc; i++)
        words[num++] = ms_arena_strdup(arena, launch->argv[i]);
    return words;
}

/* ---- the process ---- */

typedef struct process {
    pid_t pid;
    int output; /* its standard error */
    sigset_t before;
    bool ended;
    int code;
    double asked_at_s; /* to stop; 0: not yet */
    bool terminated;
} process;

/* Ends when this process does, whatever ends it. */
static void follow_parent(void)
{
#ifdef __linux__
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
#endif
}

static void become(const process *p, int output, char *const *command)
{
    follow_parent();
    (void)setpgid(0, 0);
    (void)sigprocmask(SIG_SETMASK, &p->before, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    int nothing = open("/dev/null", O_RDONLY);
    (void)dup2(nothing, STDIN_FILENO); /* a background group must not read a terminal */
    (void)dup2(output, STDERR_FILENO);
    execvp(command[0], command);
    dprintf(STDERR_FILENO, "error: cannot start %s: %s\n", command[0], strerror(errno));
    _exit(MS_EIO);
}

static ms_status start(ms_ctx *cx, char *const *command, process *p)
{
    int ends[2];
    if (pipe(ends) != 0)
        return ms_fail(cx, MS_EIO, MS_NOWHERE, "cannot make a pipe: %s", strerror(errno));
    fflush(NULL);
    p->pid = fork();
    if (p->pid < 0) {
        (void)close(ends[0]);
        (void)close(ends[1]);
        return ms_fail(cx, MS_EIO, MS_NOWHERE, "cannot start a process: %s",
                       strerror(errno));
    }
    if (p->pid == 0) {
        (void)close(ends[0]);
        become(p, ends[1], command);
    }
    (void)setpgid(p->pid, p->pid); /* whoever comes first */
    (void)close(ends[1]);
    p->output = ends[0];
    return MS_OK;
}

/* False at the end of the output. */
static bool read_output(const process *p, ms_launch_output *output)
{
    struct pollfd ready = {.fd = p->output, .events = POLLIN};
    if (poll(&ready, 1, 50) <= 0)
        return true;
    char bytes[4096];
    ssize_t num = read(p->output, bytes, sizeof bytes);
    if (num > 0)
        ms_launch_output_add(output, bytes, num, p->terminated ? NULL : stderr);
    return num > 0 || (num < 0 && errno == EINTR);
}

/* First a question, then force. */
static void stop_when_asked(process *p, const sigset_t *signals)
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
        (void)kill(p->pid, SIGTERM); /* mpiexec ends its ranks */
    }
    if (waited_s > KILL_AFTER_S)
        (void)kill(-p->pid, SIGKILL);
}

static void look_whether_ended(process *p)
{
    int status;
    if (p->ended || waitpid(p->pid, &status, WNOHANG) != p->pid)
        return;
    p->ended = true;
    p->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    (void)kill(-p->pid, SIGKILL); /* what is left of the group */
}

/* Ranks may hold the output open for a moment longer than mpiexec lives. */
static void wait_for(process *p, const sigset_t *signals, ms_launch_output *output)
{
    bool reads = true;
    struct timespec pause = {.tv_nsec = 20000000};
    while (!p->ended) {
        if (reads)
            reads = read_output(p, output);
        else
            nanosleep(&pause, NULL);
        stop_when_asked(p, signals);
        look_whether_ended(p);
    }
    struct pollfd ready = {.fd = p->output, .events = POLLIN};
    while (reads && poll(&ready, 1, 0) > 0)
        reads = read_output(p, output);
    (void)close(p->output);
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
        return MS_EINTERRUPTED; /* told by rank 0 */
    return ms_fail(cx, MS_EINTERRUPTED, MS_NOWHERE,
                   "interrupted, and no rank said how far it was");
}

ms_status ms_launch_run(ms_ctx *cx, const ms_launch_job *launch)
{
    char **command = command_line(cx->arena, launch, own_program(cx->arena));
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGUSR1);
    process p = {0};
    (void)sigprocmask(SIG_BLOCK, &signals, &p.before);
    ms_launch_output output = ms_launch_output_open();
    ms_status status = start(cx, command, &p);
    if (status == MS_OK) {
        wait_for(&p, &signals, &output);
        status = p.asked_at_s > 0.0 ? judge_interrupted(cx, &output)
                                    : ms_launch_judge(cx, &output, p.code);
    }
    (void)sigprocmask(SIG_SETMASK, &p.before, NULL);
    return status;
}
