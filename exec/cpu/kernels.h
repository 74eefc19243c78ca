/* Room exec/cpu: kernels and memory on the CPU; no communication.
 *
 * The table of CPU kernels for one real type. */
#ifndef MS_EXEC_CPU_KERNELS_H
#define MS_EXEC_CPU_KERNELS_H

#include "exec/core/kernel_table.h"

/* Static table; the first call prepares matrix products. Callable from any thread. */
const ms_kernels *ms_cpu_kernels(ms_real_type type);

#endif
