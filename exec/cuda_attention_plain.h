/* Attention on a GPU by plain arithmetic: any widths, all real types. What
 * exec/cuda_flash.h must equal, and what runs where that cannot. Both take the same
 * arguments; program.h says what ATTENTION means, arrays.h how blocks are composed. */
#ifndef MS_EXEC_CUDA_ATTENTION_PLAIN_H
#define MS_EXEC_CUDA_ATTENTION_PLAIN_H

#include "exec/scalar.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ms_cuda_stream ms_cuda_stream;

/* Queries of a rank and one block of keys and values; all in the device's memory. Sums,
 * lse and the workspace are fp64 for fp64, otherwise fp32. */
typedef struct ms_cuda_attention_args {
    ms_scalar scalar; /* of everything but lse, and the results of blocks */
    long num_batch, num_queries, num_keys, num_heads, num_kv_heads;
    long width, value_width;     /* d and w */
    long first_query, first_key; /* their stored indices */
    long window;                 /* keys a query sees, itself too; 0: all before it */
    const int *positions;        /* of stored indices; NULL: the same */
    double scale;                /* of scores */
    /* The block has all keys: o, lse and gradients are only written. Otherwise they are
     * merged with, or added to, what there is, which is in the type of sums: for bf16 fp32. */
    bool is_whole;
    const void *q, *k, *v; /* [b s n d], [b t g d], [b t g w] */
    void *o, *lse;         /* [b s n w], [b s n]; backward: only read */
    const void *go;        /* [b s n w] */
    void *gq, *gk, *gv;    /* shaped as q, k and v */
    void *probabilities;   /* [b n s t] of unfused attention; NULL: not stored */
    void *workspace;
} ms_cuda_attention_args;

/* Merges the block into o and lse. Workspace: a sum for each (b, s, n). */
void ms_cuda_attention_plain(ms_cuda_stream *stream, const ms_cuda_attention_args *args);
/* exp(score - lse) into `probabilities`, 0 where masked; lse is final, o is not used. No
 * workspace. */
void ms_cuda_attention_probabilities(ms_cuda_stream *stream,
                                     const ms_cuda_attention_args *args);
/* Gradients of the block from final o and lse, or from stored probabilities. Workspace: a
 * sum for each (b, s, n). */
void ms_cuda_attention_plain_grad(ms_cuda_stream *stream,
                                  const ms_cuda_attention_args *args);

#ifdef __cplusplus
}
#endif

#endif
