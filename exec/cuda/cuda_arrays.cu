/* Element-wise operations on arrays, sums of arrays and the AdamW optimizer; results
 * equal those of exec/cpu/cpu_vector.c. */
#include "exec/cuda/cuda_arrays.h"

#include "exec/cuda/cuda_lanes.cuh"

#include <assert.h>
#include <math.h>

#define THREADS          256
#define LOADS_PER_THREAD 4 /* independent loads per thread in sums */

namespace
{

unsigned num_blocks(long num_items)
{
    return ms_blocks(num_items, THREADS, MS_MANY_BLOCKS);
}

/* ---- element by element ---- */

/* Applies a function object to all elements: at<N>(i) processes elements i .. i + N - 1,
 * where N is 1 or F::WIDTH (vector loads). */
template <class F> __global__ void for_each(F f, long num_vectors, long count)
{
    long step = (long)gridDim.x * blockDim.x,
         first = (long)blockIdx.x * blockDim.x + threadIdx.x;
    for (long i = first; i < num_vectors; i += step)
        f.template at<F::WIDTH>(i * F::WIDTH);
    for (long i = num_vectors * F::WIDTH + first; i < count; i += step)
        f.template at<1>(i);
}

template <class F> void run(ms_cuda_stream *stream, const F &f, bool aligned, long count)
{
    if (count <= 0)
        return;
    long num_vectors = aligned ? count / F::WIDTH : 0;
    unsigned blocks = num_blocks(num_vectors > 0 ? num_vectors : count);
    MS_LAUNCH((for_each<F>), blocks, THREADS, 0, stream, f, num_vectors, count);
}

template <class T> struct filling {
    static const int WIDTH = pack<T>::SIZE;
    T *to;
    typename number<T>::sum with;
    template <int N> __device__ void at(long i) const
    {
        lanes<T, N> y;
        for (int j = 0; j < N; j++)
            y.at[j] = stored<T>(with);
        store_lanes<N>(to + i, y);
    }
};

template <class T> struct adding {
    static const int WIDTH = pack<T>::SIZE;
    T *to;
    const T *from;
    template <int N> __device__ void at(long i) const
    {
        lanes<T, N> x = load_lanes<N>(to + i), y = load_lanes<N>(from + i);
        for (int j = 0; j < N; j++)
            x.at[j] = stored<T>(value(x.at[j]) + value(y.at[j]));
        store_lanes<N>(to + i, x);
    }
};

template <class T> struct rounding {
    typedef typename number<T>::sum S;
    static const int WIDTH = pack<T>::SIZE;
    T *to;
    const S *from;
    const T *plus;
    template <int N> __device__ void at(long i) const
    {
        /* N elements of sum type S may be wider than one vector load */
        const int each = N < pack<S>::SIZE ? N : pack<S>::SIZE;
        lanes<T, N> y = {};
        if (plus != nullptr)
            y = load_lanes<N>(plus + i);
        for (int first = 0; first < N; first += each) {
            lanes<S, each> x = load_lanes<each>(from + i + first);
            for (int j = 0; j < each; j++)
                y.at[first + j] = stored<T>(
                    plus != nullptr ? x.at[j] + value(y.at[first + j]) : x.at[j]);
        }
        store_lanes<N>(to + i, y);
    }
};

template <class T> struct scaling {
    static const int WIDTH = pack<T>::SIZE;
    T *x;
    typename number<T>::sum factor;
    template <int N> __device__ void at(long i) const
    {
        lanes<T, N> y = load_lanes<N>(x + i);
        for (int j = 0; j < N; j++)
            y.at[j] = stored<T>(value(y.at[j]) * factor);
        store_lanes<N>(x + i, y);
    }
};

/* Conversion of elements; fp64 becomes bf16 by way of fp32. */
template <class To, class From> struct casting {
    static const int WIDTH = pack<bf16>::SIZE;
    To *to;
    const From *from;
    template <int N> __device__ void at(long i) const
    {
        lanes<From, N> x = load_lanes<N>(from + i);
        lanes<To, N> y;
        for (int j = 0; j < N; j++)
            y.at[j] = stored<To>((typename number<To>::sum)value(x.at[j]));
        store_lanes<N>(to + i, y);
    }
};

template <class To> void cast_to(ms_cuda_stream *stream, const ms_cuda_cast *cast)
{
    MS_BY_SCALAR(cast->from_scalar, From, {
        casting<To, From> f = {(To *)cast->to, (const From *)cast->from};
        run(stream, f, is_aligned(cast->to) && is_aligned(cast->from), cast->count);
    });
}

/* ---- sums ---- */

/* Loads elements i .. i + pack<T>::SIZE - 1; those from `count` on are 0. */
template <class T>
__device__ lanes<T, pack<T>::SIZE> load_some(const T *x, long i, long count, bool aligned)
{
    const int width = pack<T>::SIZE;
    if (aligned && i + width <= count)
        return load_lanes<width>(x + i);
    lanes<T, width> y;
    for (int j = 0; j < width; j++)
        y.at[j] = i + j < count ? x[i + j] : stored<T>(0);
    return y;
}

/* Sums x, or its squares, into parts[blockIdx.x]; `aligned` does not change the order. */
template <class T, bool SQUARED>
__global__ void sum_parts(double *parts, const T *x, long count, bool aligned)
{
    const int width = pack<T>::SIZE;
    const long tile = (long)THREADS * width * LOADS_PER_THREAD;
    double lane[width] = {0};
    for (long first = blockIdx.x * tile; first < count; first += gridDim.x * tile) {
        lanes<T, width> y[LOADS_PER_THREAD];
#pragma unroll
        for (int k = 0; k < LOADS_PER_THREAD; k++)
            y[k] = load_some(x, first + ((long)k * THREADS + threadIdx.x) * width, count,
                             aligned);
#pragma unroll
        for (int k = 0; k < LOADS_PER_THREAD; k++) {
            for (int j = 0; j < width; j++) {
                double term = (double)value(y[k].at[j]);
                lane[j] += SQUARED ? term * term : term;
            }
        }
    }
    for (int half = width / 2; half > 0; half /= 2)
        for (int j = 0; j < half; j++)
            lane[j] += lane[j + half];
    double sum = block_sum(lane[0]);
    if (threadIdx.x == 0)
        parts[blockIdx.x] = sum;
}

__global__ void add_parts(double *slot, const double *parts, int num)
{
    double sum = 0;
    for (int i = (int)threadIdx.x; i < num; i += (int)blockDim.x)
        sum += parts[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0)
        *slot += sum;
}

template <class T, bool SQUARED>
void add_to_slot(ms_cuda_stream *stream, double *slot, const void *x, long count,
                 void *scratch)
{
    if (count <= 0)
        return;
    unsigned num = ms_blocks(count, (long)THREADS * pack<T>::SIZE * LOADS_PER_THREAD,
                             MS_CUDA_SUM_BLOCKS);
    MS_LAUNCH((sum_parts<T, SQUARED>), num, THREADS, 0, stream, (double *)scratch,
              (const T *)x, count, is_aligned(x));
    MS_LAUNCH((add_parts), 1, THREADS, 0, stream, slot, (const double *)scratch,
              (int)num);
}

/* ---- the optimizer ---- */

/* Scalars of one AdamW step, as in exec/cpu/cpu_vector.c. */
template <class S> struct adamw_step {
    S decay_factor; /* 1 - learning rate x weight decay */
    S one_minus_beta1, beta2, one_minus_beta2;
    S step_size, root_correction, epsilon, gradient_scale;
};

template <class S> adamw_step<S> prepare_step(const ms_adamw *how)
{
    double first = 1 - pow(how->beta1, (double)how->step),
           second = 1 - pow(how->beta2, (double)how->step);
    adamw_step<S> s;
    s.decay_factor = (S)(1 - how->learning_rate * how->weight_decay);
    s.one_minus_beta1 = (S)(1 - how->beta1);
    s.beta2 = (S)how->beta2;
    s.one_minus_beta2 = (S)(1 - how->beta2);
    s.step_size = (S)(how->learning_rate / first);
    s.root_correction = (S)sqrt(second);
    s.epsilon = (S)how->epsilon;
    s.gradient_scale = (S)how->gradient_scale;
    return s;
}

/* AdamW update. For bf16 weights `weight` has the fp32 master weights and `copy` gets
 * them rounded; otherwise `weight` has the weights themselves and `copy` is NULL. */
template <class T, class S> struct updating {
    static const int WIDTH = pack<S>::SIZE;
    adamw_step<S> s;
    S *weight;
    T *copy;
    const S *gradient;
    S *first, *second;

    template <int N> __device__ void at(long i) const
    {
        lanes<S, N> w = load_lanes<N>(weight + i), gs = load_lanes<N>(gradient + i),
                    ms = load_lanes<N>(first + i), vs = load_lanes<N>(second + i);
        lanes<T, N> rounded;
        for (int j = 0; j < N; j++) {
            S g = times(gs.at[j], s.gradient_scale);
            S m = ms.at[j] + times(g - ms.at[j], s.one_minus_beta1);
            S v = times(vs.at[j], s.beta2) + times(times(s.one_minus_beta2, g), g);
            S root = sqrt(v) / s.root_correction + s.epsilon;
            w.at[j] = times(w.at[j], s.decay_factor) - times(s.step_size, m / root);
            ms.at[j] = m;
            vs.at[j] = v;
            rounded.at[j] = stored<T>(w.at[j]);
        }
        store_lanes<N>(weight + i, w);
        store_lanes<N>(first + i, ms);
        store_lanes<N>(second + i, vs);
        if (copy != nullptr)
            store_lanes<N>(copy + i, rounded);
    }
};

template <class T>
void update(ms_cuda_stream *stream, const ms_adamw *how, const ms_update *u)
{
    typedef typename number<T>::sum S;
    bool has_master = u->master != nullptr;
    assert(has_master || sizeof(T) == sizeof(S));
    updating<T, S> f = {prepare_step<S>(how),
                        (S *)(has_master ? u->master : u->weight),
                        has_master ? (T *)u->weight : nullptr,
                        (const S *)u->gradient,
                        (S *)u->first_moment,
                        (S *)u->second_moment};
    bool aligned = is_aligned(u->weight) && is_aligned(f.weight) &&
                   is_aligned(u->gradient) && is_aligned(u->first_moment) &&
                   is_aligned(u->second_moment);
    run(stream, f, aligned, u->count);
}

} // namespace

/* ---- launches ---- */

void ms_cuda_array_fill(ms_cuda_stream *stream, ms_scalar scalar, void *to, double value,
                        long count)
{
    MS_BY_SCALAR(scalar, T, {
        filling<T> f = {(T *)to, (typename number<T>::sum)value};
        run(stream, f, is_aligned(to), count);
    });
}

void ms_cuda_array_add(ms_cuda_stream *stream, ms_scalar scalar, void *to,
                       const void *from, long count)
{
    MS_BY_SCALAR(scalar, T, {
        adding<T> f = {(T *)to, (const T *)from};
        run(stream, f, is_aligned(to) && is_aligned(from), count);
    });
}

void ms_cuda_array_round_sum(ms_cuda_stream *stream, const ms_rounded_sum *sum)
{
    MS_BY_SCALAR(sum->scalar, T, {
        rounding<T> f = {(T *)sum->to, (const typename number<T>::sum *)sum->from,
                         (const T *)sum->plus};
        run(stream, f,
            is_aligned(sum->to) && is_aligned(sum->from) && is_aligned(sum->plus),
            sum->count);
    });
}

void ms_cuda_array_scale(ms_cuda_stream *stream, ms_scalar scalar, void *x, double factor,
                         long count)
{
    MS_BY_SCALAR(scalar, T, {
        scaling<T> f = {(T *)x, (typename number<T>::sum)factor};
        run(stream, f, is_aligned(x), count);
    });
}

void ms_cuda_array_cast(ms_cuda_stream *stream, const ms_cuda_cast *cast)
{
    MS_BY_SCALAR(cast->to_scalar, To, cast_to<To>(stream, cast));
}

void ms_cuda_array_add_sum(ms_cuda_stream *stream, ms_scalar scalar, double *slot,
                           const void *x, long count, void *scratch)
{
    MS_BY_SCALAR(scalar, T, (add_to_slot<T, false>(stream, slot, x, count, scratch)));
}

void ms_cuda_array_add_squares(ms_cuda_stream *stream, ms_scalar scalar, double *slot,
                               const void *x, long count, void *scratch)
{
    MS_BY_SCALAR(scalar, T, (add_to_slot<T, true>(stream, slot, x, count, scratch)));
}

void ms_cuda_array_adamw(ms_cuda_stream *stream, const ms_adamw *how, const ms_update *u)
{
    MS_BY_SCALAR(u->scalar, T, update<T>(stream, how, u));
}
