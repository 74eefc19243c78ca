/* Rotary positions: angles are computed once per position, in fp64, since fp32 angles of
 * large positions have no correct digit after the decimal point. One thread block per
 * token rotates its heads by them, backward by their negatives. */
#include "exec/cuda/cuda_rotary.h"

#include "exec/cuda/cuda_lanes.cuh"

#define ANGLE_THREADS 128
#define MOST_THREADS  256 /* largest number of threads per token */
#define MOST_BLOCKS   0x7fffffffL

namespace
{

unsigned threads_of(long num_units)
{
    long warps = (num_units + MS_WARP - 1) / MS_WARP;
    return static_cast<unsigned>(
        min(max(warps, 1L) * MS_WARP, static_cast<long>(MOST_THREADS)));
}

/* ---- rotary positions ---- */

struct turn {
    long length, first_stored;
    int heads, kept,
        /* kept: unrotated elements of a head; count: rotated pairs */
        count;
    int first_kept, first_turned;
    int step, gap; /* from a pair to the next one; between the elements of a pair */
    ms_rotary how;
    bool is_inverse;
    const int *positions;
};

template <typename S>
__global__ void __launch_bounds__(ANGLE_THREADS) make_angles(turn t, S *angles)
{
    long i = static_cast<long>(blockIdx.x) * ANGLE_THREADS + threadIdx.x;
    if (i >= t.length * t.count)
        return;
    long stored_at = t.first_stored + i / t.count;
    int pair = static_cast<int>(i % t.count);
    double position =
        static_cast<double>(t.positions != NULL ? t.positions[stored_at] : stored_at);
    double sine, cosine;
    sincos(position * ms_rotary_frequency(&t.how, pair), &sine, &cosine);
    S *row = angles + i / t.count * 2 * t.count;
    row[pair] = static_cast<S>(t.how.amplitude * cosine);
    row[t.count + pair] = static_cast<S>(t.how.amplitude * sine);
}

template <typename T, int N>
__device__ __forceinline__ void turn_piece(T *low_to, T *high_to, const T *low,
                                           const T *high,
                                           const typename number<T>::sum *cosine,
                                           const typename number<T>::sum *sine,
                                           typename number<T>::sum sign)
{
    using S = typename number<T>::sum;
    lanes<T, N> first = load_lanes<N>(low), second = load_lanes<N>(high);
    const lanes<S, N> c = load_lanes<N>(cosine), s = load_lanes<N>(sine);
#pragma unroll
    for (int j = 0; j < N; j++) {
        S x = value(first.at[j]), y = value(second.at[j]), turned = sign * s.at[j];
        first.at[j] = stored<T>(x * c.at[j] - y * turned);
        second.at[j] = stored<T>(y * c.at[j] + x * turned);
    }
    store_lanes(low_to, first);
    store_lanes(high_to, second);
}

/* Rotates one token of x per thread block. Threads share units of heads; a unit is N
 * unrotated elements, or N pairs of elements to rotate. */
template <typename T, int N>
__global__ void __launch_bounds__(MOST_THREADS)
    rotate(turn t, T *out, const T *x, const typename number<T>::sum *angles)
{
    long token = blockIdx.x;
    int width = t.kept + 2 * t.count, kept_units = t.kept / N,
        units = kept_units + t.count / N;
    const typename number<T>::sum *cosine = angles + token % t.length * 2 * t.count,
                                  *sine = cosine + t.count;
    for (int i = static_cast<int>(threadIdx.x); i < t.heads * units;
         i += static_cast<int>(blockDim.x)) {
        int unit = i % units;
        long row = (token * t.heads + i / units) * width;
        if (unit < kept_units) {
            long kept = row + t.first_kept + unit * N;
            store_lanes(out + kept, load_lanes<N>(x + kept));
            continue;
        }
        int pair = (unit - kept_units) * N;
        long low = row + t.first_turned + pair * t.step, high = low + t.gap;
        turn_piece<T, N>(out + low, out + high, x + low, x + high, cosine + pair,
                         sine + pair, t.is_inverse ? -1 : 1);
    }
}

template <typename T, int N>
void launch_rotate(ms_cuda_stream *stream, const ms_cuda_rotary_args *a, const turn &t)
{
    using S = typename number<T>::sum;
    unsigned blocks = static_cast<unsigned>(a->outer * a->length);
    MS_LAUNCH((rotate<T, N>), blocks,
              threads_of(static_cast<long>(t.heads) * ((t.kept + t.count) / N)), 0,
              stream, t, static_cast<T *>(a->out), static_cast<const T *>(a->x),
              static_cast<const S *>(a->angles));
}

turn turn_of(const ms_cuda_rotary_args *a)
{
    int turned = 2 * a->how.count, kept = a->width - turned;
    bool leads = a->how.leading, neighbours = a->how.interleaved;
    return {a->length,
            a->first_stored,
            a->heads,
            kept,
            a->how.count,
            leads ? turned : 0,
            leads ? 0 : kept,
            neighbours ? 2 : 1,
            neighbours ? 1 : a->how.count,
            a->how,
            a->is_inverse,
            a->positions};
}

template <typename T>
void rotate_all(ms_cuda_stream *stream, const ms_cuda_rotary_args *a)
{
    constexpr int N = pack<T>::SIZE;
    turn t = turn_of(a);
    if (is_aligned(a->x) && is_aligned(a->out) && t.kept % N == 0 && t.count % N == 0 &&
        t.step == 1)
        launch_rotate<T, N>(stream, a, t);
    else
        launch_rotate<T, 1>(stream, a, t);
}

/* ---- keys of multi-head latent attention: one block per token ---- */

/* Arguments of join_keys and its gradient; nope, rope, value in pieces of N elements. */
template <typename T> struct latent {
    int heads, nope, rope, value;
    T *up, *shared, *k, *v;
};

template <typename T, int N>
__device__ __forceinline__ void copy_piece(T *to, long piece_to, const T *from,
                                           long piece_from)
{
    store_lanes(to + piece_to * N, load_lanes<N>(from + piece_from * N));
}

template <typename T, int N>
__global__ void __launch_bounds__(MOST_THREADS) join_keys(latent<T> l)
{
    int units = l.nope + l.rope + l.value;
    for (int i = static_cast<int>(threadIdx.x); i < l.heads * units;
         i += static_cast<int>(blockDim.x)) {
        int unit = i % units;
        long token = blockIdx.x, row = token * l.heads + i / units;
        long up = row * (l.nope + l.value), k = row * (l.nope + l.rope);
        if (unit < l.nope)
            copy_piece<T, N>(l.k, k + unit, l.up, up + unit);
        else if (unit < l.nope + l.rope)
            copy_piece<T, N>(l.k, k + unit, l.shared, token * l.rope + unit - l.nope);
        else
            copy_piece<T, N>(l.v, row * l.value + unit - l.nope - l.rope, l.up,
                             up + unit - l.rope);
    }
}

/* Writes gradients into l.up and l.shared; l.k and l.v have the gradients of k and v. */
template <typename T, int N>
__global__ void __launch_bounds__(MOST_THREADS) join_keys_grad(latent<T> l)
{
    using S = typename number<T>::sum;
    long token = blockIdx.x;
    int units = l.nope + l.value;
    for (int i = static_cast<int>(threadIdx.x); i < l.heads * units;
         i += static_cast<int>(blockDim.x)) {
        int unit = i % units;
        long row = token * l.heads + i / units, up = row * units + unit;
        if (unit < l.nope)
            copy_piece<T, N>(l.up, up, l.k, row * (l.nope + l.rope) + unit);
        else
            copy_piece<T, N>(l.up, up, l.v, row * l.value + unit - l.nope);
    }
    for (int piece = static_cast<int>(threadIdx.x); piece < l.rope;
         piece += static_cast<int>(blockDim.x)) {
        S sum[N] = {};
#pragma unroll 4
        for (int head = 0; head < l.heads; head++) {
            long row = token * l.heads + head;
            const lanes<T, N> x =
                load_lanes<N>(l.k + (row * (l.nope + l.rope) + l.nope + piece) * N);
#pragma unroll
            for (int j = 0; j < N; j++)
                sum[j] += value(x.at[j]);
        }
        lanes<T, N> to;
#pragma unroll
        for (int j = 0; j < N; j++)
            to.at[j] = stored<T>(sum[j]);
        store_lanes(l.shared + (token * l.rope + piece) * N, to);
    }
}

template <typename T, int N>
void launch_keys(ms_cuda_stream *stream, const ms_cuda_mla_args *a, bool is_backward)
{
    latent<T> l = {a->heads,
                   a->nope / N,
                   a->rope / N,
                   a->value / N,
                   static_cast<T *>(a->up),
                   static_cast<T *>(a->shared),
                   static_cast<T *>(a->k),
                   static_cast<T *>(a->v)};
    unsigned blocks = static_cast<unsigned>(a->num_tokens),
             threads =
                 threads_of(static_cast<long>(l.heads) * (l.nope + l.rope + l.value));
    if (is_backward)
        MS_LAUNCH((join_keys_grad<T, N>), blocks, threads, 0, stream, l);
    else
        MS_LAUNCH((join_keys<T, N>), blocks, threads, 0, stream, l);
}

void keys_by_type(ms_cuda_stream *stream, const ms_cuda_mla_args *a, bool is_backward)
{
    if (a->num_tokens == 0)
        return;
    bool are_aligned = is_aligned(a->up) && is_aligned(a->shared) && is_aligned(a->k) &&
                       is_aligned(a->v);
    MS_BY_SCALAR(a->scalar, T, {
        constexpr int N = pack<T>::SIZE;
        if (are_aligned && a->nope % N == 0 && a->rope % N == 0 && a->value % N == 0)
            launch_keys<T, N>(stream, a, is_backward);
        else
            launch_keys<T, 1>(stream, a, is_backward);
    });
}

} // namespace

void ms_cuda_make_angles(ms_cuda_stream *stream, const ms_cuda_rotary_args *args)
{
    long num_angles = args->length * args->how.count;
    if (num_angles == 0)
        return;
    MS_BY_SCALAR(args->scalar, T, {
        using S = typename number<T>::sum;
        MS_LAUNCH((make_angles<S>), ms_blocks(num_angles, ANGLE_THREADS, MOST_BLOCKS),
                  ANGLE_THREADS, 0, stream, turn_of(args),
                  static_cast<S *>(args->angles));
    });
}

void ms_cuda_rotate(ms_cuda_stream *stream, const ms_cuda_rotary_args *args)
{
    if (args->outer * args->length * args->heads * args->width == 0)
        return;
    MS_BY_SCALAR(args->scalar, T, rotate_all<T>(stream, args));
}

void ms_cuda_join_keys(ms_cuda_stream *stream, const ms_cuda_mla_args *args)
{
    keys_by_type(stream, args, false);
}

void ms_cuda_join_keys_grad(ms_cuda_stream *stream, const ms_cuda_mla_args *args)
{
    keys_by_type(stream, args, true);
}
