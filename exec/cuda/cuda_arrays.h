/* GPU kernels of the array operations in exec/core/arrays.h. Each call enqueues work on
 * the stream and returns; a count of 0 is no work. Pointers are to device memory, at
 * multiples of the element size; 16-byte alignment is faster. */
#ifndef MS_EXEC_CUDA_CUDA_ARRAYS_H
#define MS_EXEC_CUDA_CUDA_ARRAYS_H

#include "exec/core/array_args.h"
#include "exec/core/scalar.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ms_cuda_stream ms_cuda_stream;

/* Element-wise operations on fp32, fp64 and bf16 (bf16: in fp32, then rounded once). */
void ms_cuda_array_fill(ms_cuda_stream *stream, ms_scalar scalar, void *to, double value,
                        long count);
/* Adds element by element: to += from. */
void ms_cuda_array_add(ms_cuda_stream *stream, ms_scalar scalar, void *to,
                       const void *from, long count);
void ms_cuda_array_round_sum(ms_cuda_stream *stream, const ms_rounded_sum *sum);
void ms_cuda_array_scale(ms_cuda_stream *stream, ms_scalar scalar, void *x, double factor,
                         long count);
/* Copies a box between arrays that do not overlap; elements of 1, 2, 4, 8 or 16 bytes. */
void ms_cuda_array_copy_box(ms_cuda_stream *stream, const ms_box_copy *copy);

/* A conversion between fp32, fp64 and bf16, rounded to nearest, ties to even. `to` and
 * `from` must not overlap. */
typedef struct ms_cuda_cast {
    ms_scalar to_scalar, from_scalar;
    void *to;
    const void *from;
    long count;
} ms_cuda_cast;
void ms_cuda_array_cast(ms_cuda_stream *stream, const ms_cuda_cast *cast);

/* Adds the sum of x, or of its squares, to *slot in fp64, in an order that depends on
 * `count` alone. `scratch`: MS_CUDA_SUM_BYTES of device memory, 8-byte aligned, which
 * must stay until the stream has finished the call. */
#define MS_CUDA_SUM_BLOCKS 512
#define MS_CUDA_SUM_BYTES  (MS_CUDA_SUM_BLOCKS * sizeof(double))
void ms_cuda_array_add_sum(ms_cuda_stream *stream, ms_scalar scalar, double *slot,
                           const void *x, long count, void *scratch);
void ms_cuda_array_add_squares(ms_cuda_stream *stream, ms_scalar scalar, double *slot,
                               const void *x, long count, void *scratch);

/* One AdamW update. For bf16 weights, gradient, moments and master weights are fp32; the
 * master weights are updated and then rounded to the weights. Otherwise all arrays have
 * the weights' type and `master` is NULL. */
void ms_cuda_array_adamw(ms_cuda_stream *stream, const ms_adamw *how,
                         const ms_update *update);

#ifdef __cplusplus
}
#endif

#endif
