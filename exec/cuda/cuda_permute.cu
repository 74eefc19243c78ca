/* Kernels that copy tokens to rows ordered by expert, and back. The row of each copy is
 * computed first; then a thread block per token (in gradients, per copy) moves rows. */
#include "exec/cuda/cuda_permute.h"

#include "exec/cuda/cuda_lanes.cuh"
#include "exec/cuda/cuda_sort.h"

#define MOST_THREADS 256

namespace
{

/* ---- kernels: one block per token; place[copy] is the row of a copy ---- */

template <class T, int N>
__global__ void spread(ms_cuda_permute_args args, const int *place)
{
    long token = blockIdx.x;
    const T *from = (const T *)args.x + token * args.width;
    for (long i = (long)threadIdx.x * N; i < args.width; i += (long)blockDim.x * N) {
        lanes<T, N> x = load_lanes<N>(from + i);
        for (long slot = 0; slot < args.num_chosen; slot++) {
            long row = place[token * args.num_chosen + slot];
            store_lanes<N>((T *)args.rows + row * args.width + i, x);
        }
    }
}

template <class T, int N>
__global__ void gather(ms_cuda_permute_args args, const int *place)
{
    typedef typename number<T>::sum S;
    long first = (long)blockIdx.x * args.num_chosen;
    const S *weight = (const S *)args.weight;
    for (long i = (long)threadIdx.x * N; i < args.width; i += (long)blockDim.x * N) {
        S sum[N] = {0};
        for (long copy = first; copy < first + args.num_chosen; copy++) {
            S factor = weight != nullptr ? weight[copy] : S(1);
            lanes<T, N> x =
                load_lanes<N>((const T *)args.rows + place[copy] * args.width + i);
            for (int j = 0; j < N; j++)
                sum[j] += factor * value(x.at[j]);
        }
        lanes<T, N> y;
        for (int j = 0; j < N; j++)
            y.at[j] = stored<T>(sum[j]);
        store_lanes<N>((T *)args.x + (long)blockIdx.x * args.width + i, y);
    }
}

/* Gradients of gather, one thread block per copy: of the copy's row and of its weight. */
template <class T, int N>
__global__ void gather_grad(ms_cuda_permute_args args, const int *place)
{
    typedef typename number<T>::sum S;
    long copy = blockIdx.x, row = place[copy] * args.width;
    const T *g = (const T *)args.x + copy / args.num_chosen * args.width,
            *from = (const T *)args.rows + row;
    T *to = (T *)args.grows + row;
    S factor = ((const S *)args.weight)[copy], dot = 0;
    for (long i = (long)threadIdx.x * N; i < args.width; i += (long)blockDim.x * N) {
        lanes<T, N> x = load_lanes<N>(from + i), y = load_lanes<N>(g + i);
        for (int j = 0; j < N; j++) {
            dot += value(x.at[j]) * value(y.at[j]);
            y.at[j] = stored<T>(factor * value(y.at[j]));
        }
        store_lanes<N>(to + i, y);
    }
    dot = block_sum(dot);
    if (threadIdx.x == 0)
        ((S *)args.gweight)[copy] = dot;
}

/* ---- launches ---- */

unsigned num_threads(long width, int per_thread)
{
    long warps = (width / per_thread + MS_WARP - 1) / MS_WARP;
    return warps < MOST_THREADS / MS_WARP ? (unsigned)warps * MS_WARP : MOST_THREADS;
}

/* Computes place[copy], the row of each copy of a token, in args->workspace. */
const int *make_order(ms_cuda_stream *stream, const ms_cuda_permute_args *args)
{
    int *place = (int *)args->workspace;
    long num_copies = args->num_tokens * args->num_chosen;
    ms_cuda_order order = {args->choice_scalar, args->choice, num_copies,
                           args->num_experts,   place,        place + num_copies};
    ms_cuda_order_places(stream, &order);
    return place;
}

bool is_empty(const ms_cuda_permute_args *args)
{
    return args->num_tokens <= 0 || args->num_chosen <= 0 || args->width <= 0;
}

/* Whether all rows can be accessed in 16-byte packs; NULL arrays count as aligned. */
template <class T> bool is_packed(const ms_cuda_permute_args *args)
{
    return is_aligned(args->x) && is_aligned(args->rows) && is_aligned(args->grows) &&
           args->width % pack<T>::SIZE == 0;
}

} // namespace

size_t ms_cuda_permute_buffers(long num_copies, long num_experts)
{
    return ms_cuda_order_bytes(num_copies, num_experts) +
           (size_t)num_copies * sizeof(int);
}

/* Launches KERNEL<T, N> with `num` thread blocks; N is a pack's size, 1 if unaligned. */
#define LAUNCH(KERNEL, num)                                                              \
    do {                                                                                 \
        const int *place = make_order(stream, args);                                     \
        MS_BY_SCALAR(args->scalar, T, {                                                  \
            const int size = pack<T>::SIZE;                                              \
            if (is_packed<T>(args))                                                      \
                MS_LAUNCH((KERNEL<T, size>), (unsigned)(num),                            \
                          num_threads(args->width, size), 0, stream, *args, place);      \
            else                                                                         \
                MS_LAUNCH((KERNEL<T, 1>), (unsigned)(num), num_threads(args->width, 1),  \
                          0, stream, *args, place);                                      \
        });                                                                              \
    } while (0)

void ms_cuda_permute_rows(ms_cuda_stream *stream, const ms_cuda_permute_args *args)
{
    if (!is_empty(args))
        LAUNCH(spread, args->num_tokens);
}

void ms_cuda_permute_back(ms_cuda_stream *stream, const ms_cuda_permute_args *args)
{
    if (!is_empty(args))
        LAUNCH(gather, args->num_tokens);
}

void ms_cuda_permute_back_grad(ms_cuda_stream *stream, const ms_cuda_permute_args *args)
{
    if (!is_empty(args))
        LAUNCH(gather_grad, args->num_tokens * args->num_chosen);
}
