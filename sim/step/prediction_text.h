/* Predictions in JSON, and the short texts and numbers that outputs of several results share. */
#ifndef MS_SIM_STEP_PREDICTION_TEXT_H
#define MS_SIM_STEP_PREDICTION_TEXT_H

#include "sim/step/prediction.h"

/* Writes the fields of meshsim.prediction/1 into an open object. */
void ms_prediction_write_fields(ms_jout *out, const ms_prediction *prediction);

/* Writes the components of a step time, "compute_s" and so on, into an open object. */
void ms_step_time_write_fields(ms_jout *out, double compute_s, double exposed_comm_s,
                               double bubble_s, double optimizer_s, double host_s);

/* Writes the fields of one axis of a prediction into an open object. */
void ms_axis_write_fields(ms_jout *out, const ms_axis_prediction *axis);

/* The plan with the layers of each stage that the prediction used. */
ms_plan ms_prediction_plan(const ms_plan *plan, const ms_prediction *prediction);

/* "llama-3.1-70b on 512 GPUs of hgx-h100, stack generic, 512 sequences of 8192 tokens a
 * step, bf16": the inputs, without the choices of the plan. `unit` is the unit of the
 * cluster's device, as "rank"; NULL for "GPU". */
char *ms_plan_inputs_text(ms_arena *arena, const ms_plan *plan, const char *unit);

/* Sources of the error interval of the step time, in one line; NULL: none. */
char *ms_interval_text(ms_arena *arena, const ms_plan *plan,
                       const ms_prediction *prediction);
/* Sources of the error interval of the peak memory, in one line; NULL: none. */
char *ms_peak_interval_text(ms_arena *arena, const ms_plan *plan,
                            const ms_prediction *prediction);

/* " + 2.02 GiB of context and communicators", added to the peak that a framework
 * reports; "" if the peak includes them. */
const char *ms_outside_text(ms_arena *arena, const ms_prediction *prediction);

/* Number of decimals that show `value` with four significant digits. */
int ms_decimals(double value);

/* Four significant digits, all digits before the point, never an exponent of large
 * numbers: 12.77, 28784. */
const char *ms_amount_text(ms_arena *arena, double value);

double ms_gib(double bytes);

#endif
