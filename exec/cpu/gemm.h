/* Matrix products of row-major arrays in fp32 and fp64: by BLAS if the build has one
 * (exec/cpu/vendor_blas.c), otherwise by plain loops. Single-threaded, without state. */
#ifndef MS_EXEC_CPU_GEMM_H
#define MS_EXEC_CPU_GEMM_H

#include "exec/core/real.h"

#include <stdbool.h>

/* c (m, n) = op(a) op(b) [+ c]. op(a) is (m, k), and a is stored as (k, m) if transposed;
 * likewise op(b) (k, n). ld_*: elements between the starts of stored rows. c must not
 * overlap a or b. */
typedef struct ms_gemm {
    bool transpose_a, transpose_b;
    bool add; /* add to the content of c; otherwise c is overwritten */
    long m, n, k;
    long ld_a, ld_b, ld_c;
    /* number of products, whose operands are stride_* elements apart; 0 means 1 */
    long num_batch;
    long stride_a, stride_b, stride_c;
} ms_gemm;

void ms_gemm_run_fp32(const ms_gemm *gemm, const float *a, const float *b, float *c);
void ms_gemm_run_fp64(const ms_gemm *gemm, const double *a, const double *b, double *c);

/* Plain loops, which every build has. */
void ms_gemm_plain_fp32(const ms_gemm *gemm, const float *a, const float *b, float *c);
void ms_gemm_plain_fp64(const ms_gemm *gemm, const double *a, const double *b, double *c);

/* "openblas" or "plain", for reports. */
const char *ms_gemm_library(void);

/* Must precede the first product of a process: limits BLAS to one thread per call, since
 * every rank has its own thread. */
void ms_gemm_prepare(void);

/* Reserves scratch buffers for products of num_threads threads at once. Callable from any
 * thread; requests for no more than before do nothing. False if memory does not suffice.
 * Without it OpenBLAS would retry for ever when memory runs out during a run. */
bool ms_gemm_reserve(int num_threads);

#endif
