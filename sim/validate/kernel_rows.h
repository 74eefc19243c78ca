/* Reads measured GEMMs and attention kernels from a CSV file: each row becomes a kernel
 * of a known device with its time, or a reason why it cannot be predicted. Kernels run
 * alone, so rates are those in isolation, without the derating of training, except for
 * rows measured under sustained load. */
#ifndef MS_SIM_VALIDATE_KERNEL_ROWS_H
#define MS_SIM_VALIDATE_KERNEL_ROWS_H

#include "costmodel/cost/kernel_cost.h"
#include "sim/validate/row_errors.h"

/* Passes of a layer that a measured kernel runs, once each. */
enum {
    MS_KERNEL_FORWARD = 1,
    MS_KERNEL_BACKWARD = 2
};

typedef struct ms_kernel_row {
    int line;
    const char *source, *gpu, *op;
    const char *origin; /* `source` without the file: "owner/repository@revision" */
    const char *reason; /* why the measured row is not predicted; NULL if it is */
    const char *fault;  /* which cell is malformed, and how; NULL if none is */
    double measured_s;
    /* the row's shape is in the half of all shapes that a hash chooses for fitting */
    bool in_half;
    bool of_fitted_source; /* some coefficient was fitted to rows of `source` */
    bool fitted;           /* in_half and of_fitted_source */
    /* The members below are set only if `reason` is NULL. */
    const ms_cluster *cluster;
    bool sustained; /* measured at the clocks of a sustained load, as in training */
    /* profile with the rates of kernels in isolation, unless sustained */
    const ms_profile *profile;
    ms_dtype dtype;
    bool is_attention;
    int passes; /* passes of attention: MS_KERNEL_FORWARD | MS_KERNEL_BACKWARD */
    /* kernel that ran, or the next slower one that the profile has coefficients for */
    ms_attention_kernel kernel;
    ms_attention_shape attention; /* shape of the forward pass */
    ms_gemm_shape product;
    double sequence;   /* number of sequential GEMMs of shape `product` */
    bool quantizes;    /* measured time includes quantizing the first operand */
    bool best_of_many; /* time of the fastest among many searched shapes */
} ms_kernel_row;

typedef struct ms_kernel_rows {
    int num_rows;
    ms_kernel_row *rows; /* the measured rows, in the order of the file */
    ms_skipped skipped;  /* rows that cannot be predicted */
} ms_kernel_rows;

/* Reads measured kernels from a text, which messages call `name`; the result lives in
 * cx->arena. A malformed row has a `fault`. MS_EINPUT for an empty file and for a header
 * that lacks a column or has one twice. */
ms_status ms_kernel_rows_read(ms_ctx *cx, const char *name, const char *text,
                              size_t length, ms_kernel_rows *out);

/* Makes the pricer for the kernels of a measured row whose `reason` is NULL. */
ms_status ms_kernel_row_pricer(ms_ctx *cx, const ms_kernel_row *row, ms_pricer *out);
/* Predicted seconds of a row; `pricer` is the row's, or has coefficients on trial. */
double ms_kernel_row_s(const ms_pricer *pricer, const ms_kernel_row *row);

#endif
