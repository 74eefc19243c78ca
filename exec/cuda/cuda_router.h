/* The MoE router on a GPU: choice of experts by logits (ROUTE), and its gradient. */
#ifndef MS_EXEC_CUDA_CUDA_ROUTER_H
#define MS_EXEC_CUDA_CUDA_ROUTER_H

#include "exec/core/scalar.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#else
#include "exec/cuda/cuda_call.h"
ms_cuda_op ms_cuda_route, ms_cuda_route_grad;
#endif

typedef struct ms_cuda_stream ms_cuda_stream;

/* Arguments of the router; all arrays but the bias have type `scalar`, fp32 or fp64.
 * Scores are computed in fp64, so that GPUs choose the same experts as CPUs. */
typedef struct ms_cuda_router_args {
    ms_scalar scalar, bias_scalar;
    long num_tokens, num_experts, num_chosen;
    bool is_sigmoid;   /* scores are sigmoids, otherwise exponentials (softmax) */
    bool renormalised; /* scores are divided by the sum of those of chosen experts */
    double scaling;    /* factor of the weights */
    /* experts are chosen from the best `top_groups` of `num_groups` groups; 0: from all */
    long num_groups, top_groups;
    const void *logits; /* (num_tokens, num_experts) */
    const void *bias;   /* (num_experts) added to scores to choose experts; or NULL */
    void *weight;       /* (num_tokens, num_chosen) weights of chosen experts */
    /* (num_tokens, num_chosen) experts, best first (equal scores: lower index first) */
    void *choice;
    const void *gweight; /* (num_tokens, num_chosen) gradient of weight */
    void *glogits;       /* (num_tokens, num_experts) gradient of logits */
    /* true: experts are chosen in turn, not by score. Choice j of token t is expert (t
     * num_chosen + j) mod num_experts; t counts the batch's tokens in stored order. */
    bool is_balanced;
    long length, sequence_length, first_sequence, first_stored;
} ms_cuda_router_args;

/* Largest number of experts, limited by shared memory. */
#define MS_CUDA_ROUTER_EXPERTS 4096

/* Computes the chosen experts (`choice`) and their `weight`. */
void ms_cuda_router_choose(ms_cuda_stream *stream, const ms_cuda_router_args *args);
/* Computes glogits from logits, weight, choice and gweight. */
void ms_cuda_router_gradient(ms_cuda_stream *stream, const ms_cuda_router_args *args);

#ifdef __cplusplus
}
#endif

#endif
