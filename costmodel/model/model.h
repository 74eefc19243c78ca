/* Folder costmodel/model: architectures, their parameter counts and readers of model
 * files; no weights, no sharding.
 *
 * A transformer's architecture: shapes, exact parameter counts, FLOP per token.
 * Loaded by name from configs/models/, or imported from a Hugging Face config.json. Every layer is one of a few kinds. */
#ifndef MS_COSTMODEL_MODEL_MODEL_H
#define MS_COSTMODEL_MODEL_MODEL_H

#include "base/diag.h"
#include "base/json.h"

#include <stdbool.h>
#include <stdio.h>

typedef enum ms_norm_kind {
    MS_NORM_RMS,
    MS_NORM_LAYER
} ms_norm_kind;
typedef enum ms_activation {
    MS_ACT_SWIGLU,
    MS_ACT_GEGLU,
    MS_ACT_GELU,
    MS_ACT_RELU,
    MS_ACT_RELU2
} ms_activation;

/* Whether the activation makes a gated MLP (SwiGLU): gate, up and down matrices. */
bool ms_activation_is_gated(ms_activation activation);
typedef enum ms_position_kind {
    MS_POSITION_ROTARY,
    MS_POSITION_LEARNED,
    MS_POSITION_ALIBI,
    MS_POSITION_NONE /* no position encoding (Nemotron-H: Mamba-2 layers know order) */
} ms_position_kind;
typedef enum ms_attention_kind {
    MS_ATTENTION_GQA, /* grouped-query attention; MHA and MQA included */
    MS_ATTENTION_MLA
} ms_attention_kind;
typedef enum ms_router_kind {
    /* softmax over all experts, then top-k (renormalised if norm_topk) */
    MS_ROUTER_SOFTMAX_TOPK,
    /* top-k of the logits, then softmax over these (Mixtral) */
    MS_ROUTER_TOPK_SOFTMAX,
    /* DeepSeek-V3: sigmoid scores, renormalised; the choice adds a correction bias */
    MS_ROUTER_SIGMOID
} ms_router_kind;

/* How the rotary frequencies of a model that was extended to longer sequences differ from
 * base^(-2i / width) (huggingface transformers, modeling_rope_utils.py). */
typedef enum ms_rotary_scaling_kind {
    MS_ROTARY_SCALING_NONE,
    MS_ROTARY_SCALING_LINEAR, /* divided by `factor` */
    MS_ROTARY_SCALING_LLAMA3, /* low frequencies are divided, high ones are kept */
    MS_ROTARY_SCALING_YARN    /* a linear ramp between both (Peng et al. 2023) */
} ms_rotary_scaling_kind;

typedef struct ms_rotary_scaling {
    ms_rotary_scaling_kind kind;
    double factor;
    double original_positions; /* context length before the extension */
    double low_frequency_factor, high_frequency_factor; /* llama3 */
    double beta_fast, beta_slow;                        /* yarn */
    double mscale, mscale_all_dim;                      /* yarn of DeepSeek; 0: none */
    /* yarn: factor of cosines and sines; 0: 0.1 ln(factor) + 1 */
    double attention_factor;
    bool untruncated; /* yarn: the ramp begins and ends between frequencies (GPT-OSS) */
} ms_rotary_scaling;

/* The part of a layer that mixes information between tokens. */
typedef enum ms_mixer {
    MS_MIXER_ATTENTION,
    MS_MIXER_MAMBA, /* Mamba-2 (Dao and Gu 2024) */
    MS_MIXER_NONE   /* a layer that is an MLP alone */
} ms_mixer;

/* A kind of layer, one of at most MS_MAX_LAYER_KINDS: a mixer, an MLP, or both. */
typedef struct ms_layer_kind {
    bool moe;           /* the layer's MLP is a mixture of experts */
    bool no_mlp;        /* the layer is attention or Mamba-2 alone */
    long window_tokens; /* window of sliding-window attention; 0: full attention */
    ms_mixer mixer;
} ms_layer_kind;

bool ms_layer_kind_equal(const ms_layer_kind *x, const ms_layer_kind *y);
bool ms_layer_kind_has_dense_mlp(const ms_layer_kind *kind);

#define MS_MAX_LAYER_KINDS  4
#define MS_MAX_NEXTN_LAYERS 4

typedef struct ms_model {
    const char *name;   /* "llama-3.1-70b" */
    const char *family; /* Hugging Face model_type: "llama" */
    const char *source; /* origin of the shapes, as text */

    long num_layers;
    long hidden;          /* hidden size h */
    long num_heads;       /* a: query heads */
    long num_kv_heads;    /* key-value heads; divides num_heads */
    long head_dim;        /* width of a query or key head; MLA: nope + rope */
    long value_head_dim;  /* width of a value head; head_dim unless MLA */
    long ffn_hidden;      /* f: MLP width of dense layers */
    long vocab;           /* rows of the trained embedding, padding included */
    long max_positions;   /* rows of the position table, or context length if none */
    bool tied_embeddings; /* the output head reuses the token embedding */
    bool embedding_norm;  /* a LayerNorm after the embedding (BLOOM) */

    ms_norm_kind norm; /* layer norms also have a bias unless norm_bias is false */
    bool norm_bias;
    bool plain_norms;   /* OLMo: norms have no weights */
    bool post_norms;    /* Gemma 2: a norm after attention and after the MLP as well */
    bool no_pre_norms;  /* OLMo 2: no norm before attention and before the MLP */
    bool qk_norm;       /* Qwen3: norms of width head_dim on each query and key head */
    bool qk_norm_whole; /* OLMo 2: those norms are over all query heads, all key heads */
    bool qk_norm_head_weights; /* Cohere: each head's norm has weights of its own */
    bool parallel_block;       /* attention and MLP in parallel (Falcon, GPT-NeoX) */
    long norms_per_layer;      /* 1 (shared by attention and MLP), 2 (one each) or 4 */
    bool final_norm;
    ms_activation activation;
    /* GPT-OSS, with SwiGLU: gate and up are limited to this, the gate from above only, and
     * the MLP is (up + 1) gate sigmoid(1.702 gate); 0: plain SwiGLU */
    double swiglu_limit;
    long mlp_scalars; /* learned numbers of each MLP's activation (Apertus' xIELU: 2) */
    /* GPT-OSS: softmax over keys and one learned score per query head */
    bool attention_sinks;
    ms_position_kind position;
    bool qkv_bias, attention_out_bias, mlp_bias, head_bias;
    /* modules of multi-token prediction (DeepSeek-V3 section 2.2), which some stacks
     * train; parameter and FLOP counts leave them out */
    long num_nextn_predict_layers;
    /* factor of the mean loss of these modules: DeepSeek-V3 section 4.2 has 0.3, then 0.1 */
    double nextn_loss_weight;
    bool dropout; /* trained with dropout (GPT-2, GPT-3): masks are saved for backward */
    /* probabilities that dropout sets a probability of attention, an element of a branch
     * before its residual sum, of the embedding to 0, if `dropout` */
    double attention_dropout, hidden_dropout, embedding_dropout;
    ms_attention_kind attention;

    struct {              /* MLA (DeepSeek-V2 section 2.1); zero otherwise */
        long q_lora_rank; /* rank of compressed queries; 0: full (V2-Lite) */
        long kv_lora_rank;
        long nope_head_dim;
        long rope_head_dim;
    } mla;

    struct { /* mixture of experts; num_experts is 0 for dense models */
        long num_experts;
        long top_k;
        long ffn_hidden;        /* MLP width of one routed expert */
        long shared_ffn_hidden; /* MLP width of all shared experts; 0: none */
        bool shared_gate;       /* Qwen2-MoE: the shared expert's output is gated */
        ms_router_kind router;
        bool router_bias; /* DeepSeek-V3: one correction bias per expert for its choice */
        bool logit_bias;  /* GPT-OSS: the router's logits have a bias */
        bool norm_topk;
        /* DeepSeek: experts are chosen from `top_groups` of `num_groups` groups; 0 or 1:
         * from all. A group's score is the sum of its best two (sigmoid router), or its
         * best one. */
        long num_groups, top_groups;
        double routed_scaling; /* factor of the weights of the chosen experts; 0: none */
        bool expert_bias;      /* GPT-OSS: matrices of experts have biases */
    } moe;

    struct { /* Mamba-2 layers; num_heads is 0 if the model has none */
        long num_heads, head_dim;
        long state_size;  /* state size N per head and channel */
        long num_groups;  /* groups of heads that share the state matrices B and C */
        long conv_kernel; /* taps of the causal convolution, which has a bias */
        long chunk_size; /* tokens per chunk of the scan; all pairs of a chunk interact */
    } mamba;

    int num_kinds;
    ms_layer_kind kinds[MS_MAX_LAYER_KINDS];
    unsigned char *kind_of_layer; /* (num_layers) index into `kinds` of a layer's kind */

    double rotary_base, norm_epsilon;
    bool gelu_tanh;

    /* Features that change values, not shapes; 0 or false: the model has none. */
    bool norm_plus_one;           /* norms multiply by 1 + weight (Gemma, Nemotron) */
    double embedding_scale;       /* factor of token embeddings (Gemma: sqrt(hidden)) */
    double query_pre_attn_scalar; /* scores are divided by its root; 0: by head_dim's */
    double attention_softcap;     /* c: scores become c tanh(score / c) (Gemma 2) */
    double logit_softcap;         /* c: logits become c tanh(logit / c) (Gemma 2) */
    double logit_scale;           /* factor of logits (Cohere); 0: none */
    long position_offset; /* row of learned positions of a sequence's first token (OPT) */
    long rotary_dim;      /* rotated entries of a head, the first ones; 0: all */
    bool rotary_interleaved; /* pairs are neighbours, not the halves of a head (GPT-J) */
    double
        rotary_local_base; /* base in layers with a window, unscaled; 0: as elsewhere */
    ms_rotary_scaling rotary_scaling;
    /* Names of features that a model file cannot state otherwise, ended by NULL; the
     * runner refuses them. NULL: none. */
    const char *const *not_executed;
    /* Keys of a Hugging Face config that were not read and may change the model, as text:
     * "a, b"; NULL: none. */
    const char *unread_keys;
    /* How far the parameters of the checkpoint beside the config are from the counted
     * ones (ms_model_check_index); NULL: no checkpoint, or equal. */
    const char *checkpoint_note;
} ms_model;

/* Parameter counts of a whole model by kind: exact integers below 2^53. */
typedef struct ms_param_counts {
    double total;
    double embedding; /* token and learned position tables */
    double attention; /* attention projections and biases; MLA included */
    double mamba;     /* Mamba-2 mixers with their inner norms */
    double mlp;       /* dense MLPs and shared experts */
    double experts;   /* routed experts */
    double router;    /* router matrices and biases, gates of shared experts */
    double norm;
    double head;   /* output head; 0 if it reuses the token embedding */
    double active; /* parameters that one token uses: top_k of num_experts experts */
} ms_param_counts;

ms_param_counts ms_model_params(const ms_model *model);

/* Widths inside a Mamba-2 mixer. ms_mamba_inner: all heads; ms_mamba_channels:
 * convolution, inner + two states per group; ms_mamba_projected: input projection, gate
 * (inner) + channels + one step per head. Dao and Gu 2024 (arXiv 2405.21060) figure 6. */
long ms_mamba_inner(const ms_model *model);
long ms_mamba_channels(const ms_model *model);
long ms_mamba_projected(const ms_model *model);

/* Whether no layer has both a mixer and an MLP; in other models every layer has both. */
bool ms_model_is_hybrid(const ms_model *model);

/* Factor of the products of queries and keys of `width` entries: 1 /
 * sqrt(query_pre_attn_scalar or width); with DeepSeek's yarn times (0.1 mscale_all_dim ln(factor) + 1)^2
 * (transformers modeling_deepseek_v3.py). */
double ms_model_attention_scale(const ms_model *model, long width);

/* Number of the model's layers with this mixer. */
long ms_model_mixers(const ms_model *model, ms_mixer mixer);

/* Model FLOP per training token (forward and backward, no recomputation) at sequence
 * length s: 6 * (active parameters, without the token and position tables; a token table
 * that is also the head counts), plus 6 * s * layers * heads * (head_dim +
 * value_head_dim) for attention: `full` counts all query-key pairs, `causal` exactly half
 * of them. In a layer with a sliding window w < s the pairs are those at most w apart: w
 * (2 - w / s) takes the place of s. A Mamba-2 layer adds 3 * 7 * inner width * state size
 * for its recurrence, or the FLOP of its GEMMs (ms_scan_flop) where these are fewer. Sources: PaLM (Chowdhery et al. 2022) appendix B; the area of the
 * band of pairs for windows; for Mamba-2 Megatron-LM training.py (mamba_layer_flops),
 * quoted from memory. */
typedef struct ms_flop_per_token {
    double matrix_flop; /* part of the others: 6 per parameter that a token meets */
    double causal_flop;
    double full_flop;
    /* part of both: parameters outside GEMMs (norms, biases, a mixer's convolution and
     * numbers per head), which the FLOP of nodes leave out */
    double vector_flop;
} ms_flop_per_token;

ms_flop_per_token ms_model_flop_per_token(const ms_model *model, double sequence_length);

/* Rows of the embedding tables when split over tp ranks: the vocabulary, or if tp does
 * not divide it the next multiple of 128 tp (Megatron-LM, --make-vocab-size-divisible-by
 * 128). */
long ms_model_padded_vocab(const ms_model *model, long tp);

/* Number of key-value heads when attention is split over tp ranks: num_kv_heads if tp
 * divides it (MLA: always); tp if it is a multiple of num_kv_heads, as neighbouring ranks
 * then hold copies of one head (vllm-project/vllm QKVParallelLinear; Megatron-Core with
 * fewer query groups than tp); otherwise 0. */
long ms_model_split_kv_heads(const ms_model *model, long tp);

/* Loads a model by name or alias ("70b" is llama-3.1-70b), or from a path: a meshsim
 * model file or a Hugging Face config.json (anything with a "model_type"), or by its name
 * on the hub (model_hub.h). Another word with '/' or ending in ".json" is a path. Errors:
 * unknown name (nearest suggested), unknown model_type (names the keys found), missing
 * keys, inconsistent shapes. */
ms_status ms_model_load(ms_ctx *cx, const char *name_or_path, const ms_model **out);

/* Like ms_model_load of a Hugging Face config, which is read as one of this model_type
 * whatever its own is. */
ms_status ms_model_load_as(ms_ctx *cx, const char *path, const char *model_type,
                           const ms_model **out);

/* Imports a Hugging Face config object; `name` names configs without _name_or_path.
 * `model_type` replaces the config's own unless it is NULL. */
ms_status ms_model_import_hf(ms_ctx *cx, ms_jval config, const char *name,
                             const char *model_type, ms_model *out);

/* Reads a parsed model file: meshsim.model-config/1, or a Hugging Face config (with a
 * "model_type"), for which `name` is as in ms_model_import_hf. */
ms_status ms_model_read(ms_ctx *cx, ms_jval root, const char *name, ms_model *out);

/* Checks divisibility and ranges of shapes. MS_EINPUT names the first wrong one. */
ms_status ms_model_check(ms_ctx *cx, const ms_model *model, ms_loc loc);

/* Writes meshsim.model/1: parameter counts, FLOP per token at `sequence_length`, and the
 * architecture as a meshsim.model-config/1 object that can be loaded again. */
void ms_model_write_json(ms_jout *out, const ms_model *model, double sequence_length);

/* Prints architecture, parameters by kind and FLOP per token at `sequence_length`. */
void ms_model_print(FILE *out, const ms_model *model, double sequence_length);

/* Names of all models in configs/models/, sorted; the array lives in cx->arena. */
ms_status ms_model_names(ms_ctx *cx, const char *const **names, int *num_names);

#endif
