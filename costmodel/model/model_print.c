/* Prints a model: shapes, and exact counts with thousands separators. */
#include "base/print.h"
#include "costmodel/model/model_priv.h"

/* Writes a count with thousands separators: 8030261248 -> "8,030,261,248" */
static void group_digits(char *buf, size_t size, double count)
{
    char digits[40];
    int length = snprintf(digits, sizeof digits, "%.0f", count);
    size_t at = 0;
    for (int i = 0; i < length && at + 2 < size; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            buf[at++] = ',';
        buf[at++] = digits[i];
    }
    buf[at] = '\0';
}

static void print_row(FILE *out, const char *what)
{
    ms_print(out, "  %-15s", what);
}

static void print_attention(FILE *out, const ms_model *model)
{
    if (ms_model_mixers(model, MS_MIXER_ATTENTION) == 0)
        return;
    print_row(out, "attention");
    if (model->attention == MS_ATTENTION_MLA) {
        ms_print(out, "MLA, %ld heads of %ld + %ld (values %ld), ranks: kv %ld",
                 model->num_heads, model->mla.nope_head_dim, model->mla.rope_head_dim,
                 model->value_head_dim, model->mla.kv_lora_rank);
        if (model->mla.q_lora_rank > 0)
            ms_print(out, ", q %ld", model->mla.q_lora_rank);
    } else {
        const char *word = model->num_kv_heads == model->num_heads ? "MHA"
                           : model->num_kv_heads == 1              ? "MQA"
                                                                   : "GQA";
        ms_print(out, "%s, %ld heads of %ld, %ld kv head%s", word, model->num_heads,
                 model->head_dim, model->num_kv_heads,
                 model->num_kv_heads == 1 ? "" : "s");
    }
    ms_print(out, "%s%s\n", model->qk_norm ? ", qk norm" : "",
             model->qkv_bias ? ", biased" : "");
}

static void print_mamba(FILE *out, const ms_model *model)
{
    if (model->mamba.num_heads == 0)
        return;
    print_row(out, "Mamba-2");
    ms_print(out, "%ld heads of %ld, states of %ld, %ld group%s, chunks of %ld tokens\n",
             model->mamba.num_heads, model->mamba.head_dim, model->mamba.state_size,
             model->mamba.num_groups, model->mamba.num_groups == 1 ? "" : "s",
             model->mamba.chunk_size);
}

static void print_mlp(FILE *out, const ms_model *model)
{
    const char *activation = ms_activation_words[model->activation];
    const char *biased = model->mlp_bias ? ", biased" : "";
    if (model->ffn_hidden > 0) {
        print_row(out, "MLP");
        ms_print(out, "%s of %ld%s\n", activation, model->ffn_hidden, biased);
    }
    if (model->moe.num_experts == 0)
        return;
    print_row(out, "experts");
    ms_print(out, "%ld of %ld active, %s of %ld%s", model->moe.top_k,
             model->moe.num_experts, activation, model->moe.ffn_hidden, biased);
    if (model->moe.shared_ffn_hidden > 0)
        ms_print(out, ", shared %ld", model->moe.shared_ffn_hidden);
    ms_print(out, "\n");
    print_row(out, "router");
    ms_print(out, "%s%s%s%s\n", ms_router_words[model->moe.router],
             model->moe.logit_bias ? ", biased" : "",
             model->moe.router_bias ? ", correction bias" : "",
             model->moe.norm_topk ? ", weights renormalised" : "");
}

static const char *single_word(const ms_layer_kind *kind)
{
    if (kind->mixer == MS_MIXER_MAMBA)
        return "Mamba-2";
    if (kind->mixer == MS_MIXER_ATTENTION)
        return "attention";
    return kind->moe ? "with experts" : "MLP";
}

/* Prints numbers of layers by kind: "61: 3 dense, 58 with experts"; "52: 23 Mamba-2, 23
 * with experts, 6 attention" */
static void print_layers(FILE *out, const ms_model *model)
{
    print_row(out, "layers");
    ms_print(out, "%ld", model->num_layers);
    bool mixed = model->moe.num_experts > 0;
    for (int k = 0; k < model->num_kinds; k++) {
        const ms_layer_kind *kind = &model->kinds[k];
        long count = 0;
        for (long i = 0; i < model->num_layers; i++)
            count += model->kind_of_layer[i] == k;
        if (model->num_kinds == 1 && !mixed && kind->window_tokens == 0)
            continue;
        ms_print(out, "%s %ld", k == 0 ? ":" : ",", count);
        if (ms_model_is_hybrid(model)) {
            ms_print(out, " %s", single_word(kind));
            continue;
        }
        if (mixed)
            ms_print(out, " %s", kind->moe ? "with experts" : "dense");
        if (kind->window_tokens > 0)
            ms_print(out, " with a window of %ld tokens", kind->window_tokens);
        else if (model->num_kinds > 1 && !mixed)
            ms_print(out, " with full attention");
    }
    ms_print(out, "\n");
}

static void print_architecture(FILE *out, const ms_model *model)
{
    print_layers(out, model);
    print_row(out, "hidden");
    ms_print(out, "%ld\n", model->hidden);
    print_attention(out, model);
    print_mamba(out, model);
    print_mlp(out, model);
    print_row(out, "norms");
    ms_print(out, "%s, %ld per layer%s%s\n", ms_norm_words[model->norm],
             ms_model_is_hybrid(model) ? model->norms_per_layer / 2
                                       : model->norms_per_layer,
             model->parallel_block ? ", attention and MLP in parallel" : "",
             model->embedding_norm ? ", one after the embedding" : "");
    print_row(out, "vocabulary");
    ms_print(out, "%ld, %s head\n", model->vocab,
             model->tied_embeddings ? "tied" : "separate");
    print_row(out, "positions");
    ms_print(out, "%s, up to %ld\n", ms_position_words[model->position],
             model->max_positions);
}

static void print_count(FILE *out, const char *what, double count, double total)
{
    char text[48];
    if (count <= 0.0)
        return;
    group_digits(text, sizeof text, count);
    print_row(out, what);
    ms_print(out, "%21s  %6.2f %%\n", text, 100.0 * count / total);
}

static void print_params(FILE *out, const ms_model *model)
{
    ms_param_counts params = ms_model_params(model);
    ms_print(out, "\nparameters\n");
    print_count(out, "embedding", params.embedding, params.total);
    print_count(out, "attention", params.attention, params.total);
    print_count(out, "Mamba-2", params.mamba, params.total);
    print_count(out, "MLP", params.mlp, params.total);
    print_count(out, "experts", params.experts, params.total);
    print_count(out, "router", params.router, params.total);
    print_count(out, "norm", params.norm, params.total);
    print_count(out, "head", params.head, params.total);
    print_count(out, "total", params.total, params.total);
    if (params.active < params.total)
        print_count(out, "active", params.active, params.total);
}

void ms_model_print(FILE *out, const ms_model *model, double sequence_length)
{
    char length[48];
    ms_flop_per_token flop = ms_model_flop_per_token(model, sequence_length);
    group_digits(length, sizeof length, sequence_length);
    ms_print(out, "%s (%s)\n", model->name, model->family);
    if (model->source != NULL)
        ms_print(out, "  source: %s\n", model->source);
    ms_print(out, "\narchitecture\n");
    print_architecture(out, model);
    print_params(out, model);
    ms_print(out, "\nmodel FLOP per token (forward and backward) at sequence length %s\n",
             length);
    print_row(out, "causal");
    ms_print(out, "%21.4e\n", flop.causal_flop);
    print_row(out, "full");
    ms_print(out, "%21.4e\n", flop.full_flop);
}
