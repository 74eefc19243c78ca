/* `lanes`: consecutive elements that a thread loads and stores together, in 16-byte
 * accesses if there are enough. */
#ifndef MS_EXEC_CUDA_LANES_CUH
#define MS_EXEC_CUDA_LANES_CUH

#include "exec/cuda/cuda_device.cuh"

#include <cstring>

#define MS_PACK_BYTES 16

/* N consecutive elements; N and sizeof(T) are powers of two. */
template <typename T, int N>
struct alignas(sizeof(T) * N < MS_PACK_BYTES ? sizeof(T) * N : MS_PACK_BYTES) lanes {
    T at[N];
};

/* lane_word: type of one memory access, stored by explicit instruction: nvcc 13.0 splits
 * stores of structs, even uint4. */
#ifdef MS_CUDA_EMULATED
template <typename T, int N> using lane_word = lanes<T, N>;
template <typename W> static inline void store_word(W *to, const W &x)
{
    *to = x;
}
#else
template <size_t BYTES> struct word_of_bytes {
    using type = uint4;
};
template <> struct word_of_bytes<8> {
    using type = uint2;
};
template <> struct word_of_bytes<4> {
    using type = unsigned;
};
template <> struct word_of_bytes<2> {
    using type = unsigned short;
};
template <> struct word_of_bytes<1> {
    using type = unsigned char;
};
template <typename T, int N>
using lane_word = typename word_of_bytes<alignof(lanes<T, N>)>::type;
template <typename W> static __device__ __forceinline__ void store_word(W *to, W x)
{
    __stwb(to, x);
}
#endif

template <int N, typename T>
static __device__ __forceinline__ lanes<T, N> load_lanes(const T *x)
{
    using word = lane_word<T, N>;
    const int num = sizeof(lanes<T, N>) / sizeof(word);
    ms_emulated_check_aligned(x, alignof(lanes<T, N>));
    word words[num];
    lanes<T, N> y;
#pragma unroll
    for (int i = 0; i < num; i++)
        words[i] = reinterpret_cast<const word *>(x)[i];
    memcpy(&y, words, sizeof y);
    return y;
}

template <int N, typename T>
static __device__ __forceinline__ void store_lanes(T *to, const lanes<T, N> &x)
{
    using word = lane_word<T, N>;
    const int num = sizeof(lanes<T, N>) / sizeof(word);
    ms_emulated_check_aligned(to, alignof(lanes<T, N>));
    word words[num];
    memcpy(words, &x, sizeof x);
#pragma unroll
    for (int i = 0; i < num; i++)
        store_word(reinterpret_cast<word *>(to) + i, words[i]);
}

/* Whether x is aligned to 16 bytes, the most that lanes of any type need. */
static inline bool is_aligned(const void *x)
{
    return reinterpret_cast<uintptr_t>(x) % MS_PACK_BYTES == 0;
}

#endif
