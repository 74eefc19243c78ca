#include "exec/cuda/cuda_table.h"

#include "exec/cuda/cuda_activation.h"
#include "exec/cuda/cuda_arrays.h"
#include "exec/cuda/cuda_attention.h"
#include "exec/cuda/cuda_embed.h"
#include "exec/cuda/cuda_fp8.h"
#include "exec/cuda/cuda_gemm.h"
#include "exec/cuda/cuda_initialise.h"
#include "exec/cuda/cuda_loss.h"
#include "exec/cuda/cuda_norm.h"
#include "exec/cuda/cuda_permute.h"
#include "exec/cuda/cuda_rotary.h"
#include "exec/cuda/cuda_router.h"
#include "exec/cuda/cuda_sums.h"

const ms_cuda_kernels ms_cuda_all_kernels = {
    .op =
        {
            [MS_OP_EINSUM] = ms_cuda_einsum,
            [MS_OP_BIAS] = ms_cuda_bias,
            [MS_OP_SUM_TO] = ms_cuda_sum_to,
            [MS_OP_ADD] = ms_cuda_add,
            [MS_OP_DROPOUT_GRAD] = ms_cuda_dropout_grad,
            [MS_OP_NORM] = ms_cuda_norm,
            [MS_OP_NORM_GRAD] = ms_cuda_norm_grad,
            [MS_OP_ROTARY] = ms_cuda_rotary,
            [MS_OP_ATTENTION] = ms_cuda_attention,
            [MS_OP_ATTENTION_GRAD] = ms_cuda_attention_grad,
            [MS_OP_MLA_KEYS] = ms_cuda_mla_keys,
            [MS_OP_MLA_KEYS_GRAD] = ms_cuda_mla_keys_grad,
            [MS_OP_ACTIVATION] = ms_cuda_activation,
            [MS_OP_ACTIVATION_GRAD] = ms_cuda_activation_grad,
            [MS_OP_EMBED] = ms_cuda_embed,
            [MS_OP_EMBED_GRAD] = ms_cuda_embed_grad,
            [MS_OP_LOSS_MAX] = ms_cuda_loss_max,
            [MS_OP_LOSS_SUM] = ms_cuda_loss_sum,
            [MS_OP_LOSS] = ms_cuda_loss,
            [MS_OP_LOSS_GRAD] = ms_cuda_loss_grad,
            [MS_OP_ROUTE] = ms_cuda_route,
            [MS_OP_ROUTE_GRAD] = ms_cuda_route_grad,
            [MS_OP_PERMUTE] = ms_cuda_permute,
            [MS_OP_PERMUTE_GRAD] = ms_cuda_permute_grad,
            [MS_OP_GROUPED] = ms_cuda_grouped,
            [MS_OP_UNPERMUTE] = ms_cuda_unpermute,
            [MS_OP_UNPERMUTE_GRAD] = ms_cuda_unpermute_grad,
            [MS_OP_CONCAT] = ms_cuda_concat,
            [MS_OP_CONCAT_GRAD] = ms_cuda_concat_grad,
            [MS_OP_GATE] = ms_cuda_gate,
            [MS_OP_GATE_GRAD] = ms_cuda_gate_grad,
        },
    .workspace =
        {
            [MS_OP_EINSUM] = ms_cuda_einsum_bytes,
            [MS_OP_GROUPED] = ms_cuda_fp8_bytes,
            [MS_OP_SUM_TO] = ms_cuda_sum_to_bytes,
            [MS_OP_NORM_GRAD] = ms_cuda_norm_grad_bytes,
            [MS_OP_ROTARY] = ms_cuda_rotary_bytes,
            [MS_OP_ATTENTION] = ms_cuda_attention_workspace,
            [MS_OP_ATTENTION_GRAD] = ms_cuda_attention_workspace,
            [MS_OP_EMBED_GRAD] = ms_cuda_embed_grad_bytes,
            [MS_OP_PERMUTE] = ms_cuda_permute_bytes,
            [MS_OP_PERMUTE_GRAD] = ms_cuda_permute_bytes,
            [MS_OP_UNPERMUTE] = ms_cuda_permute_bytes,
            [MS_OP_UNPERMUTE_GRAD] = ms_cuda_permute_bytes,
        },
    .fill = ms_cuda_array_fill,
    .add = ms_cuda_array_add,
    .round_sum = ms_cuda_array_round_sum,
    .scale = ms_cuda_array_scale,
    .copy_box = ms_cuda_array_copy_box,
    .model_transfer = ms_cuda_model_transfer,
    .initialise = ms_cuda_initialise,
    .add_sum = ms_cuda_array_add_sum,
    .add_squares = ms_cuda_array_add_squares,
    .sum_bytes = MS_CUDA_SUM_BYTES,
    .adamw = ms_cuda_array_adamw,
    .attention_block = ms_cuda_attention_block,
    .attention_block_grad = ms_cuda_attention_block_grad,
};
