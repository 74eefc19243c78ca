/* Low-rank adapters (LoRA, Hu et al. 2021, arXiv 2106.09685) on frozen base weights: which
 * linear layers have one, how the base is stored. A linear layer y = W x becomes
 * y = W x + B (A x), with A (rank x in) and B (out x rank) trained and W frozen. The usual
 * scale alpha / rank is 1: it moves no bytes of its own once B has taken it in. */
#ifndef MS_COSTMODEL_PLAN_LORA_H
#define MS_COSTMODEL_PLAN_LORA_H

#include "costmodel/model/model.h"

/* Linear layers that can have an adapter, as bits of a set. Latent attention (MLA): query
 * stands for both projections of queries, key and value for those of the latent vector. */
typedef enum ms_lora_target {
    MS_LORA_QUERY = 1,
    MS_LORA_KEY = 2,
    MS_LORA_VALUE = 4,
    MS_LORA_OUTPUT = 8,
    MS_LORA_GATE = 16,
    MS_LORA_UP = 32,
    MS_LORA_DOWN = 64,
    MS_LORA_ATTENTION = 15,
    MS_LORA_MLP = 112
} ms_lora_target;

/* How frozen weights are stored. */
typedef enum ms_lora_base {
    MS_BASE_IN_COMPUTE_TYPE,
    /* QLoRA (Dettmers et al. 2023, arXiv 2305.14314): NormalFloat of 4 bits in blocks of
     * 64, with an 8-bit scale each and an fp32 scale of 256 of those: 4 + 8 / 64 +
     * 32 / (64 * 256) = 4.127 bits; 16-bit copies are made for each use */
    MS_BASE_NF4
} ms_lora_base;
extern const char *const ms_lora_base_names[]; /* "compute" "nf4", NULL */

/* Adapters of a plan. rank 0: none, all weights are trained. */
typedef struct ms_lora {
    short rank;
    unsigned char targets; /* set of ms_lora_target */
    unsigned char base;    /* ms_lora_base */
} ms_lora;

/* Reads a comma-separated list of "attention", "mlp", "all", "q", "k", "v", "o", "gate",
 * "up", "down", or of Hugging Face's "q_proj" ...; false if a word is unknown. */
bool ms_lora_targets_parse(const char *text, unsigned char *targets);

/* Number of the adapters' parameters in a model; with `joined` query, key and value share
 * one A, and gate and up another (Megatron's linear_qkv and linear_fc1). */
double ms_lora_params(const ms_model *model, const ms_lora *lora, bool joined);

#endif
