/* RMSNorm and LayerNorm with a warp or, for wide rows, a thread block per row. Rows are
 * read once and kept in registers; unaligned or too wide rows are read at each use, one
 * element at a time. Gradients of weights: every thread block loops over rows with sums
 * of its columns in registers; cuda_sums.cu adds the sums of all blocks. */
#include "exec/cuda/cuda_norm.h"

#include "exec/cuda/cuda_lanes.cuh"

#define WARP_ROWS     8   /* rows per thread block if each row has one warp */
#define PLAIN_THREADS 256 /* most threads of a row not kept in registers */
#define MOST_THREADS  512 /* threads per row; more would lack registers */
/* most thread blocks, backward, with one and with WARP_ROWS rows each: 4 and 2 per SM of
 * an H100, of which 1 or 2 run at a time */
#define BLOCKS_OF_ROWS  528
#define BLOCKS_OF_WARPS 264

namespace
{

/* Sizes of rows. Of n threads for a row, thread i has pieces i, i + n, ... (N
 * elements). */
struct shape {
    long num_rows;
    int num_pieces;
    double width, epsilon;
    float offset; /* 0 or 1 */
    bool is_centred;
};

template <bool IS_WARP> __device__ __forceinline__ int lane_of_row()
{
    return static_cast<int>(IS_WARP ? threadIdx.x % MS_WARP : threadIdx.x);
}
template <bool IS_WARP> __device__ __forceinline__ int lanes_of_row()
{
    return IS_WARP ? MS_WARP : static_cast<int>(blockDim.x);
}
/* first_row: the thread's first row; rows_at_a_time: the step to its next row. */
template <bool IS_WARP> __device__ __forceinline__ long first_row()
{
    return IS_WARP ? static_cast<long>(blockIdx.x) * WARP_ROWS + threadIdx.x / MS_WARP
                   : static_cast<long>(blockIdx.x);
}
template <bool IS_WARP> __device__ __forceinline__ long rows_at_a_time()
{
    return IS_WARP ? static_cast<long>(gridDim.x) * WARP_ROWS
                   : static_cast<long>(gridDim.x);
}

/* Sums each of NUM values over the threads that share a row. */
template <bool IS_WARP, typename S, int NUM>
__device__ __forceinline__ void sum_over_row(S (&x)[NUM])
{
#pragma unroll
    for (int i = 0; i < NUM; i++)
        x[i] = warp_sum(x[i]);
    if constexpr (!IS_WARP) {
        MS_SHARED(S, part, [NUM][MS_MAX_WARPS]);
        int lane = static_cast<int>(threadIdx.x) % MS_WARP;
        if (lane == 0)
            for (int i = 0; i < NUM; i++)
                part[i][threadIdx.x / MS_WARP] = x[i];
        __syncthreads();
        bool has_part = lane < static_cast<int>(blockDim.x) / MS_WARP;
#pragma unroll
        for (int i = 0; i < NUM; i++)
            x[i] = warp_sum(has_part ? part[i][lane] : S(0));
        __syncthreads(); /* `part` is reused for the next row */
    }
}

/* Calls f(i, piece) for each piece of the thread: i < KEEP counts them; KEEP 0: i = 0. */
template <int KEEP, bool IS_WARP, typename F>
__device__ __forceinline__ void for_pieces(int num_pieces, F f)
{
    int lane = lane_of_row<IS_WARP>(), size = lanes_of_row<IS_WARP>();
    if constexpr (KEEP == 0) {
        for (int piece = lane; piece < num_pieces; piece += size)
            f(0, piece);
    } else {
#pragma unroll
        for (int i = 0; i < KEEP; i++)
            if (lane + i * size < num_pieces)
                f(i, lane + i * size);
    }
}

/* The thread's pieces of a row, in registers if KEEP > 0, otherwise read at each use. */
template <typename T, int N, int KEEP, bool IS_WARP> struct part_of_row {
    const T *row;
    lanes<T, N> kept[KEEP > 0 ? KEEP : 1];

    __device__ __forceinline__ part_of_row(const T *from, int num_pieces) : row(from)
    {
        if constexpr (KEEP > 0)
            for_pieces<KEEP, IS_WARP>(num_pieces, [&](int i, int piece) {
                kept[i] = load_lanes<N>(row + static_cast<long>(piece) * N);
            });
    }
    __device__ __forceinline__ lanes<T, N> at(int i, int piece) const
    {
        return KEEP > 0 ? kept[i] : load_lanes<N>(row + static_cast<long>(piece) * N);
    }
};

template <typename S> struct moments {
    S mean, scale;
};

__device__ __forceinline__ float one_over_root(float x)
{
    return rsqrtf(x);
}
__device__ __forceinline__ double one_over_root(double x)
{
    return 1 / sqrt(x);
}

template <typename T, int N, int KEEP, bool IS_WARP, typename S = typename number<T>::sum>
__device__ __forceinline__ S mean_of(const shape &s,
                                     const part_of_row<T, N, KEEP, IS_WARP> &x)
{
    S sum[1] = {0};
    for_pieces<KEEP, IS_WARP>(s.num_pieces, [&](int i, int piece) {
        const lanes<T, N> mine = x.at(i, piece);
#pragma unroll
        for (int j = 0; j < N; j++)
            sum[0] += value(mine.at[j]);
    });
    sum_over_row<IS_WARP>(sum);
    return sum[0] / static_cast<S>(s.width);
}

template <typename T, int N, int KEEP, bool IS_WARP>
__global__ void __launch_bounds__(MOST_THREADS)
    norm(shape s, T *out, const T *x, const T *weight, const T *bias)
{
    using S = typename number<T>::sum;
    long row = first_row<IS_WARP>();
    if (row >= s.num_rows)
        return;
    long first = row * s.num_pieces * N;
    const part_of_row<T, N, KEEP, IS_WARP> mine(x + first, s.num_pieces);
    S mean = s.is_centred ? mean_of(s, mine) : S(0), sum[1] = {0};
    for_pieces<KEEP, IS_WARP>(s.num_pieces, [&](int i, int piece) {
        const lanes<T, N> y = mine.at(i, piece);
#pragma unroll
        for (int j = 0; j < N; j++)
            sum[0] += (value(y.at[j]) - mean) * (value(y.at[j]) - mean);
    });
    sum_over_row<IS_WARP>(sum);
    S scale = one_over_root(sum[0] / static_cast<S>(s.width) + static_cast<S>(s.epsilon));
    for_pieces<KEEP, IS_WARP>(s.num_pieces, [&](int i, int piece) {
        long at = static_cast<long>(piece) * N;
        lanes<T, N> y = mine.at(i, piece), b = {};
        const lanes<T, N> w = load_lanes<N>(weight + at);
        if (bias != NULL)
            b = load_lanes<N>(bias + at);
#pragma unroll
        for (int j = 0; j < N; j++)
            y.at[j] = stored<T>((value(y.at[j]) - mean) * scale *
                                    (value(w.at[j]) + static_cast<S>(s.offset)) +
                                value(b.at[j]));
        store_lanes(out + first + at, y);
    });
}

/* ---- backward: gx = scale (g - [mean of g, if centred] - y mean of (g y)), where y = (x
 * - mean) scale and g = gout (weight + offset) ---- */

template <typename T> struct gradient {
    const T *x, *weight, *gout;
    T *gx;
    /* gradients' partial sums over rows; NULL if not wanted */
    typename number<T>::sum *weight_parts, *bias_parts;
};

template <typename S> struct row_means {
    S mean, scale, of_g, of_g_y;
};

template <typename T, int N, int KEEP, bool IS_WARP, typename S = typename number<T>::sum>
__device__ __forceinline__ row_means<S> means_of(
    const shape &s, const T *weight, const part_of_row<T, N, KEEP, IS_WARP> &x,
    const part_of_row<T, N, KEEP, IS_WARP> &gout)
{
    row_means<S> m;
    S width = static_cast<S>(s.width), sum[3] = {0, 0, 0};
    m.mean = s.is_centred ? mean_of(s, x) : S(0);
    for_pieces<KEEP, IS_WARP>(s.num_pieces, [&](int i, int piece) {
        const lanes<T, N> mine = x.at(i, piece), grads = gout.at(i, piece),
                          w = load_lanes<N>(weight + static_cast<long>(piece) * N);
#pragma unroll
        for (int j = 0; j < N; j++) {
            S centred = value(mine.at[j]) - m.mean,
              g = value(grads.at[j]) * (value(w.at[j]) + static_cast<S>(s.offset));
            sum[0] += centred * centred;
            sum[1] += g;
            sum[2] += g * centred;
        }
    });
    sum_over_row<IS_WARP>(sum);
    m.scale = one_over_root(sum[0] / width + static_cast<S>(s.epsilon));
    m.of_g = s.is_centred ? sum[1] / width : S(0);
    m.of_g_y = sum[2] * m.scale / width;
    return m;
}

/* The thread's sums, over its rows, of a weight's gradient: in `kept` (registers) if KEEP
 * > 0, otherwise in `part`, which only this thread writes. */
template <typename S, int N, int KEEP> struct column_sums {
    S *part;
    S kept[KEEP > 0 ? KEEP : 1][N];

    __device__ __forceinline__ void begin(S *to, int num_pieces, int lane, int size)
    {
        part = to;
#pragma unroll
        for (int i = 0; i < (KEEP > 0 ? KEEP : 1); i++)
#pragma unroll
            for (int j = 0; j < N; j++)
                kept[i][j] = 0;
        if (KEEP == 0 && part != NULL)
            for (long at = lane; at < num_pieces; at += size)
                part[at] = 0; /* N is 1 if KEEP is 0 */
    }
    __device__ __forceinline__ void add(int i, int piece, int j, S x)
    {
        if (KEEP > 0)
            kept[i][j] += x;
        else if (part != NULL)
            part[piece] += x;
    }
};

template <int KEEP, bool IS_WARP, typename S, int N>
__device__ __forceinline__ void store_sums(const column_sums<S, N, KEEP> &sums,
                                           int num_pieces)
{
    if (KEEP == 0 || sums.part == NULL)
        return;
    for_pieces<KEEP, IS_WARP>(num_pieces, [&](int i, int piece) {
#pragma unroll
        for (int j = 0; j < N; j++)
            sums.part[static_cast<long>(piece) * N + j] = sums.kept[i][j];
    });
}

template <typename T, int N, int KEEP, bool IS_WARP, bool HAS_BIAS>
__global__ void __launch_bounds__(IS_WARP ? WARP_ROWS *MS_WARP : MOST_THREADS, 1)
    norm_grad(shape s, gradient<T> g)
{
    using S = typename number<T>::sum;
    int lane = lane_of_row<IS_WARP>(), size = lanes_of_row<IS_WARP>();
    long width = static_cast<long>(s.num_pieces) * N, mine = first_row<IS_WARP>();
    column_sums<S, N, KEEP> weight_sums, bias_sums;
    weight_sums.begin(g.weight_parts != NULL ? g.weight_parts + mine * width : NULL,
                      s.num_pieces, lane, size);
    if (HAS_BIAS)
        bias_sums.begin(g.bias_parts + mine * width, s.num_pieces, lane, size);
    for (long row = mine; row < s.num_rows; row += rows_at_a_time<IS_WARP>()) {
        const part_of_row<T, N, KEEP, IS_WARP> x(g.x + row * width, s.num_pieces),
            gout(g.gout + row * width, s.num_pieces);
        const row_means<S> m = means_of(s, g.weight, x, gout);
        for_pieces<KEEP, IS_WARP>(s.num_pieces, [&](int i, int piece) {
            long at = static_cast<long>(piece) * N;
            const lanes<T, N> from = x.at(i, piece), grads = gout.at(i, piece),
                              w = load_lanes<N>(g.weight + at);
            lanes<T, N> to;
#pragma unroll
            for (int j = 0; j < N; j++) {
                S y = (value(from.at[j]) - m.mean) * m.scale, go = value(grads.at[j]);
                to.at[j] = stored<T>(m.scale *
                                     (go * (value(w.at[j]) + static_cast<S>(s.offset)) -
                                      m.of_g - y * m.of_g_y));
                weight_sums.add(i, piece, j, go * y);
                if (HAS_BIAS)
                    bias_sums.add(i, piece, j, go);
            }
            store_lanes(g.gx + row * width + at, to);
        });
    }
    store_sums<KEEP, IS_WARP>(weight_sums, s.num_pieces);
    if (HAS_BIAS)
        store_sums<KEEP, IS_WARP>(bias_sums, s.num_pieces);
}

/* ---- launches ---- */

unsigned whole_warps(long threads)
{
    return static_cast<unsigned>((threads + MS_WARP - 1) / MS_WARP * MS_WARP);
}

unsigned plain_threads(long width)
{
    return whole_warps(min(width, static_cast<long>(PLAIN_THREADS)));
}

/* Threads for an aligned row of some width. */
struct plan {
    bool is_warp;
    int keep; /* most 16-byte pieces per thread, in registers: 2 or 4; 0: too many */
    unsigned threads;
};

plan plan_rows(ms_scalar scalar, long width)
{
    long in_piece = 1;
    MS_BY_SCALAR(scalar, T, in_piece = pack<T>::SIZE);
    long pieces = width / in_piece;
    if (width % in_piece != 0 || pieces > 4L * MOST_THREADS)
        return {false, 0, plain_threads(width)};
    if (pieces <= 2 * MS_WARP)
        return {true, 2, WARP_ROWS * MS_WARP};
    int keep = pieces > 2L * MOST_THREADS ? 4 : 2;
    return {false, keep, whole_warps((pieces + keep - 1) / keep)};
}

unsigned blocks_of_rows(const plan &p, long num_rows)
{
    return p.is_warp ? ms_blocks(num_rows, WARP_ROWS, BLOCKS_OF_WARPS)
                     : ms_blocks(num_rows, 1, BLOCKS_OF_ROWS);
}

bool is_all_aligned(const ms_cuda_norm_args *a)
{
    return is_aligned(a->x) && is_aligned(a->weight) && is_aligned(a->bias) &&
           is_aligned(a->out) && is_aligned(a->gout) && is_aligned(a->gx);
}

template <typename T, int N, int KEEP, bool IS_WARP>
void launch_norm(ms_cuda_stream *stream, const ms_cuda_norm_args *a, unsigned threads)
{
    shape s = {a->num_rows,
               static_cast<int>(a->width / N),
               static_cast<double>(a->width),
               a->epsilon,
               a->offset,
               a->is_centred};
    long per_block = IS_WARP ? WARP_ROWS : 1;
    unsigned blocks = static_cast<unsigned>((a->num_rows + per_block - 1) / per_block);
    MS_LAUNCH((norm<T, N, KEEP, IS_WARP>), blocks, threads, 0, stream, s,
              static_cast<T *>(a->out), static_cast<const T *>(a->x),
              static_cast<const T *>(a->weight), static_cast<const T *>(a->bias));
}

template <typename T, int N, int KEEP, bool IS_WARP>
void launch_grad(ms_cuda_stream *stream, const ms_cuda_norm_args *a, unsigned threads,
                 unsigned blocks)
{
    using S = typename number<T>::sum;
    shape s = {a->num_rows,
               static_cast<int>(a->width / N),
               static_cast<double>(a->width),
               a->epsilon,
               a->offset,
               a->is_centred};
    gradient<T> g = {static_cast<const T *>(a->x),      static_cast<const T *>(a->weight),
                     static_cast<const T *>(a->gout),   static_cast<T *>(a->gx),
                     static_cast<S *>(a->weight_parts), static_cast<S *>(a->bias_parts)};
    if (a->bias_parts != NULL)
        MS_LAUNCH((norm_grad<T, N, KEEP, IS_WARP, true>), blocks, threads, 0, stream, s,
                  g);
    else
        MS_LAUNCH((norm_grad<T, N, KEEP, IS_WARP, false>), blocks, threads, 0, stream, s,
                  g);
}

} // namespace

void ms_cuda_norm_rows(ms_cuda_stream *stream, const ms_cuda_norm_args *args)
{
    if (args->num_rows == 0 || args->width == 0)
        return;
    plan p = plan_rows(args->scalar, args->width);
    MS_BY_SCALAR(args->scalar, T, {
        constexpr int N = pack<T>::SIZE;
        if (p.keep == 0 || !is_all_aligned(args))
            launch_norm<T, 1, 0, false>(stream, args, plain_threads(args->width));
        else if (p.is_warp)
            launch_norm<T, N, 2, true>(stream, args, p.threads);
        else if (p.keep == 2)
            launch_norm<T, N, 2, false>(stream, args, p.threads);
        else
            launch_norm<T, N, 4, false>(stream, args, p.threads);
    });
}

long ms_cuda_norm_num_parts(ms_scalar scalar, long num_rows, long width)
{
    plan p = plan_rows(scalar, width);
    return static_cast<long>(blocks_of_rows(p, num_rows)) * (p.is_warp ? WARP_ROWS : 1);
}

void ms_cuda_norm_rows_grad(ms_cuda_stream *stream, const ms_cuda_norm_args *args)
{
    if (args->num_rows == 0 || args->width == 0)
        return;
    plan p = plan_rows(args->scalar, args->width);
    unsigned blocks = blocks_of_rows(p, args->num_rows);
    MS_BY_SCALAR(args->scalar, T, {
        constexpr int N = pack<T>::SIZE;
        if (p.keep == 0 || !is_all_aligned(args)) {
            /* blocks have one row at a time here: as many sums take more blocks */
            blocks *= p.is_warp ? WARP_ROWS : 1;
            launch_grad<T, 1, 0, false>(stream, args, plain_threads(args->width), blocks);
        } else if (p.is_warp) {
            launch_grad<T, N, 2, true>(stream, args, p.threads, blocks);
        } else if (p.keep == 2) {
            launch_grad<T, N, 2, false>(stream, args, p.threads, blocks);
        } else {
            launch_grad<T, N, 4, false>(stream, args, p.threads, blocks);
        }
    });
}
