/* The habits of a training framework: kernels, fusions, overlaps, buffers, what bytes it
 * keeps. Loaded from configs/stacks/<name>.json; every figure with provenance. `generic`
 * allows every technique. */
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
    /* nanotron: a stage ends when its share of 4 h^2 + 3 h f + s h per layer and V h of
     * the head is reached */
    MS_SPLIT_BY_FLOP
} ms_layer_split;

/* What the optimizer waits for. Source: Zero Bubble Pipeline Parallelism (Qi et al. 2023,
 * arXiv 2401.10241), section 4. */
typedef enum ms_optimizer_sync {
    MS_SYNC_GLOBAL, /* the norm of all gradients over all ranks; steps do not overlap */
    /* nothing: a rank steps when its own gradients are reduced, and checks the norm while
     * the next step runs */
    MS_SYNC_POST_VALIDATION
} ms_optimizer_sync;
extern const char *const ms_optimizer_sync_names[]; /* "global" "post-validation", NULL */

typedef struct ms_stack {
    const char *name;
    const char *source;
    /* the kernel it uses; falls to the next lower one that the device has */
    ms_attention_kernel attention;
    /* u: extra passes over HBM of pointwise chains; 0.3 compiled or fused, 2-3 eager */
    ms_coefficient unfused_traffic;
    /* forward + backward of one layer and micro-batch on the host; NaN: kernels x
     * launch_s */
    ms_coefficient host_s_per_layer;
    /* what each rank of a collective's group adds to the host time of every collective
     * where pipeline stages lie on several nodes */
    ms_coefficient host_s_per_collective_rank;
    /* what a message between pipeline stages takes more in a run that stalls */
    ms_coefficient message_stall_s;
    /* every pipelined run on at least so many nodes stalls; 0: none does for that */
    ms_coefficient stalling_nodes;
    /* every pipelined run whose tensor groups lie on at least so many nodes stalls; 0:
     * none does for that */
    ms_coefficient stalling_tensor_nodes;
    /* what the routing of a layer and micro-batch takes beside its bytes, forward and
     * backward: small kernels, and the device's wait after the host's for counts of
     * tokens */
    ms_coefficient routing_s;
    /* HBM traffic of operations on experts' rows by themselves (padding, sorting,
     * casting) per element of their results, forward and backward */
    ms_coefficient expert_row_bytes;
    /* the same of the biases of experts' results; 0: in the product's epilogue */
    ms_coefficient expert_bias_bytes;
    /* host time of a grouped product for each expert of the rank, in launches; 0: one
     * kernel for all experts */
    ms_coefficient expert_launches;
    /* what the casts of its operands to fewer than 16 bits add */
    ms_coefficient expert_cast_launches;
    /* host time of routing, dispatch and the fixed part of grouped products of a layer,
     * forward and backward, in launches; 0: one for each node */
    ms_coefficient routing_launches;
    /* what the recurrence of a Mamba mixer takes beyond its traffic, relative to it */
    ms_coefficient scan_loss;
    /* of launch_s that remains per kernel (CUDA graphs, compile: below 1) */
    ms_coefficient launch_frac;
    /* share of TP traffic that hides behind its matrix product without async TP */
    ms_coefficient tp_overlap_frac;
    /* 1: gradient and parameter traffic overlaps compute; 0: exposed */
    ms_coefficient dp_overlap;
    /* gpipe and 1f1b: messages that a stage waits for after an action, before it starts
     * the next: 1 both directions at once, 2 one after the other, 0 none, they travel
     * beside compute */
    ms_coefficient send_hold;
    /* the same of the interleaved and the looped breadth-first schedule */
    ms_coefficient interleaved_send_hold;
    /* share of gathers over cp that hides behind attention */
    ms_coefficient cp_overlap_frac;
    /* share of a ring attention's transfer that can hide behind the attention of its
     * step */
    ms_coefficient ring_overlap_frac;
    /* per element, of gradients of keys and values that travel around a ring; 0: as they
     * are stored */
    ms_coefficient ring_gradient_bytes;
    /* keys and values are repeated for every query head before they travel */
    bool ring_repeats_heads;
    /* phi: share of the shorter of compute and overlapped communication that is lost */
    ms_coefficient interference_frac;
    ms_coefficient optimizer_bytes; /* HBM traffic of the optimizer per owned parameter */
    /* HBM traffic of gradient accumulation per parameter and micro-batch; 0: fused into
     * the product */
    ms_coefficient accumulate_bytes;
    /* HBM traffic of the loss per local logit, forward + backward */
    ms_coefficient loss_bytes;
    /* memory */
    /* per parameter, as stored between steps (bf16: 2; FSDP2 keeps fp32 shards: 4) */
    ms_coefficient param_bytes;
    ms_coefficient grad_bytes; /* per parameter, accumulation included */
    /* per parameter, copies of gradients that data parallelism adds */
    ms_coefficient bucket_bytes;
    /* per parameter, gradients of the micro-batch before that are still there at the peak
     * of a pipeline rank */
    ms_coefficient late_grad_bytes;
    /* fp32 copy kept by the optimizer; 0 when the parameters are fp32 */
    ms_coefficient master_bytes;
    ms_coefficient moment_bytes; /* Adam m and v */
    ms_coefficient logit_bytes;  /* bytes alive per local logit at the loss */
    /* the same of logits that tp shards, whose loss is another code; 0: as logit_bytes */
    ms_coefficient sharded_logit_bytes;
    /* bytes per local head parameter alive at the head's backward */
    ms_coefficient head_grad_bytes;
    ms_coefficient workspace_bytes;    /* of libraries, from the framework's allocator */
    ms_coefficient fragmentation_frac; /* reserved over allocated, minus 1 */
    ms_coefficient grad_comm_bytes;    /* per parameter in gradient reductions */
    ms_coefficient param_comm_bytes;   /* per parameter in gathers */
    /* the figures above are those of 16-bit types and below; ms_stack_adapt says what
     * holds for others */
    bool states_in_compute_type;
    /* what is gathered goes to rooms as large as the largest unit, embedding and head
     * included; otherwise a unit is a layer */
    bool fixed_unit_rooms;
    /* with dp_overlap, all-reduces of ZeRO-0 overlap alone: reductions to shards and
     * gathers wait */
    bool exposes_shards;
    /* without sequence parallelism, too, a rank of tp sends its part of a message alone
     * (sim/step/message.h) */
    bool scatters_sends;
    bool adds_reduced_gradients; /* see ms_accumulate_gradients_s */
    bool regather; /* gathered layer inputs are gathered again in backward, not kept */
    /* full recomputation runs all of a layer again, its last product and reduction too;
     * otherwise it ends with what backward needs (costmodel/program/recompute.c) */
    bool reruns_layers;
    /* without a pipeline, and with one where the host is ahead, they are held in memory
     * all the same (sim/step/gathers.h); both are seen with and without, so peaks are ranges
     * (ms_stack_with_gathers) */
    bool holds_gathers_alone;
    /* operands of products in fewer than 16 bits are cast once for all that take them,
     * before they are gathered over tp (costmodel/cost/cast.h) */
    bool casts_once;
    /* parameters are gathered in the compute type where that has 8 bits
     * (ms_stack_adapt) */
    bool gathers_cast;
    /* backward, a reduction over tp runs beside the gradient of the weight whose input
     * gradient it reduces, a repeated gather beside the input gradient */
    bool overlaps_gradients;
    /* query, key and value are one matrix, and so are gate and up (costmodel/cost/cast.h) */
    bool fuses_projections;
    bool trains_mtp; /* modules of multi-token prediction, where the model has them */
    /* in fewer than 16 bits the experts are kernels for all of them together, with casts,
     * activation and biases in their epilogues: none of the expert_ figures holds */
    bool fuses_experts;
    /* all-to-all of tokens: one copy a rank and domain and token (ms_node_sends,
     * ms_token_exchange_law_make) */
    bool shares_token_copies;
    /* runs that do not say split wide experts over tp, as Megatron Core does by default
     * (sim/validate/pubrun.c) */
    bool splits_experts;
    /* its published runs do not say what they compute again: as little as fits
     * (sim/validate/pubrun_prices.h) */
    bool recomputes_by_need;
    /* FSDP that keeps gathered weights until the step's end: stage 2 in tables, sharded
     * storage in truth (sim/validate/pubrun.c) */
    bool stage_2_is_fsdp;
    /* runs that do not name a schedule interleave (sim/validate/pubrun_schedule.c) */
    bool interleaves;
    /* runs that interleave and do not say how have one layer a chunk */
    bool single_layer_chunks;
    /* of a gated MLP the activated gate, too: activation and product are two
     * operations */
    bool keeps_gate;
    bool keeps_unrotated; /* queries and keys before the rotary embedding, too */
    /* of an operand that a product of fewer than 16 bits took, its gradient of weights
     * keeps the cast (costmodel/cost/cast.h) */
    bool keeps_casts;
    /* with keeps_casts: in place of the operand, whatever else reads it, and of inputs of
     * activation functions, too */
    bool keeps_casts_alone;
    /* the routing weight multiplies the expert's activation, so results of experts are
     * not kept for its gradient */
    bool weighs_in_experts;
    /* its memory figure includes CUDA context and communication buffers */
    bool counts_context;
    /* What readers of published runs (sim/validate/pubrun.c) take for granted of its runs: */
    /* vocabularies are padded to a multiple of 128 tp (Megatron's
     * --make-vocab-size-divisible-by) */
    bool pads_vocab;
    bool uses_dropout; /* where the model has it */
    /* runs that do not say have none */
    bool lacks_sequence_parallel;
    /* runs that do not state their micro-batch do not accumulate gradients without a
     * pipeline */
    bool whole_microbatch;
    bool selective_is_full; /* selective recomputation is that of whole layers */
    /* with one scale a row, operands are not cast once before they are gathered */
    bool casts_once_by_tensor;
    /* its memory figure is that of the first rank (nanotron's log of
     * max_memory_allocated, src/nanotron/trainer.py) */
    bool reports_first_rank;
    /* the first month with fused attention, as 202304 for PyTorch 2.0
     * (torch.nn.functional.scaled_dot_product_attention); 0: always */
    long fuses_attention_since;
    /* the month, as 202504, before which runs with a pipeline had as many micro-batches
     * as stages; 0: none did */
    long stages_split_batch_before;
    /* defaults and what it can run */
    const char *recompute; /* default mode: "none" "selective" "full" "per-op" */
    long default_zero;     /* -1: 3 when dp_shard > 1, else 0 */
    bool can_zero3_with_pp;
    ms_cp_method cp_method; /* default */
    bool can_cp[MS_NUM_CP_METHODS];
    bool can_schedule[MS_NUM_SCHEDULES];
    ms_optimizer_sync optimizer_sync;
    ms_layer_split layer_split;
} ms_stack;

ms_status ms_stack_load(ms_ctx *cx, const char *name, const ms_stack **out);
ms_status ms_stack_read(ms_ctx *cx, ms_jval root, ms_stack *out);
/* The stack that keeps them, or does not, for every number of stages. */
ms_stack ms_stack_with_gathers(const ms_stack *stack, bool kept);
/* What holds when everything is computed in `compute`. Of a stack with
 * states_in_compute_type and a type of 4 bytes an element or more, all states, messages
 * and logits are in that type, and parameters need no master copy; Adam reads gradient,
 * parameter and moments, writes parameter and moments, and the gradient was read for its
 * norm (8 elements a parameter); the loss reads logits three times and writes them once
 * (4). The result is adapted: it does not change again. Of a stack that gathers_cast and
 * a type of 8 bits, gathers of parameters have a byte each. Other stacks as they are. */
ms_stack ms_stack_adapt(const ms_stack *stack, ms_dtype compute);
/* Its coefficients, by the table that reads them; switches and words are none. */
void ms_stack_figures(ms_figures *list);

#endif
