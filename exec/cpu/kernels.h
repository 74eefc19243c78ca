/* Folder exec/cpu: kernels and memory on the CPU; no communication.
 *
 * The table of CPU kernels for one real type. */
#ifndef MS_EXEC_CPU_KERNELS_H
#define MS_EXEC_CPU_KERNELS_H

#include "exec/core/kernel_table.h"

/* Kernels in static memory (bf16 also computes fp8 and fp4, by ms_op_call.recipe); the
 * first call prepares BLAS. Callable from any thread. */
const ms_kernels *ms_cpu_kernels(ms_real_type type);
/* The kernels of a run, in which the arrays of an operation may be of several types
 * (exec/core/plan_types.h): fp64, or any of fp32 and bf16. */
const ms_kernels *ms_cpu_run_kernels(ms_real_type type);
/* The kernels on arrays of this type: fp32, fp64 or bf16. */
const ms_kernels *ms_cpu_scalar_kernels(ms_scalar scalar);

#endif
