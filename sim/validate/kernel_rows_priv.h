/* Internals of kernel_rows.c and kernel_shapes.c. */
#ifndef MS_SIM_VALIDATE_KERNEL_ROWS_PRIV_H
#define MS_SIM_VALIDATE_KERNEL_ROWS_PRIV_H

#include "sim/validate/kernel_rows.h"

/* Cells of one row of measured kernels. */
typedef struct ms_kernel_cells {
    const char *source, *gpu, *op, *n, *head_dim, *dtype; /* text; NULL if empty */
    long m, k, causal;                                    /* numbers; -1 if empty */
    double tflops;
} ms_kernel_cells;

/* Sets data type, shape and measured time of a measured row whose device is known.
 * Returns NULL, or the reason why it cannot be predicted. */
const char *ms_kernel_shape_read(const ms_kernel_cells *cells, ms_kernel_row *row);
/* Marks weight-gradient GEMMs that accumulate in fp32: of two rows the slower one. */
void ms_kernel_sums_tell(ms_kernel_rows *rows);

#endif
