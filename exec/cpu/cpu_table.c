/* The table of CPU kernels for one real type. */
#include "exec/cpu/cpu.h"

static ms_cpu_workspace *const workspace[MS_NUM_OPS] = {
    [MS_OP_SUM_TO] = MS_TYPED(ms_cpu_sum_to_bytes),
    [MS_OP_NORM_GRAD] = MS_TYPED(ms_cpu_norm_grad_bytes),
    [MS_OP_ROTARY] = MS_TYPED(ms_cpu_rotary_bytes),
    [MS_OP_ATTENTION] = MS_TYPED(ms_cpu_attention_bytes),
    [MS_OP_ATTENTION_GRAD] = MS_TYPED(ms_cpu_attention_bytes),
    [MS_OP_ROUTE] = MS_TYPED(ms_cpu_experts_bytes),
    [MS_OP_ROUTE_GRAD] = MS_TYPED(ms_cpu_experts_bytes),
    [MS_OP_PERMUTE] = MS_TYPED(ms_cpu_experts_bytes),
    [MS_OP_PERMUTE_GRAD] = MS_TYPED(ms_cpu_experts_bytes),
    [MS_OP_UNPERMUTE] = MS_TYPED(ms_cpu_experts_bytes),
    [MS_OP_UNPERMUTE_GRAD] = MS_TYPED(ms_cpu_experts_bytes),
    [MS_OP_SCAN] = MS_TYPED(ms_cpu_scan_bytes),
    [MS_OP_SCAN_GRAD] = MS_TYPED(ms_cpu_scan_bytes),
    [MS_OP_GROUP_NORM_GRAD] = MS_TYPED(ms_cpu_group_norm_grad_bytes),
};

static size_t workspace_bytes(const ms_program *program, const ms_node *node)
{
    return workspace[node->op] != NULL ? workspace[node->op](program, node) : 0;
}

const ms_kernels MS_TYPED(ms_cpu_table) = {
    .type = sizeof(ms_real) == sizeof(double) ? MS_REAL_FP64 : MS_REAL_FP32,
    .real_bytes = sizeof(ms_real),
    .op =
        {
            [MS_OP_EINSUM] = MS_TYPED(ms_cpu_einsum),
            [MS_OP_BIAS] = MS_TYPED(ms_cpu_bias),
            [MS_OP_SUM_TO] = MS_TYPED(ms_cpu_sum_to),
            [MS_OP_ADD] = MS_TYPED(ms_cpu_add),
            [MS_OP_DROPOUT_GRAD] = MS_TYPED(ms_cpu_dropout_grad),
            [MS_OP_NORM] = MS_TYPED(ms_cpu_norm),
            [MS_OP_NORM_GRAD] = MS_TYPED(ms_cpu_norm_grad),
            [MS_OP_ROTARY] = MS_TYPED(ms_cpu_rotary),
            [MS_OP_ATTENTION] = MS_TYPED(ms_cpu_attention),
            [MS_OP_ATTENTION_GRAD] = MS_TYPED(ms_cpu_attention_grad),
            [MS_OP_MLA_KEYS] = MS_TYPED(ms_cpu_mla_keys),
            [MS_OP_MLA_KEYS_GRAD] = MS_TYPED(ms_cpu_mla_keys_grad),
            [MS_OP_ACTIVATION] = MS_TYPED(ms_cpu_activation),
            [MS_OP_ACTIVATION_GRAD] = MS_TYPED(ms_cpu_activation_grad),
            [MS_OP_EMBED] = MS_TYPED(ms_cpu_embed),
            [MS_OP_EMBED_GRAD] = MS_TYPED(ms_cpu_embed_grad),
            [MS_OP_LOSS_MAX] = MS_TYPED(ms_cpu_loss_max),
            [MS_OP_LOSS_SUM] = MS_TYPED(ms_cpu_loss_sum),
            [MS_OP_LOSS] = MS_TYPED(ms_cpu_loss),
            [MS_OP_LOSS_GRAD] = MS_TYPED(ms_cpu_loss_grad),
            [MS_OP_ROUTE] = MS_TYPED(ms_cpu_route),
            [MS_OP_ROUTE_GRAD] = MS_TYPED(ms_cpu_route_grad),
            [MS_OP_PERMUTE] = MS_TYPED(ms_cpu_permute),
            [MS_OP_PERMUTE_GRAD] = MS_TYPED(ms_cpu_permute_grad),
            [MS_OP_GROUPED] = MS_TYPED(ms_cpu_grouped),
            [MS_OP_UNPERMUTE] = MS_TYPED(ms_cpu_unpermute),
            [MS_OP_UNPERMUTE_GRAD] = MS_TYPED(ms_cpu_unpermute_grad),
            [MS_OP_GATE] = MS_TYPED(ms_cpu_gate),
            [MS_OP_GATE_GRAD] = MS_TYPED(ms_cpu_gate_grad),
            [MS_OP_SCAN] = MS_TYPED(ms_cpu_scan),
            [MS_OP_SCAN_GRAD] = MS_TYPED(ms_cpu_scan_grad),
            [MS_OP_GROUP_NORM] = MS_TYPED(ms_cpu_group_norm),
            [MS_OP_GROUP_NORM_GRAD] = MS_TYPED(ms_cpu_group_norm_grad),
        },
    .attention_block = MS_TYPED(ms_cpu_attention_block),
    .attention_block_grad = MS_TYPED(ms_cpu_attention_block_grad),
    .workspace_bytes = workspace_bytes,
    .add = MS_TYPED(ms_cpu_vector_add),
    .maximum = MS_TYPED(ms_cpu_vector_maximum),
    .scale = MS_TYPED(ms_cpu_vector_scale),
    .fill = MS_TYPED(ms_cpu_vector_fill),
    .sum_of_squares = MS_TYPED(ms_cpu_vector_sum_of_squares),
    .is_finite = MS_TYPED(ms_cpu_vector_is_finite),
    .from_double = MS_TYPED(ms_cpu_vector_from_double),
    .to_double = MS_TYPED(ms_cpu_vector_to_double),
    .adamw = MS_TYPED(ms_cpu_adamw),
};
