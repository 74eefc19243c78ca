/* A layer program reduced to what a step is made of: seconds of compute per pass, FLOP,
 * live bytes, parameters, and a short list of collectives with their sizes. Collectives
 * are priced later, since they depend on where the mesh lies. */
#ifndef MS_COSTMODEL_COST_BILL_H
#define MS_COSTMODEL_COST_BILL_H

#include "costmodel/cost/kernel_cost.h"
#include "costmodel/program/program.h"

/* Groups along which a program communicates. etp ranks are tp ranks. */
typedef enum ms_bill_axis {
    MS_BILL_TP,
    MS_BILL_CP,
    MS_BILL_EP,
    MS_NUM_BILL_AXES
} ms_bill_axis;

typedef enum ms_bill_pass {
    MS_BILL_FORWARD,
    MS_BILL_BACKWARD, /* all of it: recomputation, gradients of inputs and of weights */
    MS_NUM_BILL_PASSES,
    /* A further list of collectives: those of MS_BILL_BACKWARD that gradients of weights
     * wait for. The rest belongs to the other half. */
    MS_BILL_WEIGHT = MS_NUM_BILL_PASSES,
    MS_NUM_BILL_LISTS
} ms_bill_pass;

/* What a layer runs one after another, cut at the exchanges of tokens between experts
 * (Megatron-LM's TransformerLayerSchedulePlan). Backward nodes belong to the segment of
 * their forward node. Layers without experts are all first segment. */
typedef enum ms_bill_segment {
    /* up to the dispatch: attention, router, permutation of tokens */
    MS_SEGMENT_ATTENTION,
    /* between the exchanges; shared experts too, which wait for neither */
    MS_SEGMENT_EXPERTS,
    MS_SEGMENT_RESULT, /* after the combine: weighted sum of the experts, residual sum */
    MS_NUM_BILL_SEGMENTS
} ms_bill_segment;

/* The four exchanges of a layer with experts; those that recomputation repeats are none
 * of them. */
typedef enum ms_bill_exchange {
    MS_EXCHANGE_DISPATCH,
    MS_EXCHANGE_COMBINE,
    MS_EXCHANGE_COMBINE_BACKWARD,
    MS_EXCHANGE_DISPATCH_BACKWARD,
    MS_NUM_BILL_EXCHANGES
} ms_bill_exchange;

/* Seconds of compute of each segment; the sums are compute_s forward, compute_s backward
 * less weight_s, and weight_s. */
typedef struct ms_bill_segments {
    double forward_s[MS_NUM_BILL_SEGMENTS];
    double input_s[MS_NUM_BILL_SEGMENTS]; /* of backward, with recomputation */
    double weight_s[MS_NUM_BILL_SEGMENTS];
    /* as ms_collective_s takes it; 0: none */
    double exchange_bytes[MS_NUM_BILL_EXCHANGES];
} ms_bill_segments;

typedef struct ms_bill_comm {
    unsigned char axis;       /* ms_bill_axis */
    unsigned char collective; /* ms_collective */
    bool ring; /* sends of ring attention, which run beside it on a stream of their own */
    int count;
    double size_bytes; /* of one, as ms_collective_s takes it */
    /* what all of them can hide behind: the matrix products next to them (TP), their
     * share of the attention (CP); all-to-alls over cp or ep behind nothing */
    double window_s;
    /* of window_s: gradients of weights, which a backward that delays them does not
     * have beside it */
    double weight_window_s;
    /* products of the same linear layers' other gradients, beside which a stack that
     * overlaps_gradients moves it; 0: none */
    double beside_s;
} ms_bill_comm;

#define MS_MAX_BILL_COMMS 32

/* Bytes of activations and gradients of them; logits and gradients of those are a
 * category of their own. */
typedef struct ms_tensor_bytes {
    double activation_bytes, logits_bytes;
} ms_tensor_bytes;

/* What of a backward runs. The halves are those of zero-bubble schedules (Qi et al.
 * 2023): recomputation and gradients of inputs first, gradients of weights later. What
 * the second half reads stays alive from the first, recomputed tensors too. */
typedef enum ms_bill_half {
    MS_BILL_WHOLE,
    MS_BILL_INPUT_HALF,
    MS_BILL_WEIGHT_HALF,
    MS_NUM_BILL_HALVES
} ms_bill_half;

/* What is alive of a part and a micro-batch. In forward and in each half a tensor is
 * freed after the node that reads it last there, unless a later pass needs it; what the
 * half does not read (results that nothing asks for, kept tensors that no gradient needs)
 * goes when it ends. The gradient of the part's output is alive from the start, that of
 * its input at the end, when it becomes the former of the part before. The gradient of
 * the logits overwrites them. */
typedef struct ms_bill_memory {
    ms_tensor_bytes saved; /* from forward to backward, gradients not yet there */
    /* between the halves: what the second reads, each tensor once */
    ms_tensor_bytes delayed;
    /* when most is alive: beyond saved, in the weight half beyond delayed; logits that
     * have gone by then count less than 0 */
    ms_tensor_bytes transient[MS_NUM_BILL_HALVES];
} ms_bill_memory;

typedef struct ms_bill {
    double compute_s[MS_NUM_BILL_PASSES]; /* backward includes recomputation */
    double flop[MS_NUM_BILL_PASSES];      /* executed */
    double weight_s; /* of the backward: gradients of weights, which may be delayed */
    double weight_flop;
    double recompute_flop;
    int kernels[MS_NUM_BILL_PASSES];
    int weight_kernels; /* of the backward */
    /* of routing and grouped products: beside those of a layer without experts */
    int expert_kernels[MS_NUM_BILL_PASSES];
    int num_comms[MS_NUM_BILL_LISTS];
    ms_bill_comm comms[MS_NUM_BILL_LISTS][MS_MAX_BILL_COMMS];
    ms_bill_segments segments;
    /* on this rank, before sharding over data-parallel ranks */
    double dense_params, expert_params;
    /* weights whose gradients are partial over tp (norms with sequence parallelism) */
    double tp_partial_params;
    ms_bill_memory memory;
    double head_params; /* of the head's matrix; head only */
    /* of copies of the embedding that multi-token prediction reads; head only */
    double next_embedding_params;
    double output_bytes; /* what a pipeline sends on */
} ms_bill;

/* The bill of a program priced by `pricer`. */
ms_bill ms_bill_make(const ms_program *program, const ms_pricer *pricer);

/* Seconds of the products beside which a stack that overlaps_gradients moves a node's
 * traffic: of the weights whose input gradients are reduced, or of the inputs of layers
 * whose inputs are gathered again for the gradients of their weights; 0: none. */
double ms_node_overlap_s(const ms_program *program, const ms_pricer *pricer,
                         const ms_node *node, const ms_node_comm *comm);
/* The group along which a node communicates. */
ms_bill_axis ms_node_bill_axis(const ms_node_comm *comm);

/* A product as the stack runs it. A gradient of a weight that it adds to the sum over
 * micro-batches reads and writes the sum; without that fusion it is written as its
 * operands are, and the stack's `accumulate_bytes` move it. */
ms_gemm_shape ms_node_product(const ms_program *program, const ms_node *node,
                              const ms_stack *stack);

/* Seconds of one node that does not communicate; 0 for placement changes. */
double ms_node_compute_s(const ms_program *program, const ms_node *node,
                         const ms_pricer *pricer);

#endif
