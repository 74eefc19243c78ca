/* A transformer's architecture: shapes only, never weights. Exact parameter counts by
 * kind and FLOP per token follow from it. Loaded by name from configs/models/, or
 * imported from a Hugging Face config.json. Every layer is one of a few kinds, so a model
 * is a list of runs of equal layers. */
#ifndef MS_COSTMODEL_MODEL_MODEL_H
#define MS_COSTMODEL_MODEL_MODEL_H

#include "base/diag.h"
#include "base/json.h"

#include <stdbool.h>
#include <stdio.h>

typedef enum ms_norm_kind {
    MS_NORM_RMS,
    /* "rms" "layer" */
    MS_NORM_LAYER
} ms_norm_kind;
typedef enum ms_activation {
    MS_ACT_SWIGLU,
    MS_ACT_GEGLU,
    MS_ACT_GELU,
    MS_ACT_RELU,
    MS_ACT_RELU2
} ms_activation;

/* Whether an MLP with it has three matrices, two of them for the activation. */
bool ms_activation_is_gated(ms_activation activation);
typedef enum ms_position_kind {
    MS_POSITION_ROTARY,
    MS_POSITION_LEARNED,
    MS_POSITION_ALIBI,
    MS_POSITION_NONE /* Nemotron-H: what mixes tokens in order knows where they are */
} ms_position_kind;
typedef enum ms_attention_kind {
    MS_ATTENTION_GQA,
    /* MHA and MQA are GQA */
    MS_ATTENTION_MLA
} ms_attention_kind;
typedef enum ms_router_kind {
    /* softmax over all experts, then top-k (renormalised if norm_topk) */
    MS_ROUTER_SOFTMAX_TOPK,
    /* top-k of the logits, then softmax over these (Mixtral: the same as
     * renormalising) */
    MS_ROUTER_TOPK_SOFTMAX,
    /* DeepSeek-V3: sigmoid scores, correction bias for the choice, renormalised */
    MS_ROUTER_SIGMOID
} ms_router_kind;

/* What mixes tokens in a layer. */
typedef enum ms_mixer {
    MS_MIXER_ATTENTION,
    MS_MIXER_MAMBA, /* Mamba-2 (Dao and Gu 2024) */
    MS_MIXER_NONE   /* the layer is an MLP alone */
} ms_mixer;

/* What distinguishes one layer from another; models have at most MS_MAX_LAYER_KINDS of
 * them. A layer is a mixer and an MLP, or one of both. */
typedef struct ms_layer_kind {
    bool moe;           /* the MLP is a mixture of experts */
    bool no_mlp;        /* the layer is a mixer alone */
    long window_tokens; /* sliding-window attention; 0: full attention */
    ms_mixer mixer;
} ms_layer_kind;

bool ms_layer_kind_equal(const ms_layer_kind *x, const ms_layer_kind *y);
bool ms_layer_kind_has_dense_mlp(const ms_layer_kind *kind);

#define MS_MAX_LAYER_KINDS 4

typedef struct ms_model {
    const char *name;   /* "llama-3.1-70b" */
    const char *family; /* Hugging Face model_type: "llama" */
    const char *source; /* where the figures come from */

    long num_layers;
    long hidden;         /* h */
    long num_heads;      /* a: query heads */
    long num_kv_heads;   /* divides num_heads */
    long head_dim;       /* of queries and keys; for MLA nope + rope */
    long value_head_dim; /* of values; equals head_dim unless MLA */
    long ffn_hidden;     /* f of dense layers */
    long vocab; /* rows of the embedding as trained, padding of the checkpoint included */
    /* rows of learned positions; otherwise the context length, informative */
    long max_positions;
    bool tied_embeddings; /* the head is the transposed embedding */
    bool embedding_norm;  /* a LayerNorm after the embedding (BLOOM) */

    ms_norm_kind norm; /* layer norms have a bias too, unless norm_bias is false */
    bool norm_bias;
    bool post_norms; /* Gemma 2: a norm after attention and after the MLP as well */
    bool qk_norm;    /* Qwen3: norms of width head_dim on queries and keys */
    /* attention and MLP read the same normed input (Falcon, GPT-NeoX) */
    bool parallel_block;
    long norms_per_layer; /* 1 (parallel block with one norm), 2 or 4 */
    bool final_norm;
    /* SWIGLU and GEGLU are gated: three MLP matrices, otherwise two */
    ms_activation activation;
    ms_position_kind position;
    bool qkv_bias, attention_out_bias, mlp_bias, head_bias;
    /* multi-token prediction (DeepSeek-V3 section 2.2): modules behind the model, for
     * stacks that train them; in no count here */
    long num_nextn_predict_layers;
    bool dropout; /* trained with dropout (GPT-2, GPT-3): masks are kept for backward */
    ms_attention_kind attention;

    struct {              /* MLA (DeepSeek-V2 section 2.1); zero otherwise */
        long q_lora_rank; /* 0: a plain query projection (V2-Lite) */
        long kv_lora_rank;
        long nope_head_dim;
        long rope_head_dim;
    } mla;

    struct { /* mixture of experts; num_experts is zero for dense models */
        long num_experts;
        long top_k;
        long ffn_hidden;        /* of one routed expert */
        long shared_ffn_hidden; /* of all shared experts together; 0: none */
        bool shared_gate;       /* Qwen2-MoE: a gate h x 1 on the shared expert */
        ms_router_kind router;
        bool router_bias; /* DeepSeek-V3: one correction bias per expert */
        bool norm_topk;
        /* GPT-OSS: biases of the experts' products; what they move is priced, but they
         * are not in programs */
        bool expert_bias;
    } moe;

    struct { /* Mamba-2 mixers; num_heads is zero for models without */
        long num_heads, head_dim;
        long state_size;  /* of a head, for each of its head_dim channels */
        long num_groups;  /* of heads that share what writes and reads their states */
        long conv_kernel; /* taps of the causal convolution, which has a bias */
        long chunk_size;  /* tokens that are attended to each other directly */
    } mamba;

    int num_kinds;
    ms_layer_kind kinds[MS_MAX_LAYER_KINDS];
    unsigned char *kind_of_layer; /* (num_layers) index into kinds */

    double rotary_base, norm_epsilon;
    bool gelu_tanh;
} ms_model;

/* Exact counts (integers below 2^53) of parameters by kind, the whole model. */
typedef struct ms_param_counts {
    double total;
    double embedding; /* token and learned position tables */
    double attention; /* projections and their biases; MLA included */
    double mamba;     /* Mamba-2 mixers with their inner norms */
    double mlp;       /* dense MLPs and shared experts */
    double experts;   /* routed experts */
    double router;    /* router matrices and biases, shared-expert gates */
    double norm;
    double head;   /* 0 when tied */
    double active; /* total with top_k instead of num_experts experts */
} ms_param_counts;

ms_param_counts ms_model_params(const ms_model *model);

/* Widths inside a Mamba-2 mixer: of its heads together; of what the convolution runs
 * over, which is that and two states for each group; of the input projection, which gives
 * a gate of the inner width, the convolution's channels, and a step for each head. Dao
 * and Gu 2024 (arXiv 2405.21060) figure 6. */
long ms_mamba_inner(const ms_model *model);
long ms_mamba_channels(const ms_model *model);
long ms_mamba_projected(const ms_model *model);

/* Whether every layer is a mixer or an MLP alone, as a pattern with a letter for each
 * makes them; otherwise none is. */
bool ms_model_is_hybrid(const ms_model *model);

/* Layers with this mixer. */
long ms_model_mixers(const ms_model *model, ms_mixer mixer);

/* Model FLOP for one token of training (forward and backward, no recomputation) at a
 * sequence length: 6 * (active parameters, less the token and position tables unless the
 * token table is also the head) plus 6 * L * heads * (head_dim + value_head_dim) * s for
 * attention scores and values: `full` counts all pairs, `causal` exactly half of them. In
 * a layer whose sliding window w is shorter than s, the pairs are those at most w apart:
 * s becomes w (2 - w / s). A Mamba-2 layer adds 3 * 7 * inner width * state size for its
 * recurrence. Source: PaLM (Chowdhery et al. 2022) appendix B; the window term is the
 * area of the band; the recurrence as Megatron-LM training.py (mamba_layer_flops) counts
 * it, quoted from memory. */
typedef struct ms_flop_per_token {
    double causal_flop;
    double full_flop;
} ms_flop_per_token;

ms_flop_per_token ms_model_flop_per_token(const ms_model *model, double sequence_length);

/* Rows of the tables as they are split over tp ranks: the vocabulary, or where tp does
 * not divide it the next multiple of 128 tp (Megatron-LM, --make-vocab-size-divisible-by
 * 128). */
long ms_model_padded_vocab(const ms_model *model, long tp);

/* Key-value heads as they are split over tp ranks: the model's, or where tp is a multiple
 * of them one a rank, the same on tp / heads neighbours (vllm-project/vllm
 * QKVParallelLinear; Megatron-Core's attention with fewer query groups than tp). 0:
 * neither divides the other. Heads of latent attention are not shared. */
long ms_model_split_kv_heads(const ms_model *model, long tp);

/* Loads a model by name or alias ("70b" is llama-3.1-70b), or from a path: a meshsim
 * model file or a Hugging Face config.json (anything with a "model_type"). A word with
 * '/' or ending in ".json" is a path. Errors: unknown name (nearest suggested), unknown
 * model_type (names the keys found), missing keys, inconsistent shapes. */
ms_status ms_model_load(ms_ctx *cx, const char *name_or_path, const ms_model **out);

/* Imports a Hugging Face config object; `name` is used when the config has no
 * _name_or_path. */
ms_status ms_model_import_hf(ms_ctx *cx, ms_jval config, const char *name, ms_model *out);

/* Reads a parsed model file: meshsim.model-config/1, or a Hugging Face config (it has a
 * "model_type"). `name` is for configs that do not name themselves. */
ms_status ms_model_read(ms_ctx *cx, ms_jval root, const char *name, ms_model *out);

/* Checks shapes that every model must satisfy (divisibility, positive sizes, sane
 * ranges). */
ms_status ms_model_check(ms_ctx *cx, const ms_model *model, ms_loc loc);

/* Writes meshsim.model/1: schema, name, source, params, flop_per_token at
 * `sequence_length`, and the architecture as a meshsim.model-config/1 object that can be
 * saved and loaded again. */
void ms_model_write_json(ms_jout *out, const ms_model *model, double sequence_length);

/* Writes a page for people: architecture, parameters by kind, FLOP per token at
 * `sequence_length`. */
void ms_model_print(FILE *out, const ms_model *model, double sequence_length);

/* Names of all models in configs/models/, sorted; the array lives in cx->arena. */
ms_status ms_model_names(ms_ctx *cx, const char *const **names, int *num_names);

#endif
