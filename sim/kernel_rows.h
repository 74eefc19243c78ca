/* Measured matrix products and attention from a CSV file: each row becomes a kernel of a
 * known device with its time, or a reason why it cannot be priced. Kernels run alone:
 * rates are those in isolation, without the derate of training, but of rows measured
 * under a load that lasts. */
#ifndef MS_SIM_KERNEL_ROWS_H
#define MS_SIM_KERNEL_ROWS_H

#include "costmodel/kernel_cost.h"
#include "sim/score_print.h"

/* What a row runs, once each. */
enum {
    MS_KERNEL_FORWARD = 1,
    MS_KERNEL_BACKWARD = 2
};

typedef struct ms_kernel_row {
    int line;
    const char *source, *gpu, *op;
    const char *origin; /* the source without the file: "owner/repository@revision" */
    const char *reason; /* why it is not priced; NULL: it is */
    const char *fault;  /* what is malformed; NULL: nothing */
    double measured_s;
    bool in_half; /* that coefficients may be fitted on: by a hash of the shape alone */
    bool of_fitted_source; /* its coefficients name the source */
    bool fitted;           /* both */
    /* only without reason */
    const ms_cluster *cluster;
    bool sustained; /* measured at the clocks of a load that lasts, as training is */
    /* unless sustained, with the rates of kernels in isolation */
    const ms_profile *profile;
    ms_dtype dtype;
    bool is_attention;
    int passes;                 /* of attention: MS_KERNEL_FORWARD | MS_KERNEL_BACKWARD */
    ms_attention_kernel kernel; /* that it is; the device may price it by a lower one */
    ms_attention_shape attention; /* forward */
    ms_gemm_shape product;
    double sequence;   /* products of `product`, one after the other */
    bool quantises;    /* the first operand, within the measured time */
    bool best_of_many; /* the fastest shape of a search over them */
} ms_kernel_row;

typedef struct ms_kernel_rows {
    int num_rows;
    ms_kernel_row *rows; /* in the order of the file */
    ms_skipped skipped;  /* those with a reason */
} ms_kernel_rows;

/* Reads the text of a file, which messages call `name`; everything lives in cx->arena.
 * Malformed rows are rows with a fault. Errors: MS_EINPUT for a header that lacks a
 * column, or has one twice, and for an empty file. */
ms_status ms_kernel_rows_read(ms_ctx *cx, const char *name, const char *text,
                              size_t length, ms_kernel_rows *out);

/* What the row's kernels are priced with. The row has no reason. */
ms_status ms_kernel_row_pricer(ms_ctx *cx, const ms_kernel_row *row, ms_pricer *out);
/* Predicted time of the row by such a pricer, perhaps with other coefficients. */
double ms_kernel_row_s(const ms_pricer *pricer, const ms_kernel_row *row);

#endif
