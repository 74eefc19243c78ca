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

/* The kind that a file states; OF_DDP for words that take_type refuses. */
static long kind_of(const ms_port *port)
{
    for (int i = 0; i < port->settings->num; i++) {
        const ms_port_setting *s = &port->settings->rows[i];
        if (strcmp(s->key, "distributed_type") != 0 || s->value == NULL)
            continue;
        for (const ms_port_word *kind = kinds; kind->text != NULL; kind++)
            if (strcasecmp(s->value, kind->text) == 0)
                return kind->value;
    }
    return OF_DDP;
}

/* On export the stack's rules say whose job it is, on import the file does. */
static bool uses_deepspeed(const ms_port *port)
{
    if (port->rules == NULL)
        return kind_of(port) == OF_DEEPSPEED;
    return port->stack->rules != NULL && strncmp(port->stack->rules, "deepspeed", 9) == 0;
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

/* A plan of DeepSpeed has its stack, unless the user names one. */
static ms_status take_type(ms_port *port)
{
    long kind = OF_DDP;
    (void)ms_port_has(port, "compute_environment");
    MS_TRY(ms_port_take_word(port, "distributed_type", kinds, &kind));
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

/* Numbers of torch's ShardingStrategy, by which FSDP version 1 may be configured. */
enum {
    FULL_SHARD = 1,
    SHARD_GRAD_OP,
    NO_SHARD,
    HYBRID_SHARD,
    HYBRID_SHARD_ZERO2
};

/* Version 1 names a strategy with either of two keys. MS_EINPUT: they differ. */
static ms_status take_strategy(ms_port *port, long *strategy)
{
    static const ms_port_word words[] = {{"FULL_SHARD", FULL_SHARD},
                                         {"SHARD_GRAD_OP", SHARD_GRAD_OP},
                                         {"NO_SHARD", NO_SHARD},
                                         {"HYBRID_SHARD", HYBRID_SHARD},
                                         {"HYBRID_SHARD_ZERO2", HYBRID_SHARD_ZERO2},
                                         {"1", FULL_SHARD},
                                         {"2", SHARD_GRAD_OP},
                                         {"3", NO_SHARD},
                                         {"4", HYBRID_SHARD},
                                         {"5", HYBRID_SHARD_ZERO2},
                                         {0}};
    *strategy = FULL_SHARD;
    MS_TRY(ms_port_take_word(port, FSDP "reshard_after_forward", words, strategy));
    long other = *strategy;
    MS_TRY(ms_port_take_word(port, FSDP "sharding_strategy", words, &other));
    if (other != *strategy && ms_port_has(port, FSDP "reshard_after_forward"))
        return ms_port_fail(port, ms_port_find(port, FSDP "sharding_strategy"),
                            "fsdp_reshard_after_forward names another strategy");
    *strategy = other;
    return MS_OK;
}

static ms_status take_version(ms_port *port, long *version)
{
    *version = 1;
    return ms_port_take_whole(port, FSDP "version", 1, 2, version);
}

/* Replicas of FSDP's shards without sizes: version 1 may have one a machine of as many
 * GPUs as the file says, `stated` in all. */
static ms_status take_replicas(ms_port *port, long stated, long gpus, long *replicas)
{
    long version, strategy, machines = 1;
    MS_TRY(ms_port_take_whole(port, "num_machines", 1, MAX_RANKS, &machines));
    *replicas = kind_of(port) == OF_DDP ? gpus : 1;
    if (kind_of(port) != OF_FSDP)
        return MS_OK;
    MS_TRY(take_version(port, &version));
    if (version == 2)
        return MS_OK;
    MS_TRY(take_strategy(port, &strategy));
    if (strategy == HYBRID_SHARD || strategy == HYBRID_SHARD_ZERO2)
        *replicas = gpus == stated || stated < machines ? machines
                    : gpus < stated / machines          ? 1
                                                        : gpus / (stated / machines);
    return MS_OK;
}

/* MS_EINPUT: sizes that Accelerate launches only with FSDP of version 2. */
static ms_status check_sized(ms_port *port)
{
    long version;
    MS_TRY(take_version(port, &version));
    if (kind_of(port) == OF_FSDP && version == 2)
        return MS_OK;
    ms_port_setting *first = NULL;
    for (int i = 0; i < NUM_SIZES && first == NULL; i++)
        if (port->plan->size[sizes[i].axis] > 1)
            first = ms_port_find(port, sizes[i].key);
    if (first == NULL)
        return MS_OK;
    ms_port_fail(port, first, "parallelism_config needs version 2 of FSDP");
    return ms_hint(port->cx, "distributed_type: FSDP, with fsdp_version: 2");
}

/* Sizes are all stated, or none is: then data parallelism has all processes. */
static ms_status take_sizes(ms_port *port, long processes, long gpus)
{
    ms_plan *plan = port->plan;
    bool stated = false;
    long ulysses = 1;
    double product = 1.0;
    MS_TRY(ms_port_take_whole(port, SIZES "sp_size", 1, MAX_RANKS, &ulysses));
    if (ulysses > 1)
        return ms_port_fail(port, ms_port_find(port, SIZES "sp_size"),
                            "it needs distributed_type: DEEPSPEED");
    for (int i = 0; i < NUM_SIZES; i++) {
        stated = ms_port_has(port, sizes[i].key) || stated;
        MS_TRY(ms_port_take_whole(port, sizes[i].key, 1, MAX_RANKS,
                                  &plan->size[sizes[i].axis]));
        product *= (double)plan->size[sizes[i].axis];
    }
    long replicas;
    if (!stated) {
        MS_TRY(take_replicas(port, processes, gpus, &replicas));
        return ms_port_set_ranks(port, gpus, replicas);
    }
    if (product != (double)processes)
        return ms_port_fail(port, ms_port_find(port, "num_processes"),
                            "the sizes make %.0f ranks, not %ld", product, processes);
    MS_TRY(check_sized(port));
    return ms_port_fit_ranks(port, gpus);
}

static ms_status take_ranks(ms_port *port)
{
    long processes = 0;
    MS_TRY(ms_port_take_whole(port, "num_processes", 1, MAX_RANKS, &processes));
    if (processes == 0)
        return ms_port_fail_missing(port, "num_processes", "the number of all GPUs");
    if (port->gpus > 0 && port->gpus != processes && !port->overrides)
        return ms_port_fail(port, ms_port_find(port, "num_processes"),
                            "there are %ld processes, not %ld", processes, port->gpus);
    long gpus = port->gpus > 0 ? port->gpus : processes;
    (void)ms_port_has(port, "num_machines");
    if (uses_torch(port))
        return take_sizes(port, processes, gpus);
    MS_TRY(ms_port_take_whole(port, SIZES "sp_size", 1, MAX_RANKS,
                              &port->plan->size[MS_CP]));
    if (port->plan->size[MS_CP] > 1)
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
    bool given = ms_port_is_given(port, MS_CHOOSE_MICROBATCH);
    if (!ms_port_is_given(port, MS_CHOOSE_GLOBAL_BATCH)) {
        ms_port_assume(port, "%s%ld a step: the batch is the script's",
                       given ? "sequences: " : "micro-batches of 1 sequence, ",
                       plan->global_batch);
    } else if (!given) {
        ms_port_assume(port, "micro-batches of 1 sequence: the batch is the script's");
    }
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
    long version, strategy;
    ms_plan *plan = port->plan;
    MS_TRY(take_version(port, &version));
    if (version == 2) {
        plan->zero = 3;
        plan->reshard_after_forward = true;
        if (ms_port_has(port, FSDP "sharding_strategy"))
            ms_port_assume(port, FSDP "sharding_strategy has no effect");
        return ms_port_take_on(port, FSDP "reshard_after_forward",
                               &plan->reshard_after_forward);
    }
    MS_TRY(take_strategy(port, &strategy));
    plan->zero = strategy == NO_SHARD ? 0 : 3;
    plan->reshard_after_forward = strategy == FULL_SHARD || strategy == HYBRID_SHARD;
    return MS_OK;
}

static ms_status take_sharding(ms_port *port)
{
    static const ms_port_word nowhere[] = {{"none", 0}, {0}};
    long kind = kind_of(port), device = 0;
    port->plan->zero = 0;
    MS_TRY(ms_port_take_word(port, DEEPSPEED "offload_param_device", nowhere, &device));
    if (kind == OF_DEEPSPEED)
        return ms_port_take_whole(port, DEEPSPEED "zero_stage", 0, 3, &port->plan->zero);
    return kind == OF_FSDP ? take_fsdp(port) : MS_OK;
}

static const char *const sharding_keys[] = {
    FSDP "version",         FSDP "reshard_after_forward",     FSDP "sharding_strategy",
    DEEPSPEED "zero_stage", DEEPSPEED "offload_param_device", NULL};
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
                                      SIZES "sp_attn_implementation",
                                      SIZES "sp_seq_length",
                                      SIZES "sp_seq_length_is_variable",
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
    .kind_key = "distributed_type",
    .read = read_yaml,
    .finish = finish,
    .write = write_yaml,
};
