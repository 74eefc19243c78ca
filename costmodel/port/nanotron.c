/* nanotron: its configuration in YAML. Sources: huggingface/nanotron 2411b022 (2026-04-07),
 * src/nanotron/config/config.py, parallelism_config.py, models_config.py; names of the
 * optimizer's factory from memory. */
#include "base/print.h"
#include "costmodel/port/port_priv.h"
#include "costmodel/port/yaml.h"

#include <string.h>

/* ---- model ---- */

/* Llama's layers alone: grouped queries, SwiGLU, RMS norms, no biases, rotary positions. */
static void put_rest(ms_port *port)
{
    const ms_model *m = port->model;
    const ms_layer_kind plain = {0};
    const struct {
        bool has;
        const char *what;
    } parts[] = {
        {m->attention != MS_ATTENTION_GQA, "latent attention"},
        {m->moe.num_experts > 0, "experts"},
        {m->num_kinds != 1 || !ms_layer_kind_equal(&m->kinds[0], &plain),
         "kinds of layers"},
        {m->norm != MS_NORM_RMS || m->plain_norms || m->post_norms || m->no_pre_norms ||
             m->embedding_norm || m->norm_plus_one,
         "norms"},
        {m->qk_norm || m->qk_norm_whole || m->qk_norm_head_weights,
         "norms of queries and keys"},
        {m->activation != MS_ACT_SWIGLU || m->swiglu_limit > 0.0, "activation"},
        {m->position != MS_POSITION_ROTARY || m->rotary_dim > 0, "positions"},
        {m->rotary_scaling.kind == MS_ROTARY_SCALING_YARN, "rotary_scaling yarn"},
        {m->qkv_bias || m->attention_out_bias || m->mlp_bias || m->head_bias, "biases"},
        {m->head_dim * m->num_heads != m->hidden, "head_dim"},
        {m->parallel_block, "parallel_block"},
        {m->dropout, "dropout"},
        {m->attention_sinks || m->attention_softcap > 0.0 || m->logit_softcap > 0.0 ||
             m->logit_scale > 0.0 || m->query_pre_attn_scalar > 0.0 ||
             m->embedding_scale > 0.0,
         "scores or scales"}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].has)
            ms_port_leave_out(port, "the model's %s", parts[i].what);
}

#define SHAPE(name, member)                                                              \
    .kind = MS_PORT_WHOLE, .of = MS_OF_MODEL, .key = "model.model_config." name,         \
    .offset = offsetof(ms_model, member), .always = true
#define VALUE(name, member)                                                              \
    .kind = MS_PORT_NUMBER, .of = MS_OF_MODEL, .key = "model.model_config." name,        \
    .offset = offsetof(ms_model, member), .always = true, .soft = true

static const ms_port_row model_rows[] = {
    {SHAPE("hidden_size", hidden)},
    {SHAPE("intermediate_size", ffn_hidden)},
    {SHAPE("num_hidden_layers", num_layers)},
    {SHAPE("num_attention_heads", num_heads)},
    {SHAPE("num_key_value_heads", num_kv_heads)},
    {SHAPE("vocab_size", vocab), .soft = true},
    {SHAPE("max_position_embeddings", max_positions), .soft = true},
    {.kind = MS_PORT_ON,
     .of = MS_OF_MODEL,
     .key = "model.model_config.tie_word_embeddings",
     .offset = offsetof(ms_model, tied_embeddings)},
    {VALUE("rope_theta", rotary_base)},
    {VALUE("rms_norm_eps", norm_epsilon)},
    {.kind = MS_PORT_OWN,
     .of = MS_OF_MODEL,
     .key = "model",
     .put = put_rest,
     .soft = true},
    {0},
};

/* ---- plan ---- */

static bool has_tensor(const ms_port *port)
{
    return port->plan->size[MS_TP] > 1;
}

static bool has_pipeline(const ms_port *port)
{
    return port->plan->size[MS_PP] > 1;
}

/* All data-parallel ranks, over which ZeRO-1 shards the optimizer's states. */
static void put_ranks(ms_port *port)
{
    ms_port_put_whole(port, "parallelism.dp", ms_plan_data_parallel(port->plan));
}

static ms_status take_ranks(ms_port *port)
{
    ms_plan *plan = port->plan;
    long dp = 0, ranks = plan->size[MS_PP] * plan->size[MS_CP] * plan->size[MS_TP];
    MS_TRY(ms_port_take_whole(port, "parallelism.dp", 1, 16777216, &dp));
    if (dp == 0)
        return ms_port_fail_missing(port, "parallelism.dp", "nanotron requires it");
    plan->size[MS_DP_SHARD] = dp;
    plan->gpus = dp * ranks;
    if (port->gpus == 0 || port->gpus == plan->gpus)
        return MS_OK;
    if (port->overrides)
        return ms_port_fit_ranks(port, port->gpus);
    return ms_port_fail(port, ms_port_find(port, "parallelism.dp"),
                        "the degrees make %ld ranks, not %ld", plan->gpus, port->gpus);
}

static const int rank_choices[] = {MS_CHOOSE_DP_REPLICATE, -1};

static void put_zero(ms_port *port)
{
    const ms_plan *plan = port->plan;
    long zero = plan->size[MS_DP_SHARD] * plan->size[MS_CP] > 1 ? plan->zero : 0;
    if (zero > 1)
        ms_port_leave_choice(port, MS_CHOOSE_ZERO);
    ms_port_put_whole(port, "optimizer.zero_stage", zero);
}

/* Stages above 1 are silently 1. */
static ms_status take_zero(ms_port *port)
{
    long stage = 0;
    MS_TRY(ms_port_take_whole(port, "optimizer.zero_stage", 0, 3, &stage));
    port->plan->zero = stage > 0 ? 1 : 0;
    if (stage > 1)
        ms_port_assume(port, "optimizer.zero_stage 1, as nanotron reads %ld", stage);
    return MS_OK;
}

static const int zero_choices[] = {MS_CHOOSE_RESHARD, -1};

static void put_batch(ms_port *port)
{
    const ms_plan *plan = port->plan;
    ms_port_put_whole(port, "tokens.sequence_length", plan->sequence_length);
    ms_port_put_whole(port, "tokens.micro_batch_size", plan->microbatch);
    ms_port_put_whole(port, "tokens.batch_accumulation_per_replica",
                      ms_plan_microbatches(plan));
}

static ms_status take_batch(ms_port *port)
{
    ms_plan *plan = port->plan;
    long sequence = 0, microbatch = 0, steps = 1;
    MS_TRY(ms_port_take_whole(port, "tokens.sequence_length", 1, 4294967296, &sequence));
    MS_TRY(ms_port_take_whole(port, "tokens.micro_batch_size", 1, 16777216, &microbatch));
    MS_TRY(ms_port_take_whole(port, "tokens.batch_accumulation_per_replica", 1, 16777216,
                              &steps));
    if (sequence == 0 || microbatch == 0)
        return ms_port_fail_missing(
            port, sequence == 0 ? "tokens.sequence_length" : "tokens.micro_batch_size",
            "nanotron requires it");
    plan->sequence_length = sequence;
    plan->microbatch = microbatch;
    plan->global_batch = steps * microbatch * ms_plan_data_parallel(plan);
    return MS_OK;
}

static const char *const batch_keys[] = {"tokens.sequence_length",
                                         "tokens.micro_batch_size",
                                         "tokens.batch_accumulation_per_replica", NULL};
static const int batch_choices[] = {MS_CHOOSE_MICROBATCH, MS_CHOOSE_GLOBAL_BATCH, -1};

static const ms_port_word recomputes[] = {
    {"false", MS_RECOMPUTE_NONE}, {"true", MS_RECOMPUTE_FULL}, {0}};

static void put_recompute(ms_port *port)
{
    const ms_plan *plan = port->plan;
    const char *word = ms_port_word_of(recomputes, plan->recompute);
    if (word == NULL)
        ms_port_leave_choice(port, MS_CHOOSE_RECOMPUTE);
    else if (plan->recompute == MS_RECOMPUTE_FULL && plan->recompute_layers > 0)
        ms_port_leave_choice(port, MS_CHOOSE_RECOMPUTE_LAYERS);
    else
        ms_port_put(port, "parallelism.recompute_layer", word);
}

static ms_status take_recompute(ms_port *port)
{
    bool full = false;
    MS_TRY(ms_port_take_on(port, "parallelism.recompute_layer", &full));
    port->plan->recompute = full ? MS_RECOMPUTE_FULL : MS_RECOMPUTE_NONE;
    return MS_OK;
}

static const int recompute_choices[] = {MS_CHOOSE_RECOMPUTE_LAYERS,
                                        MS_CHOOSE_RECOMPUTE_MODULES,
                                        MS_CHOOSE_RECOMPUTE_BUDGET, -1};

static void put_grads(ms_port *port)
{
    bool narrow = port->plan->grad_dtype == MS_STORE_BF16;
    ms_port_put(port, "optimizer.accumulate_grad_in_fp32", narrow ? "false" : "true");
}

static ms_status take_grads(ms_port *port)
{
    bool wide = true;
    MS_TRY(ms_port_take_on(port, "optimizer.accumulate_grad_in_fp32", &wide));
    port->plan->grad_dtype = wide ? MS_STORE_DEFAULT : MS_STORE_BF16;
    return MS_OK;
}

static const ms_port_word engines[] = {{"afab", MS_GPIPE}, {"1f1b", MS_1F1B}, {0}};
static const ms_port_word modes[] = {{"ALL_REDUCE", 0}, {"REDUCE_SCATTER", 1}, {0}};
static const ms_port_word types[] = {
    {"bfloat16", MS_BF16}, {"float16", MS_FP16}, {"float32", MS_FP32}, {0}};
static const ms_port_word optimizers[] = {
    {"adamW", MS_OPTIMIZER_ADAMW}, {"sgd", MS_OPTIMIZER_SGD}, {0}};
/* stages are cut by cost, which rules hold a list of layers to */
static const int engine_choices[] = {MS_CHOOSE_STAGE_LAYERS, MS_CHOOSE_ORDER,
                                     MS_CHOOSE_MEMORY_LIMIT, -1};

#define SIZE(name, choose)                                                               \
    .kind = MS_PORT_WHOLE, .key = "parallelism." name, .choice = (choose), .absent = 1
#define WORD(name, choose, list, usual)                                                  \
    .kind = MS_PORT_WORD, .key = (name), .choice = (choose), .words = (list),            \
    .absent = (usual), .always = true
#define OWN(name, choose, puts, takes)                                                   \
    .kind = MS_PORT_OWN, .key = (name), .choice = (choose), .put = (puts), .take = (takes)

static const ms_port_row plan_rows[] = {
    {SIZE("pp", MS_CHOOSE_PP), .always = true},
    {SIZE("tp", MS_CHOOSE_TP), .always = true},
    {SIZE("context_parallel_size", MS_CHOOSE_CP)},
    {SIZE("expert_parallel_size", MS_CHOOSE_EP)},
    {OWN("parallelism.dp", MS_CHOOSE_DP_SHARD, put_ranks, take_ranks),
     .choices = rank_choices},
    {WORD("parallelism.pp_engine", MS_CHOOSE_SCHEDULE, engines, MS_GPIPE),
     .when = has_pipeline, .choices = engine_choices},
    {.kind = MS_PORT_FIXED,
     .choice = MS_CHOOSE_VIRTUAL_STAGES,
     .absent = 1,
     .when = has_pipeline},
    {.kind = MS_PORT_FIXED, .choice = MS_CHOOSE_GROUP, .when = has_pipeline},
    {WORD("parallelism.tp_mode", MS_CHOOSE_SEQUENCE_PARALLEL, modes, 0),
     .when = has_tensor},
    {.kind = MS_PORT_ON,
     .key = "parallelism.tp_linear_async_communication",
     .choice = MS_CHOOSE_ASYNC_TP,
     .when = has_tensor},
    {.kind = MS_PORT_FIXED, .choice = MS_CHOOSE_LOSS_PARALLEL, .absent = 1},
    {OWN("parallelism.recompute_layer", MS_CHOOSE_RECOMPUTE, put_recompute,
         take_recompute),
     .choices = recompute_choices},
    {OWN(NULL, MS_CHOOSE_SEQUENCE_LENGTH, put_batch, take_batch), .keys = batch_keys,
     .choices = batch_choices},
    {WORD("model.dtype", MS_CHOOSE_COMPUTE, types, MS_BF16)},
    {OWN("optimizer.zero_stage", MS_CHOOSE_ZERO, put_zero, take_zero),
     .choices = zero_choices},
    {OWN("optimizer.accumulate_grad_in_fp32", MS_CHOOSE_GRAD_DTYPE, put_grads,
         take_grads)},
    {WORD("optimizer.optimizer_factory.name", MS_CHOOSE_OPTIMIZER, optimizers,
          MS_OPTIMIZER_ADAMW)},
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

/* Every layer of a model is Llama's; the file has no other. */
static ms_status finish(ms_port *port)
{
    ms_model *model = port->model;
    model->activation = MS_ACT_SWIGLU;
    model->final_norm = true;
    return MS_OK;
}

static void write_yaml(FILE *out, ms_arena *arena, const ms_plan *plan,
                       const ms_port_exported *exported,
                       const ms_port_export_options *options)
{
    ms_port_write_head(out, arena, "#", plan, exported);
    if (options->launcher != MS_PORT_NO_LAUNCHER) {
        ms_port_write_launcher(out, plan, options, "# ",
                               "run_train.py --config-file THIS.yaml");
        ms_print(out, "\n");
    }
    ms_yaml_write(out, arena, &exported->settings);
}

static const char *const ignored[] = {"parallelism.tp_recompute_allgather", NULL};
static const char *const reserved[] = {"parallelism.", "zero", NULL};
static const char *const marks[] = {
    "\ntokens:", "\nparallelism:", "pp_engine:", "batch_accumulation_per_replica:", NULL};

const ms_port_format ms_port_nanotron = {
    .name = "nanotron",
    .stack = "nanotron",
    .rules = "nanotron",
    .tables = {model_rows, plan_rows},
    .ignored = ignored,
    .reserved = reserved,
    .marks = marks,
    .read = read_yaml,
    .finish = finish,
    .write = write_yaml,
};
