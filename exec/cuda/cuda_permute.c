/* Launch code of PERMUTE (copies tokens, ordered by expert), UNPERMUTE and their
 * gradients; results equal those of exec/cpu/cpu_rows.c. */
#include "exec/cuda/cuda_permute.h"

/* Arguments for tokens x; every operation's last input is `choice` (expert indices). */
static ms_cuda_permute_args read_rows(const ms_cuda_call *call, const ms_local *x)
{
    const ms_op_call *op = call->op;
    const ms_local *choice = op->in[op->node->num_in - 1];
    return (ms_cuda_permute_args){.scalar = (ms_scalar)x->scalar,
                                  .choice_scalar = (ms_scalar)choice->scalar,
                                  .num_tokens = ms_local_leading(choice),
                                  .num_chosen = ms_local_last(choice),
                                  .num_experts =
                                      (long)op->program->size[MS_DIM_EXPERTS - '0'],
                                  .width = ms_local_last(x),
                                  .choice = choice->data,
                                  .workspace = call->workspace,
                                  .x = x->data};
}

size_t ms_cuda_permute_bytes(const ms_program *program, const ms_node *node,
                             const ms_precision *precision)
{
    (void)precision;
    double copies = ms_tensor_local_elements(program, node->in[node->num_in - 1]);
    return ms_cuda_permute_buffers((long)copies,
                                   (long)program->size[MS_DIM_EXPERTS - '0']);
}

ms_status ms_cuda_permute(const ms_cuda_call *call)
{
    ms_cuda_permute_args args = read_rows(call, call->op->in[0]);
    args.rows = call->op->out[0]->data;
    ms_cuda_permute_rows(call->stream, &args);
    return MS_OK;
}

ms_status ms_cuda_permute_grad(const ms_cuda_call *call)
{
    ms_cuda_permute_args args = read_rows(call, call->op->out[0]);
    args.rows = call->op->in[0]->data;
    ms_cuda_permute_back(call->stream, &args);
    return MS_OK;
}

ms_status ms_cuda_unpermute(const ms_cuda_call *call)
{
    ms_cuda_permute_args args = read_rows(call, call->op->out[0]);
    args.rows = call->op->in[0]->data;
    args.weight = call->op->in[1]->data;
    ms_cuda_permute_back(call->stream, &args);
    return MS_OK;
}

ms_status ms_cuda_unpermute_grad(const ms_cuda_call *call)
{
    ms_cuda_permute_args args = read_rows(call, call->op->in[0]);
    args.rows = call->op->in[1]->data;
    args.weight = call->op->in[2]->data;
    args.grows = call->op->out[0]->data;
    args.gweight = call->op->out[1]->data;
    ms_cuda_permute_back_grad(call->stream, &args);
    return MS_OK;
}
