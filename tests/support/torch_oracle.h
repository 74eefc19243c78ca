/* What PyTorch calculated for small models: tests/data/run/NAME.*, made by
 * tests/oracle/torch/make_oracle.py in fp64. */
#ifndef MS_TESTS_SUPPORT_TORCH_ORACLE_H
#define MS_TESTS_SUPPORT_TORCH_ORACLE_H

#include "costmodel/model/model.h"
#include "exec/params/names.h"
#include "exec/params/safetensors.h"
#include "exec/params/tokens.h"

/* Llama (grouped queries, untied head); Mixtral (4 experts, top-2); GPT-2 (tied head,
 * tanh GELU). NULL-ended. */
extern const char *const ms_torch_models[];

/* Arguments of the generators with which weights and tokens (of step 0) were made. */
extern const ms_initial ms_torch_initial;
#define MS_TORCH_SEED     1
#define MS_TORCH_SEQUENCE 16
#define MS_TORCH_BATCH    4

typedef struct ms_torch_oracle {
    const ms_model *model;
    const char *model_path;
    ms_safe_file weights;   /* before the first step */
    ms_safe_file batch;     /* input_ids, labels */
    ms_safe_file gradients; /* of the mean loss over all tokens, by the weights' names */
    double loss;
    double loss_fp32; /* when calculated in fp32 */
} ms_torch_oracle;

/* Lives in cx->arena. */
ms_status ms_torch_oracle_load(ms_ctx *cx, const char *name, ms_torch_oracle *out);
ms_tokens ms_torch_tokens(const ms_torch_oracle *oracle);

/* The largest |got - want| of a tensor over its largest |want|, of the tensor where that
 * is most; `worst` is its name. Infinity when a tensor is missing, one too many, of
 * another shape or no number. */
double ms_torch_difference(const ms_safe_file *got, const ms_safe_file *want,
                           const char **worst);

#endif
