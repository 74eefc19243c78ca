/* What backends on CPUs have in common: memory that the program itself reads and writes,
 * and streams that keep up with it. For their tables of functions. */
#ifndef MS_EXEC_BACKEND_HOST_H
#define MS_EXEC_BACKEND_HOST_H

#include "exec/backend.h"
#include "exec/kernels.h"

/* The first member of their struct ms_device_rank. */
typedef struct ms_host_rank {
    double sums[MS_MAX_SUMS];
} ms_host_rank;

void ms_host_idle(ms_device_rank *device, double seconds); /* does nothing */
/* kernels have run when their call returns */
ms_event ms_host_mark(ms_device_rank *device);

/* Returns when all ranks are there: clocks begin then. */
ms_status ms_host_meet_all(ms_ctx *cx, const ms_backend *backend, ms_device_rank *device);

size_t ms_host_workspace_bytes(const ms_program *program, const ms_node *node,
                               ms_real_type type);
/* Of the kernels' types, fp32 and fp64; of others only what moves bytes. */
extern const ms_array_ops ms_host_arrays;

#endif
