/* Internals of the calibration_*.c files. */
#ifndef MS_COSTMODEL_CALIBRATE_CALIBRATION_PRIV_H
#define MS_COSTMODEL_CALIBRATE_CALIBRATION_PRIV_H

#include "costmodel/calibrate/calibration.h"
#include "costmodel/cost/collective_cost.h"
#include "costmodel/cost/kernel_cost.h"

typedef struct ms_calibration_work {
    ms_ctx *cx;
    const ms_calibration_input *in;
    ms_calibration *out;
    ms_pricer pricer; /* prices by out->profile with the coefficients on trial */
} ms_calibration_work;

/* Whether a sample is of one kind; `what` is an operation or a collective. */
typedef bool ms_sample_filter(const ms_sample *sample, int what);
ms_sample_filter ms_sample_is_gemm, ms_sample_is_attention, ms_sample_is_operation,
    ms_sample_is_stream, ms_sample_is_collective, ms_sample_is_ring;

/* Converts a sample to a point of a law: what was measured (kind of attention; collective
 * and ranks), its sizes, seconds. Returns the number of columns. */
int ms_sample_point(const ms_sample *sample, double *point);

void ms_calibration_add_tables(ms_calibration_work *w);

#endif
