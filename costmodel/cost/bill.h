/* The priced program (ms_bill): seconds of compute per pass, FLOP, live bytes,
 * parameters, and collectives by size, which are priced later, where the mesh is placed.
 * This room prices programs: cost laws of kernels and collectives, casts, bytes;
 * measuring and fitting are not here. */
#ifndef MS_COSTMODEL_COST_BILL_H
#define MS_COSTMODEL_COST_BILL_H

#include "costmodel/cost/kernel_cost.h"
#include "costmodel/program/program.h"

/* Groups of ranks along which a program communicates. etp ranks are tp ranks. */
typedef enum ms_bill_axis {
    MS_BILL_TP,
    MS_BILL_CP,
    MS_BILL_EP,
    MS_NUM_BILL_AXES
} ms_bill_axis;

typedef enum ms_bill_pass {
    MS_BILL_FORWARD,
    MS_BILL_BACKWARD, /* recomputation, gradients of inputs and of weights */
    MS_NUM_BILL_PASSES,
    /* A third list of collectives: those of MS_BILL_BACKWARD in the weight half. */
    MS_BILL_WEIGHT = MS_NUM_BILL_PASSES,
    MS_NUM_BILL_LISTS
} ms_bill_pass;

/* Segments of a layer, cut at the exchanges of tokens between experts (Megatron-LM's
 * TransformerLayerSchedulePlan). Backward nodes belong to the segment of their forward
 * node. Layers without experts have the first segment only. */
typedef enum ms_bill_segment {
    /* up to the dispatch: attention, router, permutation of tokens */
    MS_SEGMENT_ATTENTION,
    /* between the exchanges, and shared experts, which wait for neither */
    MS_SEGMENT_EXPERTS,
    MS_SEGMENT_RESULT, /* after the combine: weighted sum of experts, residual sum */
    MS_NUM_BILL_SEGMENTS
} ms_bill_segment;

/* Token exchanges of a layer with experts, without those of recomputation. */
typedef enum ms_bill_exchange {
    MS_EXCHANGE_DISPATCH,
    MS_EXCHANGE_COMBINE,
    MS_EXCHANGE_COMBINE_BACKWARD,
    MS_EXCHANGE_DISPATCH_BACKWARD,
    MS_NUM_BILL_EXCHANGES
} ms_bill_exchange;

/* Compute per segment. Sums: ms_bill.compute_s forward, backward less weight_s, and
 * weight_s. */
typedef struct ms_bill_segments {
    double forward_s[MS_NUM_BILL_SEGMENTS];
    double input_s[MS_NUM_BILL_SEGMENTS]; /* recomputation, backward less weight_s */
    double weight_s[MS_NUM_BILL_SEGMENTS];
    double exchange_bytes[MS_NUM_BILL_EXCHANGES]; /* for ms_collective_s; 0: none */
} ms_bill_segments;

typedef struct ms_bill_comm {
    unsigned char axis;       /* ms_bill_axis */
    unsigned char collective; /* ms_collective */
    bool ring; /* sends of ring attention, overlapped on a stream of their own */
    int count;
    double size_bytes; /* size of one, for ms_collective_s */
    /* compute that all `count` collectives may overlap: neighbouring matrix products
     * (TP), their share of the attention (CP); 0 for all-to-alls over cp or ep */
    double window_s;
    /* share of window_s in gradients of weights, which a backward may delay */
    double weight_window_s;
    /* seconds of the same linear layers' other gradients, overlapped by a stack that
     * overlaps_gradients; 0 if none */
    double beside_s;
} ms_bill_comm;

#define MS_MAX_BILL_COMMS 32

/* Bytes of activations and their gradients; logits and their gradients are separate. */
typedef struct ms_tensor_bytes {
    double activation_bytes, logits_bytes;
} ms_tensor_bytes;

/* Parts of a backward. The halves are those of zero-bubble schedules (Qi et al. 2023):
 * recomputation and gradients of inputs first, gradients of weights later. What the
 * second half reads, recomputed tensors too, stays alive from the first. */
typedef enum ms_bill_half {
    MS_BILL_WHOLE,
    MS_BILL_INPUT_HALF,
    MS_BILL_WEIGHT_HALF,
    MS_NUM_BILL_HALVES
} ms_bill_half;

/* Live bytes of a block for one micro-batch. In forward and in each half a tensor is
 * freed after its last reading node, unless a later pass needs it; tensors that the half
 * does not read (unneeded results or saved tensors) are freed at its end. The gradient of
 * the block's output is alive from the start, that of its input at the end, when it
 * becomes the output's gradient of the previous block. The gradient of the logits
 * overwrites them. */
typedef struct ms_bill_memory {
    ms_tensor_bytes saved;   /* bytes alive from forward to backward */
    ms_tensor_bytes delayed; /* bytes that the weight half reads, each tensor once */
    /* peak bytes beyond `saved` (weight half: `delayed`); freed logits are negative */
    ms_tensor_bytes transient[MS_NUM_BILL_HALVES];
} ms_bill_memory;

typedef struct ms_bill {
    double compute_s[MS_NUM_BILL_PASSES]; /* backward includes recomputation */
    double flop[MS_NUM_BILL_PASSES];      /* executed, with recomputation */
    double weight_s;                      /* weight gradients, which may be delayed */
    double weight_flop;
    double recompute_flop;
    int kernels[MS_NUM_BILL_PASSES];
    int weight_kernels;                     /* kernels of weight gradients */
    int expert_kernels[MS_NUM_BILL_PASSES]; /* routing and grouped products */
    int num_comms[MS_NUM_BILL_LISTS];
    ms_bill_comm comms[MS_NUM_BILL_LISTS][MS_MAX_BILL_COMMS];
    ms_bill_segments segments;
    double dense_params, expert_params; /* per rank, before sharding over dp */
    double tp_partial_params;           /* gradients are partial over tp: norms */
    ms_bill_memory memory;
    double head_params;           /* parameters of the head's matrix; head only */
    double next_embedding_params; /* parameters of copied embeddings; head only */
    double output_bytes;          /* bytes that a pipeline stage sends on */
} ms_bill;

ms_bill ms_bill_make(const ms_program *program, const ms_pricer *pricer);

/* Seconds of the products that overlap with a node's traffic in a stack that
 * overlaps_gradients: gradients of weights whose input gradients are reduced, or
 * gradients of inputs that are gathered again for gradients of weights; 0 if none. */
double ms_node_overlap_s(const ms_program *program, const ms_pricer *pricer,
                         const ms_node *node, const ms_node_comm *comm);
ms_bill_axis ms_node_bill_axis(const ms_node_comm *comm);

/* Shape of a product as the stack runs it. A gradient of a weight that is added to the
 * sum over micro-batches reads and writes that sum; without this fusion it is written
 * like its operands, and the stack's `accumulate_bytes` move it. */
ms_gemm_shape ms_node_product(const ms_program *program, const ms_node *node,
                              const ms_stack *stack);

/* Seconds of one node's compute; 0 for placement changes. */
double ms_node_compute_s(const ms_program *program, const ms_node *node,
                         const ms_pricer *pricer);

#endif
