#include "tests/support/mpi_launch.h"

#include "exec/backend.h"
#include "tests/test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *output_of(const char *command, int *code)
{
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    char *text = ms_arena_alloc(test_cx()->arena, 1 << 16);
    size_t length = fread(text, 1, (1 << 16) - 1, pipe);
    text[length] = '\0';
    int status = pclose(pipe);
    *code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return text;
}

/* The environment with which mpiexec takes more ranks than cores, and the root user. */
const char *ms_mpi_launch(int num_ranks, const char *program, const char *argument,
                          int *code)
{
    int ignored;
    const char *version = output_of("mpiexec --version 2>&1", &ignored);
    bool is_open_mpi =
        strstr(version, "Open MPI") != NULL || strstr(version, "OpenRTE") != NULL;
    char command[2000];
    snprintf(command, sizeof command,
             "env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
             "OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_hwloc_base_binding_policy=none "
             "OMPI_MCA_btl_vader_single_copy_mechanism=none OPENBLAS_NUM_THREADS=1 "
             "ASAN_OPTIONS=detect_leaks=0 mpiexec -n %d %s %s %s 2>&1 </dev/null",
             num_ranks, is_open_mpi ? "--oversubscribe" : "", program, argument);
    return output_of(command, code);
}

long ms_mpi_free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(listener >= 0);
    ASSERT_INT(bind(listener, (const struct sockaddr *)&at, sizeof at), 0);
    ASSERT_INT(getsockname(listener, (struct sockaddr *)&at, &length), 0);
    ASSERT_INT(close(listener), 0);
    return ntohs(at.sin_port);
}

/* The first that fails gives the exit code. */
const char *ms_mpi_launch_joined(int num_ranks, const char *program, const char *argument,
                                 int *code)
{
    char command[2000];
    snprintf(command, sizeof command,
             "{ export WORLD_SIZE=%d MASTER_ADDR=127.0.0.1 MASTER_PORT=%ld "
             "OMPI_MCA_mpi_yield_when_idle=1 OPENBLAS_NUM_THREADS=1 "
             "OMPI_MCA_btl_vader_single_copy_mechanism=none "
             "ASAN_OPTIONS=detect_leaks=0; rank=0; all=; code=0; "
             "while [ $rank -lt $WORLD_SIZE ]; do RANK=$rank %s %s </dev/null & "
             "all=\"$all $!\"; rank=$((rank + 1)); done; "
             "for one in $all; do wait $one || code=$?; done; exit $code; } 2>&1",
             num_ranks, ms_mpi_free_port(), program, argument);
    return output_of(command, code);
}

void ms_mpi_skip_if_missing(void)
{
    int code;
    const char *why = NULL;
    output_of("mpiexec --version >/dev/null 2>&1", &code);
    if (ms_mpi_backend() == NULL)
        why = "MPI is not built in";
    else if (code != 0)
        why = "there is no mpiexec";
#ifdef __SANITIZE_THREAD__
    why = "MPI libraries are not built for the thread sanitizer";
#endif
    if (why == NULL)
        return;
    printf("SKIP: %s\n", why);
    skip();
}

void ms_mpi_skip_if_not_joining(void)
{
    int code;
    output_of("! mpiexec --version 2>&1 | grep -qi 'open' || command -v ompi-server",
              &code);
    if (code == 0)
        return;
    printf("SKIP: there is no ompi-server\n");
    skip();
}
