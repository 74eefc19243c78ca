/* Launch code of cross entropy (LOSS_MAX, LOSS_SUM, LOSS, LOSS_GRAD); results equal those
 * of exec/cpu/cpu_loss.c. */
#include "exec/cuda/cuda_loss.h"

static ms_cuda_loss_args read_rows(const ms_cuda_call *call)
{
    const ms_op_call *op = call->op;
    const ms_cuda_batch *batch = call->batch;
    const ms_local *logits = op->in[0];
    long width = ms_local_last(logits);
    double scale = op->program->model->logit_scale;
    long left = op->program->model->vocab - logits->start[2];
    return (ms_cuda_loss_args){
        .scalar = (ms_scalar)logits->scalar,
        .logits = logits->data,
        .num_rows = ms_local_leading(logits),
        .width = width,
        .num_real = left < 0 ? 0 : (left < width ? left : width),
        .targets = batch->targets,
        .positions = batch->positions,
        .length = logits->shape[1],
        .sequence_length = batch->sequence_length,
        .first_sequence = logits->start[0] - op->batch->first_sequence,
        .first_stored = logits->start[1],
        .first_column = logits->start[2],
        .ahead = op->node->ahead,
        .num_tokens = batch->num_tokens / ms_node_loss_weight(op->program, op->node),
        .scale = scale > 0.0 ? scale : 1.0,
        .cap = op->program->model->logit_softcap};
}

ms_status ms_cuda_loss_max(const ms_cuda_call *call)
{
    ms_cuda_loss_args args = read_rows(call);
    args.max = call->op->out[0]->data;
    ms_cuda_loss_row_max(call->stream, &args);
    return MS_OK;
}

ms_status ms_cuda_loss_sum(const ms_cuda_call *call)
{
    ms_cuda_loss_args args = read_rows(call);
    args.max = call->op->in[1]->data;
    args.sum = call->op->out[0]->data;
    args.target = call->op->out[1]->data;
    ms_cuda_loss_row_sum(call->stream, &args);
    return MS_OK;
}

ms_status ms_cuda_loss(const ms_cuda_call *call)
{
    const ms_op_call *op = call->op;
    const ms_local *loss = op->out[0];
    ms_cuda_loss_args args = {.num_rows = loss->count,
                              .max = op->in[0]->data,
                              .sum = op->in[1]->data,
                              .target = op->in[2]->data};
    ms_cuda_loss_of_rows(call->stream, (ms_scalar)loss->scalar, &args, loss->data);
    return MS_OK;
}

ms_status ms_cuda_loss_grad(const ms_cuda_call *call)
{
    ms_cuda_loss_args args = read_rows(call);
    args.max = call->op->in[1]->data;
    args.sum = call->op->in[2]->data;
    args.gradient = call->op->out[0]->data;
    ms_cuda_loss_row_grad(call->stream, &args);
    return MS_OK;
}
