/* One operation of a layer program on one rank: the argument of its kernel. */
#ifndef MS_EXEC_CORE_OP_CALL_H
#define MS_EXEC_CORE_OP_CALL_H

#include "costmodel/profile/recipe.h"
#include "costmodel/program/program.h"
#include "exec/core/scalar.h"
#include "exec/core/scale_history.h"
#include "sim/simulate/block_ops.h"

/* A rank's shard of a tensor: row-major, dims outer to inner. A tensor of expert rows
 * (MS_DIM_ROWS) has as many rows as tokens were routed to the rank. */
typedef struct ms_local {
    unsigned char scalar; /* an ms_scalar */
    void *data;           /* NULL if the backend only simulates or the shard is empty */
    int num_dims;
    long shape[MS_MAX_DIMS];
    /* index of the shard's first element along each dim of the whole tensor */
    long start[MS_MAX_DIMS];
    long count;   /* product of shape */
    double bytes; /* count x bytes of an element, as the memory ledger counts */
} ms_local;

/* The tokens of one micro-batch on one data-parallel rank. */
typedef struct ms_batch {
    /* index of this rank's first sequence in the micro-batch of all dp ranks: dp
     * coordinate x num_sequences */
    long first_sequence;
    long num_sequences, sequence_length;
    const int *tokens;  /* (num_sequences, sequence_length), in order of positions */
    const int *targets; /* for each token, the next one; -1: the token is padding */
    /* for each token, in order of positions, where its sequence starts, which attention
     * does not leave and positions count from; NULL: at 0 */
    const int *starts;
    /* [stored index] position of each token in its sequence, if tokens are permuted to
     * balance causal attention over cp; NULL if they are in order of positions */
    const long *positions;
    /* index of the rank's first sequence in the step's global batch, and a number that is
     * different in each step and run: they choose what dropout sets to 0 */
    long first_in_step;
    unsigned long long dropout_key;
    double num_tokens;    /* tokens of the global batch, by which gradients are divided */
    unsigned long number; /* number of the rank's micro-batch, from 1; 0 if unset */
} ms_batch;

/* Numbers of token rows (one per token and chosen expert, MoE) that a rank exchanges. */
typedef struct ms_routing {
    int num_sources;    /* size of the ep group */
    long num_experts;   /* experts of this rank */
    const long *counts; /* [source, expert] rows received by this rank */
    const long *sent;   /* [ep rank, its expert] rows sent by this rank */
    /* [ep rank, its expert] first of these that are copies of tokens; the rest is zero.
     * `sent` itself unless experts are padded (ms_capacity) */
    const long *kept;
    long num_rows; /* rows received: sum of counts */
    /* (tokens of the ep group, k) experts that are chosen for tokens, if all ranks have all
     * tokens; e of other ranks' experts is -1 - e. NULL: each rank sends copies */
    const ms_local *choice;
    /* Ranks that share experts (etp) gather each other's rows. */
    int num_sharers;      /* size of the etp group; 0 if experts are not shared */
    const long *shared;   /* [etp rank, expert] rows that each of them received */
    long num_shared_rows; /* sum of shared */
} ms_routing;

/* How many copies of a group's tokens each expert keeps (docs/formulas 3.6.1), the first in
 * the order of tokens. A group has the tokens that one rank sends to experts in a
 * micro-batch. */
typedef struct ms_capacity {
    double factor;    /* most copies of a group's tokens in an expert / their mean */
    bool pads;        /* experts get just as many rows, the rest of which are zero */
    const int *group; /* [stored index in the sequence] group of a token */
    int num_groups;
} ms_capacity;

/* Most rows of an expert that gets some of `num_copies`: ceil(factor x mean), as in Megatron
 * Core (core/transformer/moe/moe_utils.py, get_capacity). */
long ms_capacity_rows(const ms_capacity *capacity, long num_copies, long num_experts);

/* Number of rows that a rank holds of a tensor of expert rows. */
static inline long ms_routing_rows(const ms_routing *routing, const ms_tensor *tensor)
{
    bool own = tensor->at[2].kind == MS_SHARD && tensor->at[2].dim == MS_DIM_ROWS;
    return own || routing->num_sharers == 0 ? routing->num_rows
                                            : routing->num_shared_rows;
}

/* Type of elements: BYTE in masks; `gradient` in gradients of weights; `statistic` if
 * wider than activations; otherwise `real` (fields of `precision`). */
ms_scalar ms_tensor_scalar(const ms_program *program, int tensor,
                           const ms_precision *precision);

/* Whether an operation is a product of a layer's weight, or makes its gradient: one whose
 * operands have 8 or 4 bits in fp8 and fp4 runs. Embedding, head, router and adapters
 * are none. */
bool ms_is_layer_product(const ms_program *program, const ms_node *node);

/* How a run in `type` rounds operands of layers' products: by the plan's recipe `stated`;
 * if it states none, tensorwise in fp8 and nvfp4 in fp4; MS_RECIPE_DEFAULT (not) in other
 * types. */
ms_recipe ms_run_recipe(ms_real_type type, ms_recipe stated);

typedef struct ms_op_call {
    const ms_program *program;
    const ms_node *node;
    const ms_local *in[MS_MAX_OPERANDS];
    /* Results. Kernels ADD to gradients of weights, unless `writes`, and overwrite all
     * others. `data` is NULL if not needed. The gradient of logits may share memory with
     * logits. */
    ms_local *out[MS_MAX_OPERANDS];
    bool writes; /* gradients of weights are the first: their memory holds nothing yet */
    const ms_batch *batch;
    const ms_routing *routing; /* routing of GROUPED and EXCHANGE */
    long
        layer; /* layer of the model, -1 in embedding and head: chooses dropout's masks */
    /* whether ROUTE chooses expert (t k + j) mod num_experts as j-th of k of token t */
    bool balanced_routing;
    /* ROUTE replaces expert e by -1 - e in copies beyond it; NULL: it keeps all */
    const ms_capacity *capacity;
    void *workspace; /* scratch memory of ms_kernels.workspace_bytes */
    /* how CPU kernels round the operands of layers' products; MS_RECIPE_DEFAULT: not */
    ms_recipe recipe;
    ms_scale_history *history; /* the block's, with MS_RECIPE_DELAYED; otherwise NULL */
    /* predicted costs (sim/simulate/block_ops.h); NULL if predicted to take no time */
    const ms_block_op *predicted;
} ms_op_call;

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

/* Whether a result is added to its memory, not written over: a gradient of weights. */
static inline bool ms_op_is_added(const ms_op_call *call, int result)
{
    return !call->writes && call->program->tensors[call->node->out[result]].role ==
                                MS_ROLE_WEIGHT_GRADIENT;
}

#endif
