/* Hugging Face model types, one row each: config keys, values fixed by the model class,
 * and a function for derived values. Defaults are those of the classes (huggingface
 * transformers, models/<type>/configuration_<type>.py). Other keys
 * that may change a model are listed (ms_model.unread_keys). */
#include "costmodel/model/model_hf_priv.h"

#include <stddef.h>
#include <string.h>

#define AT(member) offsetof(ms_hf_config, member)
#define KEY(key, other, type, need, at, low, fallback, word)                             \
    {                                                                                    \
        key, other, MS_HF_##type, MS_HF_##need, AT(at), low, fallback, word              \
    }
#define SIZE(key, at)                 SIZE_ALIAS(key, NULL, at)
#define SIZE_ALIAS(key, other, at)    KEY(key, other, SIZE, REQUIRED, at, 1, 0, NULL)
#define SIZE_NOT_ABSENT(key, at)      KEY(key, NULL, SIZE, REQUIRED_OR_NULL, at, 1, 0, NULL)
#define SIZE_DEFAULT(key, at, value)  KEY(key, NULL, SIZE, DEFAULT, at, 1, value, NULL)
#define SIZE_OR_NULL(key, at, value)  KEY(key, NULL, SIZE, NULLABLE, at, 1, value, NULL)
#define COUNT(key, at)                KEY(key, NULL, SIZE, REQUIRED, at, 0, 0, NULL)
#define COUNT_OR_NULL(key, at, value) KEY(key, NULL, SIZE, NULLABLE, at, 0, value, NULL)
#define FLAG(key, at, value)          KEY(key, NULL, FLAG, DEFAULT, at, 0, value, NULL)
#define NEEDED_FLAG(key, at)          KEY(key, NULL, FLAG, REQUIRED, at, 0, 0, NULL)
#define RATE(key, at, value)          KEY(key, NULL, RATE, DEFAULT, at, 0, value, NULL)
#define EPSILON(key, value)           RATE(key, model.norm_epsilon, value)
#define WORD(key, other, at, value)   KEY(key, other, WORD, DEFAULT, at, 0, 0, value)
#define SCALAR(key, at, value)        KEY(key, NULL, SCALAR, NULLABLE, at, 0, value, NULL)
#define BASE(key, other, value)                                                          \
    KEY(key, other, BASE, DEFAULT, model.rotary_base, 0, value, NULL)

/* ---- keys ---- */

static const ms_hf_key core_keys[] = {
    SIZE("hidden_size", model.hidden),
    SIZE("num_hidden_layers", model.num_layers),
    SIZE("num_attention_heads", model.num_heads),
    SIZE("vocab_size", model.vocab),
    SIZE("max_position_embeddings", model.max_positions),
    {0},
};

static const ms_hf_key llama_keys[] = {
    SIZE("intermediate_size", model.ffn_hidden),
    SIZE_OR_NULL("num_key_value_heads", model.num_kv_heads, 0),
    SIZE_OR_NULL("head_dim", model.head_dim, 0),
    WORD("hidden_act", NULL, activation, "silu"),
    FLAG("attention_bias", attention_bias, false),
    FLAG("mlp_bias", model.mlp_bias, false),
    FLAG("tie_word_embeddings", model.tied_embeddings, false),
    BASE("rope_theta", NULL, 10000),
    EPSILON("rms_norm_eps", 1e-6),
    {0},
};

static const ms_hf_key mistral_keys[] = {
    SIZE("intermediate_size", model.ffn_hidden),
    SIZE_OR_NULL("num_key_value_heads", model.num_kv_heads, 8),
    SIZE_OR_NULL("head_dim", model.head_dim, 0),
    WORD("hidden_act", NULL, activation, "silu"),
    SIZE_OR_NULL("sliding_window", sliding_window, 4096),
    FLAG("tie_word_embeddings", model.tied_embeddings, false),
    BASE("rope_theta", NULL, 10000),
    EPSILON("rms_norm_eps", 1e-6),
    {0},
};

/* Mixtral: intermediate_size is the width of experts; there are no dense MLPs. */
static const ms_hf_key mixtral_keys[] = {
    SIZE("intermediate_size", model.moe.ffn_hidden),
    SIZE_ALIAS("num_local_experts", "num_experts", model.moe.num_experts),
    SIZE("num_experts_per_tok", model.moe.top_k),
    SIZE_OR_NULL("num_key_value_heads", model.num_kv_heads, 8),
    SIZE_OR_NULL("head_dim", model.head_dim, 0),
    WORD("hidden_act", NULL, activation, "silu"),
    COUNT_OR_NULL("sliding_window", sliding_window, 0),
    FLAG("tie_word_embeddings", model.tied_embeddings, false),
    BASE("rope_theta", NULL, 1e6),
    EPSILON("rms_norm_eps", 1e-5),
    {0},
};

static const ms_hf_key qwen_keys[] = {
    SIZE("intermediate_size", model.ffn_hidden),
    SIZE_NOT_ABSENT("num_key_value_heads", model.num_kv_heads),
    WORD("hidden_act", NULL, activation, "silu"),
    FLAG("tie_word_embeddings", model.tied_embeddings, false),
    FLAG("use_sliding_window", use_sliding_window, false),
    COUNT_OR_NULL("sliding_window", sliding_window, 4096),
    BASE("rope_theta", NULL, 10000),
    EPSILON("rms_norm_eps", 1e-6),
    {0},
};

/* Qwen3-MoE lacks max_window_layers: its sliding window holds for all layers. */
static const ms_hf_key qwen_window_keys[] = {
    COUNT_OR_NULL("max_window_layers", max_window_layers, 28),
    {0},
};

static const ms_hf_key qwen3_keys[] = {
    SIZE_DEFAULT("head_dim", model.head_dim, 128),
    FLAG("attention_bias", attention_bias, false),
    {0},
};

static const ms_hf_key qwen_moe_keys[] = {
    SIZE_ALIAS("num_experts", "num_local_experts", model.moe.num_experts),
    SIZE("num_experts_per_tok", model.moe.top_k),
    SIZE("moe_intermediate_size", model.moe.ffn_hidden),
    SIZE_DEFAULT("decoder_sparse_step", decoder_sparse_step, 1),
    FLAG("norm_topk_prob", model.moe.norm_topk, false),
    {0},
};

static const ms_hf_key qwen2_moe_keys[] = {
    SIZE("shared_expert_intermediate_size", model.moe.shared_ffn_hidden),
    FLAG("qkv_bias", model.qkv_bias, true),
    {0},
};

static const ms_hf_key deepseek_keys[] = {
    SIZE("intermediate_size", model.ffn_hidden),
    SIZE_NOT_ABSENT("q_lora_rank", model.mla.q_lora_rank),
    SIZE("kv_lora_rank", model.mla.kv_lora_rank),
    SIZE("qk_nope_head_dim", model.mla.nope_head_dim),
    SIZE("qk_rope_head_dim", model.mla.rope_head_dim),
    SIZE("v_head_dim", model.value_head_dim),
    WORD("hidden_act", NULL, activation, "silu"),
    FLAG("attention_bias", attention_bias, false),
    FLAG("tie_word_embeddings", model.tied_embeddings, false),
    BASE("rope_theta", NULL, 10000),
    EPSILON("rms_norm_eps", 1e-6),
    {0},
};

static const ms_hf_key deepseek_moe_keys[] = {
    SIZE_ALIAS("n_routed_experts", "num_experts", model.moe.num_experts),
    SIZE("num_experts_per_tok", model.moe.top_k),
    SIZE("moe_intermediate_size", model.moe.ffn_hidden),
    SIZE_NOT_ABSENT("n_shared_experts", num_shared_experts),
    COUNT("first_k_dense_replace", first_k_dense),
    SIZE_DEFAULT("moe_layer_freq", moe_layer_freq, 1),
    NEEDED_FLAG("norm_topk_prob", model.moe.norm_topk),
    COUNT_OR_NULL("num_nextn_predict_layers", model.num_nextn_predict_layers, 0),
    WORD("scoring_func", NULL, scoring, NULL),
    WORD("topk_method", NULL, topk_method, NULL),
    COUNT_OR_NULL("n_group", model.moe.num_groups, 0),
    COUNT_OR_NULL("topk_group", model.moe.top_groups, 0),
    SCALAR("routed_scaling_factor", model.moe.routed_scaling, 0),
    FLAG("rope_interleave", model.rotary_interleaved, true),
    {0},
};

static const ms_hf_key gemma2_keys[] = {
    SIZE("intermediate_size", model.ffn_hidden),
    SIZE("num_key_value_heads", model.num_kv_heads),
    SIZE_DEFAULT("head_dim", model.head_dim, 256),
    WORD("hidden_activation", "hidden_act", activation, "gelu_pytorch_tanh"),
    FLAG("attention_bias", attention_bias, false),
    FLAG("tie_word_embeddings", model.tied_embeddings, true),
    COUNT_OR_NULL("sliding_window", sliding_window, 4096),
    SCALAR("query_pre_attn_scalar", model.query_pre_attn_scalar, 256),
    SCALAR("attn_logit_softcapping", model.attention_softcap, 50),
    SCALAR("final_logit_softcapping", model.logit_softcap, 30),
    BASE("rope_theta", NULL, 10000),
    EPSILON("rms_norm_eps", 1e-6),
    {0},
};

/* Published Gemma 3 configs omit values, sizes included, that equal the defaults. */
static const ms_hf_key gemma3_keys[] = {
    SIZE("hidden_size", model.hidden),
    SIZE("num_hidden_layers", model.num_layers),
    SIZE("intermediate_size", model.ffn_hidden),
    SIZE_DEFAULT("num_attention_heads", model.num_heads, 8),
    SIZE_DEFAULT("num_key_value_heads", model.num_kv_heads, 4),
    SIZE_DEFAULT("head_dim", model.head_dim, 256),
    SIZE_DEFAULT("vocab_size", model.vocab, 262208),
    SIZE_DEFAULT("max_position_embeddings", model.max_positions, 131072),
    WORD("hidden_activation", "hidden_act", activation, "gelu_pytorch_tanh"),
    FLAG("attention_bias", attention_bias, false),
    FLAG("tie_word_embeddings", model.tied_embeddings, true),
    COUNT_OR_NULL("sliding_window", sliding_window, 4096),
    KEY("sliding_window_pattern", "_sliding_window_pattern", SIZE, DEFAULT,
        sliding_period, 1, 6, NULL),
    SCALAR("query_pre_attn_scalar", model.query_pre_attn_scalar, 256),
    SCALAR("attn_logit_softcapping", model.attention_softcap, 0),
    SCALAR("final_logit_softcapping", model.logit_softcap, 0),
    SCALAR("rope_local_base_freq", model.rotary_local_base, 10000),
    BASE("rope_theta", NULL, 1e6),
    EPSILON("rms_norm_eps", 1e-6),
    {0},
};

static const ms_hf_key gpt2_keys[] = {
    SIZE_ALIAS("n_embd", "hidden_size", model.hidden),
    SIZE_ALIAS("n_layer", "num_hidden_layers", model.num_layers),
    SIZE_ALIAS("n_head", "num_attention_heads", model.num_heads),
    SIZE_ALIAS("n_positions", "max_position_embeddings", model.max_positions),
    SIZE("vocab_size", model.vocab),
    SIZE_OR_NULL("n_inner", model.ffn_hidden, 0),
    WORD("activation_function", NULL, activation, "gelu_new"),
    FLAG("tie_word_embeddings", model.tied_embeddings, true),
    RATE("resid_pdrop", dropout_rates[0], 0.1),
    RATE("embd_pdrop", dropout_rates[2], 0.1),
    RATE("attn_pdrop", dropout_rates[1], 0.1),
    EPSILON("layer_norm_epsilon", 1e-5),
    {0},
};

static const ms_hf_key gpt_neox_keys[] = {
    SIZE("intermediate_size", model.ffn_hidden),
    WORD("hidden_act", NULL, activation, "gelu"),
    FLAG("use_parallel_residual", model.parallel_block, true),
    FLAG("attention_bias", attention_bias, true),
    RATE("hidden_dropout", dropout_rates[0], 0.0),
    RATE("attention_dropout", dropout_rates[1], 0.0),
    FLAG("tie_word_embeddings", model.tied_embeddings, false),
    BASE("rope_theta", "rotary_emb_base", 10000),
    KEY("rotary_pct", "partial_rotary_factor", RATE, DEFAULT, rotary_frac, 0, 0.25, NULL),
    EPSILON("layer_norm_eps", 1e-5),
    {0},
};

static const ms_hf_key opt_keys[] = {
    SIZE_ALIAS("hidden_size", "d_model", model.hidden),
    SIZE("num_hidden_layers", model.num_layers),
    SIZE("num_attention_heads", model.num_heads),
    SIZE("vocab_size", model.vocab),
    SIZE("max_position_embeddings", model.max_positions),
    SIZE("ffn_dim", model.ffn_hidden),
    SIZE_OR_NULL("word_embed_proj_dim", word_embed_dim, 0),
    WORD("activation_function", NULL, activation, "relu"),
    FLAG("do_layer_norm_before", norm_before, true),
    FLAG("layer_norm_elementwise_affine", norm_affine, true),
    FLAG("_remove_final_layer_norm", removed_final_norm, false),
    FLAG("enable_bias", bias, true),
    RATE("dropout", dropout_rates[0], 0.1),
    RATE("attention_dropout", dropout_rates[1], 0.0),
    FLAG("tie_word_embeddings", model.tied_embeddings, true),
    {0},
};

static const ms_hf_key falcon_keys[] = {
    SIZE_ALIAS("hidden_size", "n_embed", model.hidden),
    SIZE_ALIAS("num_hidden_layers", "n_layer", model.num_layers),
    SIZE_ALIAS("num_attention_heads", "n_head", model.num_heads),
    KEY("num_kv_heads", "n_head_kv", SIZE, NULLABLE, model.num_kv_heads, 1, 0, NULL),
    SIZE("vocab_size", model.vocab),
    SIZE_DEFAULT("max_position_embeddings", model.max_positions, 2048),
    SIZE_OR_NULL("ffn_hidden_size", model.ffn_hidden, 0),
    WORD("activation", NULL, activation, "gelu"),
    FLAG("multi_query", multi_query, true),
    FLAG("new_decoder_architecture", new_decoder, false),
    FLAG("parallel_attn", parallel_attn, true),
    FLAG("bias", bias, false),
    RATE("hidden_dropout", dropout_rates[0], 0.0),
    RATE("attention_dropout", dropout_rates[1], 0.0),
    FLAG("alibi", alibi, false),
    COUNT_OR_NULL("num_ln_in_parallel_attn", num_parallel_norms, 0),
    FLAG("tie_word_embeddings", model.tied_embeddings, true),
    BASE("rope_theta", NULL, 10000),
    EPSILON("layer_norm_epsilon", 1e-5),
    {0},
};

/* Nemotron-H 8B and 56B have no experts, Nemotron 3 no dense MLPs; `expand` is unused. */
static const ms_hf_key nemotron_h_keys[] = {
    SIZE_OR_NULL("num_key_value_heads", model.num_kv_heads, 8),
    KEY("head_dim", "attention_head_dim", SIZE, DEFAULT, model.head_dim, 1, 128, NULL),
    SIZE_OR_NULL("intermediate_size", model.ffn_hidden, 0),
    SIZE("mamba_num_heads", model.mamba.num_heads),
    SIZE("mamba_head_dim", model.mamba.head_dim),
    SIZE("ssm_state_size", model.mamba.state_size),
    SIZE("n_groups", model.mamba.num_groups),
    SIZE_DEFAULT("conv_kernel", model.mamba.conv_kernel, 4),
    SIZE_DEFAULT("chunk_size", model.mamba.chunk_size, 128),
    COUNT_OR_NULL("n_routed_experts", model.moe.num_experts, 0),
    COUNT_OR_NULL("num_experts_per_tok", model.moe.top_k, 0),
    COUNT_OR_NULL("moe_intermediate_size", model.moe.ffn_hidden, 0),
    COUNT_OR_NULL("moe_shared_expert_intermediate_size", model.moe.shared_ffn_hidden, 0),
    FLAG("norm_topk_prob", model.moe.norm_topk, true),
    COUNT_OR_NULL("n_group", model.moe.num_groups, 0),
    COUNT_OR_NULL("topk_group", model.moe.top_groups, 0),
    SCALAR("routed_scaling_factor", model.moe.routed_scaling, 0),
    WORD("mlp_hidden_act", NULL, activation, "relu2"),
    FLAG("attention_bias", attention_bias, false),
    FLAG("mlp_bias", model.mlp_bias, false),
    FLAG("use_bias", bias, false),
    FLAG("use_conv_bias", conv_bias, true),
    FLAG("tie_word_embeddings", model.tied_embeddings, false),
    KEY("layer_norm_epsilon", "norm_eps", RATE, DEFAULT, model.norm_epsilon, 0, 1e-5,
        NULL),
    {0},
};

/* ---- derived values ---- */

static ms_status finish_qwen(ms_ctx *cx, ms_hf_import *import)
{
    (void)cx;
    if (!import->config.use_sliding_window)
        import->config.sliding_window = 0;
    return MS_OK;
}

static ms_status finish_deepseek(ms_ctx *cx, ms_hf_import *import)
{
    ms_hf_config *config = &import->config;
    ms_model *model = &config->model;
    bool v3 = strcmp(import->model_type, "deepseek_v3") == 0;
    if (import->config.model.num_nextn_predict_layers > 0)
        import->config.model.nextn_loss_weight = MS_NEXTN_LOSS_WEIGHT;
    const char *scoring = config->scoring;
    if (scoring == NULL)
        scoring = v3 ? "sigmoid" : "softmax";
    if (strcmp(scoring, "sigmoid") != 0 && strcmp(scoring, "softmax") != 0)
        return ms_json_fail(cx, import->root, "unknown scoring_func \"%s\"", scoring);
    bool no_method = config->topk_method == NULL;
    model->attention = MS_ATTENTION_MLA;
    model->num_kv_heads = model->num_heads;
    model->head_dim = model->mla.nope_head_dim + model->mla.rope_head_dim;
    model->moe.router =
        strcmp(scoring, "sigmoid") == 0 ? MS_ROUTER_SIGMOID : MS_ROUTER_SOFTMAX_TOPK;
    model->moe.router_bias =
        no_method ? v3 : strcmp(config->topk_method, "noaux_tc") == 0;
    model->moe.shared_ffn_hidden = config->num_shared_experts * model->moe.ffn_hidden;
    if (v3 && model->moe.routed_scaling == 0.0)
        model->moe.routed_scaling = 2.5; /* default of the class */
    if (config->topk_method != NULL && strcmp(config->topk_method, "greedy") == 0)
        model->moe.num_groups = 0;
    return MS_OK;
}

static ms_status finish_gpt2(ms_ctx *cx, ms_hf_import *import)
{
    (void)cx;
    ms_model *model = &import->config.model;
    if (model->ffn_hidden == 0)
        model->ffn_hidden = 4 * model->hidden;
    return MS_OK;
}

static void set_biases(ms_hf_config *config)
{
    config->attention_bias = config->bias;
    config->model.mlp_bias = config->bias;
}

static ms_status finish_opt(ms_ctx *cx, ms_hf_import *import)
{
    ms_hf_config *config = &import->config;
    ms_model *model = &config->model;
    if (config->word_embed_dim != 0 && config->word_embed_dim != model->hidden) {
        return ms_json_fail(
            cx, import->root,
            "word_embed_proj_dim %ld differs from hidden_size %ld: projected "
            "embeddings are not supported",
            config->word_embed_dim, model->hidden);
    }
    if (!config->norm_before)
        return ms_json_fail(cx, import->root,
                            "do_layer_norm_before false is not supported");
    if (!config->norm_affine)
        return ms_json_fail(cx, import->root,
                            "layer_norm_elementwise_affine false is not supported");
    model->final_norm = !config->removed_final_norm;
    /* two more rows of the position table, for padding, come first */
    model->max_positions += 2;
    model->position_offset = 2;
    set_biases(config);
    return MS_OK;
}

static ms_status finish_falcon(ms_ctx *cx, ms_hf_import *import)
{
    ms_hf_config *config = &import->config;
    ms_model *model = &config->model;
    if (config->num_parallel_norms > 2)
        return ms_json_fail(cx, import->root,
                            "num_ln_in_parallel_attn is %ld, must be 1 or 2",
                            config->num_parallel_norms);
    if (!config->new_decoder)
        model->num_kv_heads = config->multi_query ? 1 : model->num_heads;
    if (model->ffn_hidden == 0)
        model->ffn_hidden = 4 * model->hidden;
    model->parallel_block = config->parallel_attn || config->new_decoder;
    if (config->new_decoder)
        model->norms_per_layer = config->num_parallel_norms == 1 ? 1 : 2;
    else
        model->norms_per_layer = config->parallel_attn ? 1 : 2;
    model->position = config->alibi ? MS_POSITION_ALIBI : MS_POSITION_ROTARY;
    set_biases(config);
    return MS_OK;
}

static ms_status finish_nemotron_h(ms_ctx *cx, ms_hf_import *import)
{
    const ms_hf_config *config = &import->config;
    if (config->bias)
        return ms_json_fail(cx, import->root, "use_bias true is not supported");
    if (!config->conv_bias)
        return ms_json_fail(cx, import->root, "use_conv_bias false is not supported");
    return MS_OK;
}

/* ---- families ---- */

/* Values of Llama-like classes: RMS norms, gated MLP, rotary positions. */
#define LIKE_LLAMA                                                                       \
    .norm = MS_NORM_RMS, .norms_per_layer = 2, .final_norm = true,                       \
    .activation = MS_ACT_SWIGLU, .position = MS_POSITION_ROTARY
#define LIKE_GEMMA LIKE_LLAMA, .post_norms = true, .norm_plus_one = true
/* Values of GPT-like classes: layer norms with biases, MLP without a gate. */
#define LIKE_GPT                                                                         \
    .norm = MS_NORM_LAYER, .norm_bias = true, .norms_per_layer = 2, .final_norm = true,  \
    .activation = MS_ACT_GELU, .norm_epsilon = 1e-5, .rotary_base = 10000.0

const ms_hf_family ms_hf_families[] = {
    {"llama", {core_keys, llama_keys}, {.model = {LIKE_LLAMA}}, NULL},
    {"mistral", {core_keys, mistral_keys}, {.model = {LIKE_LLAMA}}, NULL},
    {"mixtral",
     {core_keys, mixtral_keys},
     {.model = {LIKE_LLAMA,
                .moe = {.router = MS_ROUTER_TOPK_SOFTMAX, .norm_topk = true}}},
     NULL},
    {"qwen2",
     {core_keys, qwen_keys, qwen_window_keys},
     {.model = {LIKE_LLAMA, .qkv_bias = true}, .layer_types = true},
     finish_qwen},
    {"qwen2_moe",
     {core_keys, qwen_keys, qwen_moe_keys, qwen2_moe_keys},
     {.model = {LIKE_LLAMA, .moe = {.shared_gate = true}}, .layer_types = true},
     finish_qwen},
    {"qwen3",
     {core_keys, qwen_keys, qwen_window_keys, qwen3_keys},
     {.model = {LIKE_LLAMA, .qk_norm = true}, .layer_types = true},
     finish_qwen},
    {"qwen3_moe",
     {core_keys, qwen_keys, qwen_moe_keys, qwen3_keys},
     {.model = {LIKE_LLAMA, .qk_norm = true}},
     finish_qwen},
    {"deepseek_v2",
     {core_keys, deepseek_keys, deepseek_moe_keys},
     {.model = {LIKE_LLAMA}},
     finish_deepseek},
    {"deepseek_v3",
     {core_keys, deepseek_keys, deepseek_moe_keys},
     {.model = {LIKE_LLAMA}},
     finish_deepseek},
    {"gemma2",
     {core_keys, gemma2_keys},
     {.model = {LIKE_GEMMA},
      .scales_embedding = true,
      .layer_types = true,
      .sliding_period = 2},
     NULL},
    {"gemma3",
     {gemma3_keys},
     {.model = {LIKE_GEMMA, .qk_norm = true},
      .scales_embedding = true,
      .layer_types = true},
     NULL},
    {"gemma3_text",
     {gemma3_keys},
     {.model = {LIKE_GEMMA, .qk_norm = true},
      .scales_embedding = true,
      .layer_types = true},
     NULL},
    {"gpt2",
     {gpt2_keys},
     {.model = {LIKE_GPT, .position = MS_POSITION_LEARNED, .mlp_bias = true},
      .attention_bias = true},
     finish_gpt2},
    {"gpt_neox",
     {core_keys, gpt_neox_keys},
     {.model = {LIKE_GPT, .position = MS_POSITION_ROTARY, .mlp_bias = true}},
     NULL},
    {"opt",
     {opt_keys},
     {.model = {LIKE_GPT, .position = MS_POSITION_LEARNED}},
     finish_opt},
    {"nemotron_h",
     {core_keys, nemotron_h_keys},
     {.model = {.norm = MS_NORM_RMS,
                .norms_per_layer = 2,
                .final_norm = true,
                .activation = MS_ACT_RELU2,
                .position = MS_POSITION_NONE,
                .rotary_base = 10000.0,
                .moe = {.router = MS_ROUTER_SIGMOID, .router_bias = true}},
      .hybrid = true},
     finish_nemotron_h},
    {"falcon", {falcon_keys}, {.model = {LIKE_GPT}}, finish_falcon},
    {0},
};
