#include "tests/support/cuda_backend.h"

#include "exec/backends/modelled.h"

#include "tests/support/cuda_fake.h"

static const ms_cuda_driver *fake_driver(void)
{
    return &ms_cuda_fake_driver;
}

static size_t workspace_bytes(const ms_program *program, const ms_node *node,
                              ms_real_type type)
{
    return ms_cuda_kernels_workspace(&ms_cuda_all_kernels, program, node, type);
}

ms_cuda_backend ms_test_cuda_backend(ms_cuda_transport transport)
{
    ms_cuda_backend made = {.table = ms_cuda_backend_table,
                            .driver = fake_driver,
                            .kernels = &ms_cuda_all_kernels,
                            .transport = transport,
                            .inner = transport == MS_CUDA_MODELLED ? &ms_backend_modelled
                                                                   : &ms_backend_loop,
                            .least_block_bytes = 1};
    made.table.workspace_bytes = workspace_bytes;
    return made;
}
