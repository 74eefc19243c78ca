/* Conventions of a training framework (stack): kernels, fusions, overlaps, buffers and
 * bytes kept. Loaded from configs/stacks/<name>.json, each number with provenance;
 * `generic` allows every technique. No cost laws. */
#ifndef MS_COSTMODEL_PROFILE_STACK_H
#define MS_COSTMODEL_PROFILE_STACK_H

#include "costmodel/profile/profile.h"
#include "costmodel/profile/recipe.h"
#include "costmodel/schedule/schedule.h"
#include "costmodel/tensor/technique.h"

/* How a framework distributes layers over pipeline stages by default. */
typedef enum ms_layer_split {
    MS_SPLIT_BALANCED, /* stage times as equal as possible, embedding and head counted */
    /* equal numbers of layers where pp divides their number; else embedding and head
     * count as one layer each, where pp divides that sum; else as MS_SPLIT_BALANCED */
    MS_SPLIT_EVEN,
    /* nanotron: a stage ends at its share of FLOP: 4 h^2 + 3 h f + s h of a layer, V h of
     * the head (hidden h, MLP width f, sequence s, vocabulary V) */
    MS_SPLIT_BY_FLOP
} ms_layer_split;
extern const char *const ms_layer_split_names[]; /* "balanced" "even" "by-flop", NULL */

/* The event that the optimizer update waits for. Source: Zero Bubble Pipeline Parallelism
 * (Qi et al. 2023, arXiv 2401.10241), section 4. */
typedef enum ms_optimizer_sync {
    MS_SYNC_GLOBAL, /* optimizer awaits all ranks' gradient norm: no steps overlap */
    /* optimizer awaits its rank's reduced gradients; the norm is checked a step later */
    MS_SYNC_POST_VALIDATION
} ms_optimizer_sync;
extern const char *const ms_optimizer_sync_names[]; /* "global" "post-validation", NULL */

typedef struct ms_stack {
    const char *name;
    const char *source;
    /* rules of the framework and their version, configs/rules: "megatron@0.20"; NULL: none
     * are known, and every plan is accepted */
    const char *rules;
    const char *version; /* version asked for by "NAME@VERSION"; NULL: that of `rules` */
    ms_attention_kernel attention;  /* kernel; if the profile lacks it, next older one */
    ms_coefficient unfused_traffic; /* u: factor on unfused kernels' extra HBM passes */
    /* HBM bytes per element of a norm made of single operations, forward and backward; 0:
     * a norm is a chain like others */
    ms_coefficient norm_bytes, norm_grad_bytes;
    /* host seconds per layer and micro-batch; NaN: number of kernels x launch_s */
    ms_coefficient host_s_per_layer;
    /* host seconds added to each collective per rank of its group, if pipeline stages lie
     * on several nodes */
    ms_coefficient host_s_per_collective_rank;
    /* seconds added to each message of a run that stalls */
    ms_coefficient message_stall_s;
    ms_coefficient stalling_nodes; /* pipelined runs on >= so many nodes stall; 0: none */
    /* pipelined runs with a tensor group on >= so many nodes stall; 0: none */
    ms_coefficient stalling_tensor_nodes;
    /* seconds of routing per layer and micro-batch, forward + backward, beyond HBM
     * traffic: small kernels, and the device's wait for the host to count tokens */
    ms_coefficient routing_s;
    /* HBM bytes per element of experts' results, forward + backward, for separate
     * operations on token rows (padding, sorting, casts) */
    ms_coefficient expert_row_bytes;
    /* HBM bytes of expert biases per element of experts' results; 0: fused into GEMMs */
    ms_coefficient expert_bias_bytes;
    /* launches of a grouped GEMM per local expert; 0: one kernel for all experts */
    ms_coefficient expert_launches;
    ms_coefficient expert_cast_launches; /* launches per expert for casts below 16 bits */
    /* launches per layer by routing, dispatch and fixed parts of grouped GEMMs, forward +
     * backward, beyond one per MS_OP_ROUTE and MS_OP_ROUTE_GRAD */
    ms_coefficient routing_launches;
    ms_coefficient scan_loss;   /* extra time of scans / time of their HBM traffic */
    ms_coefficient launch_frac; /* factor on launch_s (compiled blocks: below 1) */
    ms_compile compile;         /* compilation that the numbers of the stack are for */
    /* name of the stack whose numbers hold where layers are compiled though this stack's
     * are not, or the other way round (ms_stack_set_host), and that stack; NULL: none */
    const char *compile_counterpart;
    const struct ms_stack *counterpart;
    /* each operation of a pointwise chain that is not compiled is one launch
     * (costmodel/cost/host_operations.h) */
    bool launches_operations;
    /* host seconds that DTensor adds to an operation on sharded tensors, unless compiled;
     * 0: the stack has none */
    ms_coefficient dtensor_s;
    ms_coefficient graph_launch_s;  /* host time to replay a CUDA graph; 0: it has none */
    ms_cuda_graphs cuda_graphs;     /* set by plans only */
    bool graphs_experts;            /* graphs include experts; set by plans only */
    ms_coefficient tp_overlap_frac; /* share of TP traffic hidden without async TP */
    ms_coefficient dp_overlap; /* 1: data-parallel traffic overlaps compute; 0: not */
    /* gpipe and 1f1b: message times that a stage waits before its next action (0: none;
     * 1: messages in both directions at once; 2: one direction after the other) */
    ms_coefficient send_hold;
    ms_coefficient interleaved_send_hold; /* send_hold for interleaved and looped-bfs */
    ms_coefficient cp_overlap_frac;   /* share of gathers over cp hidden by attention */
    ms_coefficient ring_overlap_frac; /* share of ring sends hidden by attention */
    /* ring attention: bytes per element of key and value gradients; 0: as stored */
    ms_coefficient ring_gradient_bytes;
    bool ring_repeats_heads; /* ring attention sends keys, values once per query head */
    /* phi: share of the shorter of compute and overlapped communication that is lost */
    ms_coefficient interference_frac;
    ms_coefficient optimizer_bytes; /* the optimizer's HBM bytes per owned parameter */
    ms_coefficient
        accumulate_bytes;      /* HBM bytes per parameter to sum gradients; 0: in GEMMs */
    ms_coefficient loss_bytes; /* HBM bytes of the loss per local logit */
    /* ---- memory ---- */
    ms_coefficient param_bytes; /* bytes of a parameter between steps (FSDP2: 4) */
    /* 8-bit compute types: bytes per parameter of casts that outlive a micro-batch, value
     * and transpose; devices with FP4 multiply without the transpose. They replace the
     * parameters if the stack gathers_cast. */
    ms_coefficient cast_param_bytes;
    ms_coefficient grad_bytes;   /* bytes of gradients and their sums, per parameter */
    ms_coefficient bucket_bytes; /* bytes of gradient copies to reduce, per parameter */
    /* pipelines: bytes per parameter of gradients that outlive their micro-batch */
    ms_coefficient late_grad_bytes;
    ms_coefficient master_bytes; /* bytes of fp32 master copy per parameter; 0: none */
    ms_coefficient moment_bytes; /* bytes of Adam's m and v per parameter */
    ms_coefficient logit_bytes;  /* bytes alive per local logit at the loss */
    /* logit_bytes if logits are sharded over tp; 0: equal to logit_bytes */
    ms_coefficient sharded_logit_bytes;
    ms_coefficient head_grad_bytes; /* bytes per parameter of the head in its backward */
    ms_coefficient workspace_bytes; /* memory of libraries such as cuBLAS */
    /* workspace_bytes on devices that PyTorch gives a smaller one (compute capability
     * below 9.0, or 12.x); 0: equal to it */
    ms_coefficient older_workspace_bytes;
    /* one cuBLAS workspace of Transformer Engine, and the same below compute capability
     * 9.0; a rank with experts has engine_streams of them more, for grouped products */
    ms_coefficient engine_workspace_bytes, older_engine_workspace_bytes;
    ms_coefficient engine_streams;
    /* kernels that the driver loads at start, besides the context: CUDA before 11.7 loads
     * every kernel of every library, later versions those that are launched */
    ms_coefficient eager_kernels_bytes;
    ms_coefficient fragmentation_frac; /* reserved memory divided by allocated, less 1 */
    /* share of the logits' bytes that the loss needs once more at worst, because free
     * memory lies in pieces smaller than its blocks */
    ms_coefficient loss_reserve_frac;
    /* the allocator's cache beyond fragmentation, as a share of the peak; it is given back
     * before an allocation fails, so that no plan needs it */
    ms_coefficient reserve_frac;
    /* copies of a stage's received input, and of its output, that the pipeline engine keeps
     * until the micro-batch's backward in addition to what backward reads */
    ms_coefficient boundary_copies;
    /* pipelines: communicators besides the world's and one for each kind of group */
    ms_coefficient more_communicators;
    /* gradients are freed after each step and made again by backward: with one micro-batch
     * a step, none exist while all activations do */
    bool frees_gradients;
    /* pipelines: bytes per local logit of every micro-batch, kept until the step ends */
    ms_coefficient held_logit_bytes;
    bool receives_apart; /* a receive buffer for each micro-batch of the step */
    ms_coefficient host_activation_frac; /* share of saved activations in host memory */
    bool host_layer_inputs; /* saved layer inputs are in host memory; set by plans only */
    bool partitions_inputs; /* a tp rank saves its part of a layer's input; plans only */
    double unit_layers;     /* layers that move together (sim/step/sync_units.h), and */
    double sync_bucket_bytes; /* bytes of one collective; both 0 or set by plans */
    ms_host_optimizer host_optimizer; /* set by plans only */
    ms_coefficient host_update_bytes; /* host memory traffic of the update, per parameter;
                                          0: the optimizer cannot run on the host */
    ms_coefficient host_memory_frac;  /* share of the host memory's listed bandwidth that
                                          the update reaches */
    bool offloads_gradients; /* MS_HOST_UPDATE: backward copies reduced gradients to host
                                memory, where they stay; else the optimizer copies them */
    /* gradients and parameters are quantized to the bytes below; set by plans only */
    bool quantizes_reductions, quantizes_gathers;
    ms_coefficient grad_comm_bytes;  /* bytes per parameter in gradient reductions */
    ms_coefficient param_comm_bytes; /* bytes per parameter in all-gathers */
    /* the next six are set by plans only (costmodel/plan/stack_choices.h), for
     * costmodel/cost/update_cost.h */
    bool has_choices;             /* a plan's choices are in the numbers */
    double orthogonal_iterations; /* Newton-Schulz, per matrix and step */
    /* bytes of states and HBM bytes of parameters that are no matrices to the optimizer,
     * beyond moment_bytes and optimizer_bytes */
    double vector_moment_bytes, vector_optimizer_bytes;
    double factored_bytes; /* bytes of states per row and per column of a matrix */
    const ms_operand_scaling *scaling; /* the plan's recipe; NULL: casts of one pass */
    bool states_in_compute_type; /* optimizer states and logits have the compute type */
    /* buffers of gathered parameters have the size of the largest of layers, embedding
     * and head; false: of the largest layer */
    bool fixed_unit_buffers;
    bool exposes_shards; /* dp_overlap holds for ZeRO stage 0, not 1 to 3 */
    /* a tp rank sends only its share of a pipeline message, even without sequence
     * parallelism (sim/step/message.h) */
    bool scatters_sends;
    bool adds_reduced_gradients; /* results of reductions are added to another buffer */
    bool regather; /* backward gathers layer inputs again; only shards are saved */
    /* full recomputation repeats every operation of a layer, even its last GEMM and
     * reduction, whose results backward does not need (costmodel/program/recompute.c) */
    bool reruns_layers;
    /* gathered layer inputs stay in memory without a pipeline, and with one if the host
     * is ahead of the GPU (sim/step/bill_key.h), not in every run: peaks are ranges */
    bool holds_gathers_alone;
    /* GEMM operands below 16 bits are cast once for all uses, before gathers over tp
     * (costmodel/cost/cast.h) */
    bool casts_once;
    bool gathers_cast; /* 8-bit compute types: parameters are gathered in 8 bits */
    /* backward over tp: a reduction overlaps with the GEMM of the layer's weight
     * gradient, a repeated gather with the GEMM of its input gradient */
    bool overlaps_gradients;
    bool fuses_projections; /* q, k, v are one matrix; gate and up another */
    bool trains_mtp;        /* trains multi-token-prediction modules, if any */
    /* below 16 bits one kernel serves all experts, with casts, activation and biases in
     * its epilogue: members expert_* do not apply */
    bool fuses_experts;
    /* all-to-alls send a token once per rank and domain (ms_node_sends,
     * ms_token_exchange_law_make) */
    bool shares_token_copies;
    /* each rank gets all tokens of its ep group, sums are scattered; set by plans only */
    bool gathers_tokens;
    bool overlaps_shared_experts; /* ms_plan.shared_overlap; set by plans only */
    bool keeps_gate; /* backward keeps the activated gate of a gated MLP, too */
    /* norms of separate operations: backward keeps their input in fp32, and the normalized
     * values before the weight, in place of the input */
    bool keeps_eager_norms;
    bool keeps_unrotated; /* keeps queries and keys from before rotary, too */
    bool keeps_casts;     /* saves casts below 16 bits for weight gradients */
    /* keeps_casts, and the cast is the only saved copy, even for other readers */
    bool keeps_casts_alone;
    /* routing weights multiply experts' activations, so their results are not saved */
    bool weighs_in_experts;
    /* layers have the sequence as first dimension, FlashAttention the batch: with several
     * sequences a micro-batch its result is saved in both orders */
    bool sequence_first;
    /* PyTorch's deterministic algorithms: large workspaces of cuBLAS; on Blackwell
     * FlashAttention instead of cuDNN; experts' rows are added by index_add, which saves
     * them */
    bool deterministic;
    bool makes_mask; /* the data loader makes a mask of attention, a byte for each pair */
    bool counts_context; /* reported memory includes CUDA context and NCCL buffers */
    /* ---- assumptions about published runs (sim/validate/pubrun.c) ---- */
    bool splits_experts; /* plan default: wide experts split over tp (Megatron Core) */
    bool recomputes_by_need;  /* plan default: as little recomputation as fits memory */
    bool stage_2_is_fsdp;     /* ZeRO stage 2 keeps gathered weights for a step (FSDP) */
    bool interleaves;         /* plan default: schedule interleaved 1F1B */
    bool single_layer_chunks; /* plan default, interleaved: one layer per chunk */
    bool pads_vocab;   /* pads the vocabulary to a multiple of 128 tp (Megatron-LM) */
    bool uses_dropout; /* trains with dropout if the model has it */
    bool lacks_sequence_parallel; /* plan default: no sequence parallelism */
    bool whole_microbatch; /* plan default without pipeline: no gradient accumulation */
    /* set of ms_module that selective recomputation repeats; default MS_MODULES_DEFAULT
     * (Megatron-LM: core_attn, core/transformer/attention.py) */
    int selective_modules;
    bool selective_is_full;    /* "selective" recomputation repeats whole layers */
    bool casts_once_by_tensor; /* casts_once needs scales per tensor, not per row */
    /* reported memory is that of rank 0 (nanotron logs max_memory_allocated,
     * src/nanotron/trainer.py) */
    bool reports_first_rank;
    /* first month with fused attention, e.g. 202304 for PyTorch 2.0
     * (torch.nn.functional.scaled_dot_product_attention); 0: always */
    long fuses_attention_since;
    /* month, e.g. 202504: published pipelined runs before it had as many micro-batches as
     * stages; 0: no such month */
    long stages_split_batch_before;
    /* ---- defaults and capabilities ---- */
    const char *recompute; /* default recompute mode: "none" "selective" ... */
    long pipeline_zero;    /* default_zero of plans with a pipeline; -1: default_zero */
    long default_zero; /* ZeRO stage of plans by default, if dp_shard * cp > 1; -1: 3 */
    bool reshards_in_pipelines; /* plan default: ZeRO 3 reshards with pipelines, too */
    ms_cp_method cp_method;     /* context-parallel method of plans by default */
    bool can_cp[MS_NUM_CP_METHODS];
    bool can_schedule[MS_NUM_SCHEDULES]; /* [MS_CUSTOM]: schedules from files */
    /* schedule of pipelines without virtual stages by default, if can_schedule has it */
    ms_schedule_kind default_schedule;
    bool states_layouts; /* uneven stages take Megatron's layout string */
    ms_optimizer_sync optimizer_sync;
    ms_layer_split layer_split;
    /* ---- frozen weights beside adapters, by the plan (ms_stack_of_plan) ---- */
    double frozen_param_bytes; /* bytes of a layer's parameter, stored and gathered */
    /* HBM bytes per parameter and GEMM to make an operand of it; in backward besides, on
     * devices that multiply 8 bits by rows only, for the transpose */
    double frozen_use_bytes, frozen_transpose_bytes;
} ms_stack;

/* Loads a stack by name, "NAME@VERSION" or path. Errors: MS_EIO, or as ms_stack_read. */
ms_status ms_stack_load(ms_ctx *cx, const char *name, const ms_stack **out);
/* Reads a parsed stack file. MS_EINPUT: missing, unknown or out-of-range fields. */
ms_status ms_stack_read(ms_ctx *cx, ms_jval root, ms_stack *out);
/* The stack with gathered layer inputs held in memory (`kept`) or gathered again in
 * backward, for every number of stages. */
ms_stack ms_stack_with_gathers(const ms_stack *stack, bool kept);
/* The stack for a run whose values all have type `compute`. With states_in_compute_type
 * and a type of 4 bytes or more: states, messages and logits have that type, without a
 * master copy; Adam reads gradient (twice, once for the norm), parameter, m and v and
 * writes parameter, m and v (8 elements per parameter); the loss reads logits three times
 * and writes them once (4). With gathers_cast and an 8-bit type gathered parameters take
 * one byte each. Adapting an adapted stack changes nothing. */
ms_stack ms_stack_adapt(const ms_stack *stack, ms_dtype compute);
/* Lists the numbers (ms_coefficient members) of any stack, not its switches or words. */
void ms_stack_figures(ms_figures *list);

/* A convention that a stack has: key of its file, and meaning. */
typedef struct ms_stack_switch {
    const char *key, *help;
} ms_stack_switch;
/* Lists the switches that are on, without capabilities (can_cp); returns how many. */
int ms_stack_switches(ms_arena *arena, const ms_stack *stack,
                      const ms_stack_switch **out);

#endif
