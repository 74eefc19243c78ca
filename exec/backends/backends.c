#include "exec/backends/backends.h"

#include <string.h>

const char *const ms_backend_names[] = {
    [MS_BACKEND_AUTO] = "auto", [MS_BACKEND_NULL] = "null", [MS_BACKEND_LOOP] = "loop",
    [MS_BACKEND_MPI] = "mpi",   [MS_BACKEND_CUDA] = "cuda", NULL};

static const ms_backend *const backends[] = {
    &ms_backend_loop,
    &ms_backend_null,
#ifdef MS_WITH_MPI
    &ms_backend_mpi,
#endif
};

const ms_backend *ms_backend_find(const char *name)
{
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++)
        if (strcmp(backends[i]->name, name) == 0)
            return backends[i];
    return strcmp(name, "cuda") == 0 ? ms_cuda_backend_by(MS_CUDA_BY_NCCL) : NULL;
}
