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
    const char *op, *dtype; /* operation and data type of a detail; NULL: all */
    ms_row_errors fitted, others;
    /* Effect of a source's clocks and host, measured = predicted / rate_frac + launch_s,
     * fitted to its rows in the half for fitting; NaN if fewer than 8. `adapted`: errors
     * of rows in the other half if predictions are corrected thus. */
    double rate_frac, launch_s;
    ms_row_errors adapted;
} ms_kernel_score;

typedef struct ms_kernel_validation {
    const ms_kernel_rows *rows;
    const double *predicted_s; /* (num_rows): seconds; NaN if not predicted */
    int num_priced;
    int num_sources, num_details;
    const ms_kernel_score *sources, *details; /* sorted by GPU, source */
} ms_kernel_validation;

/* Predicts every measured row whose `reason` is NULL, and scores the errors. *out is in
 * cx->arena. Error statuses: those of ms_kernel_row_pricer. */
ms_status ms_kernel_validate(ms_ctx *cx, const ms_kernel_rows *rows,
                             ms_kernel_validation *out);

/* Writes the errors as JSON in the schema meshsim.validation-kernels/1, as fractions. */
void ms_kernel_validation_write_json(ms_jout *out,
                                     const ms_kernel_validation *validation);

#endif
