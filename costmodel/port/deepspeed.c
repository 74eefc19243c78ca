/* DeepSpeed: its configuration in JSON. Sources: deepspeedai/DeepSpeed edaa7221 (2026-08-22,
 * 0.19.6), runtime/config.py, runtime/zero/config.py, offload_config.py, constants.py,
 * tensor_parallel/config.py; names of optimizers and activation_checkpointing from memory.
 * The file says neither model nor sequence length, nor pipelines, which are code. */
#include "costmodel/port/json_settings.h"
#include "costmodel/port/port_priv.h"

#include <math.h>
#include <string.h>

#define ZERO       "zero_optimization."
#define CHECKPOINT "activation_checkpointing."
#define MAX_RANKS  16777216
#define MAX_BATCH  4294967296

/* ---- ranks ---- */

static long sharers(const ms_plan *plan)
{
    return plan->size[MS_DP_SHARD] * plan->size[MS_CP];
}

static bool is_stage_3(const ms_plan *plan)
{
    return plan->zero == 3 && sharers(plan) > 1;
}

/* Ulysses' mesh is data x sequence, AutoTP's data x tensor: no file has both. */
static void put_ranks(ms_port *port)
{
    const ms_plan *plan = port->plan;
    long cp = plan->size[MS_CP], tp = plan->size[MS_TP];
    if (cp > 1) {
        ms_port_put_whole(port, "data_parallel_size", ms_plan_data_parallel(plan));
        ms_port_put_whole(port, "sequence_parallel_size", cp);
    }
    if (tp > 1 && cp > 1)
        ms_port_leave_choice(port, MS_CHOOSE_TP);
    else if (tp > 1)
        ms_port_put_whole(port, "tensor_parallel.autotp_size", tp);
    if (plan->ep > 1) {
        ms_port_put(port, "expert_parallel.enabled", NULL);
        ms_port_put_whole(port, "expert_parallel.autoep_size", plan->ep);
    }
    if (is_stage_3(plan) && plan->size[MS_DP_REPLICATE] > 1)
        ms_port_put_whole(port, ZERO "mics_shard_size", sharers(plan));
}

/* Degrees but for data parallelism. */
static ms_status take_degrees(ms_port *port)
{
    ms_plan *plan = port->plan;
    long tp = 0, cp = 1, ep = 1;
    bool experts = false;
    MS_TRY(ms_port_take_whole(port, "tensor_parallel.autotp_size", 0, MAX_RANKS, &tp));
    MS_TRY(ms_port_take_whole(port, "sequence_parallel_size", 1, MAX_RANKS, &cp));
    MS_TRY(ms_port_take_on(port, "expert_parallel.enabled", &experts));
    MS_TRY(ms_port_take_whole(port, "expert_parallel.autoep_size", 1, MAX_RANKS, &ep));
    plan->size[MS_TP] = tp > 1 ? tp : 1;
    plan->size[MS_CP] = cp;
    plan->ep = experts ? ep : 1;
    return MS_OK;
}

/* Replicas of the shards: MiCS shards inside groups, over data and sequence ranks. */
static ms_status take_replicas(ms_port *port, long ranks, long *replicas)
{
    long shards = -1;
    MS_TRY(ms_port_take_whole(port, ZERO "mics_shard_size", -1, MAX_RANKS, &shards));
    *replicas = 1;
    if (shards < 1)
        return MS_OK;
    if (ranks % shards != 0) {
        return ms_port_fail(port, ms_port_find(port, ZERO "mics_shard_size"),
                            "%ld does not divide %ld data and sequence ranks", shards,
                            ranks);
    }
    *replicas = ranks / shards;
    return MS_OK;
}

static ms_status take_ranks(ms_port *port)
{
    const ms_plan *plan = port->plan;
    long gpus = port->gpus, dp = 0, replicas;
    MS_TRY(take_degrees(port));
    MS_TRY(ms_port_take_whole(port, "data_parallel_size", 1, MAX_RANKS, &dp));
    long others = plan->size[MS_CP] * plan->size[MS_TP];
    if (gpus == 0 && dp > 0 && others <= MAX_RANKS / dp)
        gpus = dp * others;
    if (gpus == 0)
        return ms_port_fail_missing(port, "--gpus", "DeepSpeed's file does not say it");
    if (dp > 0 && (double)dp * (double)others != (double)gpus) {
        return ms_port_fail(port, ms_port_find(port, "data_parallel_size"),
                            "the degrees make %.0f ranks, not %ld",
                            (double)dp * (double)others, gpus);
    }
    MS_TRY(take_replicas(port, gpus / plan->size[MS_TP], &replicas));
    return ms_port_set_ranks(port, gpus, replicas);
}

static const char *const rank_keys[] = {"data_parallel_size",
                                        "sequence_parallel_size",
                                        "tensor_parallel.autotp_size",
                                        "expert_parallel.enabled",
                                        "expert_parallel.autoep_size",
                                        "zero_optimization.mics_shard_size",
                                        NULL};
/* Ulysses' ranks see whole sequences; rules hold the order of axes. */
static const int rank_choices[] = {MS_CHOOSE_DP_REPLICATE,
                                   MS_CHOOSE_CP,
                                   MS_CHOOSE_TP,
                                   MS_CHOOSE_EP,
                                   MS_CHOOSE_CP_BALANCE,
                                   MS_CHOOSE_ORDER,
                                   -1};

/* ---- batch ---- */

static void put_batch(ms_port *port)
{
    ms_port_put_whole(port, "train_micro_batch_size_per_gpu", port->plan->microbatch);
    ms_port_put_whole(port, "gradient_accumulation_steps",
                      ms_plan_microbatches(port->plan));
}

/* The one of three figures that the file leaves out: train_batch_size is micro-batch times
 * steps times data ranks, among which AutoTP counts tensor-parallel ranks, too. */
static ms_status take_batch(ms_port *port)
{
    ms_plan *plan = port->plan;
    long all = 0, micro = 0, steps = 0;
    long ranks = ms_plan_data_parallel(plan) * plan->size[MS_TP];
    MS_TRY(ms_port_take_whole(port, "train_batch_size", 1, MAX_BATCH, &all));
    MS_TRY(
        ms_port_take_whole(port, "train_micro_batch_size_per_gpu", 1, MAX_RANKS, &micro));
    MS_TRY(ms_port_take_whole(port, "gradient_accumulation_steps", 1, MAX_RANKS, &steps));
    if (all == 0 && micro == 0) {
        return ms_port_fail_missing(port, "train_micro_batch_size_per_gpu",
                                    "or train_batch_size: DeepSpeed requires one");
    }
    if (steps == 0)
        steps = all > 0 && micro > 0 ? all / micro / ranks : 1;
    if (micro == 0)
        micro = all / steps / ranks;
    if (all > 0 && (double)micro * (double)steps * (double)ranks != (double)all) {
        return ms_port_fail(port, ms_port_find(port, "train_batch_size"),
                            "%ld is not micro-batch %ld x %ld steps x %ld ranks", all,
                            micro, steps, ranks);
    }
    plan->microbatch = micro;
    plan->global_batch = micro * steps * ms_plan_data_parallel(plan);
    return MS_OK;
}

static const char *const batch_keys[] = {"train_micro_batch_size_per_gpu",
                                         "gradient_accumulation_steps",
                                         "train_batch_size", NULL};
static const int batch_choices[] = {MS_CHOOSE_GLOBAL_BATCH, -1};

/* ---- sharding ---- */

static void put_zero(ms_port *port)
{
    const ms_plan *plan = port->plan;
    bool offloads = plan->offload_optimizer != MS_HOST_NO_OPTIMIZER;
    long stage = sharers(plan) > 1 || offloads ? plan->zero : 0;
    ms_port_put_whole(port, ZERO "stage", stage);
    if (offloads && stage == 0)
        ms_port_leave_choice(port, MS_CHOOSE_OFFLOAD_OPTIMIZER);
    if (is_stage_3(plan) && !plan->reshard_after_forward)
        ms_port_leave_choice(port, MS_CHOOSE_RESHARD);
}

static ms_status take_zero(ms_port *port)
{
    return ms_port_take_whole(port, ZERO "stage", 0, 3, &port->plan->zero);
}

static const int zero_choices[] = {MS_CHOOSE_RESHARD, -1};

/* hpZ: backward gathers inside fewer ranks; 1 turns it off. */
static void put_secondary(ms_port *port)
{
    const ms_plan *plan = port->plan;
    long ranks = is_stage_3(plan) ? ms_plan_secondary_shards(plan) : 0;
    if (ranks == 1)
        ms_port_leave_choice(port, MS_CHOOSE_RESHARD_RANKS);
    else if (ranks > 1)
        ms_port_put_whole(port, ZERO "zero_hpz_partition_size", ranks);
}

static ms_status take_secondary(ms_port *port)
{
    long ranks = 1;
    MS_TRY(
        ms_port_take_whole(port, ZERO "zero_hpz_partition_size", 1, MAX_RANKS, &ranks));
    port->plan->reshard_ranks = ranks > 1 ? ranks : 0;
    return MS_OK;
}

/* ZeRO++ sends parameters in 8 bits and gradients in 4 (arXiv 2306.10209, sections 3.1 and
 * 3.3), with stage 3 only. */
static void put_bits(ms_port *port)
{
    const ms_plan *plan = port->plan;
    bool can = is_stage_3(plan);
    if (plan->gather_bits == MS_QUANTISED_8 && can)
        ms_port_put(port, ZERO "zero_quantized_weights", NULL);
    else if (plan->gather_bits != MS_NOT_QUANTISED)
        ms_port_leave_choice(port, MS_CHOOSE_GATHER_BITS);
    if (plan->reduce_bits == MS_QUANTISED_4 && can)
        ms_port_put(port, ZERO "zero_quantized_gradients", NULL);
    else if (plan->reduce_bits != MS_NOT_QUANTISED)
        ms_port_leave_choice(port, MS_CHOOSE_REDUCE_BITS);
}

static ms_status take_bits(ms_port *port)
{
    bool gathers = false, reductions = false;
    MS_TRY(ms_port_take_on(port, ZERO "zero_quantized_weights", &gathers));
    MS_TRY(ms_port_take_on(port, ZERO "zero_quantized_gradients", &reductions));
    port->plan->gather_bits = gathers ? MS_QUANTISED_8 : MS_NOT_QUANTISED;
    port->plan->reduce_bits = reductions ? MS_QUANTISED_4 : MS_NOT_QUANTISED;
    return MS_OK;
}

static const char *const bit_keys[] = {ZERO "zero_quantized_weights",
                                       ZERO "zero_quantized_gradients", NULL};
static const int bit_choices[] = {MS_CHOOSE_REDUCE_BITS, -1};

static const ms_port_word devices[] = {
    {"none", MS_HOST_NO_OPTIMIZER}, {"cpu", MS_HOST_UPDATE}, {0}};
static const ms_port_word no_device[] = {{"none", 0}, {0}};

/* Parameters in host memory, and parts of the optimizer there, are in no plan. */
static ms_status take_other_offload(ms_port *port)
{
    long device = 0;
    double share = 1.0;
    MS_TRY(ms_port_take_word(port, ZERO "offload_param.device", no_device, &device));
    return ms_port_take_number(port, ZERO "offload_optimizer.ratio", 1.0, 1.0, &share);
}

static const char *const offload_keys[] = {ZERO "offload_param.device",
                                           ZERO "offload_optimizer.ratio", NULL};

/* ---- recomputation ---- */

/* The section configures checkpoints of layers, which the model's code makes. */
static void put_recompute(ms_port *port)
{
    const ms_plan *plan = port->plan;
    bool full = plan->recompute == MS_RECOMPUTE_FULL;
    if (!full && plan->recompute != MS_RECOMPUTE_NONE)
        ms_port_leave_choice(port, MS_CHOOSE_RECOMPUTE);
    else if (full && plan->recompute_layers > 0)
        ms_port_leave_choice(port, MS_CHOOSE_RECOMPUTE_LAYERS);
    if (full) {
        ms_port_put(port, CHECKPOINT "partition_activations",
                    plan->partition_activations ? NULL : "false");
        ms_port_put(port, CHECKPOINT "cpu_checkpointing",
                    plan->offload_layer_inputs ? NULL : "false");
    } else if (plan->offload_layer_inputs) {
        ms_port_leave_choice(port, MS_CHOOSE_OFFLOAD_LAYER_INPUTS);
    }
}

static ms_status take_recompute(ms_port *port)
{
    ms_plan *plan = port->plan;
    bool full = false, split = false, offloads = false;
    for (int i = 0; i < port->settings->num; i++) {
        full = full ||
               strncmp(port->settings->rows[i].key, CHECKPOINT, strlen(CHECKPOINT)) == 0;
    }
    MS_TRY(ms_port_take_on(port, CHECKPOINT "partition_activations", &split));
    MS_TRY(ms_port_take_on(port, CHECKPOINT "cpu_checkpointing", &offloads));
    plan->recompute = full ? MS_RECOMPUTE_FULL : MS_RECOMPUTE_NONE;
    plan->partition_activations = split;
    plan->offload_layer_inputs = offloads;
    ms_port_assume(port, full ? "the model's code checkpoints every layer, as "
                                "activation_checkpointing configures it"
                              : "the model's code checkpoints no layer");
    return MS_OK;
}

static const char *const recompute_keys[] = {CHECKPOINT "partition_activations",
                                             CHECKPOINT "cpu_checkpointing", NULL};
static const int recompute_choices[] = {MS_CHOOSE_RECOMPUTE_LAYERS,
                                        MS_CHOOSE_PARTITION_ACTIVATIONS,
                                        MS_CHOOSE_OFFLOAD_LAYER_INPUTS, -1};

/* ---- types ---- */

static void put_compute(ms_port *port)
{
    ms_dtype type = port->plan->compute;
    if (type == MS_BF16 || type == MS_FP16)
        ms_port_put(port, type == MS_BF16 ? "bf16.enabled" : "fp16.enabled", NULL);
    else if (type != MS_FP32)
        ms_port_leave_choice(port, MS_CHOOSE_COMPUTE);
}

static ms_status take_compute(ms_port *port)
{
    bool bf16 = false, fp16 = false;
    MS_TRY(ms_port_take_on(port, "bf16.enabled", &bf16));
    MS_TRY(ms_port_take_on(port, "fp16.enabled", &fp16));
    if (bf16 && fp16) {
        return ms_port_fail(port, ms_port_find(port, "fp16.enabled"),
                            "DeepSpeed computes in bf16 or fp16, not both");
    }
    port->plan->compute = bf16 ? MS_BF16 : fp16 ? MS_FP16 : MS_FP32;
    return MS_OK;
}

static const char *const compute_keys[] = {"bf16.enabled", "fp16.enabled", NULL};

/* States of the optimizer and its copy of the parameters are in 32 bits, or all in bf16. */
static void put_states(ms_port *port)
{
    const ms_plan *plan = port->plan;
    bool narrow = plan->optimizer_dtype == MS_STORE_BF16 && plan->compute == MS_BF16 &&
                  plan->master_dtype != MS_MASTER_FP32;
    if (narrow) {
        ms_port_put(port, "bf16.bf16_master_weights_and_grads", NULL);
        ms_port_put(port, "bf16.bf16_optimizer_states", NULL);
        return;
    }
    if (plan->optimizer_dtype > MS_STORE_FP32)
        ms_port_leave_choice(port, MS_CHOOSE_OPTIMIZER_DTYPE);
    if (plan->master_dtype > MS_MASTER_FP32)
        ms_port_leave_choice(port, MS_CHOOSE_MASTER_DTYPE);
}

static ms_status take_states(ms_port *port)
{
    bool grads = false, states = false;
    MS_TRY(ms_port_take_on(port, "bf16.bf16_master_weights_and_grads", &grads));
    MS_TRY(ms_port_take_on(port, "bf16.bf16_optimizer_states", &states));
    if (grads != states) {
        return ms_port_fail(
            port,
            ms_port_find(port, grads ? "bf16.bf16_master_weights_and_grads"
                                     : "bf16.bf16_optimizer_states"),
            "a plan has master weights and optimizer states both in bf16, or neither");
    }
    port->plan->optimizer_dtype = states ? MS_STORE_BF16 : MS_STORE_DEFAULT;
    return MS_OK;
}

static const char *const state_keys[] = {"bf16.bf16_master_weights_and_grads",
                                         "bf16.bf16_optimizer_states", NULL};
static const int state_choices[] = {MS_CHOOSE_MASTER_DTYPE, -1};

static const ms_port_word types[] = {
    {"fp32", MS_STORE_FP32}, {"bf16", MS_STORE_BF16}, {0}};
static const ms_port_word optimizers[] = {
    {"AdamW", MS_OPTIMIZER_ADAMW}, {"Adam", MS_OPTIMIZER_ADAMW},
    {"Lion", MS_OPTIMIZER_LION},   {"Muon", MS_OPTIMIZER_MUON},
    {"SGD", MS_OPTIMIZER_SGD},     {0}};

/* ---- buckets ---- */

/* Bytes of a gradient in a reduction: that of the model unless the file says otherwise. */
static double message_bytes(const ms_plan *plan)
{
    ms_storage type =
        plan->comm_dtype != MS_STORE_DEFAULT ? plan->comm_dtype : plan->grad_dtype;
    bool wide =
        type == MS_STORE_DEFAULT ? plan->compute == MS_FP32 : type == MS_STORE_FP32;
    return wide ? 4.0 : 2.0;
}

/* DeepSpeed counts elements. */
static void put_bucket(ms_port *port)
{
    double bytes = port->plan->bucket_bytes;
    double elements = bytes / message_bytes(port->plan);
    if (bytes == 0.0)
        return;
    if (elements != floor(elements) || elements > 1e12)
        ms_port_leave_choice(port, MS_CHOOSE_BUCKET_BYTES);
    else
        ms_port_put_whole(port, ZERO "reduce_bucket_size", (long)elements);
}

/* Other programs replace "auto" by a number that suits the model: a unit's own. */
static ms_status take_bucket(ms_port *port)
{
    long elements = 0;
    const ms_port_setting *setting = ms_port_find(port, ZERO "reduce_bucket_size");
    if (setting != NULL && setting->unsettled) {
        ms_port_assume(port, "%s of a layer", setting->key);
        return MS_OK;
    }
    MS_TRY(
        ms_port_take_whole(port, ZERO "reduce_bucket_size", 1, 1000000000000, &elements));
    port->plan->bucket_bytes = (double)elements * message_bytes(port->plan);
    return MS_OK;
}

/* ---- the format ---- */

#define OWN(name, choose, puts, takes)                                                   \
    .kind = MS_PORT_OWN, .key = (name), .choice = (choose), .put = (puts), .take = (takes)
#define FIXED(choose, value) .kind = MS_PORT_FIXED, .choice = (choose), .absent = (value)
#define TYPE(name, choose)                                                               \
    .kind = MS_PORT_WORD, .key = (name), .choice = (choose), .words = types,             \
    .absent = MS_STORE_DEFAULT

static const ms_port_row model_rows[] = {{0}};

static const ms_port_row plan_rows[] = {
    {OWN(NULL, MS_CHOOSE_DP_SHARD, put_ranks, take_ranks), .keys = rank_keys,
     .choices = rank_choices},
    {FIXED(MS_CHOOSE_PP, 1)},
    {FIXED(MS_CHOOSE_ETP, 1)},
    {FIXED(MS_CHOOSE_SEQUENCE_PARALLEL, 0)},
    {FIXED(MS_CHOOSE_ASYNC_TP, 0)},
    {FIXED(MS_CHOOSE_CP_METHOD, MS_CP_ULYSSES)},
    {OWN(NULL, MS_CHOOSE_MICROBATCH, put_batch, take_batch), .keys = batch_keys,
     .choices = batch_choices},
    {OWN(NULL, MS_CHOOSE_SEQUENCE_LENGTH, NULL, ms_port_take_length)},
    {OWN(NULL, MS_CHOOSE_COMPUTE, put_compute, take_compute), .keys = compute_keys},
    {OWN(NULL, MS_CHOOSE_OPTIMIZER_DTYPE, put_states, take_states), .keys = state_keys,
     .choices = state_choices},
    {TYPE("data_types.grad_accum_dtype", MS_CHOOSE_GRAD_DTYPE)},
    {TYPE("communication_data_type", MS_CHOOSE_COMM_DTYPE)},
    {.kind = MS_PORT_WORD,
     .key = "optimizer.type",
     .choice = MS_CHOOSE_OPTIMIZER,
     .words = optimizers,
     .absent = MS_OPTIMIZER_ADAMW,
     .always = true},
    {OWN(ZERO "stage", MS_CHOOSE_ZERO, put_zero, take_zero), .choices = zero_choices},
    {OWN(ZERO "zero_hpz_partition_size", MS_CHOOSE_RESHARD_RANKS, put_secondary,
         take_secondary)},
    {OWN(NULL, MS_CHOOSE_GATHER_BITS, put_bits, take_bits), .keys = bit_keys,
     .choices = bit_choices},
    {.kind = MS_PORT_WORD,
     .key = ZERO "offload_optimizer.device",
     .choice = MS_CHOOSE_OFFLOAD_OPTIMIZER,
     .words = devices,
     .absent = MS_HOST_NO_OPTIMIZER},
    {OWN(NULL, -1, NULL, take_other_offload), .keys = offload_keys},
    {OWN(ZERO "reduce_bucket_size", MS_CHOOSE_BUCKET_BYTES, put_bucket, take_bucket)},
    {OWN(NULL, MS_CHOOSE_RECOMPUTE, put_recompute, take_recompute),
     .keys = recompute_keys, .choices = recompute_choices},
    {0},
};

static ms_status read_json(ms_port *port, const char *name, const char *text,
                           size_t length)
{
    MS_TRY(ms_json_settings_read(port->cx, name, text, length, port->settings));
    return port->settings->num > 0 ? MS_OK
                                   : ms_fail(port->cx, MS_EINPUT, (ms_loc){.file = name},
                                             "there are no keys");
}

static ms_status finish(ms_port *port)
{
    (void)port;
    return MS_OK;
}

static void write_json(FILE *out, ms_arena *arena, const ms_plan *plan,
                       const ms_port_exported *exported,
                       const ms_port_export_options *options)
{
    ms_texts comment = ms_port_head(arena, plan, exported);
    long per_node, nodes = ms_port_nodes(plan, options, &per_node);
    if (options->launcher != MS_PORT_NO_LAUNCHER) {
        ms_texts_add(
            arena, &comment,
            ms_arena_printf(
                arena,
                options->launcher == MS_PORT_SRUN
                    ? "deepspeed --launcher slurm --num_nodes %ld --num_gpus %ld train.py "
                      "--deepspeed --deepspeed_config THIS.json"
                    : "deepspeed --num_nodes %ld --num_gpus %ld train.py --deepspeed "
                      "--deepspeed_config THIS.json",
                nodes, per_node));
    }
    ms_json_settings_write(out, arena, &comment, &exported->settings);
}

/* Traffic that overlaps and sizes of buffers besides reductions are the stack's. */
static const char *const ignored[] = {ZERO "overlap_comm",
                                      ZERO "contiguous_gradients",
                                      ZERO "reduce_scatter",
                                      ZERO "allgather_partitions",
                                      ZERO "allgather_bucket_size",
                                      ZERO "sub_group_size",
                                      ZERO "round_robin_gradients",
                                      ZERO "stage3_prefetch_bucket_size",
                                      ZERO "stage3_param_persistence_threshold",
                                      ZERO "stage3_max_live_parameters",
                                      ZERO "stage3_max_reuse_distance",
                                      ZERO "stage3_gather_16bit_weights_on_model_save",
                                      ZERO "mics_hierarchical_params_gather",
                                      ZERO "offload_optimizer.pin_memory",
                                      ZERO "offload_optimizer.buffer_count",
                                      ZERO "offload_optimizer.fast_init",
                                      ZERO "offload_param.pin_memory",
                                      ZERO "offload_param.buffer_count",
                                      ZERO "offload_param.buffer_size",
                                      ZERO "offload_param.max_in_cpu",
                                      CHECKPOINT "contiguous_memory_optimization",
                                      CHECKPOINT "number_checkpoints",
                                      CHECKPOINT "synchronize_checkpoint_boundary",
                                      CHECKPOINT "profile",
                                      "seq_parallel_communication_data_type",
                                      NULL};
static const char *const reserved[] = {"parallel",   ZERO,    CHECKPOINT, "expert",
                                       "data_types", "bf16.", NULL};
static const char *const marks[] = {
    "\"train_batch_size\"", "\"train_micro_batch_size_per_gpu\"",
    "\"gradient_accumulation_steps\"", "\"zero_optimization\"", NULL};

const ms_port_format ms_port_deepspeed = {
    .name = "deepspeed",
    .stack = "deepspeed",
    .rules = "deepspeed",
    .tables = {model_rows, plan_rows},
    .ignored = ignored,
    .reserved = reserved,
    .marks = marks,
    .read = read_json,
    .finish = finish,
    .write = write_json,
};
