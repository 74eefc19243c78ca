/* The conventions of a training framework: kernels, fusions, overlaps, buffers and bytes
 * kept. Loaded from configs/stacks/<name>.json, each figure with provenance; `generic`
 * allows every technique. Cost laws do not belong here. */
#ifndef MS_COSTMODEL_PROFILE_STACK_H
#define MS_COSTMODEL_PROFILE_STACK_H

#include "costmodel/profile/profile.h"
#include "costmodel/schedule/schedule.h"
#include "costmodel/tensor/technique.h"

/* How a framework distributes layers over pipeline stages by default. */
typedef enum ms_layer_split {
    MS_SPLIT_BALANCED, /* stage times as equal as possible, embedding and head counted */
    /* equal numbers of layers where they divide, else with embedding and head as a layer
     * each where that divides; otherwise balanced */
    MS_SPLIT_EVEN,
    /* nanotron: a stage ends at its share of FLOP, 4 h^2 + 3 h f + s h per layer and V h
     * for the head (hidden h, MLP width f, sequence s, vocabulary V) */
    MS_SPLIT_BY_FLOP
} ms_layer_split;

/* The event before which the optimizer cannot step. Source: Zero Bubble Pipeline
 * Parallelism (Qi et al. 2023, arXiv 2401.10241), section 4. */
typedef enum ms_optimizer_sync {
    MS_SYNC_GLOBAL, /* the norm of all gradients over all ranks; steps do not overlap */
    /* reduction of the rank's own gradients; the norm is checked during the next step */
    MS_SYNC_POST_VALIDATION
} ms_optimizer_sync;
extern const char *const ms_optimizer_sync_names[]; /* "global" "post-validation", NULL */

typedef struct ms_stack {
    const char *name;
    const char *source;
    ms_attention_kernel attention;  /* kernel, or the next lower that the device has */
    ms_coefficient unfused_traffic; /* u: unfused kernels' extra HBM passes; eager: 2-3 */
    /* host seconds of a layer and micro-batch; NaN: kernels x launch_s */
    ms_coefficient host_s_per_layer;
    /* host seconds added to every collective by each rank of its group, if pipeline
     * stages lie on several nodes */
    ms_coefficient host_s_per_collective_rank;
    ms_coefficient message_stall_s; /* added to each pipeline message if a run stalls */
    ms_coefficient stalling_nodes;  /* pipelined runs on so many nodes stall; 0: never */
    /* pipelined runs whose tensor groups span so many nodes stall; 0: never */
    ms_coefficient stalling_tensor_nodes;
    /* seconds of routing per layer and micro-batch beyond its bytes, forward + backward:
     * small kernels, and the device's wait for the host to count tokens */
    ms_coefficient routing_s;
    /* HBM bytes of separate operations on experts' rows (padding, sorting, casting) per
     * element of their results, forward + backward */
    ms_coefficient expert_row_bytes;
    /* HBM bytes of biases per element of experts' results; 0: in the GEMM's epilogue */
    ms_coefficient expert_bias_bytes;
    /* host time of a grouped GEMM per local expert, in launches; 0: one kernel for all */
    ms_coefficient expert_launches;
    ms_coefficient expert_cast_launches; /* launches added by casts to below 16 bits */
    /* host time of a layer's routing, dispatch and fixed part of grouped GEMMs, forward +
     * backward, in launches; 0: one for each node */
    ms_coefficient routing_launches;
    ms_coefficient scan_loss; /* time of a Mamba scan over that of its traffic, minus 1 */
    ms_coefficient launch_frac; /* remaining share of launch_s (CUDA graphs: below 1) */
    ms_coefficient tp_overlap_frac; /* share of TP traffic hidden without async TP */
    ms_coefficient dp_overlap; /* 1: gradient and parameter traffic overlaps; 0: not */
    /* gpipe and 1f1b: messages awaited by a stage before its next action: 1 both
     * directions at once, 2 one after the other, 0 none */
    ms_coefficient send_hold;
    ms_coefficient interleaved_send_hold; /* send_hold of interleaved and looped-bfs */
    ms_coefficient cp_overlap_frac;   /* share of gathers over cp hidden by attention */
    ms_coefficient ring_overlap_frac; /* share of a ring step's transfer hidden */
    /* bytes per element of gradients of keys and values in a ring; 0: as stored */
    ms_coefficient ring_gradient_bytes;
    bool ring_repeats_heads; /* rings carry keys and values once per query head */
    /* phi: share of the shorter of compute and overlapped communication that is lost */
    ms_coefficient interference_frac;
    ms_coefficient optimizer_bytes; /* HBM bytes of the optimizer per owned parameter */
    ms_coefficient
        accumulate_bytes; /* gradient sums: bytes a parameter and micro-batch; 0: fused */
    ms_coefficient loss_bytes; /* HBM bytes per local logit, forward + backward */
    /* ---- memory ---- */
    ms_coefficient param_bytes;  /* per parameter between steps (FSDP2, fp32 shards: 4) */
    ms_coefficient grad_bytes;   /* gradient bytes per parameter, accumulation included */
    ms_coefficient bucket_bytes; /* gradient copies for data parallelism, per parameter */
    /* gradients of the previous micro-batch at a pipeline peak, per parameter */
    ms_coefficient late_grad_bytes;
    ms_coefficient master_bytes; /* fp32 master copy; 0 with fp32 parameters */
    ms_coefficient moment_bytes; /* Adam's m and v per parameter */
    ms_coefficient logit_bytes;  /* bytes alive per local logit at the loss */
    /* logit_bytes of logits sharded over tp; 0: equal to logit_bytes */
    ms_coefficient sharded_logit_bytes;
    ms_coefficient head_grad_bytes; /* alive per local head parameter in its backward */
    ms_coefficient workspace_bytes; /* libraries' memory in the framework's allocator */
    ms_coefficient fragmentation_frac; /* reserved over allocated memory, minus 1 */
    ms_coefficient grad_comm_bytes;    /* bytes per parameter in gradient reductions */
    ms_coefficient param_comm_bytes;   /* bytes per parameter in all-gathers */
    bool states_in_compute_type;       /* states, logits etc. in the compute type */
    /* gathered parameters have buffers of the largest unit, embedding and head included;
     * otherwise a unit is a layer */
    bool fixed_unit_rooms;
    bool exposes_shards; /* dp_overlap holds only for all-reduces of ZeRO-0 */
    /* a tp rank sends only its share of a pipeline message, even without sequence
     * parallelism (sim/step/message.h) */
    bool scatters_sends;
    bool adds_reduced_gradients; /* reductions are added to a gradient buffer */
    bool regather; /* backward gathers layer inputs again instead of saving them */
    /* full recomputation repeats all of a layer, its last GEMM and reduction included;
     * otherwise only what backward needs (costmodel/program/recompute.c) */
    bool reruns_layers;
    /* gathered layer inputs stay in memory without a pipeline, and with one if the host
     * is ahead (sim/step/gathers.h); runs differ: peaks are ranges */
    bool holds_gathers_alone;
    /* GEMM operands below 16 bits are cast once for all uses, before gathers over tp
     * (costmodel/cost/cast.h) */
    bool casts_once;
    bool gathers_cast; /* 8-bit compute types: gathers in that type (ms_stack_adapt) */
    /* backward: a reduction over tp overlaps with the weight gradient of the layer, a
     * repeated gather with its input gradient */
    bool overlaps_gradients;
    bool fuses_projections; /* one matrix for q, k, v, another for gate and up */
    bool trains_mtp;        /* trains modules of multi-token prediction, if any */
    /* below 16 bits one kernel serves all experts, with casts, activation and biases in
     * its epilogue: the expert_ figures do not apply */
    bool fuses_experts;
    /* all-to-all sends a token once per rank and domain (ms_node_sends,
     * ms_token_exchange_law_make) */
    bool shares_token_copies;
    bool keeps_gate; /* saves the activated gate of a gated MLP besides the product */
    bool keeps_unrotated; /* saves queries and keys before the rotary embedding as well */
    /* weight gradients save the cast of operands below 16 bits (costmodel/cost/cast.h) */
    bool keeps_casts;
    /* keeps_casts: no operand is saved beside its cast, inputs of activations included */
    bool keeps_casts_alone;
    /* routing weights multiply experts' activations, so their results are not saved */
    bool weighs_in_experts;
    bool counts_context; /* reported memory includes CUDA context and communication */
    /* ---- assumptions about published runs (sim/validate/pubrun.c) ---- */
    bool splits_experts;     /* default: wide experts split over tp (Megatron Core) */
    bool recomputes_by_need; /* default: as little recomputation as fits */
    bool stage_2_is_fsdp; /* "stage 2" is FSDP that keeps gathered weights for a step */
    bool interleaves;     /* default schedule is interleaved 1F1B */
    bool single_layer_chunks; /* default of interleaved runs: one layer per chunk */
    bool
        pads_vocab; /* vocabulary a multiple of 128 tp (--make-vocab-size-divisible-by) */
    bool uses_dropout;            /* trains with dropout if the model has it */
    bool lacks_sequence_parallel; /* default: no sequence parallelism */
    bool whole_microbatch;        /* default without pipeline: no gradient accumulation */
    bool selective_is_full;       /* "selective" recomputation repeats whole layers */
    bool casts_once_by_tensor;    /* casts_once does not hold with one scale per row */
    /* reported memory is the first rank's (nanotron logs max_memory_allocated,
     * src/nanotron/trainer.py) */
    bool reports_first_rank;
    /* first month with fused attention, as 202304 for PyTorch 2.0
     * (torch.nn.functional.scaled_dot_product_attention); 0: always */
    long fuses_attention_since;
    /* month, as 202504, before which pipelined runs had as many micro-batches as stages;
     * 0: none had */
    long stages_split_batch_before;
    /* ---- defaults and capabilities ---- */
    const char *recompute; /* default mode of recomputation: "none" "selective" ... */
    long default_zero;     /* default ZeRO stage; -1: 3 when dp_shard > 1, else 0 */
    bool can_zero3_with_pp;
    ms_cp_method cp_method; /* default method of context parallelism */
    bool can_cp[MS_NUM_CP_METHODS];
    bool can_schedule[MS_NUM_SCHEDULES];
    ms_optimizer_sync optimizer_sync;
    ms_layer_split layer_split;
} ms_stack;

/* Loads a stack by name or path. Errors: MS_EIO, or as ms_stack_read. */
ms_status ms_stack_load(ms_ctx *cx, const char *name, const ms_stack **out);
/* Reads a parsed stack file. MS_EINPUT: missing, unknown or out-of-range fields. */
ms_status ms_stack_read(ms_ctx *cx, ms_jval root, ms_stack *out);
/* The stack with gathered layer inputs held in memory (`kept`) or gathered again in
 * backward, for every number of stages. */
ms_stack ms_stack_with_gathers(const ms_stack *stack, bool kept);
/* The stack's figures if everything is computed in `compute`. With states_in_compute_type
 * and at least 4 bytes per element, states, messages and logits are in that type without
 * a master copy; Adam reads gradient (also for its norm), parameter and moments and
 * writes parameter and moments (8 elements per parameter); the loss reads logits three
 * times and writes them once (4). With gathers_cast and an 8-bit type, gathered
 * parameters take one byte each. Applying it twice equals applying it once. */
ms_stack ms_stack_adapt(const ms_stack *stack, ms_dtype compute);
/* Appends the coefficients of ms_stack to the list; switches and words are left out. */
void ms_stack_figures(ms_figures *list);

#endif
