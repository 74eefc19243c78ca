/* Backward attention on tensor cores (FlashAttention-2, Dao 2023, algorithm 2), without
 * atomics. One kernel keeps gradients of a tile of keys and values in registers and loops
 * over queries; its scores are (keys, queries), the layout that its next product needs.
 * The other keeps gradients of a tile of queries and loops over keys. */
#include "exec/cuda/cuda_flash.cuh"

namespace
{

/* Tile sizes. A thread block has WARPS x 16 PARTS own rows (keys in one kernel, queries
 * in the other) and loops over tiles of OTHERS rows, double-buffered in shared memory. */
template <int WIDTH_, int WARPS_, int PARTS_, int OTHERS_, int BLOCKS_> struct shape {
    static constexpr int WIDTH = WIDTH_, WARPS = WARPS_, PARTS = PARTS_;
    static constexpr int OWN_ROWS = PARTS * PART; /* number of a warp's own rows */
    static constexpr int ROWS = WARPS * OWN_ROWS, OTHERS = OTHERS_;
    static constexpr int THREADS = WARPS * MS_WARP, BLOCKS = BLOCKS_;
    /* shared memory: two arrays of own rows, two of other rows (double-buffered), and two
     * statistics per query (if queries are the other rows, double-buffered) */
    static constexpr int OTHER_SIZE = OTHERS * WIDTH, OWN_SIZE = ROWS * WIDTH;
    static constexpr size_t shared_bytes =
        (size_t)(2 * OWN_SIZE + 4 * OTHER_SIZE) * sizeof(bf16) +
        (size_t)(4 * OTHERS > 2 * ROWS ? 4 * OTHERS : 2 * ROWS) * sizeof(float);
};

/* ---- row statistics ---- */

/* Sets f.row_lse to lse times log2(e), and f.row_mean to dot products of o and go
 * (FlashAttention, algorithm 4). WIDTH / 8 threads share a query and head. */
template <int WIDTH> __global__ void prepare_rows(flash f, long num_rows)
{
    constexpr int threads = WIDTH / CHUNK;
    long at = (long)blockIdx.x * (blockDim.x / threads) + threadIdx.x / threads;
    bool is_row = at < num_rows;
    long head = at % f.num_heads, query = at / f.num_heads % f.padded,
         batch = at / f.num_heads / f.padded;
    bool is_there = is_row && query < f.num_queries;
    long row = (batch * f.num_queries + query) * f.num_heads + head;
    float sum = 0;
    if (is_there) {
        long first = row * WIDTH + threadIdx.x % threads * CHUNK;
        pack<bf16> o = load_pack(f.o + first), go = load_pack(f.go + first);
#pragma unroll
        for (int i = 0; i < CHUNK; i++)
            sum += value(o.at[i]) * value(go.at[i]);
    }
#pragma unroll
    for (int other = threads / 2; other > 0; other /= 2)
        sum += __shfl_xor_sync(MS_ALL_LANES, sum, other);
    if (!is_row || threadIdx.x % threads != 0)
        return;
    float lse = is_there ? f.lse[row] : -INFINITY;
    long to = (batch * f.num_heads + head) * f.padded + query;
    f.row_lse[to] = lse == -INFINITY ? INFINITY : lse * LOG2_E;
    f.row_mean[to] = sum;
}

__device__ __forceinline__ long prepared_row(const flash &f, int head, int first)
{
    return ((long)blockIdx.z * f.num_heads + head) * f.padded + first;
}

/* Loads row_lse of COUNT queries, then their row_mean, into shared memory `to`. */
template <int COUNT>
__device__ __forceinline__ void load_statistics(const flash &f, int head, int first,
                                                float *to)
{
    constexpr int floats = 4; /* floats in 16 bytes */
    int thread = recomputed_here((int)threadIdx.x);
    if (thread < 2 * COUNT / floats) {
        const float *from = thread < COUNT / floats ? f.row_lse : f.row_mean - COUNT;
        cp_async_16(to + thread * floats,
                    from + prepared_row(f, head, first) + thread * floats);
    }
}

/* ---- gradients of keys and values ---- */

/* A query head and the index of a tile of its queries. */
struct step {
    int head, tile;
};

/* The next query tile, in this or a later head, that sees the keys; head -1: none. */
template <class S>
__device__ __forceinline__ step next_step(const flash &f, span keys, int last_head,
                                          step at)
{
    int num_tiles = (f.num_queries + S::OTHERS - 1) / S::OTHERS;
    at.tile = next_queries<S::OTHERS>(f, keys, at.tile);
    while (at.tile >= num_tiles && at.head < last_head) {
        at.head++;
        at.tile = next_queries<S::OTHERS>(f, keys, 0);
        if (at.tile >= num_tiles)
            at.head = last_head; /* no head has a query that sees the keys */
    }
    if (at.tile >= num_tiles)
        at.head = -1;
    return at;
}

template <class S>
__device__ __forceinline__ void load_queries(const flash &f, step at, bf16 *to,
                                             float *statistics)
{
    int first = at.tile * S::OTHERS;
    load_tile<S::OTHERS, S::WIDTH, S::THREADS>(
        to, query_rows(f, f.q, S::WIDTH, at.head, first));
    load_tile<S::OTHERS, S::WIDTH, S::THREADS>(
        to + S::OTHER_SIZE, query_rows(f, f.go, S::WIDTH, at.head, first));
    load_statistics<S::OTHERS>(f, at.head, first, statistics);
}

/* Replaces scores p (keys, queries) by probabilities, and gradients g of probabilities by
 * gradients of unscaled scores. */
template <class S>
__device__ __forceinline__ void weigh_keys(const flash &f,
                                           accumulators<S::PARTS, S::OTHERS> &p,
                                           accumulators<S::PARTS, S::OTHERS> &g,
                                           const float *statistics)
{
    const float *lse = statistics + lane_of() % QUAD * 2, *mean = lse + S::OTHERS;
#pragma unroll
    for (int j = 0; j < S::OTHERS / CHUNK; j++) {
#pragma unroll
        for (int e = 0; e < 2; e++) {
            float shift = lse[j * CHUNK + e], less = mean[j * CHUNK + e];
#pragma unroll
            for (int i = 0; i < S::PARTS * 2; i++) {
                float &x = p[i / 2][j][i % 2 * 2 + e], &y = g[i / 2][j][i % 2 * 2 + e];
                x = power_of_2(fmaf(x, f.scale_log2, -shift));
                y = x * (y - less);
            }
        }
    }
}

/* Gradients of keys and values. Grid: (KV head, tile of keys, batch). Blocks of the first
 * keys start first, since most queries see them. */
template <class S>
__global__ void __launch_bounds__(S::THREADS, S::BLOCKS) flash_key_gradient(flash f)
{
    MS_DYNAMIC_SHARED(bf16, k);
    bf16 *v = k + S::OWN_SIZE, *others = v + S::OWN_SIZE;
    float *statistics = reinterpret_cast<float *>(others + 4 * S::OTHER_SIZE);
    int kv_head = (int)blockIdx.x, group = f.num_heads / f.num_kv_heads;
    int last_head = kv_head * group + group - 1, tile = (int)blockIdx.y;
    span keys = key_span<S::ROWS>(f, tile);
    step at = next_step<S>(f, keys, last_head, {kv_head * group, 0});
    load_tile<S::ROWS, S::WIDTH, S::THREADS>(
        k, key_rows(f, f.k, S::WIDTH, kv_head, tile * S::ROWS));
    load_tile<S::ROWS, S::WIDTH, S::THREADS>(
        v, key_rows(f, f.v, S::WIDTH, kv_head, tile * S::ROWS));
    if (at.head >= 0)
        load_queries<S>(f, at, others, statistics);
    cp_async_commit();
    accumulators<S::PARTS, S::WIDTH> gk = {}, gv = {};
    for (int stage = 0; at.head >= 0; stage ^= 1) {
        step next = next_step<S>(f, keys, last_head, {at.head, at.tile + 1});
        if (next.head >= 0)
            load_queries<S>(f, next, others + (stage ^ 1) * 2 * S::OTHER_SIZE,
                            statistics + (stage ^ 1) * 2 * S::OTHERS);
        cp_async_commit();
        cp_async_wait<1>();
        __syncthreads(); /* this half of the double buffer is loaded */
        const bf16 *q = others + stage * 2 * S::OTHER_SIZE, *go = q + S::OTHER_SIZE;
        int own = own_row<S::OWN_ROWS>(), first = tile * S::ROWS + own;
        accumulators<S::PARTS, S::OTHERS> p = {}, g = {};
        multiply_rows<S::WIDTH, S::PARTS, S::OTHERS>(p, k + own * S::WIDTH, q);
        if (!all_see(f, query_span<S::OTHERS>(f, at.tile), keys))
            mask<true, S::PARTS, S::OTHERS>(f, p, first, at.tile * S::OTHERS);
        multiply_rows<S::WIDTH, S::PARTS, S::OTHERS>(g, v + own * S::WIDTH, go);
        weigh_keys<S>(f, p, g, statistics + stage * 2 * S::OTHERS);
        add_weighted_rows<S::WIDTH, S::PARTS, S::OTHERS>(gv, p, go);
        add_weighted_rows<S::WIDTH, S::PARTS, S::OTHERS>(gk, g, q);
        __syncthreads(); /* this half of the double buffer is no longer needed */
        at = next;
    }
    int own = own_row<S::OWN_ROWS>(), first = tile * S::ROWS + own;
    cp_async_wait<0>();
    __syncthreads(); /* keys are loaded, even if there was no tile of queries */
    write_gradient<S::WIDTH, S::PARTS>(f, gk, f.scale, k + own * S::WIDTH, f.gk,
                                       key_rows(f, f.gk, S::WIDTH, kv_head, first));
    write_gradient<S::WIDTH, S::PARTS>(f, gv, 1, v + own * S::WIDTH, f.gv,
                                       key_rows(f, f.gv, S::WIDTH, kv_head, first));
}

/* ---- gradients of queries ---- */

template <class S>
__device__ __forceinline__ void load_keys(const flash &f, int kv_head, int tile, bf16 *to)
{
    load_tile<S::OTHERS, S::WIDTH, S::THREADS>(
        to, key_rows(f, f.k, S::WIDTH, kv_head, tile * S::OTHERS));
    load_tile<S::OTHERS, S::WIDTH, S::THREADS>(
        to + S::OTHER_SIZE, key_rows(f, f.v, S::WIDTH, kv_head, tile * S::OTHERS));
}

/* Replaces gradients g of probabilities by those of unscaled scores p (queries, keys). */
template <class S>
__device__ __forceinline__ void weigh_queries(const flash &f,
                                              const accumulators<S::PARTS, S::OTHERS> &p,
                                              accumulators<S::PARTS, S::OTHERS> &g,
                                              const float *statistics)
{
    const float *lse = statistics + lane_of() / QUAD, *mean = lse + S::ROWS;
#pragma unroll
    for (int i = 0; i < S::PARTS * 2; i++) {
        float shift = lse[i * CHUNK], less = mean[i * CHUNK];
#pragma unroll
        for (int j = 0; j < S::OTHERS / CHUNK * 2; j++) {
            int e = i % 2 * 2 + j % 2;
            float weight = power_of_2(fmaf(p[i / 2][j / 2][e], f.scale_log2, -shift));
            g[i / 2][j / 2][e] = weight * (g[i / 2][j / 2][e] - less);
        }
    }
}

/* Gradients of queries. Grid: (head, tile of queries, batch). Blocks of the last queries
 * start first, since they see the most keys. */
template <class S>
__global__ void __launch_bounds__(S::THREADS, S::BLOCKS) flash_query_gradient(flash f)
{
    MS_DYNAMIC_SHARED(bf16, q);
    bf16 *go = q + S::OWN_SIZE, *others = go + S::OWN_SIZE;
    float *statistics = reinterpret_cast<float *>(others + 4 * S::OTHER_SIZE);
    int head = (int)blockIdx.x, kv_head = head / (f.num_heads / f.num_kv_heads);
    int tile = (int)(gridDim.y - 1 - blockIdx.y);
    int num_tiles = (f.num_keys + S::OTHERS - 1) / S::OTHERS;
    span queries = query_span<S::ROWS>(f, tile);
    int at = next_keys<S::OTHERS>(f, queries, 0);
    load_tile<S::ROWS, S::WIDTH, S::THREADS>(
        q, query_rows(f, f.q, S::WIDTH, head, tile * S::ROWS));
    load_tile<S::ROWS, S::WIDTH, S::THREADS>(
        go, query_rows(f, f.go, S::WIDTH, head, tile * S::ROWS));
    load_statistics<S::ROWS>(f, head, tile * S::ROWS, statistics);
    if (at < num_tiles)
        load_keys<S>(f, kv_head, at, others);
    cp_async_commit();
    accumulators<S::PARTS, S::WIDTH> gq = {};
    for (int stage = 0; at < num_tiles; stage ^= 1) {
        int next = next_keys<S::OTHERS>(f, queries, at + 1);
        if (next < num_tiles)
            load_keys<S>(f, kv_head, next, others + (stage ^ 1) * 2 * S::OTHER_SIZE);
        cp_async_commit();
        cp_async_wait<1>();
        __syncthreads(); /* this half of the double buffer is loaded */
        const bf16 *k = others + stage * 2 * S::OTHER_SIZE, *v = k + S::OTHER_SIZE;
        int key = at * S::OTHERS;
        int own = own_row<S::OWN_ROWS>(), first = tile * S::ROWS + own;
        accumulators<S::PARTS, S::OTHERS> p = {}, g = {};
        multiply_rows<S::WIDTH, S::PARTS, S::OTHERS>(p, q + own * S::WIDTH, k);
        if (key + S::OTHERS > f.num_keys ||
            !all_see(f, queries, key_span<S::OTHERS>(f, at)))
            mask<false, S::PARTS, S::OTHERS>(f, p, first, key);
        multiply_rows<S::WIDTH, S::PARTS, S::OTHERS>(g, go + own * S::WIDTH, v);
        weigh_queries<S>(f, p, g, statistics + own);
        add_weighted_rows<S::WIDTH, S::PARTS, S::OTHERS>(gq, g, k);
        __syncthreads(); /* this half of the double buffer is no longer needed */
        at = next;
    }
    int own = own_row<S::OWN_ROWS>(), first = tile * S::ROWS + own;
    cp_async_wait<0>();
    __syncthreads(); /* queries are loaded, even if there was no tile of keys */
    write_gradient<S::WIDTH, S::PARTS>(f, gq, f.scale, q + own * S::WIDTH, f.gq,
                                       query_rows(f, f.gq, S::WIDTH, head, first));
}

/* ---- launches ---- */

template <int WIDTH>
void launch_rows(ms_cuda_stream *stream, const flash &f, long num_batch)
{
    constexpr int threads = 256, rows = threads / (WIDTH / CHUNK);
    long num_rows = num_batch * f.padded * f.num_heads;
    MS_LAUNCH((prepare_rows<WIDTH>), dim3(ms_blocks(num_rows, rows, LONG_MAX)),
              dim3(threads), 0, stream, f, num_rows);
}

template <class S>
void launch_key_gradient(ms_cuda_stream *stream, const ms_cuda_attention_args *a, flash f,
                         span **workspace)
{
    dim3 grid((unsigned)a->num_kv_heads, tiles_of(a->num_keys, S::ROWS),
              (unsigned)a->num_batch);
    if (grid.x == 0 || grid.y == 0 || grid.z == 0)
        return;
    set_spans(stream, a, S::OTHERS, S::ROWS, &f, workspace);
    MS_LAUNCH((flash_key_gradient<S>), grid, dim3(S::THREADS), S::shared_bytes, stream,
              f);
}

template <class S>
void launch_query_gradient(ms_cuda_stream *stream, const ms_cuda_attention_args *a,
                           flash f, span **workspace)
{
    dim3 grid((unsigned)a->num_heads, tiles_of(a->num_queries, S::ROWS),
              (unsigned)a->num_batch);
    if (grid.x == 0 || grid.y == 0 || grid.z == 0)
        return;
    set_spans(stream, a, S::ROWS, S::OTHERS, &f, workspace);
    MS_LAUNCH((flash_query_gradient<S>), grid, dim3(S::THREADS), S::shared_bytes, stream,
              f);
}

template <class KEYS, class QUERIES>
void launch(ms_cuda_stream *stream, const ms_cuda_attention_args *a)
{
    static_assert(MS_CUDA_FLASH_PADDING % KEYS::OTHERS == 0 &&
                      MS_CUDA_FLASH_PADDING % QUERIES::ROWS == 0,
                  "tiles of queries end with the padding");
    flash f = read_args(a);
    f.padded = (f.num_queries + MS_CUDA_FLASH_PADDING - 1) / MS_CUDA_FLASH_PADDING *
               MS_CUDA_FLASH_PADDING;
    long num_rows = a->num_batch * f.num_heads * f.padded;
    f.row_lse = (float *)a->workspace;
    f.row_mean = f.row_lse + num_rows;
    span *workspace = (span *)(f.row_mean + num_rows);
    if (num_rows > 0)
        launch_rows<KEYS::WIDTH>(stream, f, a->num_batch);
    launch_key_gradient<KEYS>(stream, a, f, &workspace);
    launch_query_gradient<QUERIES>(stream, a, f, &workspace);
}

} // namespace

extern "C" void ms_cuda_flash_grad(ms_cuda_stream *stream,
                                   const ms_cuda_attention_args *a)
{
    if (a->width == 64)
        launch<shape<64, 4, 2, 32, 2>, shape<64, 4, 2, 64, 2>>(stream, a);
    else
        launch<shape<128, 8, 1, 64, 1>, shape<128, 4, 2, 32, 2>>(stream, a);
}
