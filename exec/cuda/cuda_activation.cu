/* Element-wise kernels (activations, additions, gates): each thread processes 16 bytes of
 * every array at a time; unaligned arrays and remainders are processed one by one. */
#include "exec/cuda/cuda_activation.h"

#include "exec/cuda/cuda_lanes.cuh"

#define THREADS     256
#define BLOCKS      16384 /* largest grid; its threads loop over further work */
#define GATE_ROWS   8     /* rows per thread block, one warp each */
#define MOST_BLOCKS 0x7fffffffL

#define SQRT_HALF         0.70710678118654752
#define SQRT_2_OVER_PI    0.79788456080286536
#define ONE_OVER_SQRT_2PI 0.39894228040143268
#define GELU_CUBIC        0.044715

namespace
{

/* ---- kernels that apply a function object; at<N>(i) processes elements i .. i + N - 1
 * ---- */

template <int N, typename F>
__global__ void __launch_bounds__(THREADS) run(F f, long first, long num_pieces)
{
    long step = static_cast<long>(gridDim.x) * THREADS;
    for (long i = static_cast<long>(blockIdx.x) * THREADS + threadIdx.x; i < num_pieces;
         i += step)
        f.template at<N>(first + i * N);
}

template <int N, typename F>
void launch(ms_cuda_stream *stream, const F &f, long first, long num_pieces)
{
    if (num_pieces > 0)
        MS_LAUNCH((run<N, F>), ms_blocks(num_pieces, THREADS, BLOCKS), THREADS, 0, stream,
                  f, first, num_pieces);
}

template <typename T, typename F>
void for_all(ms_cuda_stream *stream, const F &f, long count, bool is_aligned)
{
    constexpr int N = pack<T>::SIZE;
    long num_pieces = is_aligned ? count / N : 0;
    launch<N>(stream, f, 0, num_pieces);
    launch<1>(stream, f, num_pieces * N, count - num_pieces * N);
}

/* ---- activations ---- */

/* 1 / x for x in 1 .. infinity; the fast fp32 division has an error of up to 2 ulp. */
__device__ __forceinline__ float one_over(float x)
{
    return __fdividef(1.0F, x);
}
__device__ __forceinline__ double one_over(double x)
{
    return 1 / x;
}
template <typename S> __device__ __forceinline__ S sigmoid(S x)
{
    return one_over(1 + exp_of(-x));
}
__device__ __forceinline__ float erf_of(float x)
{
    return erff(x);
}
__device__ __forceinline__ double erf_of(double x)
{
    return erf(x);
}

/* Value and derivative (slope) of an activation at x. GELU (Hendrycks and Gimpel 2016) is
 * x Phi(x); MS_CUDA_GELU_TANH x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3). */
template <typename S> struct point {
    S value, slope;
};

template <ms_cuda_curve CURVE, typename S>
__device__ __forceinline__ point<S> point_at(S x)
{
    if constexpr (CURVE == MS_CUDA_SILU) {
        S open = sigmoid(x);
        return {x * open, open * (1 + x * (1 - open))};
    } else if constexpr (CURVE == MS_CUDA_RELU) {
        return {x > 0 ? x : S(0), x > 0 ? S(1) : S(0)};
    } else if constexpr (CURVE == MS_CUDA_RELU2) {
        return {x > 0 ? x * x : S(0), x > 0 ? 2 * x : S(0)};
    } else if constexpr (CURVE == MS_CUDA_GELU) {
        S below = S(0.5) * (1 + erf_of(x * S(SQRT_HALF)));
        return {x * below, below + x * exp_of(-x * x / 2) * S(ONE_OVER_SQRT_2PI)};
    } else {
        const S scale = S(2 * SQRT_2_OVER_PI);
        S open = sigmoid(scale * (x + S(GELU_CUBIC) * x * x * x));
        return {x * open,
                open + x * open * (1 - open) * scale * (1 + S(3 * GELU_CUBIC) * x * x)};
    }
}

template <typename T, ms_cuda_curve CURVE, bool IS_GATED> struct forward {
    const T *x, *factor;
    T *out;

    template <int N> __device__ __forceinline__ void at(long i) const
    {
        lanes<T, N> y = load_lanes<N>(x + i), by = {};
        if (IS_GATED)
            by = load_lanes<N>(factor + i);
#pragma unroll
        for (int j = 0; j < N; j++) {
            auto v = point_at<CURVE>(value(y.at[j])).value;
            y.at[j] = stored<T>(IS_GATED ? v * value(by.at[j]) : v);
        }
        store_lanes(out + i, y);
    }
};

template <typename T, ms_cuda_curve CURVE, bool IS_GATED> struct backward {
    const T *x, *factor, *gout;
    T *gx, *gfactor;

    template <int N> __device__ __forceinline__ void at(long i) const
    {
        lanes<T, N> from = load_lanes<N>(x + i), g = load_lanes<N>(gout + i), by = {};
        if (IS_GATED)
            by = load_lanes<N>(factor + i);
#pragma unroll
        for (int j = 0; j < N; j++) {
            auto p = point_at<CURVE>(value(from.at[j]));
            auto go = value(g.at[j]);
            g.at[j] = stored<T>(IS_GATED ? go * p.slope * value(by.at[j]) : go * p.slope);
            by.at[j] = stored<T>(go * p.value);
        }
        store_lanes(gx + i, g);
        if (IS_GATED)
            store_lanes(gfactor + i, by);
    }
};

template <typename T, ms_cuda_curve CURVE, bool IS_GATED>
void launch_forward(ms_cuda_stream *stream, const ms_cuda_activation_args *a)
{
    forward<T, CURVE, IS_GATED> f = {static_cast<const T *>(a->x),
                                     static_cast<const T *>(a->factor),
                                     static_cast<T *>(a->out)};
    for_all<T>(stream, f, a->count,
               is_aligned(a->x) && is_aligned(a->factor) && is_aligned(a->out));
}

template <typename T, ms_cuda_curve CURVE, bool IS_GATED>
void launch_backward(ms_cuda_stream *stream, const ms_cuda_activation_args *a)
{
    backward<T, CURVE, IS_GATED> f = {
        static_cast<const T *>(a->x), static_cast<const T *>(a->factor),
        static_cast<const T *>(a->gout), static_cast<T *>(a->gx),
        static_cast<T *>(a->gfactor)};
    for_all<T>(stream, f, a->count,
               is_aligned(a->x) && is_aligned(a->factor) && is_aligned(a->gout) &&
                   is_aligned(a->gx) && is_aligned(a->gfactor));
}

template <typename T, ms_cuda_curve CURVE>
void launch_curve(ms_cuda_stream *stream, const ms_cuda_activation_args *a,
                  bool is_backward)
{
    bool is_gated = a->factor != NULL;
    if (is_backward && is_gated)
        launch_backward<T, CURVE, true>(stream, a);
    else if (is_backward)
        launch_backward<T, CURVE, false>(stream, a);
    else if (is_gated)
        launch_forward<T, CURVE, true>(stream, a);
    else
        launch_forward<T, CURVE, false>(stream, a);
}

template <typename T>
void launch_activation(ms_cuda_stream *stream, const ms_cuda_activation_args *a,
                       bool is_backward)
{
    switch (a->curve) {
    case MS_CUDA_SILU:
        return launch_curve<T, MS_CUDA_SILU>(stream, a, is_backward);
    case MS_CUDA_RELU:
        return launch_curve<T, MS_CUDA_RELU>(stream, a, is_backward);
    case MS_CUDA_RELU2:
        return launch_curve<T, MS_CUDA_RELU2>(stream, a, is_backward);
    case MS_CUDA_GELU:
        return launch_curve<T, MS_CUDA_GELU>(stream, a, is_backward);
    case MS_CUDA_GELU_TANH:
        return launch_curve<T, MS_CUDA_GELU_TANH>(stream, a, is_backward);
    }
}

/* ---- sums and masks ---- */

template <typename T, bool HAS_MASK> struct add_two {
    const T *x, *y;
    T *out;
    unsigned char *mask;

    template <int N> __device__ __forceinline__ void at(long i) const
    {
        lanes<T, N> a = load_lanes<N>(x + i);
        const lanes<T, N> b = load_lanes<N>(y + i);
        lanes<unsigned char, N> kept;
#pragma unroll
        for (int j = 0; j < N; j++) {
            a.at[j] = stored<T>(value(a.at[j]) + value(b.at[j]));
            kept.at[j] = 1;
        }
        store_lanes(out + i, a);
        if (HAS_MASK)
            store_lanes(mask + i, kept);
    }
};

template <typename T> struct masked {
    const T *x;
    const unsigned char *mask;
    T *out;

    template <int N> __device__ __forceinline__ void at(long i) const
    {
        lanes<T, N> y = load_lanes<N>(x + i);
        const lanes<unsigned char, N> kept = load_lanes<N>(mask + i);
#pragma unroll
        for (int j = 0; j < N; j++)
            y.at[j] = kept.at[j] != 0 ? y.at[j] : stored<T>(0);
        store_lanes(out + i, y);
    }
};

template <typename T, bool HAS_MASK>
void launch_add(ms_cuda_stream *stream, const ms_cuda_sum_of_two *a)
{
    add_two<T, HAS_MASK> f = {static_cast<const T *>(a->x), static_cast<const T *>(a->y),
                              static_cast<T *>(a->out), a->mask};
    for_all<T>(stream, f, a->count,
               is_aligned(a->x) && is_aligned(a->y) && is_aligned(a->out) &&
                   is_aligned(a->mask));
}

/* ---- gate: one warp per row ---- */

template <typename T, int N>
__global__ void __launch_bounds__(GATE_ROWS *MS_WARP)
    gate_rows(T *out, const T *x, const T *gate, long num_rows, int num_pieces)
{
    long row = static_cast<long>(blockIdx.x) * GATE_ROWS + threadIdx.x / MS_WARP;
    if (row >= num_rows)
        return;
    auto open = sigmoid(value(gate[row]));
    long first = row * num_pieces * N;
    for (int piece = static_cast<int>(threadIdx.x) % MS_WARP; piece < num_pieces;
         piece += MS_WARP) {
        long i = first + static_cast<long>(piece) * N;
        lanes<T, N> y = load_lanes<N>(x + i);
#pragma unroll
        for (int j = 0; j < N; j++)
            y.at[j] = stored<T>(value(y.at[j]) * open);
        store_lanes(out + i, y);
    }
}

template <typename T> struct gate_gradient {
    const T *x, *gate, *gout;
    T *gx, *ggate;
};

template <typename T, int N>
__global__ void __launch_bounds__(GATE_ROWS *MS_WARP)
    gate_rows_grad(gate_gradient<T> g, long num_rows, int num_pieces)
{
    using S = typename number<T>::sum;
    long row = static_cast<long>(blockIdx.x) * GATE_ROWS + threadIdx.x / MS_WARP;
    int lane = static_cast<int>(threadIdx.x) % MS_WARP;
    if (row >= num_rows)
        return;
    S open = sigmoid(value(g.gate[row])), sum = 0;
    long first = row * num_pieces * N;
    for (int piece = lane; piece < num_pieces; piece += MS_WARP) {
        long i = first + static_cast<long>(piece) * N;
        const lanes<T, N> y = load_lanes<N>(g.x + i);
        lanes<T, N> go = load_lanes<N>(g.gout + i);
#pragma unroll
        for (int j = 0; j < N; j++) {
            sum += value(go.at[j]) * value(y.at[j]);
            go.at[j] = stored<T>(value(go.at[j]) * open);
        }
        store_lanes(g.gx + i, go);
    }
    sum = warp_sum(sum);
    if (lane == 0)
        g.ggate[row] = stored<T>(sum * open * (1 - open));
}

template <typename T, int N>
void launch_gate(ms_cuda_stream *stream, const ms_cuda_gate_args *a, bool is_backward)
{
    unsigned blocks = ms_blocks(a->num_rows, GATE_ROWS, MOST_BLOCKS);
    int num_pieces = static_cast<int>(a->width / N);
    const T *x = static_cast<const T *>(a->x), *gate = static_cast<const T *>(a->gate);
    if (is_backward) {
        gate_gradient<T> g = {x, gate, static_cast<const T *>(a->gout),
                              static_cast<T *>(a->gx), static_cast<T *>(a->ggate)};
        MS_LAUNCH((gate_rows_grad<T, N>), blocks, GATE_ROWS * MS_WARP, 0, stream, g,
                  a->num_rows, num_pieces);
    } else {
        MS_LAUNCH((gate_rows<T, N>), blocks, GATE_ROWS * MS_WARP, 0, stream,
                  static_cast<T *>(a->out), x, gate, a->num_rows, num_pieces);
    }
}

void gate_by_type(ms_cuda_stream *stream, const ms_cuda_gate_args *a, bool is_backward)
{
    if (a->num_rows == 0)
        return;
    bool are_aligned = is_aligned(a->x) && is_aligned(a->out) && is_aligned(a->gout) &&
                       is_aligned(a->gx);
    MS_BY_SCALAR(a->scalar, T, {
        if (are_aligned && a->width % pack<T>::SIZE == 0)
            launch_gate<T, pack<T>::SIZE>(stream, a, is_backward);
        else
            launch_gate<T, 1>(stream, a, is_backward);
    });
}

} // namespace

void ms_cuda_activate(ms_cuda_stream *stream, const ms_cuda_activation_args *args)
{
    MS_BY_SCALAR(args->scalar, T, launch_activation<T>(stream, args, false));
}

void ms_cuda_activate_grad(ms_cuda_stream *stream, const ms_cuda_activation_args *args)
{
    MS_BY_SCALAR(args->scalar, T, launch_activation<T>(stream, args, true));
}

void ms_cuda_add_two(ms_cuda_stream *stream, const ms_cuda_sum_of_two *args)
{
    MS_BY_SCALAR(args->scalar, T, {
        if (args->mask != NULL)
            launch_add<T, true>(stream, args);
        else
            launch_add<T, false>(stream, args);
    });
}

void ms_cuda_mask(ms_cuda_stream *stream, const ms_cuda_masked *args)
{
    MS_BY_SCALAR(args->scalar, T, {
        masked<T> f = {static_cast<const T *>(args->x), args->mask,
                       static_cast<T *>(args->out)};
        for_all<T>(stream, f, args->count,
                   is_aligned(args->x) && is_aligned(args->mask) &&
                       is_aligned(args->out));
    });
}

void ms_cuda_gate_rows(ms_cuda_stream *stream, const ms_cuda_gate_args *args)
{
    gate_by_type(stream, args, false);
}

void ms_cuda_gate_rows_grad(ms_cuda_stream *stream, const ms_cuda_gate_args *args)
{
    gate_by_type(stream, args, true);
}
