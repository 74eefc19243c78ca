#include "exec/core/op_call.h"

#include <math.h>
#include <string.h>

ms_scalar ms_tensor_scalar(const ms_program *program, int tensor,
                           const ms_precision *precision)
{
    const ms_tensor *t = &program->tensors[tensor];
    const double mask_bytes = 1.0;
    if (t->element_bytes == mask_bytes)
        return MS_SCALAR_BYTE;
    if (t->role == MS_ROLE_WEIGHT_GRADIENT)
        return precision->gradient;
    return t->element_bytes == program->compute_bytes ? precision->real
                                                      : precision->statistic;
}

bool ms_is_layer_product(const ms_program *program, const ms_node *node)
{
    const ms_tensor *tensors = program->tensors;
    if (!ms_node_is_product(node) || ms_node_is_adapter(node))
        return false;
    bool has_weight = tensors[node->in[0]].role == MS_ROLE_WEIGHT ||
                      tensors[node->in[1]].role == MS_ROLE_WEIGHT ||
                      tensors[node->out[0]].role == MS_ROLE_WEIGHT_GRADIENT;
    return has_weight && strchr(node->einsum, MS_DIM_VOCAB) == NULL &&
           (node->op == MS_OP_GROUPED || strchr(node->einsum, MS_DIM_EXPERTS) == NULL);
}

long ms_capacity_rows(const ms_capacity *capacity, long num_copies, long num_experts)
{
    double mean = (double)num_copies / (double)num_experts;
    return (long)ceil(mean * capacity->factor);
}

ms_recipe ms_run_recipe(ms_real_type type, ms_recipe stated)
{
    static const ms_recipe usual[MS_NUM_REAL_TYPES] = {
        [MS_REAL_FP8] = MS_RECIPE_TENSORWISE, [MS_REAL_FP4] = MS_RECIPE_NVFP4};
    bool is_stated = stated != MS_RECIPE_DEFAULT && usual[type] != MS_RECIPE_DEFAULT;
    return is_stated ? stated : usual[type];
}
