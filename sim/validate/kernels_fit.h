/* Fits coefficients of GEMMs and attention to measured kernels of the sources that the
 * shipped coefficients name: to half of the shapes, which a hash chooses. Their errors
 * are those of predicting the other half. */
#ifndef MS_SIM_VALIDATE_KERNELS_FIT_H
#define MS_SIM_VALIDATE_KERNELS_FIT_H

#include "sim/validate/kernel_validation.h"
#include "sim/validate/law_fit.h"

/* Fit of the coefficients of one cost law of one device. */
typedef struct ms_kernel_fit {
    ms_law_fit law;
    const char *source; /* source of the first fitted row of the cost law */
    /* errors on the other half of the same sources */
    ms_row_errors shipped_errors, fitted_errors;
} ms_kernel_fit;

typedef struct ms_kernels_fit {
    int num_fits;
    const ms_kernel_fit *fits; /* sorted by profile and cost law */
} ms_kernels_fit;

/* Fits every cost law that has at least 7 rows in the half for fitting. Intervals:
 * bootstrap with a fixed seed. Error statuses: those of ms_fit_make. */
ms_status ms_kernels_fit_make(ms_ctx *cx, const ms_kernel_rows *rows,
                              ms_kernels_fit *out);

/* Writes the fits as JSON in the schema meshsim.fit-kernels/1. */
void ms_kernels_fit_write_json(ms_jout *out, const ms_kernels_fit *fit);

#endif
