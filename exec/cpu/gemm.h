/* Row-major matrix products by BLAS (vendor_blas.c) or loops; single-threaded. */
#ifndef MS_EXEC_CPU_GEMM_H
#define MS_EXEC_CPU_GEMM_H

#include "exec/core/real.h"

#include <stdbool.h>

/* c (m, n) = op(a) op(b) [+ c], where op(a) (m, k) is a, or a transposed from (k, m);
 * likewise op(b). ld_*: elements between row starts. c must not overlap a or b. */
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

/* Matrix products by plain loops, which every build has. */
void ms_gemm_plain_fp32(const ms_gemm *gemm, const float *a, const float *b, float *c);
void ms_gemm_plain_fp64(const ms_gemm *gemm, const double *a, const double *b, double *c);

/* Library of matrix products, for reports: "openblas", "cblas" or "plain" (loops). */
const char *ms_gemm_library(void);

/* Must be called before the first product: limits BLAS to one thread per call. */
void ms_gemm_prepare(void);

/* Reserves BLAS buffers for num_threads simultaneous products; callable from any thread.
 * False if memory does not suffice: such products would make OpenBLAS retry for ever. */
bool ms_gemm_reserve(int num_threads);

#endif
