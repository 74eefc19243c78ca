/* Launch code of the MoE router; results equal those of exec/cpu/cpu_router.c. */
#include "exec/cuda/cuda_router.h"

static ms_cuda_router_args read_router(const ms_cuda_call *call)
{
    const ms_op_call *op = call->op;
    const ms_local *logits = op->in[0];
    const ms_model *model = op->program->model;
    return (ms_cuda_router_args){
        .scalar = (ms_scalar)logits->scalar,
        .num_tokens = ms_local_leading(logits),
        .num_experts = ms_local_last(logits),
        .num_chosen = (long)op->program->size[MS_DIM_CHOICES - '0'],
        .is_sigmoid = model->moe.router == MS_ROUTER_SIGMOID,
        .renormalised =
            model->moe.router == MS_ROUTER_TOPK_SOFTMAX || model->moe.norm_topk,
        .scaling = model->moe.routed_scaling > 0 ? model->moe.routed_scaling : 1,
        .num_groups = model->moe.num_groups,
        .top_groups = model->moe.top_groups,
        .logits = logits->data,
        .is_balanced = op->balanced_routing,
        .length = logits->shape[1],
        .sequence_length = (long)op->program->size[MS_DIM_SEQUENCE - '0'],
        .first_sequence = logits->start[0],
        .first_stored = logits->start[1]};
}

ms_status ms_cuda_route(const ms_cuda_call *call)
{
    const ms_op_call *op = call->op;
    ms_cuda_router_args args = read_router(call);
    if (op->node->num_in > 1) {
        args.bias = op->in[1]->data;
        args.bias_scalar = (ms_scalar)op->in[1]->scalar;
    }
    args.weight = op->out[0]->data;
    args.choice = op->out[1]->data;
    ms_cuda_router_choose(call->stream, &args);
    return MS_OK;
}

ms_status ms_cuda_route_grad(const ms_cuda_call *call)
{
    const ms_op_call *op = call->op;
    ms_cuda_router_args args = read_router(call);
    args.weight = op->in[1]->data;
    args.choice = op->in[2]->data;
    args.gweight = op->in[3]->data;
    args.glogits = op->out[0]->data;
    ms_cuda_router_gradient(call->stream, &args);
    return MS_OK;
}
