/* Techniques that plans choose and stacks support: recompute modes, cp methods. */
#ifndef MS_COSTMODEL_TENSOR_TECHNIQUE_H
#define MS_COSTMODEL_TENSOR_TECHNIQUE_H

#include <stdbool.h>
#include <stddef.h>

/* Reads a list of words with commas between them as the union of their bits; false if a
 * word has none, or the list is empty. */
bool ms_word_set_parse(const char *text,
                       unsigned (*bits_of)(const char *word, size_t length),
                       unsigned *set);

typedef enum ms_recompute {
    MS_RECOMPUTE_NONE,      /* save all activations that backward needs */
    MS_RECOMPUTE_SELECTIVE, /* recompute a set of modules (ms_module) */
    /* TorchTitan's selective policy: save attention, every second GEMM, collectives */
    MS_RECOMPUTE_PER_OP,
    /* save a layer's input only, on the first `recompute_layers` layers of a chunk */
    MS_RECOMPUTE_FULL,
    /* save what takes most recompute time per byte: costmodel/cost/saved_choice.h */
    MS_RECOMPUTE_AUTO,
    MS_NUM_RECOMPUTE
} ms_recompute;
/* "none" "selective" "per-op" "full" "auto", NULL */
extern const char *const ms_recompute_names[];

/* Modules of a layer that MS_RECOMPUTE_SELECTIVE recomputes, as bits of a set. The first
 * seven are those of Megatron Core (--recompute-modules): core_attn, mlp, moe and
 * shared_experts are checkpoints, whose input is saved, and whose result is too if the
 * next module reads it in backward; the others discard their results, which backward
 * makes again before their consumers' gradients. */
typedef enum ms_module {
    MS_MODULE_CORE_ATTN = 1, /* the attention kernel */
    /* norms that are modules of their own in Megatron Core: before the experts, and before
     * latent attention; those before other linear layers are part of them */
    MS_MODULE_LAYERNORM = 2,
    MS_MODULE_MLA_UP_PROJ = 4, /* queries, keys and values from latent vectors */
    MS_MODULE_MOE_ACT = 8,     /* the activation of routed experts */
    MS_MODULE_MLP = 16,        /* the MLP of dense layers, with the norm before it */
    MS_MODULE_MOE = 32, /* router, experts, shared experts, and exchanges of tokens */
    MS_MODULE_SHARED_EXPERTS = 64,
    /* not of Megatron Core: all norms, all activations, the scores of unfused attention */
    MS_MODULE_NORMS = 128,
    MS_MODULE_ACTIVATIONS = 256,
    MS_MODULE_SCORES = 512,
    MS_NUM_MODULES = 10,
    /* the set of "selective" unless a stack or a plan states one */
    MS_MODULES_DEFAULT = MS_MODULE_NORMS | MS_MODULE_ACTIVATIONS | MS_MODULE_SCORES |
                         MS_MODULE_MLA_UP_PROJ,
    MS_MODULES_OF_EXPERTS = MS_MODULE_MOE_ACT | MS_MODULE_MOE | MS_MODULE_SHARED_EXPERTS
} ms_module;
/* "core_attn" "layernorm" "mla_up_proj" "moe_act" "mlp" "moe" "shared_experts" "norms"
 * "activations" "scores", NULL */
extern const char *const ms_module_names[];
/* Reads a comma-separated list of names; false if one is unknown or the list is empty. */
bool ms_modules_parse(const char *text, int *modules);

/* Ways to recompute a layer that are priced apart: an ms_recompute, whose automatic choice
 * has the workload's budget; or MS_NUM_RECOMPUTE + i, the automatic choice with a budget of
 * i tenths of the activations, i from 0 to 10, which a search compares. */
typedef int ms_layer_mode;
enum {
    MS_NUM_BUDGETS = 11,
    MS_NUM_LAYER_MODES = MS_NUM_RECOMPUTE + MS_NUM_BUDGETS
};
static inline ms_layer_mode ms_layer_mode_of_budget(int tenths)
{
    return MS_NUM_RECOMPUTE + tenths;
}
static inline bool ms_layer_mode_has_budget(ms_layer_mode mode)
{
    return mode >= MS_NUM_RECOMPUTE;
}
/* The budget of a mode that has one: a share of the activations' bytes. */
static inline double ms_layer_mode_budget_frac(ms_layer_mode mode)
{
    return (mode - MS_NUM_RECOMPUTE) / 10.0;
}
static inline ms_recompute ms_layer_mode_recompute(ms_layer_mode mode)
{
    return ms_layer_mode_has_budget(mode) ? MS_RECOMPUTE_AUTO : (ms_recompute)mode;
}

typedef enum ms_cp_method {
    MS_CP_ALL_GATHER, /* keys and values are gathered before attention */
    /* blocks of keys and values pass around the ranks, overlapped with attention:
     * costmodel/program/ring.h */
    MS_CP_RING,
    /* all-to-alls split heads instead of the sequence during attention (DeepSpeed
     * Ulysses, Jacobs et al. 2023) */
    MS_CP_ULYSSES,
    MS_NUM_CP_METHODS
} ms_cp_method;
extern const char *const ms_cp_method_names[]; /* "all-gather" "ring" "ulysses", NULL */
/* Finds a context-parallel method by its name, or by that of Megatron-Core, PyTorch and
 * the papers ("p2p", "a2a", "zig-zag"), ignoring letter case. */
bool ms_cp_method_parse(const char *text, ms_cp_method *out);
typedef enum ms_cp_balance {
    MS_CP_HEAD_TAIL,
    MS_CP_NONE
} ms_cp_balance;
extern const char *const ms_cp_balance_names[]; /* "head-tail" "none", NULL */

/* How tokens travel to the experts of other ranks and back (Megatron Core,
 * --moe-token-dispatcher-type). */
typedef enum ms_dispatcher {
    MS_DISPATCH_OF_STACK,   /* the stack's own way */
    MS_DISPATCH_ALL_TO_ALL, /* a copy for each chosen expert */
    MS_DISPATCH_ALL_GATHER, /* all tokens to all ranks; sums by reduce-scatter */
    MS_DISPATCH_DEEPEP,     /* a copy for each rank, once per node (DeepEP) */
    MS_DISPATCH_HYBRIDEP    /* refused: no published rates set it apart from DeepEP */
} ms_dispatcher;
extern const char *const ms_dispatcher_names[]; /* "stack" "alltoall" ..., NULL */
/* Where the optimizer's states are, and where it runs. */
typedef enum ms_host_optimizer {
    MS_HOST_NO_OPTIMIZER, /* states and update on the device */
    MS_HOST_STATES,       /* states in host memory, copied to the device for the update */
    MS_HOST_UPDATE        /* states in host memory, updated by the CPUs (ZeRO-Offload) */
} ms_host_optimizer;
extern const char *const ms_host_optimizer_names[]; /* "off" "states" "update", NULL */

/* Bits of an element of gathered parameters or of reduced gradients (ZeRO++). */
typedef enum ms_quantized_bits {
    MS_NOT_QUANTISED,
    MS_QUANTISED_8,
    MS_QUANTISED_4
} ms_quantized_bits;
extern const char *const ms_quantized_bits_names[]; /* "off" "8" "4", NULL */

/* The part of a model that torch.compile compiles. */
typedef enum ms_compile {
    MS_COMPILE_OF_STACK, /* the stack's own way */
    MS_COMPILE_NONE,     /* every operation is launched by itself (eager) */
    MS_COMPILE_REGIONAL, /* each layer, and the loss if the stack compiles it */
    MS_COMPILE_FULL      /* the whole model */
} ms_compile;
extern const char *const ms_compile_names[]; /* "stack" "none" "regional" "full", NULL */

/* Launches that are recorded once and replayed as CUDA graphs (Megatron Core,
 * --cuda-graph-impl and --cuda-graph-scope). */
typedef enum ms_cuda_graphs {
    MS_GRAPHS_NONE,
    MS_GRAPHS_LAYERS, /* a graph per layer and pass, without routing and experts, whose
                         shapes the host must know, unless they are padded */
    MS_GRAPHS_FULL    /* forward and backward of a step are one graph */
} ms_cuda_graphs;
extern const char *const ms_cuda_graphs_names[]; /* "none" "layers" "full", NULL */

#endif
