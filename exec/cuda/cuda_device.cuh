/* Building blocks of the kernels in exec/cuda/cuda_*.cu: bf16, the type of sums, vectors
 * of 16 bytes, sums over warps and blocks, tensor cores, copies into shared memory,
 * launches. If MS_CUDA_EMULATED is defined, tests/support/cuda_emulated.h, included by
 * the command line, has the same names for CPUs.
 *
 * Kernels, device functions and types of a .cu file are in an anonymous namespace, since
 * other files use the same names for different things. */
#ifndef MS_EXEC_CUDA_DEVICE_CUH
#define MS_EXEC_CUDA_DEVICE_CUH

#include "exec/core/scalar.h"

#ifndef MS_CUDA_EMULATED

#include <cmath>
#include <cstddef>
#include <cstdint>

typedef struct ms_cuda_stream ms_cuda_stream; /* an opaque cudaStream_t */

/* Declares an array in the block's shared memory: MS_SHARED(float, tile, [32][33]);
 * undefined at the start. At most 48 KiB per kernel. */
#define MS_SHARED(type, name, ...) __shared__ type name __VA_ARGS__
/* Declares the dynamic shared memory of the launch; 16-byte aligned. */
#define MS_DYNAMIC_SHARED(type, name)                                                    \
    extern __shared__ __align__(16) unsigned char ms_dynamic_shared[];                   \
    type *name = reinterpret_cast<type *>(ms_dynamic_shared)

/* Most bytes of dynamic shared memory that a kernel gets without cudaFuncSetAttribute
 * (CUDA C++ Programming Guide, section 20.7.3). */
#define MS_SHARED_BYTES_WITHOUT_ASKING 49152

template <typename... P, typename... A>
static void ms_launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes,
                      ms_cuda_stream *stream, A... args)
{
    if (shared_bytes > MS_SHARED_BYTES_WITHOUT_ASKING) {
        const void *function = reinterpret_cast<const void *>(kernel);
        (void)cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   static_cast<int>(shared_bytes));
        /* prefers shared memory to L1 cache in an SM's memory, so that as many thread
         * blocks run as registers allow */
        (void)cudaFuncSetAttribute(function,
                                   cudaFuncAttributePreferredSharedMemoryCarveout,
                                   cudaSharedmemCarveoutMaxShared);
    }
    kernel<<<grid, block, shared_bytes, reinterpret_cast<cudaStream_t>(stream)>>>(
        static_cast<P>(args)...);
}

/* Copies 16 bytes from global to shared memory asynchronously; writes zeros and reads
 * nothing if `is_there` is false. */
static __device__ __forceinline__ void cp_async_16(void *to, const void *from,
                                                   bool is_there = true)
{
    unsigned shared = static_cast<unsigned>(__cvta_generic_to_shared(to));
    int bytes = is_there ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(shared),
                 "l"(from), "r"(bytes)
                 : "memory");
}
/* Ends a group of asynchronous copies. */
static __device__ __forceinline__ void cp_async_commit()
{
    asm volatile("cp.async.commit_group;\n" ::: "memory");
}
/* Waits until at most LEFT groups of this thread's copies, the latest, are under way.
 * Other threads see the data after a barrier. */
template <int LEFT> static __device__ __forceinline__ void cp_async_wait()
{
    asm volatile("cp.async.wait_group %0;\n" ::"n"(LEFT) : "memory");
}

/* c (16, 8) += a (16, 16) b (16, 8), by a warp. Lane l, with r = l / 4 and q = 2 (l % 4),
 * holds in a[0] row r, columns q and q + 1; a[1] the same of row r + 8; a[2], a[3] as
 * a[0], a[1], 8 columns on; b[0] column r, rows q and q + 1; b[1] 8 rows on; c[0], c[1]
 * row r, columns q and q + 1; c[2], c[3] row r + 8. */
static __device__ __forceinline__ void mma_bf16_16x8x16(float c[4], const unsigned a[4],
                                                        const unsigned b[2])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* Loads four 8 x 8 matrices of 16-bit elements from shared memory. Lane i passes the
 * 16-byte aligned address of row i % 8 of matrix i / 8. Its r[m] gets two elements of
 * matrix m: row i / 4, columns c and c + 1 with c = 2 (i % 4); ldmatrix_x4_trans: rows c
 * and c + 1 of column i / 4. */
static __device__ __forceinline__ void ldmatrix_x4(unsigned r[4], const void *row)
{
    unsigned shared = static_cast<unsigned>(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared)
                 : "memory");
}
static __device__ __forceinline__ void ldmatrix_x4_trans(unsigned r[4], const void *row)
{
    unsigned shared = static_cast<unsigned>(__cvta_generic_to_shared(row));
    asm volatile(
        "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
        : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
        : "r"(shared)
        : "memory");
}

/* Rounds fp32 to the nearest bf16, ties to even. */
static __device__ __forceinline__ unsigned short ms_round_to_bf16(float x)
{
    unsigned short bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
}
static __device__ __forceinline__ unsigned ms_round_two_to_bf16(float low, float high)
{
    unsigned bits;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
    return bits;
}

/* Rounding to FP8 by instructions: capability 8.9 and later (PTX ISA 9.0, cvt). */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
#define MS_HAS_FP8 1
/* Rounds two values to FP8 as fp8_bits does; `low` is in the lower byte. */
static __device__ __forceinline__ unsigned ms_round_two_to_e4m3(float low, float high)
{
    unsigned short bits;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(bits) : "f"(high), "f"(low));
    return bits;
}
static __device__ __forceinline__ unsigned ms_round_two_to_e5m2(float low, float high)
{
    unsigned short bits;
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(bits) : "f"(high), "f"(low));
    return bits;
}
#endif

static __device__ __forceinline__ void ms_emulated_check_aligned(const void *, size_t)
{
}

#endif

/* Launches a kernel: MS_LAUNCH((kernel<T>), grid, block, shared_bytes, stream, args...).
 * Grid and block sizes are at least 1. */
#define MS_LAUNCH(...) ms_launch(__VA_ARGS__)

/* Executes a statement in which T is the C++ type of `scalar` (fp32, fp64 or bf16); does
 * nothing for other scalars. */
#define MS_BY_SCALAR(scalar, T, ...)                                                     \
    do {                                                                                 \
        if ((scalar) == MS_SCALAR_FP32) {                                                \
            using T = float;                                                             \
            __VA_ARGS__;                                                                 \
        } else if ((scalar) == MS_SCALAR_FP64) {                                         \
            using T = double;                                                            \
            __VA_ARGS__;                                                                 \
        } else if ((scalar) == MS_SCALAR_BF16) {                                         \
            using T = bf16;                                                              \
            __VA_ARGS__;                                                                 \
        }                                                                                \
    } while (0)

/* The last step of SplitMix64 (base/rng.c): a hash of z. */
static __device__ __forceinline__ uint64_t ms_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}
#define MS_GOLDEN_GAMMA 0x9E3779B97F4A7C15u /* the generator's increment */

#define MS_WARP      32
#define MS_ALL_LANES 0xffffffffU
#define MS_MAX_WARPS 32 /* largest number of warps in a block */

/* ---- numbers ---- */

/* bfloat16: the upper half of an fp32. */
struct bf16 {
    unsigned short bits;
};

/* Type of sums of T, and of statistics and gradients of weights computed from T. */
template <typename T> struct number {
    using sum = T;
};
template <> struct number<bf16> {
    using sum = float;
};

static __device__ __forceinline__ float value(float x)
{
    return x;
}
static __device__ __forceinline__ double value(double x)
{
    return x;
}
static __device__ __forceinline__ float value(bf16 x)
{
    return __uint_as_float(static_cast<unsigned>(x.bits) << 16);
}

/* A product that is rounded before it is added, so that results equal those of CPUs bit
 * by bit: nvcc would otherwise emit a fused multiply-add, which rounds once. */
static __device__ __forceinline__ float times(float x, float y)
{
#ifdef MS_CUDA_EMULATED
    return x * y;
#else
    return __fmul_rn(x, y);
#endif
}
static __device__ __forceinline__ double times(double x, double y)
{
#ifdef MS_CUDA_EMULATED
    return x * y;
#else
    return __dmul_rn(x, y);
#endif
}

template <typename T>
static __device__ __forceinline__ T stored(typename number<T>::sum x)
{
    return x;
}
template <> __device__ __forceinline__ bf16 stored<bf16>(float x)
{
    return bf16{ms_round_to_bf16(x)};
}

/* Two bf16 in one register, `low` in the lower half, as tensor cores take them. */
static __device__ __forceinline__ unsigned two_bf16(float low, float high)
{
    return ms_round_two_to_bf16(low, high);
}

/* FP8 formats: sign, exponent, FRACTION_BITS of fraction. Source: Micikevicius et al.
 * 2022, "FP8 Formats for Deep Learning", table 1. */
struct e4m3 {
    unsigned char bits;
    static constexpr int FRACTION_BITS = 3, BIAS = 7;
    static constexpr float LARGEST = 448;
    static constexpr unsigned LARGEST_BITS = 0x7e, NAN_BITS = 0x7f;
};
struct e5m2 {
    unsigned char bits;
    static constexpr int FRACTION_BITS = 2, BIAS = 15;
    static constexpr float LARGEST = 57344;
    static constexpr unsigned LARGEST_BITS = 0x7b, NAN_BITS = 0x7f;
};

/* Rounds x to FP8 format F: nearest, ties to even. Magnitudes above F::LARGEST, infinity
 * included, become F::LARGEST; NaN stays. Equals the FP8 instructions of newer GPUs. */
template <class F> static __device__ __forceinline__ unsigned fp8_bits(float x)
{
    const int of_float = 23, float_bias = 127, dropped = of_float - F::FRACTION_BITS;
    unsigned bits = __float_as_uint(x), sign = bits >> 24 & 0x80U;
    unsigned positive = bits & 0x7fffffffU;
    if (positive > 0x7f800000U)
        return sign | F::NAN_BITS;
    if (positive >= __float_as_uint(F::LARGEST))
        return sign | F::LARGEST_BITS;
    if (positive >> of_float < 1 + float_bias - F::BIAS) {
        /* subnormal FP8: x + this power of 2 rounds x to multiples of the least FP8 */
        const unsigned unit_of = (of_float + 1 - F::BIAS - F::FRACTION_BITS + float_bias);
        unsigned large = unit_of << of_float;
        float sum = __uint_as_float(positive) + __uint_as_float(large);
        return sign | (__float_as_uint(sum) - large);
    }
    unsigned is_odd = positive >> dropped & 1U;
    unsigned rounded = (positive + (1U << (dropped - 1)) - 1U + is_odd) >> dropped;
    return sign | (rounded - ((unsigned)(float_bias - F::BIAS) << F::FRACTION_BITS));
}

/* Rounds two values to FP8; `low` is in the lower byte. */
template <class F>
static __device__ __forceinline__ unsigned two_fp8(float low, float high)
{
    return fp8_bits<F>(low) | fp8_bits<F>(high) << 8;
}
#ifdef MS_HAS_FP8
template <> __device__ __forceinline__ unsigned two_fp8<e4m3>(float low, float high)
{
    return ms_round_two_to_e4m3(low, high);
}
template <> __device__ __forceinline__ unsigned two_fp8<e5m2>(float low, float high)
{
    return ms_round_two_to_e5m2(low, high);
}
#endif

static __device__ __forceinline__ float exp_of(float x)
{
    return __expf(x);
}
static __device__ __forceinline__ double exp_of(double x)
{
    return exp(x);
}

/* ---- vectors of 16 bytes ---- */

template <typename T> struct alignas(16) pack {
    static constexpr int SIZE = 16 / sizeof(T);
    T at[SIZE];
};

/* Whether rows of `width` elements from x on can be read in 16-byte packs; for x NULL,
 * whether `width` allows it. */
template <typename T> static inline bool can_pack(const T *x, long width)
{
    return reinterpret_cast<uintptr_t>(x) % 16 == 0 && width % pack<T>::SIZE == 0;
}

template <typename T> static __device__ __forceinline__ pack<T> load_pack(const T *x)
{
    ms_emulated_check_aligned(x, 16);
    return *reinterpret_cast<const pack<T> *>(x);
}
template <typename T>
static __device__ __forceinline__ void store_pack(T *to, const pack<T> &x)
{
    ms_emulated_check_aligned(to, 16);
    *reinterpret_cast<pack<T> *>(to) = x;
}

/* ---- sums and maxima: all threads get the result, summed in the same order at every
 * launch ---- */

template <typename S> static __device__ __forceinline__ S warp_sum(S x)
{
#pragma unroll
    for (int other = MS_WARP / 2; other > 0; other /= 2)
        x += __shfl_xor_sync(MS_ALL_LANES, x, other);
    return x;
}
template <typename S> static __device__ __forceinline__ S warp_max(S x)
{
#pragma unroll
    for (int other = MS_WARP / 2; other > 0; other /= 2)
        x = max(x, __shfl_xor_sync(MS_ALL_LANES, x, other));
    return x;
}

/* Sum over all threads of a one-dimensional block; blockDim.x is a multiple of 32. */
template <typename S> static __device__ __forceinline__ S block_sum(S x)
{
    MS_SHARED(S, part, [MS_MAX_WARPS]);
    int lane = static_cast<int>(threadIdx.x) % MS_WARP;
    x = warp_sum(x);
    if (lane == 0)
        part[threadIdx.x / MS_WARP] = x;
    __syncthreads();
    x = warp_sum(lane < static_cast<int>(blockDim.x) / MS_WARP ? part[lane] : S(0));
    __syncthreads(); /* the next call may overwrite `part` */
    return x;
}
template <typename S> static __device__ __forceinline__ S block_max(S x)
{
    MS_SHARED(S, part, [MS_MAX_WARPS]);
    int lane = static_cast<int>(threadIdx.x) % MS_WARP;
    x = warp_max(x);
    if (lane == 0)
        part[threadIdx.x / MS_WARP] = x;
    __syncthreads();
    x = warp_max(part[lane < static_cast<int>(blockDim.x) / MS_WARP ? lane : 0]);
    __syncthreads(); /* the next call may overwrite `part` */
    return x;
}

/* ---- sizes of launches ---- */

/* Number of thread blocks for `count` items, `per_block` each, or `most` if less: the
 * kernel then loops over the rest. */
static inline unsigned ms_blocks(long count, long per_block, long most)
{
    long blocks = (count + per_block - 1) / per_block;
    return static_cast<unsigned>(blocks < most ? blocks : most);
}
#define MS_MANY_BLOCKS 4096 /* grid size: several blocks per SM of any GPU */

#endif
