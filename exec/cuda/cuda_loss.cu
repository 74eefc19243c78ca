/* Cross entropy over rows of logits, one thread block per row. */
#include "exec/cuda/cuda_loss.h"

#include "exec/cuda/cuda_lanes.cuh"

#include <math.h>

#define THREADS 512

namespace
{

/* ---- rows ---- */

/* Calls f(lanes<T, N>, column) for columns 0 .. end - 1 of a row: with N columns at a
 * time between 16-byte boundaries if `packed`; otherwise, and at the ends, with one. */
template <class T, class F>
__device__ void for_columns(const T *row, long end, bool packed, F f)
{
    const int N = pack<T>::SIZE;
    long ahead = (long)(reinterpret_cast<uintptr_t>(row) / sizeof(T) % N),
         at = threadIdx.x;
    long first = ahead == 0 ? 0 : N - ahead; /* index of the first aligned element */
    packed = packed && first < end;
    first = packed ? first : 0;
    long last = packed ? first + (end - first) / N * N : 0;
    if (at < first)
        f(load_lanes<1>(row + at), at);
    long step = (long)blockDim.x * N;
    /* each thread has two loads in flight */
    for (long i = first + at * N; i < last; i += 2 * step) {
        bool has_next = i + step < last;
        lanes<T, N> x = load_lanes<N>(row + i),
                    next = load_lanes<N>(row + (has_next ? i + step : i));
        f(x, i);
        if (has_next)
            f(next, i + step);
    }
    for (long i = last + at; i < end; i += blockDim.x)
        f(load_lanes<1>(row + i), i);
}

#define NO_TARGET (-2)

/* Column of the row's target token; -1 if another rank has that column; NO_TARGET if the
 * token is beyond the end of its sequence. */
__device__ long target_of(const ms_cuda_loss_args &args, long row)
{
    long sequence = args.first_sequence + row / args.length;
    long position = args.first_stored + row % args.length;
    if (args.positions != nullptr)
        position = args.positions[position];
    position += args.ahead;
    if (position >= args.sequence_length)
        return NO_TARGET;
    long at =
        args.targets[sequence * args.sequence_length + position] - args.first_column;
    return at >= 0 && at < args.num_real ? at : -1;
}

/* The logit x after its factor and the soft cap, which keep the order. */
template <class S> __device__ S capped(const ms_cuda_loss_args &args, S x)
{
    x *= S(args.scale);
    return args.cap > 0 ? S(args.cap) * tanh(x / S(args.cap)) : x;
}

/* Derivative of `capped` where it gives y. */
template <class S> __device__ S slope_at(const ms_cuda_loss_args &args, S y)
{
    return S(args.scale) *
           (args.cap > 0 ? 1 - y / S(args.cap) * (y / S(args.cap)) : S(1));
}

template <class T> __global__ void row_max(ms_cuda_loss_args args)
{
    typedef typename number<T>::sum S;
    S most = S(-HUGE_VAL);
    for_columns((const T *)args.logits + (long)blockIdx.x * args.width, args.num_real,
                true, [&](auto x, long) {
                    for (auto &at : x.at)
                        most = max(most, value(at));
                });
    most = block_max(most);
    if (threadIdx.x == 0)
        ((S *)args.max)[blockIdx.x] = capped(args, most);
}

template <class T> __global__ void row_sum(ms_cuda_loss_args args)
{
    typedef typename number<T>::sum S;
    const T *row = (const T *)args.logits + (long)blockIdx.x * args.width;
    S most = ((const S *)args.max)[blockIdx.x], sum = 0;
    for_columns(row, args.num_real, true, [&](auto x, long) {
        for (auto &at : x.at)
            sum += exp_of(capped(args, value(at)) - most);
    });
    sum = block_sum(sum);
    if (threadIdx.x != 0)
        return;
    long target = target_of(args, blockIdx.x);
    bool first = args.first_column == 0;
    if (target == NO_TARGET)
        sum = first ? S(1) : S(0);
    ((S *)args.sum)[blockIdx.x] = sum;
    ((S *)args.target)[blockIdx.x] = target >= 0
                                         ? capped(args, value(row[target]))
                                         : (target == NO_TARGET && first ? most : S(0));
}

/* Gradient of a row of logits, which it may overwrite: every thread writes what it has
 * read. `packed`: logits and gradient are equally far from 16-byte boundaries. */
template <class T, bool CAPPED>
__global__ void row_grad(ms_cuda_loss_args args, bool packed)
{
    typedef typename number<T>::sum S;
    long row = blockIdx.x, target = target_of(args, row);
    T *to = (T *)args.gradient + row * args.width;
    S most = ((const S *)args.max)[row],
      factor = target == NO_TARGET
                   ? S(0)
                   : S(1 / ((double)((const S *)args.sum)[row] * args.num_tokens)),
      one = S(1 / args.num_tokens);
    for_columns((const T *)args.logits + row * args.width, args.num_real, packed,
                [&](auto x, long column) {
                    long j = column;
                    for (auto &at : x.at) {
                        S x_capped = CAPPED ? capped(args, value(at)) : value(at),
                          y = exp_of(x_capped - most) * factor,
                          slope = CAPPED ? slope_at(args, x_capped) : S(1);
                        at = stored<T>((j++ == target ? y - one : y) * slope);
                    }
                    store_lanes<sizeof x.at / sizeof *x.at>(to + column, x);
                });
    for (long i = args.num_real + threadIdx.x; i < args.width; i += blockDim.x)
        to[i] = stored<T>(0);
}

template <class S> __global__ void losses(ms_cuda_loss_args args, S *loss)
{
    long i = (long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < args.num_rows)
        loss[i] =
            S((double)((const S *)args.max)[i] + log((double)((const S *)args.sum)[i]) -
              (double)((const S *)args.target)[i]);
}

} // namespace

/* ---- launches ---- */

void ms_cuda_loss_row_max(ms_cuda_stream *stream, const ms_cuda_loss_args *args)
{
    if (args->num_rows > 0)
        MS_BY_SCALAR(
            args->scalar, T,
            MS_LAUNCH((row_max<T>), (unsigned)args->num_rows, THREADS, 0, stream, *args));
}

void ms_cuda_loss_row_sum(ms_cuda_stream *stream, const ms_cuda_loss_args *args)
{
    if (args->num_rows > 0)
        MS_BY_SCALAR(
            args->scalar, T,
            MS_LAUNCH((row_sum<T>), (unsigned)args->num_rows, THREADS, 0, stream, *args));
}

void ms_cuda_loss_of_rows(ms_cuda_stream *stream, ms_scalar statistic,
                          const ms_cuda_loss_args *args, void *loss)
{
    unsigned blocks = ms_blocks(args->num_rows, THREADS, 0x7fffffff);
    if (args->num_rows <= 0)
        return;
    if (statistic == MS_SCALAR_FP64)
        MS_LAUNCH((losses<double>), blocks, THREADS, 0, stream, *args, (double *)loss);
    else
        MS_LAUNCH((losses<float>), blocks, THREADS, 0, stream, *args, (float *)loss);
}

void ms_cuda_loss_row_grad(ms_cuda_stream *stream, const ms_cuda_loss_args *args)
{
    bool packed =
        ((uintptr_t)args->gradient - (uintptr_t)args->logits) % MS_PACK_BYTES == 0;
    if (args->num_rows <= 0)
        return;
    MS_BY_SCALAR(args->scalar, T, {
        if (args->cap > 0 || args->scale != 1)
            MS_LAUNCH((row_grad<T, true>), (unsigned)args->num_rows, THREADS, 0, stream,
                      *args, packed);
        else
            MS_LAUNCH((row_grad<T, false>), (unsigned)args->num_rows, THREADS, 0, stream,
                      *args, packed);
    });
}
