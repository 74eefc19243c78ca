/* Folder exec/cpu: kernels and memory on the CPU; no communication.
 *
 * The table of CPU kernels for one real type. */
#ifndef MS_EXEC_CPU_KERNELS_H
#define MS_EXEC_CPU_KERNELS_H

#include "exec/core/kernel_table.h"

/* Kernels in static memory; the first call prepares BLAS. Callable from any thread. */
const ms_kernels *ms_cpu_kernels(ms_real_type type);

#endif
