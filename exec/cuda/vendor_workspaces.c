/* Workspaces of cuBLASLt and cuDNN. */
#include "exec/cuda/vendor_priv.h"

ms_cuda_stream_workspace *ms_cuda_stream_workspace_of(ms_cuda_stream_workspaces *all,
                                                      cudaStream_t stream)
{
    for (int i = 0; i < all->num; i++)
        if (all->all[i].stream == stream)
            return &all->all[i];
    if (all->num == MS_CUDA_MAX_WORKSPACES)
        return NULL;
    all->all[all->num] = (ms_cuda_stream_workspace){.stream = stream};
    return &all->all[all->num++];
}

void ms_cuda_stream_workspaces_close(ms_cuda_stream_workspaces *all)
{
    for (int i = 0; i < all->num; i++)
        (void)cudaFree(all->all[i].memory);
    all->num = 0;
}
