/* torchtitan 0.2: its configuration in TOML. Sources: pytorch/torchtitan v0.2.2 (73a0e697,
 * 2026-02-20), torchtitan/config/job_config.py, distributed/parallel_dims.py,
 * distributed/pipeline_parallel.py, distributed/activation_checkpoint.py; names of models
 * and flavors (models/) from memory. */
#include "base/print.h"
#include "costmodel/port/port_priv.h"
#include "costmodel/port/toml.h"
#include "costmodel/port/torchtitan_priv.h"

#include <string.h>

/* ---- model ---- */

typedef struct flavor {
    const char *model; /* name in configs/models */
    const char *name, *flavor;
} flavor;

static const flavor flavors[] = {{"llama-3.1-8b", "llama3", "8B"},
                                 {"llama-3.1-70b", "llama3", "70B"},
                                 {"llama-3.1-405b", "llama3", "405B"},
                                 {"llama-4-scout", "llama4", "17bx16e"},
                                 {"llama-4-maverick", "llama4", "17bx128e"},
                                 {"deepseek-v2-lite", "deepseek_v3", "16B"},
                                 {"deepseek-v2", "deepseek_v3", "236B"},
                                 {"deepseek-v3", "deepseek_v3", "671B"},
                                 {"qwen3-0.6b", "qwen3", "0.6B"},
                                 {"qwen3-1.7b", "qwen3", "1.7B"},
                                 {"qwen3-4b", "qwen3", "4B"},
                                 {"qwen3-8b", "qwen3", "8B"},
                                 {"qwen3-14b", "qwen3", "14B"},
                                 {"qwen3-32b", "qwen3", "32B"},
                                 {"qwen3-30b-a3b", "qwen3", "30B-A3B"},
                                 {"qwen3-235b-a22b", "qwen3", "235B-A22B"},
                                 {"gpt-oss-20b", "gpt_oss", "20b"},
                                 {"gpt-oss-120b", "gpt_oss", "120b"}};
#define NUM_FLAVORS (sizeof flavors / sizeof *flavors)

static void put_model(ms_port *port)
{
    for (size_t i = 0; i < NUM_FLAVORS; i++) {
        if (strcmp(flavors[i].model, port->model->name) == 0) {
            ms_port_put_text(port, "model.name", flavors[i].name);
            ms_port_put_text(port, "model.flavor", flavors[i].flavor);
            return;
        }
    }
    ms_port_leave_out(port, "model %s, which has no flavor", port->model->name);
}

/* The model of the flavor, unless the user names another. */
static ms_status take_model(ms_port *port)
{
    const ms_port_setting *name = ms_port_find(port, "model.name");
    const ms_port_setting *own = ms_port_find(port, "model.flavor");
    for (size_t i = 0; i < NUM_FLAVORS && port->plan->model == NULL; i++)
        if (name != NULL && own != NULL && strcmp(flavors[i].name, name->value) == 0 &&
            strcmp(flavors[i].flavor, own->value) == 0)
            port->plan->model = flavors[i].model;
    if (port->plan->model != NULL)
        return MS_OK;
    if (own == NULL)
        return ms_port_fail_missing(port, "model.flavor", "or --model NAME");
    ms_port_fail(port, own, "\"%s\" is no flavor whose model is known", own->value);
    return ms_hint(port->cx, "--model NAME says which model it is");
}

static const char *const model_keys[] = {"model.name", "model.flavor", NULL};

static const ms_port_row model_rows[] = {
    {.kind = MS_PORT_OWN,
     .of = MS_OF_MODEL,
     .put = put_model,
     .take = take_model,
     .keys = model_keys},
    {0},
};

/* ---- when keys have effect ---- */

static bool has_tensor(const ms_port *port)
{
    return port->plan->size[MS_TP] > 1;
}

static bool has_context(const ms_port *port)
{
    return port->plan->size[MS_CP] > 1;
}

static bool has_pipeline(const ms_port *port)
{
    return port->plan->size[MS_PP] > 1;
}

static bool shards(const ms_port *port)
{
    return port->plan->size[MS_DP_SHARD] * port->plan->size[MS_CP] > 1;
}

static bool exchanges_tokens(const ms_port *port)
{
    return port->plan->ep > 1;
}

/* ---- ranks ---- */

static ms_status take_ranks(ms_port *port)
{
    ms_plan *plan = port->plan;
    long shard = 0, others = 1;
    const ms_port_setting *stated =
        ms_port_find(port, "parallelism.data_parallel_shard_degree");
    if (stated != NULL && (stated->value == NULL || strcmp(stated->value, "-1") != 0))
        MS_TRY(ms_port_take_whole(port, "parallelism.data_parallel_shard_degree", 1,
                                  16777216, &shard));
    for (int axis = 0; axis < MS_NUM_PLAN_AXES; axis++)
        others *= axis == MS_DP_SHARD ? 1 : plan->size[axis];
    if (shard == 0 && port->gpus == 0)
        return ms_port_fail_missing(
            port, "the number of GPUs",
            "--gpus N: data_parallel_shard_degree takes the rest");
    plan->size[MS_DP_SHARD] = shard > 0 ? shard : port->gpus / others;
    plan->gpus = plan->size[MS_DP_SHARD] * others;
    if (port->gpus == 0 || (plan->gpus == port->gpus && plan->gpus > 0))
        return MS_OK;
    if (port->overrides && shard > 0)
        return ms_port_fit_ranks(port, port->gpus);
    return ms_port_fail(port, stated != NULL ? stated : &port->settings->rows[0],
                        "the degrees make %ld ranks, not %ld", plan->gpus, port->gpus);
}

static void put_ranks(ms_port *port)
{
    ms_port_put_whole(port, "parallelism.data_parallel_shard_degree",
                      port->plan->size[MS_DP_SHARD]);
}

/* ---- batch ---- */

#define LOCAL      "training.local_batch_size"
#define GLOBAL     "training.global_batch_size"
#define MICROBATCH "parallelism.pipeline_parallel_microbatch_size"

/* The local batch of a pipeline is that of a whole flush; otherwise it is a
 * micro-batch, and gradients accumulate over several. */
static void put_batch(ms_port *port)
{
    const ms_plan *plan = port->plan;
    bool piped = has_pipeline(port);
    ms_port_put_whole(port, "training.seq_len", plan->sequence_length);
    ms_port_put_whole(port, LOCAL,
                      piped ? plan->microbatch * ms_plan_microbatches(plan)
                            : plan->microbatch);
    ms_port_put_whole(port, GLOBAL, plan->global_batch);
    if (piped)
        ms_port_put_whole(port, MICROBATCH, plan->microbatch);
}

static ms_status take_batch(ms_port *port)
{
    ms_plan *plan = port->plan;
    long local = 8, global = -1, microbatch = 1;
    MS_TRY(take_ranks(port));
    long dp = ms_plan_data_parallel(plan);
    if (!ms_port_has(port, LOCAL) && !ms_port_is_given(port, MS_CHOOSE_MICROBATCH))
        ms_port_assume(port, LOCAL " 8");
    plan->sequence_length = 2048;
    MS_TRY(ms_port_take_whole(port, "training.seq_len", 1, 4294967296,
                              &plan->sequence_length));
    MS_TRY(ms_port_take_whole(port, LOCAL, 1, 4294967296, &local));
    MS_TRY(ms_port_take_whole(port, GLOBAL, -1, 4294967296, &global));
    MS_TRY(ms_port_take_whole(port, MICROBATCH, 1, 4294967296, &microbatch));
    plan->global_batch = global > 0 ? global : local * dp;
    plan->microbatch = has_pipeline(port) ? microbatch : local;
    if (global < 0 && !ms_port_is_given(port, MS_CHOOSE_GLOBAL_BATCH))
        ms_port_assume(port, GLOBAL " %ld, one local batch a rank", plan->global_batch);
    if (has_pipeline(port) && plan->global_batch != local * dp)
        return ms_port_fail(port, ms_port_find(port, GLOBAL),
                            "several flushes of the pipeline a step: no plan has them");
    return MS_OK;
}

static const char *const batch_keys[] = {"training.seq_len", LOCAL, GLOBAL, MICROBATCH,
                                         NULL};
static const int batch_choices[] = {MS_CHOOSE_GLOBAL_BATCH, MS_CHOOSE_MICROBATCH, -1};

/* ---- sharding ---- */

#define RESHARD "parallelism.fsdp_reshard_after_forward"

static void put_reshard(ms_port *port)
{
    const ms_plan *plan = port->plan;
    if (!shards(port))
        return;
    if (plan->zero != 3)
        ms_port_leave_choice(port, MS_CHOOSE_ZERO);
    ms_port_put_text(port, RESHARD, plan->reshard_after_forward ? "always" : "never");
}

static ms_status take_reshard(ms_port *port)
{
    static const ms_port_word words[] = {
        {"default", 2}, {"always", 1}, {"never", 0}, {0}};
    long word = 2;
    MS_TRY(ms_port_take_word(port, RESHARD, words, &word));
    port->plan->zero = shards(port) ? 3 : 0;
    port->plan->reshard_after_forward = word == 2 ? !has_pipeline(port) : word == 1;
    if (word == 2 && shards(port) && !ms_port_is_given(port, MS_CHOOSE_RESHARD)) {
        ms_port_assume(port, RESHARD " %s",
                       port->plan->reshard_after_forward ? "always" : "never");
    }
    return MS_OK;
}

static const int reshard_choices[] = {MS_CHOOSE_RESHARD, -1};

static void put_loss(ms_port *port)
{
    if (has_tensor(port) && !port->plan->loss_parallel)
        ms_port_put(port, "parallelism.disable_loss_parallel", "true");
}

static ms_status take_loss(ms_port *port)
{
    bool off = false;
    MS_TRY(ms_port_take_on(port, "parallelism.disable_loss_parallel", &off));
    port->plan->loss_parallel = !off || !has_tensor(port);
    return MS_OK;
}

/* ---- recomputation ---- */

#define MODE "activation_checkpoint.mode"

static const ms_port_word modes[] = {{"none", MS_RECOMPUTE_NONE},
                                     {"selective", MS_RECOMPUTE_PER_OP},
                                     {"full", MS_RECOMPUTE_FULL},
                                     {"memory_budget", MS_RECOMPUTE_AUTO},
                                     {0}};

static void put_recompute(ms_port *port)
{
    const ms_plan *plan = port->plan;
    const char *word = ms_port_word_of(modes, plan->recompute);
    bool partial = plan->recompute == MS_RECOMPUTE_FULL && plan->recompute_layers > 0;
    if (word == NULL || partial) {
        ms_port_leave_choice(port,
                             partial ? MS_CHOOSE_RECOMPUTE_LAYERS : MS_CHOOSE_RECOMPUTE);
        return;
    }
    ms_port_put_text(port, MODE, word);
    if (plan->recompute == MS_RECOMPUTE_PER_OP)
        ms_port_put_text(port, "activation_checkpoint.selective_ac_option", "op");
    if (plan->recompute == MS_RECOMPUTE_AUTO && plan->recompute_budget_frac >= 0.0)
        ms_port_put_number(port, "activation_checkpoint.memory_budget",
                           plan->recompute_budget_frac);
}

/* Every n-th layer in full: as many of each chunk, which costs the same. */
static ms_status take_every(ms_port *port, const ms_port_setting *option)
{
    ms_plan *plan = port->plan;
    long every = 2, chunks = plan->size[MS_PP] * plan->virtual_stages;
    MS_TRY(ms_port_take_whole(port, "activation_checkpoint.selective_ac_option", 1, 10000,
                              &every));
    plan->recompute = MS_RECOMPUTE_FULL;
    long layers = port->model->num_layers / chunks / every;
    plan->recompute_layers = every == 1 ? 0 : layers;
    if (every > 1 && layers == 0)
        plan->recompute = MS_RECOMPUTE_NONE;
    ms_port_assume(port,
                   "activation_checkpoint.selective_ac_option \"%ld\"%s: every such "
                   "layer is recomputed, as %ld of each chunk",
                   every, option == NULL ? " by default" : "", layers);
    return MS_OK;
}

static ms_status take_recompute(ms_port *port)
{
    long mode = MS_RECOMPUTE_PER_OP;
    const ms_port_setting *option =
        ms_port_find(port, "activation_checkpoint.selective_ac_option");
    MS_TRY(ms_port_take_word(port, MODE, modes, &mode));
    port->plan->recompute = (ms_recompute)mode;
    if (mode == MS_RECOMPUTE_PER_OP &&
        (option == NULL || strcmp(option->value, "op") != 0))
        return take_every(port, option);
    if (mode != MS_RECOMPUTE_AUTO)
        return MS_OK;
    port->plan->recompute_budget_frac = 0.5;
    return ms_port_take_number(port, "activation_checkpoint.memory_budget", 0.0, 1.0,
                               &port->plan->recompute_budget_frac);
}

static const char *const recompute_keys[] = {MODE,
                                             "activation_checkpoint.selective_ac_option",
                                             "activation_checkpoint.memory_budget", NULL};
static const int recompute_choices[] = {MS_CHOOSE_RECOMPUTE_LAYERS,
                                        MS_CHOOSE_RECOMPUTE_BUDGET,
                                        MS_CHOOSE_RECOMPUTE_MODULES, -1};

/* ---- types ---- */

#define CONVERTERS "model.converters"
#define FP8_RECIPE "quantize.linear.float8.recipe_name"
#define FP8_GATHER "quantize.linear.float8.enable_fsdp_float8_all_gather"

static const ms_port_word fp8_recipes[] = {
    {"tensorwise", MS_RECIPE_TENSORWISE}, {"rowwise", MS_RECIPE_ROWWISE}, {0}};

static void put_compute(ms_port *port)
{
    const ms_plan *plan = port->plan;
    bool mx = plan->recipe == MS_RECIPE_MXFP8;
    if (plan->compute == MS_FP32) {
        ms_port_put_text(port, "training.mixed_precision_param", "float32");
    } else if (plan->compute == MS_FP8) {
        const char *word = ms_port_word_of(fp8_recipes, plan->recipe);
        ms_port_put(port, CONVERTERS, mx ? "[\"mx\"]" : "[\"float8\"]");
        if (word != NULL)
            ms_port_put_text(port, FP8_RECIPE, word);
        else if (!mx && plan->recipe != MS_RECIPE_DEFAULT)
            ms_port_leave_choice(port, MS_CHOOSE_RECIPE);
    } else if (plan->compute != MS_BF16) {
        ms_port_leave_choice(port, MS_CHOOSE_COMPUTE);
    }
}

static ms_status take_compute(ms_port *port)
{
    static const ms_port_word types[] = {
        {"bfloat16", MS_BF16}, {"float32", MS_FP32}, {0}};
    ms_plan *plan = port->plan;
    long type = MS_BF16, recipe = MS_RECIPE_DEFAULT;
    MS_TRY(ms_port_take_word(port, "training.mixed_precision_param", types, &type));
    const ms_port_setting *converters = ms_port_find(port, CONVERTERS);
    bool fp8 = converters != NULL && strstr(converters->value, "\"float8\"") != NULL;
    bool mx = converters != NULL && strstr(converters->value, "\"mx\"") != NULL;
    plan->compute = fp8 || mx ? MS_FP8 : (ms_dtype)type;
    if (fp8)
        MS_TRY(ms_port_take_word(port, FP8_RECIPE, fp8_recipes, &recipe));
    plan->recipe = mx ? MS_RECIPE_MXFP8 : (ms_recipe)recipe;
    return MS_OK;
}

static const char *const compute_keys[] = {"training.mixed_precision_param", CONVERTERS,
                                           FP8_RECIPE, NULL};
static const int compute_choices[] = {MS_CHOOSE_RECIPE, -1};

/* Gradients and states have the type of the parameters. */
static void put_types(ms_port *port)
{
    const ms_plan *plan = port->plan;
    bool narrow = plan->param_dtype == MS_STORE_BF16;
    ms_storage own = narrow ? MS_STORE_BF16 : MS_STORE_FP32;
    if (narrow)
        ms_port_put_text(port, "training.dtype", "bfloat16");
    else if (plan->param_dtype == MS_STORE_FP8)
        ms_port_leave_choice(port, MS_CHOOSE_PARAM_DTYPE);
    if (plan->grad_dtype != MS_STORE_DEFAULT && plan->grad_dtype != own)
        ms_port_leave_choice(port, MS_CHOOSE_GRAD_DTYPE);
    if (plan->optimizer_dtype != MS_STORE_DEFAULT && plan->optimizer_dtype != own)
        ms_port_leave_choice(port, MS_CHOOSE_OPTIMIZER_DTYPE);
    if (plan->comm_dtype == MS_STORE_BF16)
        ms_port_put_text(port, "training.mixed_precision_reduce", "bfloat16");
    if (plan->comm_dtype == MS_STORE_FP8)
        ms_port_put(port, FP8_GATHER, "true");
}

static ms_status take_types(ms_port *port)
{
    static const ms_port_word types[] = {
        {"float32", MS_STORE_DEFAULT}, {"bfloat16", MS_STORE_BF16}, {0}};
    long params = MS_STORE_DEFAULT, sent = MS_STORE_DEFAULT;
    bool gathers = false;
    MS_TRY(ms_port_take_word(port, "training.dtype", types, &params));
    MS_TRY(ms_port_take_word(port, "training.mixed_precision_reduce", types, &sent));
    MS_TRY(ms_port_take_on(port, FP8_GATHER, &gathers));
    port->plan->param_dtype = (ms_storage)params;
    port->plan->comm_dtype =
        gathers && port->plan->compute == MS_FP8 ? MS_STORE_FP8 : (ms_storage)sent;
    return MS_OK;
}

static const char *const type_keys[] = {
    "training.dtype", "training.mixed_precision_reduce", FP8_GATHER, NULL};
static const int type_choices[] = {MS_CHOOSE_GRAD_DTYPE, MS_CHOOSE_OPTIMIZER_DTYPE,
                                   MS_CHOOSE_COMM_DTYPE, -1};

/* ---- torch.compile ---- */

static bool is_compiled(ms_compile compile)
{
    return compile == MS_COMPILE_REGIONAL || compile == MS_COMPILE_FULL;
}

/* Each layer is compiled, and the loss. */
static void put_compile(ms_port *port)
{
    ms_compile kind = port->plan->compile;
    if (kind == MS_COMPILE_FULL)
        ms_port_leave_choice(port, MS_CHOOSE_COMPILE);
    else if (is_compiled(kind == MS_COMPILE_OF_STACK ? port->stack->compile : kind))
        ms_port_put(port, "compile.enable", "true");
}

static ms_status take_compile(ms_port *port)
{
    bool on = false;
    MS_TRY(ms_port_take_on(port, "compile.enable", &on));
    port->plan->compile = on == is_compiled(port->stack->compile) ? MS_COMPILE_OF_STACK
                          : on                                    ? MS_COMPILE_REGIONAL
                                                                  : MS_COMPILE_NONE;
    return MS_OK;
}

/* ---- the table ---- */

static const ms_port_word rotations[] = {
    {"allgather", MS_CP_ALL_GATHER}, {"alltoall", MS_CP_RING}, {0}};
static const ms_port_word balances[] = {{"headtail", MS_CP_HEAD_TAIL}, {0}};
static const ms_port_word backends[] = {
    {"standard", MS_DISPATCH_ALL_TO_ALL}, {"deepep", MS_DISPATCH_DEEPEP}, {0}};
static const ms_port_word optimizers[] = {
    {"AdamW", MS_OPTIMIZER_ADAMW}, {"Adam", MS_OPTIMIZER_ADAMW}, {0}};

static void put_dispatcher(ms_port *port)
{
    ms_dispatcher kind = port->plan->dispatcher;
    const char *word = ms_port_word_of(backends, kind);
    if (!exchanges_tokens(port) || kind == MS_DISPATCH_OF_STACK)
        return;
    if (word != NULL)
        ms_port_put_text(port, "parallelism.expert_parallel_comm_backend", word);
    else
        ms_port_leave_choice(port, MS_CHOOSE_MOE_DISPATCHER);
}

static ms_status take_dispatcher(ms_port *port)
{
    long kind = MS_DISPATCH_OF_STACK;
    MS_TRY(ms_port_take_word(port, "parallelism.expert_parallel_comm_backend", backends,
                             &kind));
    if (exchanges_tokens(port))
        port->plan->dispatcher = (ms_dispatcher)kind;
    return MS_OK;
}

#define SIZE(name, choose)                                                               \
    .kind = MS_PORT_WHOLE, .key = "parallelism." name, .choice = (choose), .absent = 1
#define WORD(name, choose, list, usual)                                                  \
    .kind = MS_PORT_WORD, .key = (name), .choice = (choose), .words = (list),            \
    .absent = (usual)
#define OWN(choose, puts, takes)                                                         \
    .kind = MS_PORT_OWN, .choice = (choose), .put = (puts), .take = (takes)
#define FIXED(choose, only) .kind = MS_PORT_FIXED, .choice = (choose), .absent = (only)

static const ms_port_row plan_rows[] = {
    {SIZE("pipeline_parallel_degree", MS_CHOOSE_PP), .always = true},
    {SIZE("data_parallel_replicate_degree", MS_CHOOSE_DP_REPLICATE), .always = true},
    {OWN(MS_CHOOSE_DP_SHARD, put_ranks, NULL),
     .key = "parallelism.data_parallel_shard_degree"},
    {SIZE("context_parallel_degree", MS_CHOOSE_CP), .always = true},
    {SIZE("tensor_parallel_degree", MS_CHOOSE_TP), .always = true},
    {SIZE("expert_parallel_degree", MS_CHOOSE_EP)},
    {SIZE("expert_tensor_parallel_degree", MS_CHOOSE_ETP)},
    {OWN(MS_CHOOSE_SEQUENCE_LENGTH, put_batch, take_batch), .keys = batch_keys,
     .choices = batch_choices},
    {OWN(MS_CHOOSE_SCHEDULE, ms_torchtitan_put_schedule, ms_torchtitan_take_schedule),
     .keys = ms_torchtitan_schedule_keys, .choices = ms_torchtitan_schedule_choices},
    {FIXED(MS_CHOOSE_MEMORY_LIMIT, 0), .when = has_pipeline},
    {OWN(MS_CHOOSE_ZERO, put_reshard, take_reshard), .key = RESHARD,
     .choices = reshard_choices},
    {FIXED(MS_CHOOSE_SEQUENCE_PARALLEL, 1), .when = has_tensor},
    {.kind = MS_PORT_ON,
     .key = "parallelism.enable_async_tensor_parallel",
     .choice = MS_CHOOSE_ASYNC_TP,
     .when = has_tensor},
    {OWN(MS_CHOOSE_LOSS_PARALLEL, put_loss, take_loss),
     .key = "parallelism.disable_loss_parallel"},
    {WORD("parallelism.context_parallel_rotate_method", MS_CHOOSE_CP_METHOD, rotations,
          MS_CP_ALL_GATHER),
     .always = true, .when = has_context},
    {WORD("parallelism.context_parallel_load_balancer", MS_CHOOSE_CP_BALANCE, balances,
          MS_CP_HEAD_TAIL),
     .when = has_context},
    {OWN(MS_CHOOSE_RECOMPUTE, put_recompute, take_recompute), .keys = recompute_keys,
     .choices = recompute_choices},
    {OWN(MS_CHOOSE_COMPUTE, put_compute, take_compute), .keys = compute_keys,
     .choices = compute_choices},
    {OWN(MS_CHOOSE_PARAM_DTYPE, put_types, take_types), .keys = type_keys,
     .choices = type_choices},
    {WORD("optimizer.name", MS_CHOOSE_OPTIMIZER, optimizers, MS_OPTIMIZER_ADAMW)},
    {OWN(MS_CHOOSE_COMPILE, put_compile, take_compile), .key = "compile.enable"},
    {OWN(MS_CHOOSE_MOE_DISPATCHER, put_dispatcher, take_dispatcher),
     .key = "parallelism.expert_parallel_comm_backend"},
    /* rules refuse all orders but pp, dp, cp, tp */
    {.kind = MS_PORT_OWN, .choice = MS_CHOOSE_ORDER},
    {0},
};

static ms_status read_toml(ms_port *port, const char *name, const char *text,
                           size_t length)
{
    MS_TRY(ms_toml_read(port->cx, name, text, length, port->settings));
    return port->settings->num > 0 ? MS_OK
                                   : ms_fail(port->cx, MS_EINPUT, (ms_loc){.file = name},
                                             "there are no keys");
}

static ms_status finish(ms_port *port)
{
    if (port->plan->size[MS_TP] == 1)
        port->plan->sequence_parallel = false;
    return MS_OK;
}

static void write_toml(FILE *out, ms_arena *arena, const ms_plan *plan,
                       const ms_port_exported *exported,
                       const ms_port_export_options *options)
{
    ms_port_write_head(out, arena, "#", plan, exported);
    if (options->launcher != MS_PORT_NO_LAUNCHER) {
        ms_port_write_launcher(out, plan, options, "# ",
                               "-m torchtitan.train --job.config_file THIS.toml");
        ms_print(out, "\n");
    }
    ms_toml_write(out, arena, &exported->settings);
}

static const char *const ignored[] = {
    "parallelism.pipeline_parallel_expert_parallel_overlap",
    "parallelism.fsdp_disable_prefetch", "quantize.linear.float8.filter_fqns",
    "quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp", NULL};
static const char *const reserved[] = {
    "parallel", "checkpoint.mode", "offload", "converters", "quantize.", "float8", NULL};
static const char *const marks[] = {"[parallelism]", "[training]",
                                    "[activation_checkpoint]", NULL};

const ms_port_format ms_port_torchtitan = {
    .name = "torchtitan",
    .stack = "torchtitan",
    .rules = "torchtitan",
    .tables = {model_rows, plan_rows},
    .ignored = ignored,
    .reserved = reserved,
    .marks = marks,
    .read = read_toml,
    .finish = finish,
    .write = write_toml,
    .needs_layers = ms_torchtitan_needs_layers,
    .until = "main",
};
