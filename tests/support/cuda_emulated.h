/* Emulates CUDA on the processor, for the kernels of exec/cuda/cuda_*.cu: g++ compiles
 * them with this file included first (-include, MS_CUDA_EMULATED) in place of nvcc's
 * definitions. A launch runs its blocks one after another on the calling thread. The
 * threads of a block are fibers that switch only where they wait for each other, in an
 * order drawn by a seed: a kernel without a needed barrier gives other numbers for some
 * seeds. What a GPU leaves undefined ends the program with a message: barriers that some
 * threads never reach, shuffles without all lanes of a warp, misaligned vectors, too much
 * shared memory. Shared memory begins as NaN and -1; the address sanitizer watches its
 * ends.
 *
 * Several threads may launch at the same time. Sources of the semantics: CUDA C++
 * Programming Guide, sections 10.6 and 10.22; PTX ISA 9.0, sections 9.7.9.25 and
 * 9.7.15. */
#ifndef MS_TESTS_SUPPORT_CUDA_EMULATED_H
#define MS_TESTS_SUPPORT_CUDA_EMULATED_H

#ifdef __cplusplus
extern "C" {
#endif

/* Sets the order of kernel threads in all later launches. 0: in their order, all
 * advancing together; 1: in reverse order, each warp running as far ahead as it can;
 * other odd seeds: the same from a random order; even seeds: a random runnable thread. */
void ms_cuda_emulated_set_seed(unsigned long seed);
/* Number of launches of all threads so far, for tests that a kernel ran. */
unsigned long ms_cuda_emulated_num_launches(void);

#ifdef __cplusplus
}

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>

/* ---- words of CUDA ---- */

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
/* shared memory of one launching thread; MS_SHARED's is not zeroed, and its ends are
 * watched */
#define __shared__ static __thread

struct uint2 {
    unsigned x, y;
};
struct uint3 {
    unsigned x, y, z;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(16) double2 {
    double x, y;
};
struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned in_x = 1, unsigned in_y = 1, unsigned in_z = 1)
        : x(in_x), y(in_y), z(in_z)
    {
    }
};

static inline uint2 make_uint2(unsigned x, unsigned y)
{
    return {x, y};
}
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
    return {x, y, z, w};
}
static inline float2 make_float2(float x, float y)
{
    return {x, y};
}
static inline float4 make_float4(float x, float y, float z, float w)
{
    return {x, y, z, w};
}

struct ms_emulated_place {
    uint3 thread, block, block_size, grid_size;
};
extern __thread ms_emulated_place ms_emulated_here;
#define threadIdx (ms_emulated_here.thread)
#define blockIdx  (ms_emulated_here.block)
#define blockDim  (ms_emulated_here.block_size)
#define gridDim   (ms_emulated_here.grid_size)
static constexpr int warpSize = 32;

/* ---- functions of cuda_emulated.cpp ---- */

/* Prints the kernel's block, thread and `why`, then aborts. */
[[noreturn]] void ms_emulated_fail(const char *why);
void ms_emulated_block_barrier(int line);
/* Exchanges `bytes` (at most MS_EMULATED_SLOT_BYTES) between the lanes of a warp: lane
 * i's are at i * MS_EMULATED_SLOT_BYTES of the result, until the lane's next exchange. */
#define MS_EMULATED_SLOT_BYTES 64
const unsigned char *ms_emulated_warp_exchange(const char *what, const void *mine,
                                               size_t bytes);
int ms_emulated_lane(void);
int ms_emulated_num_lanes(void);
/* Shared memory of the block; all threads get the same for the same `site` address. */
void *ms_emulated_shared(const void *site, size_t bytes);
void *ms_emulated_dynamic_shared(void);
void ms_emulated_copy_later(void *to, const void *from, size_t bytes);
void ms_emulated_commit(void);
void ms_emulated_wait(int num_left);

struct ms_emulated_launch {
    void (*thread)(const void *state);
    const void *state;
    dim3 grid, block;
    size_t shared_bytes;
};
void ms_emulated_run(const ms_emulated_launch *launch);

static inline void ms_emulated_check_aligned(const void *address, size_t bytes)
{
    if (reinterpret_cast<uintptr_t>(address) % bytes != 0)
        ms_emulated_fail("an address is not aligned to its vector");
}

/* ---- barriers, shuffles and votes ---- */

#define __syncthreads() ms_emulated_block_barrier(__LINE__)

static inline void __syncwarp(unsigned mask = 0xffffffffU)
{
    (void)mask;
    ms_emulated_warp_exchange("__syncwarp", NULL, 0);
}

template <typename T> static inline T ms_emulated_shuffle(unsigned mask, T x, int from)
{
    if (mask != 0xffffffffU)
        ms_emulated_fail("a shuffle that leaves out lanes");
    const unsigned char *slots = ms_emulated_warp_exchange("a shuffle", &x, sizeof x);
    if (from >= ms_emulated_num_lanes())
        ms_emulated_fail("a shuffle from a lane that does not exist");
    std::memcpy(&x, slots + (size_t)from * MS_EMULATED_SLOT_BYTES, sizeof x);
    return x;
}

/* A lane whose source lies outside of its group of `width` lanes gets its own value. */
template <typename T>
static inline T __shfl_xor_sync(unsigned mask, T x, int other, int width = 32)
{
    int lane = ms_emulated_lane(), from = lane ^ other;
    return ms_emulated_shuffle(mask, x, from / width > lane / width ? lane : from);
}
template <typename T>
static inline T __shfl_down_sync(unsigned mask, T x, unsigned by, int width = 32)
{
    int lane = ms_emulated_lane(), from = lane + (int)by;
    return ms_emulated_shuffle(mask, x, from / width != lane / width ? lane : from);
}
template <typename T>
static inline T __shfl_up_sync(unsigned mask, T x, unsigned by, int width = 32)
{
    int lane = ms_emulated_lane(), within = lane % width;
    return ms_emulated_shuffle(mask, x, within < (int)by ? lane : lane - (int)by);
}
template <typename T>
static inline T __shfl_sync(unsigned mask, T x, int from, int width = 32)
{
    int lane = ms_emulated_lane();
    return ms_emulated_shuffle(mask, x, lane / width * width + (from & (width - 1)));
}

static inline unsigned __ballot_sync(unsigned mask, int predicate)
{
    if (mask != 0xffffffffU)
        ms_emulated_fail("a vote that leaves out lanes");
    const unsigned char *slots =
        ms_emulated_warp_exchange("a vote", &predicate, sizeof predicate);
    unsigned votes = 0;
    for (int lane = 0; lane < ms_emulated_num_lanes(); lane++) {
        int vote;
        std::memcpy(&vote, slots + (size_t)lane * MS_EMULATED_SLOT_BYTES, sizeof vote);
        votes |= vote != 0 ? 1U << lane : 0;
    }
    return votes;
}
static inline int __any_sync(unsigned mask, int predicate)
{
    return __ballot_sync(mask, predicate) != 0;
}
static inline int __all_sync(unsigned mask, int predicate)
{
    return __ballot_sync(mask, !predicate) == 0;
}

/* ---- functions ---- */

using std::isfinite;
using std::isinf;
using std::isnan;

template <typename A, typename B>
static inline constexpr std::common_type_t<A, B> min(A a, B b)
{
    using C = std::common_type_t<A, B>;
    return (C)b < (C)a ? (C)b : (C)a;
}
template <typename A, typename B>
static inline constexpr std::common_type_t<A, B> max(A a, B b)
{
    using C = std::common_type_t<A, B>;
    return (C)a < (C)b ? (C)b : (C)a;
}

static inline float rsqrtf(float x)
{
    return 1 / sqrtf(x);
}
static inline double rsqrt(double x)
{
    return 1 / sqrt(x);
}
/* macros, as glibc has functions of these names */
#define __expf(x) expf(x)
#define __logf(x) logf(x)
static inline float __fdividef(float a, float b)
{
    return a / b;
}
static inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}
static inline int __clz(int x)
{
    return x == 0 ? 32 : __builtin_clz((unsigned)x);
}
static inline int __ffs(int x)
{
    return __builtin_ffs(x);
}
template <typename T> static inline T __ldg(const T *x)
{
    return *x;
}
static inline unsigned __float_as_uint(float x)
{
    unsigned bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline float __uint_as_float(unsigned bits)
{
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}
/* Plain operations suffice: blocks run one after another, and threads switch at barriers
 * only. */
template <typename T> static inline T atomicAdd(T *at, std::common_type_t<T> by)
{
    static_assert(std::is_integral_v<T>, "sums of floats depend on their order");
    T old = *at;
    *at = (T)(old + by);
    return old;
}
template <typename T> static inline T atomicMax(T *at, std::common_type_t<T> x)
{
    T old = *at;
    *at = old < x ? x : old;
    return old;
}
static inline void __threadfence(void)
{
}

/* ---- shared memory ---- */

#define MS_SHARED(type, name, ...)                                                       \
    using name##_array = type __VA_ARGS__;                                               \
    static const char name##_site = 0;                                                   \
    name##_array &name = *static_cast<name##_array *>(                                   \
        ms_emulated_shared(&name##_site, sizeof(name##_array)))
#define MS_DYNAMIC_SHARED(type, name)                                                    \
    type *name = static_cast<type *>(ms_emulated_dynamic_shared())

/* Asynchronous copy: done when it is waited for, except that random half of the copies
 * are done at once unless the seed is 0. */
static inline void cp_async_16(void *to, const void *from, bool is_there = true)
{
    ms_emulated_check_aligned(to, 16);
    ms_emulated_check_aligned(from, 16);
    ms_emulated_copy_later(to, is_there ? from : NULL, 16);
}
static inline void cp_async_commit(void)
{
    ms_emulated_commit();
}
template <int LEFT> static inline void cp_async_wait(void)
{
    ms_emulated_wait(LEFT);
}

/* ---- matrices ---- */

static inline unsigned ms_emulated_word(const unsigned char *slots, int lane, int word)
{
    unsigned x;
    std::memcpy(&x, slots + (size_t)lane * MS_EMULATED_SLOT_BYTES + (size_t)word * 4,
                sizeof x);
    return x;
}

/* Tensor-core product (PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point
 * type"): a lane has two rows and two columns, hence four sums; a word holds two adjacent
 * bf16 of a row or of a column. */
static inline void mma_bf16_16x8x16(float c[4], const unsigned a[4], const unsigned b[2])
{
    typedef float four_sums __attribute__((vector_size(16)));
    typedef unsigned four_words __attribute__((vector_size(16)));
    const unsigned mine[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
    const unsigned char *slots = ms_emulated_warp_exchange("mma", mine, sizeof mine);
    int lane = ms_emulated_lane(), row = lane / 4 * 4, col = lane % 4 * 8;
    if (ms_emulated_num_lanes() != 32)
        ms_emulated_fail("mma without 32 lanes");
    four_sums sums = {};
    for (int pair = 0; pair < 8; pair++) {
        int half = pair / 4, i = pair % 4;
        unsigned row_0 = ms_emulated_word(slots, row + i, 2 * half);
        unsigned row_1 = ms_emulated_word(slots, row + i, 2 * half + 1);
        unsigned col_0 = ms_emulated_word(slots, col + i, 4 + half);
        unsigned col_1 = ms_emulated_word(slots, col + 4 + i, 4 + half);
        four_words rows = {row_0, row_0, row_1, row_1};
        four_words cols = {col_0, col_1, col_0, col_1};
        sums += (four_sums)(rows << 16) * (four_sums)(cols << 16);
        sums += (four_sums)(rows & 0xffff0000U) * (four_sums)(cols & 0xffff0000U);
    }
    for (int i = 0; i < 4; i++)
        c[i] += sums[i];
}

/* Collects the rows of ldmatrix: lane i gives row i % 8 of matrix i / 8, with 8 elements
 * of 16 bits. */
static inline const unsigned char *ms_emulated_rows(const void *row)
{
    ms_emulated_check_aligned(row, 16);
    return ms_emulated_warp_exchange("ldmatrix", row, 16);
}

static inline void ldmatrix_x4(unsigned r[4], const void *row)
{
    const unsigned char *slots = ms_emulated_rows(row);
    int lane = ms_emulated_lane();
    for (int i = 0; i < 4; i++)
        r[i] = ms_emulated_word(slots, i * 8 + lane / 4, lane % 4);
}

static inline void ldmatrix_x4_trans(unsigned r[4], const void *row)
{
    const unsigned char *slots = ms_emulated_rows(row);
    int lane = ms_emulated_lane(), col = lane / 4;
    for (int i = 0; i < 4; i++) {
        unsigned half[2];
        for (int j = 0; j < 2; j++)
            half[j] = ms_emulated_word(slots, i * 8 + lane % 4 * 2 + j, col / 2) >>
                          (col % 2 * 16) &
                      0xffffU;
        r[i] = half[0] | half[1] << 16;
    }
}

/* Rounds to the nearest bf16, ties to even; NaN stays NaN. */
static inline unsigned short ms_round_to_bf16(float x)
{
    unsigned bits = __float_as_uint(x);
    if (std::isnan(x))
        return (unsigned short)(bits >> 16 | 0x40U);
    return (unsigned short)((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}
static inline unsigned ms_round_two_to_bf16(float low, float high)
{
    return ms_round_to_bf16(low) | (unsigned)ms_round_to_bf16(high) << 16;
}

/* ---- launches ---- */

typedef struct ms_cuda_stream ms_cuda_stream;
/* Function of the fake GPU (tests/support/cuda_fake.h); NULL in tests without it. */
extern "C" __attribute__((weak)) void ms_cuda_fake_enqueue(ms_cuda_stream *stream,
                                                           void (*run)(void *state),
                                                           void *state);

template <typename... P> struct ms_emulated_call {
    void (*kernel)(P...);
    std::tuple<std::remove_const_t<P>...> args;
    ms_emulated_launch launch;

    static void thread(const void *state)
    {
        const auto *call = static_cast<const ms_emulated_call *>(state);
        std::apply(call->kernel, call->args);
    }
    static void run(void *state)
    {
        auto *call = static_cast<ms_emulated_call *>(state);
        ms_emulated_run(&call->launch);
        call->~ms_emulated_call();
        std::free(state);
    }
};

template <typename... P, typename... A>
static void ms_launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes,
                      ms_cuda_stream *stream, A... args)
{
    using made = ms_emulated_call<P...>;
    void *memory = std::malloc(sizeof(made));
    if (memory == NULL)
        ms_emulated_fail("no memory");
    made *call = new (memory) made{kernel,
                                   {static_cast<P>(args)...},
                                   {made::thread, memory, grid, block, shared_bytes}};
    if (stream == NULL)
        made::run(call);
    else if (ms_cuda_fake_enqueue != NULL)
        ms_cuda_fake_enqueue(stream, made::run, call);
    else
        ms_emulated_fail("a stream without a device");
}

#endif
#endif
