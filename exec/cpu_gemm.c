/* Matrix products by plain loops: blocks of both operands are packed in the order in which an inner loop of 4 x 16 results reads them. */
#include "exec/cpu.h"

#include <string.h>

#define ROWS  4 /* results of the inner loop */
#define COLS  16
#define DEPTH 128 /* of a block */
#define TALL  64  /* rows of a packed block of a */

static ms_real at(const ms_real *x, bool transposed, long ld, long row, long col)
{
    return transposed ? x[col * ld + row] : x[row * ld + col];
}

/* Elements (row .. row + rows, col .. col + cols) of op(x) become to[row / group][col][group], or for columns in groups [col / group][row][group];
 * zero beyond the end. */
typedef struct block {
    long row, rows, col, cols;
} block;

static void pack_rows(ms_real *restrict to, const ms_real *restrict a, const ms_gemm *g,
                      block at_block)
{
    for (long first = 0; first < at_block.rows; first += ROWS)
        for (long k = 0; k < at_block.cols; k++)
            for (long i = 0; i < ROWS; i++)
                *to++ = first + i < at_block.rows
                            ? at(a, g->transpose_a, g->ld_a, at_block.row + first + i,
                                 at_block.col + k)
                            : 0;
}

static void pack_cols(ms_real *restrict to, const ms_real *restrict b, const ms_gemm *g,
                      block at_block)
{
    for (long k = 0; k < at_block.rows; k++)
        for (long j = 0; j < COLS; j++)
            *to++ = j < at_block.cols ? at(b, g->transpose_b, g->ld_b, at_block.row + k,
                                           at_block.col + j)
                                      : 0;
}

MS_WIDE static void inner(ms_real *restrict out, const ms_real *restrict a,
                          const ms_real *restrict b, long depth)
{
    ms_real sum[ROWS][COLS] = {{0}};
    for (long k = 0; k < depth; k++)
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < COLS; j++)
                sum[i][j] += a[k * ROWS + i] * b[k * COLS + j];
    memcpy(out, sum, sizeof sum);
}

/* One packed block of rows by one of COLS columns. */
static void multiply(const ms_gemm *g, const ms_real *a, const ms_real *b, ms_real *c,
                     block at_block, long depth)
{
    ms_real sum[ROWS * COLS];
    for (long first = 0; first < at_block.rows; first += ROWS) {
        inner(sum, a + first * depth, b, depth);
        long rows = ms_cpu_smaller(ROWS, at_block.rows - first);
        for (long i = 0; i < rows; i++) {
            ms_real *to = c + (at_block.row + first + i) * g->ld_c + at_block.col;
            for (long j = 0; j < at_block.cols; j++)
                to[j] += sum[i * COLS + j];
        }
    }
}

static void clear(const ms_gemm *g, ms_real *c)
{
    for (long i = 0; i < g->m && !g->add; i++)
        memset(c + i * g->ld_c, 0, (size_t)g->n * sizeof *c);
}

static void product(const ms_gemm *g, const ms_real *a, const ms_real *b, ms_real *c)
{
    ms_real rows[TALL * DEPTH], cols[DEPTH * COLS];
    clear(g, c);
    for (long k = 0; k < g->k; k += DEPTH) {
        long depth = ms_cpu_smaller(DEPTH, g->k - k);
        for (long i = 0; i < g->m; i += TALL) {
            block of_a = {i, ms_cpu_smaller(TALL, g->m - i), k, depth};
            pack_rows(rows, a, g, of_a);
            for (long j = 0; j < g->n; j += COLS) {
                block of_b = {k, depth, j, ms_cpu_smaller(COLS, g->n - j)};
                pack_cols(cols, b, g, of_b);
                multiply(g, rows, cols, c,
                         (block){of_a.row, of_a.rows, of_b.col, of_b.cols}, depth);
            }
        }
    }
}

void MS_TYPED(ms_gemm_plain)(const ms_gemm *g, const ms_real *a, const ms_real *b,
                             ms_real *c)
{
    long num_products = g->num_batch > 0 ? g->num_batch : 1;
    for (long i = 0; i < num_products; i++)
        product(g, a + i * g->stride_a, b + i * g->stride_b, c + i * g->stride_c);
}

#ifndef MS_WITH_BLAS
void MS_TYPED(ms_gemm_run)(const ms_gemm *g, const ms_real *a, const ms_real *b,
                           ms_real *c)
{
    MS_TYPED(ms_gemm_plain)(g, a, b, c);
}
#endif
