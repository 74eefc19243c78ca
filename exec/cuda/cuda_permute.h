/* Copies tokens to rows ordered by chosen expert (PERMUTE) and back, on a GPU. */
#ifndef MS_EXEC_CUDA_CUDA_PERMUTE_H
#define MS_EXEC_CUDA_CUDA_PERMUTE_H

#include "exec/core/scalar.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#else
#include "exec/cuda/cuda_call.h"
ms_cuda_op ms_cuda_permute, ms_cuda_permute_grad, ms_cuda_unpermute,
    ms_cuda_unpermute_grad;
ms_cuda_workspace ms_cuda_permute_bytes; /* workspace of PERMUTE, UNPERMUTE, gradients */
#endif

typedef struct ms_cuda_stream ms_cuda_stream;

/* Rows are in the order of their experts; those of one expert, in the order of tokens.
 * Weights and sums are fp64 for fp64 rows, otherwise fp32. */
typedef struct ms_cuda_permute_args {
    ms_scalar scalar, choice_scalar;
    long num_tokens, num_chosen, num_experts, width;
    const void *choice; /* (num_tokens, num_chosen) indices of experts */
    void *workspace;    /* ms_cuda_permute_buffers bytes, 8-byte aligned */
    void *x;            /* (num_tokens, width) tokens */
    void *rows;         /* (num_tokens num_chosen, width) copies of tokens */
    const void *weight; /* (num_tokens, num_chosen) weights of copies */
    /* ---- gradients of UNPERMUTE ---- */
    void *grows;   /* (num_tokens num_chosen, width) gradient of rows */
    void *gweight; /* (num_tokens, num_chosen) gradient of weight */
} ms_cuda_permute_args;

size_t ms_cuda_permute_buffers(long num_copies, long num_experts);

/* Copies each token of x to its num_chosen rows. */
void ms_cuda_permute_rows(ms_cuda_stream *stream, const ms_cuda_permute_args *args);
/* Sets each token of x to the sum of its rows, times `weight` if that is not NULL. */
void ms_cuda_permute_back(ms_cuda_stream *stream, const ms_cuda_permute_args *args);
/* Gradients of ms_cuda_permute_back with weights. Input x is the gradient of its result;
 * grows = weight times x, gweight = dot product of rows and x. */
void ms_cuda_permute_back_grad(ms_cuda_stream *stream, const ms_cuda_permute_args *args);

#ifdef __cplusplus
}
#endif

#endif
