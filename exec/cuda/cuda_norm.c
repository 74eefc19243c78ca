/* Launch code of RMSNorm and LayerNorm; results equal those of exec/cpu/cpu_norm.c. */
#include "exec/cuda/cuda_norm.h"

#include "exec/cuda/cuda_sums.h"

#define DEFAULT_EPSILON 1e-6

static ms_cuda_norm_args read_norm(const ms_op_call *op)
{
    const ms_model *model = op->program->model;
    const ms_local *x = op->in[0];
    long width = op->in[1]->count;
    return (ms_cuda_norm_args){.scalar = (ms_scalar)x->scalar,
                               .is_centred = model->norm == MS_NORM_LAYER,
                               .epsilon = model->norm_epsilon > 0 ? model->norm_epsilon
                                                                  : DEFAULT_EPSILON,
                               .offset = model->norm_plus_one ? 1 : 0,
                               .num_rows = width > 0 ? x->count / width : 0,
                               .width = width,
                               .x = x->data,
                               .weight = op->in[1]->data};
}

ms_status ms_cuda_norm(const ms_cuda_call *call)
{
    const ms_op_call *op = call->op;
    ms_cuda_norm_args args = read_norm(op);
    args.bias = op->node->num_in > 2 ? op->in[2]->data : NULL;
    args.out = op->out[0]->data;
    ms_cuda_norm_rows(call->stream, &args);
    return MS_OK;
}

/* ---- backward ---- */

/* Workspace of NORM_GRAD: partial sums of weight gradients, those of bias gradients,
 * scratch to add them. */
typedef struct grad_workspace {
    long num_parts;
    size_t parts_bytes; /* for weight gradients, and as much for bias */
    size_t sums_bytes;
} grad_workspace;

static grad_workspace plan_workspace(ms_scalar scalar, long num_rows, long width)
{
    long num_parts = ms_cuda_norm_num_parts(scalar, num_rows, width);
    return (grad_workspace){.num_parts = num_parts,
                            .parts_bytes = (size_t)(num_parts * width) * sizeof(double),
                            .sums_bytes = ms_cuda_sum_workspace(num_parts, width)};
}

size_t ms_cuda_norm_grad_bytes(const ms_program *program, const ms_node *node,
                               const ms_precision *precision)
{
    long width = (long)ms_tensor_local_elements(program, node->in[1]);
    if (width == 0)
        return 0;
    long num_rows = (long)ms_tensor_local_elements(program, node->in[0]) / width;
    grad_workspace r = plan_workspace(precision->real, num_rows, width);
    return 2 * r.parts_bytes + r.sums_bytes;
}

static void add_parts(const ms_cuda_call *call, int result, const void *parts,
                      const grad_workspace *r)
{
    const ms_local *out = call->op->out[result];
    ms_scalar sums = out->scalar == MS_SCALAR_FP64 ? MS_SCALAR_FP64 : MS_SCALAR_FP32;
    ms_cuda_sum_rows(
        call->stream,
        &(ms_cuda_sum_args){.scalar = sums,
                            .out_scalar = (ms_scalar)out->scalar,
                            .num_rows = r->num_parts,
                            .width = out->count,
                            .x = parts,
                            .out = out->data,
                            .is_added = ms_op_is_added(call->op, result),
                            .workspace = (char *)call->workspace + 2 * r->parts_bytes});
}

ms_status ms_cuda_norm_grad(const ms_cuda_call *call)
{
    const ms_op_call *op = call->op;
    ms_cuda_norm_args args = read_norm(op);
    grad_workspace r = plan_workspace(args.scalar, args.num_rows, args.width);
    bool has_weight = op->out[1]->data != NULL,
         has_bias = op->node->num_out > 2 && op->out[2]->data != NULL;
    args.gout = op->in[2]->data;
    args.gx = op->out[0]->data;
    args.weight_parts = has_weight ? call->workspace : NULL;
    args.bias_parts = has_bias ? (char *)call->workspace + r.parts_bytes : NULL;
    ms_cuda_norm_rows_grad(call->stream, &args);
    if (has_weight)
        add_parts(call, 1, args.weight_parts, &r);
    if (has_bias)
        add_parts(call, 2, args.bias_parts, &r);
    return MS_OK;
}
