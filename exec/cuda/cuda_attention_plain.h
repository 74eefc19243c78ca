/* Attention on a GPU without tensor cores: any widths, all real types. It is the
 * reference for exec/cuda/cuda_flash.h, which has the same arguments, and runs where that
 * cannot. costmodel/tensor/op.h defines ATTENTION; exec/core/arrays.h, blocks of keys. */
#ifndef MS_EXEC_CUDA_CUDA_ATTENTION_PLAIN_H
#define MS_EXEC_CUDA_CUDA_ATTENTION_PLAIN_H

#include "exec/core/scalar.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ms_cuda_stream ms_cuda_stream;

/* Queries of a rank and one block of keys and values, in device memory. Shapes: b
 * sequences, s queries, t keys, n heads, g KV heads. Sums, lse and workspace are fp64 for
 * fp64, otherwise fp32. */
typedef struct ms_cuda_attention_args {
    ms_scalar scalar; /* type of all arrays but lse and, unless is_whole, results */
    long num_batch, num_queries, num_keys, num_heads, num_kv_heads;
    long width, value_width; /* widths of keys (d) and of values (w) */
    /* index of query 0, and of key 0, among the tokens that ranks store */
    long first_query, first_key;
    /* number of keys that a query sees, up to its own position; 0: all up to there */
    long window;
    const int *positions; /* position of each stored token; NULL if stored in order */
    double scale;         /* factor of scores before the softmax */
    double cap;           /* soft cap c: scores become c tanh(score / c); 0: none */
    /* ALiBi: heads of the whole model (0: none), and index of head 0 among them */
    long alibi_heads, first_head;
    /* Whether the block has all keys. If so, o, lse and gradients are overwritten. If
     * not, they are merged with, or added to, the present values, which have the type of
     * sums (fp32 for bf16). */
    bool is_whole;
    const void *q, *k, *v; /* [b s n d], [b t g d], [b t g w] */
    void *o, *lse;       /* [b s n w], [b s n] log-sum-exp; inputs of the backward pass */
    const void *go;      /* gradient of o, [b s n w] */
    void *gq, *gk, *gv;  /* gradients, shaped like q, k and v */
    void *probabilities; /* [b n s t] if attention stores them; otherwise NULL */
    void *workspace;
} ms_cuda_attention_args;

/* Merges a block of keys into o and lse. Workspace: one sum per query and head. */
void ms_cuda_attention_plain(ms_cuda_stream *stream, const ms_cuda_attention_args *args);
/* Sets `probabilities` to exp(score - lse), 0 where masked, by an lse over all keys.
 * Needs no workspace; o is unused. */
void ms_cuda_attention_probabilities(ms_cuda_stream *stream,
                                     const ms_cuda_attention_args *args);
/* Gradients of attention over a block of keys. Probabilities come from lse, or from
 * args->probabilities if not NULL; lse and o are final, over all keys. Workspace: one sum
 * per query and head. */
void ms_cuda_attention_plain_grad(ms_cuda_stream *stream,
                                  const ms_cuda_attention_args *args);

#ifdef __cplusplus
}
#endif

#endif
