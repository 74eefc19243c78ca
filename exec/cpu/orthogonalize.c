#include "exec/cpu/orthogonalize.h"

#include "exec/cpu/gemm.h"

#include <math.h>

/* Coefficients of the quintic iteration, and the addend of the norm: Jordan et al. 2024. */
#define MUON_A       3.4445
#define MUON_B       (-4.7750)
#define MUON_C       2.0315
#define MUON_EPSILON 1e-7

static double norm_of(const double *x, long count)
{
    double sum = 0.0;
    for (long i = 0; i < count; i++)
        sum += x[i] * x[i];
    return sqrt(sum);
}

static void scale(double *x, double factor, long count)
{
    for (long i = 0; i < count; i++)
        x[i] *= factor;
}

void ms_host_orthogonalize(double *x, long m, long n, int iterations, double *scratch)
{
    double *a = scratch, *b = a + m * m, *bx = b + m * m;
    const ms_gemm outer = {
        .transpose_b = true, .m = m, .n = m, .k = n, .ld_a = n, .ld_b = n, .ld_c = m};
    const ms_gemm square = {.m = m, .n = m, .k = m, .ld_a = m, .ld_b = m, .ld_c = m};
    const ms_gemm last = {.m = m, .n = n, .k = m, .ld_a = m, .ld_b = n, .ld_c = n};
    scale(x, 1.0 / (norm_of(x, m * n) + MUON_EPSILON), m * n);
    for (int i = 0; i < iterations; i++) {
        ms_gemm_run_fp64(&outer, x, x, a);
        ms_gemm_run_fp64(&square, a, a, b);
        for (long j = 0; j < m * m; j++)
            b[j] = MUON_B * a[j] + MUON_C * b[j];
        ms_gemm_run_fp64(&last, b, x, bx);
        for (long j = 0; j < m * n; j++)
            x[j] = MUON_A * x[j] + bx[j];
    }
}
