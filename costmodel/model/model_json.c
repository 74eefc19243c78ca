/* Reads and writes model files (meshsim.model-config/1) by field tables, and writes the
 * result meshsim.model/1, whose architecture is such a file. */
#include "costmodel/model/model_priv.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

const char *const ms_norm_words[] = {"rms", "layer", NULL};
const char *const ms_activation_words[] = {"swiglu", "geglu", "gelu",
                                           "relu",   "relu2", NULL};
const char *const ms_position_words[] = {"rotary", "learned", "alibi", "none", NULL};
const char *const ms_router_words[] = {"softmax-topk", "topk-softmax", "sigmoid", NULL};

static const char *const scaling_words[] = {"none", "linear", "llama3", "yarn", NULL};

/* Field tables write enum members through an int pointer. */
static_assert(sizeof(ms_norm_kind) == sizeof(int), "enums are ints");

/* Members that the field table of a model file fills. */
typedef struct model_file {
    const char *schema;
    ms_model model;
} model_file;

/* Macros for rows of field tables, one macro for each kind of field. */
#define ROW(type, name, at, must, least, most, list, text)                               \
    {                                                                                    \
        .kind = MS_FIELD_##type, .key = (name), .offset = (at), .required = (must),      \
        .low = (least), .high = (most), .choices = (list), .help = (text)                \
    }
#define AT(member)           offsetof(model_file, model.member)
#define TEXT(name, at, text) ROW(TEXT, name, at, true, 0, 0, NULL, text)
#define COUNT(name, at, must, least, most, text)                                         \
    ROW(INTEGER, name, at, must, least, most, NULL, text)
#define SIZE(name, at, must, least, text)                                                \
    COUNT(name, AT(at), must, least, MS_MAX_MODEL_SIZE, text)
#define FLAG(name, at, must, text) ROW(BOOL, name, at, must, 0, 0, NULL, text)
#define RANGE(name, at, least, most, text)                                               \
    ROW(NUMBER, name, AT(at), false, least, most, NULL, text)
#define WORD(name, at, list, text) ROW(CHOICE, name, AT(at), true, 0, 0, list, text)
#define PART(name, text)           ROW(ANY, name, 0, false, 0, 0, NULL, text)

static const ms_field file_fields[] = {
    TEXT("schema", offsetof(model_file, schema), MS_MODEL_CONFIG_SCHEMA),
    TEXT("name", AT(name), "name of the model"),
    TEXT("family", AT(family), "Hugging Face model_type"),
    TEXT("source", AT(source), "where the figures come from"),
    COUNT("layers", AT(num_layers), true, 1, MS_MAX_MODEL_LAYERS, "transformer layers"),
    SIZE("hidden", hidden, true, 1, "hidden size h"),
    SIZE("heads", num_heads, true, 1, "query heads"),
    SIZE("kv_heads", num_kv_heads, true, 1, "key-value heads; divide the heads"),
    SIZE("head_dim", head_dim, false, 1, "size of a head; required without mla"),
    SIZE("ffn_hidden", ffn_hidden, false, 1, "MLP size of layers without experts"),
    SIZE("vocab", vocab, true, 1, "rows of the embedding"),
    SIZE("max_positions", max_positions, true, 1,
         "rows of learned positions, otherwise the context length"),
    FLAG("tied_embeddings", AT(tied_embeddings), true, "the head is the embedding"),
    FLAG("embedding_norm", AT(embedding_norm), false, "a norm after the embedding"),
    WORD("norm", norm, ms_norm_words, "kind of norms"),
    FLAG("norm_bias", AT(norm_bias), false, "norms have a bias; default: layer norms"),
    FLAG("plain_norms", AT(plain_norms), false, "norms have no weights"),
    FLAG("post_norms", AT(post_norms), false, "norms after attention and MLP, too"),
    FLAG("no_pre_norms", AT(no_pre_norms), false,
         "no norms before attention and MLP, only after them (with post_norms)"),
    FLAG("qk_norm", AT(qk_norm), false, "norms on queries and keys of each head"),
    FLAG("qk_norm_whole", AT(qk_norm_whole), false,
         "with qk_norm: one norm over all query heads, one over all key heads"),
    FLAG("qk_norm_head_weights", AT(qk_norm_head_weights), false,
         "with qk_norm: the norm of each head has weights of its own"),
    FLAG("parallel_block", AT(parallel_block), false, "attention in parallel with MLP"),
    SIZE("norms_per_layer", norms_per_layer, false, 1,
         "norms of a layer; default: 4 with post_norms, otherwise 2"),
    FLAG("final_norm", AT(final_norm), false, "a norm before the head; default: true"),
    WORD("activation", activation, ms_activation_words, "activation of the MLPs"),
    RANGE("swiglu_limit", swiglu_limit, 0.0, 1e6,
          "limit of gate and up in SwiGLU as of GPT-OSS"),
    COUNT("mlp_scalars", AT(mlp_scalars), false, 0, 16,
          "learned numbers of each MLP's activation"),
    FLAG("attention_sinks", AT(attention_sinks), false,
         "a learned score per query head in the softmax of attention"),
    WORD("position", position, ms_position_words, "kind of positions"),
    FLAG("qkv_bias", AT(qkv_bias), false, "biases of queries, keys and values"),
    FLAG("attention_out_bias", AT(attention_out_bias), false, "bias after attention"),
    FLAG("mlp_bias", AT(mlp_bias), false, "biases of the MLPs"),
    FLAG("head_bias", AT(head_bias), false, "bias of the head"),
    FLAG("dropout", AT(dropout), false, "trained with dropout"),
    RANGE("attention_dropout", attention_dropout, 0.0, 0.99, "rate in attention"),
    RANGE("hidden_dropout", hidden_dropout, 0.0, 0.99, "rate before residual sums"),
    RANGE("embedding_dropout", embedding_dropout, 0.0, 0.99, "rate of the embedding"),
    COUNT("num_nextn_predict_layers", AT(num_nextn_predict_layers), false, 0,
          MS_MAX_NEXTN_LAYERS,
          "modules of multi-token prediction, if a stack trains them"),
    RANGE("nextn_loss_weight", nextn_loss_weight, 0.0, 1e6,
          "factor of their mean loss; default: 0.1"),
    RANGE("rotary_base", rotary_base, 1.0, 1e15,
          "base of the rotary angles; default: 10000"),
    RANGE("norm_epsilon", norm_epsilon, 0.0, 1.0,
          "added to variances; default: 1e-6 for rms, 1e-5 for layer"),
    FLAG("gelu_tanh", AT(gelu_tanh), false, "GELU by its approximation with tanh"),
    FLAG("norm_plus_one", AT(norm_plus_one), false, "norms multiply by 1 + weight"),
    RANGE("embedding_scale", embedding_scale, 0.0, 1e6, "factor of token embeddings"),
    RANGE("query_pre_attn_scalar", query_pre_attn_scalar, 0.0, 1e6,
          "scores are divided by its root; default: the head size's"),
    RANGE("attention_softcap", attention_softcap, 0.0, 1e6, "soft cap of scores"),
    RANGE("logit_softcap", logit_softcap, 0.0, 1e6, "soft cap of logits"),
    RANGE("logit_scale", logit_scale, 0.0, 1e6, "factor of logits"),
    SIZE("position_offset", position_offset, false, 0,
         "row of learned positions of the first token"),
    SIZE("rotary_dim", rotary_dim, false, 0, "rotated entries of a head; default: all"),
    FLAG("rotary_interleaved", AT(rotary_interleaved), false,
         "neighbouring entries of a head are rotated against each other"),
    RANGE("rotary_local_base", rotary_local_base, 0.0, 1e15,
          "base of the rotary angles in layers with a window"),
    PART("rotary_scaling", "rotary angles of a model extended to longer sequences"),
    PART("not_executed", "names of features that no other key states; run refuses them"),
    PART("mla", "multi-head latent attention"),
    PART("moe", "mixture of experts"),
    PART("mamba", "Mamba-2 mixers"),
    PART("hybrid_override_pattern",
         "one letter per layer: M Mamba-2, * attention, - MLP, E experts"),
    PART("layer_pattern", "runs of equal layers, repeated until all layers are covered"),
    {0},
};

static const ms_field mla_fields[] = {
    SIZE("q_lora_rank", mla.q_lora_rank, true, 0, "rank of queries; 0: full rank"),
    SIZE("kv_lora_rank", mla.kv_lora_rank, true, 1, "rank of keys and values"),
    SIZE("nope_head_dim", mla.nope_head_dim, true, 1, "head size without rotation"),
    SIZE("rope_head_dim", mla.rope_head_dim, true, 1, "rotated head size"),
    SIZE("value_head_dim", value_head_dim, true, 1, "size of a value head"),
    {0},
};

static const ms_field moe_fields[] = {
    SIZE("num_experts", moe.num_experts, true, 1, "routed experts"),
    SIZE("top_k", moe.top_k, true, 1, "experts per token"),
    SIZE("ffn_hidden", moe.ffn_hidden, true, 1, "MLP size of one routed expert"),
    SIZE("shared_ffn_hidden", moe.shared_ffn_hidden, false, 0,
         "MLP size of all shared experts together"),
    FLAG("shared_gate", AT(moe.shared_gate), false, "a gate on the shared expert"),
    WORD("router", moe.router, ms_router_words, "kind of router"),
    FLAG("router_bias", AT(moe.router_bias), false, "a correction bias per expert"),
    FLAG("logit_bias", AT(moe.logit_bias), false, "a bias of the router's logits"),
    FLAG("norm_topk", AT(moe.norm_topk), true, "weights of the chosen sum to 1"),
    SIZE("num_groups", moe.num_groups, false, 0, "groups of experts"),
    SIZE("top_groups", moe.top_groups, false, 0, "groups that a token may use"),
    RANGE("routed_scaling", moe.routed_scaling, 0.0, 1e6,
          "factor of the weights of the chosen experts"),
    FLAG("expert_bias", AT(moe.expert_bias), false, "GEMMs of experts have biases"),
    {0},
};

#define SCALING(name, member, must, text)                                                \
    ROW(NUMBER, name, AT(rotary_scaling.member), must, 0.0, 1e15, NULL, text)
static const ms_field scaling_fields[] = {
    WORD("type", rotary_scaling.kind, scaling_words, "kind of scaling"),
    ROW(NUMBER, "factor", AT(rotary_scaling.factor), true, 1.0, 1e6, NULL,
        "how much longer sequences are"),
    SCALING("original_positions", original_positions, false, "context length before"),
    SCALING("low_frequency_factor", low_frequency_factor, false, "llama3"),
    SCALING("high_frequency_factor", high_frequency_factor, false, "llama3"),
    SCALING("beta_fast", beta_fast, false, "yarn"),
    SCALING("beta_slow", beta_slow, false, "yarn"),
    SCALING("mscale", mscale, false, "yarn of DeepSeek"),
    SCALING("mscale_all_dim", mscale_all_dim, false, "yarn of DeepSeek"),
    SCALING("attention_factor", attention_factor, false, "yarn: factor of the angles"),
    FLAG("untruncated", AT(rotary_scaling.untruncated), false,
         "yarn: bounds of the ramp are not whole numbers"),
    {0},
};

static const ms_field mamba_fields[] = {
    SIZE("mamba_num_heads", mamba.num_heads, true, 1, "heads"),
    SIZE("mamba_head_dim", mamba.head_dim, true, 1, "channels of a head"),
    SIZE("ssm_state_size", mamba.state_size, true, 1, "state of a channel"),
    SIZE("n_groups", mamba.num_groups, true, 1,
         "groups of heads that share input and output of their states"),
    SIZE("conv_kernel", mamba.conv_kernel, true, 1, "taps of the convolution"),
    SIZE("chunk_size", mamba.chunk_size, true, 1, "tokens of a chunk"),
    {0},
};

/* Consecutive equal layers: one element of the list of layers in a model file. */
typedef struct layer_run {
    long count;
    bool moe;
    long window_tokens;
} layer_run;

static const ms_field run_fields[] = {
    COUNT("count", offsetof(layer_run, count), true, 1, MS_MAX_MODEL_LAYERS,
          "layers in this run"),
    FLAG("moe", offsetof(layer_run, moe), false,
         "layers have experts; default: whether the model has experts"),
    COUNT("window_tokens", offsetof(layer_run, window_tokens), false, 1, 1 << 30,
          "sliding window; default: none"),
    {0},
};

/* ---- reading ---- */

static ms_status read_pattern(ms_ctx *cx, ms_jval pattern, ms_model *model)
{
    int num_runs = ms_json_is_array(pattern) ? ms_json_length(pattern) : 0;
    if (num_runs == 0)
        return ms_json_fail(cx, pattern, "\"layer_pattern\" must be an array of runs");
    layer_run *runs = MS_NEW_ARRAY(cx->arena, num_runs, layer_run);
    long num_covered = 0;
    for (int i = 0; i < num_runs; i++) {
        runs[i].moe = model->moe.num_experts > 0;
        MS_TRY(ms_json_read(cx, ms_json_element(cx, pattern, i), run_fields, &runs[i]));
        num_covered += runs[i].count;
        if (num_covered > model->num_layers)
            return ms_json_fail(cx, pattern, "runs of %ld layers in a model of %ld",
                                num_covered, model->num_layers);
    }
    long layer = 0;
    for (int i = 0; layer < model->num_layers; i = (i + 1) % num_runs) {
        ms_layer_kind kind = {.moe = runs[i].moe, .window_tokens = runs[i].window_tokens};
        for (long k = 0; k < runs[i].count && layer < model->num_layers; k++)
            if (!ms_model_set_layer(model, layer++, kind))
                return ms_json_fail(cx, pattern, "more than %d kinds of layers",
                                    MS_MAX_LAYER_KINDS);
    }
    return MS_OK;
}

static ms_status read_layers(ms_ctx *cx, ms_jval root, ms_model *model)
{
    ms_jval pattern;
    ms_model_clear_layers(cx, model);
    if (ms_json_member(cx, root, "layer_pattern", &pattern)) {
        if (ms_json_member(cx, root, "hybrid_override_pattern", &pattern))
            return ms_json_fail(cx, pattern,
                                "\"hybrid_override_pattern\" and \"layer_pattern\" "
                                "cannot both be given");
        return read_pattern(cx, pattern, model);
    }
    if (ms_json_member(cx, root, "hybrid_override_pattern", &pattern))
        return ms_model_read_hybrid(cx, pattern, model);
    ms_layer_kind kind = {.moe = model->moe.num_experts > 0};
    for (long i = 0; i < model->num_layers; i++)
        ms_model_set_layer(model, i, kind);
    return MS_OK;
}

static ms_status read_mla(ms_ctx *cx, ms_jval root, model_file *file)
{
    ms_model *model = &file->model;
    ms_jval mla;
    if (!ms_json_member(cx, root, "mla", &mla)) {
        if (model->head_dim == 0)
            return ms_json_fail(cx, root, "missing \"head_dim\" (or \"mla\")");
        model->value_head_dim = model->head_dim;
        return MS_OK;
    }
    if (model->head_dim != 0)
        return ms_json_fail(cx, root, "\"head_dim\" and \"mla\" cannot both be given");
    MS_TRY(ms_json_read(cx, mla, mla_fields, file));
    model->attention = MS_ATTENTION_MLA;
    model->head_dim = model->mla.nope_head_dim + model->mla.rope_head_dim;
    return MS_OK;
}

static bool has_dropout_rate(const ms_model *model)
{
    return model->attention_dropout + model->hidden_dropout + model->embedding_dropout >
           0.0;
}

static ms_status check_dropout(ms_ctx *cx, ms_jval root, const ms_model *model)
{
    if (model->dropout || !has_dropout_rate(model))
        return MS_OK;
    ms_fail(cx, MS_EINPUT, ms_json_key_loc(cx, root, "dropout"),
            "\"dropout\" is false, but a rate of dropout is above 0");
    return ms_hint(cx, "make the rates 0, or leave out \"dropout\"");
}

/* Sets absent keys of a model file whose defaults depend on other keys. */
static void set_defaults(ms_ctx *cx, ms_jval root, ms_model *model)
{
    ms_jval present;
    bool layer_norm = model->norm == MS_NORM_LAYER;
    if (!ms_json_member(cx, root, "norm_epsilon", &present))
        model->norm_epsilon = layer_norm ? 1e-5 : 1e-6;
    if (!ms_json_member(cx, root, "norm_bias", &present))
        model->norm_bias = layer_norm;
    if (model->num_nextn_predict_layers > 0 &&
        !ms_json_member(cx, root, "nextn_loss_weight", &present))
        model->nextn_loss_weight = MS_NEXTN_LOSS_WEIGHT;
    if (!ms_json_member(cx, root, "dropout", &present))
        model->dropout = has_dropout_rate(model);
    if (model->norms_per_layer == 0)
        model->norms_per_layer = model->post_norms && !model->no_pre_norms ? 4 : 2;
}

static ms_status read_not_executed(ms_ctx *cx, ms_jval root, ms_model *model)
{
    ms_jval list;
    if (!ms_json_member(cx, root, "not_executed", &list))
        return MS_OK;
    if (!ms_json_is_array(list))
        return ms_json_fail(cx, list, "\"not_executed\" must be an array of names");
    for (int i = 0; i < ms_json_length(list); i++) {
        const char *name = NULL;
        MS_TRY(ms_json_text(cx, ms_json_element(cx, list, i), &name));
        ms_model_add_not_executed(cx, model, name);
    }
    return MS_OK;
}

static ms_status check_schema(ms_ctx *cx, ms_jval root)
{
    ms_jval schema;
    const char *text = NULL;
    if (!ms_json_member(cx, root, "schema", &schema))
        return ms_json_fail(cx, root, "missing \"schema\"");
    MS_TRY(ms_json_text(cx, schema, &text));
    if (strcmp(text, MS_MODEL_CONFIG_SCHEMA) != 0)
        return ms_json_fail(cx, schema, "schema is \"%s\", must be \"%s\"", text,
                            MS_MODEL_CONFIG_SCHEMA);
    return MS_OK;
}

/* Reads the parts of a model file that are objects of their own. */
static ms_status read_parts(ms_ctx *cx, ms_jval root, model_file *file)
{
    const struct {
        const char *key;
        const ms_field *fields;
    } parts[] = {
        {"moe", moe_fields}, {"mamba", mamba_fields}, {"rotary_scaling", scaling_fields}};
    ms_jval part;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (ms_json_member(cx, root, parts[i].key, &part))
            MS_TRY(ms_json_read(cx, part, parts[i].fields, file));
    return read_not_executed(cx, root, &file->model);
}

ms_status ms_model_read_own(ms_ctx *cx, ms_jval root, ms_model *out)
{
    MS_TRY(check_schema(cx, root));
    model_file *file = MS_NEW(cx->arena, model_file);
    ms_model *model = &file->model;
    model->final_norm = true;
    model->rotary_base = 10000.0;
    MS_TRY(ms_json_read(cx, root, file_fields, file));
    set_defaults(cx, root, model);
    MS_TRY(check_dropout(cx, root, model));
    MS_TRY(read_mla(cx, root, file));
    MS_TRY(read_parts(cx, root, file));
    MS_TRY(read_layers(cx, root, model));
    MS_TRY(ms_model_check(cx, model, ms_json_loc(cx, root)));
    *out = *model;
    return MS_OK;
}

/* ---- writing ---- */

static void write_size(ms_jout *out, const char *key, long value)
{
    ms_jout_number_field(out, key, (double)value);
}

/* Whether model files omit the key when its value is 0 or false. */
static bool is_omitted_when_zero(const char *key)
{
    static const char *const keys[] = {"head_dim",
                                       "ffn_hidden",
                                       "num_nextn_predict_layers",
                                       "nextn_loss_weight",
                                       "attention_dropout",
                                       "hidden_dropout",
                                       "embedding_dropout",
                                       "no_pre_norms",
                                       "qk_norm_whole",
                                       "plain_norms",
                                       "qk_norm_head_weights",
                                       "mlp_scalars",
                                       "swiglu_limit",
                                       "attention_sinks",
                                       "logit_scale",
                                       "logit_bias",
                                       "untruncated",
                                       "expert_bias",
                                       "norm_plus_one",
                                       "embedding_scale",
                                       "query_pre_attn_scalar",
                                       "attention_softcap",
                                       "logit_softcap",
                                       "position_offset",
                                       "rotary_dim",
                                       "rotary_interleaved",
                                       "rotary_local_base",
                                       "num_groups",
                                       "top_groups",
                                       "routed_scaling",
                                       "original_positions",
                                       "low_frequency_factor",
                                       "high_frequency_factor",
                                       "beta_fast",
                                       "beta_slow",
                                       "mscale",
                                       "mscale_all_dim",
                                       "attention_factor",
                                       NULL};
    return ms_choice_find(key, keys) >= 0;
}

/* Writes the fields of a field table, in the table's order. */
static void write_fields(ms_jout *out, const ms_field *field, const model_file *file)
{
    for (; field->kind != MS_FIELD_END; field++) {
        const void *value = (const char *)file + field->offset;
        bool omits = is_omitted_when_zero(field->key);
        if (field->kind == MS_FIELD_TEXT)
            ms_jout_text_field(out, field->key, *(const char *const *)value);
        else if (field->kind == MS_FIELD_NUMBER &&
                 (!omits || *(const double *)value > 0.0))
            ms_jout_number_field(out, field->key, *(const double *)value);
        else if (field->kind == MS_FIELD_CHOICE)
            ms_jout_text_field(out, field->key, field->choices[*(const int *)value]);
        else if (field->kind == MS_FIELD_BOOL && (!omits || *(const bool *)value))
            ms_jout_bool_field(out, field->key, *(const bool *)value);
        else if (field->kind == MS_FIELD_INTEGER && (!omits || *(const long *)value != 0))
            write_size(out, field->key, *(const long *)value);
    }
}

static void write_part(ms_jout *out, const char *key, const ms_field *fields,
                       const model_file *file)
{
    ms_jout_begin_object_field(out, key);
    write_fields(out, fields, file);
    ms_jout_end_object(out);
}

/* Writes the runs of equal layers, from first to last. */
static void write_pattern(ms_jout *out, const ms_model *model)
{
    ms_jout_begin_array_field(out, "layer_pattern");
    long count = 0;
    for (long i = 0; i < model->num_layers; i++) {
        count++;
        int kind_idx = model->kind_of_layer[i];
        if (i + 1 < model->num_layers && model->kind_of_layer[i + 1] == kind_idx)
            continue;
        ms_jout_begin_object(out);
        write_size(out, "count", count);
        ms_jout_bool_field(out, "moe", model->kinds[kind_idx].moe);
        if (model->kinds[kind_idx].window_tokens > 0)
            write_size(out, "window_tokens", model->kinds[kind_idx].window_tokens);
        ms_jout_end_object(out);
        count = 0;
    }
    ms_jout_end_array(out);
}

static void write_not_executed(ms_jout *out, const ms_model *model)
{
    if (model->not_executed == NULL)
        return;
    ms_jout_begin_array_field(out, "not_executed");
    for (int i = 0; model->not_executed[i] != NULL; i++)
        ms_jout_text(out, model->not_executed[i]);
    ms_jout_end_array(out);
}

static void write_architecture(ms_jout *out, const ms_model *model)
{
    model_file file = {.schema = MS_MODEL_CONFIG_SCHEMA, .model = *model};
    bool is_mla = model->attention == MS_ATTENTION_MLA;
    if (is_mla)
        file.model.head_dim = 0; /* follows from "mla", so 0: not written */
    ms_jout_begin_object(out);
    write_fields(out, file_fields, &file);
    if (is_mla)
        write_part(out, "mla", mla_fields, &file);
    if (model->moe.num_experts > 0)
        write_part(out, "moe", moe_fields, &file);
    if (model->mamba.num_heads > 0)
        write_part(out, "mamba", mamba_fields, &file);
    if (model->rotary_scaling.kind != MS_ROTARY_SCALING_NONE)
        write_part(out, "rotary_scaling", scaling_fields, &file);
    write_not_executed(out, model);
    if (ms_model_is_hybrid(model)) {
        ms_arena *scratch = ms_arena_open();
        ms_jout_text_field(out, "hybrid_override_pattern",
                           ms_model_hybrid_text(scratch, model));
        ms_arena_close(scratch);
    } else {
        write_pattern(out, model);
    }
    ms_jout_end_object(out);
}

static void write_params(ms_jout *out, const ms_model *model)
{
    ms_param_counts params = ms_model_params(model);
    const struct {
        const char *key;
        double count;
    } counts[] = {{"total", params.total},
                  {"embedding", params.embedding},
                  {"attention", params.attention},
                  {"mamba", params.mamba},
                  {"mlp", params.mlp},
                  {"experts", params.experts},
                  {"router", params.router},
                  {"norm", params.norm},
                  {"head", params.head},
                  {"active", params.active}};
    ms_jout_begin_object_field(out, "params");
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        ms_jout_number_field(out, counts[i].key, counts[i].count);
    ms_jout_end_object(out);
}

void ms_model_write_json(ms_jout *out, const ms_model *model, double sequence_length)
{
    ms_flop_per_token flop = ms_model_flop_per_token(model, sequence_length);
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "schema", "meshsim.model/1");
    ms_jout_text_field(out, "name", model->name);
    ms_jout_text_field(out, "source", model->source);
    write_params(out, model);
    ms_jout_number_field(out, "sequence_length", sequence_length);
    ms_jout_begin_object_field(out, "flop_per_token");
    ms_jout_number_field(out, "causal", flop.causal_flop);
    ms_jout_number_field(out, "full", flop.full_flop);
    ms_jout_end_object(out);
    ms_jout_key(out, "architecture");
    write_architecture(out, model);
    ms_jout_end_object(out);
}
