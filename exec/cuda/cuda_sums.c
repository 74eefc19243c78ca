/* Launch code of bias additions and sums; results equal those of
 * exec/cpu/cpu_product.c. */
#include "exec/cuda/cuda_sums.h"

ms_status ms_cuda_bias(const ms_cuda_call *call)
{
    const ms_local *x = call->op->in[0], *bias = call->op->in[1];
    if (x->count == 0)
        return MS_OK;
    ms_cuda_add_bias(call->stream,
                     &(ms_cuda_bias_args){.scalar = (ms_scalar)x->scalar,
                                          .num_rows = x->count / bias->count,
                                          .width = bias->count,
                                          .x = x->data,
                                          .bias = bias->data,
                                          .out = call->op->out[0]->data});
    return MS_OK;
}

size_t ms_cuda_sum_to_bytes(const ms_program *program, const ms_node *node,
                            const ms_precision *precision)
{
    (void)precision;
    long width = (long)ms_tensor_local_elements(program, node->out[0]);
    if (width == 0)
        return 0;
    return ms_cuda_sum_workspace(
        (long)ms_tensor_local_elements(program, node->in[0]) / width, width);
}

ms_status ms_cuda_sum_to(const ms_cuda_call *call)
{
    const ms_local *x = call->op->in[0], *out = call->op->out[0];
    if (out->data == NULL || out->count == 0)
        return MS_OK;
    ms_cuda_sum_rows(call->stream,
                     &(ms_cuda_sum_args){.scalar = (ms_scalar)x->scalar,
                                         .out_scalar = (ms_scalar)out->scalar,
                                         .num_rows = x->count / out->count,
                                         .width = out->count,
                                         .x = x->data,
                                         .out = out->data,
                                         .is_added = ms_op_is_added(call->op, 0),
                                         .workspace = call->workspace});
    return MS_OK;
}
