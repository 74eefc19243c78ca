/* PyTorch's fp64 results for small models, read from tests/data/run/NAME.* (made by
 * tests/oracle/torch/make_oracle.py). */
#ifndef MS_TESTS_SUPPORT_TORCH_ORACLE_H
#define MS_TESTS_SUPPORT_TORCH_ORACLE_H

#include "costmodel/model/model.h"
#include "exec/params/names.h"
#include "exec/params/safetensors.h"
#include "exec/params/tokens.h"

/* Model names, ended by NULL: Llama (grouped queries, untied head); Mixtral (4 experts,
 * top-2); GPT-2 (tied head, tanh GELU). */
extern const char *const ms_torch_models[];

/* Generator arguments of the weights and of the tokens of step 0. */
extern const ms_initial ms_torch_initial;
#define MS_TORCH_SEED     1
#define MS_TORCH_SEQUENCE 16
#define MS_TORCH_BATCH    4

typedef struct ms_torch_oracle {
    const ms_model *model;
    const char *model_path;
    ms_safe_file weights; /* weights before the first step */
    ms_safe_file batch;   /* tensors input_ids and labels */
    /* gradients of the mean loss over all tokens, by weight name */
    ms_safe_file gradients;
    double loss;
    double loss_fp32; /* loss calculated in fp32 */
} ms_torch_oracle;

/* Loads the results of a model; they live in cx->arena. */
ms_status ms_torch_oracle_load(ms_ctx *cx, const char *name, ms_torch_oracle *out);
ms_tokens ms_torch_tokens(const ms_torch_oracle *oracle);

/* Largest |got - want| of a tensor relative to its largest |want|, over all tensors; of a
 * tensor that is 0 but for rounding, relative to the largest |want| of all. `worst` gets
 * that tensor's name. Infinity: tensors or shapes differ, or a value is
 * NaN. */
double ms_torch_difference(const ms_safe_file *got, const ms_safe_file *want,
                           const char **worst);

#endif
