/* The call of a kernel of a layer program on a GPU. exec/cuda/cuda_SUBJECT.c reads the
 * operation and launches; exec/cuda/cuda_SUBJECT.cu has the kernels and their launch
 * functions, whose results must equal those of exec/cpu/cpu_SUBJECT.c; exec/cuda/cuda_SUBJECT.h,
 * plain C, is the interface between both. */
#ifndef MS_EXEC_CUDA_CUDA_CALL_H
#define MS_EXEC_CUDA_CUDA_CALL_H

#include "exec/core/arrays.h"
#include "exec/core/op_call.h"
#include "exec/cuda/cuda_driver.h"

/* A micro-batch in device memory. */
typedef struct ms_cuda_batch {
    long num_sequences, sequence_length;
    /* (num_sequences, sequence_length), ordered by position */
    const int *tokens, *targets;
    /* (sequence_length), position of each stored index; NULL if identical */
    const int *positions;
    double num_tokens; /* number of tokens of the global batch */
} ms_cuda_batch;

typedef struct ms_cuda_call {
    ms_ctx *cx;
    const ms_cuda_driver *driver;
    ms_cuda_stream *stream; /* the rank's compute stream */
    ms_precision precision;
    const ms_op_call *op; /* operands are in device memory; each has its scalar type */
    const ms_cuda_batch *batch; /* micro-batch on the device; NULL if op->batch is NULL */
    /* device memory of the size that the operation's ms_cuda_workspace function
     * returns */
    void *workspace;
    /* optional; set to true if the library has no FP8 algorithm for a GEMM */
    bool *lacks_fp8;
} ms_cuda_call;

/* Launches an operation. MS_EIO: the driver failed. The caller checks for errors of
 * kernel launches. */
typedef ms_status ms_cuda_op(const ms_cuda_call *call);
/* Bytes of workspace of a node. */
typedef size_t ms_cuda_workspace(const ms_program *program, const ms_node *node,
                                 const ms_precision *precision);

#endif
