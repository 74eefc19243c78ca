/* Forward attention on tensor cores (FlashAttention-2, Dao 2023, algorithm 1). A thread
 * block computes 128 queries of a head, a warp 32 of them. Loads are asynchronous: of the
 * next keys during the product with values, of values during the product with keys. */
#include "exec/cuda/cuda_flash.cuh"

namespace
{

template <int WIDTH_, int KEYS_> struct forward_shape {
    static constexpr int WIDTH = WIDTH_, KEYS = KEYS_;
    static constexpr int WARPS = 4, THREADS = WARPS * MS_WARP;
    static constexpr int PARTS = 2, ROWS = PARTS * PART; /* ROWS: queries of a warp */
    static constexpr int QUERIES = WARPS * ROWS;
    static constexpr size_t shared_bytes =
        (size_t)(QUERIES + 2 * KEYS) * WIDTH * sizeof(bf16);
};

/* Softmax state of a lane's query rows. max: largest score x scale x log2(e) so far; sum,
 * o: the lane's part of the sums of 2^(score - max) and of that times values. 4 lanes
 * share a row; the output is o / (sum over the 4). */
template <class F> struct running {
    float max[F::PARTS * 2], sum[F::PARTS * 2];
    accumulators<F::PARTS, F::WIDTH> o;
};

template <class F> __device__ __forceinline__ void clear_state(running<F> &r)
{
#pragma unroll
    for (int i = 0; i < F::PARTS * 2; i++) {
        r.max[i] = -INFINITY;
        r.sum[i] = 0;
#pragma unroll
        for (int j = 0; j < F::WIDTH / CHUNK; j++)
            r.o[i / 2][j][i % 2 * 2] = r.o[i / 2][j][i % 2 * 2 + 1] = 0;
    }
}

/* Number to subtract from scores: their maximum; 0 for -infinity (no key seen yet). */
__device__ __forceinline__ float shift_of(float max)
{
    return max == -INFINITY ? 0 : max;
}

__device__ __forceinline__ float quad_max(float x)
{
    x = fmaxf(x, __shfl_xor_sync(MS_ALL_LANES, x, 1));
    return fmaxf(x, __shfl_xor_sync(MS_ALL_LANES, x, 2));
}

__device__ __forceinline__ float quad_sum(float x)
{
    x += __shfl_xor_sync(MS_ALL_LANES, x, 1);
    return x + __shfl_xor_sync(MS_ALL_LANES, x, 2);
}

/* Raises r.max to the maximum with the scores s; rescales r.sum and r.o, unless no row of
 * the warp has a new maximum, as is usual after the first tiles. */
template <class F>
__device__ __forceinline__ void raise_max(const flash &f, running<F> &r,
                                          const accumulators<F::PARTS, F::KEYS> &s)
{
    float before[F::PARTS * 2];
    bool rises = false;
#pragma unroll
    for (int i = 0; i < F::PARTS * 2; i++) {
        float most = -INFINITY;
#pragma unroll
        for (int j = 0; j < F::KEYS / CHUNK; j++) {
            const float *two = s[i / 2][j] + i % 2 * 2;
            most = fmaxf(most, fmaxf(two[0], two[1]));
        }
        before[i] = r.max[i];
        r.max[i] = fmaxf(r.max[i], quad_max(most) * f.scale_log2);
        rises = rises || r.max[i] > before[i];
    }
    if (!__any_sync(MS_ALL_LANES, rises))
        return;
#pragma unroll
    for (int i = 0; i < F::PARTS * 2; i++) {
        float factor = power_of_2(before[i] - shift_of(r.max[i]));
        r.sum[i] *= factor;
#pragma unroll
        for (int j = 0; j < F::WIDTH / CHUNK; j++) {
            r.o[i / 2][j][i % 2 * 2] *= factor;
            r.o[i / 2][j][i % 2 * 2 + 1] *= factor;
        }
    }
}

/* Replaces scores s by exp(scale x score) / 2^max and adds these to r.sum. */
template <class F>
__device__ __forceinline__ void exponentiate_scores(const flash &f, running<F> &r,
                                                    accumulators<F::PARTS, F::KEYS> &s)
{
#pragma unroll
    for (int i = 0; i < F::PARTS * 2; i++) {
        float shift = shift_of(r.max[i]);
#pragma unroll
        for (int j = 0; j < F::KEYS / CHUNK; j++) {
            float *two = s[i / 2][j] + i % 2 * 2;
            two[0] = power_of_2(fmaf(two[0], f.scale_log2, -shift));
            two[1] = power_of_2(fmaf(two[1], f.scale_log2, -shift));
            r.sum[i] += two[0] + two[1];
        }
    }
}

/* Merges attention over this block of keys with lse and o of previous blocks. */
template <class F>
__device__ __forceinline__ void merge_outputs(const flash &f, const running<F> &r,
                                              int first, int head, bf16 *shared)
{
    factors<F::PARTS> factor;
#pragma unroll
    for (int i = 0; i < F::PARTS * 2; i++) {
        int query = first + i * CHUNK + lane_of() / QUAD;
        bool is_there = query < f.num_queries;
        float *lse =
            f.lse + ((long)blockIdx.z * f.num_queries + query) * f.num_heads + head;
        float before = is_there && !f.is_whole ? *lse * LOG2_E : -INFINITY;
        float max = fmaxf(before, r.max[i]);
        float shift = shift_of(max);
        float made = power_of_2(r.max[i] - shift), old = power_of_2(before - shift);
        float sum = quad_sum(r.sum[i]) * made + old;
        factor.made[i] = sum > 0 ? made / sum : 0;
        factor.old[i] = sum > 0 ? old / sum : 0;
        __syncwarp(); /* all lanes of a row have read its lse */
        if (is_there && lane_of() % QUAD == 0)
            *lse = sum > 0 ? (max + log2f(sum)) * LN_2 : -INFINITY;
    }
    write_result<F::WIDTH, F::PARTS>(f, r.o, factor, shared, f.o,
                                     query_rows(f, f.o, F::WIDTH, head, first));
}

/* Forward kernel. Grid: (head, tile of queries, batch); the last tiles come first, since
 * they see the most keys. */
template <class F> __global__ void __launch_bounds__(F::THREADS, 2) flash_forward(flash f)
{
    MS_DYNAMIC_SHARED(bf16, q);
    bf16 *k = q + F::QUERIES * F::WIDTH, *v = k + F::KEYS * F::WIDTH;
    int head = (int)blockIdx.x, kv_head = head / (f.num_heads / f.num_kv_heads);
    int tile = (int)(gridDim.y - 1 - blockIdx.y);
    int own = (int)threadIdx.x / MS_WARP * F::ROWS, first = tile * F::QUERIES + own;
    span queries = query_span<F::QUERIES>(f, tile);
    int num_tiles = (f.num_keys + F::KEYS - 1) / F::KEYS;
    int at = next_keys<F::KEYS>(f, queries, 0);
    load_tile<F::QUERIES, F::WIDTH, F::THREADS>(
        q, query_rows(f, f.q, F::WIDTH, head, tile * F::QUERIES));
    if (at < num_tiles)
        load_tile<F::KEYS, F::WIDTH, F::THREADS>(
            k, key_rows(f, f.k, F::WIDTH, kv_head, at * F::KEYS));
    cp_async_commit();
    running<F> r;
    clear_state<F>(r);
    while (at < num_tiles) {
        int key = at * F::KEYS;
        cp_async_wait<0>();
        __syncthreads(); /* keys are loaded, the previous values are no longer needed */
        load_tile<F::KEYS, F::WIDTH, F::THREADS>(
            v, key_rows(f, f.v, F::WIDTH, kv_head, key));
        cp_async_commit();
        accumulators<F::PARTS, F::KEYS> s = {};
        multiply_rows<F::WIDTH, F::PARTS, F::KEYS>(s, q + own * F::WIDTH, k);
        if (key + F::KEYS > f.num_keys || !all_see(f, queries, key_span<F::KEYS>(f, at)))
            mask<false, F::PARTS, F::KEYS>(f, s, first, key);
        at = next_keys<F::KEYS>(f, queries, at + 1);
        cp_async_wait<0>();
        __syncthreads(); /* values are loaded, keys are no longer needed */
        if (at < num_tiles)
            load_tile<F::KEYS, F::WIDTH, F::THREADS>(
                k, key_rows(f, f.k, F::WIDTH, kv_head, at * F::KEYS));
        cp_async_commit();
        raise_max<F>(f, r, s);
        exponentiate_scores<F>(f, r, s);
        add_weighted_rows<F::WIDTH, F::PARTS, F::KEYS>(r.o, s, v);
    }
    cp_async_wait<0>();
    __syncthreads(); /* queries are loaded, even if there was no tile of keys */
    merge_outputs<F>(f, r, first, head, q + own * F::WIDTH);
}

template <class F> void launch(ms_cuda_stream *stream, const ms_cuda_attention_args *a)
{
    flash f = read_args(a);
    span *workspace = (span *)a->workspace;
    dim3 grid((unsigned)a->num_heads, tiles_of(a->num_queries, F::QUERIES),
              (unsigned)a->num_batch);
    if (grid.x == 0 || grid.y == 0 || grid.z == 0)
        return;
    set_spans(stream, a, F::QUERIES, F::KEYS, &f, &workspace);
    MS_LAUNCH((flash_forward<F>), grid, dim3(F::THREADS), F::shared_bytes, stream, f);
}

bool is_aligned(const void *x)
{
    return reinterpret_cast<uintptr_t>(x) % 16 == 0;
}

} // namespace

extern "C" bool ms_cuda_flash_can(const ms_cuda_attention_args *a)
{
    return a->scalar == MS_SCALAR_BF16 && a->width == a->value_width &&
           (a->width == 64 || a->width == 128) && a->probabilities == NULL &&
           !(a->cap > 0) && a->alibi_heads == 0 && is_aligned(a->q) &&
           is_aligned(a->k) && is_aligned(a->v) && is_aligned(a->o) &&
           is_aligned(a->go) && is_aligned(a->gq) && is_aligned(a->gk) &&
           is_aligned(a->gv);
}

extern "C" void ms_cuda_flash(ms_cuda_stream *stream, const ms_cuda_attention_args *a)
{
    if (a->width == 64)
        launch<forward_shape<64, 96>>(stream, a);
    else
        launch<forward_shape<128, 48>>(stream, a);
}
