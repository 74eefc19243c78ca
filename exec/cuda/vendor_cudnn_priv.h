/* Declarations shared by the files of attention by cuDNN: the library's functions, graphs
 * of its backend interface, the graphs that mean attention, and their execution plans. */
#ifndef MS_EXEC_CUDA_VENDOR_CUDNN_PRIV_H
#define MS_EXEC_CUDA_VENDOR_CUDNN_PRIV_H

#include "exec/cuda/vendor_priv.h"

#include <cudnn_graph.h>

/* Needed library functions: X(function, its field in ms_cudnn_table). */
#define MS_CUDNN_FUNCTIONS(X)                                                            \
    X(cudnnGetVersion, get_version)                                                      \
    X(cudnnGetErrorString, error_string)                                                 \
    X(cudnnGetLastErrorString, last_error)                                               \
    X(cudnnCreate, create)                                                               \
    X(cudnnDestroy, destroy)                                                             \
    X(cudnnSetStream, set_stream)                                                        \
    X(cudnnBackendCreateDescriptor, make)                                                \
    X(cudnnBackendDestroyDescriptor, drop)                                               \
    X(cudnnBackendSetAttribute, set)                                                     \
    X(cudnnBackendGetAttribute, get)                                                     \
    X(cudnnBackendFinalize, finalize)                                                    \
    X(cudnnBackendExecute, execute)
#define MS_CUDNN_FIELD(function, field) __typeof__(function) *(field);
typedef struct ms_cudnn_table {
    MS_CUDNN_FUNCTIONS(MS_CUDNN_FIELD)
} ms_cudnn_table;
extern ms_cudnn_table ms_cudnn;

/* ---- graphs: vendor_cudnn_graph.c ---- */

#define MS_CUDNN_MOST_DESCRIPTORS 160
#define MS_CUDNN_MOST_OPS         48
#define MS_CUDNN_DIMS             4

/* A graph under construction, and all descriptors made for it. The first error is kept in
 * `status`; later calls then do nothing. */
typedef struct ms_cudnn_graph {
    cudnnStatus_t status;
    int num_made, num_ops;
    cudnnBackendDescriptor_t made[MS_CUDNN_MOST_DESCRIPTORS]; /* `ops` among them */
    cudnnBackendDescriptor_t ops[MS_CUDNN_MOST_OPS];
} ms_cudnn_graph;

/* A new descriptor, which belongs to the graph; NULL after an error. */
cudnnBackendDescriptor_t ms_cudnn_make(ms_cudnn_graph *g,
                                       cudnnBackendDescriptorType_t type);
void ms_cudnn_set(ms_cudnn_graph *g, cudnnBackendDescriptor_t descriptor,
                  cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                  int64_t count, const void *values);
void ms_cudnn_set_descriptor(ms_cudnn_graph *g, cudnnBackendDescriptor_t descriptor,
                             cudnnBackendAttributeName_t name,
                             cudnnBackendDescriptor_t value);
void ms_cudnn_finalize(ms_cudnn_graph *g, cudnnBackendDescriptor_t descriptor);
/* Destroys all descriptors of the graph. */
void ms_cudnn_graph_drop(ms_cudnn_graph *g);

/* A tensor of a graph: (batch, heads, rows, columns), with strides in elements. */
typedef struct ms_cudnn_tensor {
    int64_t uid; /* unique id of the tensor's memory; 0: virtual, in no memory */
    cudnnDataType_t type;
    int64_t dims[MS_CUDNN_DIMS], strides[MS_CUDNN_DIMS];
    bool is_by_value; /* one number in host memory, read when the graph is executed */
    cudnnBackendDescriptor_t desc;
} ms_cudnn_tensor;

/* Returns `t` with its descriptor; a virtual tensor gets a unique id. */
ms_cudnn_tensor ms_cudnn_add_tensor(ms_cudnn_graph *g, ms_cudnn_tensor t);
/* Row-major tensor: in memory with a unique id, or virtual with id 0. */
ms_cudnn_tensor ms_cudnn_add_row_major(ms_cudnn_graph *g, int64_t uid,
                                       cudnnDataType_t type,
                                       const int64_t dims[MS_CUDNN_DIMS]);
/* `t` with rows and columns exchanged, without a descriptor. */
ms_cudnn_tensor ms_cudnn_transposed(ms_cudnn_tensor t);

/* c (m, n) = a (m, k) b (k, n) of each batch and head; sums in fp32. Heads of b may be
 * fewer: consecutive heads of a share one. */
void ms_cudnn_add_matmul(ms_cudnn_graph *g, ms_cudnn_tensor a, ms_cudnn_tensor b,
                         ms_cudnn_tensor c);
/* Reduces x in fp32 along dimensions of which y has fewer elements: consecutive elements
 * become one. */
void ms_cudnn_add_reduction(ms_cudnn_graph *g, cudnnReduceTensorOp_t operator,
                            ms_cudnn_tensor x, ms_cudnn_tensor y);
/* y: x with other dimensions, and strides that lead to the same elements. */
void ms_cudnn_add_reshape(ms_cudnn_graph *g, ms_cudnn_tensor x, ms_cudnn_tensor y);

typedef struct ms_cudnn_pointwise {
    cudnnPointwiseMode_t mode;
    /* y = mode(x, b); BINARY_SELECT: t ? x : b. Unused operands have no descriptor. */
    ms_cudnn_tensor x, b, t, y;
    int64_t axis; /* GEN_INDEX: the dimension whose index y gets */
} ms_cudnn_pointwise;
void ms_cudnn_add_pointwise(ms_cudnn_graph *g, const ms_cudnn_pointwise *p);

/* ---- attention: vendor_cudnn_attention.c ---- */

/* Unique ids of tensors in memory and of numbers. */
enum {
    MS_CUDNN_Q = 1,
    MS_CUDNN_K,
    MS_CUDNN_V,
    MS_CUDNN_O,
    MS_CUDNN_LSE,
    MS_CUDNN_GO,
    MS_CUDNN_GQ,
    MS_CUDNN_GK,
    MS_CUDNN_GV,
    MS_CUDNN_GQ_SUM, /* (b, n, s, d) fp32, cleared: sums of gq over blocks of keys */
    MS_CUDNN_SCALE,  /* factor of scores */
    MS_CUDNN_MASKED, /* score of a key that its query does not see */
    MS_CUDNN_ONE,    /* 1 */
    MS_CUDNN_NUM_UIDS
};

/* Adds attention, or its gradients, in the form that the shape asks for. */
void ms_cudnn_add_attention(ms_cudnn_graph *g, const ms_cuda_fused_shape *shape);

/* ---- plans: vendor_cudnn_plan.c ---- */

#define MS_CUDNN_WHY 256

/* The device for which plans are made: a handle, or the properties of a device, by which
 * plans can be made where there is none. The other is NULL. */
typedef struct ms_cudnn_place {
    cudnnHandle_t handle;
    cudnnBackendDescriptor_t properties;
} ms_cudnn_place;

typedef struct ms_cudnn_plan {
    ms_cudnn_graph graph;          /* owns all descriptors */
    cudnnBackendDescriptor_t desc; /* NULL: cuDNN refuses the graph */
    char why[MS_CUDNN_WHY];        /* why it does */
    int64_t workspace_bytes;
} ms_cudnn_plan;

/* Makes the plan of the first engine of cuDNN's heuristic that accepts the graph. */
void ms_cudnn_plan_make(ms_cudnn_plan *plan, const ms_cudnn_place *place,
                        const ms_cuda_fused_shape *shape);

#endif
