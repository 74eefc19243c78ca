/* Folder costmodel/program: layer programs and their type checker; no seconds.
 *
 * Layer programs: the executable nodes of one block (embedding, a kind of layer, head)
 * for one micro-batch, forward and backward, on a mesh; no prices and no pipeline.
 * layer.c writes a program without parallelism; propagation then gives every tensor a
 * placement on each mesh axis and inserts a REDISTRIBUTE node wherever an operation needs
 * another placement; backward nodes follow from forward nodes by one rule per operation.
 * FLOP, bytes and live memory are computed from the tensors. Two meshes cover the same
 * ranks, dense (dp, cp, tp) and sparse (edp, ep, etp), both row-major: rank = (i0 * size1
 * + i1) * size2 + i2. Sources: placement rules as in GSPMD (Xu et al. 2021) and DTensor
 * (pytorch torch/distributed/tensor/_ops/_einsum_strategy.py); on a transformer they give
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

/* Letters that name tensor dims; the global size is program->size[letter - '0']. */
enum {
    MS_DIM_BATCH = 'b', /* sequences per micro-batch of all dp ranks */
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
    MS_DIM_CHOICES = 'k', /* the top-k experts of a token */
    MS_DIM_ROWS = 'r',    /* token copies (b * s * k), one per chosen expert */
    MS_DIM_Q_LORA = 'q',
    MS_DIM_KV_LORA = 'c',
    MS_DIM_ROPE = 'o',            /* MLA: width of the shared rotary key */
    MS_DIM_KV_UP = 'u',           /* MLA: nope + value width of a head */
    MS_DIM_KEYS = 't',            /* keys of saved scores: as 's', never split */
    MS_DIM_POSITIONS = 'p',       /* rows of the table of learned positions */
    MS_DIM_TWICE_HIDDEN = 'H',    /* two hidden states, concatenated */
    MS_DIM_MAMBA_PROJECTED = 'I', /* width of Mamba's projection (ms_mamba_projected) */
    MS_DIM_MAMBA_CHANNELS = 'X',  /* projected channels that the convolution runs over */
    MS_DIM_MAMBA_INNER = 'D',
    MS_DIM_MAMBA_HEADS = 'M',
    MS_DIM_MAMBA_TAPS = 'K',
    MS_DIM_LORA = 'R', /* rank of adapters */
    MS_DIM_ONE = '1'   /* a single column (shared-expert gate); its size is 1 */
};

typedef enum ms_mesh_kind {
    MS_DENSE_MESH,
    MS_SPARSE_MESH
} ms_mesh_kind;
/* [mesh][axis] names: dense dp, cp, tp; sparse edp, ep, etp. */
extern const char *const ms_mesh_axis_names[2][MS_MESH_AXES];

typedef enum ms_role {
    MS_ROLE_ACTIVATION,
    MS_ROLE_WEIGHT,
    MS_ROLE_GRADIENT,
    MS_ROLE_WEIGHT_GRADIENT,
    MS_ROLE_STATE /* optimizer moments, before and after the update */
} ms_role;

typedef struct ms_tensor {
    const char *name;
    char dims[MS_MAX_DIMS + 1]; /* letters of the dims, outermost first */
    unsigned char role;
    unsigned char mesh;
    char
        tp_letter; /* weights: the dim that tp, or etp, splits if there is any; 0: none */
    bool shared;   /* another weight is this matrix and counts its parameters */
    bool frozen;   /* weight beside adapters: it has no gradient */
    bool saved;    /* activation kept from forward to backward */
    /* rows that other ranks sent to this rank's experts (key.expert_excess_frac) */
    bool received;
    unsigned char module; /* module of multi-token prediction; 0: of none */
    double element_bytes;
    ms_placement at[MS_MESH_AXES];
    int producer; /* node whose result it is; -1: weight or program input */
    int gradient; /* tensor index of its gradient (weights, program input); -1: none */
} ms_tensor;

/* Whether one of the tensor's dims has this letter. */
static inline bool ms_tensor_has(const ms_tensor *tensor, char letter)
{
    for (const char *dim = tensor->dims; *dim != '\0'; dim++)
        if (*dim == letter)
            return true;
    return false;
}

typedef enum ms_pass {
    MS_PASS_FORWARD,
    MS_PASS_RECOMPUTE, /* copies of forward nodes, run before backward needs them */
    MS_PASS_BACKWARD_INPUT,
    MS_PASS_BACKWARD_WEIGHT, /* weight gradients, which may run later */
    MS_PASS_OPTIMIZER,       /* once a step: gradients are reduced, weights updated */
    MS_NUM_PASSES
} ms_pass;

typedef struct ms_node {
    unsigned char op;
    unsigned char pass;
    unsigned char num_in, num_out;
    int in[MS_MAX_OPERANDS];
    int out[MS_MAX_OPERANDS];
    const char *name; /* "attention.query": name in traces and comparisons */
    int forward;      /* forward node that it differentiates or repeats; -1: none */
    /* checkpoints that it is a part of: MS_MODULE_MLP, _MOE, _SHARED_EXPERTS */
    unsigned short modules;
    const char *einsum;
    long rotary_width;
    long window_tokens;
    bool inverse;     /* ROTARY: rotates back; EXCHANGE: from experts to tokens' ranks */
    bool by_position; /* EMBED: looks up rows by token position, not by token id */
    /* EMBED, LOSS_SUM, LOSS_GRAD: of the token so many positions ahead of each (multi-token
     * prediction); tokens without one, at a sequence's end, have no target */
    unsigned char ahead;
    bool ring; /* ATTENTION and its gradient: over cp as a ring (ring.h) */
    /* products of frameworks' joined matrices: 1 query, key and value; 2, 3, 4 gate and up
     * of the MLP, of shared experts, of experts; 5, 6 adapters of 1 and 2; 0: another */
    unsigned char joined;
    unsigned char axis; /* REDISTRIBUTE: axis 0..2 of the tensor's mesh */
    ms_placement from, to;
} ms_node;

/* Most forward nodes in ms_saved, a set of node indices. */
#define MS_MAX_SAVED 192
typedef struct ms_saved {
    unsigned long long word[MS_MAX_SAVED / 64];
} ms_saved;
bool ms_saved_has(const ms_saved *keep, int node);
void ms_saved_add(ms_saved *keep, int node);

/* All properties of a plan that a layer program depends on (dp and pp are none). */
typedef struct ms_program_key {
    unsigned char block; /* embedding, layer or head (ms_block_kind) */
    unsigned char kind;  /* layers only: index into model->kinds */
    bool sequence_parallel;
    bool loss_parallel;
    bool attention_fused;
    unsigned char cp_method;           /* context-parallel method (ms_cp_method) */
    bool ring_repeats_heads;           /* ring: sends keys, values once per query head */
    unsigned char ring_gradient_bytes; /* sent bytes per gradient value; 0: as stored */
    /* cp splits the sequence into contiguous chunks: nodes cost as on the last rank,
     * which has most query-key pairs; not with Ulysses */
    bool cp_unbalanced;
    bool optimizer;          /* has an optimizer pass; searches price it apart */
    unsigned char mtp;       /* embedding and head: modules of multi-token prediction */
    bool regather;           /* backward repeats gathers instead of saving results */
    bool holds_gathers;      /* gathered tensors stay in memory until backward */
    unsigned char recompute; /* recompute mode (ms_recompute) */
    bool reruns_layer; /* checkpoints (a layer, mlp, moe ...) are repeated as a whole */
    /* MS_RECOMPUTE_FULL: equal layer inputs of tp ranks are saved split over tp */
    bool partitions_inputs;
    /* MS_RECOMPUTE_SELECTIVE: set of ms_module to recompute; 0: MS_MODULES_DEFAULT */
    unsigned short modules;
    bool shared_overlap; /* shared experts overlap dispatch and combine of tokens */
    ms_saved keep;       /* MS_RECOMPUTE_AUTO: nodes that save their results */
    /* token copies that this rank's experts compute beyond the mean of all ranks, as a
     * share of the mean (ms_expert_excess_frac) */
    double expert_excess_frac;
    /* lengths of the sequences that fill the batch's, which attention does not cross;
     * NULL: one fills each */
    const ms_lengths *lengths;
    /* attention of the rank that has most, beyond the mean of all, as a share of it */
    double attention_excess_frac;
    int computed_tokens; /* positions of each sequence; 0: the workload's */
    int longest_of;   /* sequences whose longest has computed_tokens (padding); 0: none */
    ms_lora lora;     /* adapters; rank 0: all weights are trained */
    bool lora_joined; /* layers that share an input share the adapter's A */
    short tp, cp, ep, etp;
    int microbatch; /* sequences per micro-batch and dp rank */
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
    long mesh_size[2][MS_MESH_AXES]; /* [mesh][axis] ranks; dp 1 for pricing */
    double size['z' - '0' + 1];      /* global size of each dim: size[letter - '0'] */
    double compute_bytes;            /* bytes per element in the compute type */
    int num_tensors, num_nodes;
    ms_tensor *tensors;
    ms_node *nodes; /* in execution order: forward, recompute and backward */
    int num_forward_nodes;
    int input, output; /* tensor indices; embedding: input -1; head: output is the loss */
    int input_part;    /* a tp rank's part of the input, saved instead of it; -1: none */
    int input_gradient, output_gradient; /* tensor indices; -1: no such gradient */
} ms_program;

/* Builds the program of one block (embedding, layer, head) in the arena. `data_parallel`
 * (dp) multiplies the batch; pricing uses 1, as local shapes do not depend on it. With
 * experts, dp * cp * tp must be divisible by ep * etp. The key must be legal for the
 * model (ms_plan_refusal). */
const ms_program *ms_program_make(ms_arena *arena, const ms_model *model,
                                  const ms_program_key *key, long sequence_length,
                                  long data_parallel, ms_dtype compute);

/* Number of a tensor's elements on one rank. */
double ms_tensor_local_elements(const ms_program *program, int tensor);
double ms_tensor_local_bytes(const ms_program *program, int tensor);
/* Local size, on one rank, of a tensor's dim `letter`. */
double ms_tensor_local_size(const ms_program *program, int tensor, char letter);

/* Whether a node is a GEMM: an EINSUM or GROUPED node. */
bool ms_node_is_product(const ms_node *node);
/* Factor of the mean cross entropy of a LOSS_GRAD node in what is minimized: 1, or that of
 * a module of multi-token prediction: nextn_loss_weight / number of modules (DeepSeek-V3,
 * arXiv 2412.19437, equation 25). */
double ms_node_loss_weight(const ms_program *program, const ms_node *node);
/* Whether a weight is the matrix that head and embedding share: all tables of a model with
 * tied embeddings, otherwise the embedding that modules of multi-token prediction use. */
bool ms_tensor_is_tied(const ms_program *program, int weight);
/* Whether a weight is a matrix of a layer that adapters leave frozen; ms_weight_is_coded:
 * one that is stored in NF4 (ms_lora_base). */
bool ms_weight_is_frozen_matrix(const ms_program *program, int weight);
bool ms_weight_is_coded(const ms_program *program, int weight);
/* Bytes of the copies in the compute type of the node's weights in NF4: they exist while
 * it runs (bitsandbytes, MatMul4Bit: forward and backward dequantize the matrix). */
double ms_node_decoded_bytes(const ms_program *program, const ms_node *node);
/* Whether a node is a GEMM of an adapter, or one of its gradients. */
bool ms_node_is_adapter(const ms_node *node);
bool ms_node_reads(const ms_node *node, int tensor);
/* Whether an EXCHANGE node combines results of experts, or sends their gradients; otherwise
 * it dispatches tokens, or returns theirs. */
bool ms_node_combines(const ms_node *node);

/* GEMM shape of an EINSUM or GROUPED node on one rank; its batch are the letters that
 * both operands and the result have. */
ms_gemm_shape ms_node_gemm(const ms_program *program, const ms_node *node);

/* Shapes that price ATTENTION, SCAN and their gradient nodes. */
ms_attention_shape ms_node_attention(const ms_program *program, const ms_node *node);

ms_scan_shape ms_node_scan(const ms_program *program, const ms_node *node);

/* FLOP that one rank executes for a GEMM, attention or scan node; 0 for others. Counts 2
 * per multiply-add, s (s + 1) / 2 causal query-key pairs divided among cp ranks. */
double ms_node_flop(const ms_program *program, const ms_node *node);
/* The mean of ms_node_flop over ranks, which differ where contiguous chunks of a sequence
 * do; unfused attention (`fused` false) computes the pairs that the mask removes, too. */
double ms_node_mean_flop(const ms_program *program, const ms_node *node, bool fused);
/* HBM bytes of a node that is no GEMM: operands read, results written once. */
double ms_node_traffic_bytes(const ms_program *program, const ms_node *node);
/* HBM bytes to which a profile's rates of single pointwise operations refer:
 * ms_node_traffic_bytes without gradients of embedding tables. */
double ms_node_pointwise_bytes(const ms_program *program, const ms_node *node);

/* Whether backward repeats this gather (key.regather) instead of saving its result. */
bool ms_node_is_gathered_again(const ms_program *program, const ms_node *node);

/* The collective of a REDISTRIBUTE or EXCHANGE node, size_bytes as for ms_collective_s.
 * ms_node_communicates: false if nothing is sent (local slice, group of one rank). */
typedef struct ms_node_comm {
    ms_collective collective;
    ms_mesh_kind mesh;
    int axis;
    double size_bytes;
} ms_node_comm;
bool ms_node_communicates(const ms_program *program, const ms_node *node,
                          ms_node_comm *out);

#endif
