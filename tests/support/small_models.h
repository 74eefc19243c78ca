/* Models of a few thousand parameters for executing layer programs: hidden 16, 8 heads,
 * vocabulary 32, 8 experts of which a token uses 2. Each has the features of the model
 * family in its name. */
#ifndef MS_TESTS_SUPPORT_SMALL_MODELS_H
#define MS_TESTS_SUPPORT_SMALL_MODELS_H

#include "costmodel/model/model.h"

#define MS_SMALL_SEQUENCE 16 /* sequence length, and rows of the learned position table */

typedef ms_model ms_make_model(void);

/* RMS norms, SwiGLU, grouped-query attention; qwen: query and key norms too; biased:
 * biases everywhere. */
ms_make_model ms_small_llama, ms_small_qwen, ms_small_biased;
/* LayerNorms, biases, GELU, learned positions, dropout. */
ms_make_model ms_small_gpt;
/* Norms after attention and MLP, an attention window of 5 tokens. */
ms_make_model ms_small_gemma;
/* Attention and MLP in parallel: after one shared norm (falcon), after one norm each
 * (neox). */
ms_make_model ms_small_falcon, ms_small_neox;
/* Multi-head latent attention whose queries have a latent, too. */
ms_make_model ms_small_latent;
/* Routers: softmax over the chosen experts (mixtral); softmax over all, with gated shared
 * experts (qwen_moe); softmax over all, renormalised over the chosen. */
ms_make_model ms_small_mixtral, ms_small_qwen_moe, ms_small_softmax_moe;
/* Latent attention, sigmoid router with a correction bias, shared experts. */
ms_make_model ms_small_deepseek;

#define MS_NUM_SMALL_DENSE 8
#define MS_NUM_SMALL_MOE   4
extern ms_make_model *const ms_small_dense[MS_NUM_SMALL_DENSE];
extern ms_make_model *const ms_small_moe[MS_NUM_SMALL_MOE];

#endif
