#include "exec/cuda/cuda_attention.h"

#include "exec/cuda/cuda_flash.h"

#include <math.h>

static ms_cuda_attention_args read_block(const ms_cuda_call *call,
                                         const ms_attention_block *block)
{
    const ms_local *q = block->q, *k = block->k, *v = block->v;
    return (ms_cuda_attention_args){
        .scalar = (ms_scalar)q->scalar,
        .num_batch = q->shape[0],
        .num_queries = q->shape[1],
        .num_keys = k->shape[1],
        .num_heads = q->shape[2],
        .num_kv_heads = k->shape[2],
        .width = q->shape[3],
        .value_width = v->shape[3],
        .first_query = q->start[1],
        .first_key = k->start[1],
        .window = call->op->node->window_tokens,
        .positions = call->batch != NULL ? call->batch->positions : NULL,
        .scale = 1 / sqrt((double)q->shape[3]),
        .q = q->data,
        .k = k->data,
        .v = v->data,
        .o = block->o->data,
        .lse = block->lse->data,
        .go = block->go != NULL ? block->go->data : NULL,
        .gq = block->gq != NULL ? block->gq->data : NULL,
        .gk = block->gk != NULL ? block->gk->data : NULL,
        .gv = block->gv != NULL ? block->gv->data : NULL,
        .workspace = call->workspace};
}

static void attend(const ms_cuda_call *call, const ms_cuda_attention_args *args)
{
    if (ms_cuda_flash_can(args))
        ms_cuda_flash(call->stream, args);
    else
        ms_cuda_attention_plain(call->stream, args);
}

static void attend_grad(const ms_cuda_call *call, const ms_cuda_attention_args *args)
{
    if (ms_cuda_flash_can(args))
        ms_cuda_flash_grad(call->stream, args);
    else
        ms_cuda_attention_plain_grad(call->stream, args);
}

/* ---- blocks ---- */

ms_status ms_cuda_attention_block(const ms_cuda_call *call,
                                  const ms_attention_block *block)
{
    ms_cuda_attention_args args = read_block(call, block);
    attend(call, &args);
    return MS_OK;
}

ms_status ms_cuda_attention_block_grad(const ms_cuda_call *call,
                                       const ms_attention_block *block)
{
    ms_cuda_attention_args args = read_block(call, block);
    attend_grad(call, &args);
    return MS_OK;
}

/* ---- attention over one block with all keys ---- */

ms_status ms_cuda_attention(const ms_cuda_call *call)
{
    const ms_op_call *op = call->op;
    ms_attention_block block = {.call = op,
                                .q = op->in[0],
                                .k = op->in[1],
                                .v = op->in[2],
                                .o = op->out[0],
                                .lse = op->out[1]};
    ms_cuda_attention_args args = read_block(call, &block);
    args.is_whole = true;
    attend(call, &args);
    if (op->node->num_out > 2 && op->out[2]->data != NULL) {
        args.probabilities = op->out[2]->data;
        ms_cuda_attention_probabilities(call->stream, &args);
    }
    return MS_OK;
}

/* Gradients of attention. o and lse are inputs; they are copied, since members of `block`
 * are not const. */
ms_status ms_cuda_attention_grad(const ms_cuda_call *call)
{
    const ms_op_call *op = call->op;
    ms_local o = *op->in[3], lse = *op->in[4];
    ms_attention_block block = {.call = op,
                                .q = op->in[0],
                                .k = op->in[1],
                                .v = op->in[2],
                                .o = &o,
                                .lse = &lse,
                                .go = op->in[5],
                                .gq = op->out[0],
                                .gk = op->out[1],
                                .gv = op->out[2]};
    ms_cuda_attention_args args = read_block(call, &block);
    args.is_whole = true;
    args.probabilities = op->node->num_in > 6 ? op->in[6]->data : NULL;
    attend_grad(call, &args);
    return MS_OK;
}

/* ---- workspace ---- */

/* Workspace that suffices for either kernel: alignment decides later which one runs. */
size_t ms_cuda_attention_workspace(const ms_program *program, const ms_node *node,
                                   const ms_precision *precision)
{
    int q = node->in[0], k = node->in[1];
    size_t sequences = (size_t)ms_tensor_local_size(program, q, MS_DIM_BATCH),
           heads = (size_t)ms_tensor_local_size(program, q, MS_DIM_HEADS),
           queries = (size_t)ms_tensor_local_size(program, q, MS_DIM_SEQUENCE),
           keys = (size_t)ms_tensor_local_size(program, k, MS_DIM_SEQUENCE);
    size_t plain = sequences * heads * queries * ms_scalar_bytes(precision->statistic);
    if (precision->real != MS_SCALAR_BF16)
        return plain;
    size_t padded = (queries + MS_CUDA_FLASH_PADDING - 1) / MS_CUDA_FLASH_PADDING *
                    MS_CUDA_FLASH_PADDING;
    size_t num_tiles =
        queries / MS_CUDA_FLASH_LEAST_TILE + keys / MS_CUDA_FLASH_LEAST_TILE + 2;
    size_t flash = 2 * num_tiles * sizeof(int);
    if (node->op != MS_OP_ATTENTION)
        flash = 2 * sequences * heads * padded * sizeof(float) + 2 * flash;
    return flash > plain ? flash : plain;
}
