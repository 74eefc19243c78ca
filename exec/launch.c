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

char **ms_launch_command(ms_arena *arena, const ms_launch_job *launch,
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

enum {
    OUTPUT,
    ERRORS,
    NUM_STREAMS
};

typedef struct process {
    pid_t pid;
    struct pollfd from[NUM_STREAMS]; /* a stream that has ended has none */
    FILE *said;                      /* takes its standard output, in memory */
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

static void become(const process *p, const int *to, char *const *command)
{
    follow_parent();
    (void)setpgid(0, 0);
    (void)sigprocmask(SIG_SETMASK, &p->before, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    int nothing = open("/dev/null", O_RDONLY);
    (void)dup2(nothing, STDIN_FILENO); /* a background group must not read a terminal */
    (void)dup2(to[OUTPUT], STDOUT_FILENO);
    (void)dup2(to[ERRORS], STDERR_FILENO);
    for (int i = 0; i < NUM_STREAMS; i++) {
        (void)close(to[i]);
        (void)close(p->from[i].fd);
    }
    execvp(command[0], command);
    dprintf(STDERR_FILENO, "error: cannot start %s: %s\n", command[0], strerror(errno));
    _exit(MS_EIO);
}

static ms_status open_pipes(ms_ctx *cx, process *p, int *to)
{
    for (int i = 0; i < NUM_STREAMS; i++) {
        int ends[2];
        if (pipe(ends) != 0)
            return ms_fail(cx, MS_EIO, MS_NOWHERE, "cannot make a pipe: %s",
                           strerror(errno));
        p->from[i] = (struct pollfd){.fd = ends[0], .events = POLLIN};
        to[i] = ends[1];
    }
    return MS_OK;
}

static ms_status start(ms_ctx *cx, char *const *command, process *p)
{
    int to[NUM_STREAMS] = {-1, -1};
    MS_TRY(open_pipes(cx, p, to));
    fflush(NULL);
    p->pid = fork();
    if (p->pid == 0)
        become(p, to, command);
    int error = errno;
    for (int i = 0; i < NUM_STREAMS; i++)
        (void)close(to[i]);
    if (p->pid < 0)
        return ms_fail(cx, MS_EIO, MS_NOWHERE, "cannot start a process: %s",
                       strerror(error));
    (void)setpgid(p->pid, p->pid); /* whoever comes first */
    return MS_OK;
}

static void read_stream(process *p, int stream, ms_launch_output *output)
{
    char bytes[4096];
    ssize_t num = read(p->from[stream].fd, bytes, sizeof bytes);
    if (num > 0 && stream == OUTPUT) {
        (void)fwrite(bytes, 1, (size_t)num, p->said);
    } else if (num > 0) {
        ms_launch_output_add(output, bytes, num, p->terminated ? NULL : stderr);
    } else if (num == 0 || errno != EINTR) {
        (void)close(p->from[stream].fd);
        p->from[stream].fd = -1;
    }
}

/* False: nothing has come within the time. */
static bool read_streams(process *p, ms_launch_output *output, int wait_ms)
{
    if (poll(p->from, NUM_STREAMS, wait_ms) <= 0)
        return false;
    for (int i = 0; i < NUM_STREAMS; i++)
        if (p->from[i].revents != 0)
            read_stream(p, i, output);
    return true;
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

/* Ranks may hold the streams open for a moment longer than mpiexec lives. */
static void wait_for(process *p, const sigset_t *signals, ms_launch_output *output)
{
    while (!p->ended) {
        (void)read_streams(p, output, 50);
        stop_when_asked(p, signals);
        look_whether_ended(p);
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
        return MS_EINTERRUPTED; /* told by rank 0 */
    return ms_fail(cx, MS_EINTERRUPTED, MS_NOWHERE,
                   "interrupted, and no rank said how far it was");
}

ms_status ms_launch_run(ms_ctx *cx, const ms_launch_job *launch)
{
    char **command = ms_launch_command(cx->arena, launch, own_program(cx->arena));
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGUSR1);
    char *said = NULL;
    size_t length = 0;
    process p = {.from = {{.fd = -1}, {.fd = -1}},
                 .said = open_memstream(&said, &length)};
    if (p.said == NULL)
        return ms_fail(cx, MS_EIO, MS_NOWHERE, "no memory is left for what ranks print");
    (void)sigprocmask(SIG_BLOCK, &signals, &p.before);
    ms_launch_output output = ms_launch_output_open();
    ms_status status = start(cx, command, &p);
    if (status == MS_OK) {
        wait_for(&p, &signals, &output);
        status = p.asked_at_s > 0.0 ? judge_interrupted(cx, &output)
                                    : ms_launch_judge(cx, &output, p.code);
    }
    (void)sigprocmask(SIG_SETMASK, &p.before, NULL);
    for (int i = 0; i < NUM_STREAMS; i++)
        if (p.from[i].fd >= 0)
            (void)close(p.from[i].fd);
    (void)fclose(p.said);
    (void)fwrite(said, 1, length, stdout);
    free(said);
    return status;
}
