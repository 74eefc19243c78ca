/* CPU kernels by real type, and stand-ins for BLAS functions in builds without BLAS. */
#include "exec/cpu/kernels.h"

#include "exec/cpu/cpu.h"

#include <pthread.h>

static pthread_once_t prepared = PTHREAD_ONCE_INIT;

const ms_kernels *ms_cpu_kernels(ms_real_type type)
{
    pthread_once(&prepared, ms_gemm_prepare);
    return type == MS_REAL_FP64 ? &ms_cpu_table_fp64 : &ms_cpu_table_fp32;
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
