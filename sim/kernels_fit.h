/* Coefficients of products and attention, fitted on measured kernels: the half of the shapes that a hash chooses, of the sources that the shipped
 * coefficients name; judged on the other half. */
#ifndef MS_SIM_KERNELS_FIT_H
#define MS_SIM_KERNELS_FIT_H

#include "base/json.h"
#include "costmodel/fit.h"
#include "sim/kernel_validation.h"

typedef struct ms_kernel_fit_value {
    const char *key; /* below gemm.TYPE or attention.KERNEL: "efficiency" */
    ms_unit unit;
    double shipped;
    ms_fit_value fitted;
} ms_kernel_fit_value;

/* One law of one device. */
typedef struct ms_kernel_fit {
    const char *profile;
    const char *law;    /* "gemm.bf16", "attention.fa3" */
    const char *source; /* of its first row */
    int num_values;
    ms_kernel_fit_value values[MS_FIT_PARAMETERS];
    ms_fit fit; /* of the rows fitted on */
    ms_kernel_errors shipped_errors,
        fitted_errors; /* of the other half of the same sources */
} ms_kernel_fit;

typedef struct ms_kernels_fit {
    int num_fits;
    const ms_kernel_fit *fits; /* by profile and law */
} ms_kernels_fit;

/* Laws with more than 8 rows to fit on for each coefficient are left out otherwise. Intervals by bootstrap with a fixed seed. Errors: those of ms_fit_make. */
ms_status ms_kernels_fit_make(ms_ctx *cx, const ms_kernel_rows *rows,
                              ms_kernels_fit *out);

/* meshsim.fit-kernels/1 */
void ms_kernels_fit_write_json(ms_jout *out, const ms_kernels_fit *fit);
void ms_kernels_fit_print(FILE *out, ms_arena *arena, const ms_kernels_fit *fit);

#endif
