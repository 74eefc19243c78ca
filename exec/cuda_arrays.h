/* Kernels behind exec/arrays.h: what is done to arrays in a GPU's memory. Each call is
 * given to the stream and returns; a count of 0 is no work. Pointers are to the device's
 * memory, at multiples of the element size; 16-byte multiples are faster. */
#ifndef MS_EXEC_CUDA_ARRAYS_H
#define MS_EXEC_CUDA_ARRAYS_H

#include "exec/array_args.h"
#include "exec/scalar.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ms_cuda_stream ms_cuda_stream;

/* Scalars: fp32, fp64, bf16; computed in fp32, in fp64 for fp64, and rounded once. */
void ms_cuda_array_fill(ms_cuda_stream *stream, ms_scalar scalar, void *to, double value,
                        long count);
/* to += from */
void ms_cuda_array_add(ms_cuda_stream *stream, ms_scalar scalar, void *to,
                       const void *from, long count);
void ms_cuda_array_round_sum(ms_cuda_stream *stream, const ms_rounded_sum *sum);
void ms_cuda_array_scale(ms_cuda_stream *stream, ms_scalar scalar, void *x, double factor,
                         long count);
/* Boxes that do not overlap; elements of 1, 2, 4, 8 or 16 bytes. */
void ms_cuda_array_copy_box(ms_cuda_stream *stream, const ms_box_copy *copy);

/* Between types: fp32, fp64 and bf16, to the nearest, ties to even. `to` and `from` are
 * different arrays. */
typedef struct ms_cuda_cast {
    ms_scalar to_scalar, from_scalar;
    void *to;
    const void *from;
    long count;
} ms_cuda_cast;
void ms_cuda_array_cast(ms_cuda_stream *stream, const ms_cuda_cast *cast);

/* *slot += sum of x, or of its squares: in fp64, in an order that depends on `count`
 * alone. `scratch`: MS_CUDA_SUM_BYTES on the device, 8-byte aligned, in use until the
 * stream is past the call. */
#define MS_CUDA_SUM_BLOCKS 512
#define MS_CUDA_SUM_BYTES  (MS_CUDA_SUM_BLOCKS * sizeof(double))
void ms_cuda_array_add_sum(ms_cuda_stream *stream, ms_scalar scalar, double *slot,
                           const void *x, long count, void *scratch);
void ms_cuda_array_add_squares(ms_cuda_stream *stream, ms_scalar scalar, double *slot,
                               const void *x, long count, void *scratch);

/* Weights of bf16: gradient, moments and master are fp32, the weight becomes the rounded
 * master; otherwise all are of the weight's type, without master. */
void ms_cuda_array_adamw(ms_cuda_stream *stream, const ms_adamw *how,
                         const ms_update *update);

#ifdef __cplusplus
}
#endif

#endif
