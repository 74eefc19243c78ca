/* Launch code of embedding and its gradient; results equal exec/cpu/cpu_embed.c's. */
#include "exec/cuda/cuda_embed.h"

#include <assert.h>

static ms_cuda_embed_args read_rows(const ms_cuda_call *call, const ms_local *x,
                                    const ms_local *table)
{
    const ms_op_call *op = call->op;
    const ms_cuda_batch *batch = call->batch;
    bool by_token = !op->node->by_position;
    double scale = op->program->model->embedding_scale;
    long offset = by_token ? 0 : op->program->model->position_offset;
    assert(batch != NULL);
    return (ms_cuda_embed_args){
        .scalar = (ms_scalar)x->scalar,
        .x = x->data,
        .table = table->data,
        .num_rows = ms_local_leading(x),
        .width = ms_local_last(x),
        .scale = by_token && scale > 0 ? scale : 1,
        .length = x->shape[1],
        .first_sequence = by_token ? x->start[0] - op->batch->first_sequence : 0,
        .first_stored = x->start[1],
        .sequence_length = batch->sequence_length,
        .ahead = op->node->ahead,
        .tokens = by_token ? batch->tokens : NULL,
        .positions = batch->positions,
        .table_start = table->start[0] - offset,
        .table_rows = table->shape[0]};
}

ms_status ms_cuda_embed(const ms_cuda_call *call)
{
    ms_cuda_embed_args args = read_rows(call, call->op->out[0], call->op->in[0]);
    ms_cuda_embed_rows(call->stream, &args);
    return MS_OK;
}

size_t ms_cuda_embed_grad_bytes(const ms_program *program, const ms_node *node,
                                const ms_precision *precision)
{
    (void)precision;
    int x = node->in[0];
    return ms_cuda_embed_add_bytes(
        (long)(ms_tensor_local_size(program, x, MS_DIM_BATCH) *
               ms_tensor_local_size(program, x, MS_DIM_SEQUENCE)));
}

ms_status ms_cuda_embed_grad(const ms_cuda_call *call)
{
    const ms_local *table = call->op->out[0];
    if (table->data == NULL)
        return MS_OK;
    ms_cuda_embed_args args = read_rows(call, call->op->in[0], table);
    if (!ms_op_is_added(call->op, 0))
        MS_TRY(call->driver->clear(call->cx, call->stream, table->data,
                                   (size_t)table->count *
                                       ms_scalar_bytes((ms_scalar)table->scalar)));
    ms_cuda_embed_add(call->stream, &args, call->workspace);
    return MS_OK;
}
