/* A fake of cuDNN's backend interface in host memory: it checks the type and count of each
 * attribute, and executes a graph of operations by what they mean, one after another, in
 * fp64; tensors in memory and virtual bf16 tensors are rounded to their type. So a graph
 * that gives the numbers of attention here means attention.
 *
 * A product whose result is fp32 in memory is added to what is there, as by engines whose
 * thread blocks add their parts. Wrong use is counted, and its first reason kept. */
#ifndef MS_TESTS_SUPPORT_CUDNN_FAKE_H
#define MS_TESTS_SUPPORT_CUDNN_FAKE_H

#include <cudnn_graph.h>

typedef struct cudnn_fake_state {
    /* ---- knobs ---- */
    int num_configs;     /* engines that the heuristic finds */
    int num_bad_configs; /* number of first ones that make no plan */
    cudnnStatus_t create_status, execute_status;
    int64_t workspace_bytes; /* workspace of each plan */
    /* ---- counts ---- */
    int num_live, num_defects, num_executed, num_plans;
    char defect[256];
} cudnn_fake_state;
extern cudnn_fake_state cudnn_fake;

/* The library's functions; those of the graph interface begin with cudnnBackend. */
size_t cudnn_fake_get_version(void);
const char *cudnn_fake_error_string(cudnnStatus_t status);
void cudnn_fake_last_error(char *message, size_t max_size);
cudnnStatus_t cudnn_fake_create(cudnnHandle_t *handle);
cudnnStatus_t cudnn_fake_destroy(cudnnHandle_t handle);
cudnnStatus_t cudnn_fake_set_stream(cudnnHandle_t handle, cudaStream_t stream);
cudnnStatus_t cudnn_fake_make(cudnnBackendDescriptorType_t type,
                              cudnnBackendDescriptor_t *descriptor);
cudnnStatus_t cudnn_fake_drop(cudnnBackendDescriptor_t descriptor);
cudnnStatus_t cudnn_fake_set(cudnnBackendDescriptor_t descriptor,
                             cudnnBackendAttributeName_t name,
                             cudnnBackendAttributeType_t type, int64_t count,
                             const void *values);
cudnnStatus_t cudnn_fake_get(cudnnBackendDescriptor_t const descriptor,
                             cudnnBackendAttributeName_t name,
                             cudnnBackendAttributeType_t type, int64_t requested,
                             int64_t *count, void *values);
cudnnStatus_t cudnn_fake_finalize(cudnnBackendDescriptor_t descriptor);
cudnnStatus_t cudnn_fake_execute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                 cudnnBackendDescriptor_t pack);

#endif
