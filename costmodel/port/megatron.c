/* Megatron-LM: arguments of ranks, batch, schedule, sharding, tensors and experts. */
#include "base/print.h"
#include "costmodel/port/megatron_priv.h"
#include "costmodel/port/script.h"

#include <math.h>
#include <string.h>

/* ---- when arguments have effect ---- */

static bool has_tensor(const ms_port *port)
{
    return port->plan->size[MS_TP] > 1;
}

static bool has_context(const ms_port *port)
{
    return port->plan->size[MS_CP] > 1;
}

/* Sequences stay whole with a2a. */
static bool cuts_sequences(const ms_port *port)
{
    return has_context(port) && port->plan->cp_method != MS_CP_ULYSSES;
}

static bool has_experts(const ms_port *port)
{
    return port->moe;
}

static bool exchanges_tokens(const ms_port *port)
{
    return port->moe && port->plan->ep > 1;
}

static bool has_capacity(const ms_port *port)
{
    return port->plan->expert_capacity > 0.0;
}

/* ---- data parallelism ---- */

static long sharers(const ms_plan *plan)
{
    return plan->size[MS_DP_SHARD] * plan->size[MS_CP];
}

/* States below 32 bits and states in host memory need the distributed optimizer. */
static bool needs_distributed(const ms_plan *plan)
{
    return plan->optimizer_dtype == MS_STORE_BF16 ||
           plan->optimizer_dtype == MS_STORE_FP8 ||
           plan->offload_optimizer == MS_HOST_UPDATE;
}

/* torch FSDP2 has its own overlaps. */
static bool keeps_gathered(const ms_plan *plan)
{
    return sharers(plan) > 1 && plan->zero == 3 && !plan->reshard_after_forward;
}

static bool reduces_gradients(const ms_port *port)
{
    const ms_plan *plan = port->plan;
    return ms_plan_data_parallel(plan) * plan->size[MS_CP] > 1 && !keeps_gathered(plan);
}

static bool gathers_parameters(const ms_port *port)
{
    return reduces_gradients(port) && sharers(port->plan) > 1 && port->plan->zero > 0;
}

static const ms_port_word strategies[] = {
    {"no_shard", 0}, {"optim", 1}, {"optim_grads", 2}, {"optim_grads_params", 3}, {0}};

/* torch FSDP2 keeps parameters gathered between forward and backward; Megatron's own FSDP
 * gathers them again. */
static void put_zero(ms_port *port)
{
    const ms_plan *plan = port->plan;
    long zero = sharers(plan) > 1 ? plan->zero : 0;
    if (keeps_gathered(plan)) {
        ms_port_put(port, "--use-torch-fsdp2", NULL);
        ms_port_put(port, "--torch-fsdp2-no-reshard-after-forward", NULL);
        ms_port_put(port, "--no-gradient-accumulation-fusion", NULL);
        return;
    }
    if (zero == 0 && !needs_distributed(plan))
        return;
    ms_port_put(port, "--use-distributed-optimizer", NULL);
    if (zero >= 2) {
        ms_port_put(port,
                    ms_port_since(port, 14) ? "--use-megatron-fsdp" : "--use-custom-fsdp",
                    NULL);
        ms_port_put(port, "--data-parallel-sharding-strategy",
                    ms_port_word_of(strategies, zero));
    }
    if (plan->size[MS_DP_REPLICATE] > 1)
        ms_port_put_whole(port, "--num-distributed-optimizer-instances",
                          plan->size[MS_DP_REPLICATE]);
}

static const char *const zero_keys[] = {"--use-distributed-optimizer",
                                        "--use-megatron-fsdp",
                                        "--use-custom-fsdp",
                                        "--use-torch-fsdp2",
                                        "--torch-fsdp2-no-reshard-after-forward",
                                        "--no-gradient-accumulation-fusion",
                                        "--data-parallel-sharding-strategy",
                                        "--num-distributed-optimizer-instances",
                                        NULL};
static const int zero_choices[] = {MS_CHOOSE_RESHARD, MS_CHOOSE_DP_REPLICATE,
                                   MS_CHOOSE_DP_SHARD, -1};

/* The strategy counts with Megatron's own FSDP alone; the replicas are read at the end. */
static ms_status take_zero(ms_port *port)
{
    ms_plan *plan = port->plan;
    plan->reshard_after_forward = true;
    (void)ms_port_has(port, "--no-gradient-accumulation-fusion");
    bool distributed = ms_port_has(port, "--use-distributed-optimizer");
    bool torch_fsdp = ms_port_has(port, "--use-torch-fsdp2");
    bool fsdp = ms_port_has(port, "--use-megatron-fsdp") ||
                ms_port_has(port, "--use-custom-fsdp");
    bool keeps = ms_port_has(port, "--torch-fsdp2-no-reshard-after-forward");
    plan->zero = distributed ? 1 : 0;
    if (torch_fsdp) {
        plan->zero = 3;
        plan->reshard_after_forward = !keeps;
        return MS_OK;
    }
    if (!fsdp)
        return MS_OK;
    plan->zero = 3;
    return ms_port_take_word(port, "--data-parallel-sharding-strategy", strategies,
                             &plan->zero);
}

/* ---- order of axes ---- */

static bool is_before(const ms_plan *plan, ms_plan_axis one, ms_plan_axis other)
{
    for (int i = 0; i < MS_NUM_PLAN_AXES; i++)
        if (plan->order[i] == one || plan->order[i] == other)
            return plan->order[i] == one;
    return false;
}

/* Whether data-parallel axes above size 1 lie outside a pipeline; rules refuse all other
 * orders than these two. */
static bool has_outer_data(const ms_port *port)
{
    const ms_plan *plan = port->plan;
    if (plan->size[MS_PP] == 1)
        return false;
    return (plan->size[MS_DP_SHARD] > 1 && is_before(plan, MS_DP_SHARD, MS_PP)) ||
           (plan->size[MS_DP_REPLICATE] > 1 && is_before(plan, MS_DP_REPLICATE, MS_PP));
}

static void put_order(ms_port *port)
{
    if (has_outer_data(port))
        ms_port_put(port, "--use-tp-pp-dp-mapping", NULL);
}

static ms_status take_order(ms_port *port)
{
    static const unsigned char mapped[] = {MS_DP_REPLICATE, MS_DP_SHARD, MS_PP, MS_CP,
                                           MS_TP};
    if (ms_port_has(port, "--use-tp-pp-dp-mapping"))
        for (int i = 0; i < MS_NUM_PLAN_AXES; i++)
            port->plan->order[i] = mapped[i];
    return MS_OK;
}

/* ---- experts ---- */

static void put_etp(ms_port *port)
{
    const ms_plan *plan = port->plan;
    if (port->moe && plan->etp != plan->size[MS_TP])
        ms_port_put_whole(port, "--expert-tensor-parallel-size", plan->etp);
}

/* Absent: tp. Without experts the number means nothing. */
static ms_status take_etp(ms_port *port)
{
    port->moe = port->model->moe.num_experts > 0;
    long etp = port->plan->size[MS_TP];
    bool is_given = ms_port_has(port, "--expert-tensor-parallel-size");
    MS_TRY(ms_port_take_whole(port, "--expert-tensor-parallel-size", 1,
                              (long)ms_plan_fields[MS_CHOOSE_ETP].high, &etp));
    port->plan->etp = port->moe ? etp : 1;
    if (port->moe && !is_given && etp > 1)
        ms_port_assume(port, "--expert-tensor-parallel-size %ld, that of tensors", etp);
    return MS_OK;
}

static const ms_port_word dispatchers[] = {{"allgather", MS_DISPATCH_ALL_GATHER},
                                           {"alltoall", MS_DISPATCH_ALL_TO_ALL},
                                           {"flex", MS_DISPATCH_DEEPEP},
                                           {0}};
static const ms_port_word backends[] = {
    {"deepep", MS_DISPATCH_DEEPEP}, {"hybridep", MS_DISPATCH_HYBRIDEP}, {0}};

/* The stack's own way is priced as an all-to-all. */
static void put_dispatcher(ms_port *port)
{
    ms_dispatcher kind = port->plan->dispatcher;
    if (!exchanges_tokens(port))
        return;
    bool flex = kind == MS_DISPATCH_DEEPEP || kind == MS_DISPATCH_HYBRIDEP;
    ms_port_put(port, "--moe-token-dispatcher-type",
                flex ? "flex"
                     : ms_port_word_of(dispatchers, kind == MS_DISPATCH_OF_STACK
                                                        ? MS_DISPATCH_ALL_TO_ALL
                                                        : (long)kind));
    if (flex && ms_port_since(port, 16))
        ms_port_put(port, "--moe-flex-dispatcher-backend",
                    ms_port_word_of(backends, kind));
    else if (kind == MS_DISPATCH_HYBRIDEP)
        ms_port_leave_choice(port, MS_CHOOSE_MOE_DISPATCHER);
    else if (flex)
        ms_port_put(port, "--moe-enable-deepep", NULL);
}

static ms_status take_dispatcher(ms_port *port)
{
    long kind = MS_DISPATCH_ALL_GATHER, backend = MS_DISPATCH_DEEPEP;
    bool is_given = ms_port_has(port, "--moe-token-dispatcher-type");
    (void)ms_port_has(port, "--moe-enable-deepep");
    MS_TRY(ms_port_take_word(port, "--moe-token-dispatcher-type", dispatchers, &kind));
    MS_TRY(ms_port_take_word(port, "--moe-flex-dispatcher-backend", backends, &backend));
    if (!exchanges_tokens(port))
        return MS_OK;
    port->plan->dispatcher = (ms_dispatcher)(kind == MS_DISPATCH_DEEPEP ? backend : kind);
    if (!is_given)
        ms_port_assume(port, "--moe-token-dispatcher-type allgather");
    return MS_OK;
}

static const char *const dispatcher_keys[] = {"--moe-token-dispatcher-type",
                                              "--moe-flex-dispatcher-backend",
                                              "--moe-enable-deepep", NULL};

/* ---- activations in host memory ---- */

/* Whole layers; only without a pipeline and without recomputation (arguments.py). */
static void put_offload(ms_port *port)
{
    const ms_plan *plan = port->plan;
    double layers = plan->offload_activations_frac * (double)port->model->num_layers;
    if (layers == 0.0)
        return;
    if (fabs(layers - round(layers)) > 1e-9 || round(layers) >= port->model->num_layers ||
        plan->size[MS_PP] > 1 || plan->recompute != MS_RECOMPUTE_NONE) {
        ms_port_leave_choice(port, MS_CHOOSE_OFFLOAD_ACTIVATIONS);
        return;
    }
    ms_port_put(port, "--cpu-offloading", NULL);
    ms_port_put_whole(port, "--cpu-offloading-num-layers", (long)round(layers));
}

static const char *const offload_keys[] = {"--cpu-offloading",
                                           "--cpu-offloading-num-layers", NULL};

static ms_status take_offload(ms_port *port)
{
    long layers = 0, all = port->model->num_layers;
    MS_TRY(ms_port_take_whole(port, "--cpu-offloading-num-layers", 0, all, &layers));
    if (ms_port_has(port, "--cpu-offloading") && all > 0)
        port->plan->offload_activations_frac = (double)layers / (double)all;
    return MS_OK;
}

/* ---- recomputation ---- */

static const ms_port_word granularities[] = {
    {"selective", MS_RECOMPUTE_SELECTIVE}, {"full", MS_RECOMPUTE_FULL}, {0}};

static void put_recompute(ms_port *port)
{
    const ms_plan *plan = port->plan;
    const char *word = ms_port_word_of(granularities, plan->recompute);
    if (word == NULL) {
        if (plan->recompute != MS_RECOMPUTE_NONE)
            ms_port_leave_choice(port, MS_CHOOSE_RECOMPUTE);
        return;
    }
    ms_port_put(port, "--recompute-granularity", word);
    if (plan->recompute == MS_RECOMPUTE_FULL) {
        bool block = plan->recompute_layers > 0;
        ms_port_put(port, "--recompute-method", block ? "block" : "uniform");
        ms_port_put_whole(port, "--recompute-num-layers",
                          block ? plan->recompute_layers : 1);
        return;
    }
    const char *modules = "";
    for (int i = 0; i < MS_NUM_MODULES; i++)
        if ((plan->recompute_modules >> i & 1) != 0)
            modules = ms_arena_printf(port->cx->arena, "%s%s%s", modules,
                                      modules[0] == '\0' ? "" : " ", ms_module_names[i]);
    if (modules[0] != '\0')
        ms_port_put(port, "--recompute-modules", modules);
}

static ms_status take_modules(ms_port *port)
{
    const ms_port_setting *setting = ms_port_find(port, "--recompute-modules");
    if (setting == NULL) {
        ms_port_assume(port, "--recompute-modules core_attn");
        return MS_OK;
    }
    char *list =
        ms_arena_strdup(port->cx->arena, setting->value == NULL ? "" : setting->value);
    for (char *c = list; *c != '\0'; c++)
        *c = *c == ' ' ? ',' : *c;
    return ms_modules_parse(list, &port->plan->recompute_modules)
               ? MS_OK
               : ms_port_fail(port, setting,
                              "\"%s\" are no modules that a plan can recompute", list);
}

static ms_status take_full(ms_port *port)
{
    static const ms_port_word methods[] = {{"uniform", 0}, {"block", 1}, {0}};
    long block = -1, layers = 0;
    MS_TRY(ms_port_take_word(port, "--recompute-method", methods, &block));
    if (block < 0)
        return ms_port_fail_missing(port, "--recompute-method",
                                    "full recomputation needs uniform or block");
    MS_TRY(ms_port_take_whole(port, "--recompute-num-layers", 1, 1048576, &layers));
    if (layers == 0)
        return ms_port_fail_missing(port, "--recompute-num-layers",
                                    "full recomputation needs it");
    port->plan->recompute_layers = block == 1 ? layers : 0;
    if (block == 0 && layers > 1) {
        ms_port_assume(port,
                       "--recompute-num-layers 1 in place of %ld: plans keep every "
                       "layer's input",
                       layers);
    }
    return MS_OK;
}

static ms_status take_recompute(ms_port *port)
{
    long mode = ms_port_has(port, "--recompute-activations") ? MS_RECOMPUTE_SELECTIVE
                                                             : MS_RECOMPUTE_NONE;
    MS_TRY(ms_port_take_word(port, "--recompute-granularity", granularities, &mode));
    port->plan->recompute = (ms_recompute)mode;
    return mode == MS_RECOMPUTE_SELECTIVE ? take_modules(port)
           : mode == MS_RECOMPUTE_FULL    ? take_full(port)
                                          : MS_OK;
}

static const char *const recompute_keys[] = {
    "--recompute-granularity", "--recompute-method",      "--recompute-num-layers",
    "--recompute-modules",     "--recompute-activations", NULL};
static const int recompute_choices[] = {MS_CHOOSE_RECOMPUTE_LAYERS,
                                        MS_CHOOSE_RECOMPUTE_MODULES,
                                        MS_CHOOSE_RECOMPUTE_BUDGET, -1};

/* ---- the table ---- */

static const char *const layer_keys[] = {
    "--num-layers-per-virtual-pipeline-stage",
    "--num-virtual-stages-per-pipeline-rank",
    "--pipeline-model-parallel-layout",
    "--decoder-first-pipeline-num-layers",
    "--decoder-last-pipeline-num-layers",
    "--account-for-embedding-in-pipeline-split",
    "--account-for-loss-in-pipeline-split",
    "--overlap-moe-expert-parallel-comm",
    "--microbatch-group-size-per-virtual-pipeline-stage",
    NULL};
static const int layer_choices[] = {MS_CHOOSE_VIRTUAL_STAGES, MS_CHOOSE_GROUP,
                                    MS_CHOOSE_STAGE_LAYERS, MS_CHOOSE_MEMORY_LIMIT, -1};

static const ms_port_word cp_types[] = {
    {"p2p", MS_CP_RING}, {"all_gather", MS_CP_ALL_GATHER}, {"a2a", MS_CP_ULYSSES}, {0}};

#define SIZE(option, choose)                                                             \
    .kind = MS_PORT_WHOLE, .key = (option), .choice = (choose), .absent = 1
#define FLAG(option, choose) .kind = MS_PORT_ON, .key = (option), .choice = (choose)
#define OWN(choose, puts, takes)                                                         \
    .kind = MS_PORT_OWN, .choice = (choose), .put = (puts), .take = (takes)
#define ALSO(option) .kind = MS_PORT_ALSO, .choice = -1, .key = (option)

const ms_port_row ms_megatron_plan_rows[] = {
    {SIZE("--tensor-model-parallel-size", MS_CHOOSE_TP), .always = true},
    {SIZE("--pipeline-model-parallel-size", MS_CHOOSE_PP), .always = true},
    {SIZE("--context-parallel-size", MS_CHOOSE_CP), .always = true},
    {SIZE("--expert-model-parallel-size", MS_CHOOSE_EP)},
    {OWN(MS_CHOOSE_ETP, put_etp, take_etp), .key = "--expert-tensor-parallel-size"},
    {.kind = MS_PORT_WHOLE,
     .key = "--seq-length",
     .choice = MS_CHOOSE_SEQUENCE_LENGTH,
     .always = true,
     .required = true},
    {.kind = MS_PORT_WHOLE,
     .key = "--micro-batch-size",
     .choice = MS_CHOOSE_MICROBATCH,
     .always = true,
     .required = true},
    {.kind = MS_PORT_WHOLE,
     .key = "--global-batch-size",
     .choice = MS_CHOOSE_GLOBAL_BATCH,
     .absent = -1},
    {OWN(MS_CHOOSE_SCHEDULE, ms_megatron_put_layers, ms_megatron_take_layers),
     .keys = layer_keys, .choices = layer_choices},
    {OWN(MS_CHOOSE_ORDER, put_order, take_order), .key = "--use-tp-pp-dp-mapping"},
    {OWN(MS_CHOOSE_ZERO, put_zero, take_zero), .keys = zero_keys,
     .choices = zero_choices},
    {ALSO("--overlap-grad-reduce"), .when = reduces_gradients},
    {ALSO("--overlap-param-gather"), .when = gathers_parameters},
    {FLAG("--sequence-parallel", MS_CHOOSE_SEQUENCE_PARALLEL), .when = has_tensor},
    {FLAG("--tp-comm-overlap", MS_CHOOSE_ASYNC_TP), .when = has_tensor},
    {.kind = MS_PORT_FIXED, .choice = MS_CHOOSE_LOSS_PARALLEL, .absent = 1},
    {.kind = MS_PORT_WORD,
     .key = "--cp-comm-type",
     .choice = MS_CHOOSE_CP_METHOD,
     .words = cp_types,
     .absent = MS_CP_RING,
     .when = has_context},
    {.kind = MS_PORT_FIXED,
     .choice = MS_CHOOSE_CP_BALANCE,
     .absent = MS_CP_HEAD_TAIL,
     .when = cuts_sequences},
    {OWN(MS_CHOOSE_RECOMPUTE, put_recompute, take_recompute), .keys = recompute_keys,
     .choices = recompute_choices},
    {FLAG("--distribute-saved-activations", MS_CHOOSE_PARTITION_ACTIVATIONS),
     .when = has_tensor},
    {OWN(MS_CHOOSE_OFFLOAD_ACTIVATIONS, put_offload, take_offload), .keys = offload_keys},
    {OWN(MS_CHOOSE_MOE_DISPATCHER, put_dispatcher, take_dispatcher),
     .keys = dispatcher_keys},
    {ALSO("--moe-grouped-gemm"), .when = has_experts},
    {FLAG("--moe-shared-expert-overlap", MS_CHOOSE_SHARED_OVERLAP),
     .when = exchanges_tokens},
    {.kind = MS_PORT_NUMBER,
     .key = "--moe-expert-capacity-factor",
     .choice = MS_CHOOSE_EXPERT_CAPACITY,
     .when = has_experts},
    {FLAG("--moe-pad-expert-input-to-capacity", MS_CHOOSE_PAD_EXPERTS),
     .when = has_capacity},
    {0},
};

/* ---- the end of an import ---- */

/* Replicas of the shards; without shards all ranks are in dp_shard, where zero 0 leaves
 * them whole. */
static ms_status take_ranks(ms_port *port)
{
    long gpus = port->gpus, replicas = 1;
    MS_TRY(ms_script_ranks(port, &gpus));
    gpus = port->gpus > 0 ? port->gpus : gpus;
    if (gpus == 0)
        return ms_port_fail_missing(port, "the number of GPUs",
                                    "--gpus N; torchrun's --nnodes and --nproc-per-node, "
                                    "and srun's --nodes and --ntasks-per-node are read");
    MS_TRY(ms_port_take_whole(port, "--num-distributed-optimizer-instances", 1, gpus,
                              &replicas));
    return ms_port_set_ranks(port, gpus, port->plan->zero > 0 ? replicas : 1);
}

static ms_status finish(ms_port *port)
{
    ms_plan *plan = port->plan;
    MS_TRY(take_ranks(port));
    if (plan->global_batch > 0)
        return MS_OK;
    plan->global_batch = plan->microbatch * ms_plan_data_parallel(plan);
    if (!ms_port_is_given(port, MS_CHOOSE_GLOBAL_BATCH)) {
        ms_port_assume(port, "--global-batch-size %ld, one micro-batch a rank",
                       plan->global_batch);
    }
    return MS_OK;
}

/* Even stages need no list, nor do stages of which both ends have a layer less. */
static bool needs_layers(const ms_plan *plan, const ms_model *model)
{
    long stages = plan->size[MS_PP] * plan->virtual_stages;
    return model->num_layers % stages != 0 && (model->num_layers + 2) % stages != 0;
}

/* ---- the file ---- */

static ms_status read_script(ms_port *port, const char *name, const char *text,
                             size_t length)
{
    static const ms_script_style style = {.example = "--tensor-model-parallel-size 8"};
    return ms_script_read(port, name, text, length, &style);
}

static void write_script(FILE *out, ms_arena *arena, const ms_plan *plan,
                         const ms_port_exported *exported,
                         const ms_port_export_options *options)
{
    bool alone = options->launcher == MS_PORT_NO_LAUNCHER;
    if (!alone)
        ms_print(out, "#!/bin/bash\n");
    ms_port_write_head(out, arena, "#", plan, exported);
    if (!alone) {
        ms_print(out, "# to be added: data, tokenizer, learning rate, training length, "
                      "checkpoints\n");
        if (plan->size[MS_TP] * plan->size[MS_CP] > 1 && plan->zero < 2)
            ms_print(out, "export CUDA_DEVICE_MAX_CONNECTIONS=1\n");
        ms_port_write_launcher(out, plan, options, "", "pretrain_gpt.py");
    }
    for (int i = 0; i < exported->settings.num; i++) {
        const ms_port_setting *s = &exported->settings.rows[i];
        bool harmless =
            s->value == NULL || strpbrk(s->value, "|*()[]+ ") == NULL || !s->quoted;
        if (i > 0 || !alone)
            ms_print(out, alone ? "\n" : " \\\n    ");
        ms_print(out, "%s", s->key);
        if (s->value != NULL)
            ms_print(out, harmless ? " %s" : " '%s'", s->value);
    }
    ms_print(out, "\n");
}

/* Arguments whose names have reserved parts, and that change no plan. */
static const char *const ignored[] = {
    "--data-parallel-sharding-strategy", /* without FSDP */
    "--overlap-p2p-communication",
    "--no-overlap-p2p-communication",
    "--no-async-tensor-model-parallel-allreduce",
    "--rampup-batch-size",
    "--decrease-batch-size-if-needed",
    "--moe-aux-loss-coeff",
    "--moe-z-loss-coeff",
    "--moe-router-load-balancing-type",
    "--moe-router-dtype",
    "--moe-router-bias-update-rate",
    "--moe-permute-fusion",
    "--moe-router-fusion",
    "--moe-per-layer-logging",
    "--moe-use-legacy-grouped-gemm",
    "--moe-token-drop-policy",
    "--moe-router-force-load-balancing",
    "--moe-input-jitter-eps",
    "--moe-router-padding-for-fp8",
    "--fp8-margin",
    "--fp8-interval",
    "--fp8-amax-history-len",
    "--fp8-amax-compute-algo",
    "--fsdp-double-buffer",
    "--use-nccl-ub",
    "--use-dist-ckpt",
    "--ckpt-fully-parallel-save",
    "--ckpt-fully-parallel-load",
    "--ckpt-assume-constant-structure",
    "--no-ckpt-fully-parallel-save",
    "--distributed-backend",
    "--distributed-timeout-minutes",
    NULL};
static const char *const reserved[] = {
    "parallel", "pipeline",    "virtual",    "shard",
    "fsdp",     "recompute",   "offload",    "checkpoint-activations",
    "--moe-",   "expert",      "fp8",        "fp4",
    "wgrad",    "distributed", "batch-size", NULL};
static const char *const marks[] = {"--num-layers", "--micro-batch-size",
                                    "--tensor-model-parallel-size",
                                    "--pipeline-model-parallel-size", NULL};

const ms_port_format ms_port_megatron = {
    .name = "megatron",
    .stack = "megatron",
    .rules = "megatron",
    .tables = {ms_megatron_model_rows, ms_megatron_plan_rows, ms_megatron_type_rows},
    .ignored = ignored,
    .reserved = reserved,
    .marks = marks,
    .read = read_script,
    .finish = finish,
    .write = write_script,
    .needs_layers = needs_layers,
};
