#include "exec/cuda/cuda_modelled.h"

#include "exec/cuda/cuda_device.cuh"

#include <math.h>

/* Threads and shared memory of a block, about those of NCCL 2's kernels (up to 640 threads,
 * some 80 KiB; from memory of the code): no block of a large GEMM fits beside it. */
#define THREADS      512
#define SHARED_BYTES (64 << 10)
#define REST_NS      200

namespace
{

#ifdef MS_CUDA_EMULATED
/* The emulated device has no time. */
__device__ unsigned long long now_ns()
{
    return ~0ull;
}
__device__ void rest()
{
}
#else
__device__ unsigned long long now_ns()
{
    unsigned long long time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    return time;
}
__device__ void rest()
{
    __nanosleep(REST_NS);
}
#endif

template <class T> struct modelled {
    T *to;
    const T *from;
    long count, num_from, own_first;
    uint64_t seed;
    unsigned long long wanted_ns;
};

template <class T> __device__ T made_up(const modelled<T> &m, long i)
{
    typedef typename number<T>::sum S;
    uint64_t bits = ms_mix(m.seed + (uint64_t)i * MS_GOLDEN_GAMMA);
    if (m.num_from == 0) {
        double uniform = (double)(bits >> 11) * (1.0 / 9007199254740992.0);
        return stored<T>((S)(sqrt(12.0) * (uniform - 0.5)));
    }
    S x = value(m.from[i % m.num_from]);
    bool own = m.own_first >= 0 && i >= m.own_first && i < m.own_first + m.num_from;
    return stored<T>(own || (bits & 1) == 0 ? x : -x);
}

template <class T> __global__ void model(modelled<T> m)
{
    unsigned long long began_ns = now_ns();
    long step = (long)gridDim.x * blockDim.x;
    for (long i = (long)blockIdx.x * blockDim.x + threadIdx.x; i < m.count; i += step)
        m.to[i] = made_up(m, i);
    while (now_ns() - began_ns < m.wanted_ns && began_ns != ~0ull)
        rest();
}

} // namespace

/* ---- launches ---- */

void ms_cuda_model_transfer(ms_cuda_stream *stream, const ms_cuda_modelled *how)
{
    bool holds = how->num_blocks > 1;
    unsigned num = holds ? (unsigned)how->num_blocks : 1;
    long count = how->to == NULL ? 0 : how->count;
    size_t shared = holds ? SHARED_BYTES : 0;
    MS_BY_SCALAR(
        how->scalar, T,
        MS_LAUNCH((model<T>), num, THREADS, shared, stream,
                  (modelled<T>{(T *)how->to, (const T *)how->from, count, how->num_from,
                               how->own_first, (uint64_t)how->seed,
                               (unsigned long long)(how->seconds * 1e9)})));
}
