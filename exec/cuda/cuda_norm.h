/* RMSNorm and LayerNorm over the last dimension, and their gradients, on a GPU. */
#ifndef MS_EXEC_CUDA_CUDA_NORM_H
#define MS_EXEC_CUDA_CUDA_NORM_H

#include "exec/core/scalar.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#else
#include "exec/cuda/cuda_call.h"
ms_cuda_op ms_cuda_norm, ms_cuda_norm_grad;
ms_cuda_workspace ms_cuda_norm_grad_bytes;
#endif

typedef struct ms_cuda_stream ms_cuda_stream;

typedef struct ms_cuda_norm_args {
    ms_scalar scalar; /* type of all arrays but the partial sums */
    bool is_centred;  /* LayerNorm, which subtracts the mean; otherwise RMSNorm */
    double epsilon;
    float offset; /* added to weights: 1 in norms that multiply by 1 + weight */
    long num_rows, width;
    const void *x, *weight;
    const void *bias; /* (width); NULL if the norm has no bias */
    void *out;
    /* ---- backward ---- */
    const void *gout;
    void *gx;
    /* (ms_cuda_norm_num_parts, width) each, or NULL if not wanted: gradients of weight
     * and bias, each row a sum over some rows of x; fp32, or fp64 for fp64 */
    void *weight_parts, *bias_parts;
} ms_cuda_norm_args;

void ms_cuda_norm_rows(ms_cuda_stream *stream, const ms_cuda_norm_args *args);
void ms_cuda_norm_rows_grad(ms_cuda_stream *stream, const ms_cuda_norm_args *args);
/* Number of rows of weight_parts, and of bias_parts. */
long ms_cuda_norm_num_parts(ms_scalar scalar, long num_rows, long width);

#ifdef __cplusplus
}
#endif

#endif
