/* The backend "cuda" for this machine's GPUs, with compiled kernels and libraries. */
#include "exec/backends/backends.h"
#include "exec/backends/modelled.h"

#ifdef MS_WITH_CUDA
static size_t workspace_bytes(const ms_program *program, const ms_node *node,
                              ms_real_type type)
{
    return ms_cuda_kernels_workspace(&ms_cuda_all_kernels, program, node, type);
}

static ms_cuda_backend make(ms_cuda_transport transport)
{
    ms_cuda_backend made = {.table = ms_cuda_backend_table,
                            .driver = ms_cuda_driver_of_libraries,
                            .kernels = &ms_cuda_all_kernels,
                            .transport = transport,
                            .inner = transport == MS_CUDA_MODELLED ? &ms_backend_modelled
                                                                   : NULL};
    made.table.workspace_bytes = workspace_bytes;
    return made;
}

const ms_backend *ms_cuda_backend_by(ms_cuda_transport transport)
{
    static ms_cuda_backend all[MS_NUM_CUDA_TRANSPORTS];
    all[transport] = make(transport);
    return &all[transport].table;
}
#else
const ms_backend *ms_cuda_backend_by(ms_cuda_transport transport)
{
    (void)transport;
    return NULL;
}
#endif
