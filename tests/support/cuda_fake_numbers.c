/* Matrix products and reductions of the fake GPU. */
#include "tests/support/cuda_fake_numbers.h"

#include "exec/cpu/gemm.h"
#include "tests/support/cuda_fake_priv.h"

#include <math.h>
#include <string.h>

static float from_bf16(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &wide, sizeof x);
    return x;
}

/* Rounds to the nearest bf16, ties to even. */
static uint16_t to_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (isnan(x))
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Value of an FP8 number (Micikevicius et al. 2022, table 1): e4m3 has no infinity and
 * one NaN of each sign. */
static double from_fp8(ms_scalar scalar, unsigned char bits)
{
    bool is_e4m3 = scalar == MS_SCALAR_E4M3;
    int num_fraction = is_e4m3 ? 3 : 2, bias = is_e4m3 ? 7 : 15;
    int fraction = bits & ((1 << num_fraction) - 1),
        exponent = bits >> num_fraction & (is_e4m3 ? 15 : 31);
    double sign = bits >> 7 ? -1 : 1;
    if (is_e4m3 ? (bits & 0x7f) == 0x7f : exponent == 31)
        return fraction == 0 ? sign * HUGE_VAL : (double)NAN;
    return exponent == 0 ? sign * ldexp(fraction, 1 - bias - num_fraction)
                         : sign * ldexp(fraction + (1 << num_fraction),
                                        exponent - bias - num_fraction);
}

double fake_number(ms_scalar scalar, const void *x, long i)
{
    switch (scalar) {
    case MS_SCALAR_FP32:
        return (double)((const float *)x)[i];
    case MS_SCALAR_FP64:
        return ((const double *)x)[i];
    case MS_SCALAR_BF16:
        return (double)from_bf16(((const uint16_t *)x)[i]);
    case MS_SCALAR_LONG:
        return (double)((const long *)x)[i];
    case MS_SCALAR_BYTE:
        return (double)((const unsigned char *)x)[i];
    case MS_SCALAR_E4M3:
    case MS_SCALAR_E5M2:
        return from_fp8(scalar, ((const unsigned char *)x)[i]);
    case MS_NUM_SCALARS:
        break;
    }
    return (double)NAN;
}

void fake_set_number(ms_scalar scalar, void *x, long i, double value)
{
    switch (scalar) {
    case MS_SCALAR_FP32:
        ((float *)x)[i] = (float)value;
        break;
    case MS_SCALAR_FP64:
        ((double *)x)[i] = value;
        break;
    case MS_SCALAR_BF16:
        ((uint16_t *)x)[i] = to_bf16((float)value);
        break;
    case MS_SCALAR_LONG:
        ((long *)x)[i] = (long)value;
        break;
    case MS_SCALAR_BYTE:
        ((unsigned char *)x)[i] = (unsigned char)value;
        break;
    case MS_SCALAR_E4M3: /* only kernels write FP8 numbers */
    case MS_SCALAR_E5M2:
    case MS_NUM_SCALARS:
        break;
    }
}

/* ---- products ---- */

static long rows_of(const ms_cuda_gemm *p, int operand)
{
    return operand == 0   ? (p->transpose_a ? p->k : p->m)
           : operand == 1 ? (p->transpose_b ? p->n : p->k)
                          : p->m;
}

static long cols_of(const ms_cuda_gemm *p, int operand)
{
    return operand == 0   ? (p->transpose_a ? p->m : p->k)
           : operand == 1 ? (p->transpose_b ? p->k : p->n)
                          : p->n;
}

/* Number type of operand 0 (a) or 1 (b). */
static ms_scalar type_of(const ms_cuda_gemm *p, int operand)
{
    return operand == 1 && ms_scalar_is_fp8(p->type) ? p->type_b : p->type;
}

size_t fake_product_bytes(const ms_cuda_gemm *p, int operand)
{
    long ld = operand == 0 ? p->ld_a : operand == 1 ? p->ld_b : p->ld_c;
    long stride = operand == 0 ? p->stride_a : operand == 1 ? p->stride_b : p->stride_c;
    long rows = rows_of(p, operand), cols = cols_of(p, operand);
    long num_batch = p->num_batch > 1 ? p->num_batch : 1;
    if (rows == 0 || cols == 0)
        return 0;
    return (size_t)((num_batch - 1) * stride + (rows - 1) * ld + cols) *
           ms_scalar_bytes(operand == 2 ? p->result : type_of(p, operand));
}

/* Copies a matrix to fp32 without gaps between rows. */
static float *packed(const ms_cuda_gemm *p, int operand, const void *x, long first,
                     long ld)
{
    ms_scalar type = type_of(p, operand);
    long rows = rows_of(p, operand), cols = cols_of(p, operand);
    float *to = fake_zeroed((size_t)(rows * cols) * sizeof *to);
    for (long i = 0; i < rows; i++)
        for (long j = 0; j < cols; j++)
            to[i * cols + j] = (float)fake_number(type, x, first + i * ld + j);
    return to;
}

/* Computes one product of a batch by an fp32 product of converted operands. */
static void product_by_fp32(const ms_cuda_gemm *p, long index)
{
    bool is_fp8 = ms_scalar_is_fp8(p->type);
    double scale = is_fp8 ? (double)*p->scale_a * (double)*p->scale_b : 1;
    float *packed_a = packed(p, 0, p->a, index * p->stride_a, p->ld_a),
          *packed_b = packed(p, 1, p->b, index * p->stride_b, p->ld_b);
    float *sum = fake_zeroed((size_t)(p->m * p->n) * sizeof *sum);
    ms_gemm gemm = {.transpose_a = p->transpose_a,
                    .transpose_b = p->transpose_b,
                    .m = p->m,
                    .n = p->n,
                    .k = p->k,
                    .ld_a = cols_of(p, 0),
                    .ld_b = cols_of(p, 1),
                    .ld_c = p->n};
    ms_gemm_plain_fp32(&gemm, packed_a, packed_b, sum);
    for (long i = 0; i < p->m; i++) {
        for (long j = 0; j < p->n; j++) {
            long at = index * p->stride_c + i * p->ld_c + j;
            double was = p->add ? fake_number(p->result, p->c, at) : 0;
            fake_set_number(p->result, p->c, at, was + scale * (double)sum[i * p->n + j]);
        }
    }
    free(packed_a);
    free(packed_b);
    free(sum);
}

void fake_run_product(const ms_cuda_gemm *p)
{
    ms_gemm gemm = {p->transpose_a, p->transpose_b, p->add,     p->m,    p->n,
                    p->k,           p->ld_a,        p->ld_b,    p->ld_c, p->num_batch,
                    p->stride_a,    p->stride_b,    p->stride_c};
    if (p->type == MS_SCALAR_FP32)
        ms_gemm_plain_fp32(&gemm, p->a, p->b, p->c);
    else if (p->type == MS_SCALAR_FP64)
        ms_gemm_plain_fp64(&gemm, p->a, p->b, p->c);
    else
        for (long i = 0; i < (p->num_batch > 0 ? p->num_batch : 1); i++)
            product_by_fp32(p, i);
}

/* ---- reductions ---- */

void fake_reduce(ms_scalar scalar, bool maximum, void *to, const void *const *parts,
                 int num_parts, long count)
{
    for (long i = 0; i < count; i++) {
        double sum = fake_number(scalar, parts[0], i);
        for (int part = 1; part < num_parts; part++) {
            double x = fake_number(scalar, parts[part], i);
            sum = maximum ? (x > sum ? x : sum) : sum + x;
            /* fp32 and bf16 are summed in fp32; bf16 is rounded once at the end */
            if (scalar == MS_SCALAR_FP32 || scalar == MS_SCALAR_BF16)
                sum = (double)(float)sum;
        }
        fake_set_number(scalar, to, i, sum);
    }
}
