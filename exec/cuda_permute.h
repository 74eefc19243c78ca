/* PERMUTE, UNPERMUTE and their gradients on a GPU: copies of tokens in the order of
 * their experts. */
#ifndef MS_EXEC_CUDA_PERMUTE_H
#define MS_EXEC_CUDA_PERMUTE_H

#include "exec/scalar.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#else
#include "exec/cuda_call.h"
ms_cuda_op ms_cuda_permute, ms_cuda_permute_grad, ms_cuda_unpermute,
    ms_cuda_unpermute_grad;
ms_cuda_workspace ms_cuda_permute_bytes; /* of each of them */
#endif

typedef struct ms_cuda_stream ms_cuda_stream;

/* Rows are ordered by expert, and those of an expert by token. Weights are fp64 for rows
 * of fp64, otherwise fp32; sums are made in that type. */
typedef struct ms_cuda_permute_args {
    ms_scalar scalar, choice_scalar;
    long num_tokens, num_chosen, num_experts, width;
    const void *choice; /* (tokens, chosen): experts as numbers */
    void *workspace;    /* ms_cuda_permute_room, 8-byte aligned */
    void *x;            /* (tokens, width) */
    void *rows;         /* (tokens chosen, width) */
    const void *weight; /* (tokens, chosen) */
    /* gradients of UNPERMUTE */
    void *grows;   /* (tokens chosen, width) */
    void *gweight; /* (tokens, chosen) */
} ms_cuda_permute_args;

size_t ms_cuda_permute_room(long num_copies, long num_experts);

/* rows <- x */
void ms_cuda_permute_rows(ms_cuda_stream *stream, const ms_cuda_permute_args *args);
/* x <- rows, those of a token added up; times weight if there is one. */
void ms_cuda_permute_back(ms_cuda_stream *stream, const ms_cuda_permute_args *args);
/* x is the gradient of what ms_cuda_permute_back gave with weights: makes grows = weight
 * x and gweight = rows . x. */
void ms_cuda_permute_back_grad(ms_cuda_stream *stream, const ms_cuda_permute_args *args);

#ifdef __cplusplus
}
#endif

#endif
