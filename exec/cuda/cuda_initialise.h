/* Initial values of weights, computed on a GPU: equal to ms_initial_value
 * (exec/params/names.h) up to the last digits of sin, cos and log. */
#ifndef MS_EXEC_CUDA_CUDA_INITIALISE_H
#define MS_EXEC_CUDA_CUDA_INITIALISE_H

#include "exec/core/array_args.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ms_cuda_stream ms_cuda_stream;

/* Writes initial values of a piece of a weight, from element piece->first on, to to[0],
 * ... Types: fp32, fp64, bf16 (rounded to fp32 first, like a cast of fp32 weights). */
void ms_cuda_initialise(ms_cuda_stream *stream, ms_scalar scalar, void *to,
                        const ms_initial_piece *piece);

#ifdef __cplusplus
}
#endif

#endif
