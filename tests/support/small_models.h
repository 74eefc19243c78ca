/* Models of a few thousand parameters for executing layer programs: hidden 16, 8 heads,
 * vocabulary 32, 8 experts of which 2 are chosen. Each is named after a family that has
 * its features. */
#ifndef MS_TESTS_SUPPORT_SMALL_MODELS_H
#define MS_TESTS_SUPPORT_SMALL_MODELS_H

#include "costmodel/model/model.h"

#define MS_SMALL_SEQUENCE 16 /* rows of learned positions */

typedef ms_model ms_make_model(void);

/* RMS norms, SwiGLU, grouped queries; with norms of queries and keys; with biases
 * everywhere. */
ms_make_model ms_small_llama, ms_small_qwen, ms_small_biased;
/* Layer norms, biases, GELU, learned positions, dropout. */
ms_make_model ms_small_gpt;
/* Norms after attention and MLP, a window of 5 tokens. */
ms_make_model ms_small_gemma;
/* Parallel blocks with one norm and with two. */
ms_make_model ms_small_falcon, ms_small_neox;
/* Multi-head latent attention with a query latent. */
ms_make_model ms_small_latent;
/* Routers: softmax of the chosen; softmax, with gated shared experts; softmax
 * renormalised. */
ms_make_model ms_small_mixtral, ms_small_qwen_moe, ms_small_softmax_moe;
/* Latent attention, sigmoid router with correction bias, shared experts. */
ms_make_model ms_small_deepseek;

#define MS_NUM_SMALL_DENSE 8
#define MS_NUM_SMALL_MOE   4
extern ms_make_model *const ms_small_dense[MS_NUM_SMALL_DENSE];
extern ms_make_model *const ms_small_moe[MS_NUM_SMALL_MOE];

#endif
