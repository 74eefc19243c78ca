/* Executes graphs of the fake cuDNN. Sources of the operations: cuDNN documentation,
 * "Backend Descriptor Types" and "Graph API". */
#if __has_include(<cudnn_graph.h>)
#include "exec/core/scalar.h"
#include "tests/support/cuda_cases.h"
#include "tests/support/cudnn_fake_priv.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define DIMS         4
#define MOST_TENSORS 64

/* A tensor's elements, at the offsets that its strides give. */
typedef struct tensor {
    int64_t uid, alignment;
    cudnnDataType_t type;
    int64_t dims[DIMS], strides[DIMS];
    bool is_virtual, is_written;
    long num_elements; /* greatest offset plus 1 */
    double *elements;
    void *memory; /* NULL if virtual */
} tensor;

static tensor tensors[MOST_TENSORS];
static int num_tensors;

static ms_scalar scalar_of(const tensor *t)
{
    return t->type == CUDNN_DATA_BFLOAT16 ? MS_SCALAR_BF16 : MS_SCALAR_FP32;
}

static void read_dims(const fake_desc *d, cudnnBackendAttributeName_t name,
                      int64_t to[DIMS])
{
    int64_t count = 0;
    const int64_t *from = cudnn_fake_values(d, name, &count);
    if (count != DIMS)
        cudnn_fake_defect("a tensor has %ld dimensions", (long)count);
    else
        memcpy(to, from, DIMS * sizeof *to);
}

static void *pointer_of(const fake_desc *pack, int64_t uid)
{
    int64_t num = 0, num_pointers = 0;
    const int64_t *uids =
        cudnn_fake_values(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, &num);
    void *const *pointers =
        cudnn_fake_values(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, &num_pointers);
    for (int64_t i = 0; i < num && i < num_pointers; i++)
        if (uids[i] == uid)
            return pointers[i];
    cudnn_fake_defect("tensor %ld has no memory", (long)uid);
    return NULL;
}

static void read_tensor(const fake_desc *d, const fake_desc *pack, tensor *t)
{
    const bool *is_virtual = cudnn_fake_values(d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, NULL);
    const int64_t *alignment =
        cudnn_fake_values(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, NULL);
    t->type =
        *(const cudnnDataType_t *)cudnn_fake_values(d, CUDNN_ATTR_TENSOR_DATA_TYPE, NULL);
    t->is_virtual = is_virtual != NULL && *is_virtual;
    read_dims(d, CUDNN_ATTR_TENSOR_DIMENSIONS, t->dims);
    read_dims(d, CUDNN_ATTR_TENSOR_STRIDES, t->strides);
    t->num_elements = 1;
    for (int i = 0; i < DIMS; i++)
        t->num_elements += (t->dims[i] - 1) * t->strides[i];
    t->elements = calloc((size_t)t->num_elements, sizeof(double));
    if (t->elements == NULL)
        abort();
    if (t->is_virtual)
        return;
    t->memory = pointer_of(pack, t->uid);
    if (t->memory == NULL)
        return;
    if ((uintptr_t)t->memory % (uintptr_t)*alignment != 0)
        cudnn_fake_defect("tensor %ld is not aligned", (long)t->uid);
    ms_case_load(scalar_of(t), t->elements, t->memory, t->num_elements);
}

/* The tensor of an operation's attribute; NULL: not set. */
static tensor *find(const fake_desc *op, cudnnBackendAttributeName_t name,
                    const fake_desc *pack)
{
    const fake_desc *d = cudnn_fake_part(op, name);
    if (d == NULL)
        return NULL;
    int64_t uid =
        *(const int64_t *)cudnn_fake_values(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, NULL);
    for (int i = 0; i < num_tensors; i++)
        if (tensors[i].uid == uid)
            return &tensors[i];
    if (num_tensors == MOST_TENSORS)
        abort();
    tensor *t = &tensors[num_tensors++];
    *t = (tensor){.uid = uid};
    read_tensor(d, pack, t);
    return t;
}

/* Counts through all indices of a tensor; false: at the end. */
static bool next_index(const tensor *t, int64_t index[DIMS])
{
    for (int i = DIMS - 1; i >= 0; i--) {
        if (++index[i] < t->dims[i])
            return true;
        index[i] = 0;
    }
    return false;
}

static double *at(const tensor *t, const int64_t index[DIMS])
{
    int64_t offset = 0;
    for (int i = 0; i < DIMS; i++) {
        if (index[i] >= t->dims[i])
            cudnn_fake_defect("tensor %ld has no such index", (long)t->uid);
        offset += index[i] % t->dims[i] * t->strides[i];
    }
    return &t->elements[offset];
}

/* The element of x that goes with an index of y: dimensions of x have as many elements or
 * one. */
static double spread(const tensor *x, const tensor *y, const int64_t index[DIMS])
{
    int64_t of_x[DIMS];
    for (int i = 0; i < DIMS; i++) {
        if (x->dims[i] != 1 && x->dims[i] != y->dims[i])
            cudnn_fake_defect("tensor %ld does not spread over %ld", (long)x->uid,
                              (long)y->uid);
        of_x[i] = x->dims[i] == 1 ? 0 : index[i];
    }
    return *at(x, of_x);
}

/* ---- operations ---- */

static void multiply(const tensor *a, const tensor *b, const tensor *c)
{
    int64_t index[DIMS] = {0};
    if (a->dims[3] != b->dims[2] || a->dims[2] != c->dims[2] ||
        b->dims[3] != c->dims[3] || a->dims[1] != c->dims[1] ||
        c->dims[1] % b->dims[1] != 0)
        cudnn_fake_defect("dimensions of product %ld", (long)c->uid);
    bool adds = !c->is_virtual && c->type == CUDNN_DATA_FLOAT;
    do {
        double sum = 0;
        int64_t share = c->dims[1] / b->dims[1];
        for (int64_t k = 0; k < a->dims[3]; k++)
            sum += *at(a, (int64_t[]){index[0], index[1], index[2], k}) *
                   *at(b, (int64_t[]){index[0], index[1] / share, k, index[3]});
        *at(c, index) = adds ? *at(c, index) + sum : sum;
    } while (next_index(c, index));
}

static void reduce(cudnnReduceTensorOp_t operator, const tensor * x, const tensor *y)
{
    int64_t index[DIMS] = {0};
    bool is_max = operator== CUDNN_REDUCE_TENSOR_MAX;
    if (!is_max && operator!= CUDNN_REDUCE_TENSOR_ADD)
        cudnn_fake_defect("unknown reduction %d", (int)operator);
    do
        *at(y, index) = is_max ? -HUGE_VAL : 0;
    while (next_index(y, index));
    do {
        int64_t to[DIMS];
        for (int i = 0; i < DIMS; i++)
            to[i] = index[i] / (x->dims[i] / y->dims[i]);
        double value = *at(x, index), *sum = at(y, to);
        *sum = is_max ? fmax(*sum, value) : *sum + value;
    } while (next_index(x, index));
}

static double point(cudnnPointwiseMode_t mode, double x, double b, double t)
{
    if (mode == CUDNN_POINTWISE_ADD)
        return x + b;
    if (mode == CUDNN_POINTWISE_SUB)
        return x - b;
    if (mode == CUDNN_POINTWISE_MUL)
        return x * b;
    if (mode == CUDNN_POINTWISE_DIV)
        return x / b;
    if (mode == CUDNN_POINTWISE_EXP)
        return exp(x);
    if (mode == CUDNN_POINTWISE_LOG)
        return log(x);
    if (mode == CUDNN_POINTWISE_IDENTITY)
        return x;
    if (mode == CUDNN_POINTWISE_CMP_GE)
        return x >= b;
    if (mode == CUDNN_POINTWISE_BINARY_SELECT)
        return t != 0 ? x : b;
    cudnn_fake_defect("unknown pointwise mode %d", (int)mode);
    return 0;
}

static void apply(const fake_desc *op, const fake_desc *pack, const tensor *y)
{
    const fake_desc *how =
        cudnn_fake_part(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    cudnnPointwiseMode_t mode = *(const cudnnPointwiseMode_t *)cudnn_fake_values(
        how, CUDNN_ATTR_POINTWISE_MODE, NULL);
    const int64_t *axis = cudnn_fake_values(how, CUDNN_ATTR_POINTWISE_AXIS, NULL);
    const tensor *x = find(op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, pack),
                 *b = find(op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, pack),
                 *t = find(op, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, pack);
    int64_t index[DIMS] = {0};
    if ((axis != NULL) != (mode == CUDNN_POINTWISE_GEN_INDEX))
        cudnn_fake_defect("an axis is needed by indices, and by them only");
    do
        *at(y, index) = axis != NULL ? (double)index[*axis]
                                     : point(mode, spread(x, y, index),
                                             b != NULL ? spread(b, y, index) : 0,
                                             t != NULL ? spread(t, y, index) : 0);
    while (next_index(y, index));
}

/* ---- graphs ---- */

/* An operand must be in memory, or the result of an operation before. */
static void check_written(const fake_desc *op, const fake_desc *pack,
                          const cudnnBackendAttributeName_t *names)
{
    for (; *names != 0; names++) {
        const tensor *t = find(op, *names, pack);
        if (t != NULL && t->is_virtual && !t->is_written)
            cudnn_fake_defect("tensor %ld is read before it is written", (long)t->uid);
    }
}

static void finish(tensor *y)
{
    if (y->is_written)
        cudnn_fake_defect("tensor %ld is written twice", (long)y->uid);
    y->is_written = true;
    if (y->memory != NULL)
        ms_case_store(scalar_of(y), y->memory, y->elements, y->num_elements);
    else if (y->type != CUDNN_DATA_BFLOAT16)
        return;
    unsigned short *rounded = calloc((size_t)y->num_elements, sizeof(float));
    if (rounded == NULL)
        abort();
    ms_case_store(scalar_of(y), rounded, y->elements, y->num_elements);
    ms_case_load(scalar_of(y), y->elements, rounded, y->num_elements);
    free(rounded);
}

static void run_op(const fake_desc *op, const fake_desc *pack)
{
    static const struct {
        cudnnBackendDescriptorType_t type;
        cudnnBackendAttributeName_t operands[4], result;
    } kinds[] = {
        {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
         {CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC},
         CUDNN_ATTR_OPERATION_MATMUL_CDESC},
        {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
         {CUDNN_ATTR_OPERATION_REDUCTION_XDESC},
         CUDNN_ATTR_OPERATION_REDUCTION_YDESC},
        {CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
         {CUDNN_ATTR_OPERATION_RESHAPE_XDESC},
         CUDNN_ATTR_OPERATION_RESHAPE_YDESC},
        {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
         {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
          CUDNN_ATTR_OPERATION_POINTWISE_TDESC},
         CUDNN_ATTR_OPERATION_POINTWISE_YDESC}};
    size_t kind = 0;
    while (kind < sizeof kinds / sizeof *kinds - 1 && kinds[kind].type != op->type)
        kind++;
    check_written(op, pack, kinds[kind].operands);
    tensor *y = find(op, kinds[kind].result, pack);
    const tensor *x = find(op, kinds[kind].operands[0], pack);
    if (op->type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
        multiply(x, find(op, kinds[kind].operands[1], pack), y);
    else if (op->type == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR)
        reduce(*(const cudnnReduceTensorOp_t *)cudnn_fake_values(
                   cudnn_fake_part(op, CUDNN_ATTR_OPERATION_REDUCTION_DESC),
                   CUDNN_ATTR_REDUCTION_OPERATOR, NULL),
               x, y);
    else if (op->type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
        apply(op, pack, y);
    else if (x->num_elements == y->num_elements)
        memcpy(y->elements, x->elements, (size_t)x->num_elements * sizeof(double));
    else
        cudnn_fake_defect("a reshape changes the number of elements");
    finish(y);
}

void cudnn_fake_run(const fake_desc *graph, const fake_desc *pack)
{
    int64_t num = 0;
    fake_desc *const *ops = cudnn_fake_values(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, &num);
    for (int64_t i = 0; i < num; i++)
        run_op(ops[i], pack);
    while (num_tensors > 0)
        free(tensors[--num_tensors].elements);
}
#endif
