/* Bias additions; sums over rows, first within chunks of rows, then over chunks. Sizes
 * alone determine the order in which a sum adds. */
#include "exec/cuda/cuda_sums.h"

#include "exec/cuda/cuda_lanes.cuh"

#define BIAS_THREADS 128
#define BIAS_ROWS    16 /* rows per thread, which reads its bias only once */
#define MAX_GRID_Y   65535
#define COLUMNS      32  /* columns per thread block: 128 bytes of fp32 */
#define ROW_GROUPS   16  /* threads that share a column */
#define LEAST_ROWS   256 /* rows of x per chunk, at least */
#define MOST_CHUNKS  256

namespace
{

template <typename T, int N>
__global__ void __launch_bounds__(BIAS_THREADS)
    add_bias(T *out, const T *x, const T *bias, long num_rows, int num_pieces)
{
    int piece = static_cast<int>(blockIdx.x * BIAS_THREADS + threadIdx.x);
    if (piece >= num_pieces)
        return;
    const lanes<T, N> b = load_lanes<N>(bias + static_cast<long>(piece) * N);
    for (long first = static_cast<long>(blockIdx.y) * BIAS_ROWS; first < num_rows;
         first += static_cast<long>(gridDim.y) * BIAS_ROWS) {
        long end = min(first + BIAS_ROWS, num_rows);
#pragma unroll 4
        for (long row = first; row < end; row++) {
            long at = (row * num_pieces + piece) * N;
            lanes<T, N> y = load_lanes<N>(x + at);
#pragma unroll
            for (int i = 0; i < N; i++)
                y.at[i] = stored<T>(value(y.at[i]) + value(b.at[i]));
            store_lanes(out + at, y);
        }
    }
}

template <typename T, int N>
void launch_bias(ms_cuda_stream *stream, const ms_cuda_bias_args *a)
{
    int num_pieces = static_cast<int>(a->width / N);
    dim3 grid(ms_blocks(num_pieces, BIAS_THREADS, num_pieces),
              ms_blocks(a->num_rows, BIAS_ROWS, MAX_GRID_Y));
    MS_LAUNCH((add_bias<T, N>), grid, BIAS_THREADS, 0, stream, static_cast<T *>(a->out),
              static_cast<const T *>(a->x), static_cast<const T *>(a->bias), a->num_rows,
              num_pieces);
}

/* Sums column blockIdx.x COLUMNS + threadIdx.x over the rows of chunk blockIdx.y. Of
 * these, thread threadIdx.y takes every ROW_GROUPSth row. */
template <typename T, typename O>
__global__ void __launch_bounds__(COLUMNS *ROW_GROUPS)
    sum_chunk(O *out, const T *x, long num_rows, long width, long chunk_rows,
              bool is_added)
{
    using S = typename number<T>::sum;
    MS_SHARED(S, part, [ROW_GROUPS][COLUMNS]);
    long column = static_cast<long>(blockIdx.x) * COLUMNS + threadIdx.x;
    long first = blockIdx.y * chunk_rows, end = min(first + chunk_rows, num_rows);
    S sum = 0;
    if (column < width) {
#pragma unroll 8
        for (long row = first + threadIdx.y; row < end; row += ROW_GROUPS)
            sum += value(x[row * width + column]);
    }
    part[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y != 0 || column >= width)
        return;
    for (int i = 1; i < ROW_GROUPS; i++)
        sum += part[i][threadIdx.x];
    O *to = out + blockIdx.y * width + column;
    *to = stored<O>(is_added ? sum + value(*to) : sum);
}

template <typename T, typename O>
void launch_sum(ms_cuda_stream *stream, const ms_cuda_sum_args *a, long num_chunks)
{
    long chunk_rows = (a->num_rows + num_chunks - 1) / num_chunks;
    dim3 grid(ms_blocks(a->width, COLUMNS, a->width), static_cast<unsigned>(num_chunks));
    MS_LAUNCH((sum_chunk<T, O>), grid, dim3(COLUMNS, ROW_GROUPS), 0, stream,
              static_cast<O *>(a->out), static_cast<const T *>(a->x), a->num_rows,
              a->width, chunk_rows, a->is_added);
}

long chunks_of(long num_rows)
{
    long chunks = (num_rows + LEAST_ROWS - 1) / LEAST_ROWS;
    return min(max(chunks, 1L), static_cast<long>(MOST_CHUNKS));
}

template <typename T, typename O>
void sum_in_stages(ms_cuda_stream *stream, const ms_cuda_sum_args *args)
{
    using S = typename number<T>::sum;
    long num_chunks = chunks_of(args->num_rows);
    if (num_chunks == 1) {
        launch_sum<T, O>(stream, args, 1);
        return;
    }
    ms_cuda_sum_args first = *args, second = *args;
    first.out = args->workspace;
    first.is_added = false;
    launch_sum<T, S>(stream, &first, num_chunks);
    second.x = args->workspace;
    second.num_rows = num_chunks;
    launch_sum<S, O>(stream, &second, 1);
}

} // namespace

void ms_cuda_add_bias(ms_cuda_stream *stream, const ms_cuda_bias_args *args)
{
    if (args->num_rows == 0 || args->width == 0)
        return;
    MS_BY_SCALAR(args->scalar, T, {
        if (is_aligned(args->x) && is_aligned(args->bias) && is_aligned(args->out) &&
            args->width % pack<T>::SIZE == 0)
            launch_bias<T, pack<T>::SIZE>(stream, args);
        else
            launch_bias<T, 1>(stream, args);
    });
}

size_t ms_cuda_sum_workspace(long num_rows, long width)
{
    long num_chunks = chunks_of(num_rows);
    return num_chunks > 1 ? sizeof(double) * static_cast<size_t>(num_chunks * width) : 0;
}

void ms_cuda_sum_rows(ms_cuda_stream *stream, const ms_cuda_sum_args *args)
{
    if (args->width == 0)
        return;
    MS_BY_SCALAR(args->scalar, T, {
        if (args->out_scalar == args->scalar)
            sum_in_stages<T, T>(stream, args);
        else
            sum_in_stages<T, typename number<T>::sum>(stream, args);
    });
}
