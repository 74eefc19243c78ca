#include "exec/cuda/cuda_attention.h"

#include "exec/cuda/cuda_flash.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>

static ms_cuda_attention_args read_block(const ms_cuda_call *call,
                                         const ms_attention_block *block)
{
    const ms_local *q = block->q, *k = block->k, *v = block->v;
    const ms_model *model = call->op->program->model;
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
        .scale = ms_model_attention_scale(model, q->shape[3]),
        .cap = model->attention_softcap,
        .alibi_heads = model->position == MS_POSITION_ALIBI ? model->num_heads : 0,
        .first_head = q->start[2],
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

/* ---- a library's fused kernels ---- */

#define MOST_FUSED_WIDTH 256
#define FUSED_WIDTH_STEP 8 /* widths are whole vectors of 16 bytes */
#define FUSED_ALIGNMENT  16

static bool is_fused_width(long width)
{
    return width > 0 && width <= MOST_FUSED_WIDTH && width % FUSED_WIDTH_STEP == 0;
}

static bool is_aligned(const ms_cuda_fused *a)
{
    const void *const operands[] = {a->q,  a->k,  a->v,  a->go, a->o,
                                    a->gq, a->gk, a->gv, a->lse};
    uintptr_t bits = 0;
    for (size_t i = 0; i < sizeof operands / sizeof *operands; i++)
        bits |= (uintptr_t)operands[i];
    return bits % FUSED_ALIGNMENT == 0;
}

/* Whether a library may have kernels for the attention: bf16, all keys at once, tokens
 * stored in order, no effective window, no stored probabilities, no soft cap, no ALiBi;
 * the mask is none, or begins with query and key 0. */
static bool can_be_fused(const ms_cuda_attention_args *a, bool is_causal)
{
    long most_distance = a->first_query + a->num_queries - 1 - a->first_key;
    return a->scalar == MS_SCALAR_BF16 && a->is_whole && !(a->cap > 0) &&
           a->alibi_heads == 0 && a->positions == NULL && a->probabilities == NULL &&
           (a->window == 0 || a->window > most_distance) &&
           (!is_causal || a->first_query == a->first_key) && a->num_batch > 0 &&
           a->num_queries > 0 && a->num_keys > 0 && is_fused_width(a->width) &&
           is_fused_width(a->value_width);
}

static ms_cuda_fused fused_of(const ms_cuda_attention_args *a, bool is_causal)
{
    return (ms_cuda_fused){.shape = {.num_batch = a->num_batch,
                                     .num_queries = a->num_queries,
                                     .num_keys = a->num_keys,
                                     .num_heads = a->num_heads,
                                     .num_kv_heads = a->num_kv_heads,
                                     .width = a->width,
                                     .value_width = a->value_width,
                                     .is_causal = is_causal},
                           .scale = a->scale,
                           .q = a->q,
                           .k = a->k,
                           .v = a->v,
                           .go = a->go,
                           .o = a->o,
                           .lse = a->lse,
                           .gq = a->gq,
                           .gk = a->gk,
                           .gv = a->gv};
}

/* Lets the library run the attention, if it is chosen and can; otherwise *done is
 * false. */
static ms_status attend_fused(const ms_cuda_call *call, const ms_cuda_attention_args *a,
                              bool is_grad, bool *done)
{
    *done = false;
    if (call->attention == MS_RUN_ATTENTION_OWN)
        return MS_OK;
    ms_cuda_attention_use *use = call->attention_use;
    bool is_causal = a->first_key + a->num_keys - 1 > a->first_query;
    ms_cuda_fused fused = fused_of(a, is_causal);
    fused.shape.is_grad = is_grad;
    fused.shape.is_deterministic =
        is_grad && call->attention == MS_RUN_ATTENTION_CUDNN_DETERMINISTIC;
    const char *why = "only the program's own kernels have its masks, types or blocks";
    if (can_be_fused(a, is_causal) && is_aligned(&fused))
        MS_TRY(call->driver->attention(call->cx, call->stream, &fused, &why));
    *done = why == NULL;
    if (*done)
        use->num_by_library++;
    else
        use->num_by_own++;
    if (why != NULL && use->why[0] == '\0')
        snprintf(use->why, sizeof use->why, "%s", why);
    return MS_OK;
}

/* ---- own kernels ---- */

static ms_status attend(const ms_cuda_call *call, const ms_cuda_attention_args *args)
{
    bool done;
    MS_TRY(attend_fused(call, args, false, &done));
    if (done)
        return MS_OK;
    if (ms_cuda_flash_can(args))
        ms_cuda_flash(call->stream, args);
    else
        ms_cuda_attention_plain(call->stream, args);
    return MS_OK;
}

static ms_status attend_grad(const ms_cuda_call *call, const ms_cuda_attention_args *args)
{
    bool done;
    MS_TRY(attend_fused(call, args, true, &done));
    if (done)
        return MS_OK;
    if (ms_cuda_flash_can(args))
        ms_cuda_flash_grad(call->stream, args);
    else
        ms_cuda_attention_plain_grad(call->stream, args);
    return MS_OK;
}

/* ---- blocks ---- */

ms_status ms_cuda_attention_block(const ms_cuda_call *call,
                                  const ms_attention_block *block)
{
    ms_cuda_attention_args args = read_block(call, block);
    return attend(call, &args);
}

ms_status ms_cuda_attention_block_grad(const ms_cuda_call *call,
                                       const ms_attention_block *block)
{
    ms_cuda_attention_args args = read_block(call, block);
    return attend_grad(call, &args);
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
    MS_TRY(attend(call, &args));
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
    return attend_grad(call, &args);
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
