/* Hugging Face's Accelerate: its configuration in YAML, of FSDP, DDP or DeepSpeed. Sources:
 * huggingface/accelerate 16cb6eb8 (2026-07-24, 1.15 dev), parallelism_config.py,
 * utils/dataclasses.py, commands/launch.py; sections of the YAML and names of DeepSpeed's
 * keys from memory. The file says neither model nor batch, which are the script's. */
#include "base/print.h"
#include "costmodel/port/port_priv.h"
#include "costmodel/port/yaml.h"

#include <string.h>
#include <strings.h>

#define FSDP      "fsdp_config.fsdp_"
#define SIZES     "parallelism_config.parallelism_config_"
#define DEEPSPEED "deepspeed_config."
#define MAX_RANKS 16777216

/* ---- kinds of jobs ---- */

/* On export the stack's rules say whose job it is, on import the file does. */
static bool uses_deepspeed(const ms_port *port)
{
    if (port->rules != NULL)
        return port->stack->rules != NULL &&
               strncmp(port->stack->rules, "deepspeed", 9) == 0;
    for (int i = 0; i < port->settings->num; i++)
        if (strcmp(port->settings->rows[i].key, "distributed_type") == 0)
            return strcasecmp(port->settings->rows[i].value, "DEEPSPEED") == 0;
    return false;
}

static bool uses_torch(const ms_port *port)
{
    return !uses_deepspeed(port);
}

static bool is_fsdp(const ms_plan *plan)
{
    return plan->size[MS_DP_SHARD] * plan->size[MS_CP] * plan->size[MS_TP] > 1;
}

static bool has_ring(const ms_port *port)
{
    return uses_torch(port) && port->plan->size[MS_CP] > 1;
}

static void put_type(ms_port *port)
{
    ms_port_put(port, "compute_environment", "LOCAL_MACHINE");
    ms_port_put(port, "distributed_type",
                uses_deepspeed(port)   ? "DEEPSPEED"
                : is_fsdp(port->plan)  ? "FSDP"
                : port->plan->gpus > 1 ? "MULTI_GPU"
                                       : "'NO'");
}

enum {
    OF_FSDP,
    OF_DDP,
    OF_DEEPSPEED
};
static const ms_port_word kinds[] = {{"FSDP", OF_FSDP},
                                     {"MULTI_GPU", OF_DDP},
                                     {"NO", OF_DDP},
                                     {"DEEPSPEED", OF_DEEPSPEED},
                                     {0}};

static ms_status take_kind(ms_port *port, long *kind)
{
    *kind = OF_DDP;
    return ms_port_take_word(port, "distributed_type", kinds, kind);
}

/* A plan of DeepSpeed has its stack, unless the user names one. */
static ms_status take_type(ms_port *port)
{
    long kind;
    (void)ms_port_has(port, "compute_environment");
    MS_TRY(take_kind(port, &kind));
    const ms_port_setting *file = ms_port_find(port, DEEPSPEED "deepspeed_config_file");
    if (file != NULL) {
        ms_port_fail(port, file, "the plan is in %s", file->value);
        return ms_hint(port->cx, "meshsim import %s --from deepspeed", file->value);
    }
    if (kind == OF_DEEPSPEED && strcmp(port->plan->stack, port->format->stack) == 0)
        port->plan->stack = "deepspeed";
    return MS_OK;
}

static const char *const type_keys[] = {"compute_environment", "distributed_type",
                                        DEEPSPEED "deepspeed_config_file", NULL};

/* ---- ranks ---- */

static const struct {
    const char *key;
    ms_plan_axis axis;
} sizes[] = {{SIZES "dp_replicate_size", MS_DP_REPLICATE},
             {SIZES "dp_shard_size", MS_DP_SHARD},
             {SIZES "cp_size", MS_CP},
             {SIZES "tp_size", MS_TP}};
#define NUM_SIZES ((int)(sizeof sizes / sizeof *sizes))

static void put_ranks(ms_port *port)
{
    const ms_plan *plan = port->plan;
    ms_port_put_whole(port, "num_processes", plan->gpus);
    if (uses_deepspeed(port)) {
        if (plan->size[MS_TP] > 1)
            ms_port_leave_choice(port, MS_CHOOSE_TP);
        if (plan->size[MS_CP] > 1)
            ms_port_put_whole(port, SIZES "sp_size", plan->size[MS_CP]);
        if (plan->zero > 0 && plan->size[MS_DP_REPLICATE] > 1)
            ms_port_leave_choice(port, MS_CHOOSE_DP_REPLICATE);
        return;
    }
    for (int i = 0; is_fsdp(plan) && i < NUM_SIZES; i++)
        ms_port_put_whole(port, sizes[i].key, plan->size[sizes[i].axis]);
}

/* Replicas of FSDP's shards without sizes: version 1 may have one a machine. */
static ms_status take_replicas(ms_port *port, long gpus, long *replicas)
{
    const ms_port_setting *strategy = ms_port_find(port, FSDP "reshard_after_forward");
    long kind, machines = 1;
    MS_TRY(take_kind(port, &kind));
    MS_TRY(ms_port_take_whole(port, "num_machines", 1, MAX_RANKS, &machines));
    bool hybrid = strategy != NULL && strategy->value != NULL &&
                  strncmp(strategy->value, "HYBRID", 6) == 0;
    *replicas = kind == OF_DDP ? gpus : hybrid ? machines : 1;
    return MS_OK;
}

/* Sizes are all stated, or none is: then data parallelism has all processes. */
static ms_status take_sizes(ms_port *port, long gpus)
{
    ms_plan *plan = port->plan;
    bool stated = false;
    double product = 1.0;
    for (int i = 0; i < NUM_SIZES; i++) {
        stated = ms_port_has(port, sizes[i].key) || stated;
        MS_TRY(ms_port_take_whole(port, sizes[i].key, 1, MAX_RANKS,
                                  &plan->size[sizes[i].axis]));
        product *= (double)plan->size[sizes[i].axis];
    }
    long replicas = plan->size[MS_DP_REPLICATE];
    if (!stated)
        MS_TRY(take_replicas(port, gpus, &replicas));
    else if (product != (double)gpus)
        return ms_port_fail(port, ms_port_find(port, "num_processes"),
                            "the sizes make %.0f ranks, not %ld", product, gpus);
    return ms_port_set_ranks(port, gpus, replicas);
}

static ms_status take_ranks(ms_port *port)
{
    long gpus = 0;
    MS_TRY(ms_port_take_whole(port, "num_processes", 1, MAX_RANKS, &gpus));
    if (gpus == 0)
        return ms_port_fail_missing(port, "num_processes", "the number of all GPUs");
    if (port->gpus > 0 && port->gpus != gpus)
        return ms_port_fail(port, ms_port_find(port, "num_processes"),
                            "there are %ld processes, not %ld", gpus, port->gpus);
    (void)ms_port_has(port, "num_machines");
    if (uses_torch(port))
        return take_sizes(port, gpus);
    MS_TRY(ms_port_take_whole(port, SIZES "sp_size", 1, MAX_RANKS,
                              &port->plan->size[MS_CP]));
    port->plan->cp_method = MS_CP_ULYSSES;
    return ms_port_set_ranks(port, gpus, 1);
}

static const char *const rank_keys[] = {
    "num_processes", "num_machines",  SIZES "dp_replicate_size", SIZES "dp_shard_size",
    SIZES "cp_size", SIZES "sp_size", SIZES "tp_size",           NULL};
static const int rank_choices[] = {MS_CHOOSE_DP_REPLICATE,
                                   MS_CHOOSE_CP,
                                   MS_CHOOSE_TP,
                                   MS_CHOOSE_CP_METHOD,
                                   MS_CHOOSE_CP_BALANCE,
                                   MS_CHOOSE_ORDER,
                                   -1};

/* ---- batch ---- */

static void put_batch(ms_port *port)
{
    if (uses_deepspeed(port))
        ms_port_put_whole(port, DEEPSPEED "gradient_accumulation_steps",
                          ms_plan_microbatches(port->plan));
}

static ms_status take_batch(ms_port *port)
{
    ms_plan *plan = port->plan;
    long steps = 1;
    MS_TRY(ms_port_take_whole(port, DEEPSPEED "gradient_accumulation_steps", 1, MAX_RANKS,
                              &steps));
    plan->microbatch = 1;
    plan->global_batch = steps * ms_plan_data_parallel(plan);
    ms_port_assume(port,
                   "micro-batches of 1 sequence, %ld a step: the batch is the script's",
                   plan->global_batch);
    return MS_OK;
}

static const char *const batch_keys[] = {DEEPSPEED "gradient_accumulation_steps", NULL};
static const int batch_choices[] = {MS_CHOOSE_GLOBAL_BATCH, -1};

/* ---- sharding ---- */

static void put_sharding(ms_port *port)
{
    const ms_plan *plan = port->plan;
    bool shards = plan->size[MS_DP_SHARD] * plan->size[MS_CP] > 1;
    if (uses_deepspeed(port)) {
        ms_port_put_whole(port, DEEPSPEED "zero_stage", shards ? plan->zero : 0);
        if (shards && plan->zero == 3 && !plan->reshard_after_forward)
            ms_port_leave_choice(port, MS_CHOOSE_RESHARD);
    } else if (is_fsdp(plan)) {
        ms_port_put_whole(port, FSDP "version", 2);
        ms_port_put(port, FSDP "auto_wrap_policy", "TRANSFORMER_BASED_WRAP");
        ms_port_put(port, FSDP "reshard_after_forward",
                    plan->reshard_after_forward ? "true" : "false");
    }
}

/* Version 1 names a strategy, version 2 says whether parameters are gathered again. */
static ms_status take_fsdp(ms_port *port)
{
    enum {
        WHOLE,
        KEPT,
        RESHARDED
    };
    static const ms_port_word strategies[] = {
        {"FULL_SHARD", RESHARDED},   {"SHARD_GRAD_OP", KEPT},      {"NO_SHARD", WHOLE},
        {"HYBRID_SHARD", RESHARDED}, {"HYBRID_SHARD_ZERO2", KEPT}, {0}};
    long version = 1, strategy = RESHARDED;
    bool reshards = true;
    MS_TRY(ms_port_take_whole(port, FSDP "version", 1, 2, &version));
    if (version == 2)
        MS_TRY(ms_port_take_on(port, FSDP "reshard_after_forward", &reshards));
    else
        MS_TRY(
            ms_port_take_word(port, FSDP "reshard_after_forward", strategies, &strategy));
    port->plan->zero = strategy == WHOLE ? 0 : 3;
    port->plan->reshard_after_forward = reshards && strategy == RESHARDED;
    return MS_OK;
}

static ms_status take_sharding(ms_port *port)
{
    static const ms_port_word nowhere[] = {{"none", 0}, {0}};
    long kind, device = 0;
    MS_TRY(take_kind(port, &kind));
    port->plan->zero = 0;
    MS_TRY(ms_port_take_word(port, DEEPSPEED "offload_param_device", nowhere, &device));
    if (kind == OF_DEEPSPEED)
        return ms_port_take_whole(port, DEEPSPEED "zero_stage", 0, 3, &port->plan->zero);
    return kind == OF_FSDP ? take_fsdp(port) : MS_OK;
}

static const char *const sharding_keys[] = {FSDP "version", FSDP "reshard_after_forward",
                                            DEEPSPEED "zero_stage",
                                            DEEPSPEED "offload_param_device", NULL};
static const int sharding_choices[] = {MS_CHOOSE_RESHARD, -1};

static void put_recompute(ms_port *port)
{
    const ms_plan *plan = port->plan;
    bool full = plan->recompute == MS_RECOMPUTE_FULL && plan->recompute_layers == 0;
    if (uses_torch(port) && is_fsdp(plan) && full)
        ms_port_put(port, FSDP "activation_checkpointing", NULL);
    else if (plan->recompute != MS_RECOMPUTE_NONE)
        ms_port_leave_choice(port, MS_CHOOSE_RECOMPUTE);
}

static ms_status take_recompute(ms_port *port)
{
    bool full = false, offloads = false;
    MS_TRY(ms_port_take_on(port, FSDP "activation_checkpointing", &full));
    MS_TRY(ms_port_take_on(port, FSDP "offload_params", &offloads));
    if (offloads)
        return ms_port_fail(port, ms_port_find(port, FSDP "offload_params"),
                            "no plan has parameters in host memory");
    port->plan->recompute = full ? MS_RECOMPUTE_FULL : MS_RECOMPUTE_NONE;
    return MS_OK;
}

static const char *const recompute_keys[] = {FSDP "activation_checkpointing",
                                             FSDP "offload_params", NULL};
static const int recompute_choices[] = {MS_CHOOSE_RECOMPUTE_LAYERS, -1};

/* ---- the format ---- */

static const ms_port_word types[] = {
    {"no", MS_FP32}, {"fp16", MS_FP16}, {"bf16", MS_BF16}, {"fp8", MS_FP8}, {0}};
static const ms_port_word strategies[] = {
    {"allgather", MS_CP_ALL_GATHER}, {"alltoall", MS_CP_RING}, {0}};
static const ms_port_word devices[] = {
    {"none", MS_HOST_NO_OPTIMIZER}, {"cpu", MS_HOST_UPDATE}, {0}};

#define OWN(name, choose, puts, takes)                                                   \
    .kind = MS_PORT_OWN, .key = (name), .choice = (choose), .put = (puts), .take = (takes)
#define WORD(name, choose, list, usual)                                                  \
    .kind = MS_PORT_WORD, .key = (name), .choice = (choose), .words = (list),            \
    .absent = (usual)
#define FIXED(choose, value) .kind = MS_PORT_FIXED, .choice = (choose), .absent = (value)

static const ms_port_row model_rows[] = {{0}};

static const ms_port_row plan_rows[] = {
    {OWN("distributed_type", -1, put_type, take_type), .keys = type_keys},
    {WORD("mixed_precision", MS_CHOOSE_COMPUTE, types, MS_FP32), .always = true},
    {OWN(NULL, MS_CHOOSE_DP_SHARD, put_ranks, take_ranks), .keys = rank_keys,
     .choices = rank_choices},
    {WORD(SIZES "cp_comm_strategy", MS_CHOOSE_CP_METHOD, strategies, MS_CP_ALL_GATHER),
     .when = has_ring, .always = true},
    {FIXED(MS_CHOOSE_PP, 1)},
    {FIXED(MS_CHOOSE_EP, 1)},
    {FIXED(MS_CHOOSE_ETP, 1)},
    {FIXED(MS_CHOOSE_SEQUENCE_PARALLEL, 0)},
    {FIXED(MS_CHOOSE_ASYNC_TP, 0)},
    {FIXED(MS_CHOOSE_OPTIMIZER, MS_OPTIMIZER_ADAMW)},
    {OWN(NULL, MS_CHOOSE_MICROBATCH, put_batch, take_batch), .keys = batch_keys,
     .choices = batch_choices},
    {OWN(NULL, MS_CHOOSE_SEQUENCE_LENGTH, NULL, ms_port_take_length)},
    {OWN(NULL, MS_CHOOSE_ZERO, put_sharding, take_sharding), .keys = sharding_keys,
     .choices = sharding_choices},
    {WORD(DEEPSPEED "offload_optimizer_device", MS_CHOOSE_OFFLOAD_OPTIMIZER, devices,
          MS_HOST_NO_OPTIMIZER)},
    {OWN(NULL, MS_CHOOSE_RECOMPUTE, put_recompute, take_recompute),
     .keys = recompute_keys, .choices = recompute_choices},
    {0},
};

static ms_status read_yaml(ms_port *port, const char *name, const char *text,
                           size_t length)
{
    MS_TRY(ms_yaml_read(port->cx, name, text, length, port->settings));
    return port->settings->num > 0 ? MS_OK
                                   : ms_fail(port->cx, MS_EINPUT, (ms_loc){.file = name},
                                             "there are no keys");
}

static ms_status finish(ms_port *port)
{
    (void)port;
    return MS_OK;
}

/* The batch stands with the program, as the arguments of transformers' Trainer. */
static void write_launch(FILE *out, const ms_plan *plan,
                         const ms_port_export_options *options)
{
    long per_node, nodes = ms_port_nodes(plan, options, &per_node);
    bool srun = options->launcher == MS_PORT_SRUN;
    if (nodes > 1 && srun) {
        ms_print(out, "# export HEAD_NODE=$(scontrol show hostnames "
                      "\"$SLURM_JOB_NODELIST\" | head -n 1)\n");
    }
    ms_print(out, "# %saccelerate launch --config_file THIS.yaml --num_machines %ld",
             srun ? "srun --ntasks-per-node 1 bash -c '" : "", nodes);
    if (nodes > 1) {
        ms_print(out,
                 " \\\n#     --machine_rank %s --main_process_ip $HEAD_NODE "
                 "--main_process_port 29500",
                 srun ? "$SLURM_NODEID" : "$NODE_RANK");
    }
    ms_print(out,
             " \\\n#     train.py --per_device_train_batch_size %ld "
             "--gradient_accumulation_steps %ld%s\n",
             plan->microbatch, ms_plan_microbatches(plan), srun ? "'" : "");
}

static void write_yaml(FILE *out, ms_arena *arena, const ms_plan *plan,
                       const ms_port_exported *exported,
                       const ms_port_export_options *options)
{
    ms_port_write_head(out, arena, "#", plan, exported);
    if (options->launcher != MS_PORT_NO_LAUNCHER)
        write_launch(out, plan, options);
    ms_yaml_write(out, arena, &exported->settings);
}

static const char *const ignored[] = {FSDP "auto_wrap_policy",
                                      FSDP "transformer_layer_cls_to_wrap",
                                      FSDP "backward_prefetch",
                                      FSDP "backward_prefetch_policy",
                                      FSDP "forward_prefetch",
                                      FSDP "cpu_ram_efficient_loading",
                                      FSDP "state_dict_type",
                                      FSDP "sync_module_states",
                                      FSDP "use_orig_params",
                                      FSDP "min_num_params",
                                      DEEPSPEED "gradient_clipping",
                                      DEEPSPEED "zero3_init_flag",
                                      DEEPSPEED "zero3_save_16bit_model",
                                      DEEPSPEED "deepspeed_multinode_launcher",
                                      DEEPSPEED "deepspeed_hostfile",
                                      SIZES "sp_backend",
                                      NULL};
static const char *const reserved[] = {"parallel", FSDP, DEEPSPEED, "megatron", NULL};
static const char *const marks[] = {
    "\ndistributed_type:",   "\nfsdp_config:",     "\ndeepspeed_config:",
    "\nparallelism_config:", "\nmixed_precision:", NULL};

const ms_port_format ms_port_accelerate = {
    .name = "accelerate",
    .stack = "accelerate",
    .rules = "accelerate",
    .other_rules = "deepspeed",
    .tables = {model_rows, plan_rows},
    .ignored = ignored,
    .reserved = reserved,
    .marks = marks,
    .read = read_yaml,
    .finish = finish,
    .write = write_yaml,
};
