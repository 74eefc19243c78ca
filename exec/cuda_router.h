/* ROUTE and ROUTE_GRAD on a GPU: the choice of experts by their logits. */
#ifndef MS_EXEC_CUDA_ROUTER_H
#define MS_EXEC_CUDA_ROUTER_H

#include "exec/scalar.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#else
#include "exec/cuda_call.h"
ms_cuda_op ms_cuda_route, ms_cuda_route_grad;
#endif

typedef struct ms_cuda_stream ms_cuda_stream;

/* Everything but the bias is of type `scalar`: fp32 or fp64. Scores are made in fp64, so
 * that GPUs choose as CPUs do. */
typedef struct ms_cuda_router_args {
    ms_scalar scalar, bias_scalar;
    long num_tokens, num_experts, num_chosen;
    bool is_sigmoid;    /* scores are sigmoids, otherwise exponentials (softmax) */
    bool renormalised;  /* weights of a token's experts add up to 1 */
    const void *logits; /* (tokens, experts) */
    const void *bias;   /* (experts), added to what the choice goes by; NULL: none */
    void *weight;       /* (tokens, chosen) */
    /* (tokens, chosen): experts as numbers, best first, the lower of equal ones */
    void *choice;
    const void *gweight; /* (tokens, chosen) */
    void *glogits;       /* (tokens, experts) */
    /* is_balanced: slot j of token t takes expert (t chosen + j) mod experts, t =
     * (first_sequence + row / length) sequence_length + first_stored + row % length */
    bool is_balanced;
    long length, sequence_length, first_sequence, first_stored;
} ms_cuda_router_args;

/* Most experts, for the memory of a block. */
#define MS_CUDA_ROUTER_EXPERTS 4096

/* Makes weight and choice. */
void ms_cuda_router_choose(ms_cuda_stream *stream, const ms_cuda_router_args *args);
/* From logits, weight, choice and gweight makes glogits. */
void ms_cuda_router_gradient(ms_cuda_stream *stream, const ms_cuda_router_args *args);

#ifdef __cplusplus
}
#endif

#endif
