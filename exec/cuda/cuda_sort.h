/* Stable orders by small keys on a GPU, without atomics: results are reproducible. Each
 * chunk of items counts its keys; sums of counts over chunks then give each item its
 * place (one pass of a radix sort; Satish, Harris and Garland 2009, "Designing Efficient
 * Sorting Algorithms for Manycore GPUs"). */
#ifndef MS_EXEC_CUDA_CUDA_SORT_H
#define MS_EXEC_CUDA_CUDA_SORT_H

#include "exec/core/scalar.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ms_cuda_stream ms_cuda_stream;

/* Largest number of different keys in one pass. */
#define MS_CUDA_ORDER_KEYS 4096

/* Bytes of workspace for ms_cuda_order (at most 2^31 - 1 items). */
size_t ms_cuda_order_bytes(long num_items, long num_keys);

/* Items i < num_items with keys keys[i], integers stored as reals (expert indices).
 * ms_cuda_order_places sets place[i] to item i's index in the stable order by key. */
typedef struct ms_cuda_order {
    ms_scalar scalar; /* type of the keys: fp32, fp64 or bf16 */
    const void *keys;
    long num_items, num_keys;
    int *place;
    void *workspace; /* ms_cuda_order_bytes, 8-byte aligned */
} ms_cuda_order;
void ms_cuda_order_places(ms_cuda_stream *stream, const ms_cuda_order *order);

/* Sets counts[k], k < num_keys, to the number of items with key k; `place` is unused. */
void ms_cuda_order_counts(ms_cuda_stream *stream, const ms_cuda_order *order,
                          long *counts);

/* ms_cuda_sort_items sets sorted[] to 0 .. num_items - 1, in the stable order of their
 * keys[], which are in 0 .. num_keys - 1; many keys take several passes. */
typedef struct ms_cuda_sort {
    const int *keys;
    long num_items, num_keys;
    int *sorted;
    void *workspace; /* ms_cuda_sort_bytes, 8-byte aligned */
} ms_cuda_sort;
size_t ms_cuda_sort_bytes(long num_items);
void ms_cuda_sort_items(ms_cuda_stream *stream, const ms_cuda_sort *sort);

#ifdef __cplusplus
}
#endif

#endif
