/* Every process begins as a world of its own. They grow together: all that have come so
 * far accept the next. Open MPI's find each other through its ompi-server, which rank 0
 * starts; MPICH's need none. */
#include "exec/backend_mpi_join.h"

#include "base/clock.h"
#include "base/number.h"
#include "exec/backend.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

static ms_status fail_mpi(ms_ctx *cx, int rc, const char *what)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(rc, text, &length);
    ms_fail(cx, MS_EIO, MS_NOWHERE, "MPI could not %s: %s", what, text);
    ms_hint(cx, "start the ranks with mpirun instead of torchrun, or meshsim run alone, "
                "which starts its own");
    return MS_EIO;
}

static bool is_interrupted(const ms_mpi_joined *joined)
{
    return joined->meeting.interrupted != NULL && *joined->meeting.interrupted != 0;
}

static void rest(long milliseconds)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = 1000000 * milliseconds}, NULL);
}

/* ---- Open MPI's server ---- */

#ifdef OPEN_MPI
#define SERVER_S 20.0 /* to begin */

static void become_server(const char *path)
{
#ifdef __linux__
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
#endif
    (void)setpgid(0, 0); /* a Ctrl-C is for the ranks */
    int nothing = open("/dev/null", O_RDWR);
    (void)dup2(nothing, STDIN_FILENO);
    (void)dup2(nothing, STDOUT_FILENO);
    (void)dup2(nothing, STDERR_FILENO);
    execlp("ompi-server", "ompi-server", "--no-daemonize", "--report-uri", path,
           (char *)NULL);
    _exit(127);
}

/* The first line of a file, when it is complete. */
static bool read_line(const char *path, char line[MS_RENDEZVOUS_TEXT])
{
    FILE *file = fopen(path, "r");
    bool whole = file != NULL && fgets(line, MS_RENDEZVOUS_TEXT, file) != NULL &&
                 strchr(line, '\n') != NULL;
    if (file != NULL)
        (void)fclose(file);
    line[whole ? strcspn(line, "\n") : 0] = '\0';
    return whole;
}

/* It says where it listens in a file (its standard output is not flushed); empty when it
 * does not begin. */
static void start_server(ms_ctx *cx, ms_mpi_joined *joined,
                         char address[MS_RENDEZVOUS_TEXT])
{
    char *path =
        ms_arena_printf(cx->arena, "%s/meshsim-server-XXXXXX", ms_temporary_folder());
    int file = mkstemp(path);
    address[0] = '\0';
    if (file < 0)
        return;
    (void)close(file);
    fflush(NULL);
    joined->server = fork();
    if (joined->server == 0)
        become_server(path);
    double until_s = ms_clock_s() + SERVER_S;
    while (joined->server > 0 && ms_clock_s() < until_s && !is_interrupted(joined)) {
        if (read_line(path, address))
            break;
        if (waitpid(joined->server, NULL, WNOHANG) != 0)
            joined->server = 0;
        rest(20);
    }
    (void)unlink(path);
}

/* Ranks of one machine talk to each other there alone. */
static void keep_local(const ms_meeting_point *at)
{
    if (strncmp(at->address, "127.", 4) != 0 && strcmp(at->address, "localhost") != 0)
        return;
    (void)setenv("OMPI_MCA_oob_tcp_if_include", "127.0.0.0/8", 0);
    (void)setenv("OMPI_MCA_btl_tcp_if_include", "127.0.0.0/8", 0);
}

static ms_status find_server(ms_ctx *cx, const ms_meeting_point *at,
                             ms_mpi_joined *joined)
{
    char address[MS_RENDEZVOUS_TEXT] = "";
    keep_local(at);
    if (joined->meeting.rank == 0)
        start_server(cx, joined, address);
    if (is_interrupted(joined))
        return MS_EINTERRUPTED;
    MS_TRY(ms_rendezvous_tell_all(cx, &joined->meeting, address));
    if (address[0] != '\0')
        return setenv("OMPI_MCA_pmix_server_uri", address, 1) == 0
                   ? MS_OK
                   : ms_fail(cx, MS_EIO, MS_NOWHERE, "no memory is left for MPI");
    ms_fail(cx, MS_EIO, MS_NOWHERE,
            "Open MPI joins processes through ompi-server, which does not start");
    ms_hint(cx, "is it in $PATH of rank 0? mpirun needs none");
    return MS_EIO;
}
#else
static ms_status find_server(ms_ctx *cx, const ms_meeting_point *at,
                             ms_mpi_joined *joined)
{
    (void)cx;
    (void)at;
    (void)joined;
    return MS_OK;
}
#endif

static void stop_server(pid_t server)
{
    if (server <= 0)
        return;
    (void)kill(server, SIGTERM);
    for (int i = 0; i < 50; i++) {
        if (waitpid(server, NULL, WNOHANG) != 0)
            return;
        rest(20);
    }
    (void)kill(server, SIGKILL);
    (void)waitpid(server, NULL, 0);
}

/* ---- a rank that waits within MPI ---- */

/* MPI_Comm_accept and MPI_Comm_connect know no limit, and do not notice that nobody will
 * come any more: a thread beside them does. */
typedef struct watch {
    ms_mpi_joined *joined;
    pthread_t thread;
    atomic_bool is_over;
    atomic_long next; /* who is to join */
} watch;

static _Noreturn void end_process(ms_ctx *cx, ms_mpi_joined *joined, ms_status status)
{
    ms_diag_print(cx, stderr);
    fflush(NULL);
    ms_mpi_leave(joined);
    _exit((int)status);
}

/* What has become of the others. Ranks that are interrupted end in any order. */
static ms_status look(ms_ctx *cx, const watch *w, double waited_s, double interrupted_s)
{
    const ms_rendezvous *meeting = &w->joined->meeting;
    long next = atomic_load(&w->next);
    if (is_interrupted(w->joined)) {
        return interrupted_s < MS_INTERRUPTED_WAIT_S
                   ? MS_OK
                   : ms_fail(cx, MS_EINTERRUPTED, MS_NOWHERE,
                             "interrupted while rank %ld of %ld joins", next,
                             meeting->size);
    }
    long gone = ms_rendezvous_missing(meeting);
    if (gone >= 0)
        return ms_fail(cx, MS_EIO, MS_NOWHERE,
                       "rank %ld: rank %ld has ended while rank %ld joins", meeting->rank,
                       gone, next);
    if (waited_s > meeting->timeout_s)
        return ms_fail(cx, MS_EIO, MS_NOWHERE,
                       "rank %ld: waited %g s for rank %ld to join", meeting->rank,
                       meeting->timeout_s, next);
    return MS_OK;
}

static void *watch_others(void *state)
{
    watch *w = state;
    long next = atomic_load(&w->next);
    double since_s = ms_clock_s(), asked_s = since_s;
    ms_ctx own = {.arena = ms_arena_open()};
    while (!atomic_load(&w->is_over)) {
        double now_s = ms_clock_s();
        if (next != atomic_load(&w->next))
            since_s = now_s;
        next = atomic_load(&w->next);
        if (!is_interrupted(w->joined))
            asked_s = now_s;
        ms_status status = look(&own, w, now_s - since_s, now_s - asked_s);
        if (status != MS_OK)
            end_process(&own, w->joined, status);
        rest(20);
    }
    ms_arena_close(own.arena);
    return NULL;
}

/* Signals are for the thread that was there before. */
static ms_status begin_watch(ms_ctx *cx, watch *w)
{
    sigset_t all, before;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&w->thread, NULL, watch_others, w);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error == 0
               ? MS_OK
               : ms_fail(cx, MS_EIO, MS_NOWHERE,
                         "no thread can watch how the ranks join: %s", strerror(error));
}

static void end_watch(watch *w)
{
    atomic_store(&w->is_over, true);
    (void)pthread_join(w->thread, NULL);
}

/* ---- growing together ---- */

/* Called by all ranks up to `next`, which comes when rank 0 has said so: two at once
 * would be taken in any order. */
static ms_status take_next(ms_ctx *cx, const char *port, long next, ms_mpi_joined *joined)
{
    const ms_rendezvous *meeting = &joined->meeting;
    bool comes = meeting->rank == next;
    char go[MS_RENDEZVOUS_TEXT] = "come";
    MPI_Comm both, grown;
    if (comes || meeting->rank == 0)
        MS_TRY(ms_rendezvous_tell(cx, meeting, next, go));
    int rc = comes ? MPI_Comm_connect(port, MPI_INFO_NULL, 0, joined->world, &both)
                   : MPI_Comm_accept(port, MPI_INFO_NULL, 0, joined->world, &both);
    if (rc != MPI_SUCCESS)
        return fail_mpi(cx, rc, "join the ranks");
    rc = MPI_Intercomm_merge(both, comes, &grown);
    if (rc != MPI_SUCCESS)
        return fail_mpi(cx, rc, "join the ranks");
    MPI_Comm_free(&both);
    MPI_Comm_free(&joined->world);
    joined->world = grown;
    MPI_Comm_set_errhandler(grown, MPI_ERRORS_RETURN);
    return MS_OK;
}

static ms_status grow(ms_ctx *cx, ms_mpi_joined *joined, watch *w)
{
    char port[MS_RENDEZVOUS_TEXT] = "";
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    int rc = MPI_Comm_dup(MPI_COMM_SELF, &joined->world);
    if (rc == MPI_SUCCESS && joined->meeting.rank == 0)
        rc = MPI_Open_port(MPI_INFO_NULL, port);
    if (rc != MPI_SUCCESS)
        return fail_mpi(cx, rc, "open a port");
    MS_TRY(ms_rendezvous_tell_all(cx, &joined->meeting, port));
    for (long next = 1; next < joined->meeting.size; next++) {
        atomic_store(&w->next, next);
        if (joined->meeting.rank <= next)
            MS_TRY(take_next(cx, port, next, joined));
    }
    if (joined->meeting.rank == 0)
        MPI_Close_port(port);
    return MS_OK;
}

static ms_status grow_watched(ms_ctx *cx, ms_mpi_joined *joined)
{
    watch w = {.joined = joined};
    atomic_init(&w.next, 1);
    MS_TRY(begin_watch(cx, &w));
    ms_status status = grow(cx, joined, &w);
    end_watch(&w);
    return status;
}

ms_status ms_mpi_join(ms_ctx *cx, const ms_launch *launch, double timeout_s,
                      volatile const int *interrupted, ms_mpi_joined *out)
{
    int provided;
    ms_meeting_point at;
    *out = (ms_mpi_joined){.world = MPI_COMM_NULL};
    if (!ms_launch_meeting_point(&at))
        return ms_fail(cx, MS_EIO, MS_NOWHERE,
                       "MASTER_ADDR and MASTER_PORT do not say where the ranks meet");
    MS_TRY(ms_rendezvous_open(cx, launch, &at, timeout_s, interrupted, &out->meeting));
    MS_TRY(find_server(cx, &at, out));
    int rc = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
    if (rc != MPI_SUCCESS)
        return fail_mpi(cx, rc, "begin");
    return grow_watched(cx, out);
}

/* Who is through sooner may leave before this rank sees that all were here. */
bool ms_mpi_all_done(const ms_mpi_joined *joined)
{
    MPI_Request all;
    int is_done = 0;
    double until_s = ms_clock_s() + joined->meeting.timeout_s;
    bool knows = false;
    if (MPI_Ibarrier(joined->world, &all) != MPI_SUCCESS)
        return false;
    while (!is_done && ms_clock_s() < until_s) {
        if (MPI_Test(&all, &is_done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            return false;
        if (!knows &&
            (is_interrupted(joined) || ms_rendezvous_missing(&joined->meeting) >= 0)) {
            knows = true;
            until_s = ms_min(until_s, ms_clock_s() + MS_INTERRUPTED_WAIT_S);
        }
        if (!is_done)
            rest(1);
    }
    return is_done;
}

void ms_mpi_leave(ms_mpi_joined *joined)
{
    ms_rendezvous_close(&joined->meeting);
    stop_server(joined->server);
    joined->server = 0;
}
