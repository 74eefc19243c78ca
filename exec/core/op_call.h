/* One operation of a layer program on one rank: the argument of kernels and lowerings. */
#ifndef MS_EXEC_CORE_OP_CALL_H
#define MS_EXEC_CORE_OP_CALL_H

#include "costmodel/program/program.h"
#include "exec/core/scalar.h"
#include "sim/simulate/block_ops.h"

/* A rank's shard of a tensor: row-major, dims outer to inner. A tensor with MS_DIM_ROWS
 * has as many rows as were routed to the rank. */
typedef struct ms_local {
    unsigned char scalar; /* ms_scalar */
    void *data;           /* NULL without values, or if the rank holds nothing */
    int num_dims;
    long shape[MS_MAX_DIMS];
    /* stored index of its first sequence: dp coordinate x num_sequences */
    long start[MS_MAX_DIMS];
    long count;   /* product of shape */
    double bytes; /* count x element size of the program, as in the ledger */
} ms_local;

/* The tokens of one micro-batch on one data-parallel rank. */
typedef struct ms_batch {
    /* stored index of the first sequence: dp coordinate x sequences per rank */
    long first_sequence;
    long num_sequences, sequence_length;
    const int *tokens;  /* (num_sequences, sequence_length), by position */
    const int *targets; /* next token after each token */
    /* (sequence_length) position of each stored index, permuted for head-tail balance
     * over cp; NULL if equal to the index */
    const long *positions;
    double num_tokens; /* tokens of the global batch; divides the gradient of the loss */
    unsigned long number; /* number among the rank's batches, from 1; 0 if none */
} ms_batch;

/* Rows by expert that a rank received from each rank of its ep group. */
typedef struct ms_routing {
    int num_sources;    /* size of the ep group */
    long num_experts;   /* experts of this rank */
    const long *counts; /* (num_sources, num_experts) received */
    const long *sent;   /* (num_sources, num_experts) rows for each ep rank's experts */
    long num_rows;      /* sum of counts */
    /* ranks that share experts (etp) gather their rows by (expert, rank) */
    int num_sharers;      /* size of the etp group; 0 if experts are not shared */
    const long *shared;   /* (num_sharers, num_experts) */
    long num_shared_rows; /* sum of shared */
} ms_routing;

/* Number of rows that a rank holds of a tensor of the sparse mesh. */
static inline long ms_routing_rows(const ms_routing *routing, const ms_tensor *tensor)
{
    bool own = tensor->at[2].kind == MS_SHARD && tensor->at[2].dim == MS_DIM_ROWS;
    return own || routing->num_sharers == 0 ? routing->num_rows
                                            : routing->num_shared_rows;
}

/* Type of a tensor's elements: bytes in masks; wider ones are statistics. */
ms_scalar ms_tensor_scalar(const ms_program *program, int tensor,
                           const ms_precision *precision);

typedef struct ms_op_call {
    const ms_program *program;
    const ms_node *node;
    const ms_local *in[MS_MAX_OPERANDS];
    /* Results have undefined content; gradients of weights are ADDED to; data is NULL if
     * not needed. The gradient of logits may share memory with the logits. */
    ms_local *out[MS_MAX_OPERANDS];
    const ms_batch *batch;
    const ms_routing *routing; /* routing of GROUPED and EXCHANGE */
    /* routes slot j of token t, by stored index, to expert (t k + j) mod e */
    bool balanced_routing;
    void *workspace; /* scratch of the kernel, of ms_kernels.workspace_bytes */
    /* prediction (sim/simulate/block_ops.h); NULL if it takes no time */
    const ms_block_op *predicted;
} ms_op_call;

/* Length of the last dim. */
static inline long ms_local_last(const ms_local *x)
{
    return x->shape[x->num_dims - 1];
}

/* Product of all dims but the last. */
static inline long ms_local_leading(const ms_local *x)
{
    long count = 1;
    for (int i = 0; i + 1 < x->num_dims; i++)
        count *= x->shape[i];
    return count;
}

/* Whether a result is added to memory, as gradients of weights are. */
static inline bool ms_op_is_added(const ms_op_call *call, int result)
{
    return call->program->tensors[call->node->out[result]].role ==
           MS_ROLE_WEIGHT_GRADIENT;
}

#endif
