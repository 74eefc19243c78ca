/* Parts shared by the forward and backward kernels of exec/cuda/cuda_flash*.cu: tiles in
 * shared memory, products of a warp's rows with them, masks. */
#ifndef MS_EXEC_CUDA_FLASH_CUH
#define MS_EXEC_CUDA_FLASH_CUH

#include "exec/cuda/cuda_flash.h"

#include "exec/cuda/cuda_device.cuh"

#include <climits>

namespace
{

constexpr int PART = 16; /* rows, columns and depth of a tensor core product */
constexpr int CHUNK = 8; /* bf16 elements in 16 bytes */
constexpr int QUAD = 4;  /* lanes that share a row of a product's result */
constexpr float LOG2_E = 1.442695041F, LN_2 = 0.6931471806F;

/* Least and largest position of the tokens of a tile. */
struct span {
    int least, most;
};

struct flash {
    int num_queries, num_keys, num_heads, num_kv_heads;
    int first_query, first_key, window;
    bool is_whole; /* false: o, gq, gk, gv are fp32 and add up over blocks of keys */
    /* factor of scores, and log2(e) times that factor, for exp2 */
    float scale, scale_log2;
    const int *positions;
    /* [tile]: least and largest position; NULL if tokens are stored in order */
    const span *query_spans, *key_spans;
    const bf16 *q, *k, *v;
    bf16 *o;
    float *lse;
    const bf16 *go;
    bf16 *gq, *gk, *gv;
    /* backward, (batch, heads, padded) each: lse times log2(e), infinity if the query is
     * padding or sees no key; dot product of o and go */
    float *row_lse, *row_mean;
    int padded;
};

/* A warp's part of a product. The lane's element e of [i][j] is in row 16 i + 8 (e / 2) +
 * lane / 4, column 8 j + 2 (lane % 4) + e % 2. */
template <int PARTS, int COLUMNS> using accumulators = float[PARTS][COLUMNS / CHUNK][4];

/* Returns x, computed again here, rather than held in a register through a loop. */
__device__ __forceinline__ int recomputed_here(int x)
{
#ifndef MS_CUDA_EMULATED
    asm volatile("" : "+r"(x));
#endif
    return x;
}

__device__ __forceinline__ int lane_of()
{
    return recomputed_here((int)threadIdx.x) % MS_WARP;
}

/* First of the ROWS rows of a tile that the thread's warp processes. */
template <int ROWS> __device__ __forceinline__ int own_row()
{
    return recomputed_here((int)threadIdx.x) / MS_WARP * ROWS;
}

__device__ __forceinline__ float power_of_2(float x)
{
#ifdef MS_CUDA_EMULATED
    return exp2f(x);
#else
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#endif
}

/* ---- tiles in shared memory: rows of WIDTH elements, whose 16-byte chunks are permuted
 * by row so that 8 rows of one chunk are in different banks ---- */

/* Offset in a tile of the first element of a row's 16-byte chunk. For chunk 0 or 1 and
 * even c, place(row, chunk + c) = place(row, chunk) ^ 8 c. */
template <int WIDTH> __device__ __forceinline__ int place(int row, int chunk)
{
    return row * WIDTH + (chunk ^ row % 8) * CHUNK;
}

/* Rows of a tensor in device memory, `count` of them valid, `stride` elements apart. */
struct rows_of {
    const bf16 *first;
    int stride;
    int count;
};

template <int ROWS, int WIDTH, int THREADS>
__device__ __forceinline__ void load_tile(bf16 *to, const rows_of &x)
{
    constexpr int chunks = WIDTH / CHUNK, step = THREADS / chunks;
    static_assert(ROWS % step == 0 && step % 8 == 0, "a thread's rows are in one place");
    int thread = recomputed_here((int)threadIdx.x), row = thread / chunks,
        chunk = thread % chunks;
    const bf16 *from = x.first + row * x.stride + chunk * CHUNK;
    to += place<WIDTH>(row, chunk);
#pragma unroll
    for (int i = 0; i < ROWS / step; i++) {
        cp_async_16(to + i * step * WIDTH, from, row + i * step < x.count);
        from += step * x.stride;
    }
}

__device__ __forceinline__ rows_of query_rows(const flash &f, const bf16 *x, int width,
                                              int head, int first)
{
    long row = (long)blockIdx.z * f.num_queries + first;
    return {x + (row * f.num_heads + head) * width, f.num_heads * width,
            f.num_queries - first};
}

__device__ __forceinline__ rows_of key_rows(const flash &f, const bf16 *x, int width,
                                            int kv_head, int first)
{
    long row = (long)blockIdx.z * f.num_keys + first;
    return {x + (row * f.num_kv_heads + kv_head) * width, f.num_kv_heads * width,
            f.num_keys - first};
}

/* ---- matrix products ---- */

/* Adds x y^T to `to`: 16 PARTS rows of x, COLUMNS rows of y, both in shared memory. */
template <int WIDTH, int PARTS, int COLUMNS>
__device__ __forceinline__ void multiply_rows(accumulators<PARTS, COLUMNS> &to,
                                              const bf16 *x, const bf16 *y)
{
    int lane = lane_of();
    int x_place = place<WIDTH>(lane % PART, lane / PART);
    int y_place = place<WIDTH>(lane / PART * CHUNK + lane % CHUNK, lane / CHUNK % 2);
#pragma unroll
    for (int k = 0; k < WIDTH; k += PART) {
        unsigned left[PARTS][4];
#pragma unroll
        for (int i = 0; i < PARTS; i++)
            ldmatrix_x4(left[i], x + i * PART * WIDTH + (x_place ^ k));
#pragma unroll
        for (int j = 0; j < COLUMNS; j += PART) {
            unsigned right[4];
            ldmatrix_x4(right, y + j * WIDTH + (y_place ^ k));
#pragma unroll
            for (int i = 0; i < PARTS; i++) {
                mma_bf16_16x8x16(to[i][j / CHUNK], left[i], right);
                mma_bf16_16x8x16(to[i][j / CHUNK + 1], left[i], right + 2);
            }
        }
    }
}

/* Adds p y to `to`: weights p, rounded to bf16, and DEPTH rows of y in shared memory. */
template <int WIDTH, int PARTS, int DEPTH>
__device__ __forceinline__ void add_weighted_rows(accumulators<PARTS, WIDTH> &to,
                                                  const accumulators<PARTS, DEPTH> &p,
                                                  const bf16 *y)
{
    int lane = lane_of();
    int y_place = place<WIDTH>(lane % PART, lane / PART);
#pragma unroll
    for (int k = 0; k < DEPTH; k += PART) {
        unsigned left[PARTS][4];
#pragma unroll
        for (int i = 0; i < PARTS; i++) {
            const float *low = p[i][k / CHUNK], *high = p[i][k / CHUNK + 1];
            left[i][0] = two_bf16(low[0], low[1]);
            left[i][1] = two_bf16(low[2], low[3]);
            left[i][2] = two_bf16(high[0], high[1]);
            left[i][3] = two_bf16(high[2], high[3]);
        }
#pragma unroll
        for (int j = 0; j < WIDTH; j += PART) {
            unsigned right[4];
            ldmatrix_x4_trans(right, y + k * WIDTH + (y_place ^ j));
#pragma unroll
            for (int i = 0; i < PARTS; i++) {
                mma_bf16_16x8x16(to[i][j / CHUNK], left[i], right);
                mma_bf16_16x8x16(to[i][j / CHUNK + 1], left[i], right + 2);
            }
        }
    }
}

/* ---- output rows of a warp ---- */

/* Factors per row: `made` of the warp's new values, `old` of the output before them. */
template <int PARTS> struct factors {
    float made[PARTS * 2], old[PARTS * 2];
};

__device__ __forceinline__ float2 two_values(const bf16 *x)
{
    unsigned bits = *reinterpret_cast<const unsigned *>(x);
    return make_float2(__uint_as_float(bits << 16), __uint_as_float(bits & 0xffff0000U));
}

/* Writes factor.made times x to rows `to` as bf16, by way of the warp's shared memory. */
template <int WIDTH, int PARTS>
__device__ __forceinline__ void write_rows(const accumulators<PARTS, WIDTH> &x,
                                           const factors<PARTS> &factor, bf16 *shared,
                                           const rows_of &to)
{
    constexpr int chunks = WIDTH / CHUNK;
    int lane = lane_of();
#pragma unroll
    for (int i = 0; i < PARTS * 2; i++) {
        int row = i * CHUNK + lane / QUAD;
#pragma unroll
        for (int j = 0; j < chunks; j++) {
            float low = x[i / 2][j][i % 2 * 2] * factor.made[i],
                  high = x[i / 2][j][i % 2 * 2 + 1] * factor.made[i];
            bf16 *at = shared + place<WIDTH>(row, j) + lane % QUAD * 2;
            *reinterpret_cast<unsigned *>(at) = two_bf16(low, high);
        }
        __syncwarp();
    }
#pragma unroll 4
    for (int i = lane; i < PARTS * PART * chunks; i += MS_WARP) {
        int row = i / chunks, chunk = i % chunks;
        if (row < to.count)
            store_pack(const_cast<bf16 *>(to.first) + row * to.stride + chunk * CHUNK,
                       load_pack(shared + place<WIDTH>(row, chunk)));
    }
}

/* Sets fp32 output rows to (factor.old times the present row) + (factor.made times x). */
template <int WIDTH, int PARTS>
__device__ __forceinline__ void add_rows(const accumulators<PARTS, WIDTH> &x,
                                         const factors<PARTS> &factor, float *first,
                                         int stride, int count)
{
    int lane = lane_of();
#pragma unroll
    for (int i = 0; i < PARTS * 2; i++) {
        int row = i * CHUNK + lane / QUAD;
        if (row >= count)
            break;
        float *to = first + row * stride + lane % QUAD * 2;
#pragma unroll
        for (int j = 0; j < WIDTH / CHUNK; j++) {
            float2 *at = reinterpret_cast<float2 *>(to + j * CHUNK), sum = *at;
            sum.x = x[i / 2][j][i % 2 * 2] * factor.made[i] + sum.x * factor.old[i];
            sum.y = x[i / 2][j][i % 2 * 2 + 1] * factor.made[i] + sum.y * factor.old[i];
            *at = sum;
        }
    }
}

template <int WIDTH, int PARTS>
__device__ __forceinline__ void write_result(const flash &f,
                                             const accumulators<PARTS, WIDTH> &x,
                                             const factors<PARTS> &factor, bf16 *shared,
                                             bf16 *whole, const rows_of &to)
{
    if (f.is_whole)
        write_rows<WIDTH, PARTS>(x, factor, shared, to);
    else
        add_rows<WIDTH, PARTS>(x, factor,
                               reinterpret_cast<float *>(whole) + (to.first - whole),
                               to.stride, to.count);
}

template <int WIDTH, int PARTS>
__device__ __forceinline__ void write_gradient(const flash &f,
                                               const accumulators<PARTS, WIDTH> &x,
                                               float scale, bf16 *shared, bf16 *whole,
                                               const rows_of &to)
{
    factors<PARTS> factor;
#pragma unroll
    for (int i = 0; i < PARTS * 2; i++) {
        factor.made[i] = scale;
        factor.old[i] = 1;
    }
    write_result<WIDTH, PARTS>(f, x, factor, shared, whole, to);
}

/* ---- masks ---- */

template <int ROWS>
__device__ __forceinline__ span span_of_tile(const span *spans, int first, int tile,
                                             int count)
{
    if (spans != NULL)
        return spans[tile];
    return {first + tile * ROWS, first + min(tile * ROWS + ROWS, count) - 1};
}

template <int QUERIES>
__device__ __forceinline__ span query_span(const flash &f, int tile)
{
    return span_of_tile<QUERIES>(f.query_spans, f.first_query, tile, f.num_queries);
}

template <int KEYS> __device__ __forceinline__ span key_span(const flash &f, int tile)
{
    return span_of_tile<KEYS>(f.key_spans, f.first_key, tile, f.num_keys);
}

__device__ __forceinline__ bool some_see(const flash &f, span queries, span keys)
{
    return keys.least <= queries.most &&
           (f.window <= 0 || keys.most > queries.least - f.window);
}

__device__ __forceinline__ bool all_see(const flash &f, span queries, span keys)
{
    return keys.most <= queries.least &&
           (f.window <= 0 || keys.least > queries.most - f.window);
}

/* The first tile of keys, from `tile` on, that any of the queries sees. */
template <int KEYS>
__device__ __forceinline__ int next_keys(const flash &f, span queries, int tile)
{
    int num_tiles = (f.num_keys + KEYS - 1) / KEYS;
    while (tile < num_tiles && !some_see(f, queries, key_span<KEYS>(f, tile)))
        tile++;
    return tile;
}

template <int QUERIES>
__device__ __forceinline__ int next_queries(const flash &f, span keys, int tile)
{
    int num_tiles = (f.num_queries + QUERIES - 1) / QUERIES;
    while (tile < num_tiles && !some_see(f, query_span<QUERIES>(f, tile), keys))
        tile++;
    return tile;
}

/* Positions of queries and keys; of padding, such that it is masked: queries before all
 * keys (-1), keys after all queries. */
__device__ __forceinline__ int query_position(const flash &f, int query)
{
    return query < f.num_queries ? f.positions[f.first_query + query] : -1;
}

__device__ __forceinline__ int key_position(const flash &f, int key)
{
    return key < f.num_keys ? f.positions[f.first_key + key] : INT_MAX;
}

/* Calls element(score, row, column) for each of the lane's scores. row and column count
 * from its first score's and are known at compile time. */
template <int PARTS, int COLUMNS, class F>
__device__ __forceinline__ void for_scores(accumulators<PARTS, COLUMNS> &s, F element)
{
#pragma unroll
    for (int j = 0; j < COLUMNS / CHUNK * 2; j++)
#pragma unroll
        for (int i = 0; i < PARTS * 2; i++)
            element(s[i / 2][j / 2][i % 2 * 2 + j % 2], i * CHUNK, j / 2 * CHUNK + j % 2);
}

/* Sets masked scores to -infinity. s is (queries, keys), or (keys, queries) if
 * ROWS_ARE_KEYS. */
template <bool ROWS_ARE_KEYS, int PARTS, int COLUMNS>
__device__ __forceinline__ void mask(const flash &f, accumulators<PARTS, COLUMNS> &s,
                                     int first_row, int first_column)
{
    int first_query = first_row + lane_of() / QUAD,
        first_key = first_column + lane_of() % QUAD * 2;
    if (ROWS_ARE_KEYS) {
        first_query = first_column + lane_of() % QUAD * 2;
        first_key = first_row + lane_of() / QUAD;
    }
    if (f.positions == NULL) {
        /* a query sees keys with least < key - query <= most, where key and query count
         * from the lane's first ones */
        int most = f.first_query + first_query - f.first_key - first_key;
        int least = f.window > 0 ? most - f.window : INT_MIN;
        int left = f.num_keys - first_key;
        for_scores<PARTS, COLUMNS>(s, [&](float &score, int row, int column) {
            int key = ROWS_ARE_KEYS ? row : column,
                distance = ROWS_ARE_KEYS ? row - column : column - row;
            if (distance > most || distance <= least || key >= left)
                score = -INFINITY;
        });
        return;
    }
    for_scores<PARTS, COLUMNS>(s, [&](float &score, int row, int column) {
        int query = query_position(f, first_query + (ROWS_ARE_KEYS ? column : row)),
            key = key_position(f, first_key + (ROWS_ARE_KEYS ? row : column));
        if (key > query || (f.window > 0 && key <= query - f.window))
            score = -INFINITY;
    });
}

/* ---- launch arguments ---- */

/* Least and largest position of each tile of `rows` tokens, one thread per tile. */
__global__ void find_spans(const int *positions, int count, int rows, span *spans)
{
    int tile = (int)(blockIdx.x * blockDim.x + threadIdx.x), first = tile * rows;
    if (first >= count)
        return;
    span s = {INT_MAX, INT_MIN};
    for (int i = first; i < min(first + rows, count); i++) {
        s.least = min(s.least, positions[i]);
        s.most = max(s.most, positions[i]);
    }
    spans[tile] = s;
}

/* Launches find_spans for tiles of `rows` tokens. Returns the spans, which are at
 * *workspace, and advances *workspace behind them. */
const span *launch_spans(ms_cuda_stream *stream, const int *positions, long count,
                         int rows, span **workspace)
{
    constexpr int threads = 64;
    long num_tiles = (count + rows - 1) / rows;
    span *spans = *workspace;
    *workspace += num_tiles;
    if (num_tiles > 0)
        MS_LAUNCH(find_spans, dim3(ms_blocks(num_tiles, threads, LONG_MAX)),
                  dim3(threads), 0, stream, positions, (int)count, rows, spans);
    return spans;
}

void set_spans(ms_cuda_stream *stream, const ms_cuda_attention_args *a, int query_rows,
               int key_rows, flash *f, span **workspace)
{
    if (a->positions == NULL)
        return;
    f->query_spans = launch_spans(stream, a->positions + a->first_query, a->num_queries,
                                  query_rows, workspace);
    f->key_spans = launch_spans(stream, a->positions + a->first_key, a->num_keys,
                                key_rows, workspace);
}

flash read_args(const ms_cuda_attention_args *a)
{
    flash f = {};
    f.num_queries = (int)a->num_queries;
    f.num_keys = (int)a->num_keys;
    f.num_heads = (int)a->num_heads;
    f.num_kv_heads = (int)a->num_kv_heads;
    f.first_query = (int)a->first_query;
    f.first_key = (int)a->first_key;
    f.window = a->window < INT_MAX ? (int)a->window : 0;
    f.is_whole = a->is_whole;
    f.scale = (float)a->scale;
    f.scale_log2 = (float)(a->scale * (double)LOG2_E);
    f.positions = a->positions;
    f.q = (const bf16 *)a->q;
    f.k = (const bf16 *)a->k;
    f.v = (const bf16 *)a->v;
    f.o = (bf16 *)a->o;
    f.lse = (float *)a->lse;
    f.go = (const bf16 *)a->go;
    f.gq = (bf16 *)a->gq;
    f.gk = (bf16 *)a->gk;
    f.gv = (bf16 *)a->gv;
    return f;
}

unsigned tiles_of(long count, int rows)
{
    return ms_blocks(count, rows, LONG_MAX);
}

} // namespace

#endif
