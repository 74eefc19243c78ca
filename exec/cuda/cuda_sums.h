/* Bias additions and sums over rows (BIAS, SUM_TO, gradients of weights) on a GPU. */
#ifndef MS_EXEC_CUDA_CUDA_SUMS_H
#define MS_EXEC_CUDA_CUDA_SUMS_H

#include "exec/core/scalar.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#else
#include "exec/cuda/cuda_call.h"
ms_cuda_op ms_cuda_bias, ms_cuda_sum_to;
ms_cuda_workspace ms_cuda_sum_to_bytes;
#endif

typedef struct ms_cuda_stream ms_cuda_stream;

/* Sets out to x + bias in every row; all arrays have type `scalar`. */
typedef struct ms_cuda_bias_args {
    ms_scalar scalar;
    long num_rows, width;
    const void *x, *bias;
    void *out;
} ms_cuda_bias_args;

void ms_cuda_add_bias(ms_cuda_stream *stream, const ms_cuda_bias_args *args);

/* ms_cuda_sum_rows sets out (width) to the sum of the rows of x (num_rows, width), plus
 * old values of out if is_added. Sums: fp32, or fp64 for fp64; out: this or x's type. */
typedef struct ms_cuda_sum_args {
    ms_scalar scalar, out_scalar;
    long num_rows, width;
    const void *x;
    void *out;
    bool is_added;
    /* ms_cuda_sum_workspace bytes, 8-byte aligned; may be NULL if that is 0 */
    void *workspace;
} ms_cuda_sum_args;

/* Bytes of workspace that suffice for all types; 0 if the rows are one chunk. */
size_t ms_cuda_sum_workspace(long num_rows, long width);
void ms_cuda_sum_rows(ms_cuda_stream *stream, const ms_cuda_sum_args *args);

#ifdef __cplusplus
}
#endif

#endif
