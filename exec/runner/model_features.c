#include "exec/runner/model_features.h"

const char *const ms_feature_price_words[] = {"priced", "no cost of its own",
                                              "not priced", NULL};

static bool has_windows(const ms_model *m)
{
    for (int i = 0; i < m->num_kinds; i++)
        if (m->kinds[i].window_tokens > 0)
            return true;
    return false;
}

static bool rotates(const ms_model *m)
{
    return m->position == MS_POSITION_ROTARY;
}

static bool scales(const ms_model *m, ms_rotary_scaling_kind kind)
{
    return rotates(m) && m->rotary_scaling.kind == kind;
}

static bool is_sigmoid(const ms_model *m)
{
    return m->moe.num_experts > 0 && m->moe.router == MS_ROUTER_SIGMOID;
}

static bool has_not_executed(const ms_model *m)
{
    return m->not_executed != NULL;
}

/* X(function, name, condition on model `m`, executed on CPUs, on GPUs, price) */
#define FEATURES(X)                                                                      \
    X(rms_norm, "RMS norm", m->norm == MS_NORM_RMS, true, true, PRICED)                  \
    X(layer_norm, "layer norm", m->norm == MS_NORM_LAYER, true, true, PRICED)            \
    X(norms_that_multiply_by_one_plus_weight, "norms that multiply by 1 + weight",       \
      m->norm_plus_one, true, true, FUSED)                                               \
    X(norms_without_weights, "norms without weights", m->plain_norms, false, false,      \
      PRICED)                                                                            \
    X(norms_after_attention_and_mlp, "norms after attention and MLP", m->post_norms,     \
      true, true, PRICED)                                                                \
    X(no_norms_before_attention_and_mlp, "no norms before attention and MLP",            \
      m->no_pre_norms, true, true, PRICED)                                               \
    X(norms_of_all_queries_and_all_keys, "norms over all queries and all keys",          \
      m->qk_norm_whole, true, true, PRICED)                                              \
    X(norms_of_queries_and_keys, "norms of queries and keys", m->qk_norm, true, true,    \
      PRICED)                                                                            \
    X(norms_of_heads_with_weights_of_their_own,                                          \
      "norms of heads with weights of their own", m->qk_norm_head_weights, false, false, \
      PRICED)                                                                            \
    X(norm_of_the_embedding, "norm of the embedding", m->embedding_norm, true, true,     \
      PRICED)                                                                            \
    X(scaled_token_embeddings, "scaled token embeddings",                                \
      m->embedding_scale > 0.0 && m->embedding_scale != 1.0, true, true, FUSED)          \
    X(tied_embeddings, "tied embeddings", m->tied_embeddings, true, true, PRICED)        \
    X(attention_and_mlp_in_parallel, "attention and MLP in parallel", m->parallel_block, \
      true, true, PRICED)                                                                \
    X(biases, "biases",                                                                  \
      m->qkv_bias || m->attention_out_bias || m->mlp_bias || m->head_bias, true, true,   \
      PRICED)                                                                            \
    X(biases_of_experts, "biases of experts", m->moe.expert_bias, true, false, PRICED)   \
    X(bias_of_the_routers_logits, "bias of the router's logits", m->moe.logit_bias,      \
      true, true, PRICED)                                                                \
    X(clamped_swiglu, "clamped SwiGLU", m->swiglu_limit > 0.0, true, false, FUSED)       \
    X(activations_with_learned_numbers, "activations with learned numbers",              \
      m->mlp_scalars > 0, false, false, NOT_PRICED)                                      \
    X(attention_sinks, "attention sinks", m->attention_sinks, true, false, PRICED)       \
    X(grouped_queries, "grouped queries",                                                \
      m->attention == MS_ATTENTION_GQA && m->num_kv_heads < m->num_heads, true, true,    \
      PRICED)                                                                            \
    X(latent_attention, "latent attention", m->attention == MS_ATTENTION_MLA, true,      \
      true, PRICED)                                                                      \
    X(sliding_windows, "sliding windows", has_windows(m), true, true, PRICED)            \
    X(query_pre_attn_scalar, "query_pre_attn_scalar", m->query_pre_attn_scalar > 0.0,    \
      true, true, FUSED)                                                                 \
    X(soft_cap_of_attention_scores, "soft cap of attention scores",                      \
      m->attention_softcap > 0.0, true, true, FUSED)                                     \
    X(soft_cap_of_logits, "soft cap of logits", m->logit_softcap > 0.0, true, true,      \
      FUSED)                                                                             \
    X(factor_of_logits, "factor of logits",                                              \
      m->logit_scale > 0.0 && m->logit_scale != 1.0, true, true, FUSED)                  \
    X(learned_positions, "learned positions", m->position == MS_POSITION_LEARNED, true,  \
      true, PRICED)                                                                      \
    X(offset_of_learned_positions, "offset of learned positions",                        \
      m->position_offset > 0, true, true, FUSED)                                         \
    X(alibi, "ALiBi", m->position == MS_POSITION_ALIBI, true, true, FUSED)               \
    X(rotary_positions, "rotary positions", rotates(m), true, true, PRICED)              \
    X(partial_rotary_positions, "partial rotary positions",                              \
      rotates(m) && m->rotary_dim > 0 && m->rotary_dim < m->head_dim, true, true, FUSED) \
    X(interleaved_rotary_positions, "interleaved rotary positions",                      \
      rotates(m) && m->rotary_interleaved, true, true, FUSED)                            \
    X(rotary_base_of_layers_with_a_window, "rotary base of layers with a window",        \
      rotates(m) && m->rotary_local_base > 0.0, true, true, FUSED)                       \
    X(rotary_scaling_linear, "rotary scaling: linear",                                   \
      scales(m, MS_ROTARY_SCALING_LINEAR), true, true, FUSED)                            \
    X(rotary_scaling_llama3, "rotary scaling: llama3",                                   \
      scales(m, MS_ROTARY_SCALING_LLAMA3), true, true, FUSED)                            \
    X(rotary_scaling_yarn, "rotary scaling: yarn", scales(m, MS_ROTARY_SCALING_YARN),    \
      true, true, FUSED)                                                                 \
    X(yarn_without_truncation, "yarn without truncation",                                \
      scales(m, MS_ROTARY_SCALING_YARN) && m->rotary_scaling.untruncated, true, true,    \
      FUSED)                                                                             \
    X(mixtures_of_experts, "mixtures of experts", m->moe.num_experts > 0, true, true,    \
      PRICED)                                                                            \
    X(shared_experts, "shared experts", m->moe.shared_ffn_hidden > 0, true, true,        \
      PRICED)                                                                            \
    X(gate_of_shared_experts, "gate of shared experts", m->moe.shared_gate, true, true,  \
      PRICED)                                                                            \
    X(sigmoid_router, "sigmoid router", is_sigmoid(m), true, true, PRICED)               \
    X(sigmoid_router_without_renormalised_weights,                                       \
      "sigmoid router without renormalised weights", is_sigmoid(m) && !m->moe.norm_topk, \
      true, true, FUSED)                                                                 \
    X(correction_bias_of_the_router, "correction bias of the router",                    \
      m->moe.router_bias, true, true, PRICED)                                            \
    X(group_limited_routing, "group-limited routing", m->moe.num_groups > 1, true, true, \
      FUSED)                                                                             \
    X(scaled_weights_of_experts, "scaled weights of experts",                            \
      m->moe.routed_scaling > 0.0 && m->moe.routed_scaling != 1.0, true, true, FUSED)    \
    X(multi_token_prediction, "multi-token prediction", m->num_nextn_predict_layers > 0, \
      true, true, PRICED)                                                                \
    X(dropout, "dropout", m->dropout, true, false, PRICED)                               \
    X(dropout_of_the_embedding, "dropout of the embedding",                              \
      m->dropout && m->embedding_dropout > 0.0, false, false, NOT_PRICED)                \
    X(dropout_without_its_rates, "dropout without its rates",                            \
      m->dropout && !(m->attention_dropout > 0.0 || m->hidden_dropout > 0.0 ||           \
                      m->embedding_dropout > 0.0),                                       \
      false, false, PRICED)                                                              \
    X(mamba_2_and_layers_that_are_attention_or_an_mlp_alone,                             \
      "Mamba-2 and layers that are attention or an MLP alone", ms_model_is_hybrid(m),    \
      true, false, PRICED)

#define FUNCTION(id, name, condition, on_cpu, on_gpu, price)                             \
    static bool id(const ms_model *m)                                                    \
    {                                                                                    \
        return condition;                                                                \
    }
FEATURES(FUNCTION)

#define ROW(id, name, condition, on_cpu, on_gpu, price)                                  \
    {name, id, on_cpu, on_gpu, MS_FEATURE_##price},
const ms_model_feature ms_model_features[] = {
    FEATURES(ROW)
    /* the names are in the model */
    {"features under \"not_executed\"", has_not_executed, false, false,
     MS_FEATURE_NOT_PRICED},
    {0},
};

/* Names of the model's features that the backend does not execute; "" if there are none. */
static const char *refused_names(ms_ctx *cx, const ms_model *model, bool on_gpu)
{
    const char *text = "";
    for (const ms_model_feature *f = ms_model_features; f->name != NULL; f++) {
        bool executed = on_gpu ? f->on_gpu : f->on_cpu;
        if (executed || f->has == has_not_executed || !f->has(model))
            continue;
        text = ms_arena_printf(cx->arena, "%s%s%s", text, *text != '\0' ? ", " : "",
                               f->name);
    }
    for (int i = 0; model->not_executed != NULL && model->not_executed[i] != NULL; i++)
        text = ms_arena_printf(cx->arena, "%s%s%s", text, *text != '\0' ? ", " : "",
                               model->not_executed[i]);
    return text;
}

ms_status ms_model_check_features(ms_ctx *cx, const ms_model *model,
                                  const ms_backend *backend)
{
    if (!backend->has_values)
        return MS_OK;
    const char *names = refused_names(cx, model, backend->on_gpu);
    if (*names == '\0')
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "backend %s does not execute all of %s: %s",
            backend->name, model->name, names);
    return ms_hint(cx, "predict, simulate, explain and search support it; to run the "
                       "rest of the model, take these out of a copy of its file");
}
