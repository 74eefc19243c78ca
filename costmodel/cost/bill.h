/* Folder costmodel/cost: from a program to seconds and bytes; no measuring, no fitting.
 *
 * The priced program (ms_bill): seconds of compute per pass, FLOP, live bytes,
 * parameters, and collectives by size, priced later because their seconds depend on the
 * mesh. */
#ifndef MS_COSTMODEL_COST_BILL_H
#define MS_COSTMODEL_COST_BILL_H

#include "costmodel/cost/host_operations.h"
#include "costmodel/cost/kernel_cost.h"
#include "costmodel/cost/update_cost.h"
#include "costmodel/program/program.h"

/* Mesh axes of the collectives in a priced program. etp ranks count as tp ranks. */
typedef enum ms_bill_axis {
    MS_BILL_TP,
    MS_BILL_CP,
    MS_BILL_EP,
    MS_NUM_BILL_AXES
} ms_bill_axis;

typedef enum ms_bill_pass {
    MS_BILL_FORWARD,
    MS_BILL_BACKWARD, /* recomputation and gradients of inputs and weights */
    MS_NUM_BILL_PASSES,
    /* No pass: a third list, which repeats backward's collectives of weight gradients. */
    MS_BILL_WEIGHT = MS_NUM_BILL_PASSES,
    MS_NUM_BILL_LISTS
} ms_bill_pass;

/* Segments of a layer's compute, cut at the all-to-alls of tokens between experts (as in
 * Megatron-LM's TransformerLayerSchedulePlan). Backward nodes belong to the segment of
 * their forward node. Layers without experts have the first segment only. */
typedef enum ms_bill_segment {
    /* nodes before the dispatch: attention, router, permutation of tokens */
    MS_SEGMENT_ATTENTION,
    /* experts, and shared experts, which wait for no exchange of tokens */
    MS_SEGMENT_EXPERTS,
    MS_SEGMENT_RESULT, /* after the combine: weighted sum of experts, residual sum */
    MS_NUM_BILL_SEGMENTS
} ms_bill_segment;

/* All-to-alls of tokens in a layer with experts; those of recomputation do not count. */
typedef enum ms_bill_exchange {
    MS_EXCHANGE_DISPATCH,
    MS_EXCHANGE_COMBINE,
    MS_EXCHANGE_COMBINE_BACKWARD,
    MS_EXCHANGE_DISPATCH_BACKWARD,
    MS_NUM_BILL_EXCHANGES
} ms_bill_exchange;

/* Seconds of compute by segment of a layer; forward_s sums to ms_bill.compute_s forward,
 * input_s and weight_s to compute_s backward. */
typedef struct ms_bill_segments {
    double forward_s[MS_NUM_BILL_SEGMENTS];
    double input_s[MS_NUM_BILL_SEGMENTS]; /* recomputation and input gradients */
    double weight_s[MS_NUM_BILL_SEGMENTS];
    double exchange_bytes[MS_NUM_BILL_EXCHANGES]; /* sizes for ms_collective_s; 0: none */
    double exchange_beside_s[MS_NUM_BILL_EXCHANGES]; /* ms_node_overlap_s */
    unsigned char exchange_collective[MS_NUM_BILL_EXCHANGES];
} ms_bill_segments;

typedef struct ms_bill_comm {
    unsigned char axis;       /* ms_bill_axis */
    unsigned char collective; /* ms_collective */
    bool ring;                /* sends of ring attention, on a stream of their own */
    int count;
    double size_bytes; /* bytes of one collective */
    /* seconds of compute that all `count` collectives may overlap: adjacent GEMMs (TP),
     * shares of the attention (CP); 0 for all-to-alls */
    double window_s;
    /* part of window_s that is weight gradients, which may run in a later action */
    double weight_window_s;
    /* seconds of the other gradients of the same linear layers, overlapped if the stack
     * overlaps_gradients; of shared experts beside exchanges of tokens; 0 if none */
    double beside_s;
} ms_bill_comm;

/* Bytes of activations and their gradients, and of logits and theirs. */
typedef struct ms_tensor_bytes {
    double activation_bytes, logits_bytes;
} ms_tensor_bytes;

/* Backward as a whole, or its two halves in zero-bubble schedules (Qi et al. 2023): first
 * recomputation and input gradients, then weight gradients. Tensors that the weight half
 * reads stay alive from the first half on. */
typedef enum ms_bill_half {
    MS_BILL_WHOLE,
    MS_BILL_INPUT_HALF,
    MS_BILL_WEIGHT_HALF,
    MS_NUM_BILL_HALVES
} ms_bill_half;

/* Live activation bytes of a block (embedding, layer, head) for one micro-batch. In each
 * half of backward a tensor is freed after the last node that reads it, unless a later
 * half needs it; saved tensors that no node reads are freed at the end. The gradient of
 * the block's output is alive from the start; that of its input stays alive at the end,
 * for the previous block. The gradient of the logits overwrites the logits. */
typedef struct ms_bill_memory {
    ms_tensor_bytes saved;   /* bytes saved by forward until backward */
    ms_tensor_bytes delayed; /* bytes kept for the weight half of backward */
    /* [half] peak of live bytes minus `saved` (weight half: minus `delayed`); below 0 for
     * logits that are freed before the peak */
    ms_tensor_bytes transient[MS_NUM_BILL_HALVES];
    /* activations, not in `saved`, that are copied to host memory in forward, and back for
     * backward */
    double host_bytes;
} ms_bill_memory;

/* Bytes of weights that are not trained, as stored on a rank, before dp shards them. */
typedef struct ms_frozen_bytes {
    double dense, expert;
} ms_frozen_bytes;

typedef struct ms_bill {
    double compute_s[MS_NUM_BILL_PASSES]; /* backward includes recomputation */
    double flop[MS_NUM_BILL_PASSES];      /* ms_node_mean_flop, with recomputation */
    double weight_s;                      /* weight gradients' part of compute_s */
    double weight_flop;
    double recompute_flop;
    int kernels[MS_NUM_BILL_PASSES];
    int weight_kernels;                     /* weight gradients' part of kernels */
    int expert_kernels[MS_NUM_BILL_PASSES]; /* kernels of routing and grouped GEMMs */
    /* kernels and collectives as operations that nothing fuses */
    ms_host_operations operations[MS_NUM_BILL_PASSES];
    unsigned char block; /* ms_block_kind */
    int num_comms[MS_NUM_BILL_LISTS];
    ms_bill_comm *comms[MS_NUM_BILL_LISTS]; /* [list] (num_comms) */
    ms_bill_segments segments;
    /* trained parameters on a rank, before dp shards them; frozen ones are apart */
    double dense_params, expert_params;
    double num_matrices[2]; /* trained matrices: dense [0] and experts' [1] ones */
    ms_frozen_bytes frozen;
    double tp_partial_params; /* parameters with partial gradients over tp */
    ms_update_cost update;    /* all 0 with AdamW */
    ms_bill_memory memory;
    double head_params;           /* trained parameters of the head's output matrix */
    double frozen_head_bytes;     /* bytes of that matrix if it is frozen */
    double next_embedding_params; /* parameters of embeddings copied for MTP */
    double output_bytes;          /* output activations, sent to the next stage */
} ms_bill;

/* Prices a program; the lists of collectives live in the arena. */
ms_bill ms_bill_make(ms_arena *arena, const ms_program *program, const ms_pricer *pricer);
/* A copy whose lists of collectives live in another arena. */
ms_bill ms_bill_copy(ms_arena *arena, const ms_bill *bill);

/* The saved tensor of a program that the stack keeps in host memory as its layer's input:
 * the input, or the part of it that a tp rank saves; -1: none. */
int ms_bill_host_input(const ms_program *program, const ms_stack *stack);
/* Bytes in host memory of a block that saves `saved_bytes` of activations: `input_bytes`
 * (ms_bill_host_input), and a share of all others, in whole bytes. */
double ms_bill_host_bytes(const ms_stack *stack, double saved_bytes, double input_bytes);

/* Seconds of compute that overlaps with a node's collective. If the program has
 * shared_overlap, an exchange of tokens: the shared experts', gate and up beside dispatch,
 * down beside combine. If the stack overlaps_gradients, reduction of input gradients: the
 * weight gradients of the same linear layers; repeated gather: the input gradients. Other
 * collectives: 0. */
double ms_node_overlap_s(const ms_program *program, const ms_pricer *pricer,
                         const ms_node *node, const ms_node_comm *comm);
ms_bill_axis ms_node_bill_axis(const ms_node_comm *comm);
/* Sets *out to the entry of the collective of a redistribution or exchange, which is no
 * ring; false: it moves nothing. */
bool ms_node_bill_comm(const ms_program *program, const ms_pricer *pricer,
                       const ms_node *node, ms_bill_comm *out);

/* Shape of a node's GEMM. A weight gradient's result counts as read and written in
 * grad_bytes per element, since the GEMM adds it to the sum over micro-batches; not if
 * the stack's accumulate_bytes > 0, which makes the addition a separate operation. */
ms_gemm_shape ms_node_product(const ms_program *program, const ms_node *node,
                              const ms_stack *stack);

/* Seconds of one node's compute; 0 for redistributions and exchanges of tokens. */
double ms_node_compute_s(const ms_program *program, const ms_node *node,
                         const ms_pricer *pricer);

#endif
