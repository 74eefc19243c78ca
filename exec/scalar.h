/* The types of numbers in the memory of a rank, and which of them a run uses for what. */
#ifndef MS_EXEC_SCALAR_H
#define MS_EXEC_SCALAR_H

#include <stdbool.h>
#include <stddef.h>

typedef enum ms_scalar {
    MS_SCALAR_FP32,
    MS_SCALAR_FP64,
    MS_SCALAR_BF16,
    MS_SCALAR_LONG,
    MS_SCALAR_BYTE,
    MS_SCALAR_E4M3, /* FP8: operands of matrix products alone (Micikevicius et al. 2022) */
    MS_SCALAR_E5M2,
    MS_NUM_SCALARS
} ms_scalar;
/* "fp32" "fp64" "bf16" "long" "byte" "e4m3" "e5m2", NULL */
extern const char *const ms_scalar_names[];
size_t ms_scalar_bytes(ms_scalar scalar);
/* To the nearest bf16, ties to even. */
double ms_rounded_to_bf16(float x);
static inline bool ms_scalar_is_fp8(ms_scalar scalar)
{
    return scalar == MS_SCALAR_E4M3 || scalar == MS_SCALAR_E5M2;
}

/* What a run computes in. */
typedef enum ms_real_type {
    MS_REAL_FP32,
    MS_REAL_FP64,
    /* mixed precision (Micikevicius et al. 2018): products of bf16 with sums in fp32 */
    MS_REAL_BF16,
    /* as bf16, but layers' products with weights take FP8 operands (exec/cuda_fp8.h) */
    MS_REAL_FP8,
    MS_NUM_REAL_TYPES
} ms_real_type;

typedef struct ms_precision {
    /* activations and their gradients, and weights as kernels read them */
    ms_scalar real;
    /* what layer programs keep in fp32: log-sum-exp, losses, routing */
    ms_scalar statistic;
    ms_scalar gradient; /* of weights: added up over micro-batches, and reduced */
    ms_scalar state;    /* moments of the optimizer, and master weights */
    /* the optimizer keeps weights in `state`, and those in `real` are their copy */
    bool has_master;
    bool has_fp8; /* products with weights take operands in FP8 */
} ms_precision;

/* fp32, fp64: everything is of that type. bf16 and fp8: bf16, fp32, fp32, fp32 and
 * master weights. */
ms_precision ms_precision_of(ms_real_type type);

#endif
