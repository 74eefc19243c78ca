/* Types shared by the reader of Hugging Face configs and its table of families. */
#ifndef MS_COSTMODEL_MODEL_MODEL_HF_PRIV_H
#define MS_COSTMODEL_MODEL_MODEL_HF_PRIV_H

#include "costmodel/model/model_priv.h"

#define MS_HF_NUM_RATES 3

/* A Hugging Face config as read: the model, and keys still to be translated into it. */
typedef struct ms_hf_config {
    ms_model model;
    const char *activation;
    bool attention_bias; /* biases of the q, k, v and output projections */
    double dropout_rates[MS_HF_NUM_RATES];

    bool layer_types; /* the model class has the key "layer_types" */
    bool use_sliding_window;
    long sliding_window;    /* window in tokens; 0: none */
    long max_window_layers; /* layers before this index have full attention */
    long sliding_period;    /* n: every n-th layer has full attention; 0: none */

    long decoder_sparse_step; /* n: layers n - 1, 2n - 1, ... have experts */
    long first_k_dense;
    long moe_layer_freq; /* n: layers 0, n, 2n, ... have experts */
    long num_shared_experts;
    const char *scoring;
    const char *topk_method;

    bool multi_query, new_decoder, parallel_attn, bias,
        alibi; /* keys of Falcon configs; `bias` also of OPT configs */
    long num_parallel_norms;
    long word_embed_dim; /* OPT: width of the token embedding */
    bool norm_before, norm_affine, removed_final_norm;

    double rotary_frac;    /* rotated part of a head; 0: not a key of the model class */
    bool scales_embedding; /* token embeddings are multiplied by sqrt(hidden) */

    bool hybrid; /* the model class has "hybrid_override_pattern" */
    bool conv_bias;
} ms_hf_config;

typedef enum ms_hf_need {
    MS_HF_REQUIRED,         /* an absent key or null is an error */
    MS_HF_REQUIRED_OR_NULL, /* an absent key is an error, null is 0 */
    MS_HF_DEFAULT,          /* absent: the class's default; null is an error */
    MS_HF_NULLABLE          /* absent: the class's default; null is 0 */
} ms_hf_need;

typedef enum ms_hf_type {
    MS_HF_SIZE,
    MS_HF_FLAG,
    MS_HF_RATE,
    MS_HF_BASE,   /* number of at least 1: rotary base */
    MS_HF_SCALAR, /* number that is not negative */
    MS_HF_WORD
} ms_hf_type;

typedef struct ms_hf_key {
    const char *name;
    const char *alias;
    ms_hf_type type;
    ms_hf_need need;
    size_t offset;
    double low; /* least legal value of a size (type MS_HF_SIZE) */
    double fallback;
    const char *word_fallback;
} ms_hf_key;

/* A config.json that is being imported. */
typedef struct ms_hf_import {
    ms_jval root;
    const char *model_type;
    ms_hf_config config;
} ms_hf_import;

typedef struct ms_hf_family {
    const char *model_type;
    const ms_hf_key *keys[4]; /* tables of config keys, each ended by a NULL name */
    ms_hf_config fixed;       /* values that the model class fixes */
    /* derives further values of the model; NULL: none */
    ms_status (*finish)(ms_ctx *cx, ms_hf_import *import);
} ms_hf_family;

/* Reads what changes values, not shapes: rotary angles, the embedding's scale, and keys
 * that the family's tables do not have (model->not_executed, model->unread_keys). */
ms_status ms_hf_read_values(ms_ctx *cx, ms_hf_import *import, const ms_hf_family *family);

/* Model families by Hugging Face model_type; ended by a row without model_type. */
extern const ms_hf_family ms_hf_families[];

#endif
