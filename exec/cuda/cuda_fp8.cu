/* Kernels for scales and casts of FP8 operands of GEMMs. CPU backends have no FP8: tests
 * compare such GEMMs with fp64. */
#include "exec/cuda/cuda_fp8.h"

#include "exec/cuda/cuda_lanes.cuh"

#define THREADS 256
#define TILE    64 /* rows and columns of a transposed tile */
/* 4-byte words of a tile's row in shared memory: two bf16 each, plus one word, which
 * avoids bank conflicts (rows 16 apart are 16 banks apart). */
#define TILE_WORDS (TILE / 2 + 1)

namespace
{

#define WIDTH MS_CUDA_FP8_TERMS /* elements that a thread stores together: 16 bytes */

/* ---- scales ---- */

struct numbers {
    const bf16 *x;
    long count, num_packs; /* num_packs: number of aligned 16-byte loads of x */
};

/* The larger of `most` and |x|, as bf16 bits, ordered like values; NaN is largest. */
__device__ unsigned larger(unsigned most, bf16 x)
{
    return max(most, x.bits & 0x7fffU);
}

__global__ void find_largest(unsigned *parts, numbers a, numbers b)
{
    const int width = pack<bf16>::SIZE;
    bool is_a = blockIdx.y == 0;
    const bf16 *x = is_a ? a.x : b.x;
    long count = is_a ? a.count : b.count, num_packs = is_a ? a.num_packs : b.num_packs;
    long step = (long)gridDim.x * blockDim.x,
         first = (long)blockIdx.x * blockDim.x + threadIdx.x;
    unsigned most = 0;
#pragma unroll 4
    for (long i = first; i < num_packs; i += step) {
        lanes<bf16, width> y = load_lanes<width>(x + i * width);
        for (int j = 0; j < width; j++)
            most = larger(most, y.at[j]);
    }
    for (long i = num_packs * width + first; i < count; i += step)
        most = larger(most, x[i]);
    most = block_max(most);
    if (threadIdx.x == 0)
        parts[blockIdx.y * gridDim.x + blockIdx.x] = most;
}

__global__ void make_scales(ms_cuda_fp8_scales *scales, const unsigned *parts, int num,
                            float largest_a, float largest_b)
{
    float largest = blockIdx.x == 0 ? largest_a : largest_b;
    const float least = 0x1p-100f; /* lower bound of x, for finite and normal scales */
    unsigned most = 0;
    for (int i = (int)threadIdx.x; i < num; i += (int)blockDim.x)
        most = max(most, parts[(int)blockIdx.x * num + i]);
    most = block_max(most);
    if (threadIdx.x > 0)
        return;
    float x = value(bf16{(unsigned short)most});
    x = x < least ? least : x; /* if x is NaN, it stays */
    scales->to_fp8[blockIdx.x] = largest / x;
    scales->from_fp8[blockIdx.x] = x / largest;
}

/* ---- casts ---- */

template <class F>
__device__ lanes<F, WIDTH> scaled(const lanes<bf16, WIDTH> &x, float scale)
{
    lanes<F, WIDTH> y;
#pragma unroll
    for (int j = 0; j < WIDTH; j += 2) {
        unsigned two = two_fp8<F>(value(x.at[j]) * scale, value(x.at[j + 1]) * scale);
        y.at[j] = F{(unsigned char)(two & 0xffU)};
        y.at[j + 1] = F{(unsigned char)(two >> 8)};
    }
    return y;
}

template <class F>
__global__ void cast_rows(F *to, const bf16 *x, const float *scale, long rows, long cols,
                          long num_packs, bool aligned)
{
    long step = (long)gridDim.x * blockDim.x;
    float by = *scale;
    for (long i = (long)blockIdx.x * blockDim.x + threadIdx.x; i < rows * num_packs;
         i += step) {
        long row = rows > 1 ? i / num_packs : 0, col = (i - row * num_packs) * WIDTH;
        const bf16 *from = x + row * cols + col;
        lanes<bf16, WIDTH> y;
        if (aligned && col + WIDTH <= cols)
            y = load_lanes<WIDTH>(from);
        else
            for (int j = 0; j < WIDTH; j++)
                y.at[j] = col + j < cols ? from[j] : bf16{0};
        store_lanes<WIDTH>(to + i * WIDTH, scaled<F>(y, by));
    }
}

struct tiles {
    long rows, cols, width; /* width: row length of the transposed, padded output */
    long num_across;        /* number of tiles side by side */
};

/* Loads a tile of a matrix into shared memory; zeros outside the matrix. */
__device__ void load_tile(unsigned (*tile)[TILE_WORDS], const bf16 *x, const tiles &t,
                          long row0, long col0, bool aligned)
{
    const int width = pack<bf16>::SIZE, across = TILE / width;
    for (int i = (int)threadIdx.x; i < TILE * across; i += THREADS) {
        long row = row0 + i / across, col = col0 + i % across * width;
        const bf16 *from = x + row * t.cols + col;
        lanes<bf16, width> y;
        if (aligned && row < t.rows && col + width <= t.cols)
            y = load_lanes<width>(from);
        else
            for (int j = 0; j < width; j++)
                y.at[j] = row < t.rows && col + j < t.cols ? from[j] : bf16{0};
        for (int j = 0; j < width; j += 2)
            tile[i / across][(i % across * width + j) / 2] =
                y.at[j].bits | (unsigned)y.at[j + 1].bits << 16;
    }
}

/* Casts and transposes one tile per block. A warp reads 16 columns and writes them as
 * rows, 32 bytes each. */
template <class F>
__global__ void __launch_bounds__(THREADS)
    cast_transposed(F *to, const bf16 *x, const float *scale, tiles t, bool aligned)
{
    MS_SHARED(unsigned, tile, [TILE][TILE_WORDS]);
    const int cols_at_once = 16;
    long row0 = blockIdx.x / t.num_across * TILE, col0 = blockIdx.x % t.num_across * TILE;
    load_tile(tile, x, t, row0, col0, aligned);
    __syncthreads();
    int lane = (int)threadIdx.x % MS_WARP, warp = (int)threadIdx.x / MS_WARP;
    int col = warp % (TILE / cols_at_once) * cols_at_once + lane / 2;
    int row = (warp / (TILE / cols_at_once) * 2 + lane % 2) * WIDTH;
    if (col0 + col >= t.cols || row0 + row >= t.width)
        return;
    lanes<bf16, WIDTH> y;
#pragma unroll
    for (int j = 0; j < WIDTH; j++) {
        unsigned two = tile[row + j][col / 2];
        y.at[j] = bf16{(unsigned short)(col % 2 == 0 ? two & 0xffffU : two >> 16)};
    }
    store_lanes<WIDTH>(to + (col0 + col) * t.width + row0 + row, scaled<F>(y, *scale));
}

long padded(long terms)
{
    return (terms + WIDTH - 1) / WIDTH * WIDTH;
}

template <class F>
void cast(ms_cuda_stream *stream, const ms_cuda_fp8_matrix *m, const float *scale)
{
    const bf16 *x = (const bf16 *)m->x;
    bool aligned = can_pack(x, m->cols);
    if (m->transpose) {
        tiles t = {m->rows, m->cols, padded(m->rows), (m->cols + TILE - 1) / TILE};
        long num = (m->rows + TILE - 1) / TILE * t.num_across;
        MS_LAUNCH((cast_transposed<F>), (unsigned)num, THREADS, 0, stream, (F *)m->to, x,
                  scale, t, aligned);
        return;
    }
    bool has_gaps = m->cols % WIDTH != 0; /* false: all rows are cast as one row */
    long rows = has_gaps ? m->rows : 1, cols = has_gaps ? m->cols : m->rows * m->cols;
    long num_packs = padded(cols) / WIDTH;
    MS_LAUNCH((cast_rows<F>), ms_blocks(rows * num_packs, THREADS, MS_MANY_BLOCKS),
              THREADS, 0, stream, (F *)m->to, x, scale, rows, cols, num_packs, aligned);
}

numbers numbers_of(const ms_cuda_fp8_matrix *m)
{
    long count = m->rows * m->cols;
    return {(const bf16 *)m->x, count, is_aligned(m->x) ? count / pack<bf16>::SIZE : 0};
}

float largest_of(ms_scalar format)
{
    return format == MS_SCALAR_E4M3 ? e4m3::LARGEST : e5m2::LARGEST;
}

} // namespace

/* ---- launches ---- */

void ms_cuda_fp8_find_scales(ms_cuda_stream *stream, ms_cuda_fp8_scales *scales,
                             unsigned *parts, const ms_cuda_fp8_matrix matrices[2])
{
    numbers a = numbers_of(&matrices[0]), b = numbers_of(&matrices[1]);
    long most = a.count > b.count ? a.count : b.count;
    unsigned num =
        ms_blocks(most, (long)THREADS * pack<bf16>::SIZE * 4, MS_CUDA_FP8_PARTS);
    MS_LAUNCH((find_largest), dim3(num, 2), THREADS, 0, stream, parts, a, b);
    MS_LAUNCH((make_scales), 2, THREADS, 0, stream, scales, (const unsigned *)parts,
              (int)num, largest_of(matrices[0].format), largest_of(matrices[1].format));
}

void ms_cuda_fp8_cast(ms_cuda_stream *stream, const ms_cuda_fp8_matrix *matrix,
                      const ms_cuda_fp8_scales *scales, int which)
{
    if (matrix->format == MS_SCALAR_E4M3)
        cast<e4m3>(stream, matrix, &scales->to_fp8[which]);
    else
        cast<e5m2>(stream, matrix, &scales->to_fp8[which]);
}
