/* Matrix products of row-major arrays, for fp32 and fp64: by a BLAS where the build has
 * one (exec/backend_blas.c), otherwise by plain loops. One thread, no memory, no state. */
#ifndef MS_EXEC_GEMM_H
#define MS_EXEC_GEMM_H

#include "exec/real.h"

#include <stdbool.h>

/* c (m, n) = op(a) op(b) [+ c]; op(a) is (m, k), and a is stored (k, m) when it is
 * transposed; likewise op(b) (k, n). ld_*: elements from one stored row to the next. c
 * must not overlap a or b. */
typedef struct ms_gemm {
    bool transpose_a, transpose_b;
    bool add; /* to what c holds; otherwise c may hold anything */
    long m, n, k;
    long ld_a, ld_b, ld_c;
    /* num_batch products, whose operands are this many elements apart; 0 is 1 */
    long num_batch;
    long stride_a, stride_b, stride_c;
} ms_gemm;

void ms_gemm_run_fp32(const ms_gemm *gemm, const float *a, const float *b, float *c);
void ms_gemm_run_fp64(const ms_gemm *gemm, const double *a, const double *b, double *c);

/* The same by plain loops, in every build. */
void ms_gemm_plain_fp32(const ms_gemm *gemm, const float *a, const float *b, float *c);
void ms_gemm_plain_fp64(const ms_gemm *gemm, const double *a, const double *b, double *c);

/* "openblas" or "plain", for reports. */
const char *ms_gemm_library(void);

/* Before the first product of a process: a BLAS uses one thread a call, since every rank
 * has its own. */
void ms_gemm_prepare(void);

/* Room for products of so many threads at once, from any thread; later calls for no more
 * threads do nothing. False: there is no memory for it. A BLAS that took its buffers in
 * the middle of a run could not say so: OpenBLAS tries for ever. */
bool ms_gemm_reserve(int num_threads);

#endif
