/* Number types of arrays on a rank, and the types that a run's precision uses. */
#ifndef MS_EXEC_CORE_SCALAR_H
#define MS_EXEC_CORE_SCALAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum ms_scalar {
    MS_SCALAR_FP32,
    MS_SCALAR_FP64,
    MS_SCALAR_BF16,
    MS_SCALAR_LONG,
    MS_SCALAR_BYTE,
    MS_SCALAR_E4M3, /* FP8, for matrix products (Micikevicius et al. 2022) */
    MS_SCALAR_E5M2,
    MS_NUM_SCALARS
} ms_scalar;
/* "fp32" "fp64" "bf16" "long" "byte" "e4m3" "e5m2", ended by NULL */
extern const char *const ms_scalar_names[];
/* Bytes of one element. */
size_t ms_scalar_bytes(ms_scalar scalar);
/* The bf16 number nearest to x, ties to even; a NaN stays one. */
uint16_t ms_bf16_of(double x);
double ms_bf16_value(uint16_t bf16);
static inline double ms_rounded_to_bf16(double x)
{
    return ms_bf16_value(ms_bf16_of(x));
}
static inline bool ms_scalar_is_fp8(ms_scalar scalar)
{
    return scalar == MS_SCALAR_E4M3 || scalar == MS_SCALAR_E5M2;
}

/* Precision in which a run computes. */
typedef enum ms_real_type {
    MS_REAL_FP32,
    MS_REAL_FP64,
    /* mixed precision (Micikevicius et al. 2018): bf16 operands, fp32 sums */
    MS_REAL_BF16,
    /* bf16 with products of layers' weights in 8 or 4 bits (exec/cuda/cuda_fp8.h,
     * exec/cpu/quantize.h) */
    MS_REAL_FP8,
    MS_REAL_FP4,
    MS_NUM_REAL_TYPES
} ms_real_type;

typedef struct ms_precision {
    ms_scalar real;      /* activations, their gradients, and frozen weights */
    ms_scalar statistic; /* tensors kept in fp32: log-sum-exp, losses, routing */
    ms_scalar param;     /* weights between steps */
    ms_scalar gather;    /* weights as messages, and as ZeRO-3 gathers them */
    ms_scalar gradient;  /* sums of weights' gradients over micro-batches */
    ms_scalar comm; /* reductions of gradients; a micro-batch's with ZeRO-2 and ZeRO-3 */
    ms_scalar moment; /* moments of the optimizer; BYTE: codes in 8 bits */
    ms_scalar master; /* master weights, of which the weights are a copy */
    bool has_master;
    bool has_fp8; /* products of layers' weights take FP8 operands */
} ms_precision;

/* fp32, fp64: that type for all. bf16, fp8, fp4: `real`, `param` and `gather` are bf16, all
 * else fp32; has_master. */
ms_precision ms_precision_of(ms_real_type type);

#endif
