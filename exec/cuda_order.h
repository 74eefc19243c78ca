/* Stable orders by small keys, made on a GPU without atomics: the same at every run.
 * Chunks of items count their keys, the counts are summed up over chunks, and every item
 * then knows its place (a pass of a radix sort; Satish, Harris and Garland 2009,
 * "Designing Efficient Sorting Algorithms for Manycore GPUs"). */
#ifndef MS_EXEC_CUDA_ORDER_H
#define MS_EXEC_CUDA_ORDER_H

#include "exec/scalar.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ms_cuda_stream ms_cuda_stream;

/* Most different keys of one pass. */
#define MS_CUDA_ORDER_KEYS 4096

/* Work space of the functions below: at most 2^31 - 1 items. */
size_t ms_cuda_order_bytes(long num_items, long num_keys);

/* Keys are numbers of type `scalar` (experts as reals); place[i] (num_items): where item
 * i comes in the order by key, items of equal keys in their order. */
typedef struct ms_cuda_order {
    ms_scalar scalar; /* fp32, fp64, bf16 */
    const void *keys;
    long num_items, num_keys;
    int *place;
    void *workspace; /* 8-byte aligned */
} ms_cuda_order;
void ms_cuda_order_places(ms_cuda_stream *stream, const ms_cuda_order *order);

/* counts[k] (num_keys) = number of items with key k; `place` is not used. Any number of
 * items, also 0. */
void ms_cuda_order_counts(ms_cuda_stream *stream, const ms_cuda_order *order,
                          long *counts);

/* sorted[] (num_items): the items 0 .. num_items - 1 by keys[] in 0 .. num_keys - 1, any
 * number of them, in as many passes as that takes. */
typedef struct ms_cuda_sort {
    const int *keys;
    long num_items, num_keys;
    int *sorted;
    void *workspace; /* 8-byte aligned, ms_cuda_sort_bytes */
} ms_cuda_sort;
size_t ms_cuda_sort_bytes(long num_items);
void ms_cuda_sort_items(ms_cuda_stream *stream, const ms_cuda_sort *sort);

#ifdef __cplusplus
}
#endif

#endif
