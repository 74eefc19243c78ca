/* CPU kernels by real type, and stand-ins for BLAS functions in builds without BLAS. */
#include "exec/cpu/kernels.h"

#include "exec/cpu/cpu.h"

#include <assert.h>
#include <pthread.h>

static pthread_once_t prepared = PTHREAD_ONCE_INIT;

static void prepare(void)
{
    ms_gemm_prepare();
    ms_cpu_prepare_bf16();
}

const ms_kernels *ms_cpu_kernels(ms_real_type type)
{
    static const ms_kernels *const tables[] = {[MS_REAL_FP32] = &ms_cpu_table_fp32,
                                               [MS_REAL_FP64] = &ms_cpu_table_fp64,
                                               [MS_REAL_BF16] = &ms_cpu_table_bf16,
                                               [MS_REAL_FP8] = &ms_cpu_table_bf16,
                                               [MS_REAL_FP4] = &ms_cpu_table_bf16};
    pthread_once(&prepared, prepare);
    return tables[type];
}

const ms_kernels *ms_cpu_run_kernels(ms_real_type type)
{
    return ms_cpu_kernels(type == MS_REAL_FP64 ? MS_REAL_FP64 : MS_REAL_BF16);
}

const ms_kernels *ms_cpu_scalar_kernels(ms_scalar scalar)
{
    static const ms_real_type types[] = {[MS_SCALAR_FP32] = MS_REAL_FP32,
                                         [MS_SCALAR_FP64] = MS_REAL_FP64,
                                         [MS_SCALAR_BF16] = MS_REAL_BF16};
    assert(scalar <= MS_SCALAR_BF16);
    return ms_cpu_kernels(types[scalar]);
}

#ifndef MS_WITH_BLAS
const char *ms_gemm_library(void)
{
    return "plain";
}

void ms_gemm_prepare(void)
{
}

bool ms_gemm_reserve(int num_threads)
{
    (void)num_threads;
    return true;
}
#endif
