/* Keys of Hugging Face configs by group, with the names that all model classes have for
 * them: the attribute_map of huggingface transformers, models/<type>/configuration_<type>.py
 * and configs of older checkpoints. The families say which groups a class reads. */
#include "costmodel/model/model_hf_priv.h"

#include <stddef.h>
#include <string.h>

#define KEY(names, type, nullable, low, at)                                              \
    {                                                                                    \
        names, MS_HF_##type, nullable, low, offsetof(ms_hf_config, at)                   \
    }
#define SIZE(names, at)          KEY(names, SIZE, false, 1, at)
#define SIZE_OR_NULL(names, at)  KEY(names, SIZE, true, 1, at)
#define COUNT(names, at)         KEY(names, SIZE, false, 0, at)
#define COUNT_OR_NULL(names, at) KEY(names, SIZE, true, 0, at)
#define FLAG(names, at)          KEY(names, FLAG, false, 0, at)
#define RATE(names, at)          KEY(names, RATE, false, 0, at)
#define SCALAR(names, at)        KEY(names, SCALAR, true, 0, at)
#define WORD(names, at)          KEY(names, WORD, true, 0, at)

/* ---- all classes ---- */

const ms_hf_key ms_hf_size_keys[] = {
    SIZE("vocab_size", model.vocab),
    SIZE("hidden_size|n_embd|d_model|n_embed", model.hidden),
    SIZE("num_hidden_layers|n_layer|n_layers|num_layers", model.num_layers),
    FLAG("tie_word_embeddings|tie_embedding", model.tied_embeddings),
    WORD("hidden_activation|hidden_act|activation_function|activation|mlp_hidden_act|"
         "ffn_config.ffn_act_fn.name",
         activation),
    RATE("layer_norm_epsilon|layer_norm_eps|norm_epsilon|norm_eps|rms_norm_eps",
         model.norm_epsilon),
    {0},
};

/* ---- attention ---- */

const ms_hf_key ms_hf_head_keys[] = {
    SIZE("num_attention_heads|n_head|n_heads|num_heads", model.num_heads),
    SIZE("max_position_embeddings|n_positions|max_seq_len|seq_length",
         model.max_positions),
    RATE("attention_dropout|attn_pdrop|attn_config.attn_pdrop", dropout_rates[1]),
    {0},
};

const ms_hf_key ms_hf_group_keys[] = {
    SIZE_OR_NULL("num_key_value_heads|num_kv_heads|n_head_kv|attn_config.kv_n_heads",
                 model.num_kv_heads),
    SIZE_OR_NULL("head_dim|attention_head_dim", model.head_dim),
    {0},
};

const ms_hf_key ms_hf_rope_keys[] = {
    KEY("rope_theta|rotary_emb_base|attn_config.rope_theta", BASE, false, 0,
        model.rotary_base),
    {0},
};

const ms_hf_key ms_hf_partial_keys[] = {
    RATE("partial_rotary_factor|rotary_pct|rope_pct", rotary_frac),
    COUNT_OR_NULL("rotary_dim", model.rotary_dim),
    {0},
};

const ms_hf_key ms_hf_window_keys[] = {
    COUNT_OR_NULL("sliding_window|window_size", sliding_window),
    KEY("sliding_window_pattern|_sliding_window_pattern", PERIOD, true, 0,
        sliding_period),
    {0},
};

const ms_hf_key ms_hf_qwen_window_keys[] = {
    FLAG("use_sliding_window", use_sliding_window),
    COUNT_OR_NULL("max_window_layers", max_window_layers),
    {0},
};

/* Qwen's mixtures of experts lack max_window_layers: their windows hold for all layers. */
const ms_hf_key ms_hf_qwen_moe_keys[] = {
    FLAG("use_sliding_window", use_sliding_window),
    FLAG("qkv_bias", model.qkv_bias),
    {0},
};

const ms_hf_key ms_hf_mla_keys[] = {
    SIZE_OR_NULL("q_lora_rank", model.mla.q_lora_rank),
    SIZE("kv_lora_rank", model.mla.kv_lora_rank),
    SIZE("qk_nope_head_dim", model.mla.nope_head_dim),
    SIZE("qk_rope_head_dim", model.mla.rope_head_dim),
    SIZE_OR_NULL("v_head_dim", model.value_head_dim),
    FLAG("rope_interleave", model.rotary_interleaved),
    {0},
};

/* ---- MLPs and biases ---- */

const ms_hf_key ms_hf_width_keys[] = {
    SIZE_OR_NULL("intermediate_size|ffn_dim", model.ffn_hidden),
    {0},
};

/* Classes whose MLPs are a multiple of the hidden size unless a config says more. */
const ms_hf_key ms_hf_inner_keys[] = {
    SIZE_OR_NULL("n_inner|intermediate_size|ffn_hidden_size", model.ffn_hidden),
    SIZE("expansion_ratio", inner_multiple),
    {0},
};

const ms_hf_key ms_hf_bias_keys[] = {
    FLAG("attention_bias", attention_bias),
    FLAG("mlp_bias", model.mlp_bias),
    {0},
};

/* Classes whose key means the biases of queries, keys and values alone. */
const ms_hf_key ms_hf_qkv_bias_keys[] = {
    FLAG("attention_bias|qkv_bias|use_qkv_bias", model.qkv_bias),
    FLAG("attention_out_bias", model.attention_out_bias),
    {0},
};

const ms_hf_key ms_hf_all_bias_keys[] = {
    FLAG("use_bias|enable_bias|bias", all_biases),
    {0},
};

const ms_hf_key ms_hf_dropout_keys[] = {
    RATE("resid_pdrop|resid_dropout|residual_dropout|hidden_dropout|dropout",
         dropout_rates[0]),
    RATE("embd_pdrop|emb_pdrop|embed_dropout|embedding_dropout", dropout_rates[2]),
    {0},
};

/* ---- experts ---- */

const ms_hf_key ms_hf_expert_keys[] = {
    COUNT_OR_NULL("num_experts|num_local_experts|n_routed_experts|moe_num_experts|"
                  "ffn_config.moe_num_experts",
                  model.moe.num_experts),
    COUNT("num_experts_per_tok|experts_per_token|moe_topk|moe_k|ffn_config.moe_top_k",
          model.moe.top_k),
    {0},
};

const ms_hf_key ms_hf_expert_width_keys[] = {
    COUNT_OR_NULL("moe_intermediate_size|ffn_config.ffn_hidden_size",
                  model.moe.ffn_hidden),
    {0},
};

/* Classes whose MLPs are all experts of this width. */
const ms_hf_key ms_hf_only_experts_keys[] = {
    SIZE("intermediate_size", model.moe.ffn_hidden),
    {0},
};

const ms_hf_key ms_hf_shared_keys[] = {
    COUNT_OR_NULL("n_shared_experts|num_shared_expert|moe_num_shared_experts",
                  num_shared_experts),
    COUNT_OR_NULL("shared_expert_intermediate_size|moe_shared_expert_intermediate_size|"
                  "shared_intermediate_size",
                  model.moe.shared_ffn_hidden),
    {0},
};

/* Keys that say which layers have experts. */
const ms_hf_key ms_hf_sparse_keys[] = {
    COUNT("first_k_dense_replace|moe_layer_start_index", first_k_dense),
    KEY("moe_layer_end_index", SIZE, false, -1, last_sparse),
    SIZE("decoder_sparse_step|moe_layer_interval|interleave_moe_layer_step",
         decoder_sparse_step),
    SIZE("moe_layer_freq", moe_layer_freq),
    {0},
};

const ms_hf_key ms_hf_router_keys[] = {
    FLAG("norm_topk_prob", model.moe.norm_topk),
    WORD("scoring_func", scoring),
    WORD("topk_method", topk_method),
    COUNT_OR_NULL("n_group", model.moe.num_groups),
    COUNT_OR_NULL("topk_group", model.moe.top_groups),
    SCALAR("routed_scaling_factor", model.moe.routed_scaling),
    COUNT_OR_NULL("num_nextn_predict_layers|num_mtp_modules",
                  model.num_nextn_predict_layers),
    {0},
};

/* ---- single classes ---- */

const ms_hf_key ms_hf_gemma_keys[] = {
    SCALAR("query_pre_attn_scalar", model.query_pre_attn_scalar),
    SCALAR("attn_logit_softcapping", model.attention_softcap),
    SCALAR("final_logit_softcapping", model.logit_softcap),
    SCALAR("rope_local_base_freq", model.rotary_local_base),
    {0},
};

const ms_hf_key ms_hf_falcon_keys[] = {
    FLAG("multi_query", multi_query),
    FLAG("new_decoder_architecture", new_decoder),
    FLAG("parallel_attn", parallel_attn),
    FLAG("alibi|attn_config.alibi", alibi),
    COUNT_OR_NULL("num_ln_in_parallel_attn", num_parallel_norms),
    {0},
};

const ms_hf_key ms_hf_opt_keys[] = {
    SIZE_OR_NULL("word_embed_proj_dim", word_embed_dim),
    FLAG("do_layer_norm_before", norm_before),
    FLAG("layer_norm_elementwise_affine", norm_affine),
    FLAG("_remove_final_layer_norm", removed_final_norm),
    {0},
};

/* Mamba-2's own class, whose heads are those of its mixers. */
const ms_hf_key ms_hf_mamba2_keys[] = {
    SIZE("num_heads", model.mamba.num_heads),
    SIZE("head_dim", model.mamba.head_dim),
    {0},
};

/* The first names are those of Nemotron-H, the next those of Bamba and Granite. */
const ms_hf_key ms_hf_mamba_keys[] = {
    SIZE("mamba_num_heads|mamba_n_heads", model.mamba.num_heads),
    SIZE_OR_NULL("mamba_head_dim|mamba_d_head", model.mamba.head_dim),
    SIZE("ssm_state_size|mamba_d_state|state_size", model.mamba.state_size),
    SIZE("n_groups|mamba_n_groups", model.mamba.num_groups),
    SIZE("conv_kernel|mamba_d_conv", model.mamba.conv_kernel),
    SIZE("chunk_size|mamba_chunk_size", model.mamba.chunk_size),
    SIZE("expand|mamba_expand", mamba_expand),
    FLAG("use_bias|mamba_proj_bias", mamba_bias),
    FLAG("use_conv_bias|mamba_conv_bias", conv_bias),
    COUNT_OR_NULL("moe_latent_size", latent_size),
    {0},
};

const ms_hf_key ms_hf_granite_keys[] = {
    SCALAR("embedding_multiplier", model.embedding_scale),
    SCALAR("attention_multiplier", attention_multiplier),
    SCALAR("residual_multiplier", residual_multiplier),
    SCALAR("logits_scaling", logits_scaling),
    {0},
};

const ms_hf_key ms_hf_minicpm_keys[] = {
    SCALAR("scale_emb", model.embedding_scale),
    SCALAR("scale_depth", scale_depth),
    SCALAR("dim_model_base", dim_model_base),
    {0},
};

const ms_hf_key ms_hf_llama4_keys[] = {
    SIZE("intermediate_size_mlp", model.ffn_hidden),
    COUNT_OR_NULL("attention_chunk_size", sliding_window),
    {0},
};

/* Keys of one or two classes each. */
const ms_hf_key ms_hf_other_keys[] = {
    FLAG("use_qk_norm|qk_layernorm", model.qk_norm),
    FLAG("use_parallel_residual", model.parallel_block),
    FLAG("lm_head_bias", model.head_bias),
    SCALAR("logit_scale", model.logit_scale),
    SCALAR("swiglu_limit", model.swiglu_limit),
    SCALAR("clip_qkv|attn_config.clip_qkv", clip_qkv),
    COUNT_OR_NULL("no_rope_layer_interval", no_rope_period),
    {0},
};

/* ---- names ---- */

/* Steps over "a|b|c": the next name in the arena, or NULL. */
static const char *next_name(ms_ctx *cx, const char **names)
{
    if (**names == '\0')
        return NULL;
    size_t length = strcspn(*names, "|");
    const char *name = ms_arena_strndup(cx->arena, *names, length);
    *names += length + ((*names)[length] == '|');
    return name;
}

/* Finds "a.b.c", member c of member b of member a. */
static bool find_path(ms_ctx *cx, ms_jval root, const char *path, ms_jval *out)
{
    while (*path != '\0') {
        size_t length = strcspn(path, ".");
        if (!ms_json_member(cx, root, ms_arena_strndup(cx->arena, path, length), out))
            return false;
        root = *out;
        path += length + (path[length] == '.');
    }
    return true;
}

bool ms_hf_find(ms_ctx *cx, ms_jval root, const char *names, ms_jval *out)
{
    for (const char *name; (name = next_name(cx, &names)) != NULL;)
        if (find_path(cx, root, name, out))
            return true;
    return false;
}

bool ms_hf_has_name(const char *names, const char *name)
{
    size_t length = strlen(name);
    for (; names[0] != '\0'; names += strcspn(names, "|"), names += names[0] == '|') {
        size_t end = strcspn(names, "|"), first = strcspn(names, "|.");
        if ((end == length && strncmp(names, name, end) == 0) ||
            (first == length && strncmp(names, name, first) == 0))
            return true;
    }
    return false;
}
