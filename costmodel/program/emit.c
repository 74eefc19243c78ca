/* Weights, tensors and nodes of forward programs: the shorthand in which layers are
 * written (layer.c). */
#include "base/number.h"
#include "costmodel/program/program_priv.h"

#include <string.h>

double ms_statistic_bytes(const ms_builder *b)
{
    return ms_max(4.0, b->program->compute_bytes);
}

int ms_add_weight(ms_builder *b, const char *name, const char *dims, char tp_letter)
{
    int tensor = ms_add_tensor(b, name, dims, MS_ROLE_WEIGHT, b->program->compute_bytes);
    b->tensors[tensor].tp_letter = tp_letter;
    if (tp_letter != 0 && ms_axis_active(b->program, MS_DENSE_MESH, 2))
        b->tensors[tensor].at[2] = ms_shard(tp_letter);
    return tensor;
}

int ms_model_weight(ms_builder *b, const char *name, const char *dims, char tp_letter)
{
    int tensor = ms_add_weight(b, name, dims, tp_letter);
    b->tensors[tensor].frozen = b->program->key.lora.rank > 0;
    return tensor;
}

int ms_expert_weight(ms_builder *b, const char *name, const char *dims)
{
    int tensor = ms_add_tensor(b, name, dims, MS_ROLE_WEIGHT, b->program->compute_bytes);
    ms_tensor *t = &b->tensors[tensor];
    t->mesh = MS_SPARSE_MESH;
    t->tp_letter = MS_DIM_EXPERT_FFN;
    t->frozen = b->program->key.lora.rank > 0;
    if (ms_axis_active(b->program, MS_SPARSE_MESH, 1))
        t->at[1] = ms_shard(MS_DIM_EXPERTS);
    if (ms_axis_active(b->program, MS_SPARSE_MESH, 2) &&
        strchr(dims, MS_DIM_EXPERT_FFN) != NULL)
        t->at[2] = ms_shard(MS_DIM_EXPERT_FFN);
    return tensor;
}

int ms_add_activation(ms_builder *b, const char *name, const char *dims)
{
    return ms_add_tensor(b, name, dims, MS_ROLE_ACTIVATION, b->program->compute_bytes);
}

int ms_add_statistic(ms_builder *b, const char *name, const char *dims)
{
    return ms_add_tensor(b, name, dims, MS_ROLE_ACTIVATION, ms_statistic_bytes(b));
}

ms_node ms_operation(ms_op op, const char *name, int x, int y)
{
    ms_node node = {.op = (unsigned char)op, .name = name};
    ms_node_take(&node, x);
    if (y >= 0)
        ms_node_take(&node, y);
    return node;
}

int ms_add_result(ms_builder *b, ms_node *node, const char *dims)
{
    return ms_node_give(node, ms_add_activation(b, node->name, dims));
}

int ms_emit_one(ms_builder *b, ms_node node, const char *dims)
{
    int out = ms_add_result(b, &node, dims);
    ms_emit(b, &node);
    return out;
}

int ms_emit_pointwise(ms_builder *b, ms_op op, const char *name, int x, int y)
{
    return ms_emit_one(b, ms_operation(op, name, x, y), b->tensors[x].dims);
}

int ms_emit_product(ms_builder *b, const char *name, const char *einsum, int x, int w)
{
    ms_node node = ms_operation(MS_OP_EINSUM, name, x, w);
    node.einsum = einsum;
    return ms_emit_one(b, node, strchr(einsum, '>') + 1);
}

void ms_copy_weight_dims(const char *einsum, char dims[MS_MAX_DIMS + 1])
{
    const char *second = strchr(einsum, ',') + 1;
    size_t length = strcspn(second, "-");
    memcpy(dims, second, length);
    dims[length] = '\0';
}

int ms_emit_linear(ms_builder *b, const char *name, const char *einsum, int x,
                   char tp_letter)
{
    char dims[MS_MAX_DIMS + 1];
    ms_copy_weight_dims(einsum, dims);
    int base =
        ms_emit_product(b, name, einsum, x, ms_model_weight(b, name, dims, tp_letter));
    return ms_add_adapter(b, name, x, base, tp_letter);
}

int ms_emit_bias(ms_builder *b, const char *name, int x, const char *dims, char tp_letter)
{
    return ms_emit_pointwise(b, MS_OP_BIAS, name, x,
                             ms_model_weight(b, name, dims, tp_letter));
}

int ms_emit_add(ms_builder *b, const char *name, int x, int y)
{
    return ms_emit_pointwise(b, MS_OP_ADD, name, x, y);
}

int ms_emit_residual(ms_builder *b, const char *name, int residual, int branch)
{
    const char *dims = b->tensors[residual].dims;
    if (!b->model->dropout)
        return ms_emit_add(b, name, residual, branch);
    ms_node node = ms_operation(MS_OP_ADD, name, residual, branch);
    int out = ms_add_result(b, &node, dims);
    ms_node_give(&node, ms_add_tensor(b, "dropout.mask", dims, MS_ROLE_ACTIVATION, 1.0));
    ms_emit(b, &node);
    return out;
}

int ms_emit_norm_over(ms_builder *b, const char *name, int x, ms_norm_kind kind,
                      size_t width)
{
    const char *dims = b->tensors[x].dims;
    const char *last = dims + strlen(dims) - width;
    ms_node node = ms_operation(MS_OP_NORM, name, x, ms_model_weight(b, name, last, 0));
    if (kind == MS_NORM_LAYER && b->model->norm_bias)
        ms_node_take(&node, ms_model_weight(b, name, last, 0));
    return ms_emit_one(b, node, dims);
}

int ms_emit_norm_of(ms_builder *b, const char *name, int x, ms_norm_kind kind)
{
    return ms_emit_norm_over(b, name, x, kind, 1);
}

int ms_emit_norm(ms_builder *b, const char *name, int x)
{
    return ms_emit_norm_of(b, name, x, b->model->norm);
}
