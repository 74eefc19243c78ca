/* Values of a model that follow from several keys of its Hugging Face config, as the
 * model classes derive them (huggingface transformers, models/<type>/modeling_<type>.py).
 */
#include "costmodel/model/model_hf_priv.h"

#include <math.h>
#include <string.h>

static void not_executed(ms_ctx *cx, ms_hf_import *import, const char *name)
{
    ms_model_add_not_executed(cx, &import->config.model, name);
}

static ms_status unsupported(ms_ctx *cx, const ms_hf_import *import, const char *what)
{
    return ms_json_fail(cx, import->root, "%s is not supported", what);
}

/* ---- mixtures of experts ---- */

static ms_status read_scoring(ms_ctx *cx, ms_hf_import *import)
{
    const char *scoring = import->config.scoring;
    bool sigmoid = scoring != NULL && strcmp(scoring, "sigmoid") == 0;
    if (scoring == NULL)
        return MS_OK;
    if (!sigmoid && strcmp(scoring, "softmax") != 0)
        return ms_json_fail(cx, import->root, "unknown scoring_func \"%s\"", scoring);
    import->config.model.moe.router =
        sigmoid ? MS_ROUTER_SIGMOID : MS_ROUTER_SOFTMAX_TOPK;
    return MS_OK;
}

ms_status ms_hf_finish_moe(ms_ctx *cx, ms_hf_import *import)
{
    ms_model *model = &import->config.model;
    const char *method = import->config.topk_method;
    if (method != NULL)
        model->moe.router_bias = strcmp(method, "noaux_tc") == 0;
    if (method != NULL && strcmp(method, "greedy") == 0)
        model->moe.num_groups = 0;
    if (model->moe.num_groups <= 1)
        model->moe.num_groups = model->moe.top_groups = 0;
    return read_scoring(cx, import);
}

ms_status ms_hf_finish_phimoe(ms_ctx *cx, ms_hf_import *import)
{
    not_executed(cx, import, "sparse mixer of experts");
    return MS_OK;
}

/* Llama 4's norms of queries and keys have no weights; its experts get inputs that are
 * multiplied by their weights. */
ms_status ms_hf_finish_llama4(ms_ctx *cx, ms_hf_import *import)
{
    ms_model *model = &import->config.model;
    import->config.sliding_period = import->config.no_rope_period;
    if (import->config.sliding_window > 0)
        not_executed(cx, import, "attention in chunks");
    if (model->qk_norm)
        not_executed(cx, import, "norms of queries and keys without weights");
    model->qk_norm = false;
    not_executed(cx, import, "weights of experts applied to their inputs");
    return MS_OK;
}

ms_status ms_hf_finish_minimax(ms_ctx *cx, ms_hf_import *import)
{
    import->config.model.qk_norm_whole = import->config.model.qk_norm;
    return ms_hf_finish_moe(cx, import);
}

/* DBRX's weights of experts are divided by their p-norm of this p; null: by nothing. */
ms_status ms_hf_finish_dbrx(ms_ctx *cx, ms_hf_import *import)
{
    ms_jval value;
    double p = 1.0;
    if (ms_hf_find(cx, import->root, "ffn_config.moe_normalize_expert_weights", &value)) {
        p = 0.0;
        if (!ms_json_is_null(value))
            MS_TRY(ms_json_number(cx, value, 1.0, 1e6, &p));
    }
    if (p > 1.0)
        not_executed(cx, import, "moe_normalize_expert_weights");
    import->config.model.moe.norm_topk = p == 1.0;
    return ms_hf_finish_clip(cx, import);
}

ms_status ms_hf_finish_hunyuan(ms_ctx *cx, ms_hf_import *import)
{
    (void)cx;
    ms_model *model = &import->config.model;
    if (model->moe.ffn_hidden == 0)
        model->moe.ffn_hidden = model->ffn_hidden;
    return MS_OK;
}

/* ---- attention ---- */

ms_status ms_hf_finish_qwen(ms_ctx *cx, ms_hf_import *import)
{
    (void)cx;
    if (!import->config.use_sliding_window)
        import->config.sliding_window = 0;
    return MS_OK;
}

ms_status ms_hf_finish_latent(ms_ctx *cx, ms_hf_import *import)
{
    ms_model *model = &import->config.model;
    model->attention = MS_ATTENTION_MLA;
    model->num_kv_heads = model->num_heads;
    model->head_dim = model->mla.nope_head_dim + model->mla.rope_head_dim;
    if (model->value_head_dim == 0)
        model->value_head_dim = model->mla.nope_head_dim;
    return ms_hf_finish_moe(cx, import);
}

ms_status ms_hf_finish_multi_query(ms_ctx *cx, ms_hf_import *import)
{
    (void)cx;
    if (import->config.multi_query)
        import->config.model.num_kv_heads = 1;
    return MS_OK;
}

ms_status ms_hf_finish_clip(ms_ctx *cx, ms_hf_import *import)
{
    if (import->config.clip_qkv > 0.0)
        not_executed(cx, import, "clipped queries, keys and values");
    return MS_OK;
}

/* Classes with a norm for attention and MLP together, where these are in parallel, and
 * norms of queries and keys with weights for each head. */
ms_status ms_hf_finish_parallel(ms_ctx *cx, ms_hf_import *import)
{
    (void)cx;
    ms_model *model = &import->config.model;
    if (model->parallel_block)
        model->norms_per_layer = 1;
    model->qk_norm_head_weights = model->qk_norm;
    return MS_OK;
}

ms_status ms_hf_finish_phi(ms_ctx *cx, ms_hf_import *import)
{
    if (import->config.model.qk_norm)
        return unsupported(cx, import, "qk_layernorm true");
    return ms_hf_finish_parallel(cx, import);
}

/* ---- scales ---- */

/* Released Gemma 1 configs say "gelu" in hidden_act and mean its form with tanh:
 * transformers 4.38 to 4.46 read it so unless hidden_activation stands beside it. */
ms_status ms_hf_finish_gemma(ms_ctx *cx, ms_hf_import *import)
{
    ms_jval value;
    if (!ms_json_member(cx, import->root, "hidden_activation", &value) &&
        strcmp(import->config.activation, "gelu") == 0)
        import->config.activation = "gelu_pytorch_tanh";
    return MS_OK;
}

/* Scores are multiplied by attention_multiplier, logits divided by logits_scaling. */
ms_status ms_hf_finish_granite(ms_ctx *cx, ms_hf_import *import)
{
    ms_hf_config *config = &import->config;
    double m = config->attention_multiplier;
    if (m <= 0.0 || config->logits_scaling <= 0.0) {
        return ms_json_fail(cx, import->root,
                            "attention_multiplier %g and logits_scaling %g must be "
                            "more than 0",
                            m, config->logits_scaling);
    }
    config->model.query_pre_attn_scalar = 1.0 / (m * m);
    config->model.logit_scale = 1.0 / config->logits_scaling;
    if (config->residual_multiplier != 1.0)
        not_executed(cx, import, "scale of residual branches");
    return MS_OK;
}

/* The head's input is divided by hidden_size / dim_model_base, branches are multiplied
 * by scale_depth / sqrt(layers) (openbmb/MiniCPM-2B-128k, modeling_minicpm.py, from
 * memory). */
ms_status ms_hf_finish_minicpm(ms_ctx *cx, ms_hf_import *import)
{
    ms_hf_config *config = &import->config;
    ms_model *model = &config->model;
    model->logit_scale = config->dim_model_base / (double)model->hidden;
    if (config->scale_depth != sqrt((double)model->num_layers))
        not_executed(cx, import, "scale of residual branches");
    return MS_OK;
}

ms_status ms_hf_finish_minicpm3(ms_ctx *cx, ms_hf_import *import)
{
    MS_TRY(ms_hf_finish_minicpm(cx, import));
    return ms_hf_finish_latent(cx, import);
}

/* ---- older classes ---- */

ms_status ms_hf_finish_opt(ms_ctx *cx, ms_hf_import *import)
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
        return unsupported(cx, import, "do_layer_norm_before false");
    if (!config->norm_affine)
        return unsupported(cx, import, "layer_norm_elementwise_affine false");
    model->final_norm = !config->removed_final_norm;
    /* two more rows of the position table, for padding, come first */
    model->max_positions += 2;
    model->position_offset = 2;
    return MS_OK;
}

ms_status ms_hf_finish_falcon(ms_ctx *cx, ms_hf_import *import)
{
    ms_hf_config *config = &import->config;
    ms_model *model = &config->model;
    if (config->num_parallel_norms > 2)
        return ms_json_fail(cx, import->root,
                            "num_ln_in_parallel_attn is %ld, must be 1 or 2",
                            config->num_parallel_norms);
    if (!config->new_decoder)
        model->num_kv_heads = config->multi_query ? 1 : model->num_heads;
    model->parallel_block = config->parallel_attn || config->new_decoder;
    if (config->new_decoder)
        model->norms_per_layer = config->num_parallel_norms == 1 ? 1 : 2;
    else
        model->norms_per_layer = config->parallel_attn ? 1 : 2;
    model->position = config->alibi ? MS_POSITION_ALIBI : MS_POSITION_ROTARY;
    return MS_OK;
}

ms_status ms_hf_finish_mpt(ms_ctx *cx, ms_hf_import *import)
{
    ms_jval value;
    bool no_bias = true, norm = false;
    if (ms_hf_find(cx, import->root, "no_bias", &value))
        MS_TRY(ms_json_bool(cx, value, &no_bias));
    if (ms_hf_find(cx, import->root, "attn_config.qk_ln", &value))
        MS_TRY(ms_json_bool(cx, value, &norm));
    if (norm)
        return unsupported(cx, import, "attn_config.qk_ln true");
    if (!no_bias)
        return unsupported(cx, import, "no_bias false");
    if (!import->config.alibi)
        return unsupported(cx, import, "attn_config.alibi false");
    return ms_hf_finish_clip(cx, import);
}

/* ---- Mamba-2 ---- */

static ms_status set_mamba_width(ms_ctx *cx, ms_hf_import *import)
{
    const ms_hf_config *config = &import->config;
    ms_model *model = &import->config.model;
    long width = config->mamba_expand * model->hidden, heads = model->mamba.num_heads;
    if (model->mamba.head_dim == 0) {
        if (width % heads != 0)
            return ms_json_fail(cx, import->root,
                                "%ld Mamba-2 heads do not divide %ld x %ld channels",
                                heads, config->mamba_expand, model->hidden);
        model->mamba.head_dim = width / heads;
    }
    if (heads * model->mamba.head_dim != width)
        return ms_json_fail(cx, import->root,
                            "%ld Mamba-2 heads of %ld are not %ld x %ld channels", heads,
                            model->mamba.head_dim, config->mamba_expand, model->hidden);
    return MS_OK;
}

ms_status ms_hf_finish_mamba(ms_ctx *cx, ms_hf_import *import)
{
    const ms_hf_config *config = &import->config;
    ms_model *model = &import->config.model;
    if (config->mamba_bias)
        return unsupported(cx, import, "use_bias true");
    if (!config->conv_bias)
        return unsupported(cx, import, "use_conv_bias false");
    if (config->latent_size > 0)
        return unsupported(cx, import, "moe_latent_size");
    /* Nemotron-H's heads need not fill `expand` hidden sizes */
    if (config->hybrid != MS_HF_BLOCK_LIST)
        MS_TRY(set_mamba_width(cx, import));
    if (config->hybrid == MS_HF_ALL_MAMBA) {
        /* heads of attention, which no layer has: ranks split those of the mixers */
        model->num_heads = model->num_kv_heads = model->mamba.num_heads;
        model->head_dim = model->mamba.head_dim;
    }
    return MS_OK;
}

/* Granite 4: shared experts are the only MLPs of a model without experts, and attention
 * rotates where position_embedding_type says "rope". */
ms_status ms_hf_finish_granite_hybrid(ms_ctx *cx, ms_hf_import *import)
{
    ms_model *model = &import->config.model;
    ms_jval value;
    const char *position = "nope";
    if (ms_json_member(cx, import->root, "position_embedding_type", &value) &&
        !ms_json_is_null(value))
        MS_TRY(ms_json_text(cx, value, &position));
    if (strcmp(position, "rope") != 0)
        model->position = MS_POSITION_NONE;
    if (model->moe.num_experts == 0)
        model->ffn_hidden = model->moe.shared_ffn_hidden;
    MS_TRY(ms_hf_finish_mamba(cx, import));
    return ms_hf_finish_granite(cx, import);
}
