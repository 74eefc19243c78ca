/* Products by CBLAS (OpenBLAS, or any other). */
#include "exec/gemm.h"

#include <cblas.h>
#include <stddef.h>

/* Only OpenBLAS has it; it may be what is linked although its header is not the one that was found. */
#ifndef OPENBLAS_VERSION
extern void openblas_set_num_threads(int num_threads);
#endif
#pragma weak openblas_set_num_threads

void ms_gemm_prepare(void)
{
    if (openblas_set_num_threads != NULL)
        openblas_set_num_threads(1);
}

const char *ms_gemm_library(void)
{
    return openblas_set_num_threads != NULL ? "openblas" : "cblas";
}

static long num_products(const ms_gemm *g)
{
    if (g->m == 0 || g->n == 0)
        return 0;
    return g->num_batch > 0 ? g->num_batch : 1;
}

static CBLAS_TRANSPOSE order_of(bool transposed)
{
    return transposed ? CblasTrans : CblasNoTrans;
}

void ms_gemm_run_fp32(const ms_gemm *g, const float *a, const float *b, float *c)
{
    for (long i = 0; i < num_products(g); i++) {
        cblas_sgemm(CblasRowMajor, order_of(g->transpose_a), order_of(g->transpose_b),
                    (int)g->m, (int)g->n, (int)g->k, 1.0F, a + i * g->stride_a,
                    (int)g->ld_a, b + i * g->stride_b, (int)g->ld_b, g->add ? 1.0F : 0.0F,
                    c + i * g->stride_c, (int)g->ld_c);
    }
}

void ms_gemm_run_fp64(const ms_gemm *g, const double *a, const double *b, double *c)
{
    for (long i = 0; i < num_products(g); i++) {
        cblas_dgemm(CblasRowMajor, order_of(g->transpose_a), order_of(g->transpose_b),
                    (int)g->m, (int)g->n, (int)g->k, 1.0, a + i * g->stride_a,
                    (int)g->ld_a, b + i * g->stride_b, (int)g->ld_b, g->add ? 1.0 : 0.0,
                    c + i * g->stride_c, (int)g->ld_c);
    }
}
