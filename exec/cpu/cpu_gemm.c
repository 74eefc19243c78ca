/* Matrix products in loops: packed blocks feed an inner loop of 4 x 16 results. */
#include "exec/cpu/cpu.h"

#include <string.h>

#define ROWS  4   /* rows of the result per call of multiply_registers */
#define COLS  16  /* columns of the result per call of multiply_registers */
#define DEPTH 128 /* columns of a, or rows of b, per packed block */
#define TALL  64  /* rows of matrix a per packed block */
#define BROAD 128 /* columns of matrix b per packed block */

/* A block of a matrix or of its transpose. */
typedef struct submatrix {
    const ms_real *x;
    long row_stride, col_stride;
    long num_rows, num_cols;
} submatrix;

static submatrix submatrix_at(const ms_real *x, bool transposed, long ld, long row,
                              long col)
{
    submatrix p = {.row_stride = transposed ? 1 : ld, .col_stride = transposed ? ld : 1};
    p.x = x + row * p.row_stride + col * p.col_stride;
    return p;
}

/* Packs p by groups of `height` rows (the last is zero-padded):
 * to[group][column][row]. */
static void pack_rows(ms_real *restrict to, submatrix p, long height)
{
    for (long first = 0; first < p.num_rows; first += height, to += height * p.num_cols) {
        long rows = ms_cpu_smaller(height, p.num_rows - first);
        if (rows < height)
            memset(to, 0, (size_t)(height * p.num_cols) * sizeof *to);
        for (long i = 0; i < rows; i++) {
            const ms_real *from = p.x + (first + i) * p.row_stride;
            for (long col = 0; col < p.num_cols; col++)
                to[col * height + i] = from[col * p.col_stride];
        }
    }
}

/* Multiplies (ROWS x depth) by (depth x COLS); compilers keep the sums in registers. */
MS_WIDE static void multiply_registers(ms_real *restrict out, const ms_real *restrict a,
                                       const ms_real *restrict b, long depth)
{
    ms_real sum0[COLS] = {0}, sum1[COLS] = {0}, sum2[COLS] = {0}, sum3[COLS] = {0};
    for (long k = 0; k < depth; k++) {
        ms_real a0 = a[k * ROWS], a1 = a[k * ROWS + 1], a2 = a[k * ROWS + 2],
                a3 = a[k * ROWS + 3];
        for (int j = 0; j < COLS; j++) {
            ms_real b_j = b[k * COLS + j];
            sum0[j] += a0 * b_j;
            sum1[j] += a1 * b_j;
            sum2[j] += a2 * b_j;
            sum3[j] += a3 * b_j;
        }
    }
    memcpy(out, sum0, sizeof sum0);
    memcpy(out + COLS, sum1, sizeof sum1);
    memcpy(out + 2 * COLS, sum2, sizeof sum2);
    memcpy(out + 3 * COLS, sum3, sizeof sum3);
}

/* Packed blocks a (rows, depth) and b (depth, cols), whose product is added to c. */
typedef struct blocks {
    const ms_real *a, *b;
    ms_real *c;
    long ld_c, num_rows, num_cols, depth;
} blocks;

static void multiply_blocks(const blocks *p)
{
    ms_real sum[ROWS * COLS];
    for (long col = 0; col < p->num_cols; col += COLS) {
        for (long row = 0; row < p->num_rows; row += ROWS) {
            multiply_registers(sum, p->a + row * p->depth, p->b + col * p->depth,
                               p->depth);
            long rows = ms_cpu_smaller(ROWS, p->num_rows - row),
                 cols = ms_cpu_smaller(COLS, p->num_cols - col);
            for (long i = 0; i < rows; i++)
                for (long j = 0; j < cols; j++)
                    p->c[(row + i) * p->ld_c + col + j] += sum[i * COLS + j];
        }
    }
}

/* Adds a[:, k .. k + DEPTH - 1] times b[k .. k + DEPTH - 1, col .. col + BROAD - 1] to
 * columns col .. col + BROAD - 1 of c. */
static void multiply_columns(const ms_gemm *g, const ms_real *a, const ms_real *b,
                             ms_real *c, long k, long col)
{
    ms_real packed_a[TALL * DEPTH], packed_b[DEPTH * BROAD];
    blocks p = {.a = packed_a,
                .b = packed_b,
                .ld_c = g->ld_c,
                .num_cols = ms_cpu_smaller(BROAD, g->n - col),
                .depth = ms_cpu_smaller(DEPTH, g->k - k)};
    /* columns of b are packed as rows of its transpose */
    submatrix from = submatrix_at(b, !g->transpose_b, g->ld_b, col, k);
    from.num_rows = p.num_cols;
    from.num_cols = p.depth;
    pack_rows(packed_b, from, COLS);
    for (long row = 0; row < g->m; row += TALL) {
        p.num_rows = ms_cpu_smaller(TALL, g->m - row);
        from = submatrix_at(a, g->transpose_a, g->ld_a, row, k);
        from.num_rows = p.num_rows;
        from.num_cols = p.depth;
        pack_rows(packed_a, from, ROWS);
        p.c = c + row * g->ld_c + col;
        multiply_blocks(&p);
    }
}

static void plain_product(const ms_gemm *g, const ms_real *a, const ms_real *b,
                          ms_real *c)
{
    for (long i = 0; i < g->m && !g->add; i++)
        memset(c + i * g->ld_c, 0, (size_t)g->n * sizeof *c);
    for (long k = 0; k < g->k; k += DEPTH)
        for (long col = 0; col < g->n; col += BROAD)
            multiply_columns(g, a, b, c, k, col);
}

void MS_TYPED(ms_gemm_plain)(const ms_gemm *g, const ms_real *a, const ms_real *b,
                             ms_real *c)
{
    long num_products = g->num_batch > 0 ? g->num_batch : 1;
    for (long i = 0; i < num_products; i++)
        plain_product(g, a + i * g->stride_a, b + i * g->stride_b, c + i * g->stride_c);
}

#ifndef MS_WITH_BLAS
void MS_TYPED(ms_gemm_run)(const ms_gemm *g, const ms_real *a, const ms_real *b,
                           ms_real *c)
{
    MS_TYPED(ms_gemm_plain)(g, a, b, c);
}
#endif
