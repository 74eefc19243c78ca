/* EMBED and EMBED_GRAD on a GPU: rows of a table by token or by position. */
#ifndef MS_EXEC_CUDA_EMBED_H
#define MS_EXEC_CUDA_EMBED_H

#include "exec/scalar.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#else
#include "exec/cuda_call.h"
ms_cuda_op ms_cuda_embed, ms_cuda_embed_grad;
ms_cuda_workspace ms_cuda_embed_grad_bytes;
#endif

typedef struct ms_cuda_stream ms_cuda_stream;

/* Row i of x [b s h] takes the row of the table for the token at (i / length, i % length)
 * of the rank's part, or for its position. */
typedef struct ms_cuda_embed_args {
    ms_scalar scalar; /* of x, and of the table that is read */
    void *x;          /* (num_rows, width): result, or its gradient */
    void *table;      /* (table_rows, width); of the gradient: fp32 for bf16 */
    long num_rows, width;
    long length;          /* rows of a sequence */
    long first_sequence;  /* of x, counted within the batch */
    long first_stored;    /* stored index of the first row of a sequence */
    long sequence_length; /* of the batch */
    /* (sequences, sequence_length) by position; NULL: rows by position */
    const int *tokens;
    const int *positions; /* of stored indices; NULL: the same */
    /* of the part of the table that is here; other rows of x are 0 */
    long table_start, table_rows;
} ms_cuda_embed_args;

void ms_cuda_embed_rows(ms_cuda_stream *stream, const ms_cuda_embed_args *args);
/* table += rows of x by their row of the table, in the order of x, summed in fp32 or fp64
 * before; `workspace`: ms_cuda_embed_add_bytes, 8-byte aligned. */
size_t ms_cuda_embed_add_bytes(long num_rows);
void ms_cuda_embed_add(ms_cuda_stream *stream, const ms_cuda_embed_args *args,
                       void *workspace);

#ifdef __cplusplus
}
#endif

#endif
