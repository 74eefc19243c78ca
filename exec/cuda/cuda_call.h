/* How kernels of a layer program are called on a GPU. exec/cuda/cuda_SUBJECT.c reads the
 * operation and launches; cuda_SUBJECT.cu has the kernels and their launch functions,
 * whose results must equal those of exec/cpu/cpu_SUBJECT.c; cuda_SUBJECT.h, plain C, is
 * the interface between both. */
#ifndef MS_EXEC_CUDA_CUDA_CALL_H
#define MS_EXEC_CUDA_CUDA_CALL_H

#include "exec/core/arrays.h"
#include "exec/core/backend.h"
#include "exec/core/op_call.h"
#include "exec/cuda/cuda_driver.h"

/* A micro-batch in device memory. */
typedef struct ms_cuda_batch {
    long num_sequences, sequence_length;
    /* (num_sequences, sequence_length) token ids, ordered by position */
    const int *tokens, *targets;
    /* (sequence_length) position of each stored token; NULL if stored in order */
    const int *positions;
    double num_tokens; /* number of tokens of the global batch */
} ms_cuda_batch;

/* Counts of the kernels that ran the attention of a rank. */
typedef struct ms_cuda_attention_use {
    long num_by_library, num_by_own; /* numbers of calls, forward or backward */
    /* reason of the first call that the library should have run and did not; "": none */
    char why[MS_CUDA_TEXT];
} ms_cuda_attention_use;

typedef struct ms_cuda_call {
    ms_ctx *cx;
    const ms_cuda_driver *driver;
    ms_cuda_stream *stream; /* the rank's compute stream */
    ms_precision precision;
    const ms_op_call *op;       /* the operation; its operands are in device memory */
    const ms_cuda_batch *batch; /* micro-batch on the device; NULL if `op` has none */
    /* device memory, sized by the operation's ms_cuda_workspace function */
    void *workspace;
    /* rotary angles of the run (exec/cuda/cuda_rotary.h); NULL: made at each use */
    struct ms_cuda_angle_tables *angle_tables;
    /* set to true if a GEMM of an fp8 run has no FP8 algorithm; may be NULL */
    bool *lacks_fp8;
    ms_run_attention attention;
    ms_cuda_attention_use *attention_use; /* counts calls; may be NULL if `attention`
                                             is MS_RUN_ATTENTION_OWN */
} ms_cuda_call;

/* Launches an operation's kernels. MS_EIO: the driver failed. The caller checks for
 * errors of kernel launches. */
typedef ms_status ms_cuda_op(const ms_cuda_call *call);
/* Bytes of workspace that the kernels of a node need. */
typedef size_t ms_cuda_workspace(const ms_program *program, const ms_node *node,
                                 const ms_precision *precision);

#endif
