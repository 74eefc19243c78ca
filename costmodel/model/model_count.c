/* Parameter counts by kind, integers below 2^53 (ms_model_check) and so exact in
 * double, and model FLOP per token. */
#include "costmodel/model/model.h"

#include "base/number.h"
#include "costmodel/model/model_priv.h"
#include "costmodel/tensor/kernel_shape.h"

/* Parameters of an MLP: two or three matrices of hidden x width, and their biases. */
static double mlp_params(const ms_model *model, long width)
{
    double hidden = (double)model->hidden;
    double num_up = ms_activation_is_gated(model->activation) ? 2.0 : 1.0;
    double matrices = (num_up + 1.0) * hidden * (double)width;
    double biases = model->mlp_bias ? num_up * (double)width + hidden : 0.0;
    return matrices + biases + (double)model->mlp_scalars;
}

/* Attention projections q, k, v and out. MHA: 4 h^2; kv heads shared by groups make k and
 * v narrower (Ainslie et al. 2023, GQA). */
static double gqa_params(const ms_model *model)
{
    double hidden = (double)model->hidden;
    double q_width = (double)model->num_heads * (double)model->head_dim;
    double k_width = (double)model->num_kv_heads * (double)model->head_dim;
    double v_width = (double)model->num_kv_heads * (double)model->value_head_dim;
    double out_width = (double)model->num_heads * (double)model->value_head_dim;
    double count = hidden * (q_width + k_width + v_width + out_width);
    if (model->qkv_bias)
        count += q_width + k_width + v_width;
    if (model->attention_out_bias)
        count += hidden;
    if (model->attention_sinks)
        count += (double)model->num_heads;
    return count;
}

/* Projections of MLA: queries through a low rank (q_lora_rank; 0: full rank), keys and
 * values through one common low rank, rotary keys shared by all heads. Biases are on the
 * down projections. DeepSeek-V2 (arXiv 2405.04434) section 2.1, equations 9-17. */
static double mla_params(const ms_model *model)
{
    double hidden = (double)model->hidden;
    double heads = (double)model->num_heads;
    double q_width = heads * (double)model->head_dim;
    double q_rank = (double)model->mla.q_lora_rank;
    double kv_rank = (double)model->mla.kv_lora_rank;
    double kv_down = kv_rank + (double)model->mla.rope_head_dim;
    double kv_up = heads * (double)(model->mla.nope_head_dim + model->value_head_dim);
    double out_width = heads * (double)model->value_head_dim;
    double query =
        model->mla.q_lora_rank > 0 ? q_rank * (hidden + q_width) : hidden * q_width;
    double count = query + hidden * kv_down + kv_rank * kv_up + out_width * hidden;
    if (model->qkv_bias)
        count += q_rank + kv_down;
    if (model->attention_out_bias)
        count += hidden;
    return count;
}

/* Number of a layer's norms around mixer and MLP: half if the layer has only one. */
static double norms_around(const ms_model *model, const ms_layer_kind *kind)
{
    bool single = kind->no_mlp || kind->mixer == MS_MIXER_NONE;
    return (single ? 0.5 : 1.0) * (double)model->norms_per_layer;
}

/* Parameters of the norms on queries and keys of one attention layer. */
static double attention_norm_params(const ms_model *model)
{
    bool all_heads = model->qk_norm_whole || model->qk_norm_head_weights;
    double heads = all_heads ? (double)(model->num_heads + model->num_kv_heads) : 2.0;
    double count = model->qk_norm ? heads * (double)model->head_dim : 0.0;
    if (model->attention == MS_ATTENTION_MLA) /* MLA: norms on compressed q and kv */
        count += (double)(model->mla.q_lora_rank + model->mla.kv_lora_rank);
    return count;
}

/* Parameters of one routed expert; GPT-OSS has biases in experts alone. */
static double expert_params(const ms_model *model)
{
    ms_model like = *model;
    like.mlp_bias = model->mlp_bias || model->moe.expert_bias;
    return mlp_params(&like, model->moe.ffn_hidden);
}

static double router_params(const ms_model *model)
{
    double num_experts = (double)model->moe.num_experts;
    double count = (double)model->hidden * num_experts;
    if (model->moe.router_bias)
        count += num_experts;
    if (model->moe.logit_bias)
        count += num_experts;
    if (model->moe.shared_gate)
        count += (double)model->hidden;
    return count;
}

/* Parameters of a Mamba-2 mixer outside its projections: the convolution with its bias,
 * three numbers a head (decay, skip, bias of the step), and the inner norm: Dao and Gu
 * 2024 (arXiv 2405.21060) section 7; Megatron-Core's MambaMixer. */
static double mamba_vector_params(const ms_model *model)
{
    return (double)ms_mamba_channels(model) * (double)(model->mamba.conv_kernel + 1) +
           3.0 * (double)model->mamba.num_heads + (double)ms_mamba_inner(model);
}

static double mamba_params(const ms_model *model)
{
    double projections = (double)(ms_mamba_projected(model) + ms_mamba_inner(model));
    return (double)model->hidden * projections + mamba_vector_params(model);
}

/* Numbers of layers by kind of mixer and MLP; `norms`: norms around all of these. */
typedef struct layer_counts {
    double attention, mamba, dense_mlp, moe, norms;
} layer_counts;

static layer_counts count_layers(const ms_model *model)
{
    layer_counts n = {0};
    for (long i = 0; i < model->num_layers; i++) {
        const ms_layer_kind *kind = &model->kinds[model->kind_of_layer[i]];
        n.attention += kind->mixer == MS_MIXER_ATTENTION ? 1.0 : 0.0;
        n.mamba += kind->mixer == MS_MIXER_MAMBA ? 1.0 : 0.0;
        n.dense_mlp += ms_layer_kind_has_dense_mlp(kind) ? 1.0 : 0.0;
        n.moe += kind->moe ? 1.0 : 0.0;
        n.norms += norms_around(model, kind);
    }
    return n;
}

ms_param_counts ms_model_params(const ms_model *model)
{
    double hidden = (double)model->hidden;
    layer_counts n = count_layers(model);
    double norm_width = model->plain_norms ? 0.0
                        : model->norm_bias ? 2.0 * hidden
                                           : hidden;
    double num_outer_norms =
        (model->final_norm ? 1.0 : 0.0) + (model->embedding_norm ? 1.0 : 0.0);
    double idle_experts = (double)(model->moe.num_experts - model->moe.top_k);

    ms_param_counts count = {0};
    count.embedding = (double)model->vocab * hidden;
    if (model->position == MS_POSITION_LEARNED)
        count.embedding += (double)model->max_positions * hidden;
    count.attention =
        n.attention *
        (model->attention == MS_ATTENTION_MLA ? mla_params(model) : gqa_params(model));
    if (n.mamba > 0.0)
        count.mamba = n.mamba * mamba_params(model);
    count.norm = n.attention * attention_norm_params(model) +
                 (n.norms + num_outer_norms) * norm_width;
    if (n.dense_mlp > 0.0)
        count.mlp = n.dense_mlp * mlp_params(model, model->ffn_hidden);
    double one_expert = expert_params(model);
    if (n.moe > 0.0) {
        count.experts = n.moe * (double)model->moe.num_experts * one_expert;
        count.router = n.moe * router_params(model);
        if (model->moe.shared_ffn_hidden > 0)
            count.mlp += n.moe * mlp_params(model, model->moe.shared_ffn_hidden);
    }
    if (!model->tied_embeddings)
        count.head = (double)model->vocab * (hidden + (model->head_bias ? 1.0 : 0.0));
    count.total = count.embedding + count.attention + count.mamba + count.mlp +
                  count.experts + count.router + count.norm + count.head;
    count.active = count.total - (n.moe > 0.0 ? n.moe * idle_experts * one_expert : 0.0);
    return count;
}

/* Mean number of keys at most `window_tokens` before or after a query: area of a band
 * around the diagonal of an s x s matrix, divided by s. Causal queries see half. */
static double pairs_per_token(double sequence_length, long window_tokens)
{
    double window = (double)window_tokens;
    if (window_tokens == 0 || window >= sequence_length)
        return sequence_length;
    return window * (2.0 - window / sequence_length);
}

/* FLOP of a Mamba-2 recurrence per token, forward and backward: Megatron-LM's 3 x 7 per
 * element of the state; in sequences so short that the GEMMs of their only chunk take
 * fewer, those. */
static double recurrence_flop(const ms_model *model, double sequence_length)
{
    ms_scan_shape scan = {.tokens = 1.0,
                          .heads = (double)model->mamba.num_heads,
                          .head_dim = (double)model->mamba.head_dim,
                          .state_size = (double)model->mamba.state_size,
                          .groups = (double)model->mamba.num_groups,
                          .chunk_tokens =
                              ms_min((double)model->mamba.chunk_size, sequence_length)};
    double executed = ms_scan_flop(scan);
    scan.backward = true;
    executed += ms_scan_flop(scan);
    return ms_min(21.0 * (double)ms_mamba_inner(model) * scan.state_size, executed);
}

/* Active parameters that no GEMM multiplies. */
static double vector_params(const ms_model *model, const ms_param_counts *params)
{
    ms_model bare = *model;
    bare.qkv_bias = bare.attention_out_bias = bare.mlp_bias = bare.head_bias = false;
    bare.moe.router_bias = bare.moe.logit_bias = bare.moe.expert_bias = false;
    bare.attention_sinks = false;
    bare.mlp_scalars = 0;
    double mixers = (double)ms_model_mixers(model, MS_MIXER_MAMBA);
    return params->norm + params->active - ms_model_params(&bare).active +
           (mixers > 0.0 ? mixers * mamba_vector_params(model) : 0.0);
}

ms_flop_per_token ms_model_flop_per_token(const ms_model *model, double sequence_length)
{
    ms_param_counts params = ms_model_params(model);
    double multiplied = params.active - params.embedding;
    if (model->tied_embeddings)
        multiplied += (double)model->vocab * (double)model->hidden;
    double num_pairs = 0.0;
    for (long i = 0; i < model->num_layers; i++) {
        const ms_layer_kind *kind = &model->kinds[model->kind_of_layer[i]];
        if (kind->mixer == MS_MIXER_ATTENTION)
            num_pairs += pairs_per_token(sequence_length, kind->window_tokens);
    }
    double head_widths = (double)(model->head_dim + model->value_head_dim);
    double attention_flop = 6.0 * (double)model->num_heads * head_widths * num_pairs;
    double scan_flop = (double)ms_model_mixers(model, MS_MIXER_MAMBA) *
                       recurrence_flop(model, sequence_length);
    double matrix_flop = 6.0 * multiplied + scan_flop;
    return (ms_flop_per_token){.matrix_flop = 6.0 * multiplied,
                               .causal_flop = matrix_flop + attention_flop / 2.0,
                               .full_flop = matrix_flop + attention_flop,
                               .vector_flop = 6.0 * vector_params(model, &params)};
}

long ms_model_padded_vocab(const ms_model *model, long tp)
{
    long multiple = 128 * tp;
    if (model->vocab % tp == 0)
        return model->vocab;
    return (model->vocab + multiple - 1) / multiple * multiple;
}

long ms_model_split_kv_heads(const ms_model *model, long tp)
{
    long heads = model->num_kv_heads;
    if (model->attention == MS_ATTENTION_MLA || heads % tp == 0)
        return heads;
    return tp % heads == 0 ? tp : 0;
}
