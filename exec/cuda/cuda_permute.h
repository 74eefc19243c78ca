/* PERMUTE, UNPERMUTE and their gradients on a GPU: copies of tokens ordered by expert. */
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
ms_cuda_workspace ms_cuda_permute_bytes; /* workspace of each of the four operations */
#endif

typedef struct ms_cuda_stream ms_cuda_stream;

/* Rows are ordered by expert, rows of an expert by token. Weights and sums are fp64 for
 * rows of fp64, otherwise fp32. */
typedef struct ms_cuda_permute_args {
    ms_scalar scalar, choice_scalar;
    long num_tokens, num_chosen, num_experts, width;
    const void *choice; /* (tokens, chosen): indices of experts */
    void *workspace;    /* ms_cuda_permute_buffers bytes, 8-byte aligned */
    void *x;            /* tokens (num_tokens, width) */
    void *rows;         /* copies of tokens (num_tokens num_chosen, width) */
    const void *weight; /* weights of copies (num_tokens, num_chosen) */
    /* ---- gradients of UNPERMUTE ---- */
    void *grows;   /* gradient of rows (num_tokens num_chosen, width) */
    void *gweight; /* gradient of weight (num_tokens, num_chosen) */
} ms_cuda_permute_args;

size_t ms_cuda_permute_buffers(long num_copies, long num_experts);

/* Copies each token to the rows of its copies. */
void ms_cuda_permute_rows(ms_cuda_stream *stream, const ms_cuda_permute_args *args);
/* x <- sum of the rows of each token, times weight if that is not NULL. */
void ms_cuda_permute_back(ms_cuda_stream *stream, const ms_cuda_permute_args *args);
/* Gradient of ms_cuda_permute_back with weights, where x is the gradient of its result:
 * grows = weight x and gweight = rows . x. */
void ms_cuda_permute_back_grad(ms_cuda_stream *stream, const ms_cuda_permute_args *args);

#ifdef __cplusplus
}
#endif

#endif
