/* The table of GPU kernels that the backend calls: one per operation of layer programs,
 * and the operations on arrays (exec/core/arrays.h). */
#ifndef MS_EXEC_CUDA_CUDA_TABLE_H
#define MS_EXEC_CUDA_CUDA_TABLE_H

#include "exec/cuda/cuda_call.h"
#include "exec/cuda/cuda_modelled.h"

typedef struct ms_cuda_kernels {
    /* launch functions; NULL for communication, the optimizer and CPU-only operations */
    ms_cuda_op *op[MS_NUM_OPS];
    /* workspace sizes of operations; NULL if an operation needs none */
    ms_cuda_workspace *workspace[MS_NUM_OPS];
    /* Operations on arrays in device memory, enqueued on the stream; the caller checks
     * for errors of kernel launches. */
    void (*fill)(ms_cuda_stream *stream, ms_scalar scalar, void *to, double value,
                 long count);
    void (*add)(ms_cuda_stream *stream, ms_scalar scalar, void *to, const void *from,
                long count);
    void (*round_sum)(ms_cuda_stream *stream, const ms_rounded_sum *sum);
    void (*scale)(ms_cuda_stream *stream, ms_scalar scalar, void *x, double factor,
                  long count);
    void (*copy_box)(ms_cuda_stream *stream, const ms_box_copy *copy);
    void (*model_transfer)(ms_cuda_stream *stream, const ms_cuda_modelled *how);
    void (*initialise)(ms_cuda_stream *stream, ms_scalar scalar, void *to,
                       const ms_initial_piece *piece);
    /* *slot += sum of x; `scratch` is device memory of sum_bytes */
    void (*add_sum)(ms_cuda_stream *stream, ms_scalar scalar, double *slot, const void *x,
                    long count, void *scratch);
    void (*add_squares)(ms_cuda_stream *stream, ms_scalar scalar, double *slot,
                        const void *x, long count, void *scratch);
    size_t sum_bytes;
    void (*adamw)(ms_cuda_stream *stream, const ms_adamw *how, const ms_update *update);
    /* attention over one block of keys; call->op is block->call (with its workspace) */
    ms_status (*attention_block)(const ms_cuda_call *call,
                                 const ms_attention_block *block);
    ms_status (*attention_block_grad)(const ms_cuda_call *call,
                                      const ms_attention_block *block);
} ms_cuda_kernels;

/* The kernels of exec/cuda/cuda_*.cu. */
extern const ms_cuda_kernels ms_cuda_all_kernels;

/* Bytes of workspace that a node's kernel needs; 0 if none. */
size_t ms_cuda_kernels_workspace(const ms_cuda_kernels *kernels,
                                 const ms_program *program, const ms_node *node,
                                 ms_real_type type);

#endif
