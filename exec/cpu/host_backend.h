/* Functions of backends with CPU kernels, which have finished when their call returns. */
#ifndef MS_EXEC_CPU_HOST_BACKEND_H
#define MS_EXEC_CPU_HOST_BACKEND_H

#include "exec/core/backend.h"
#include "exec/cpu/kernels.h"
#include "exec/cpu/pool.h"

/* Common data of CPU backends: first member of their struct ms_device_rank. */
typedef struct ms_host_rank {
    double sums[MS_MAX_SUMS];
    ms_pool *pool; /* may be shared by ranks */
} ms_host_rank;

/* Take memory from the rank's pool and give it back. */
void *ms_host_allocate(ms_device_rank *device, size_t bytes);
void ms_host_release(ms_device_rank *device, void *memory, size_t bytes);
void ms_host_idle(ms_device_rank *device, double seconds); /* does nothing */
/* Returns event 0, since kernels have finished when their call returns. */
ms_event ms_host_mark(ms_device_rank *device);

size_t ms_host_workspace_bytes(const ms_program *program, const ms_node *node,
                               ms_real_type type);
/* Array operations for fp32, fp64 and bf16; for other types only those that copy bytes. */
extern const ms_array_ops ms_host_arrays;

#endif
