/* Makes a cost profile of a machine from times measured on it: fits of the laws that
 * price kernels and collectives, and tables of the measurements. This room holds fits and
 * statistics; running kernels to measure them is exec/measure. */
#ifndef MS_COSTMODEL_CALIBRATE_CALIBRATION_H
#define MS_COSTMODEL_CALIBRATE_CALIBRATION_H

#include "costmodel/calibrate/fit.h"
#include "costmodel/calibrate/samples.h"
#include "costmodel/profile/stack.h"
#include "costmodel/tensor/op.h"

typedef struct ms_calibration_input {
    const ms_samples *samples;
    int num_launches;
    const ms_cluster *cluster;
    const ms_profile *assumed; /* supplies coefficients that are not measured */
    const ms_stack *stack;     /* stack whose attention kernel is measured */
    ms_dtype compute;
    long ranks;
    ms_machine machine;
    const char *date;
    const char *backend;
} ms_calibration_input;

typedef struct ms_calibration_coefficient {
    const char *name;
    ms_unit unit;
    ms_fit_value value;
} ms_calibration_coefficient;

typedef struct ms_calibration_fit {
    const char *name; /* fitted law: "products", "norm", "rings" */
    int num_coefficients;
    ms_calibration_coefficient coefficients[MS_FIT_PARAMETERS];
    ms_fit fit;
} ms_calibration_fit;

#define MS_MAX_CALIBRATION_FITS (MS_NUM_OPS + 8)

typedef struct ms_calibration {
    const ms_calibration_input *input;
    ms_profile profile;
    int num_fits;
    ms_calibration_fit fits[MS_MAX_CALIBRATION_FITS];
    int num_cases; /* number of distinct shapes and sizes */
    /* slowest over fastest launch, by the mean of log seconds; 1 with one launch */
    double launch_ratio;
    double case_ratio_p90; /* 90th percentile over cases of slowest over fastest launch */
    /* median over samples of seconds elapsed over seconds running */
    double typical_ratio;
} ms_calibration;

/* Makes the profile: fits by relative errors, intervals by resampling launches (fit.h).
 * MS_EINPUT if there are no GEMMs, attention or sums of two arrays, or a rate is
 * implausible beside the cluster's listed one. */
ms_status ms_calibration_make(ms_ctx *cx, const ms_calibration_input *input,
                              ms_calibration *out);

#endif
