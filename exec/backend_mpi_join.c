/* Every process begins as a world of its own. They grow together: all that have come so far accept the next. Open MPI's find each other through its ompi-server, which rank 0
 * starts; MPICH's need none. */
#include "exec/backend_mpi_join.h"

#include "base/clock.h"

#include <fcntl.h>
#include <signal.h>
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

/* It says where it listens in a file (its standard output is not flushed); empty when it does not begin. */
static void start_server(ms_mpi_joined *joined, char address[MS_RENDEZVOUS_TEXT])
{
    char path[] = "/tmp/meshsim-server-XXXXXX";
    const struct timespec pause = {.tv_nsec = 20000000};
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
    while (joined->server > 0 && ms_clock_s() < until_s) {
        if (read_line(path, address))
            break;
        if (waitpid(joined->server, NULL, WNOHANG) != 0)
            joined->server = 0;
        nanosleep(&pause, NULL);
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
        start_server(joined, address);
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
    const struct timespec pause = {.tv_nsec = 20000000};
    if (server <= 0)
        return;
    (void)kill(server, SIGTERM);
    for (int i = 0; i < 50; i++) {
        if (waitpid(server, NULL, WNOHANG) != 0)
            return;
        nanosleep(&pause, NULL);
    }
    (void)kill(server, SIGKILL);
    (void)waitpid(server, NULL, 0);
}

/* ---- growing together ---- */

/* Called by all ranks up to `next`, which comes when rank 0 has said so: two at once would be taken in any order. */
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

static ms_status grow(ms_ctx *cx, ms_mpi_joined *joined)
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
    for (long next = 1; next < joined->meeting.size; next++)
        if (joined->meeting.rank <= next)
            MS_TRY(take_next(cx, port, next, joined));
    if (joined->meeting.rank == 0)
        MPI_Close_port(port);
    return MS_OK;
}

ms_status ms_mpi_join(ms_ctx *cx, const ms_launch *launch, double timeout_s,
                      ms_mpi_joined *out)
{
    int provided;
    ms_meeting_point at;
    *out = (ms_mpi_joined){.world = MPI_COMM_NULL};
    if (!ms_launch_meeting_point(&at))
        return ms_fail(cx, MS_EIO, MS_NOWHERE,
                       "MASTER_ADDR and MASTER_PORT do not say where the ranks meet");
    MS_TRY(ms_rendezvous_open(cx, launch, &at, timeout_s, &out->meeting));
    MS_TRY(find_server(cx, &at, out));
    int rc = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
    if (rc != MPI_SUCCESS)
        return fail_mpi(cx, rc, "begin");
    return grow(cx, out);
}

void ms_mpi_leave(ms_mpi_joined *joined)
{
    ms_rendezvous_close(&joined->meeting);
    stop_server(joined->server);
    joined->server = 0;
}
