#include "costmodel/profile/recipe.h"

#include <stddef.h>

const char *const ms_recipe_names[] = {"default",   "delayed", "tensorwise", "rowwise",
                                       "blockwise", "mxfp8",   "nvfp4",      NULL};

const ms_operand_scaling *ms_recipe_scaling(ms_recipe recipe)
{
    static const ms_operand_scaling scalings[MS_NUM_RECIPES] = {
        /* scales are those of earlier steps; the cast only notes the largest value */
        [MS_RECIPE_DELAYED] = {MS_FP8, 1.0, 0.0, true, false},
        [MS_RECIPE_TENSORWISE] = {MS_FP8, 2.0, 0.0, true, false},
        [MS_RECIPE_ROWWISE] = {MS_FP8, 2.0, 0.0, false, false},
        [MS_RECIPE_BLOCKWISE] = {MS_FP8, 1.0, 4.0 / 128.0, false, false},
        [MS_RECIPE_MXFP8] = {MS_FP8, 1.0, 1.0 / 32.0, false, true},
        [MS_RECIPE_NVFP4] = {MS_FP4, 2.0, 1.0 / 16.0, false, true},
    };
    return recipe == MS_RECIPE_DEFAULT ? NULL : &scalings[recipe];
}
