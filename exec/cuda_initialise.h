/* Initial values of weights, made in a GPU's memory: those of ms_initial_value (exec/names.h). */
#ifndef MS_EXEC_CUDA_INITIALISE_H
#define MS_EXEC_CUDA_INITIALISE_H

#include "exec/scalar.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ms_cuda_stream ms_cuda_stream;

#define MS_CUDA_INITIAL_DIMS 4
/* A piece of a rank's part of a weight: elements first .. first + number - 1 of the part, row-major over `shape`, which lie together in memory. Element i[] of the part is at
 * place offset + sum over dims of stride[d] (start[d] + i[d]) of the tensor that has the key; a weight of several experts, each with its own key, takes a call for each. */
typedef struct ms_cuda_initial {
    uint64_t key; /* ms_initial_key */
    double deviation, spread;
    bool is_norm, is_bias;
    int num_dims;
    long shape[MS_CUDA_INITIAL_DIMS], start[MS_CUDA_INITIAL_DIMS],
        stride[MS_CUDA_INITIAL_DIMS];
    long offset;
    long count; /* of the tensor: places from here on are padding, and 0 */
    long first, number;
} ms_cuda_initial;

/* `to`: of element `first`; fp32, fp64 or bf16 (rounded to fp32 before, as a copy of fp32 weights would be). */
void ms_cuda_initialise(ms_cuda_stream *stream, ms_scalar scalar, void *to,
                        const ms_cuda_initial *how);

#ifdef __cplusplus
}
#endif

#endif
