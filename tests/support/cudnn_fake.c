#if __has_include(<cudnn_graph.h>)
#include "tests/support/cudnn_fake_priv.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

cudnn_fake_state cudnn_fake;

void cudnn_fake_defect(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (cudnn_fake.num_defects++ == 0)
        vsnprintf(cudnn_fake.defect, sizeof cudnn_fake.defect, format, args);
    va_end(args);
}

/* ---- attributes ---- */

/* An attribute that a descriptor may have. Sources: cuDNN documentation, "Backend
 * Descriptor Types"; cudnn_graph.h. */
typedef struct known {
    cudnnBackendDescriptorType_t of;
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type;
    int most; /* greatest count; the least is 1 */
    bool is_needed;
    size_t bytes; /* size of one value */
} known;

#define ROW(of, name, type, most, is_needed, c_type)                                     \
    {                                                                                    \
        CUDNN_BACKEND_##of##_DESCRIPTOR, CUDNN_ATTR_##name, CUDNN_TYPE_##type, most,     \
            is_needed, sizeof(c_type)                                                    \
    }
#define PART(of, name, is_needed)                                                        \
    ROW(of, name, BACKEND_DESCRIPTOR, 1, is_needed, cudnnBackendDescriptor_t)

static const known table[] = {
    ROW(TENSOR, TENSOR_UNIQUE_ID, INT64, 1, true, int64_t),
    ROW(TENSOR, TENSOR_DATA_TYPE, DATA_TYPE, 1, true, cudnnDataType_t),
    ROW(TENSOR, TENSOR_DIMENSIONS, INT64, CUDNN_DIM_MAX, true, int64_t),
    ROW(TENSOR, TENSOR_STRIDES, INT64, CUDNN_DIM_MAX, true, int64_t),
    ROW(TENSOR, TENSOR_BYTE_ALIGNMENT, INT64, 1, true, int64_t),
    ROW(TENSOR, TENSOR_IS_VIRTUAL, BOOLEAN, 1, false, bool),
    ROW(TENSOR, TENSOR_IS_BY_VALUE, BOOLEAN, 1, false, bool),
    ROW(MATMUL, MATMUL_COMP_TYPE, DATA_TYPE, 1, true, cudnnDataType_t),
    PART(OPERATION_MATMUL, OPERATION_MATMUL_ADESC, true),
    PART(OPERATION_MATMUL, OPERATION_MATMUL_BDESC, true),
    PART(OPERATION_MATMUL, OPERATION_MATMUL_CDESC, true),
    PART(OPERATION_MATMUL, OPERATION_MATMUL_DESC, true),
    ROW(REDUCTION, REDUCTION_OPERATOR, REDUCTION_OPERATOR_TYPE, 1, true,
        cudnnReduceTensorOp_t),
    ROW(REDUCTION, REDUCTION_COMP_TYPE, DATA_TYPE, 1, true, cudnnDataType_t),
    PART(OPERATION_REDUCTION, OPERATION_REDUCTION_XDESC, true),
    PART(OPERATION_REDUCTION, OPERATION_REDUCTION_YDESC, true),
    PART(OPERATION_REDUCTION, OPERATION_REDUCTION_DESC, true),
    PART(OPERATION_RESHAPE, OPERATION_RESHAPE_XDESC, true),
    PART(OPERATION_RESHAPE, OPERATION_RESHAPE_YDESC, true),
    ROW(POINTWISE, POINTWISE_MODE, POINTWISE_MODE, 1, true, cudnnPointwiseMode_t),
    ROW(POINTWISE, POINTWISE_MATH_PREC, DATA_TYPE, 1, true, cudnnDataType_t),
    ROW(POINTWISE, POINTWISE_AXIS, INT64, 1, false, int64_t),
    PART(OPERATION_POINTWISE, OPERATION_POINTWISE_PW_DESCRIPTOR, true),
    PART(OPERATION_POINTWISE, OPERATION_POINTWISE_XDESC, true),
    PART(OPERATION_POINTWISE, OPERATION_POINTWISE_BDESC, false),
    PART(OPERATION_POINTWISE, OPERATION_POINTWISE_TDESC, false),
    PART(OPERATION_POINTWISE, OPERATION_POINTWISE_YDESC, true),
    ROW(OPERATIONGRAPH, OPERATIONGRAPH_OPS, BACKEND_DESCRIPTOR, 100, true,
        cudnnBackendDescriptor_t),
    ROW(OPERATIONGRAPH, OPERATIONGRAPH_HANDLE, HANDLE, 1, true, cudnnHandle_t),
    PART(ENGINEHEUR, ENGINEHEUR_OPERATION_GRAPH, true),
    ROW(ENGINEHEUR, ENGINEHEUR_MODE, HEUR_MODE, 1, true, cudnnBackendHeurMode_t),
    ROW(EXECUTION_PLAN, EXECUTION_PLAN_HANDLE, HANDLE, 1, true, cudnnHandle_t),
    PART(EXECUTION_PLAN, EXECUTION_PLAN_ENGINE_CONFIG, true),
    ROW(VARIANT_PACK, VARIANT_PACK_UNIQUE_IDS, INT64, 100, true, int64_t),
    ROW(VARIANT_PACK, VARIANT_PACK_DATA_POINTERS, VOID_PTR, 100, true, void *),
    ROW(VARIANT_PACK, VARIANT_PACK_WORKSPACE, VOID_PTR, 1, true, void *),
};
#define NUM_KNOWN (sizeof table / sizeof *table)

const void *cudnn_fake_values(const fake_desc *d, cudnnBackendAttributeName_t name,
                              int64_t *count)
{
    for (int i = 0; i < d->num_attributes; i++) {
        if (d->attributes[i].name != name)
            continue;
        if (count != NULL)
            *count = d->attributes[i].count;
        return d->attributes[i].values;
    }
    return NULL;
}

fake_desc *cudnn_fake_part(const fake_desc *d, cudnnBackendAttributeName_t name)
{
    fake_desc *const *part = cudnn_fake_values(d, name, NULL);
    return part != NULL ? *part : NULL;
}

static cudnnStatus_t wrong(const fake_desc *d, const char *what, int name)
{
    cudnn_fake_defect("descriptor of type %d: %s, attribute %d", (int)d->type, what,
                      name);
    return CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnn_fake_set(cudnnBackendDescriptor_t descriptor,
                             cudnnBackendAttributeName_t name,
                             cudnnBackendAttributeType_t type, int64_t count,
                             const void *values)
{
    fake_desc *d = descriptor;
    size_t i = 0;
    while (i < NUM_KNOWN && (table[i].of != d->type || table[i].name != name))
        i++;
    if (i == NUM_KNOWN)
        return wrong(d, "it has no such attribute", (int)name);
    if (table[i].type != type || count < 1 || count > table[i].most || values == NULL)
        return wrong(d, "wrong type or count", (int)name);
    if (d->is_final || cudnn_fake_values(d, name, NULL) != NULL)
        return wrong(d, "it is final, or the attribute is set", (int)name);
    fake_desc *const *parts = values;
    for (int64_t p = 0; type == CUDNN_TYPE_BACKEND_DESCRIPTOR && p < count; p++)
        if (parts[p] == NULL || !parts[p]->is_final)
            return wrong(d, "a part is not final", (int)name);
    size_t bytes = (size_t)count * table[i].bytes;
    fake_attribute *a = &d->attributes[d->num_attributes++];
    *a = (fake_attribute){name, count, malloc(bytes)};
    if (a->values == NULL)
        abort();
    memcpy(a->values, values, bytes);
    return CUDNN_STATUS_SUCCESS;
}

/* ---- descriptors ---- */

cudnnStatus_t cudnn_fake_make(cudnnBackendDescriptorType_t type,
                              cudnnBackendDescriptor_t *descriptor)
{
    fake_desc *made = calloc(1, sizeof *made);
    if (made == NULL)
        abort();
    made->type = type;
    *descriptor = made;
    cudnn_fake.num_live++;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnn_fake_drop(cudnnBackendDescriptor_t descriptor)
{
    fake_desc *d = descriptor;
    for (int i = 0; i < d->num_attributes; i++)
        free(d->attributes[i].values);
    free(d);
    cudnn_fake.num_live--;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnn_fake_finalize(cudnnBackendDescriptor_t descriptor)
{
    fake_desc *d = descriptor;
    for (size_t i = 0; i < NUM_KNOWN; i++)
        if (table[i].of == d->type && table[i].is_needed &&
            cudnn_fake_values(d, table[i].name, NULL) == NULL)
            return wrong(d, "lacks", (int)table[i].name);
    if (d->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
        cudnn_fake.num_plans++;
        if (cudnn_fake_part(d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)->rank <
            cudnn_fake.num_bad_configs)
            return CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED;
    }
    d->is_final = true;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnn_fake_get(cudnnBackendDescriptor_t const descriptor,
                             cudnnBackendAttributeName_t name,
                             cudnnBackendAttributeType_t type, int64_t requested,
                             int64_t *count, void *values)
{
    const fake_desc *d = descriptor;
    if (!d->is_final)
        return wrong(d, "is read before it is final", (int)name);
    if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE && type == CUDNN_TYPE_INT64 &&
        requested == 1) {
        *(int64_t *)values = cudnn_fake.workspace_bytes;
        *count = 1;
        return CUDNN_STATUS_SUCCESS;
    }
    if (name != CUDNN_ATTR_ENGINEHEUR_RESULTS || type != CUDNN_TYPE_BACKEND_DESCRIPTOR)
        return wrong(d, "is read by a wrong name or type", (int)name);
    fake_desc **configs = values;
    *count = cudnn_fake.num_configs;
    for (int i = 0; i < cudnn_fake.num_configs && i < requested; i++) {
        configs[i]->graph = cudnn_fake_part(d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
        configs[i]->is_final = true;
        configs[i]->rank = i;
    }
    return CUDNN_STATUS_SUCCESS;
}

/* ---- handles ---- */

size_t cudnn_fake_get_version(void)
{
    return CUDNN_VERSION;
}

const char *cudnn_fake_error_string(cudnnStatus_t status)
{
    return status == CUDNN_STATUS_SUCCESS ? "success" : "an error";
}

void cudnn_fake_last_error(char *message, size_t max_size)
{
    snprintf(message, max_size, "%s", cudnn_fake.defect);
}

cudnnStatus_t cudnn_fake_create(cudnnHandle_t *handle)
{
    static int anything;
    *handle = (cudnnHandle_t)(void *)&anything;
    cudnn_fake.num_live += cudnn_fake.create_status == CUDNN_STATUS_SUCCESS;
    return cudnn_fake.create_status;
}

cudnnStatus_t cudnn_fake_destroy(cudnnHandle_t handle)
{
    (void)handle;
    cudnn_fake.num_live--;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnn_fake_set_stream(cudnnHandle_t handle, cudaStream_t stream)
{
    (void)handle;
    (void)stream;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnn_fake_execute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                 cudnnBackendDescriptor_t pack)
{
    const fake_desc *p = plan, *v = pack;
    if (handle == NULL || !p->is_final || !v->is_final)
        return wrong(p, "is executed before it is final", 0);
    cudnn_fake.num_executed++;
    if (cudnn_fake.execute_status == CUDNN_STATUS_SUCCESS)
        cudnn_fake_run(cudnn_fake_part(p, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)->graph,
                       v);
    return cudnn_fake.execute_status;
}
#endif
