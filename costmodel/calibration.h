/* From times measured on a machine to a cost profile of it: fits of the laws that price
 * kernels and collectives, and tables of what was measured. */
#ifndef MS_COSTMODEL_CALIBRATION_H
#define MS_COSTMODEL_CALIBRATION_H

#include "costmodel/fit.h"
#include "costmodel/op.h"
#include "costmodel/samples.h"
#include "costmodel/stack.h"

typedef struct ms_calibration_input {
    const ms_samples *samples;
    int num_launches;
    const ms_cluster *cluster;
    const ms_profile *assumed; /* what is not measured stays as it is here */
    const ms_stack *stack;     /* whose attention kernel is measured */
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
    const char *name; /* "products", "norm", "rings" */
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
    int num_cases; /* shapes and sizes */
    /* slowest over fastest launch, by the mean of log seconds; 1 with one */
    double launch_ratio;
    double case_ratio_p90; /* of single cases: slowest over fastest launch */
    /* median over the cases of seconds elapsed over seconds at work */
    double typical_ratio;
} ms_calibration;

/* Fits by relative errors, intervals by launch (costmodel/fit.h). MS_EINPUT: too few
 * samples of a kind that cannot be done without (products, attention, a sum of two
 * arrays), or a rate that is out of all proportion to the cluster's listed one. */
ms_status ms_calibration_make(ms_ctx *cx, const ms_calibration_input *input,
                              ms_calibration *out);

#endif
