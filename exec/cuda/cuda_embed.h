/* Embedding and its gradient on a GPU: rows of a table by token or by position. */
#ifndef MS_EXEC_CUDA_CUDA_EMBED_H
#define MS_EXEC_CUDA_CUDA_EMBED_H

#include "exec/core/scalar.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#else
#include "exec/cuda/cuda_call.h"
ms_cuda_op ms_cuda_embed, ms_cuda_embed_grad;
ms_cuda_workspace ms_cuda_embed_grad_bytes;
#endif

typedef struct ms_cuda_stream ms_cuda_stream;

/* Row i of x (sequence, token, width) is the table's row of a token or, if `tokens` is
 * NULL, of its position: token i % length in sequence i / length of the rank's share. */
typedef struct ms_cuda_embed_args {
    ms_scalar scalar; /* type of x, and of the table in the forward pass */
    void *x;          /* (num_rows, width): the output, or its gradient */
    void *table;      /* (table_rows, width); its gradient is fp32 for bf16 */
    long num_rows, width;
    double scale;         /* factor of the looked-up rows */
    long length;          /* rows of x per sequence */
    long first_sequence;  /* index in the batch of x's first sequence */
    long first_stored;    /* index of x's first token among those stored */
    long sequence_length; /* tokens per sequence of the batch */
    long ahead;           /* rows are of the tokens so many positions later */
    /* (sequences, sequence_length) by position; NULL: rows are looked up by position */
    const int *tokens;
    const int *positions; /* position of each stored token; NULL if stored in order */
    /* first row and number of rows of the rank's table shard; for other rows x is 0 */
    long table_start, table_rows;
} ms_cuda_embed_args;

void ms_cuda_embed_rows(ms_cuda_stream *stream, const ms_cuda_embed_args *args);
/* ms_cuda_embed_add sums the rows of x that have the same table row, in order, in fp32 or
 * fp64, and adds the sum to it; `workspace`: ms_cuda_embed_add_bytes, 8-byte aligned. */
size_t ms_cuda_embed_add_bytes(long num_rows);
void ms_cuda_embed_add(ms_cuda_stream *stream, const ms_cuda_embed_args *args,
                       void *workspace);

#ifdef __cplusplus
}
#endif

#endif
