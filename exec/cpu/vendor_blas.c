/* Matrix products by CBLAS (OpenBLAS or any other implementation). */
#include "exec/cpu/gemm.h"

#include <cblas.h>
#include <pthread.h>
#include <stdlib.h>

/* Weak symbol: the linked library may be OpenBLAS although <cblas.h> is another's. */
#ifndef OPENBLAS_VERSION
extern void openblas_set_num_threads(int num_threads);
#endif
#pragma weak openblas_set_num_threads

/* OpenBLAS's own buffers of BUFFER_SIZE bytes (driver/others/memory.c). */
extern void *blas_memory_alloc(int unused);
extern void blas_memory_free(void *buffer);
#pragma weak blas_memory_alloc
#pragma weak blas_memory_free

/* Bytes: OpenBLAS's BUFFER_SIZE (common_x86_64.h, common_arm64.h) and alignment. */
#define BUFFER_BYTES (((size_t)128 << 20) + 65536)

void ms_gemm_prepare(void)
{
    if (openblas_set_num_threads != NULL)
        openblas_set_num_threads(1);
}

const char *ms_gemm_library(void)
{
    return openblas_set_num_threads != NULL ? "openblas" : "cblas";
}

/* Makes OpenBLAS allocate num_threads buffers, which it keeps; false without memory. */
static bool take_buffers(int num_threads)
{
    void **buffers = calloc((size_t)num_threads, sizeof *buffers);
    int num = 0;
    while (buffers != NULL && num < num_threads) {
        /* blas_memory_alloc does not report failure, so try malloc first */
        void *probe = malloc(BUFFER_BYTES);
        free(probe);
        if (probe == NULL)
            break;
        buffers[num++] = blas_memory_alloc(0);
    }
    for (int i = 0; i < num; i++)
        blas_memory_free(buffers[i]);
    free(buffers);
    return num == num_threads;
}

bool ms_gemm_reserve(int num_threads)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static int num_reserved;
    bool enough = true;
    if (blas_memory_alloc == NULL || blas_memory_free == NULL)
        return true;
    pthread_mutex_lock(&lock);
    if (num_threads > num_reserved) {
        enough = take_buffers(num_threads);
        num_reserved = enough ? num_threads : num_reserved;
    }
    pthread_mutex_unlock(&lock);
    return enough;
}

static long num_products(const ms_gemm *g)
{
    if (g->m == 0 || g->n == 0)
        return 0;
    return g->num_batch > 0 ? g->num_batch : 1;
}

static CBLAS_TRANSPOSE cblas_transpose(bool transposed)
{
    return transposed ? CblasTrans : CblasNoTrans;
}

void ms_gemm_run_fp32(const ms_gemm *g, const float *a, const float *b, float *c)
{
    for (long i = 0; i < num_products(g); i++) {
        cblas_sgemm(CblasRowMajor, cblas_transpose(g->transpose_a),
                    cblas_transpose(g->transpose_b), (int)g->m, (int)g->n, (int)g->k,
                    1.0F, a + i * g->stride_a, (int)g->ld_a, b + i * g->stride_b,
                    (int)g->ld_b, g->add ? 1.0F : 0.0F, c + i * g->stride_c,
                    (int)g->ld_c);
    }
}

void ms_gemm_run_fp64(const ms_gemm *g, const double *a, const double *b, double *c)
{
    for (long i = 0; i < num_products(g); i++) {
        cblas_dgemm(CblasRowMajor, cblas_transpose(g->transpose_a),
                    cblas_transpose(g->transpose_b), (int)g->m, (int)g->n, (int)g->k, 1.0,
                    a + i * g->stride_a, (int)g->ld_a, b + i * g->stride_b, (int)g->ld_b,
                    g->add ? 1.0 : 0.0, c + i * g->stride_c, (int)g->ld_c);
    }
}
