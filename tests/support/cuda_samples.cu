#include "tests/support/cuda_samples.h"

#include "exec/cuda/cuda_device.cuh"

#define SAMPLE_FLOATS 32
#define MATRIX_BYTES  512 /* 16 x 16 elements of bf16 */

namespace
{

__global__ void reverse(int *to, const int *from, bool has_barrier)
{
    MS_SHARED(int, kept, [MS_SAMPLE_THREADS]);
    unsigned first = blockIdx.x * blockDim.x;
    kept[threadIdx.x] = from[first + threadIdx.x];
    if (has_barrier)
        __syncthreads();
    to[first + threadIdx.x] = kept[blockDim.x - 1 - threadIdx.x];
}

__global__ void rounds(int *to, const int *from, int num_rounds, bool has_barrier)
{
    MS_SHARED(int, part, [MS_MAX_WARPS]);
    for (int round = 0; round < num_rounds; round++) {
        int x = warp_sum(from[round * blockDim.x + threadIdx.x]), sum = 0;
        if (threadIdx.x % MS_WARP == 0)
            part[threadIdx.x / MS_WARP] = x;
        __syncthreads();
        for (unsigned warp = 0; warp < blockDim.x / MS_WARP; warp++)
            sum += part[warp];
        if (has_barrier)
            __syncthreads();
        if (threadIdx.x == 0)
            to[round] = sum;
    }
}

__global__ void sums(double *to, const double *from)
{
    double x = from[threadIdx.x], all = block_sum(x), largest = block_max(x);
    MS_SHARED(double, part, [MS_MAX_WARPS]);
    unsigned votes = __ballot_sync(MS_ALL_LANES, x > 0);
    double fifth = __shfl_sync(MS_ALL_LANES, x, 5);
    for (int by = MS_WARP / 2; by > 0; by /= 2)
        x += __shfl_down_sync(MS_ALL_LANES, x, by);
    if (threadIdx.x % MS_WARP == 0)
        part[threadIdx.x / MS_WARP] = x;
    __syncthreads();
    if (threadIdx.x == 0) {
        double down = 0;
        for (unsigned i = 0; i < blockDim.x / MS_WARP; i++)
            down += part[i];
        to[0] = all;
        to[1] = down;
        to[2] = largest;
        to[3] = fifth;
        to[4] = votes;
    }
}

__global__ void __launch_bounds__(MS_WARP)
    product(float *c, const unsigned short *a, const unsigned short *b, bool waits)
{
    MS_DYNAMIC_SHARED(unsigned short, tile);
    unsigned lane = threadIdx.x;
    unsigned short *tile_b = tile + 16 * 16;
    cp_async_16(tile + lane * 8, a + lane * 8);
    cp_async_commit();
    /* lanes from 16 on write zeros behind matrix b */
    cp_async_16(tile_b + lane * 8, b + lane % 16 * 8, lane < 16);
    if (lane < 16)
        cp_async_commit();
    if (waits) {
        cp_async_wait<1>();
        cp_async_wait<0>();
    }
    __syncthreads();
    unsigned part_a[4], part_b[4];
    ldmatrix_x4(part_a, tile + lane % 16 * 16 + lane / 16 * 8);
    ldmatrix_x4_trans(part_b, tile_b + lane % 16 * 8);
    float sum[4] = {0, 0, 0, 0};
    mma_bf16_16x8x16(sum, part_a, part_b);
    for (unsigned i = 0; i < 4; i++)
        c[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = sum[i];
}

__global__ void divergent()
{
    if (threadIdx.x % 2 == 0)
        __syncthreads();
}

__global__ void mixed_warp()
{
    if (threadIdx.x % 2 == 0)
        (void)__shfl_xor_sync(MS_ALL_LANES, 1, 2);
    else
        (void)__ballot_sync(MS_ALL_LANES, 1);
}

__global__ void write(ms_sample_memory memory, int at, float *to)
{
    MS_SHARED(float, fixed, [SAMPLE_FLOATS]);
    MS_DYNAMIC_SHARED(float, asked_for);
    float local[SAMPLE_FLOATS] = {};
    float *x = memory == MS_SAMPLE_STATIC    ? fixed
               : memory == MS_SAMPLE_DYNAMIC ? asked_for
                                             : local;
    x[at] = 1;
    *to = x[at];
}

__global__ void fresh(float *to)
{
    MS_SHARED(float, fixed, [SAMPLE_FLOATS]);
    to[threadIdx.x] = fixed[threadIdx.x];
    fixed[threadIdx.x] = 1;
}

__global__ void visit(int *to)
{
    unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    to[block * blockDim.x * blockDim.y * blockDim.z + thread]++;
}

__global__ void round_all(unsigned short *one, unsigned *two, const float *from,
                          int count)
{
    for (int i = static_cast<int>(threadIdx.x); i < count; i += blockDim.x) {
        one[i] = stored<bf16>(from[i]).bits;
        two[i] = two_bf16(from[i], from[count - 1 - i]);
    }
}

} // namespace

void ms_sample_reverse(int *to, const int *from, int num_blocks, int threads,
                       bool has_barrier)
{
    MS_LAUNCH(reverse, num_blocks, threads, 0, NULL, to, from, has_barrier);
}

void ms_sample_rounds(int *to, const int *from, int num_rounds, int threads,
                      bool has_barrier)
{
    MS_LAUNCH(rounds, 1, threads, 0, NULL, to, from, num_rounds, has_barrier);
}

void ms_sample_sums(double *to, const double *from, int threads)
{
    MS_LAUNCH(sums, 1, threads, 0, NULL, to, from);
}

void ms_sample_gemm(float *c, const unsigned short *a, const unsigned short *b,
                    bool waits)
{
    MS_LAUNCH(product, 1, MS_WARP, 2 * MATRIX_BYTES, NULL, c, a, b, waits);
}

void ms_sample_divergent(void)
{
    MS_LAUNCH(divergent, 1, 2 * MS_WARP, 0, NULL);
}

void ms_sample_mixed_warp(void)
{
    MS_LAUNCH(mixed_warp, 1, MS_WARP, 0, NULL);
}

float ms_sample_write(ms_sample_memory memory, int at)
{
    float written = 0;
    MS_LAUNCH(write, 1, 1, SAMPLE_FLOATS * sizeof(float), NULL, memory, at, &written);
    return written;
}

void ms_sample_fresh(float *to)
{
    MS_LAUNCH(fresh, 2, SAMPLE_FLOATS, 0, NULL, to);
}

void ms_sample_visit(int *to, const unsigned grid[3], const unsigned block[3])
{
    MS_LAUNCH(visit, dim3(grid[0], grid[1], grid[2]), dim3(block[0], block[1], block[2]),
              0, NULL, to);
}

void ms_sample_round(unsigned short *one, unsigned *two, const float *from, int count)
{
    MS_LAUNCH(round_all, 1, MS_WARP, 0, NULL, one, two, from, count);
}
