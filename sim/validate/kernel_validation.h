/* Predictions compared with measured kernels: errors by GPU and source, separately for
 * rows that coefficients were fitted to. */
#ifndef MS_SIM_VALIDATE_KERNEL_VALIDATION_H
#define MS_SIM_VALIDATE_KERNEL_VALIDATION_H

#include "base/json.h"
#include "sim/validate/kernel_rows.h"
#include "sim/validate/row_errors.h"

/* Errors of the rows of one GPU and source; a detail covers one operation and data
 * type. */
typedef struct ms_kernel_score {
    const char *gpu, *source;
    const char *op, *dtype; /* operation and data type of the rows; NULL for all */
    ms_row_errors fitted, others;
    /* Effect of the source's clocks and host, t = predicted / rate_frac + launch_s,
     * fitted to its rows of the fitted half; NaN if fewer than 8. `adapted` are the
     * errors of the other half priced so. */
    double rate_frac, launch_s;
    ms_row_errors adapted;
} ms_kernel_score;

typedef struct ms_kernel_validation {
    const ms_kernel_rows *rows;
    const double *predicted_s; /* seconds (num_rows); NaN if not priced */
    int num_priced;
    int num_sources, num_details;
    const ms_kernel_score *sources, *details; /* sorted by name */
} ms_kernel_validation;

/* Prices every row whose `reason` is NULL. Lives in cx->arena. Errors: those of
 * ms_kernel_row_pricer. */
ms_status ms_kernel_validate(ms_ctx *cx, const ms_kernel_rows *rows,
                             ms_kernel_validation *out);

/* Writes meshsim.validation-kernels/1. Errors are fractions. */
void ms_kernel_validation_write_json(ms_jout *out,
                                     const ms_kernel_validation *validation);

#endif
