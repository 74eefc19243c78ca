/* Folder costmodel/calibrate: fits and statistics of measured times; the measuring is in
 * exec/measure.
 *
 * Makes a cost profile of a machine from times measured on it: fits of the cost laws of
 * kernels and collectives, and tables of the measurements. */
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
    const ms_profile *assumed; /* source of the coefficients that are not measured */
    const ms_stack *stack;     /* framework whose attention kernel was measured */
    ms_dtype compute;
    long ranks;
    ms_machine machine;
    const char *date;
    const char *backend;
    const char *kernels; /* which of several kernels were measured; NULL: no choice */
} ms_calibration_input;

typedef struct ms_calibration_coefficient {
    const char *name;
    ms_unit unit;
    ms_fit_value value;
} ms_calibration_coefficient;

typedef struct ms_calibration_fit {
    const char *name; /* name of the cost law: "products", "norm", "rings" */
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
    int num_cases; /* distinct measured cases (operation, shape, ranks) */
    /* slowest / fastest program launch, by the geometric mean of a launch's samples */
    double launch_ratio;
    double case_ratio_p90; /* 90th percentile over cases of slowest / fastest launch */
    /* median over samples of (elapsed time / time without waits for a CPU core) */
    double typical_ratio;
    /* medians over launches: time of the largest GEMM with zeros / with normal data, which
     * costs more power; warm-up until the GEMM's time was steady. NaN: not measured */
    double zero_ratio, warm_up_s;
    bool steady; /* whether warm-ups were measured, and all ended with steady times */
} ms_calibration;

/* Makes a calibrated profile: fits by relative errors, intervals by resampling launches
 * (fit.h). MS_EINPUT if GEMMs, attention or sums of two arrays were not measured, or if a
 * rate is implausible beside the one that the cluster file lists. */
ms_status ms_calibration_make(ms_ctx *cx, const ms_calibration_input *input,
                              ms_calibration *out);

#endif
