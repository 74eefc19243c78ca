/* A kernel of a layer program on a GPU: what its launch code is called with.
 * exec/cuda_SUBJECT.c reads the operation and launches; exec/cuda_SUBJECT.cu has the
 * kernels and their launch functions, beside exec/cpu_SUBJECT.c, which they must equal;
 * exec/cuda_SUBJECT.h is between both, plain C. */
#ifndef MS_EXEC_CUDA_CALL_H
#define MS_EXEC_CUDA_CALL_H

#include "exec/arrays.h"
#include "exec/cuda_driver.h"
#include "exec/op_call.h"

/* A micro-batch in the device's memory. */
typedef struct ms_cuda_batch {
    long num_sequences, sequence_length;
    const int *tokens, *targets; /* (num_sequences, sequence_length), by position */
    const int *positions; /* (sequence_length): of stored indices; NULL: the same */
    double num_tokens;    /* of the global batch */
} ms_cuda_batch;

typedef struct ms_cuda_call {
    ms_ctx *cx;
    const ms_cuda_driver *driver;
    ms_cuda_stream *stream; /* compute */
    ms_precision precision;
    const ms_op_call *op; /* operands are in the device's memory; each has its scalar */
    const ms_cuda_batch *batch; /* NULL where op->batch is */
    void *workspace;            /* on the device: as many bytes as its function says */
    bool *lacks_fp8; /* NULL or: becomes true where the library has no such product */
} ms_cuda_call;

/* MS_EIO: from the driver. Launches themselves are looked at by the caller. */
typedef ms_status ms_cuda_op(const ms_cuda_call *call);
/* Bytes of workspace that a node needs. */
typedef size_t ms_cuda_workspace(const ms_program *program, const ms_node *node,
                                 const ms_precision *precision);

#endif
