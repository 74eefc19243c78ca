/* Graphs of cuDNN's backend interface: descriptors of tensors and operations. Types and
 * counts of attributes are those of cuDNN's documentation, "Backend API", "Backend
 * Descriptor Types". */
#include "exec/cuda/vendor_cudnn_priv.h"

#include <assert.h>

/* ---- descriptors ---- */

cudnnBackendDescriptor_t ms_cudnn_make(ms_cudnn_graph *g,
                                       cudnnBackendDescriptorType_t type)
{
    cudnnBackendDescriptor_t made = NULL;
    if (g->status != CUDNN_STATUS_SUCCESS)
        return NULL;
    assert(g->num_made < MS_CUDNN_MOST_DESCRIPTORS);
    g->status = ms_cudnn.make(type, &made);
    if (g->status == CUDNN_STATUS_SUCCESS)
        g->made[g->num_made++] = made;
    return made;
}

void ms_cudnn_set(ms_cudnn_graph *g, cudnnBackendDescriptor_t descriptor,
                  cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                  int64_t count, const void *values)
{
    if (g->status == CUDNN_STATUS_SUCCESS)
        g->status = ms_cudnn.set(descriptor, name, type, count, values);
}

void ms_cudnn_set_descriptor(ms_cudnn_graph *g, cudnnBackendDescriptor_t descriptor,
                             cudnnBackendAttributeName_t name,
                             cudnnBackendDescriptor_t value)
{
    ms_cudnn_set(g, descriptor, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

void ms_cudnn_finalize(ms_cudnn_graph *g, cudnnBackendDescriptor_t descriptor)
{
    if (g->status == CUDNN_STATUS_SUCCESS)
        g->status = ms_cudnn.finalize(descriptor);
}

static void finish_op(ms_cudnn_graph *g, cudnnBackendDescriptor_t op)
{
    ms_cudnn_finalize(g, op);
    if (g->status != CUDNN_STATUS_SUCCESS)
        return;
    assert(g->num_ops < MS_CUDNN_MOST_OPS);
    g->ops[g->num_ops++] = op;
}

void ms_cudnn_graph_drop(ms_cudnn_graph *g)
{
    while (g->num_made > 0)
        (void)ms_cudnn.drop(g->made[--g->num_made]);
}

/* ---- tensors ---- */

/* Alignment of operands in bytes: that of the vectors that kernels load. */
#define ALIGNMENT 16
/* Unique ids of virtual tensors begin above those of tensors in memory. */
#define FIRST_VIRTUAL 1000

ms_cudnn_tensor ms_cudnn_add_tensor(ms_cudnn_graph *g, ms_cudnn_tensor t)
{
    int64_t alignment = t.is_by_value ? (int64_t)sizeof(float) : ALIGNMENT;
    bool is_virtual = t.uid == 0;
    if (is_virtual)
        t.uid = FIRST_VIRTUAL + g->num_made;
    t.desc = ms_cudnn_make(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    ms_cudnn_set(g, t.desc, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &t.uid);
    ms_cudnn_set(g, t.desc, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1,
                 &t.type);
    ms_cudnn_set(g, t.desc, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, MS_CUDNN_DIMS,
                 t.dims);
    ms_cudnn_set(g, t.desc, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, MS_CUDNN_DIMS,
                 t.strides);
    ms_cudnn_set(g, t.desc, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1,
                 &alignment);
    ms_cudnn_set(g, t.desc, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1,
                 &is_virtual);
    ms_cudnn_set(g, t.desc, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1,
                 &t.is_by_value);
    ms_cudnn_finalize(g, t.desc);
    return t;
}

ms_cudnn_tensor ms_cudnn_add_row_major(ms_cudnn_graph *g, int64_t uid,
                                       cudnnDataType_t type,
                                       const int64_t dims[MS_CUDNN_DIMS])
{
    ms_cudnn_tensor t = {.uid = uid, .type = type};
    int64_t stride = 1;
    for (int i = MS_CUDNN_DIMS - 1; i >= 0; i--) {
        t.dims[i] = dims[i];
        t.strides[i] = stride;
        stride *= dims[i];
    }
    return ms_cudnn_add_tensor(g, t);
}

ms_cudnn_tensor ms_cudnn_transposed(ms_cudnn_tensor t)
{
    const int rows = MS_CUDNN_DIMS - 2, columns = MS_CUDNN_DIMS - 1;
    ms_cudnn_tensor to = t;
    to.desc = NULL;
    to.dims[rows] = t.dims[columns];
    to.dims[columns] = t.dims[rows];
    to.strides[rows] = t.strides[columns];
    to.strides[columns] = t.strides[rows];
    return to;
}

/* ---- operations ---- */

static const cudnnDataType_t sums = CUDNN_DATA_FLOAT;

void ms_cudnn_add_matmul(ms_cudnn_graph *g, ms_cudnn_tensor a, ms_cudnn_tensor b,
                         ms_cudnn_tensor c)
{
    cudnnBackendDescriptor_t how = ms_cudnn_make(g, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    ms_cudnn_set(g, how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums);
    ms_cudnn_finalize(g, how);
    cudnnBackendDescriptor_t op =
        ms_cudnn_make(g, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    ms_cudnn_set_descriptor(g, op, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a.desc);
    ms_cudnn_set_descriptor(g, op, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b.desc);
    ms_cudnn_set_descriptor(g, op, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c.desc);
    ms_cudnn_set_descriptor(g, op, CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
    finish_op(g, op);
}

void ms_cudnn_add_reduction(ms_cudnn_graph *g, cudnnReduceTensorOp_t operator,
                            ms_cudnn_tensor x, ms_cudnn_tensor y)
{
    cudnnBackendDescriptor_t how = ms_cudnn_make(g, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    ms_cudnn_set(g, how, CUDNN_ATTR_REDUCTION_OPERATOR,
                 CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &operator);
    ms_cudnn_set(g, how, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums);
    ms_cudnn_finalize(g, how);
    cudnnBackendDescriptor_t op =
        ms_cudnn_make(g, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    ms_cudnn_set_descriptor(g, op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x.desc);
    ms_cudnn_set_descriptor(g, op, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y.desc);
    ms_cudnn_set_descriptor(g, op, CUDNN_ATTR_OPERATION_REDUCTION_DESC, how);
    finish_op(g, op);
}

void ms_cudnn_add_reshape(ms_cudnn_graph *g, ms_cudnn_tensor x, ms_cudnn_tensor y)
{
    cudnnBackendDescriptor_t op =
        ms_cudnn_make(g, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    ms_cudnn_set_descriptor(g, op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x.desc);
    ms_cudnn_set_descriptor(g, op, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y.desc);
    finish_op(g, op);
}

static cudnnBackendDescriptor_t make_mode(ms_cudnn_graph *g, const ms_cudnn_pointwise *p)
{
    bool is_index = p->mode == CUDNN_POINTWISE_GEN_INDEX;
    cudnnDataType_t computes = is_index                            ? CUDNN_DATA_INT32
                               : p->mode == CUDNN_POINTWISE_CMP_GE ? CUDNN_DATA_BOOLEAN
                                                                   : sums;
    cudnnBackendDescriptor_t how = ms_cudnn_make(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    ms_cudnn_set(g, how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1,
                 &p->mode);
    ms_cudnn_set(g, how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1,
                 &computes);
    if (is_index)
        ms_cudnn_set(g, how, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &p->axis);
    ms_cudnn_finalize(g, how);
    return how;
}

void ms_cudnn_add_pointwise(ms_cudnn_graph *g, const ms_cudnn_pointwise *p)
{
    cudnnBackendDescriptor_t how = make_mode(g, p);
    cudnnBackendDescriptor_t op =
        ms_cudnn_make(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    ms_cudnn_set_descriptor(g, op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
    ms_cudnn_set_descriptor(g, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, p->x.desc);
    if (p->b.desc != NULL)
        ms_cudnn_set_descriptor(g, op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, p->b.desc);
    if (p->t.desc != NULL)
        ms_cudnn_set_descriptor(g, op, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, p->t.desc);
    ms_cudnn_set_descriptor(g, op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, p->y.desc);
    finish_op(g, op);
}
