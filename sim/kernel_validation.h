/* Predictions beside measured kernels: errors of each GPU and source, rows that
 * coefficients were fitted on apart from others. */
#ifndef MS_SIM_KERNEL_VALIDATION_H
#define MS_SIM_KERNEL_VALIDATION_H

#include "base/json.h"
#include "sim/kernel_rows.h"
#include "sim/score_print.h"

/* Rows of one GPU and source; of a detail, also of one operation and type. */
typedef struct ms_kernel_score {
    const char *gpu, *source;
    const char *op, *dtype; /* NULL: all */
    ms_row_errors fitted, others;
    /* What the source's clocks and its host make of the prediction, t = predicted / rate
     * + launch, by its rows of the half that may be fitted on; NaN: fewer than 8 of them.
     * Then errors of the rows of the other half, so priced. */
    double rate_frac, launch_s;
    ms_row_errors adapted;
} ms_kernel_score;

typedef struct ms_kernel_validation {
    const ms_kernel_rows *rows;
    const double *predicted_s; /* (num_rows); NaN: not priced */
    int num_priced;
    int num_sources, num_details;
    const ms_kernel_score *sources, *details; /* by name */
} ms_kernel_validation;

/* Prices every row without reason. Lives in cx->arena. Errors: those of
 * ms_kernel_row_pricer. */
ms_status ms_kernel_validate(ms_ctx *cx, const ms_kernel_rows *rows,
                             ms_kernel_validation *out);

/* meshsim.validation-kernels/1. Errors are fractions. */
void ms_kernel_validation_write_json(ms_jout *out,
                                     const ms_kernel_validation *validation);
/* Tables for people; with `rows` one line per priced row before them. */
void ms_kernel_validation_print(FILE *out, ms_arena *arena,
                                const ms_kernel_validation *validation, bool rows);

#endif
