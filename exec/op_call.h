/* One operation of a layer program on one rank, with its operands in memory: what kernels
 * and lowerings are called with. */
#ifndef MS_EXEC_OP_CALL_H
#define MS_EXEC_OP_CALL_H

#include "costmodel/program.h"
#include "exec/scalar.h"
#include "sim/part_ops.h"

/* What a rank holds of a tensor: row-major, dims outer to inner. Elements are of type
 * `scalar`; dropout masks are bytes. A rows tensor (MS_DIM_ROWS) has as many rows as were
 * routed to the rank. */
typedef struct ms_local {
    unsigned char scalar; /* ms_scalar */
    void *data; /* NULL in runs without values, and where the rank holds nothing */
    int num_dims;
    long shape[MS_MAX_DIMS];
    /* where the part begins in the whole tensor, in stored order; 0 for rows */
    long start[MS_MAX_DIMS];
    long count; /* product of shape */
    /* count x the element size of the program's tensor; what the ledger counts */
    double bytes;
} ms_local;

/* The tokens of one micro-batch that one data-parallel rank sees. */
typedef struct ms_batch {
    /* stored index of its first sequence within the micro-batch: dp coordinate x microbatch */
    long first_sequence;
    long num_sequences, sequence_length;
    const int *tokens;  /* (num_sequences, sequence_length), by position */
    const int *targets; /* the token after each */
    /* (sequence_length): position of each stored sequence index (head-tail balance over
     * cp); NULL: the same */
    const long *positions;
    /* of the global batch: what the gradient of the loss is divided by */
    double num_tokens;
    unsigned long number; /* of a rank's batches, each has its own from 1 on; 0: none */
} ms_batch;

/* Rows that a rank of the sparse mesh got from each rank of its ep group, and for which
 * of its experts; made by the dispatch. */
typedef struct ms_routing {
    int num_sources;    /* ep */
    long num_experts;   /* held by this rank */
    const long *counts; /* (num_sources, num_experts) received */
    /* (num_sources, num_experts): rows of this rank for each expert of each ep rank */
    const long *sent;
    long num_rows; /* sum of counts */
    /* Ranks that share the experts (etp) gather what each of them got, for each expert in
     * the order of the ranks. */
    int num_sharers;      /* 0: the experts are whole */
    const long *shared;   /* (num_sharers, num_experts) */
    long num_shared_rows; /* sum of shared */
} ms_routing;

/* Rows that a rank holds of a tensor of the sparse mesh. */
static inline long ms_routing_rows(const ms_routing *routing, const ms_tensor *tensor)
{
    bool own = tensor->at[2].kind == MS_SHARD && tensor->at[2].dim == MS_DIM_ROWS;
    return own || routing->num_sharers == 0 ? routing->num_rows
                                            : routing->num_shared_rows;
}

/* Type of a tensor's elements in the memory of a rank: masks are bytes; what the program
 * keeps wider than its compute type is a statistic. */
ms_scalar ms_tensor_scalar(const ms_program *program, int tensor,
                           const ms_precision *precision);

typedef struct ms_op_call {
    const ms_program *program;
    const ms_node *node;
    const ms_local *in[MS_MAX_OPERANDS];
    /* Memory is there, of the right size, with any contents. Gradients of weights
     * (MS_ROLE_WEIGHT_GRADIENT) are ADDED to; data NULL: not wanted (a weight without
     * gradient). The gradient of logits may be the same memory as the logits. */
    ms_local *out[MS_MAX_OPERANDS];
    const ms_batch *batch;
    /* GROUPED and EXCHANGE: of the layer and micro-batch at work */
    const ms_routing *routing;
    /* slot j of token t takes expert (t k + j) mod e, t = sequence x length + stored index */
    bool balanced_routing;
    void *workspace; /* of kernels; ms_kernels.workspace_bytes says how much */
    /* of the node in sim/part_ops.h; NULL: it takes no time there */
    const ms_part_op *predicted;
} ms_op_call;

/* Length of the last dim. */
static inline long ms_local_last(const ms_local *x)
{
    return x->shape[x->num_dims - 1];
}

/* Elements before the last dim. */
static inline long ms_local_leading(const ms_local *x)
{
    long count = 1;
    for (int i = 0; i + 1 < x->num_dims; i++)
        count *= x->shape[i];
    return count;
}

/* Gradients of weights are added to what is there. */
static inline bool ms_op_is_added(const ms_op_call *call, int result)
{
    return call->program->tensors[call->node->out[result]].role ==
           MS_ROLE_WEIGHT_GRADIENT;
}

#endif
