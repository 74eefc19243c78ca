/* Embedding copies rows of the table. Its gradient sorts rows of x by table row; a thread
 * block sums those of one table row, in order, and adds the sum to it. */
#include "exec/cuda/cuda_embed.h"

#include "exec/cuda/cuda_lanes.cuh"
#include "exec/cuda/cuda_sort.h"

#include <assert.h>

#define MOST_THREADS  256
#define ROWS_PER_LOAD 4 /* rows that a thread loads before it adds them */

namespace
{

/* Row of the rank's table shard for a row of x; -1 if another rank has the row. */
__device__ long table_row(const ms_cuda_embed_args &args, long row)
{
    long at = args.first_stored + row % args.length;
    if (args.positions != nullptr)
        at = args.positions[at];
    if (args.tokens != nullptr) {
        at += args.ahead;
        at = at < args.sequence_length
                 ? args.tokens[(args.first_sequence + row / args.length) *
                                   args.sequence_length +
                               at]
                 : 0;
    }
    at -= args.table_start;
    return at >= 0 && at < args.table_rows ? at : -1;
}

/* Copies table rows to x (0 for rows of other ranks), one thread block per row of x. */
template <class T, int N> __global__ void copy_rows(ms_cuda_embed_args args)
{
    typedef typename number<T>::sum S;
    long row = blockIdx.x, at = table_row(args, row);
    T *to = (T *)args.x + row * args.width;
    const T *from = (const T *)args.table + at * args.width;
    for (long i = (long)threadIdx.x * N; i < args.width; i += (long)blockDim.x * N) {
        lanes<T, N> x;
        for (int j = 0; j < N; j++)
            x.at[j] = stored<T>(0);
        if (at >= 0)
            x = load_lanes<N>(from + i);
        for (int j = 0; j < N && args.scale != 1; j++)
            x.at[j] = stored<T>(value(x.at[j]) * S(args.scale));
        store_lanes<N>(to + i, x);
    }
}

/* rows[i] = the table row of row i of x; args.table_rows if another rank has it. */
__global__ void find_rows(ms_cuda_embed_args args, int *rows)
{
    long row = (long)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= args.num_rows)
        return;
    long at = table_row(args, row);
    rows[row] = (int)(at >= 0 ? at : args.table_rows);
}

/* Sets `next` to rows of x in sorted[i ..] of table row `at`, then -1; false if none. */
__device__ bool next_rows(const int *rows, const int *sorted, long i, long num, int at,
                          int next[ROWS_PER_LOAD])
{
    for (int j = 0; j < ROWS_PER_LOAD; j++) {
        next[j] = i + j < num ? sorted[i + j] : -1;
        if (next[j] >= 0 && rows[next[j]] != at)
            next[j] = -1;
    }
    return next[0] >= 0;
}

/* Adds all rows of x with one table row to it, by the block of the first (sorted[i]). */
template <class T, int N>
__global__ void add_rows(ms_cuda_embed_args args, const int *rows, const int *sorted)
{
    typedef typename number<T>::sum S;
    long i = blockIdx.x, column = ((long)blockIdx.y * blockDim.x + threadIdx.x) * N;
    int at = rows[sorted[i]];
    if (at == args.table_rows || (i > 0 && rows[sorted[i - 1]] == at) ||
        column >= args.width)
        return;
    S sum[N] = {0};
    int next[ROWS_PER_LOAD];
    for (; next_rows(rows, sorted, i, args.num_rows, at, next); i += ROWS_PER_LOAD) {
        lanes<T, N> x[ROWS_PER_LOAD];
#pragma unroll
        for (int r = 0; r < ROWS_PER_LOAD; r++)
            if (next[r] >= 0)
                x[r] = load_lanes<N>((const T *)args.x + next[r] * args.width + column);
#pragma unroll
        for (int r = 0; r < ROWS_PER_LOAD; r++)
            for (int j = 0; j < N; j++)
                sum[j] += next[r] >= 0 ? value(x[r].at[j]) : S(0);
    }
    S *to = (S *)args.table + at * args.width + column;
    lanes<S, N> y = load_lanes<N>(to);
    for (int j = 0; j < N; j++)
        y.at[j] += S(args.scale) * sum[j];
    store_lanes<N>(to, y);
}

/* ---- launches ---- */

unsigned num_threads(long width, int per_thread)
{
    long warps = (width / per_thread + MS_WARP - 1) / MS_WARP;
    return warps < MOST_THREADS / MS_WARP ? (unsigned)warps * MS_WARP : MOST_THREADS;
}

template <class T, int N>
void copy(ms_cuda_stream *stream, const ms_cuda_embed_args *args)
{
    MS_LAUNCH((copy_rows<T, N>), (unsigned)args->num_rows, num_threads(args->width, N), 0,
              stream, *args);
}

template <class T, int N>
void add(ms_cuda_stream *stream, const ms_cuda_embed_args *args, const int *rows,
         const int *sorted)
{
    unsigned threads = num_threads(args->width, N);
    long columns = (long)threads * N;
    dim3 grid((unsigned)args->num_rows,
              (unsigned)((args->width + columns - 1) / columns));
    MS_LAUNCH((add_rows<T, N>), grid, threads, 0, stream, *args, rows, sorted);
}

/* Whether all rows can be accessed in 16-byte packs of T. */
template <class T> bool is_packed(const ms_cuda_embed_args *args)
{
    return is_aligned(args->x) && is_aligned(args->table) &&
           args->width % pack<T>::SIZE == 0;
}

} // namespace

void ms_cuda_embed_rows(ms_cuda_stream *stream, const ms_cuda_embed_args *args)
{
    if (args->num_rows <= 0 || args->width <= 0)
        return;
    MS_BY_SCALAR(args->scalar, T, {
        if (is_packed<T>(args))
            copy<T, pack<T>::SIZE>(stream, args);
        else
            copy<T, 1>(stream, args);
    });
}

size_t ms_cuda_embed_add_bytes(long num_rows)
{
    return ms_cuda_sort_bytes(num_rows) + 2 * (size_t)num_rows * sizeof(int);
}

void ms_cuda_embed_add(ms_cuda_stream *stream, const ms_cuda_embed_args *args,
                       void *workspace)
{
    long num = args->num_rows;
    if (num <= 0 || args->width <= 0)
        return;
    assert(args->table_rows < 0x7fffffff);
    int *rows = (int *)workspace, *sorted = rows + num;
    MS_LAUNCH((find_rows), ms_blocks(num, MOST_THREADS, 0x7fffffff), MOST_THREADS, 0,
              stream, *args, rows);
    ms_cuda_sort sort = {rows, num, args->table_rows + 1, sorted, sorted + num};
    ms_cuda_sort_items(stream, &sort);
    MS_BY_SCALAR(args->scalar, T, {
        if (is_packed<T>(args))
            add<T, pack<T>::SIZE>(stream, args, rows, sorted);
        else
            add<T, 1>(stream, args, rows, sorted);
    });
}
