/* Folder costmodel/plan: one plan, its fields, rules, JSON and text; not what a search
 * tries.
 *
 * A plan: every choice that `search` makes, and nothing derived from them (no prices);
 * meshsim.plan/1 in JSON. */
#ifndef MS_COSTMODEL_PLAN_PLAN_H
#define MS_COSTMODEL_PLAN_PLAN_H

#include "base/json.h"
#include "costmodel/model/model.h"
#include "costmodel/plan/lora.h"
#include "costmodel/plan/sequence_lengths.h"
#include "costmodel/profile/recipe.h"
#include "costmodel/schedule/schedule.h"
#include "costmodel/tensor/technique.h"
#include "topo/cluster.h"
#include "topo/mesh.h"

/* Mesh axes of dense layers, in the default order, outermost first. */
typedef enum ms_plan_axis {
    MS_PP,
    MS_DP_REPLICATE,
    MS_DP_SHARD,
    MS_CP,
    MS_TP,
    MS_NUM_PLAN_AXES
} ms_plan_axis;
/* "pp" "dp_replicate" "dp_shard" "cp" "tp", NULL */
extern const char *const ms_plan_axis_names[];

/* Type of stored values; MS_STORE_DEFAULT: the stack's own. INT8: blocks of 256 values with
 * an fp32 scale each (bitsandbytes, functional.py, quantize_blockwise). */
typedef enum ms_storage {
    MS_STORE_DEFAULT,
    MS_STORE_FP32,
    MS_STORE_BF16,
    MS_STORE_FP8,
    MS_STORE_INT8
} ms_storage;

/* The optimizer's own copy of the parameters. */
typedef enum ms_master_copy {
    MS_MASTER_DEFAULT, /* the stack's, in the type of the optimizer's states */
    MS_MASTER_FP32,
    MS_MASTER_BF16,
    MS_MASTER_NONE
} ms_master_copy;

typedef enum ms_optimizer {
    MS_OPTIMIZER_ADAMW,
    MS_OPTIMIZER_ADAM_8BIT, /* AdamW with moments as MS_STORE_INT8 */
    MS_OPTIMIZER_ADAFACTOR, /* has no first moment */
    MS_OPTIMIZER_SGD,       /* has momentum */
    MS_OPTIMIZER_LION,
    MS_OPTIMIZER_MUON, /* updates layers' matrices; AdamW the rest */
    MS_NUM_OPTIMIZERS
} ms_optimizer;
/* "adamw" "adam8bit" "adafactor" "sgd" "lion" "muon", NULL */
extern const char *const ms_optimizer_names[];

/* Order in which ranks take the groups of a mixed cluster (topo/device_kinds.h). */
typedef enum ms_device_order {
    MS_DEVICES_LISTED, /* the first ranks, and so the first stages, on the first group */
    MS_DEVICES_REVERSED
} ms_device_order;
/* "listed" "reversed", NULL */
extern const char *const ms_device_order_names[];

/* The choices of a plan, in the order of flags and of JSON:
 * costmodel/plan/plan_field.h. */
typedef enum ms_choice {
    MS_CHOOSE_MODEL,
    MS_CHOOSE_CLUSTER,
    MS_CHOOSE_PROFILE,
    MS_CHOOSE_GPUS,
    MS_CHOOSE_PP, /* sizes of the mesh axes, in the order of ms_plan_axis */
    MS_CHOOSE_DP_REPLICATE,
    MS_CHOOSE_DP_SHARD,
    MS_CHOOSE_CP,
    MS_CHOOSE_TP,
    MS_CHOOSE_EP,
    MS_CHOOSE_ETP,
    MS_CHOOSE_ORDER,
    MS_CHOOSE_SEQUENCE_LENGTH,
    MS_CHOOSE_GLOBAL_BATCH,
    MS_CHOOSE_MICROBATCH,
    MS_CHOOSE_SCHEDULE,
    MS_CHOOSE_VIRTUAL_STAGES,
    MS_CHOOSE_GROUP,
    MS_CHOOSE_MEMORY_LIMIT,
    MS_CHOOSE_STAGE_LAYERS,
    MS_CHOOSE_ZERO,
    MS_CHOOSE_RESHARD,
    MS_CHOOSE_SEQUENCE_PARALLEL,
    MS_CHOOSE_ASYNC_TP,
    MS_CHOOSE_LOSS_PARALLEL,
    MS_CHOOSE_CP_METHOD,
    MS_CHOOSE_CP_BALANCE,
    MS_CHOOSE_RECOMPUTE,
    MS_CHOOSE_RECOMPUTE_LAYERS,
    MS_CHOOSE_RECOMPUTE_BUDGET,
    MS_CHOOSE_RECOMPUTE_MODULES,
    MS_CHOOSE_COMPUTE,
    MS_CHOOSE_PARAM_DTYPE,
    MS_CHOOSE_GRAD_DTYPE,
    MS_CHOOSE_OPTIMIZER_DTYPE,
    MS_CHOOSE_COMM_DTYPE,
    MS_CHOOSE_MASTER_DTYPE,
    MS_CHOOSE_RECIPE,
    MS_CHOOSE_STACK,
    MS_CHOOSE_RANKS_PER_DOMAIN,
    MS_CHOOSE_MOE_DISPATCHER,
    MS_CHOOSE_EXPERT_IMBALANCE,
    MS_CHOOSE_EXPERT_LOADS,
    MS_CHOOSE_EXPERT_CAPACITY,
    MS_CHOOSE_PAD_EXPERTS,
    MS_CHOOSE_SHARED_OVERLAP,
    MS_CHOOSE_LORA_RANK,
    MS_CHOOSE_LORA_TARGETS,
    MS_CHOOSE_LORA_BASE,
    MS_CHOOSE_OFFLOAD_ACTIVATIONS,
    MS_CHOOSE_OFFLOAD_LAYER_INPUTS,
    MS_CHOOSE_OFFLOAD_OPTIMIZER,
    MS_CHOOSE_GATHER_BITS,
    MS_CHOOSE_REDUCE_BITS,
    MS_CHOOSE_OPTIMIZER,
    MS_CHOOSE_COMPILE,
    MS_CHOOSE_CUDA_GRAPHS,
    MS_CHOOSE_BUCKET_BYTES,
    MS_CHOOSE_UNIT_LAYERS,
    MS_CHOOSE_RESHARD_RANKS,
    MS_CHOOSE_PARTITION_ACTIVATIONS,
    MS_CHOOSE_SLOW_NODES,
    MS_CHOOSE_DEVICE_ORDER,
    MS_CHOOSE_PACKING,
    MS_CHOOSE_LENGTH_MEAN,
    MS_CHOOSE_LENGTH_DEVIATION,
    MS_CHOOSE_LENGTHS,
    MS_NUM_CHOICES
} ms_choice;

typedef struct ms_plan {
    const char *model; /* names or paths (model, cluster, stack) as the user gave them */
    const char *cluster;
    const char *stack;
    const char *profile;   /* cost profile, not in plan files; NULL: the cluster's */
    long ranks_per_domain; /* ranks in an innermost domain; 0: ms_even_share's */
    long gpus;
    long size[MS_NUM_PLAN_AXES];
    unsigned char order[MS_NUM_PLAN_AXES]; /* mesh axes, outermost first */
    long ep, etp; /* expert mesh [efsdp, ep, etp] over dp_shard x cp x tp; etp 1 or tp */
    long sequence_length; /* tokens */
    long global_batch;    /* sequences per step */
    long microbatch;      /* sequences per micro-batch and data-parallel rank */
    ms_schedule_kind schedule;
    long virtual_stages;   /* v: model chunks per rank */
    long microbatch_group; /* micro-batches per interleaving group; 0: default */
    double memory_limit; /* zb-auto: limit in multiples of 1F1B's peak on rank 0; 0: 2 */
    /* MS_CUSTOM: path of the schedule file, and its action lists; otherwise both NULL */
    const char *schedule_file;
    const ms_schedule_table *schedule_table;
    long num_stage_layers; /* length of layers_per_stage, pp * v; 0: stack's split */
    const long *layers_per_stage; /* (num_stage_layers): layers of each virtual stage */
    long zero;                    /* ZeRO stage 0..3 over the dp_shard x cp ranks */
    bool reshard_after_forward;
    bool sequence_parallel;
    bool async_tp;
    bool loss_parallel;
    ms_cp_method cp_method;
    ms_cp_balance cp_balance;
    ms_recompute recompute;
    long recompute_layers; /* MS_RECOMPUTE_FULL: layers recomputed per chunk; 0: all */
    /* MS_RECOMPUTE_AUTO: share (0..1) of MS_RECOMPUTE_NONE's saved bytes that may be
     * saved; negative: the largest share that fits memory (sim/step/recompute_fit.h) */
    double recompute_budget_frac;
    int recompute_modules; /* MS_RECOMPUTE_SELECTIVE: set of ms_module; 0: the stack's */
    ms_dtype compute;
    /* types of stored parameters, gradient sums, optimizer states and reductions of
     * gradients: what they mean is in costmodel/plan/stack_choices.h */
    ms_storage param_dtype, grad_dtype, optimizer_dtype, comm_dtype;
    ms_master_copy master_dtype;
    ms_recipe recipe; /* scaling of GEMMs' operands below 16 bits */
    ms_optimizer optimizer;
    ms_dispatcher dispatcher; /* how tokens travel to experts of other ranks */
    double expert_imbalance;  /* token copies of the fullest ep rank / the mean; 0: 1 */
    const char *expert_loads; /* file of experts' loads (expert_loads.h); NULL: none */
    double expert_capacity;   /* most copies of an expert / the mean; 0: no limit */
    bool pad_experts;         /* experts compute just as many copies as expert_capacity */
    bool shared_overlap;      /* shared experts compute while tokens are exchanged */
    long lora_rank;           /* rank of adapters on frozen weights; 0: no adapters */
    const char *lora_targets; /* layers that have one (ms_lora_targets_parse) */
    ms_lora_base lora_base;   /* how the frozen weights are stored */
    double offload_activations_frac; /* share of saved activations in host memory */
    bool offload_layer_inputs;       /* saved layer inputs are in host memory */
    ms_host_optimizer offload_optimizer;
    ms_quantized_bits gather_bits, reduce_bits; /* sent for parameters and gradients */
    ms_compile compile;
    ms_cuda_graphs cuda_graphs;
    /* collectives of parameters and gradients (sim/step/sync_units.h): bytes of one,
     * 0: a unit's; adjacent layers that one moves, 0: 1, or as bucket_bytes needs */
    double bucket_bytes;
    long unit_layers;
    /* resharding after forward: ranks over which backward's copy of the parameters is
     * sharded (hpZ of ZeRO++); 0: those of the shards */
    long reshard_ranks;
    bool partition_activations; /* saved layer inputs are split over tp (ZeRO-R) */
    const char *slow_nodes; /* nodes slower than listed (ms_cluster_slow_down_by); NULL */
    ms_device_order device_order; /* in which ranks take the groups of a mixed cluster */
    ms_packing packing; /* how sequences of unequal lengths fill sequence_length */
    double length_mean_tokens, length_deviation_tokens; /* lengths of sequences */
    const char
        *lengths; /* file of lengths (sequence_lengths.h) in their place, or NULL */
} ms_plan;

/* The modules that a plan recomputes and the model lacks, as a set of ms_module: latent
 * attention's, and those of experts. */
int ms_plan_lacking_modules(const ms_plan *plan, const ms_model *model);
/* The adapters of a plan; rank 0 if it has none or its targets are unknown words. */
ms_lora ms_plan_lora(const ms_plan *plan);
/* Data-parallel ranks that see different sequences: dp_replicate * dp_shard. */
long ms_plan_data_parallel(const ms_plan *plan);
/* Number of ranks that share the attention heads: tp, with Ulysses tp * cp. */
long ms_plan_head_ranks(const ms_plan *plan);
/* Whether several tensor-parallel ranks hold the same key-value head. */
bool ms_plan_copies_kv_heads(const ms_plan *plan, const ms_model *model);
/* Ranks over which ZeRO-3 shards the parameters between forward and backward, if fewer
 * than hold the shards and a divisor of those; otherwise 0. */
long ms_plan_secondary_shards(const ms_plan *plan);
/* Whether reshard_ranks divide the ranks of the shards; false: resharding is illegal. */
bool ms_plan_reshard_ranks_divide(const ms_plan *plan);
/* Whether a sequence is cut into 2 cp chunks, two per rank (head-tail balance); not with
 * Ulysses, whose ranks see whole sequences. */
bool ms_plan_balances_sequence(const ms_plan *plan);
/* Whether the last cp rank has more attention to compute than the others: with contiguous
 * chunks of a causal sequence. */
bool ms_plan_has_unequal_ranks(const ms_plan *plan);
/* Whether experts compute as many copies as their capacity; without one, padding has
 * nothing to pad to. */
bool ms_plan_pads_experts(const ms_plan *plan);
/* The schedule's name, or the path of its file. */
const char *ms_plan_schedule_name(const ms_plan *plan);
/* Sets a generated schedule; clears the schedule file and the memory limit. */
void ms_plan_set_schedule(ms_plan *plan, ms_schedule_kind kind);
/* Sets a schedule from a CSV file (costmodel/schedule/schedule_csv.h) and its number of
 * virtual stages; the table lives in cx->arena. Errors: as ms_schedule_csv_load and
 * ms_schedule_check; ranks and micro-batches are left to ms_plan_check. */
ms_status ms_plan_load_schedule(ms_ctx *cx, const char *path, ms_plan *plan);
/* The plan's cp_method; with one cp rank MS_CP_ALL_GATHER, which has no effect then. */
ms_cp_method ms_plan_cp_method(const ms_plan *plan);
/* Micro-batches per step and rank: global_batch / (data parallel * microbatch). */
long ms_plan_microbatches(const ms_plan *plan);

ms_schedule_shape ms_plan_shape(const ms_plan *plan);
/* Why the schedule cannot run the plan, whose batch divides evenly; NULL: it can. */
const char *ms_plan_schedule_objection(const ms_plan *plan);

/* ms_plan_mesh: dense layers, axes in the plan's order. ms_plan_expert_mesh: expert
 * layers over the same ranks, given ms_plan_order_is_legal; last axes efsdp, ep, etp. */
ms_mesh ms_plan_mesh(const ms_plan *plan);
ms_mesh ms_plan_expert_mesh(const ms_plan *plan);

/* Reasons to refuse a plan, by integer rules alone. */
typedef enum ms_refusal {
    MS_LEGAL,
    MS_REFUSE_RANKS, /* product of the mesh axes differs from gpus */
    /* query heads no multiple of tp (with ulysses of tp * cp); or key-value heads neither
     * a multiple of that number nor, without ulysses, a divisor of it */
    MS_REFUSE_HEADS,
    /* groups of Mamba-2 heads not divisible by tp, or cp > 1 (not priced) */
    MS_REFUSE_MAMBA,
    MS_REFUSE_FFN, /* MLP width not divisible by tp or etp */
    /* sequence longer than the learned position table; or not divisible by cp (2 cp with
     * head-tail balance), or, with sequence parallelism or experts, by cp * tp */
    MS_REFUSE_SEQUENCE,
    MS_REFUSE_BATCH, /* global batch not divisible by data parallel * microbatch */
    /* experts not divisible by ep, or ep * etp does not divide dp_shard * cp * tp */
    MS_REFUSE_EXPERTS,
    /* more stages (pp * v) than layers, or layers_per_stage without the right sum */
    MS_REFUSE_LAYERS,
    /* modules to recompute, or shared experts to overlap, that the model lacks; or both
     * of its shared experts */
    MS_REFUSE_MODULES,
    /* the schedule does not allow these virtual stages, groups or micro-batches */
    MS_REFUSE_SCHEDULE,
    MS_REFUSE_ZERO, /* ZeRO stage that this plan or stack cannot have */
    /* adapters: unknown targets, routed experts among them, or rank no multiple of tp */
    MS_REFUSE_LORA,
    MS_REFUSE_ORDER,     /* experts need dp_shard, cp, tp innermost, in this order */
    MS_REFUSE_FRAMEWORK, /* a rule of the stack's framework (stack_rules.h); not found
                            by ms_plan_refusal */
    MS_NUM_REFUSALS
} ms_refusal;
extern const char *const ms_refusal_names[]; /* names of refusals: "ranks", ..., NULL */
ms_refusal ms_plan_refusal(const ms_plan *plan, const ms_model *model);
/* MS_EINPUT with a message if ms_plan_refusal finds a reason to refuse the plan. */
ms_status ms_plan_check(ms_ctx *cx, const ms_plan *plan, const ms_model *model,
                        ms_loc loc);
/* MS_EINPUT if the sequence is longer than the model's learned positions. */
ms_status ms_plan_check_positions(ms_ctx *cx, const ms_plan *plan, const ms_model *model,
                                  ms_loc loc);
/* MS_EINPUT when the plan has more GPUs than its cluster. */
ms_status ms_plan_check_cluster(ms_ctx *cx, const ms_plan *plan,
                                const ms_cluster *cluster);

/* Whether the order of mesh axes suits the plan's experts (else MS_REFUSE_ORDER). */
bool ms_plan_order_is_legal(const ms_plan *plan);

/* The default plan on `gpus` GPUs: sequence 8192, global batch max(4 Mi, 1 Ki x GPUs)
 * tokens, bf16, stack megatron. Axes are 1, except dp_shard 0, which stands for all
 * remaining GPUs; zero is -1, which stands for 3 if dp_shard * cp > 1, else for 0. */
ms_plan ms_plan_default(long gpus);
/* Default global batch: sequences of max(4 Mi, 1 Ki x GPUs) tokens, at least one. */
long ms_plan_default_batch(long gpus, long sequence_length);
/* Replaces dp_shard 0, global_batch 0 and zero -1 by their defaults. If the other axes
 * do not divide gpus, dp_shard is rounded down, and ms_plan_refusal returns
 * MS_REFUSE_RANKS. */
void ms_plan_fill_defaults(ms_plan *plan);
/* How the plan recomputes layers; MS_RECOMPUTE_AUTO, whose budget is the workload's, if its
 * own budget is open or no whole number of tenths. */
ms_layer_mode ms_plan_layer_mode(const ms_plan *plan);
/* Sets the recompute mode and its budget, open but for modes that have one. */
void ms_plan_set_layer_mode(ms_plan *plan, ms_layer_mode mode);
/* Whether two plans are equal in all saved choices; texts compare by content. */
bool ms_plan_equal(const ms_plan *a, const ms_plan *b);

/* Loads a plan file, or reads its JSON, and fills defaults. MS_EINPUT, or MS_EIO. */
ms_status ms_plan_load(ms_ctx *cx, const char *path, ms_plan *out);
ms_status ms_plan_read(ms_ctx *cx, ms_jval root, ms_plan *out);
/* Writes meshsim.plan/1, which reads back as an equal plan. */
void ms_plan_write_json(ms_jout *out, const ms_plan *plan);
/* Summary of a plan in one line: "pp 4 x dp 16 x tp 8, mbs 1, 1f1b, zero 1, ..." */
char *ms_plan_text(ms_arena *arena, const ms_plan *plan);

#endif
