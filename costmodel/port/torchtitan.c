/* torchtitan 0.2: its configuration in TOML. Sources: pytorch/torchtitan v0.2.2 (73a0e697,
 * 2026-02-20), torchtitan/config/job_config.py, distributed/parallel_dims.py,
 * distributed/pipeline_parallel.py, distributed/activation_checkpoint.py; names of models
 * and flavors (models/) from memory. */
#include "base/print.h"
#include "costmodel/port/port_priv.h"
#include "costmodel/port/toml.h"

#include <string.h>

#define MAX_STAGES 32767

/* ---- model ---- */

typedef struct flavor {
    const char *model; /* of configs/models */
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
    for (size_t i = 0; i < NUM_FLAVORS; i++)
        if (strcmp(flavors[i].model, port->model->name) == 0) {
            ms_port_put_text(port, "model.name", flavors[i].name);
            ms_port_put_text(port, "model.flavor", flavors[i].flavor);
            return;
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

/* With a pipeline the local batch is that of a whole flush; without one it is a
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
    if (!ms_port_has(port, LOCAL))
        ms_port_assume(port, LOCAL " 8");
    plan->sequence_length = 2048;
    MS_TRY(ms_port_take_whole(port, "training.seq_len", 1, 4294967296,
                              &plan->sequence_length));
    MS_TRY(ms_port_take_whole(port, LOCAL, 1, 4294967296, &local));
    MS_TRY(ms_port_take_whole(port, GLOBAL, -1, 4294967296, &global));
    MS_TRY(ms_port_take_whole(port, MICROBATCH, 1, 4294967296, &microbatch));
    plan->global_batch = global > 0 ? global : local * dp;
    plan->microbatch = has_pipeline(port) ? microbatch : local;
    if (global < 0)
        ms_port_assume(port, GLOBAL " %ld, one local batch a rank", plan->global_batch);
    if (has_pipeline(port) && plan->global_batch != local * dp)
        return ms_port_fail(port, ms_port_find(port, GLOBAL),
                            "several flushes of the pipeline a step: no plan has them");
    return MS_OK;
}

static const char *const batch_keys[] = {"training.seq_len", LOCAL, GLOBAL, MICROBATCH,
                                         NULL};
static const int batch_choices[] = {MS_CHOOSE_GLOBAL_BATCH, MS_CHOOSE_MICROBATCH, -1};

/* ---- stages ---- */

#define SCHEDULE  "parallelism.pipeline_parallel_schedule"
#define OF_STAGE  "parallelism.pipeline_parallel_layers_per_stage"
#define PARTS     "parallelism.module_fqns_per_model_part"
#define LESS_HEAD "parallelism.pipeline_parallel_first_stage_less_layers"
#define LESS_TAIL "parallelism.pipeline_parallel_last_stage_less_layers"

static const ms_port_word schedules[] = {{"1F1B", MS_1F1B},
                                         {"GPipe", MS_GPIPE},
                                         {"Interleaved1F1B", MS_INTERLEAVED},
                                         {"LoopedBFS", MS_LOOPED_BFS},
                                         {"InterleavedZeroBubble", MS_INTERLEAVED_ZB},
                                         {"ZBVZeroBubble", MS_ZB_V},
                                         {"DualPipeV", MS_DUALPIPEV},
                                         {0}};

static long usual_chunks(ms_schedule_kind kind)
{
    return kind == MS_1F1B || kind == MS_GPIPE ? 1 : 2;
}

static long rounded_up(long a, long b)
{
    return (a + b - 1) / b;
}

static void put_parts(ms_port *port)
{
    const ms_plan *plan = port->plan;
    ms_arena *arena = port->cx->arena;
    const char *text = "[";
    long layer = 0;
    for (long i = 0; i < plan->num_stage_layers; i++) {
        const char *part = i == 0 ? "\"tok_embeddings\"" : "";
        for (long k = 0; k < plan->layers_per_stage[i]; k++, layer++)
            part = ms_arena_printf(arena, "%s%s\"layers.%ld\"", part,
                                   part[0] == '\0' ? "" : ", ", layer);
        if (i == plan->num_stage_layers - 1)
            part = ms_arena_printf(arena, "%s%s\"norm\", \"output\"", part,
                                   part[0] == '\0' ? "" : ", ");
        text = ms_arena_printf(arena, "%s%s[%s]", text, i == 0 ? "" : ", ", part);
    }
    ms_port_put(port, PARTS, ms_arena_printf(arena, "%s]", text));
}

/* Layers of a stage that make as many stages, where embedding and head count as a layer
 * each; 0: no number does. */
static long layers_of_stage(const ms_plan *plan, const ms_model *model)
{
    long stages = plan->size[MS_PP] * plan->virtual_stages,
         counted = model->num_layers + 2;
    long of_stage = rounded_up(counted, stages);
    return rounded_up(counted, of_stage) == stages ? of_stage : 0;
}

static bool needs_layers(const ms_plan *plan, const ms_model *model)
{
    return plan->virtual_stages != usual_chunks(plan->schedule) &&
           layers_of_stage(plan, model) == 0;
}

static void put_chunks(ms_port *port)
{
    const ms_plan *plan = port->plan;
    if (plan->num_stage_layers > 0)
        put_parts(port);
    else if (needs_layers(plan, port->model))
        ms_port_leave_out(port, "%ld virtual stages without layers_per_stage",
                          plan->virtual_stages);
    else if (plan->virtual_stages != usual_chunks(plan->schedule))
        ms_port_put_whole(port, OF_STAGE, layers_of_stage(plan, port->model));
}

static void put_schedule(ms_port *port)
{
    const char *word = ms_port_word_of(schedules, port->plan->schedule);
    if (!has_pipeline(port))
        return;
    if (word == NULL) {
        ms_port_leave_choice(port, MS_CHOOSE_SCHEDULE);
        return;
    }
    ms_port_put_text(port, SCHEDULE, word);
    put_chunks(port);
}

/* Counts "layers.N" in each inner list. */
static ms_status take_parts(ms_port *port, const ms_port_setting *setting)
{
    ms_plan *plan = port->plan;
    long *layers = MS_NEW_ARRAY(port->cx->arena, MAX_STAGES, long);
    long num = 0, sum = 0;
    int depth = 0;
    for (const char *at = setting->value; *at != '\0'; at++) {
        depth += (*at == '[') - (*at == ']');
        if (*at == ']' && depth == 1 && ++num >= MAX_STAGES)
            return ms_port_fail(port, setting, "too many stages");
        if (depth == 2 && strncmp(at, "layers.", 7) == 0) {
            layers[num]++;
            sum++;
        }
    }
    if (num == 0 || num % plan->size[MS_PP] != 0 || sum != port->model->num_layers)
        return ms_port_fail(port, setting,
                            "%ld parts with %ld layers, for pp %ld and %ld layers", num,
                            sum, plan->size[MS_PP], port->model->num_layers);
    plan->virtual_stages = num / plan->size[MS_PP];
    plan->num_stage_layers = num;
    plan->layers_per_stage = layers;
    return MS_OK;
}

/* Stages share layers and ends, the first ones taking what is left over; the ends then
 * give up theirs (pipeline_parallel.py, generate_llm_fqn_per_model_part). */
static ms_status take_ends(ms_port *port, long head, long tail)
{
    ms_plan *plan = port->plan;
    long stages = plan->size[MS_PP] * plan->virtual_stages;
    long counted = port->model->num_layers + head + tail;
    long *layers = MS_NEW_ARRAY(port->cx->arena, stages, long);
    for (long i = 0; i < stages; i++) {
        layers[i] = counted / stages + (i < counted % stages) - (i == 0 ? head : 0) -
                    (i == stages - 1 ? tail : 0);
        if (layers[i] < 0)
            return ms_port_fail(port, ms_port_find(port, i == 0 ? LESS_HEAD : LESS_TAIL),
                                "a stage would have less than no layers");
    }
    plan->num_stage_layers = stages;
    plan->layers_per_stage = layers;
    return MS_OK;
}

static ms_status take_chunks(ms_port *port)
{
    ms_plan *plan = port->plan;
    long head = 1, tail = 1, of_stage = 0, pp = plan->size[MS_PP];
    const ms_port_setting *parts = ms_port_find(port, PARTS);
    if (parts != NULL && parts->value[0] == '[')
        return take_parts(port, parts);
    MS_TRY(ms_port_take_whole(port, LESS_HEAD, 0, 1048576, &head));
    MS_TRY(ms_port_take_whole(port, LESS_TAIL, 0, 1048576, &tail));
    MS_TRY(ms_port_take_whole(port, OF_STAGE, 1, 1048576, &of_stage));
    plan->virtual_stages = usual_chunks(plan->schedule);
    if (of_stage > 0) {
        long stages = rounded_up(port->model->num_layers + head + tail, of_stage);
        if (stages % pp != 0)
            return ms_port_fail(port, ms_port_find(port, OF_STAGE),
                                "%ld stages are no multiple of pp %ld", stages, pp);
        plan->virtual_stages = stages / pp;
    }
    bool own = ms_port_has(port, LESS_HEAD) || ms_port_has(port, LESS_TAIL);
    return own && port->model->num_layers > 0 ? take_ends(port, head, tail) : MS_OK;
}

static ms_status take_schedule(ms_port *port)
{
    long kind = MS_1F1B;
    ms_plan_set_schedule(port->plan, MS_1F1B);
    MS_TRY(ms_port_take_word(port, SCHEDULE, schedules, &kind));
    if (!has_pipeline(port))
        return MS_OK;
    if (!ms_port_has(port, SCHEDULE))
        ms_port_assume(port, SCHEDULE " 1F1B");
    ms_plan_set_schedule(port->plan, (ms_schedule_kind)kind);
    return take_chunks(port);
}

static const char *const schedule_keys[] = {SCHEDULE,  OF_STAGE,  PARTS,
                                            LESS_HEAD, LESS_TAIL, NULL};
/* A group that a plan states is the schedule's own by the rules. */
static const int schedule_choices[] = {MS_CHOOSE_VIRTUAL_STAGES, MS_CHOOSE_STAGE_LAYERS,
                                       MS_CHOOSE_GROUP, -1};

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
    if (word == 2 && shards(port))
        ms_port_assume(port, RESHARD " %s",
                       port->plan->reshard_after_forward ? "always" : "never");
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
    {OWN(MS_CHOOSE_SCHEDULE, put_schedule, take_schedule), .keys = schedule_keys,
     .choices = schedule_choices},
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

const ms_port_format ms_port_torchtitan = {
    .name = "torchtitan",
    .stack = "torchtitan",
    .rules = "torchtitan",
    .tables = {model_rows, plan_rows},
    .ignored = ignored,
    .reserved = reserved,
    .read = read_toml,
    .finish = finish,
    .write = write_toml,
    .needs_layers = needs_layers,
    .until = "main",
};
