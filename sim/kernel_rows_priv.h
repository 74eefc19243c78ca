/* Between the files of kernel_rows. */
#ifndef MS_SIM_KERNEL_ROWS_PRIV_H
#define MS_SIM_KERNEL_ROWS_PRIV_H

#include "sim/kernel_rows.h"

/* A row as the file has it. */
typedef struct ms_kernel_cells {
    const char *source, *gpu, *op, *n, *head_dim, *dtype; /* NULL: empty */
    long m, k, causal;                                    /* -1: empty */
    double tflops;
} ms_kernel_cells;

/* Type, shape and measured time of a row whose device is known. NULL, or the reason why
 * it cannot be priced. */
const char *ms_kernel_shape_read(const ms_kernel_cells *cells, ms_kernel_row *row);
/* What only all rows together tell: which of two are sums in fp32. */
void ms_kernel_sums_tell(ms_kernel_rows *rows);

#endif
