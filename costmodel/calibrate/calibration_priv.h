/* Functions shared by the files of the calibration (calibration_*.c). */
#ifndef MS_COSTMODEL_CALIBRATE_CALIBRATION_PRIV_H
#define MS_COSTMODEL_CALIBRATE_CALIBRATION_PRIV_H

#include "costmodel/calibrate/calibration.h"
#include "costmodel/cost/collective_cost.h"
#include "costmodel/cost/kernel_cost.h"

typedef struct ms_calibration_work {
    ms_ctx *cx;
    const ms_calibration_input *in;
    ms_calibration *out;
    ms_pricer pricer; /* prices with the coefficients under fit in out->profile */
} ms_calibration_work;

/* Selects samples by two sets of bits: `kinds` 1 << kind, `whats` 1 << ms_op or
 * ms_collective. */
typedef struct ms_sample_filter {
    unsigned kinds;
    unsigned long long whats; /* set of operations or collectives; 0: any */
} ms_sample_filter;
bool ms_sample_matches(const ms_sample *sample, ms_sample_filter filter);
bool ms_sample_is_attention(const ms_sample *sample);

/* Writes a sample as a point: sizes, then seconds; returns the number of columns. */
int ms_sample_point(const ms_sample *sample, double *point);

void ms_calibration_add_tables(ms_calibration_work *w);

/* Takes the samples of conditions (samples.h) out of `in`, whose samples it replaces, and
 * sets the calibration's ratio of zeros, warm-up and machine.conditions by them. */
void ms_calibration_take_conditions(ms_ctx *cx, ms_calibration_input *in,
                                    ms_calibration *out);

#endif
