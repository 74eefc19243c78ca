/* From times measured on a machine to a cost profile of it: fits of the laws that price kernels and collectives, and tables of what was measured. */
#ifndef MS_COSTMODEL_CALIBRATION_H
#define MS_COSTMODEL_CALIBRATION_H

#include "costmodel/fit.h"
#include "costmodel/program.h"

typedef enum ms_sample_kind {
    MS_SAMPLE_PRODUCT,   /* size: batch, m, n, k */
    MS_SAMPLE_ATTENTION, /* size: FLOP, key tokens, head dim, score elements, bytes */
    MS_SAMPLE_ATTENTION_GRAD, /* likewise */
    MS_SAMPLE_POINTWISE,      /* what: ms_op; size: bytes */
    MS_SAMPLE_COLLECTIVE,     /* what: ms_collective, over `ranks`; size: bytes */
    MS_NUM_SAMPLE_KINDS
} ms_sample_kind;
extern const char *const ms_sample_kind_names[]; /* "product" ..., NULL */

#define MS_SAMPLE_SIZES 5

/* One case in one launch. */
typedef struct ms_sample {
    int kind; /* ms_sample_kind */
    int what;
    long ranks;
    int launch; /* from 0 */
    double size[MS_SAMPLE_SIZES];
    double seconds;   /* the least of the launch, of the slowest rank */
    double typical_s; /* the median */
} ms_sample;

typedef struct ms_samples {
    int num, capacity;
    ms_sample *items;
} ms_samples;
void ms_samples_add(ms_arena *arena, ms_samples *samples, const ms_sample *sample);

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
    double
        launch_ratio; /* slowest over fastest launch, by the mean of log seconds; 1 with one */
    double case_ratio_p90; /* of single cases: slowest over fastest launch */
    double typical_ratio;  /* median of typical over least seconds */
} ms_calibration;

/* Fits by relative errors, intervals by launch (costmodel/fit.h). MS_EINPUT: too few samples of a kind that cannot be done without (products, attention,
 * a sum of two arrays), or a rate that is out of all proportion to the cluster's listed one. */
ms_status ms_calibration_make(ms_ctx *cx, const ms_calibration_input *input,
                              ms_calibration *out);

#endif
