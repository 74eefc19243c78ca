/* Launch code of activations, additions, dropout gradients and gates; results equal those
 * of exec/cpu/cpu_activation.c. */
#include "exec/cuda/cuda_activation.h"

#include "exec/cuda/cuda_arrays.h"

static ms_cuda_curve curve_of(const ms_model *model)
{
    switch (model->activation) {
    case MS_ACT_SWIGLU:
        return MS_CUDA_SILU;
    case MS_ACT_RELU:
        return MS_CUDA_RELU;
    case MS_ACT_RELU2:
        return MS_CUDA_RELU2;
    case MS_ACT_GEGLU:
    case MS_ACT_GELU:
        break;
    }
    return model->gelu_tanh ? MS_CUDA_GELU_TANH : MS_CUDA_GELU;
}

static ms_cuda_activation_args read_activation(const ms_op_call *op, bool is_gated)
{
    return (ms_cuda_activation_args){.scalar = (ms_scalar)op->in[0]->scalar,
                                     .curve = curve_of(op->program->model),
                                     .count = op->in[0]->count,
                                     .x = op->in[0]->data,
                                     .factor = is_gated ? op->in[1]->data : NULL};
}

ms_status ms_cuda_activation(const ms_cuda_call *call)
{
    const ms_op_call *op = call->op;
    ms_cuda_activation_args args = read_activation(op, op->node->num_in > 1);
    args.out = op->out[0]->data;
    ms_cuda_activate(call->stream, &args);
    return MS_OK;
}

ms_status ms_cuda_activation_grad(const ms_cuda_call *call)
{
    const ms_op_call *op = call->op;
    bool is_gated = op->node->num_in > 2;
    ms_cuda_activation_args args = read_activation(op, is_gated);
    args.gout = op->in[op->node->num_in - 1]->data;
    args.gx = op->out[0]->data;
    args.gfactor = is_gated ? op->out[1]->data : NULL;
    ms_cuda_activate_grad(call->stream, &args);
    return MS_OK;
}

ms_status ms_cuda_add(const ms_cuda_call *call)
{
    const ms_op_call *op = call->op;
    ms_cuda_add_two(
        call->stream,
        &(ms_cuda_sum_of_two){.scalar = (ms_scalar)op->in[0]->scalar,
                              .count = op->in[0]->count,
                              .x = op->in[0]->data,
                              .y = op->in[1]->data,
                              .out = op->out[0]->data,
                              .mask = op->node->num_out > 1 ? op->out[1]->data : NULL});
    return MS_OK;
}

ms_status ms_cuda_dropout_grad(const ms_cuda_call *call)
{
    const ms_op_call *op = call->op;
    ms_cuda_mask(call->stream, &(ms_cuda_masked){.scalar = (ms_scalar)op->in[0]->scalar,
                                                 .count = op->in[0]->count,
                                                 .x = op->in[0]->data,
                                                 .mask = op->in[1]->data,
                                                 .out = op->out[0]->data});
    return MS_OK;
}

/* ---- gate ---- */

static ms_cuda_gate_args read_gate(const ms_op_call *op)
{
    return (ms_cuda_gate_args){.scalar = (ms_scalar)op->in[0]->scalar,
                               .num_rows = op->in[1]->count,
                               .width = ms_local_last(op->in[0]),
                               .x = op->in[0]->data,
                               .gate = op->in[1]->data};
}

ms_status ms_cuda_gate(const ms_cuda_call *call)
{
    ms_cuda_gate_args args = read_gate(call->op);
    args.out = call->op->out[0]->data;
    ms_cuda_gate_rows(call->stream, &args);
    return MS_OK;
}

ms_status ms_cuda_gate_grad(const ms_cuda_call *call)
{
    const ms_op_call *op = call->op;
    ms_cuda_gate_args args = read_gate(op);
    args.gout = op->in[2]->data;
    args.gx = op->out[0]->data;
    args.ggate = op->out[1]->data;
    ms_cuda_gate_rows_grad(call->stream, &args);
    return MS_OK;
}

/* Copies rows of `half`, entry number `part` of two, between it and rows of both. */
static void copy_part(const ms_cuda_call *call, const ms_local *half, void *both,
                      int part, bool joins)
{
    long width = ms_local_last(half);
    size_t bytes = ms_scalar_bytes((ms_scalar)half->scalar);
    void *at = (char *)both + (size_t)(part * width) * bytes;
    ms_box_copy copy = {.to = joins ? at : half->data,
                        .from = joins ? half->data : at,
                        .num = {ms_local_leading(half), 1, 1, 1},
                        .to_stride = {joins ? 2 * width : width},
                        .from_stride = {joins ? width : 2 * width},
                        .run = width,
                        .element_bytes = bytes};
    ms_cuda_array_copy_box(call->stream, &copy);
}

ms_status ms_cuda_concat(const ms_cuda_call *call)
{
    for (int part = 0; part < 2; part++)
        copy_part(call, call->op->in[part], call->op->out[0]->data, part, true);
    return MS_OK;
}

ms_status ms_cuda_concat_grad(const ms_cuda_call *call)
{
    for (int part = 0; part < 2; part++)
        copy_part(call, call->op->out[part], call->op->in[0]->data, part, false);
    return MS_OK;
}
