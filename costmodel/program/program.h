/* Layer programs: the executable nodes of one layer kind for one micro-batch, forward and
 * backward, on a mesh.
 *
 * A program is written once, without parallelism, by layer.c; propagation then gives
 * every tensor a placement on each mesh axis, and inserts a REDISTRIBUTE node wherever an
 * operation needs another placement. Backward nodes come from forward nodes by one rule
 * per operation. FLOP, bytes and live memory are computed from the tensors; nothing is
 * stored twice.
 *
 * Two meshes over the same ranks: dense (dp, cp, tp) and sparse (edp, ep, etp), both
 * row-major with the last axis fastest, so linear rank = (i0 * size1 + i1) * size2 + i2
 * in either. Pipeline stages are outside of programs.
 *
 * Sources: placement rules as in GSPMD (Xu et al. 2021) and DTensor (pytorch
 * torch/distributed/tensor/_ops/_einsum_strategy.py); what follows for a transformer are
 * the patterns of Megatron-LM (Shoeybi et al. 2019; Korthikanti et al. 2022). */
#ifndef MS_COSTMODEL_PROGRAM_PROGRAM_H
#define MS_COSTMODEL_PROGRAM_PROGRAM_H

#include "costmodel/model/model.h"
#include "costmodel/plan/plan.h"
#include "costmodel/tensor/collective.h"
#include "costmodel/tensor/kernel_shape.h"
#include "costmodel/tensor/op.h"
#include "costmodel/tensor/placement.h"

#define MS_MAX_DIMS     4
#define MS_MAX_OPERANDS 8
#define MS_MESH_AXES    3

/* Index letters name dimensions; their global sizes are program->size[letter - '0']. */
enum {
    MS_DIM_BATCH = 'b', /* sequences of one micro-batch over all dp ranks */
    MS_DIM_SEQUENCE = 's',
    MS_DIM_HIDDEN = 'h',
    MS_DIM_HEADS = 'n', /* query heads */
    MS_DIM_KV_HEADS = 'g',
    MS_DIM_HEAD = 'd',   /* query and key width of a head */
    MS_DIM_VALUE = 'w',  /* value width of a head */
    MS_DIM_FFN = 'f',    /* width of the dense MLP */
    MS_DIM_SHARED = 'F', /* width of the shared experts */
    MS_DIM_EXPERT_FFN = 'i',
    MS_DIM_VOCAB = 'v',
    MS_DIM_EXPERTS = 'e',
    MS_DIM_CHOICES = 'k', /* top-k slots of a token */
    /* token copies sent to experts: b * s * k, grouped by expert after dispatch */
    MS_DIM_ROWS = 'r',
    MS_DIM_Q_LORA = 'q',
    MS_DIM_KV_LORA = 'c',
    MS_DIM_ROPE = 'o',  /* MLA: width of the shared rotary key */
    MS_DIM_KV_UP = 'u', /* MLA: nope + value width per head */
    /* keys of unfused attention scores: as long as 's', never sharded */
    MS_DIM_KEYS = 't',
    MS_DIM_POSITIONS = 'p',    /* rows of learned positions */
    MS_DIM_TWICE_HIDDEN = 'H', /* two hidden states one after the other */
    /* what a Mamba-2 input projection gives: ms_mamba_projected */
    MS_DIM_MAMBA_PROJECTED = 'I',
    MS_DIM_MAMBA_CHANNELS = 'X', /* of them, what its convolution runs over */
    MS_DIM_MAMBA_INNER = 'D',
    MS_DIM_MAMBA_HEADS = 'M',
    MS_DIM_MAMBA_TAPS = 'K',
    MS_DIM_ONE = '1' /* a single column (shared-expert gate); its size is 1 */
};

typedef enum ms_mesh_kind {
    MS_DENSE_MESH,
    MS_SPARSE_MESH
} ms_mesh_kind;
/* Axis 0, 1, 2 of the dense mesh: dp, cp, tp; of the sparse mesh: edp, ep, etp. */
extern const char *const ms_mesh_axis_names[2][MS_MESH_AXES];

typedef enum ms_role {
    MS_ROLE_ACTIVATION,
    MS_ROLE_WEIGHT,
    MS_ROLE_GRADIENT,
    MS_ROLE_WEIGHT_GRADIENT,
    MS_ROLE_STATE /* of the optimizer: given, and what an update returns */
} ms_role;

typedef struct ms_tensor {
    const char *name;
    char dims[MS_MAX_DIMS + 1]; /* letters, outer to inner */
    unsigned char role;
    unsigned char mesh;
    /* a weight that another part or product holds already: it is in no count of
     * parameters */
    bool shared;
    bool saved; /* an activation kept from forward to backward */
    double element_bytes;
    ms_placement at[MS_MESH_AXES];
    int producer; /* node, or -1: weight or program input */
    /* of a weight or of the program's input: its gradient tensor after backward; -1:
     * none */
    int gradient;
} ms_tensor;

typedef enum ms_pass {
    MS_PASS_FORWARD,
    MS_PASS_RECOMPUTE, /* forward nodes run again before they are needed in backward */
    MS_PASS_BACKWARD_INPUT,
    /* may be delayed: nothing else in the layer waits for them */
    MS_PASS_BACKWARD_WEIGHT,
    /* once a step: reductions of the gradients and the update of the weights */
    MS_PASS_OPTIMIZER,
    MS_NUM_PASSES
} ms_pass;

typedef struct ms_node {
    unsigned char op;
    unsigned char pass;
    unsigned char num_in, num_out;
    int in[MS_MAX_OPERANDS];
    int out[MS_MAX_OPERANDS];
    const char *name; /* "attention.query", for traces and joins */
    /* the forward node that a backward or recompute node comes from, otherwise -1 */
    int forward;
    /* attributes */
    const char *einsum;
    long rotary_width;
    long window_tokens;
    bool inverse;     /* ROTARY, EXCHANGE */
    bool by_position; /* EMBED */
    /* ATTENTION and its gradient: keys and values are split over cp and travel
     * (costmodel/program/ring.h) */
    bool ring;
    unsigned char axis; /* REDISTRIBUTE: mesh axis 0..2 of the tensor's mesh */
    ms_placement from, to;
} ms_node;

/* A set of forward nodes, by index. */
#define MS_MAX_SAVED 192
typedef struct ms_saved {
    unsigned long long word[MS_MAX_SAVED / 64];
} ms_saved;
bool ms_saved_has(const ms_saved *keep, int node);
void ms_saved_add(ms_saved *keep, int node);

/* What a program depends on: not on dp or pp. */
typedef struct ms_program_key {
    unsigned char part; /* ms_block_kind */
    unsigned char kind; /* index into model->kinds, layers only */
    bool sequence_parallel;
    bool loss_parallel;
    bool attention_fused;
    unsigned char cp_method; /* ms_cp_method */
    /* keys and values of a ring travel, and are merged, once for each query head
     * (costmodel/program/ring.h) */
    bool ring_repeats_heads;
    /* of an element of their gradients on the way; 0: as they are stored */
    unsigned char ring_gradient_bytes;
    /* contiguous chunks over cp: costs are those of the last rank, which has most pairs;
     * not with ulysses */
    bool cp_unbalanced;
    bool optimizer; /* with the optimizer pass; searches price it apart, by parameters */
    unsigned char mtp; /* modules of multi-token prediction; head only */
    bool regather;     /* gathered tensors are gathered again in backward */
    /* with regather: and yet held from forward on, beside their shards */
    bool holds_gathers;
    unsigned char recompute; /* ms_recompute */
    /* MS_RECOMPUTE_FULL: all of the layer runs again, not only what backward asks for */
    bool reruns_layer;
    /* MS_RECOMPUTE_AUTO: nodes whose results are kept where backward asks for them */
    ms_saved keep;
    short tp, cp, ep, etp;
    int microbatch; /* sequences per dp rank */
} ms_program_key;

typedef enum ms_block_kind {
    MS_BLOCK_EMBED,
    MS_BLOCK_LAYER,
    MS_BLOCK_HEAD,
    MS_NUM_BLOCK_KINDS
} ms_block_kind;

typedef struct ms_program {
    const ms_model *model;
    ms_program_key key;
    /* [mesh][axis]; sizes of dp and edp are those asked for when building, 1 for
     * pricing */
    long mesh_size[2][MS_MESH_AXES];
    double size['z' - '0' + 1]; /* global size of each letter: size[letter - '0'] */
    double compute_bytes;       /* of an element in the compute type */
    int num_tensors, num_nodes;
    ms_tensor *tensors;
    /* forward, then recompute and backward interleaved, in an order that can be
     * executed */
    ms_node *nodes;
    int num_forward_nodes;
    /* tensors; -1 for the embedding's input and the head's output is the loss */
    int input, output;
    int input_gradient, output_gradient; /* -1: none */
} ms_program;

/* Builds the program of one part for a key. `data_parallel` (dp) scales the batch letter:
 * local shapes do not depend on it; pricing uses 1. With experts, dp * cp * tp must be
 * divisible by ep * etp. The key must be legal for the model (ms_plan_refusal). Lives in
 * the arena. */
const ms_program *ms_program_make(ms_arena *arena, const ms_model *model,
                                  const ms_program_key *key, long sequence_length,
                                  long data_parallel, ms_dtype compute);

/* Elements of the tensor on one rank: product of its dims over the sizes of the axes that
 * shard them. */
double ms_tensor_local_elements(const ms_program *program, int tensor);
double ms_tensor_local_bytes(const ms_program *program, int tensor);
/* Size of dim `letter` of the tensor on one rank. */
double ms_tensor_local_size(const ms_program *program, int tensor, char letter);

/* The matrix product that an EINSUM or GROUPED node is on one rank: letters of both
 * operands and the result are the batch. */
ms_gemm_shape ms_node_gemm(const ms_program *program, const ms_node *node);

/* The shape by which an ATTENTION or ATTENTION_GRAD node is priced. */
ms_attention_shape ms_node_attention(const ms_program *program, const ms_node *node);

/* The shape by which a SCAN or SCAN_GRAD node is priced. */
ms_scan_shape ms_node_scan(const ms_program *program, const ms_node *node);

/* FLOP that one rank executes for a node (multiply-add is 2): matrix products, attention
 * and scans only; causal pairs exactly, s(s+1)/2 over cp. */
double ms_node_flop(const ms_program *program, const ms_node *node);
/* HBM traffic of a node that is no matrix product: operands read and results written
 * once. */
double ms_node_traffic_bytes(const ms_program *program, const ms_node *node);
/* ms_node_traffic_bytes as rates of single operations count it: of tables only the rows in
 * use, as of the gradient of an embedding. */
double ms_node_pointwise_bytes(const ms_program *program, const ms_node *node);

/* Whether the result of a forward node is never kept: a gather, of which layers made with
 * `regather` keep the shards. */
bool ms_node_is_gathered_again(const ms_program *program, const ms_node *node);

/* The collective of a REDISTRIBUTE or EXCHANGE node: kind, mesh axis and size as
 * ms_collective_s takes it. num_ranks 1 or a local slice: none, false. */
typedef struct ms_node_comm {
    ms_collective collective;
    ms_mesh_kind mesh;
    int axis;
    double size_bytes;
} ms_node_comm;
bool ms_node_communicates(const ms_program *program, const ms_node *node,
                          ms_node_comm *out);

#endif
