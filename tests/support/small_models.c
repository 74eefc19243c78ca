/* Small models that together use every feature of a layer. */
#include "tests/support/small_models.h"

static ms_model dense_model(const char *name)
{
    ms_model model = {.name = name,
                      .family = "llama",
                      .num_layers = 2,
                      .hidden = 16,
                      .num_heads = 8,
                      .num_kv_heads = 4,
                      .head_dim = 4,
                      .value_head_dim = 4,
                      .ffn_hidden = 24,
                      .vocab = 32,
                      .max_positions = MS_SMALL_SEQUENCE,
                      .norm = MS_NORM_RMS,
                      .norms_per_layer = 2,
                      .final_norm = true,
                      .activation = MS_ACT_SWIGLU,
                      .num_kinds = 1,
                      .rotary_base = 10000.0,
                      .norm_epsilon = 1e-6};
    return model;
}

static ms_model gpt_model(const char *name)
{
    ms_model model = dense_model(name);
    model.num_kv_heads = model.num_heads;
    model.norm = MS_NORM_LAYER;
    model.norm_bias = model.qkv_bias = model.attention_out_bias = model.mlp_bias = true;
    model.activation = MS_ACT_GELU;
    model.position = MS_POSITION_LEARNED;
    return model;
}

static ms_model moe_model(const char *name, ms_router_kind router)
{
    ms_model model = dense_model(name);
    model.kinds[0].moe = true;
    model.moe.num_experts = 8;
    model.moe.top_k = 2;
    model.moe.ffn_hidden = 12;
    model.moe.router = router;
    return model;
}

static void use_latent_attention(ms_model *model, long q_lora_rank)
{
    model->attention = MS_ATTENTION_MLA;
    model->num_kv_heads = model->num_heads;
    model->mla.q_lora_rank = q_lora_rank;
    model->mla.kv_lora_rank = 8;
    model->mla.nope_head_dim = 4;
    model->mla.rope_head_dim = 2;
    model->head_dim = 6;
}

ms_model ms_small_llama(void)
{
    return dense_model("llama");
}

ms_model ms_small_qwen(void)
{
    ms_model model = dense_model("qwen");
    model.family = "qwen3";
    model.qk_norm = true;
    return model;
}

ms_model ms_small_biased(void)
{
    ms_model model = dense_model("biased");
    model.qkv_bias = model.attention_out_bias = model.mlp_bias = true;
    return model;
}

ms_model ms_small_gpt(void)
{
    ms_model model = gpt_model("gpt");
    model.family = "gpt2";
    model.dropout = true;
    return model;
}

ms_model ms_small_gemma(void)
{
    ms_model model = dense_model("gemma");
    model.family = "gemma2";
    model.activation = MS_ACT_GEGLU;
    model.post_norms = true;
    model.norms_per_layer = 4;
    model.kinds[0].window_tokens = 5;
    return model;
}

ms_model ms_small_falcon(void)
{
    ms_model model = gpt_model("falcon");
    model.family = "falcon";
    model.parallel_block = true;
    model.norms_per_layer = 1;
    model.position = MS_POSITION_ROTARY;
    model.mlp_bias = false;
    return model;
}

ms_model ms_small_neox(void)
{
    ms_model model = gpt_model("neox");
    model.family = "gpt_neox";
    model.parallel_block = true;
    model.position = MS_POSITION_ROTARY;
    model.activation = MS_ACT_RELU2;
    return model;
}

ms_model ms_small_latent(void)
{
    ms_model model = dense_model("latent");
    model.family = "deepseek_v2";
    use_latent_attention(&model, 8);
    return model;
}

ms_model ms_small_mixtral(void)
{
    ms_model model = moe_model("mixtral", MS_ROUTER_TOPK_SOFTMAX);
    model.family = "mixtral";
    return model;
}

ms_model ms_small_qwen_moe(void)
{
    ms_model model = moe_model("qwen-moe", MS_ROUTER_SOFTMAX_TOPK);
    model.family = "qwen2_moe";
    model.moe.shared_ffn_hidden = 20;
    model.moe.shared_gate = true;
    return model;
}

ms_model ms_small_softmax_moe(void)
{
    ms_model model = moe_model("softmax-moe", MS_ROUTER_SOFTMAX_TOPK);
    model.family = "qwen3_moe";
    model.moe.norm_topk = true;
    return model;
}

ms_model ms_small_deepseek(void)
{
    ms_model model = moe_model("deepseek", MS_ROUTER_SIGMOID);
    model.family = "deepseek_v3";
    use_latent_attention(&model, 0);
    model.moe.shared_ffn_hidden = 12;
    model.moe.router_bias = model.moe.norm_topk = true;
    return model;
}

ms_make_model *const ms_small_dense[MS_NUM_SMALL_DENSE] = {
    ms_small_llama, ms_small_qwen,   ms_small_biased, ms_small_gpt,
    ms_small_gemma, ms_small_falcon, ms_small_neox,   ms_small_latent};
ms_make_model *const ms_small_moe[MS_NUM_SMALL_MOE] = {
    ms_small_mixtral, ms_small_qwen_moe, ms_small_softmax_moe, ms_small_deepseek};
