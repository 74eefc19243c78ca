/* Our own model file, meshsim.model-config/1, by field tables; and the output meshsim.model/1,
 * whose architecture is again such a file: what is written reads back as the same model. */
#include "costmodel/model/model_priv.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

const char *const ms_norm_words[] = {"rms", "layer", NULL};
const char *const ms_activation_words[] = {"swiglu", "geglu", "gelu",
                                           "relu",   "relu2", NULL};
const char *const ms_position_words[] = {"rotary", "learned", "alibi", "none", NULL};
const char *const ms_router_words[] = {"softmax-topk", "topk-softmax", "sigmoid", NULL};

/* Choices are written through an int. */
static_assert(sizeof(ms_norm_kind) == sizeof(int), "enums are ints");

/* A model file as it is read. */
typedef struct model_file {
    const char *schema;
    ms_model model;
} model_file;

#define AT(member) offsetof(model_file, member)
#define TEXT(name, at, must, words)                                                      \
    {                                                                                    \
        .kind = MS_FIELD_TEXT, .key = (name), .offset = (at), .required = (must),        \
        .help = (words)                                                                  \
    }
#define SIZE(name, at, must, least, words)                                               \
    {                                                                                    \
        .kind = MS_FIELD_INTEGER, .key = (name), .offset = (at), .required = (must),     \
        .low = (least), .high = MS_MAX_MODEL_SIZE, .help = (words)                       \
    }
#define FLAG(name, at, must, words)                                                      \
    {                                                                                    \
        .kind = MS_FIELD_BOOL, .key = (name), .offset = (at), .required = (must),        \
        .help = (words)                                                                  \
    }
#define RANGE(name, at, least, most, words)                                              \
    {                                                                                    \
        .kind = MS_FIELD_NUMBER, .key = (name), .offset = (at), .low = (least),          \
        .high = (most), .help = (words)                                                  \
    }
#define WORD(name, at, list, must, what)                                                 \
    {                                                                                    \
        .kind = MS_FIELD_CHOICE, .key = (name), .offset = (at), .choices = (list),       \
        .required = (must), .help = (what)                                               \
    }
#define PART(name, words)                                                                \
    {                                                                                    \
        .kind = MS_FIELD_ANY, .key = (name), .help = (words)                             \
    }

static const ms_field file_fields[] = {
    TEXT("schema", AT(schema), true, MS_MODEL_CONFIG_SCHEMA),
    TEXT("name", AT(model.name), true, "name of the model"),
    TEXT("family", AT(model.family), true, "Hugging Face model_type"),
    TEXT("source", AT(model.source), true, "where the figures come from"),
    {.kind = MS_FIELD_INTEGER,
     .key = "layers",
     .offset = AT(model.num_layers),
     .required = true,
     .low = 1,
     .high = MS_MAX_MODEL_LAYERS,
     .help = "transformer layers"},
    SIZE("hidden", AT(model.hidden), true, 1, "hidden size h"),
    SIZE("heads", AT(model.num_heads), true, 1, "query heads"),
    SIZE("kv_heads", AT(model.num_kv_heads), true, 1,
         "key-value heads; divide the heads"),
    SIZE("head_dim", AT(model.head_dim), false, 1, "size of a head; given unless mla is"),
    SIZE("ffn_hidden", AT(model.ffn_hidden), false, 1,
         "MLP size of layers without experts"),
    SIZE("vocab", AT(model.vocab), true, 1, "rows of the embedding"),
    SIZE("max_positions", AT(model.max_positions), true, 1,
         "rows of learned positions, otherwise the context length"),
    FLAG("tied_embeddings", AT(model.tied_embeddings), true, "the head is the embedding"),
    FLAG("embedding_norm", AT(model.embedding_norm), false, "a norm after the embedding"),
    WORD("norm", AT(model.norm), ms_norm_words, true, "kind of norms"),
    FLAG("norm_bias", AT(model.norm_bias), false, "default: true for layer norms"),
    FLAG("post_norms", AT(model.post_norms), false, "norms after attention and MLP, too"),
    FLAG("qk_norm", AT(model.qk_norm), false, "norms on queries and keys of each head"),
    FLAG("parallel_block", AT(model.parallel_block), false, "attention beside MLP"),
    SIZE("norms_per_layer", AT(model.norms_per_layer), false, 1,
         "default: 4 with post_norms, otherwise 2"),
    FLAG("final_norm", AT(model.final_norm), false,
         "a norm before the head; default: true"),
    WORD("activation", AT(model.activation), ms_activation_words, true, "of the MLPs"),
    WORD("position", AT(model.position), ms_position_words, true, "kind of positions"),
    FLAG("qkv_bias", AT(model.qkv_bias), false, "biases of queries, keys and values"),
    FLAG("attention_out_bias", AT(model.attention_out_bias), false,
         "bias after attention"),
    FLAG("mlp_bias", AT(model.mlp_bias), false, "biases of the MLPs"),
    FLAG("head_bias", AT(model.head_bias), false, "bias of the head"),
    FLAG("dropout", AT(model.dropout), false, "trained with dropout"),
    {.kind = MS_FIELD_INTEGER,
     .key = "num_nextn_predict_layers",
     .offset = AT(model.num_nextn_predict_layers),
     .low = 0,
     .high = MS_MAX_NEXTN_LAYERS,
     .help = "modules of multi-token prediction, where a stack trains them"},
    RANGE("rotary_base", AT(model.rotary_base), 1.0, 1e15,
          "base of the rotary angles; default: 10000"),
    RANGE("norm_epsilon", AT(model.norm_epsilon), 0.0, 1.0,
          "added to variances; default: 1e-6 for rms, 1e-5 for layer"),
    FLAG("gelu_tanh", AT(model.gelu_tanh), false, "GELU by its approximation with tanh"),
    PART("mla", "multi-head latent attention"),
    PART("moe", "mixture of experts"),
    PART("mamba", "Mamba-2 mixers"),
    PART("hybrid_override_pattern",
         "a letter a layer: M Mamba-2, * attention, - MLP, E experts"),
    PART("layer_pattern", "runs of equal layers, repeated until all layers are covered"),
    {0},
};

static const ms_field mla_fields[] = {
    SIZE("q_lora_rank", AT(model.mla.q_lora_rank), true, 0, "0: plain query projection"),
    SIZE("kv_lora_rank", AT(model.mla.kv_lora_rank), true, 1, "rank of keys and values"),
    SIZE("nope_head_dim", AT(model.mla.nope_head_dim), true, 1, "part without rotation"),
    SIZE("rope_head_dim", AT(model.mla.rope_head_dim), true, 1, "rotated part"),
    SIZE("value_head_dim", AT(model.value_head_dim), true, 1, "size of a value head"),
    {0},
};

static const ms_field moe_fields[] = {
    SIZE("num_experts", AT(model.moe.num_experts), true, 1, "routed experts"),
    SIZE("top_k", AT(model.moe.top_k), true, 1, "experts per token"),
    SIZE("ffn_hidden", AT(model.moe.ffn_hidden), true, 1,
         "MLP size of one routed expert"),
    SIZE("shared_ffn_hidden", AT(model.moe.shared_ffn_hidden), false, 0,
         "MLP size of all shared experts together"),
    FLAG("expert_bias", AT(model.moe.expert_bias), false,
         "the experts' products have biases; their traffic is priced"),
    FLAG("shared_gate", AT(model.moe.shared_gate), false, "a gate on the shared expert"),
    WORD("router", AT(model.moe.router), ms_router_words, true, "kind of router"),
    FLAG("router_bias", AT(model.moe.router_bias), false, "a correction bias per expert"),
    FLAG("norm_topk", AT(model.moe.norm_topk), true, "weights of the chosen sum to 1"),
    {0},
};

static const ms_field mamba_fields[] = {
    SIZE("mamba_num_heads", AT(model.mamba.num_heads), true, 1, "heads"),
    SIZE("mamba_head_dim", AT(model.mamba.head_dim), true, 1, "channels of a head"),
    SIZE("ssm_state_size", AT(model.mamba.state_size), true, 1, "state of a channel"),
    SIZE("n_groups", AT(model.mamba.num_groups), true, 1,
         "groups of heads that share input and output of their states"),
    SIZE("conv_kernel", AT(model.mamba.conv_kernel), true, 1, "taps of the convolution"),
    SIZE("chunk_size", AT(model.mamba.chunk_size), true, 1, "tokens of a chunk"),
    {0},
};

/* One run of equal layers. */
typedef struct layer_run {
    long count;
    bool moe;
    long window_tokens;
} layer_run;

static const ms_field run_fields[] = {
    {.kind = MS_FIELD_INTEGER,
     .key = "count",
     .offset = offsetof(layer_run, count),
     .required = true,
     .low = 1,
     .high = MS_MAX_MODEL_LAYERS,
     .help = "layers in this run"},
    FLAG("moe", offsetof(layer_run, moe), false,
         "default: whether the model has experts"),
    {.kind = MS_FIELD_INTEGER,
     .key = "window_tokens",
     .offset = offsetof(layer_run, window_tokens),
     .low = 1,
     .high = 1 << 30,
     .help = "sliding window; default: none"},
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

/* Of absent keys, where they depend on others. */
static void set_defaults(ms_ctx *cx, ms_jval root, ms_model *model)
{
    ms_jval present;
    bool layer_norm = model->norm == MS_NORM_LAYER;
    if (!ms_json_member(cx, root, "norm_epsilon", &present))
        model->norm_epsilon = layer_norm ? 1e-5 : 1e-6;
    if (!ms_json_member(cx, root, "norm_bias", &present))
        model->norm_bias = layer_norm;
    if (model->norms_per_layer == 0)
        model->norms_per_layer = model->post_norms ? 4 : 2;
}

static ms_status read_parts(ms_ctx *cx, ms_jval root, model_file *file)
{
    ms_jval part;
    if (ms_json_member(cx, root, "moe", &part))
        MS_TRY(ms_json_read(cx, part, moe_fields, file));
    if (ms_json_member(cx, root, "mamba", &part))
        MS_TRY(ms_json_read(cx, part, mamba_fields, file));
    return MS_OK;
}

ms_status ms_model_read_own(ms_ctx *cx, ms_jval root, ms_model *out)
{
    ms_jval schema;
    const char *text = NULL;
    if (!ms_json_member(cx, root, "schema", &schema))
        return ms_json_fail(cx, root, "missing \"schema\"");
    MS_TRY(ms_json_text(cx, schema, &text));
    if (strcmp(text, MS_MODEL_CONFIG_SCHEMA) != 0)
        return ms_json_fail(cx, schema, "schema is \"%s\", must be \"%s\"", text,
                            MS_MODEL_CONFIG_SCHEMA);
    model_file *file = MS_NEW(cx->arena, model_file);
    ms_model *model = &file->model;
    model->final_norm = true;
    model->rotary_base = 10000.0;
    MS_TRY(ms_json_read(cx, root, file_fields, file));
    set_defaults(cx, root, model);
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

static void write_mla(ms_jout *out, const ms_model *model)
{
    ms_jout_begin_object_field(out, "mla");
    write_size(out, "q_lora_rank", model->mla.q_lora_rank);
    write_size(out, "kv_lora_rank", model->mla.kv_lora_rank);
    write_size(out, "nope_head_dim", model->mla.nope_head_dim);
    write_size(out, "rope_head_dim", model->mla.rope_head_dim);
    write_size(out, "value_head_dim", model->value_head_dim);
    ms_jout_end_object(out);
}

static void write_moe(ms_jout *out, const ms_model *model)
{
    ms_jout_begin_object_field(out, "moe");
    write_size(out, "num_experts", model->moe.num_experts);
    write_size(out, "top_k", model->moe.top_k);
    write_size(out, "ffn_hidden", model->moe.ffn_hidden);
    write_size(out, "shared_ffn_hidden", model->moe.shared_ffn_hidden);
    ms_jout_bool_field(out, "shared_gate", model->moe.shared_gate);
    ms_jout_text_field(out, "router", ms_router_words[model->moe.router]);
    ms_jout_bool_field(out, "router_bias", model->moe.router_bias);
    ms_jout_bool_field(out, "norm_topk", model->moe.norm_topk);
    if (model->moe.expert_bias)
        ms_jout_bool_field(out, "expert_bias", true);
    ms_jout_end_object(out);
}

static void write_mamba(ms_jout *out, const ms_model *model)
{
    ms_jout_begin_object_field(out, "mamba");
    write_size(out, "mamba_num_heads", model->mamba.num_heads);
    write_size(out, "mamba_head_dim", model->mamba.head_dim);
    write_size(out, "ssm_state_size", model->mamba.state_size);
    write_size(out, "n_groups", model->mamba.num_groups);
    write_size(out, "conv_kernel", model->mamba.conv_kernel);
    write_size(out, "chunk_size", model->mamba.chunk_size);
    ms_jout_end_object(out);
}

static void write_hybrid(ms_jout *out, const ms_model *model)
{
    ms_arena *scratch = ms_arena_open();
    ms_jout_text_field(out, "hybrid_override_pattern",
                       ms_model_hybrid_text(scratch, model));
    ms_arena_close(scratch);
}

/* The runs of equal layers, each written once, from first to last. */
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

static void write_shapes(ms_jout *out, const ms_model *model)
{
    write_size(out, "layers", model->num_layers);
    write_size(out, "hidden", model->hidden);
    write_size(out, "heads", model->num_heads);
    write_size(out, "kv_heads", model->num_kv_heads);
    if (model->attention != MS_ATTENTION_MLA)
        write_size(out, "head_dim", model->head_dim);
    if (model->ffn_hidden > 0)
        write_size(out, "ffn_hidden", model->ffn_hidden);
    write_size(out, "vocab", model->vocab);
    write_size(out, "max_positions", model->max_positions);
}

static void write_architecture(ms_jout *out, const ms_model *model)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "schema", MS_MODEL_CONFIG_SCHEMA);
    ms_jout_text_field(out, "name", model->name);
    ms_jout_text_field(out, "family", model->family);
    ms_jout_text_field(out, "source", model->source);
    write_shapes(out, model);
    ms_jout_bool_field(out, "tied_embeddings", model->tied_embeddings);
    ms_jout_bool_field(out, "embedding_norm", model->embedding_norm);
    ms_jout_text_field(out, "norm", ms_norm_words[model->norm]);
    ms_jout_bool_field(out, "norm_bias", model->norm_bias);
    ms_jout_bool_field(out, "post_norms", model->post_norms);
    ms_jout_bool_field(out, "qk_norm", model->qk_norm);
    ms_jout_bool_field(out, "parallel_block", model->parallel_block);
    write_size(out, "norms_per_layer", model->norms_per_layer);
    ms_jout_bool_field(out, "final_norm", model->final_norm);
    ms_jout_text_field(out, "activation", ms_activation_words[model->activation]);
    ms_jout_text_field(out, "position", ms_position_words[model->position]);
    ms_jout_bool_field(out, "qkv_bias", model->qkv_bias);
    ms_jout_bool_field(out, "attention_out_bias", model->attention_out_bias);
    ms_jout_bool_field(out, "mlp_bias", model->mlp_bias);
    ms_jout_bool_field(out, "head_bias", model->head_bias);
    ms_jout_bool_field(out, "dropout", model->dropout);
    if (model->num_nextn_predict_layers > 0)
        write_size(out, "num_nextn_predict_layers", model->num_nextn_predict_layers);
    ms_jout_number_field(out, "rotary_base", model->rotary_base);
    ms_jout_number_field(out, "norm_epsilon", model->norm_epsilon);
    ms_jout_bool_field(out, "gelu_tanh", model->gelu_tanh);
    if (model->attention == MS_ATTENTION_MLA)
        write_mla(out, model);
    if (model->moe.num_experts > 0)
        write_moe(out, model);
    if (model->mamba.num_heads > 0)
        write_mamba(out, model);
    if (ms_model_is_hybrid(model))
        write_hybrid(out, model);
    else
        write_pattern(out, model);
    ms_jout_end_object(out);
}

static void write_params(ms_jout *out, const ms_model *model)
{
    ms_param_counts params = ms_model_params(model);
    ms_jout_begin_object(out);
    ms_jout_number_field(out, "total", params.total);
    ms_jout_number_field(out, "embedding", params.embedding);
    ms_jout_number_field(out, "attention", params.attention);
    ms_jout_number_field(out, "mamba", params.mamba);
    ms_jout_number_field(out, "mlp", params.mlp);
    ms_jout_number_field(out, "experts", params.experts);
    ms_jout_number_field(out, "router", params.router);
    ms_jout_number_field(out, "norm", params.norm);
    ms_jout_number_field(out, "head", params.head);
    ms_jout_number_field(out, "active", params.active);
    ms_jout_end_object(out);
}

void ms_model_write_json(ms_jout *out, const ms_model *model, double sequence_length)
{
    ms_flop_per_token flop = ms_model_flop_per_token(model, sequence_length);
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "schema", "meshsim.model/1");
    ms_jout_text_field(out, "name", model->name);
    ms_jout_text_field(out, "source", model->source);
    ms_jout_key(out, "params");
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
