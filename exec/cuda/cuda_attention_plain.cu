/* Attention without tensor cores: tiles of scores in shared memory. merge_lse computes
 * the log-sum-exp (lse) of every query; then sum_rows computes o, gq, gk or gv as sums of
 * rows, weighted by probabilities or score gradients, which it recomputes from lse. Every
 * sum has a fixed order. */
#include "exec/cuda/cuda_attention_plain.h"

#include "exec/core/alibi.h"
#include "exec/cuda/cuda_device.cuh"

#include <climits>
#include <math.h>

namespace
{

constexpr int TILE = 32;         /* queries and keys per tile */
constexpr int PITCH = TILE + 1;  /* row stride in shared memory; no bank conflicts */
constexpr int COLUMNS = 64;      /* output columns per thread block */
constexpr int SIDE = 16;         /* thread blocks have SIDE x SIDE threads */
constexpr int PER = TILE / SIDE; /* a thread has PER x PER scores of a tile */
constexpr int PER_COLUMNS = COLUMNS / SIDE;
constexpr int THREADS = SIDE * SIDE;

using args = ms_cuda_attention_args;
template <class T> using sum_of = typename number<T>::sum;

template <class S> struct shared_memory {
    S chunk[2 * TILE * PITCH];  /* TILE columns of each of two factors */
    S weight[TILE * PITCH];     /* (queries, keys) probabilities or score gradients */
    S lse[TILE], mean[TILE];    /* per query: log-sum-exp; dot product of o and go */
    int query[TILE], key[TILE]; /* positions of the tile's queries and keys */
};

/* A tile of scores: queries and keys of one sequence, query head and KV head. */
struct tile {
    long batch, head, kv_head;
    long first_query, first_key;
    int num_queries, num_keys;
    double slope; /* of ALiBi; 0 without */
};

template <class T> struct rows {
    const T *first;
    long stride;
    int count;
};

__device__ inline int tile_rows(long count, long first)
{
    return (int)min(count - first, (long)TILE);
}

__device__ inline int thread_of_block()
{
    return (int)(threadIdx.y * SIDE + threadIdx.x);
}

__device__ inline void set_head(const args &a, tile &t, long head)
{
    t.head = head;
    t.kv_head = head / (a.num_heads / a.num_kv_heads);
    t.slope = a.alibi_heads > 0 ? ms_alibi_slope(a.alibi_heads, a.first_head + head) : 0;
}

/* ---- addresses ---- */

template <class T>
__device__ rows<T> query_rows(const args &a, const tile &t, const void *x, long width)
{
    long row = (t.batch * a.num_queries + t.first_query) * a.num_heads + t.head;
    return {(const T *)x + row * width, a.num_heads * width, t.num_queries};
}

template <class T>
__device__ rows<T> key_rows(const args &a, const tile &t, const void *x, long width)
{
    long row = (t.batch * a.num_keys + t.first_key) * a.num_kv_heads + t.kv_head;
    return {(const T *)x + row * width, a.num_kv_heads * width, t.num_keys};
}

/* Index of a query's statistic (such as lse) in an array (batch, queries, heads). */
__device__ inline long statistic(const args &a, const tile &t, int query)
{
    return (t.batch * a.num_queries + t.first_query + query) * a.num_heads + t.head;
}

template <class T>
__device__ T *stored_probability(const args &a, const tile &t, int query)
{
    long row = (t.batch * a.num_heads + t.head) * a.num_queries + t.first_query + query;
    return (T *)a.probabilities + row * a.num_keys + t.first_key;
}

/* ---- masks ---- */

__device__ inline int position(const args &a, long stored)
{
    return a.positions != NULL ? a.positions[stored] : (int)stored;
}

__device__ inline bool sees(const args &a, int query, int key)
{
    return key <= query && (a.window <= 0 || key > query - a.window);
}

/* Loads a tile's positions; false if none of its queries sees any of its keys. */
template <class S>
__device__ bool begin_tile(const args &a, const tile &t, shared_memory<S> &r)
{
    int i = thread_of_block();
    __syncthreads(); /* all threads have finished the previous tile */
    if (i < t.num_queries)
        r.query[i] = position(a, a.first_query + t.first_query + i);
    if (i < t.num_keys)
        r.key[i] = position(a, a.first_key + t.first_key + i);
    __syncthreads();
    int least_query = r.query[0], most_query = least_query;
    int least_key = r.key[0], most_key = least_key;
    for (int j = 1; j < t.num_queries; j++) {
        least_query = min(least_query, r.query[j]);
        most_query = max(most_query, r.query[j]);
    }
    for (int j = 1; j < t.num_keys; j++) {
        least_key = min(least_key, r.key[j]);
        most_key = max(most_key, r.key[j]);
    }
    return least_key <= most_query &&
           (a.window <= 0 || most_key > least_query - a.window);
}

/* ---- matrix products ---- */

/* Loads TILE (if pitch is PITCH) or COLUMNS columns of x from `first` on; 0 outside x. */
template <class T>
__device__ void load(sum_of<T> *to, int pitch, const rows<T> &x, long first, long width)
{
    int columns = pitch == PITCH ? TILE : COLUMNS;
    for (int i = thread_of_block(); i < TILE * columns; i += THREADS) {
        int row = i / columns, column = i % columns;
        bool inside = row < x.count && first + column < width;
        to[row * pitch + column] =
            inside ? value(x.first[row * x.stride + first + column]) : 0;
    }
}

/* sum[i][j] += dot product of row threadIdx.y + i SIDE of x and row threadIdx.x + j SIDE
 * of y. */
template <class T>
__device__ void multiply(shared_memory<sum_of<T>> &r, const rows<T> &x, const rows<T> &y,
                         long width, sum_of<T> (&sum)[PER][PER])
{
    sum_of<T> *left = r.chunk, *right = r.chunk + TILE * PITCH;
    for (long first = 0; first < width; first += TILE) {
        __syncthreads();
        load(left, PITCH, x, first, width);
        load(right, PITCH, y, first, width);
        __syncthreads();
        for (int k = 0; k < TILE; k++) {
            for (int i = 0; i < PER; i++)
                for (int j = 0; j < PER; j++)
                    sum[i][j] += left[((int)threadIdx.y + i * SIDE) * PITCH + k] *
                                 right[((int)threadIdx.x + j * SIDE) * PITCH + k];
        }
    }
}

/* Adds r.weight times rows x to sum. The products are summed over the tile's keys or, if
 * BY_KEYS (results are rows of keys: gk, gv), over its queries. */
template <bool BY_KEYS, class T>
__device__ void add_weighted(shared_memory<sum_of<T>> &r, const rows<T> &x, long first,
                             long width, sum_of<T> (&sum)[PER][PER_COLUMNS])
{
    __syncthreads();
    load(r.chunk, COLUMNS, x, first, width);
    __syncthreads();
    for (int k = 0; k < TILE; k++) {
        for (int i = 0; i < PER; i++) {
            int row = (int)threadIdx.y + i * SIDE;
            sum_of<T> weight = r.weight[BY_KEYS ? k * PITCH + row : row * PITCH + k];
            for (int j = 0; j < PER_COLUMNS; j++)
                sum[i][j] += weight * r.chunk[k * COLUMNS + threadIdx.x + j * SIDE];
        }
    }
}

/* ---- scores ---- */

/* Calls element(query, key, sum) for each element of a tile that the thread holds. */
template <class S, class F> __device__ void for_elements(S (&sum)[PER][PER], F element)
{
    for (int i = 0; i < PER; i++)
        for (int j = 0; j < PER; j++)
            element((int)threadIdx.y + i * SIDE, (int)threadIdx.x + j * SIDE, sum[i][j]);
}

template <class S>
__device__ bool is_seen(const args &a, const tile &t, const shared_memory<S> &r,
                        int query, int key)
{
    return query < t.num_queries && key < t.num_keys &&
           sees(a, r.query[query], r.key[key]);
}

/* The score of a product of query and key. */
template <class S>
__device__ S score_of(const args &a, const tile &t, const shared_memory<S> &r, int query,
                      int key, S product)
{
    S score = product * (S)a.scale;
    if (a.cap > 0)
        score = (S)a.cap * tanh(score / (S)a.cap);
    return score + (S)t.slope * (S)(r.key[key] - r.query[query]);
}

/* Multiplies gradients of capped scores by the derivatives of the cap. */
template <class T>
__device__ void through_cap(const args &a, const tile &t, shared_memory<sum_of<T>> &r,
                            sum_of<T> (&gradient)[PER][PER])
{
    using S = sum_of<T>;
    S product[PER][PER] = {};
    multiply<T>(r, query_rows<T>(a, t, a.q, a.width), key_rows<T>(a, t, a.k, a.width),
                a.width, product);
    for (int i = 0; i < PER; i++) {
        for (int j = 0; j < PER; j++) {
            S y = tanh(product[i][j] * (S)a.scale / (S)a.cap);
            gradient[i][j] *= 1 - y * y;
        }
    }
}

/* Sets the thread's elements of p to exp(score - lse), 0 where masked. */
template <class T>
__device__ void probabilities(const args &a, const tile &t, shared_memory<sum_of<T>> &r,
                              sum_of<T> (&p)[PER][PER])
{
    using S = sum_of<T>;
    multiply<T>(r, query_rows<T>(a, t, a.q, a.width), key_rows<T>(a, t, a.k, a.width),
                a.width, p);
    for_elements(p, [&](int query, int key, S &x) {
        x = is_seen(a, t, r, query, key)
                ? exp(score_of(a, t, r, query, key, x) - r.lse[query])
                : 0;
    });
}

template <class T>
__device__ void load_probabilities(const args &a, const tile &t, sum_of<T> (&p)[PER][PER])
{
    for_elements(p, [&](int query, int key, sum_of<T> &x) {
        bool inside = query < t.num_queries && key < t.num_keys;
        x = inside ? value(stored_probability<T>(a, t, query)[key]) : 0;
    });
}

/* ---- log-sum-exp ---- */

template <class T>
__device__ void score_tile(const args &a, const tile &t, shared_memory<sum_of<T>> &r)
{
    using S = sum_of<T>;
    S score[PER][PER] = {};
    multiply<T>(r, query_rows<T>(a, t, a.q, a.width), key_rows<T>(a, t, a.k, a.width),
                a.width, score);
    for_elements(score, [&](int query, int key, S x) {
        r.weight[query * PITCH + key] = is_seen(a, t, r, query, key)
                                            ? score_of(a, t, r, query, key, x)
                                            : -(S)INFINITY;
    });
    __syncthreads();
}

/* A query's largest score (-infinity before any key) and its sum of exp(score - max). */
template <class S> struct running {
    S max, sum;
};

template <class S> __device__ void add_row(running<S> &x, const S *score)
{
    S max = x.max;
    for (int key = 0; key < TILE; key++)
        max = score[key] > max ? score[key] : max;
    if (max == -(S)INFINITY)
        return;
    x.sum *= exp(x.max - max);
    for (int key = 0; key < TILE; key++)
        x.sum += exp(score[key] - max);
    x.max = max;
}

/* Updates lse by a block of keys; workspace: the factor for o of earlier blocks. */
template <class T> __global__ void merge_lse(args a)
{
    using S = sum_of<T>;
    MS_DYNAMIC_SHARED(shared_memory<S>, shared);
    shared_memory<S> &r = *shared;
    tile t = {};
    t.batch = blockIdx.z;
    set_head(a, t, blockIdx.y);
    t.first_query = (long)blockIdx.x * TILE;
    t.num_queries = tile_rows(a.num_queries, t.first_query);
    int query = thread_of_block();
    bool has_row = query < t.num_queries;
    S *lse = (S *)a.lse + statistic(a, t, query);
    S before = has_row && !a.is_whole ? *lse : -(S)INFINITY;
    running<S> x = {before, before == -(S)INFINITY ? (S)0 : (S)1};
    for (; t.first_key < a.num_keys; t.first_key += TILE) {
        t.num_keys = tile_rows(a.num_keys, t.first_key);
        if (!begin_tile(a, t, r))
            continue;
        score_tile<T>(a, t, r);
        if (has_row)
            add_row(x, r.weight + query * PITCH);
    }
    if (!has_row)
        return;
    S after = x.sum > 0 ? x.max + log(x.sum) : -(S)INFINITY;
    *lse = after;
    ((S *)a.workspace)[statistic(a, t, query)] =
        before == -(S)INFINITY ? (S)0 : exp(before - after);
}

/* ---- outputs ---- */

enum result {
    OUTPUT,
    QUERY_GRADIENT,
    KEY_GRADIENT,
    VALUE_GRADIENT
};

/* Sets r.weight of a tile: probabilities; for gq and gk the gradients of scores, which
 * have a soft cap if CAPPED. */
template <class T, result R, bool CAPPED>
__device__ void weigh_tile(const args &a, const tile &t, shared_memory<sum_of<T>> &r)
{
    using S = sum_of<T>;
    constexpr bool is_score_gradient = R == QUERY_GRADIENT || R == KEY_GRADIENT;
    S p[PER][PER] = {}, g[PER][PER] = {};
    if (R != OUTPUT && a.probabilities != NULL)
        load_probabilities<T>(a, t, p);
    else
        probabilities<T>(a, t, r, p);
    if (is_score_gradient)
        multiply<T>(r, query_rows<T>(a, t, a.go, a.value_width),
                    key_rows<T>(a, t, a.v, a.value_width), a.value_width, g);
    for (int i = 0; i < PER; i++)
        for (int j = 0; j < PER; j++)
            if (is_score_gradient)
                p[i][j] *= (g[i][j] - r.mean[(int)threadIdx.y + i * SIDE]) * (S)a.scale;
    if constexpr (CAPPED)
        through_cap<T>(a, t, r, p);
    for_elements(
        p, [&](int query, int key, S weight) { r.weight[query * PITCH + key] = weight; });
}

template <class T, result R>
__device__ void read_statistics(const args &a, const tile &t, shared_memory<sum_of<T>> &r)
{
    using S = sum_of<T>;
    int query = thread_of_block();
    if (query < TILE) {
        bool inside = query < t.num_queries;
        r.lse[query] = inside ? ((const S *)a.lse)[statistic(a, t, query)] : 0;
        r.mean[query] =
            inside && R != OUTPUT ? ((const S *)a.workspace)[statistic(a, t, query)] : 0;
    }
    __syncthreads();
}

/* The array whose weighted rows add up to result R (o, gq, gk or gv). */
template <result R> __device__ const void *source(const args &a)
{
    return R == OUTPUT ? a.v : R == QUERY_GRADIENT ? a.k : R == KEY_GRADIENT ? a.q : a.go;
}

template <result R> __device__ void *target(const args &a)
{
    return R == OUTPUT           ? a.o
           : R == QUERY_GRADIENT ? a.gq
           : R == KEY_GRADIENT   ? a.gk
                                 : a.gv;
}

template <class T, result R>
__device__ void write_result(const args &a, const tile &t, long first, long width,
                             sum_of<T> (&sum)[PER][PER_COLUMNS])
{
    using S = sum_of<T>;
    constexpr bool by_keys = R == KEY_GRADIENT || R == VALUE_GRADIENT;
    rows<T> to = by_keys ? key_rows<T>(a, t, target<R>(a), width)
                         : query_rows<T>(a, t, target<R>(a), width);
    for (int i = 0; i < PER; i++) {
        int row = (int)threadIdx.y + i * SIDE;
        if (row >= to.count)
            break;
        S factor = 1;
        if (R == OUTPUT)
            factor = ((const S *)a.workspace)[statistic(a, t, row)];
        for (int j = 0; j < PER_COLUMNS; j++) {
            long column = first + threadIdx.x + j * SIDE;
            if (column >= width)
                break;
            long place = to.first - (T *)target<R>(a) + row * to.stride + column;
            if (a.is_whole) {
                ((T *)target<R>(a))[place] = stored<T>(sum[i][j]);
                continue;
            }
            S *x = (S *)target<R>(a) + place;
            *x = sum[i][j] + factor * *x;
        }
    }
}

/* Moves t to another tile. `outer` is the first row that the thread block computes (o and
 * gq: a query; gk and gv: a key), `inner` the first of the rows to add to it. */
template <result R>
__device__ void move_to(const args &a, tile &t, long head, long outer, long inner)
{
    constexpr bool by_keys = R == KEY_GRADIENT || R == VALUE_GRADIENT;
    set_head(a, t, head);
    t.first_query = by_keys ? inner : outer;
    t.first_key = by_keys ? outer : inner;
    t.num_queries = tile_rows(a.num_queries, t.first_query);
    t.num_keys = tile_rows(a.num_keys, t.first_key);
}

/* Computes R (o, gq, gk or gv). Grid: (tile, head, sequence and columns). For gk and gv,
 * blockIdx.y is a KV head, and the block sums over the query heads that share it. */
template <class T, result R, bool CAPPED> __global__ void sum_rows(args a)
{
    using S = sum_of<T>;
    constexpr bool by_keys = R == KEY_GRADIENT || R == VALUE_GRADIENT;
    constexpr bool has_value_width = R == OUTPUT || R == VALUE_GRADIENT;
    MS_DYNAMIC_SHARED(shared_memory<S>, shared);
    shared_memory<S> &r = *shared;
    long width = has_value_width ? a.value_width : a.width;
    long first = (long)(blockIdx.z / a.num_batch) * COLUMNS;
    long num_heads = by_keys ? a.num_heads / a.num_kv_heads : 1;
    long first_head = blockIdx.y * num_heads, outer = (long)blockIdx.x * TILE;
    tile t = {};
    t.batch = blockIdx.z % a.num_batch;
    S sum[PER][PER_COLUMNS] = {};
    for (long i = 0; i < num_heads; i++) {
        for (long inner = 0; inner < (by_keys ? a.num_queries : a.num_keys);
             inner += TILE) {
            move_to<R>(a, t, first_head + i, outer, inner);
            if (!begin_tile(a, t, r))
                continue;
            read_statistics<T, R>(a, t, r);
            weigh_tile<T, R, CAPPED>(a, t, r);
            const void *from = source<R>(a);
            rows<T> x = by_keys ? query_rows<T>(a, t, from, width)
                                : key_rows<T>(a, t, from, width);
            add_weighted<by_keys, T>(r, x, first, width, sum);
        }
    }
    /* sets t's rows of the result, even if the loops did not run */
    move_to<R>(a, t, first_head, outer, 0);
    write_result<T, R>(a, t, first, width, sum);
}

/* Sets a.workspace to dot products of o and go; one warp per (sequence, query, head). */
template <class T> __global__ void row_means(args a)
{
    using S = sum_of<T>;
    long row = (long)blockIdx.x * (THREADS / MS_WARP) + threadIdx.x / MS_WARP;
    if (row >= a.num_batch * a.num_queries * a.num_heads)
        return;
    const T *o = (const T *)a.o + row * a.value_width,
            *go = (const T *)a.go + row * a.value_width;
    S sum = 0;
    for (long i = threadIdx.x % MS_WARP; i < a.value_width; i += MS_WARP)
        sum += value(o[i]) * value(go[i]);
    sum = warp_sum(sum);
    if (threadIdx.x % MS_WARP == 0)
        ((S *)a.workspace)[row] = sum;
}

/* Writes a tile of probabilities. Grid: (key tile, query tile, batch and head). */
template <class T> __global__ void store_probabilities(args a)
{
    using S = sum_of<T>;
    MS_DYNAMIC_SHARED(shared_memory<S>, shared);
    shared_memory<S> &r = *shared;
    tile t = {};
    t.batch = blockIdx.z / a.num_heads;
    set_head(a, t, blockIdx.z % a.num_heads);
    t.first_query = (long)blockIdx.y * TILE;
    t.first_key = (long)blockIdx.x * TILE;
    t.num_queries = tile_rows(a.num_queries, t.first_query);
    t.num_keys = tile_rows(a.num_keys, t.first_key);
    S p[PER][PER] = {};
    if (begin_tile(a, t, r)) {
        read_statistics<T, OUTPUT>(a, t, r);
        probabilities<T>(a, t, r, p);
    }
    for_elements(p, [&](int query, int key, S x) {
        if (query < t.num_queries && key < t.num_keys)
            stored_probability<T>(a, t, query)[key] = stored<T>(x);
    });
}

/* ---- launches ---- */

unsigned tiles_of(long count)
{
    return (unsigned)((count + TILE - 1) / TILE);
}

template <class T, result R> void launch_sum(ms_cuda_stream *stream, const args &a)
{
    constexpr bool by_keys = R == KEY_GRADIENT || R == VALUE_GRADIENT;
    long width = R == OUTPUT || R == VALUE_GRADIENT ? a.value_width : a.width;
    unsigned chunks = (unsigned)((width + COLUMNS - 1) / COLUMNS);
    dim3 grid(tiles_of(by_keys ? a.num_keys : a.num_queries),
              (unsigned)(by_keys ? a.num_kv_heads : a.num_heads),
              (unsigned)a.num_batch * chunks);
    if (grid.x == 0 || grid.y == 0 || grid.z == 0)
        return;
    size_t shared = sizeof(shared_memory<sum_of<T>>);
    if constexpr (R == QUERY_GRADIENT || R == KEY_GRADIENT) {
        if (a.cap > 0) {
            MS_LAUNCH((sum_rows<T, R, true>), grid, dim3(SIDE, SIDE), shared, stream, a);
            return;
        }
    }
    MS_LAUNCH((sum_rows<T, R, false>), grid, dim3(SIDE, SIDE), shared, stream, a);
}

template <class T> void attend(ms_cuda_stream *stream, const args &a)
{
    dim3 grid(tiles_of(a.num_queries), (unsigned)a.num_heads, (unsigned)a.num_batch);
    if (grid.x == 0 || grid.y == 0 || grid.z == 0)
        return;
    MS_LAUNCH((merge_lse<T>), grid, dim3(SIDE, SIDE), sizeof(shared_memory<sum_of<T>>),
              stream, a);
    launch_sum<T, OUTPUT>(stream, a);
}

template <class T> void attend_grad(ms_cuda_stream *stream, const args &a)
{
    long num_rows = a.num_batch * a.num_queries * a.num_heads;
    if (num_rows > 0)
        MS_LAUNCH((row_means<T>), dim3(ms_blocks(num_rows, THREADS / MS_WARP, LONG_MAX)),
                  dim3(THREADS), 0, stream, a);
    launch_sum<T, VALUE_GRADIENT>(stream, a);
    launch_sum<T, KEY_GRADIENT>(stream, a);
    launch_sum<T, QUERY_GRADIENT>(stream, a);
}

template <class T> void store(ms_cuda_stream *stream, const args &a)
{
    dim3 grid(tiles_of(a.num_keys), tiles_of(a.num_queries),
              (unsigned)(a.num_batch * a.num_heads));
    if (grid.x == 0 || grid.y == 0 || grid.z == 0)
        return;
    MS_LAUNCH((store_probabilities<T>), grid, dim3(SIDE, SIDE),
              sizeof(shared_memory<sum_of<T>>), stream, a);
}

} // namespace

extern "C" void ms_cuda_attention_plain(ms_cuda_stream *stream, const args *a)
{
    MS_BY_SCALAR(a->scalar, T, attend<T>(stream, *a));
}

extern "C" void ms_cuda_attention_probabilities(ms_cuda_stream *stream, const args *a)
{
    MS_BY_SCALAR(a->scalar, T, store<T>(stream, *a));
}

extern "C" void ms_cuda_attention_plain_grad(ms_cuda_stream *stream, const args *a)
{
    MS_BY_SCALAR(a->scalar, T, attend_grad<T>(stream, *a));
}
