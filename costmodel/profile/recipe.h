/* Recipes of GEMMs in 8 and 4 bits: how operands are scaled and cast from 16 bits. */
#ifndef MS_COSTMODEL_PROFILE_RECIPE_H
#define MS_COSTMODEL_PROFILE_RECIPE_H

#include "topo/cluster.h"

typedef enum ms_recipe {
    MS_RECIPE_DEFAULT, /* not stated */
    MS_RECIPE_DELAYED,
    MS_RECIPE_TENSORWISE,
    MS_RECIPE_ROWWISE,
    MS_RECIPE_BLOCKWISE,
    MS_RECIPE_MXFP8,
    MS_RECIPE_NVFP4,
    MS_NUM_RECIPES
} ms_recipe;
/* "default" "delayed" "tensorwise" "rowwise" "blockwise" "mxfp8" "nvfp4", NULL */
extern const char *const ms_recipe_names[];

/* A cast reads its operand once or, if its scale needs the largest value of more than a
 * tile, twice. Each direction in which a GEMM reads the operand has its own scales, unless
 * one scale serves the whole tensor. */
typedef struct ms_operand_scaling {
    ms_dtype compute;
    double reads;       /* passes over the 16-bit operand */
    double scale_bytes; /* bytes of scales per element */
    bool by_tensor;     /* one scale per tensor: a transposed copy needs no cast */
    bool needs_blocks;  /* tensor cores multiply the scales: devices that compute FP4 */
} ms_operand_scaling;

/* Sources: Transformer Engine, common/recipe (DelayedScaling, Float8CurrentScaling,
 * Float8BlockScaling, MXFP8BlockScaling, NVFP4BlockScaling), from memory; torchao,
 * float8/config.py (Float8LinearRecipeName), from memory; DeepSeek-V3 (arXiv 2412.19437),
 * section 3.3.2: tiles of 128 values; OCP Microscaling Formats v1.0: blocks of 32 with a
 * scale of one byte; NVIDIA, Pretraining Large Language Models with NVFP4 (arXiv
 * 2509.25149): blocks of 16 with a scale of one byte, and one scale per tensor. Scales of
 * whole rows and tensors count as no bytes. NULL: MS_RECIPE_DEFAULT. */
const ms_operand_scaling *ms_recipe_scaling(ms_recipe recipe);

#endif
