/* The table of a plan's choices: a row per choice, with the functions that its rows
 * name. */
#include "costmodel/plan/plan_field.h"
#include "costmodel/plan/plan_usual.h"

#include "costmodel/schedule/schedule.h"

#include <string.h>
#include <strings.h>

#define MAX_GPUS   16777216 /* 2^24 */
#define MAX_TOKENS 4294967296.0
#define MAX_BATCH  4294967296.0
#define MAX_INT    2147483647.0

/* ---- words ---- */

/* words of ms_storage, or the first of them, and of ms_master_copy */
static const char *const wide_words[] = {"default", "fp32", "bf16", NULL};
static const char *const narrow_words[] = {"default", "fp32", "bf16", "fp8", NULL};
static const char *const state_words[] = {"default", "fp32", "bf16", "fp8", "int8", NULL};
static const char *const master_words[] = {"default", "fp32", "bf16", "none", NULL};

static bool find_schedule(const char *text, int *index)
{
    ms_schedule_kind kind = MS_CUSTOM;
    if (!ms_schedule_is_file(text) && !ms_schedule_parse(text, &kind))
        return false;
    *index = (int)kind;
    return true;
}

static bool find_cp_method(const char *text, int *index)
{
    ms_cp_method method;
    if (!ms_cp_method_parse(text, &method))
        return false;
    *index = (int)method;
    return true;
}

const char *const ms_optimizer_names[] = {"adamw", "adam8bit", "adafactor", "sgd",
                                          "lion",  "muon",     NULL};

const char *const ms_device_order_names[] = {"listed", "reversed", NULL};

static bool find_optimizer(const char *text, int *index)
{
    static const struct {
        const char *name;
        ms_optimizer kind;
    } others[] = {{"adam", MS_OPTIMIZER_ADAMW},
                  {"adamw8bit", MS_OPTIMIZER_ADAM_8BIT},
                  {"8bit-adam", MS_OPTIMIZER_ADAM_8BIT},
                  {"momentum", MS_OPTIMIZER_SGD}};
    *index = -1;
    for (int i = 0; i < MS_NUM_OPTIMIZERS; i++)
        if (strcasecmp(text, ms_optimizer_names[i]) == 0)
            *index = i;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcasecmp(text, others[i].name) == 0)
            *index = (int)others[i].kind;
    return *index >= 0;
}

/* ---- effects of choices ---- */

static bool has_pipeline(const ms_plan *plan)
{
    return plan->size[MS_PP] > 1;
}

static bool has_tensor(const ms_plan *plan)
{
    return plan->size[MS_TP] > 1;
}

static bool has_context(const ms_plan *plan)
{
    return plan->size[MS_CP] > 1;
}

static bool shards_parameters(const ms_plan *plan)
{
    return plan->zero == 3;
}

static bool reshards(const ms_plan *plan)
{
    return plan->zero == 3 && plan->reshard_after_forward;
}

static bool saves_equal_inputs(const ms_plan *plan)
{
    return plan->size[MS_TP] > 1 && !plan->sequence_parallel &&
           plan->recompute == MS_RECOMPUTE_FULL;
}

static bool has_budget(const ms_plan *plan)
{
    return plan->recompute == MS_RECOMPUTE_AUTO;
}

static bool is_selective(const ms_plan *plan)
{
    return plan->recompute == MS_RECOMPUTE_SELECTIVE;
}

static bool has_adapters(const ms_plan *plan)
{
    return plan->lora_rank > 0;
}

static bool can_cp(const ms_stack *stack, long method)
{
    return stack->can_cp[method];
}

static bool has_expert_parallel(const ms_plan *plan)
{
    return plan->ep > 1;
}

static bool has_capacity(const ms_plan *plan)
{
    return plan->expert_capacity > 0.0;
}

static bool has_lengths(const ms_plan *plan)
{
    return plan->packing != MS_NOT_PACKED;
}

/* ---- the table ---- */

#define WHOLE(member_of, label)                                                          \
    .kind = MS_CHOICE_WHOLE, .offset = offsetof(ms_plan, member_of), .name = (label)
#define NUMBER(member_of, label)                                                         \
    .kind = MS_CHOICE_NUMBER, .offset = offsetof(ms_plan, member_of), .name = (label)
#define SWITCH(member_of, label)                                                         \
    .kind = MS_CHOICE_SWITCH, .offset = offsetof(ms_plan, member_of), .name = (label)
#define WORD(member_of, label, list)                                                     \
    .kind = MS_CHOICE_WORD, .offset = offsetof(ms_plan, member_of), .name = (label),     \
    .words = (list)
#define SET(member_of, label, list)                                                      \
    .kind = MS_CHOICE_SET, .offset = offsetof(ms_plan, member_of), .name = (label),      \
    .words = (list)
#define TEXT(member_of)                                                                  \
    .kind = MS_CHOICE_TEXT, .offset = offsetof(ms_plan, member_of), .name = #member_of
#define JSON(object, word) .section = (object), .key = (word)
#define FLAG(option, stands_for, text)                                                   \
    .flag = (option), .value = (stands_for), .help = (text)
#define NEEDS(is_met, text) .matters = (is_met), .needs = (text)
#define AXIS(axis, label, option, text)                                                  \
    {                                                                                    \
        WHOLE(size[axis], label), .low = 1, .high = MAX_GPUS, .plain = 1,                \
                                  FLAG(option, "N", text), .search = MS_SEARCH_TRIES,    \
                                  .in_table = true                                       \
    }
#define EXPERTS(member, text)                                                            \
    {                                                                                    \
        WHOLE(member, #member), JSON("experts", #member),                                \
            .low = 1, .high = MAX_GPUS, .plain = 1, FLAG("--" #member, "N", text),       \
            .search = MS_SEARCH_TRIES, .in_table = true, .hidden = true                  \
    }
#define STORED(member, word, list, null, text)                                           \
    {                                                                                    \
        WORD(member##_dtype, #member "_dtype", list), JSON("precision", word),           \
            .json_plain = (null), FLAG("--" #member "-dtype", NULL, text)                \
    }

const ms_plan_field ms_plan_fields[MS_NUM_CHOICES] = {
    [MS_CHOOSE_MODEL] = {TEXT(model), JSON(NULL, "model"), .required = true,
                         FLAG("--model", "NAME|FILE",
                              "model by name (70b, mixtral-8x7b), or its config.json")},
    [MS_CHOOSE_CLUSTER] =
        {TEXT(cluster), JSON(NULL, "cluster"),
         FLAG("--cluster", "NAME|FILE",
              "cluster by name or file (default hgx-h100; of run: cpu)")},
    [MS_CHOOSE_PROFILE] = {TEXT(profile),
                           FLAG("--profile", "NAME|FILE",
                                "cost profile in place of the cluster's own (\"meshsim "
                                "calibrate\" writes one)")},
    [MS_CHOOSE_GPUS] = {WHOLE(gpus, "gpus"), JSON(NULL, "gpus"), .low = 1,
                        .high = MAX_GPUS, .flag_rule = MS_FLAG_ALWAYS,
                        FLAG("--gpus", "N",
                             "number of GPUs (default: the product of the axes)")},
    [MS_CHOOSE_PP] = AXIS(MS_PP, "pp", "--pp", "pipeline stages (default 1)"),
    [MS_CHOOSE_DP_REPLICATE] = AXIS(MS_DP_REPLICATE, "dp_replicate", "--dp-replicate",
                                    "replicas of the sharded model (default 1)"),
    [MS_CHOOSE_DP_SHARD] =
        AXIS(MS_DP_SHARD, "dp_shard", "--dp-shard",
             "data-parallel ranks that --zero shards over (default: the rest of --gpus)"),
    [MS_CHOOSE_CP] = AXIS(MS_CP, "cp", "--cp", "context parallelism (default 1)"),
    [MS_CHOOSE_TP] = AXIS(MS_TP, "tp", "--tp", "tensor parallelism (default 1)"),
    [MS_CHOOSE_EP] =
        EXPERTS(ep, "expert parallelism, over the ranks of dp_shard, cp and tp "
                    "(default 1)"),
    [MS_CHOOSE_ETP] =
        EXPERTS(etp, "tensor parallelism inside experts: 1 or tp (default 1)"),
    [MS_CHOOSE_ORDER] = {.kind = MS_CHOICE_LIST,
                         .name = "order",
                         FLAG("--order", "AXES",
                              "axes outer to inner (default "
                              "pp,dp_replicate,dp_shard,cp,tp)")},
    [MS_CHOOSE_SEQUENCE_LENGTH] =
        {WHOLE(sequence_length, "sequence_length"), JSON("batch", "sequence_length"),
         .low = 1, .high = MAX_TOKENS, .flag_high = 1073741824, .plain = 8192,
         FLAG("--seq", "TOKENS", "sequence length (default 8k)")},
    [MS_CHOOSE_GLOBAL_BATCH] =
        {WHOLE(global_batch, "global_batch"), JSON("batch", "global_batch"), .low = 1,
         .high = MAX_BATCH, .flag_high = MAX_GPUS, .usual = ms_usual_batch,
         .flag_rule = MS_FLAG_NOT_DEFAULT,
         FLAG("--global-batch", "SEQUENCES",
              "sequences per step (default max(4 Mi, 1 Ki x GPUs) tokens)")},
    [MS_CHOOSE_MICROBATCH] =
        {WHOLE(microbatch, "microbatch"), .short_name = "mbs",
         JSON("batch", "microbatch"), .low = 1, .high = MAX_BATCH, .flag_high = MAX_GPUS,
         .plain = 1, .search = MS_SEARCH_TRIES, .in_table = true,
         FLAG("--microbatch", "SEQUENCES",
              "sequences per micro-batch and data-parallel rank (default 1)")},
    [MS_CHOOSE_SCHEDULE] =
        {WORD(schedule, "schedule", ms_schedule_names), JSON("pipeline", "schedule"),
         .find = find_schedule, .plain = MS_1F1B, .usual = ms_usual_schedule,
         NEEDS(has_pipeline, "--pp above 1"), .flag_rule = MS_FLAG_IN_EFFECT,
         .search = MS_SEARCH_TRIES, .in_table = true,
         FLAG("--schedule", NULL,
              "pipeline schedule (default: the stack's, mostly 1f1b; interleaved with "
              "--virtual-stages), or a file of actions: FILE.csv")},
    [MS_CHOOSE_VIRTUAL_STAGES] =
        {WHOLE(virtual_stages, "virtual_stages"), .short_name = "v",
         JSON("pipeline", "virtual_stages"), .low = 1, .high = 32767, .flag_high = 4096,
         .plain = 1, .usual = ms_usual_virtual_stages, .search = MS_SEARCH_TRIES,
         .in_table = true,
         FLAG("--virtual-stages", "N",
              "chunks of layers per pipeline rank (default 1; 2 when interleaved)")},
    [MS_CHOOSE_GROUP] =
        {WHOLE(microbatch_group, "microbatch_group"),
         JSON("pipeline", "microbatch_group"), .json_plain = MS_PLAIN_NULL,
         .high = MAX_INT, .flag_high = MAX_GPUS, .search = MS_SEARCH_REFUSES,
         FLAG("--group", "N",
              "micro-batches per turn of a chunk (default 0: the schedule's own)")},
    [MS_CHOOSE_MEMORY_LIMIT] =
        {NUMBER(memory_limit, "memory_limit"), JSON("pipeline", "memory_limit"),
         .json_plain = MS_PLAIN_OMITTED, .high = 4194304, .above_low = true,
         .search = MS_SEARCH_REFUSES,
         FLAG("--memory-limit", "X",
              "zb-auto: micro-batches in flight, as a multiple of 1f1b's peak on rank 0 "
              "(default 2)")},
    [MS_CHOOSE_STAGE_LAYERS] = {.kind = MS_CHOICE_LIST,
                                .name = "layers_per_stage",
                                JSON("pipeline", "layers_per_stage"),
                                .flag_rule = MS_FLAG_NEVER,
                                .search = MS_SEARCH_REFUSES,
                                FLAG("--layers-per-stage", "N,N,...",
                                     "layers of each virtual stage, in order (default: "
                                     "balanced)")},
    [MS_CHOOSE_ZERO] =
        {WHOLE(zero, "zero"), JSON("sharding", "zero"), .high = 3, .usual = ms_usual_zero,
         .flag_rule = MS_FLAG_ALWAYS, .search = MS_SEARCH_TRIES, .in_table = true,
         FLAG("--zero", "0..3",
              "sharded over dp_shard x cp: 1 optimizer, 2 gradients too, 3 parameters "
              "too")},
    [MS_CHOOSE_RESHARD] =
        {SWITCH(reshard_after_forward, "reshard_after_forward"), .short_name = "reshard",
         JSON("sharding", "reshard_after_forward"), .plain = true,
         .usual = ms_usual_reshard, NEEDS(shards_parameters, "--zero 3"),
         .flag_rule = MS_FLAG_IN_EFFECT, .search = MS_SEARCH_TRIES,
         FLAG("--reshard-after-forward", NULL,
              "gather again for backward (default: on with zero 3 and no pipeline)")},
    [MS_CHOOSE_SEQUENCE_PARALLEL] =
        {SWITCH(sequence_parallel, "sequence_parallel"), .short_name = "sp",
         JSON("tensor", "sequence_parallel"), .usual = ms_usual_sequence_parallel,
         NEEDS(has_tensor, "--tp above 1"), .renewed = true,
         .flag_rule = MS_FLAG_IN_EFFECT, .decides = MS_DECIDES_LAYERS,
         .search = MS_SEARCH_TRIES, .in_table = true, .text_on = "sp",
         FLAG("--sequence-parallel", NULL,
              "shard norms and residuals over tp (default: on when tp > 1)")},
    [MS_CHOOSE_ASYNC_TP] =
        {SWITCH(async_tp, "async_tp"), .short_name = "async", JSON("tensor", "async"),
         NEEDS(has_tensor, "--tp above 1"), .decides = MS_DECIDES_PRICES,
         .search = MS_SEARCH_TRIES, .in_table = true, .hidden = true,
         .text_on = "async tp",
         FLAG("--async-tp", NULL,
              "overlap tensor-parallel traffic with its matrix products (default off)")},
    [MS_CHOOSE_LOSS_PARALLEL] =
        {SWITCH(loss_parallel, "loss_parallel"), JSON("tensor", "loss_parallel"),
         .plain = true, NEEDS(has_tensor, "--tp above 1"), .renewed = true,
         .search = MS_SEARCH_REFUSES,
         FLAG("--loss-parallel", NULL,
              "keep logits sharded over tp for the loss (default on)")},
    [MS_CHOOSE_CP_METHOD] =
        {WORD(cp_method, "cp_method", ms_cp_method_names), .short_name = "cp by",
         JSON("context", "method"), .find = find_cp_method, .usual = ms_usual_cp_method,
         NEEDS(has_context, "--cp above 1"), .can = can_cp,
         .flag_rule = MS_FLAG_IN_EFFECT, .decides = MS_DECIDES_LAYERS,
         .search = MS_SEARCH_TRIES, .in_table = true, .hidden = true,
         FLAG("--cp-method", NULL,
              "how attention gets the keys of other cp ranks (default: the stack's)")},
    [MS_CHOOSE_CP_BALANCE] =
        {WORD(cp_balance, "cp_balance", ms_cp_balance_names), JSON("context", "balance"),
         NEEDS(has_context, "--cp above 1"),
         FLAG("--cp-balance", NULL,
              "how a causal sequence is cut over cp (default head-tail)")},
    [MS_CHOOSE_RECOMPUTE] = {WORD(recompute, "recompute", ms_recompute_names),
                             JSON("recompute", "mode"), .usual = ms_usual_recompute,
                             .flag_rule = MS_FLAG_ALWAYS, .search = MS_SEARCH_TRIES,
                             .in_table = true,
                             FLAG("--recompute", NULL,
                                  "what backward computes again (default: the stack's)")},
    [MS_CHOOSE_RECOMPUTE_LAYERS] =
        {WHOLE(recompute_layers, "recompute_layers"), JSON("recompute", "layers"),
         .json_plain = MS_PLAIN_NULL, .high = 1048576, .flag_high = MAX_GPUS,
         .search = MS_SEARCH_REFUSES,
         FLAG("--recompute-layers", "N",
              "layers of each chunk with --recompute full (default 0: all)")},
    [MS_CHOOSE_RECOMPUTE_BUDGET] =
        {NUMBER(recompute_budget_frac, "recompute_budget"),
         JSON("recompute", "budget_frac"), .json_plain = MS_PLAIN_OMITTED, .high = 1,
         .plain = -1, NEEDS(has_budget, "--recompute auto"), .search = MS_SEARCH_REFUSES,
         FLAG("--recompute-budget", "SHARE",
              "bytes to keep with --recompute auto, from 0 (none) to 1 (all); default: "
              "the most that fits; a search tries tenths")},
    [MS_CHOOSE_RECOMPUTE_MODULES] =
        {SET(recompute_modules, "recompute_modules", ms_module_names),
         JSON("recompute", "modules"), .json_plain = MS_PLAIN_OMITTED,
         .find = ms_modules_parse, NEEDS(is_selective, "--recompute selective"),
         FLAG("--recompute-modules", "MODULES",
              "modules that --recompute selective recomputes: a list of core_attn, "
              "layernorm, mla_up_proj, moe_act, mlp, moe, shared_experts, norms, "
              "activations, scores (default: the stack's)")},
    [MS_CHOOSE_COMPUTE] = {WORD(compute, "compute", ms_dtype_names),
                           JSON("precision", "compute"), .plain = MS_BF16,
                           FLAG("--precision", NULL, "compute type (default bf16)")},
    [MS_CHOOSE_PARAM_DTYPE] =
        STORED(param, "params", narrow_words, MS_PLAIN_NULL,
               "type of parameters between steps (default: the stack's)"),
    [MS_CHOOSE_GRAD_DTYPE] =
        STORED(grad, "grads", wide_words, MS_PLAIN_NULL,
               "type of gradients and of their sums (default: the stack's)"),
    [MS_CHOOSE_OPTIMIZER_DTYPE] =
        STORED(optimizer, "optimizer", state_words, MS_PLAIN_NULL,
               "type of optimizer states; 8-bit types are for moments alone (default: "
               "the stack's)"),
    [MS_CHOOSE_COMM_DTYPE] =
        STORED(comm, "comm", narrow_words, MS_PLAIN_NULL,
               "type of gradients in reductions (default: that of their sums); fp8: of "
               "parameters in gathers"),
    [MS_CHOOSE_MASTER_DTYPE] =
        STORED(master, "master", master_words, MS_PLAIN_OMITTED,
               "the optimizer's copy of parameters (default: the stack's; none where "
               "parameters are as wide as optimizer states)"),
    [MS_CHOOSE_RECIPE] = {WORD(recipe, "recipe", ms_recipe_names),
                          JSON("precision", "recipe"), .json_plain = MS_PLAIN_OMITTED,
                          FLAG("--precision-recipe", NULL,
                               "scales of GEMM operands in 8 or 4 bits (default: casts "
                               "of one pass)")},
    [MS_CHOOSE_STACK] =
        {TEXT(stack), JSON(NULL, "stack"),
         FLAG(
             "--stack", "NAME|FILE",
             "training framework whose conventions apply (default megatron; "
             "of run: meshsim); search: also A,B,... for several, or all: each framework "
             "with rules, at its present version")},
    [MS_CHOOSE_RANKS_PER_DOMAIN] =
        {WHOLE(ranks_per_domain, "ranks_per_domain"), JSON(NULL, "ranks_per_domain"),
         .json_plain = MS_PLAIN_OMITTED, .low = 1, .high = MAX_GPUS,
         FLAG("--ranks-per-domain", "N",
              "ranks in each NVLink rack, node or TPU slice (default: equally many, if "
              "they divide)")},
    [MS_CHOOSE_MOE_DISPATCHER] =
        {WORD(dispatcher, "moe_dispatcher", ms_dispatcher_names),
         JSON("moe", "dispatcher"), .json_plain = MS_PLAIN_OMITTED,
         NEEDS(has_expert_parallel, "--ep above 1"),
         FLAG("--moe-dispatcher", NULL,
              "how tokens reach the experts of other ranks (default: the stack's way)")},
    [MS_CHOOSE_EXPERT_IMBALANCE] =
        {NUMBER(expert_imbalance, "expert_imbalance"), JSON("moe", "imbalance"),
         .json_plain = MS_PLAIN_OMITTED, .low = 1, .high = MAX_GPUS,
         NEEDS(has_expert_parallel, "--ep above 1"),
         FLAG("--expert-imbalance", "X",
              "token copies of the fullest rank of experts / the mean (default 1)")},
    [MS_CHOOSE_EXPERT_LOADS] =
        {TEXT(expert_loads), JSON("moe", "loads"), .json_plain = MS_PLAIN_OMITTED,
         FLAG("--expert-loads", "FILE",
              "measured loads of experts in place of --expert-imbalance: CSV with the "
              "columns expert, tokens and perhaps layer")},
    [MS_CHOOSE_EXPERT_CAPACITY] =
        {NUMBER(expert_capacity, "expert_capacity"), JSON("moe", "capacity"),
         .json_plain = MS_PLAIN_OMITTED, .high = MAX_GPUS, .above_low = true,
         FLAG("--expert-capacity", "X",
              "most token copies that an expert computes / the mean; the rest is "
              "dropped (default: no limit)")},
    [MS_CHOOSE_PAD_EXPERTS] =
        {SWITCH(pad_experts, "pad_experts"), JSON("moe", "pad"),
         .json_plain = MS_PLAIN_OMITTED, NEEDS(has_capacity, "--expert-capacity"),
         FLAG("--pad-experts", NULL,
              "experts compute as many copies as --expert-capacity (default off)")},
    [MS_CHOOSE_SHARED_OVERLAP] =
        {SWITCH(shared_overlap, "moe_shared_overlap"), JSON("moe", "shared_overlap"),
         .json_plain = MS_PLAIN_OMITTED, NEEDS(has_expert_parallel, "--ep above 1"),
         .text_on = "shared experts overlap",
         FLAG("--moe-shared-expert-overlap", NULL,
              "shared experts compute while tokens are exchanged (default off)")},
    [MS_CHOOSE_LORA_RANK] =
        {WHOLE(lora_rank, "lora_rank"), JSON("lora", "rank"),
         .json_plain = MS_PLAIN_OMITTED, .high = 4096,
         FLAG(
             "--lora-rank", "N",
             "train adapters of this rank (LoRA) on frozen weights (default 0: train all "
             "weights)")},
    [MS_CHOOSE_LORA_TARGETS] =
        {TEXT(lora_targets), JSON("lora", "targets"), .json_plain = MS_PLAIN_OMITTED,
         NEEDS(has_adapters, "--lora-rank"),
         FLAG("--lora-targets", "LAYERS",
              "layers with adapters: attention, mlp, all, or a list of q, k, v, o, gate, "
              "up, down (default all)")},
    [MS_CHOOSE_LORA_BASE] =
        {WORD(lora_base, "lora_base", ms_lora_base_names), JSON("lora", "base"),
         .json_plain = MS_PLAIN_OMITTED, NEEDS(has_adapters, "--lora-rank"),
         FLAG("--lora-base", NULL,
              "how frozen weights are stored: in the compute type, or nf4, 4.127 bits each "
              "(QLoRA) (default compute)")},
    [MS_CHOOSE_OFFLOAD_ACTIVATIONS] =
        {NUMBER(offload_activations_frac, "offload.activations"),
         JSON("offload", "activations"), .json_plain = MS_PLAIN_OMITTED, .high = 1,
         FLAG("--offload-activations", "SHARE",
              "share of saved activations in host memory until backward, from 0 to 1 "
              "(default 0)")},
    [MS_CHOOSE_OFFLOAD_LAYER_INPUTS] =
        {SWITCH(offload_layer_inputs, "offload.layer_inputs"),
         JSON("offload", "layer_inputs"), .json_plain = MS_PLAIN_OMITTED,
         .text_on = "layer inputs on host",
         FLAG("--offload-layer-inputs", NULL,
              "keep saved layer inputs in host memory until backward (default off)")},
    [MS_CHOOSE_OFFLOAD_OPTIMIZER] =
        {WORD(offload_optimizer, "offload.optimizer", ms_host_optimizer_names),
         JSON("offload", "optimizer"), .json_plain = MS_PLAIN_OMITTED,
         FLAG("--offload-optimizer", NULL,
              "optimizer states in host memory, copied to the device for the update "
              "(states) or updated by the CPUs (update); default off")},
    [MS_CHOOSE_GATHER_BITS] =
        {WORD(gather_bits, "quantized.gathers", ms_quantized_bits_names),
         JSON("quantized", "gathers"), .json_plain = MS_PLAIN_OMITTED,
         FLAG("--quantized-gathers", NULL,
              "bits in which parameters are gathered, as in ZeRO++ (default off)")},
    [MS_CHOOSE_REDUCE_BITS] =
        {WORD(reduce_bits, "quantized.reductions", ms_quantized_bits_names),
         JSON("quantized", "reductions"), .json_plain = MS_PLAIN_OMITTED,
         FLAG("--quantized-reductions", NULL,
              "bits in which gradients are reduced, as in ZeRO++ (default off)")},
    [MS_CHOOSE_OPTIMIZER] = {WORD(optimizer, "optimizer", ms_optimizer_names),
                             JSON("optimizer", "kind"), .json_plain = MS_PLAIN_OMITTED,
                             .find = find_optimizer, .in_table = true, .hidden = true,
                             FLAG("--optimizer", NULL, "optimizer (default adamw)")},
    [MS_CHOOSE_COMPILE] =
        {WORD(compile, "compile", ms_compile_names), JSON("host", "compile"),
         .json_plain = MS_PLAIN_OMITTED, .in_table = true, .hidden = true,
         FLAG("--compile", NULL,
              "what torch.compile compiles: nothing, each layer, or the whole model "
              "(default: as the stack)")},
    [MS_CHOOSE_CUDA_GRAPHS] =
        {WORD(cuda_graphs, "cuda_graphs", ms_cuda_graphs_names),
         JSON("host", "cuda_graphs"), .json_plain = MS_PLAIN_OMITTED, .in_table = true,
         .hidden = true,
         FLAG("--cuda-graphs", NULL,
              "launches replayed as CUDA graphs: of each layer, or of the whole step "
              "(default none)")},
    [MS_CHOOSE_BUCKET_BYTES] =
        {NUMBER(bucket_bytes, "bucket_bytes"), JSON("buckets", "bytes"),
         .json_plain = MS_PLAIN_OMITTED, .high = 1e15, .above_low = true,
         .in_bytes = true,
         FLAG("--bucket-size", "SIZE",
              "bytes of one collective of parameters or gradients, such as \"25 MB\" "
              "(default: those of a layer)")},
    [MS_CHOOSE_UNIT_LAYERS] =
        {WHOLE(unit_layers, "unit_layers"), JSON("buckets", "unit_layers"),
         .json_plain = MS_PLAIN_OMITTED, .low = 1, .high = 10000,
         FLAG("--fsdp-unit-layers", "N",
              "layers whose parameters and gradients move together (default 1)")},
    [MS_CHOOSE_RESHARD_RANKS] =
        {WHOLE(reshard_ranks, "reshard_ranks"), JSON("shards", "reshard_ranks"),
         .json_plain = MS_PLAIN_OMITTED, .low = 1, .high = MAX_GPUS,
         NEEDS(reshards, "--zero 3 and --reshard-after-forward on"),
         FLAG("--reshard-ranks", "N",
              "ranks that shard parameters between forward and backward, such as those "
              "of a node (hpZ of ZeRO++; default: all that --zero shards over)")},
    [MS_CHOOSE_PARTITION_ACTIVATIONS] =
        {SWITCH(partition_activations, "partition_activations"),
         JSON("shards", "partition_activations"), .json_plain = MS_PLAIN_OMITTED,
         NEEDS(saves_equal_inputs,
               "--tp above 1, --sequence-parallel off and --recompute full"),
         .text_on = "layer inputs over tp",
         FLAG("--partition-activations", NULL,
              "split layer inputs saved for full recomputation over tp, without "
              "sequence parallelism (default off)")},
    [MS_CHOOSE_SLOW_NODES] =
        {TEXT(slow_nodes), JSON("devices", "slow_nodes"), .json_plain = MS_PLAIN_OMITTED,
         FLAG("--slow-nodes", "NODES",
              "nodes below their listed speed: 3:0.8 is node 3 at 0.8 of it, 3-5:1:0.5 "
              "nodes 3 to 5 with links at half their bandwidth (default: none)")},
    [MS_CHOOSE_DEVICE_ORDER] =
        {WORD(device_order, "device_order", ms_device_order_names),
         JSON("devices", "order"), .json_plain = MS_PLAIN_OMITTED,
         .search = MS_SEARCH_TRIES, .in_table = true, .hidden = true,
         FLAG("--device-order", NULL,
              "order in which ranks take the groups of a mixed cluster (default listed)")},
    [MS_CHOOSE_PACKING] =
        {WORD(packing, "packing", ms_packing_names), JSON("data", "packing"),
         .json_plain = MS_PLAIN_OMITTED,
         FLAG("--packing", NULL,
              "sequences of unequal lengths: packed one after another up to --seq, padded "
              "to the longest of a micro-batch, or padded to --seq (default none: all "
              "have --seq tokens)")},
    [MS_CHOOSE_LENGTH_MEAN] =
        {NUMBER(length_mean_tokens, "length_mean"), JSON("data", "length_mean"),
         .json_plain = MS_PLAIN_OMITTED, .low = 1, .high = MAX_TOKENS,
         NEEDS(has_lengths, "--packing"),
         FLAG("--length-mean", "TOKENS",
              "mean length of the sequences that --packing packs or pads")},
    [MS_CHOOSE_LENGTH_DEVIATION] =
        {NUMBER(length_deviation_tokens, "length_std"), JSON("data", "length_std"),
         .json_plain = MS_PLAIN_OMITTED, .high = MAX_TOKENS,
         NEEDS(has_lengths, "--packing"),
         FLAG("--length-std", "TOKENS",
              "standard deviation of their lengths, which are log-normal (default 0)")},
    [MS_CHOOSE_LENGTHS] =
        {TEXT(lengths), JSON("data", "lengths"), .json_plain = MS_PLAIN_OMITTED,
         NEEDS(has_lengths, "--packing"),
         FLAG("--lengths", "FILE",
              "lengths in place of mean and deviation: CSV with the columns tokens and "
              "perhaps sequences, how many have that length")},
};
