/* Types shared by the reader of Hugging Face configs and its tables: families, keys and
 * derived values. */
#ifndef MS_COSTMODEL_MODEL_MODEL_HF_PRIV_H
#define MS_COSTMODEL_MODEL_MODEL_HF_PRIV_H

#include "costmodel/model/model_priv.h"

#define MS_HF_NUM_RATES  3
#define MS_HF_NO_DEFAULT (-2L) /* a size for which the class has no default */

/* Where a class's list of layers comes from, if its layers have one block each. */
typedef enum ms_hf_hybrid {
    MS_HF_NOT_HYBRID,
    MS_HF_BLOCK_LIST, /* a pattern, or a list of blocks (Nemotron-H) */
    MS_HF_ALL_MAMBA,  /* each layer is a Mamba-2 mixer */
    /* each layer is a mixer and an MLP, which become two layers of one block each */
    MS_HF_MIXER_AND_MLP
} ms_hf_hybrid;

/* A Hugging Face config as read: the model, and keys still to be translated into it. The
 * table of families gives the class's defaults. */
typedef struct ms_hf_config {
    ms_model model;
    const char *activation;
    bool attention_bias; /* biases of the q, k, v and output projections */
    bool all_biases;     /* biases of attention and MLPs: one key of the class */
    double
        dropout_rates[MS_HF_NUM_RATES]; /* rates of branches, attention, the embedding */
    long inner_multiple; /* MLP width in hidden sizes where the width is null or 0 */

    bool use_sliding_window;
    long sliding_window;    /* window in tokens; 0: none */
    long max_window_layers; /* layers before this index have full attention */
    long sliding_period;    /* n: every n-th layer has full attention; 0: none */
    bool first_is_full;     /* layers 0, n, ... are full, not n - 1, 2n - 1, ... */
    bool unscaled_windows;  /* rotary scaling is for layers with full attention alone */
    long no_rope_period;    /* n: every n-th layer does not rotate; 0: all rotate */
    bool full_layers_do_not_rotate; /* where other layers have a window */

    long decoder_sparse_step; /* n: layers n - 1, 2n - 1, ... have experts */
    long first_k_dense;
    long last_sparse;    /* index of the last layer with experts; -1: the model's last */
    long moe_layer_freq; /* n: layers 0, n, 2n, ... have experts */
    long num_shared_experts;
    const char *scoring;
    const char *topk_method;

    bool multi_query, new_decoder, parallel_attn, alibi; /* keys of Falcon configs */
    long num_parallel_norms;
    long word_embed_dim; /* OPT: width of the token embedding */
    bool norm_before, norm_affine, removed_final_norm;

    double rotary_frac;    /* rotated part of a head; 0: not a key of the model class */
    bool scales_embedding; /* token embeddings are multiplied by sqrt(hidden) */
    double attention_multiplier, residual_multiplier, logits_scaling; /* Granite */
    double scale_depth, dim_model_base;                               /* MiniCPM */
    double clip_qkv; /* limit of queries, keys and values; 0: none */

    ms_hf_hybrid hybrid;
    bool mamba_bias, conv_bias;
    long mamba_expand; /* Mamba-2's inner width in hidden sizes; 0: not a key */
    long latent_size;  /* width in which Nemotron-H's experts work; 0: the hidden size */
} ms_hf_config;

typedef enum ms_hf_type {
    MS_HF_SIZE, /* whole number, or a list of equal ones; "auto" is null */
    MS_HF_FLAG,
    MS_HF_RATE,
    MS_HF_BASE,   /* number of at least 1: rotary base */
    MS_HF_SCALAR, /* number that is not negative */
    MS_HF_PERIOD, /* a size, or its layers as letters: "LLLG" is 4 */
    MS_HF_WORD
} ms_hf_type;

/* A key of configs. An absent one has the class's default, which ms_hf_config holds
 * before. null is 0 (sizes and numbers) or the default (words), and an error where it is
 * not allowed. */
typedef struct ms_hf_key {
    /* all names, "a|b|c", of which the first that is found counts; sizes under several
     * names must agree. "a.b" is member b of object a. */
    const char *names;
    ms_hf_type type;
    bool nullable;
    double low; /* least legal value of a size */
    size_t offset;
} ms_hf_key;

/* Tables of keys by group, each ended by a row without names. */
extern const ms_hf_key ms_hf_size_keys[], ms_hf_head_keys[], ms_hf_group_keys[],
    ms_hf_rope_keys[], ms_hf_width_keys[], ms_hf_inner_keys[], ms_hf_bias_keys[],
    ms_hf_qkv_bias_keys[], ms_hf_all_bias_keys[], ms_hf_dropout_keys[],
    ms_hf_partial_keys[], ms_hf_window_keys[], ms_hf_qwen_window_keys[],
    ms_hf_qwen_moe_keys[], ms_hf_expert_keys[], ms_hf_expert_width_keys[],
    ms_hf_only_experts_keys[], ms_hf_router_keys[], ms_hf_shared_keys[],
    ms_hf_sparse_keys[], ms_hf_mla_keys[], ms_hf_gemma_keys[], ms_hf_falcon_keys[],
    ms_hf_opt_keys[], ms_hf_mamba_keys[], ms_hf_mamba2_keys[], ms_hf_granite_keys[],
    ms_hf_minicpm_keys[], ms_hf_llama4_keys[], ms_hf_other_keys[];

/* A config.json that is being imported. */
typedef struct ms_hf_import {
    ms_jval root; /* the object with the language model's keys */
    const char *model_type;
    bool foreign; /* the config is read as one of another type than its own */
    ms_hf_config config;
} ms_hf_import;

#define MS_HF_MAX_TABLES 12

typedef struct ms_hf_family {
    const char *model_type;
    const ms_hf_key *keys[MS_HF_MAX_TABLES + 1]; /* ended by NULL */
    ms_hf_config defaults; /* the class's defaults, and values that it fixes */
    /* derives further values of the model; NULL: none */
    ms_status (*finish)(ms_ctx *cx, ms_hf_import *import);
} ms_hf_family;

/* Another model_type: one with the layers of a family, or of a file whose language model
 * lies in a part of it. */
typedef struct ms_hf_alias {
    const char *model_type;
    const char
        *family; /* family of the language model, unless its part has a "model_type" */
    const char *part; /* "text_config"; NULL: the file itself */
    bool outer_tie;   /* the outer "tie_word_embeddings" counts */
} ms_hf_alias;

/* A model_type that is known, but has a kind of layer that ms_model cannot express. */
typedef struct ms_hf_refusal {
    const char *model_type;
    const char *layer;
    const char *nearest; /* a family whose layers are the nearest */
} ms_hf_refusal;

/* Tables by Hugging Face model_type; each is ended by a row without one. */
extern const ms_hf_family ms_hf_families[];
extern const ms_hf_alias ms_hf_aliases[];
extern const ms_hf_refusal ms_hf_refusals[];

/* Finds a key's value under the first of its names that `root` has. */
bool ms_hf_find(ms_ctx *cx, ms_jval root, const char *names, ms_jval *out);
/* Whether `name`, or what stands before its first '.', is one of "a|b|c". */
bool ms_hf_has_name(const char *names, const char *name);
/* An error that names the absent key, "a|b|c" by all its names, and the keys found. */
ms_status ms_hf_missing_key(ms_ctx *cx, const ms_hf_import *import, const char *names);

/* Sets the kinds of all layers; clears sizes that no layer uses. */
ms_status ms_hf_set_layers(ms_ctx *cx, ms_hf_import *import);

/* Reads what changes values, not shapes: rotary angles, the embedding's scale, and keys
 * that the family's tables do not have (model->not_executed, model->unread_keys). */
ms_status ms_hf_read_values(ms_ctx *cx, ms_hf_import *import, const ms_hf_family *family);

/* Derived values by family: rows of ms_hf_families. */
ms_status ms_hf_finish_qwen(ms_ctx *cx, ms_hf_import *import);
ms_status ms_hf_finish_latent(ms_ctx *cx, ms_hf_import *import);
ms_status ms_hf_finish_gemma(ms_ctx *cx, ms_hf_import *import);
ms_status ms_hf_finish_opt(ms_ctx *cx, ms_hf_import *import);
ms_status ms_hf_finish_falcon(ms_ctx *cx, ms_hf_import *import);
ms_status ms_hf_finish_multi_query(ms_ctx *cx, ms_hf_import *import);
ms_status ms_hf_finish_mpt(ms_ctx *cx, ms_hf_import *import);
ms_status ms_hf_finish_parallel(ms_ctx *cx, ms_hf_import *import);
ms_status ms_hf_finish_phi(ms_ctx *cx, ms_hf_import *import);
ms_status ms_hf_finish_minimax(ms_ctx *cx, ms_hf_import *import);
ms_status ms_hf_finish_dbrx(ms_ctx *cx, ms_hf_import *import);
ms_status ms_hf_finish_granite_hybrid(ms_ctx *cx, ms_hf_import *import);
ms_status ms_hf_finish_clip(ms_ctx *cx, ms_hf_import *import);
ms_status ms_hf_finish_granite(ms_ctx *cx, ms_hf_import *import);
ms_status ms_hf_finish_minicpm(ms_ctx *cx, ms_hf_import *import);
ms_status ms_hf_finish_minicpm3(ms_ctx *cx, ms_hf_import *import);
ms_status ms_hf_finish_moe(ms_ctx *cx, ms_hf_import *import);
ms_status ms_hf_finish_phimoe(ms_ctx *cx, ms_hf_import *import);
ms_status ms_hf_finish_llama4(ms_ctx *cx, ms_hf_import *import);
ms_status ms_hf_finish_hunyuan(ms_ctx *cx, ms_hf_import *import);
ms_status ms_hf_finish_mamba(ms_ctx *cx, ms_hf_import *import);

#endif
