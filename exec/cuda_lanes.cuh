/* Several elements of one thread that are loaded and stored together, by 16 bytes where they have as many. */
#ifndef MS_EXEC_CUDA_LANES_CUH
#define MS_EXEC_CUDA_LANES_CUH

#include "exec/cuda_device.cuh"

#define MS_PACK_BYTES 16

/* N and sizeof(T) are powers of two. */
template <typename T, int N>
struct alignas(sizeof(T) * N < MS_PACK_BYTES ? sizeof(T) * N : MS_PACK_BYTES) lanes {
    T at[N];
};

template <int N, typename T>
static __device__ __forceinline__ lanes<T, N> load_lanes(const T *x)
{
    ms_emulated_check_aligned(x, alignof(lanes<T, N>));
    return *reinterpret_cast<const lanes<T, N> *>(x);
}

template <int N, typename T>
static __device__ __forceinline__ void store_lanes(T *to, const lanes<T, N> &x)
{
    ms_emulated_check_aligned(to, alignof(lanes<T, N>));
    *reinterpret_cast<lanes<T, N> *>(to) = x;
}

/* Whether lanes of any type can begin there. */
static inline bool is_aligned(const void *x)
{
    return reinterpret_cast<uintptr_t>(x) % MS_PACK_BYTES == 0;
}

#endif
