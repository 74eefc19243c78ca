#include "tests/support/mpi_launch.h"

#include "exec/core/backend.h"
#include "tests/test.h"

#include <string.h>
#include <sys/wait.h>

const char *ms_test_shell(const char *command, int *code)
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

/* Sets the environment variables with which mpiexec accepts more ranks than cores, and
 * the root user. */
const char *ms_mpi_launch(int num_ranks, const char *program, const char *argument,
                          int *code)
{
    int ignored;
    const char *version = ms_test_shell("mpiexec --version 2>&1", &ignored);
    bool is_open_mpi =
        strstr(version, "Open MPI") != NULL || strstr(version, "OpenRTE") != NULL;
    char command[2000];
    snprintf(command, sizeof command,
             "env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
             "OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_hwloc_base_binding_policy=none "
             "OMPI_MCA_btl_vader_single_copy_mechanism=none OPENBLAS_NUM_THREADS=1 "
             "ASAN_OPTIONS=detect_leaks=0 mpiexec -n %d %s %s %s 2>&1 </dev/null",
             num_ranks, is_open_mpi ? "--oversubscribe" : "", program, argument);
    return ms_test_shell(command, code);
}

void ms_mpi_skip_if_missing(void)
{
    int code;
    const char *why = NULL;
    ms_test_shell("mpiexec --version >/dev/null 2>&1", &code);
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
