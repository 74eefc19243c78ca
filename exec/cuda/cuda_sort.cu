/* Stable orders by small keys. An item's place is the number of items of smaller keys +
 * that of its key in earlier chunks (both prefix sums) + those before it in its chunk. */
#include "exec/cuda/cuda_sort.h"

#include "exec/cuda/cuda_device.cuh"

#include <assert.h>

#define THREADS    256 /* threads per block, and items per chunk */
#define DIGIT_BITS 9   /* largest number of key bits per pass of a sort */
#define MOST_ITEMS 0x7fffffffL

namespace
{

int num_chunks(long num_items)
{
    return (int)((num_items + THREADS - 1) / THREADS);
}

/* ---- keys ---- */

template <class T> struct real_keys {
    const T *keys;
    int *place;
    __device__ int operator()(int i) const
    {
        return (int)value(keys[i]);
    }
    __device__ void place_item(int i, int at) const
    {
        place[i] = at;
    }
};

/* One digit of the keys. `order`: items sorted by lower digits; NULL: first pass. */
struct digit_keys {
    const int *keys, *order;
    int *sorted;
    int shift, mask;
    __device__ int item(int i) const
    {
        return order != nullptr ? order[i] : i;
    }
    __device__ int operator()(int i) const
    {
        return keys[item(i)] >> shift & mask;
    }
    __device__ void place_item(int i, int at) const
    {
        sorted[at] = item(i);
    }
};

/* ---- scans ---- */

/* Returns the sum of x over the block's threads before this one; *total: over all. */
__device__ int block_scan(int x, int *total)
{
    MS_SHARED(int, part, [THREADS / MS_WARP]);
    int lane = (int)threadIdx.x % MS_WARP, warp = (int)threadIdx.x / MS_WARP;
    int sum = x;
    for (int distance = 1; distance < MS_WARP; distance *= 2) {
        int before = __shfl_up_sync(MS_ALL_LANES, sum, (unsigned)distance);
        sum += lane >= distance ? before : 0;
    }
    if (lane == MS_WARP - 1)
        part[warp] = sum;
    __syncthreads();
    int before = 0, all = 0;
    for (int w = 0; w < (int)blockDim.x / MS_WARP; w++) {
        before += w < warp ? part[w] : 0;
        all += part[w];
    }
    __syncthreads(); /* the next call may overwrite `part` */
    *total = all;
    return before + sum - x;
}

/* Sets out[i] to in[0] + ... + in[i - 1], by one thread block; returns the whole sum. */
__device__ int scan(int *out, const int *in, int num)
{
    int sum = 0;
    for (int first = 0; first < num; first += (int)blockDim.x) {
        int i = first + (int)threadIdx.x, total;
        int before = block_scan(i < num ? in[i] : 0, &total);
        if (i < num)
            out[i] = sum + before;
        sum += total;
    }
    return sum;
}

/* ---- passes ---- */

/* Number of items before this one in the chunk with its key; *is_last: none follows. */
__device__ int rank_in_chunk(int key, bool *is_last)
{
    MS_SHARED(int, keys, [THREADS]);
    int self = (int)threadIdx.x, before = 0, after = 0;
    keys[self] = key;
    __syncthreads();
    for (int i = 0; i < THREADS; i++) {
        int same = keys[i] == key ? 1 : 0;
        before += i < self ? same : 0;
        after += i > self ? same : 0;
    }
    __syncthreads();
    *is_last = after == 0;
    return before;
}

/* counts[key][chunk] = number of the chunk's items with that key. */
template <class K>
__global__ void count_chunks(K keys, int num_items, int *counts, int num_keys)
{
    int chunk = (int)blockIdx.x, chunks = (int)gridDim.x;
    for (int key = (int)threadIdx.x; key < num_keys; key += THREADS)
        counts[(long)key * chunks + chunk] = 0;
    int i = chunk * THREADS + (int)threadIdx.x, key = i < num_items ? keys(i) : -1;
    bool is_last;
    /* contains a barrier, after which the chunk's counts are zero */
    int rank = rank_in_chunk(key, &is_last);
    if (key >= 0 && is_last)
        counts[(long)key * chunks + chunk] = rank + 1;
}

/* Replaces counts[key][chunk] by its sum over earlier chunks; a thread block per key. */
__global__ void scan_chunks(int *counts, int *totals, int chunks)
{
    int *of_key = counts + (long)blockIdx.x * chunks;
    int total = scan(of_key, of_key, chunks);
    if (threadIdx.x == 0)
        totals[blockIdx.x] = total;
}

template <class K>
__global__ void put_items(K keys, int num_items, const int *counts, const int *totals,
                          int num_keys)
{
    MS_DYNAMIC_SHARED(int, begin); /* sorted index of the first item of each key */
    int chunk = (int)blockIdx.x, chunks = (int)gridDim.x;
    scan(begin, totals, num_keys);
    int i = chunk * THREADS + (int)threadIdx.x, key = i < num_items ? keys(i) : -1;
    bool is_last;
    /* contains a barrier, after which `begin` is complete */
    int rank = rank_in_chunk(key, &is_last);
    if (key >= 0)
        keys.place_item(i, begin[key] + counts[(long)key * chunks + chunk] + rank);
}

__global__ void widen(long *to, const int *from, int num)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < num)
        to[i] = from[i];
}

/* ---- launches ---- */

/* Sets totals[key] to the number of items with that key, and counts[key][chunk], behind
 * totals[], to the number of these in earlier chunks. */
template <class K>
void count(ms_cuda_stream *stream, const K &keys, long num_items, long num_keys,
           int *totals)
{
    int chunks = num_chunks(num_items), *counts = totals + num_keys;
    assert(num_items <= MOST_ITEMS && num_keys <= MS_CUDA_ORDER_KEYS);
    if (chunks > 0)
        MS_LAUNCH((count_chunks<K>), (unsigned)chunks, THREADS, 0, stream, keys,
                  (int)num_items, counts, (int)num_keys);
    int warps = chunks > 0 ? (chunks + MS_WARP - 1) / MS_WARP : 1;
    unsigned threads = warps * MS_WARP < THREADS ? (unsigned)warps * MS_WARP : THREADS;
    MS_LAUNCH((scan_chunks), (unsigned)num_keys, threads, 0, stream, counts, totals,
              chunks);
}

template <class K>
void place_items(ms_cuda_stream *stream, const K &keys, long num_items, long num_keys,
                 int *totals)
{
    if (num_items <= 0)
        return;
    count(stream, keys, num_items, num_keys, totals);
    MS_LAUNCH((put_items<K>), (unsigned)num_chunks(num_items), THREADS,
              (size_t)num_keys * sizeof(int), stream, keys, (int)num_items,
              totals + num_keys, totals, (int)num_keys);
}

} // namespace

size_t ms_cuda_order_bytes(long num_items, long num_keys)
{
    return (size_t)num_keys * ((size_t)num_chunks(num_items) + 1) * sizeof(int);
}

void ms_cuda_order_places(ms_cuda_stream *stream, const ms_cuda_order *order)
{
    MS_BY_SCALAR(order->scalar, T, {
        real_keys<T> keys = {(const T *)order->keys, order->place};
        place_items(stream, keys, order->num_items, order->num_keys,
                    (int *)order->workspace);
    });
}

void ms_cuda_order_counts(ms_cuda_stream *stream, const ms_cuda_order *order,
                          long *counts)
{
    int *totals = (int *)order->workspace;
    MS_BY_SCALAR(order->scalar, T, {
        real_keys<T> keys = {(const T *)order->keys, nullptr};
        count(stream, keys, order->num_items, order->num_keys, totals);
    });
    MS_LAUNCH((widen), ms_blocks(order->num_keys, THREADS, MOST_ITEMS), THREADS, 0,
              stream, counts, totals, (int)order->num_keys);
}

size_t ms_cuda_sort_bytes(long num_items)
{
    return ms_cuda_order_bytes(num_items, 1L << DIGIT_BITS) +
           (size_t)num_items * sizeof(int);
}

void ms_cuda_sort_items(ms_cuda_stream *stream, const ms_cuda_sort *sort)
{
    int bits = 1, *other = (int *)sort->workspace, *totals = other + sort->num_items;
    while (sort->num_keys > 1L << bits)
        bits++;
    int passes = (bits + DIGIT_BITS - 1) / DIGIT_BITS,
        of_pass = (bits + passes - 1) / passes;
    const int *order = nullptr;
    for (int pass = 0; pass < passes; pass++) {
        /* alternates, so that the last pass writes `sorted` */
        int *to = (passes - pass) % 2 == 1 ? sort->sorted : other;
        digit_keys keys = {sort->keys, order, to, pass * of_pass, (1 << of_pass) - 1};
        place_items(stream, keys, sort->num_items, 1L << of_pass, totals);
        order = to;
    }
}
