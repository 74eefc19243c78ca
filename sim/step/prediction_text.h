/* Predictions as JSON, and short texts of predictions that several outputs show. */
#ifndef MS_SIM_STEP_PREDICTION_TEXT_H
#define MS_SIM_STEP_PREDICTION_TEXT_H

#include "sim/step/prediction.h"

/* Writes the fields of schema meshsim.prediction/1 into an open JSON object. */
void ms_prediction_write_fields(ms_jout *out, const ms_prediction *prediction);

/* Writes the parts of a step time, "compute_s" and so on, into an open JSON object. */
void ms_step_time_write_fields(ms_jout *out, double compute_s, double exposed_comm_s,
                               double bubble_s, double optimizer_s, double host_s);

/* Writes the predicted communication of a mesh axis into an open JSON object. */
void ms_axis_write_fields(ms_jout *out, const ms_axis_prediction *axis);

/* The plan with the number of layers of each stage that its prediction used. */
ms_plan ms_prediction_plan(const ms_plan *plan, const ms_prediction *prediction);

/* Text of a plan's inputs: "llama-3.1-70b on 512 GPUs of hgx-h100, stack generic, 512
 * sequences of 8192 tokens a step, bf16". `unit`: word for a device; NULL: "GPU". */
char *ms_plan_inputs_text(ms_arena *arena, const ms_plan *plan, const char *unit);

/* One line: the published runs behind the step time's error interval; NULL: none. */
char *ms_interval_text(ms_arena *arena, const ms_plan *plan,
                       const ms_prediction *prediction);
/* One line: the published runs behind the peak memory's error interval; NULL: none. */
char *ms_peak_interval_text(ms_arena *arena, const ms_plan *plan,
                            const ms_prediction *prediction);
/* "few peaks of stack deepspeed were measured (2 runs of 1 source): the risk is mostly by
 * errors of other stacks"; NULL: runs of two sources or more, or no known errors at all. */
const char *ms_few_peaks_text(ms_arena *arena, const char *stack, const ms_prediction *p);

/* " with a margin of 30 % for errors of the prediction"; "" without margin. */
const char *ms_margin_text(ms_arena *arena, const ms_memory_limit *limit);
/* " beside the headroom of 6.00 GiB"; "" without headroom. */
const char *ms_headroom_text(ms_arena *arena, const ms_workload *workload);
/* Text of device memory that the framework's peak omits, " + 2.02 GiB of context and
 * communicators"; "" if none. */
const char *ms_outside_text(ms_arena *arena, const ms_prediction *prediction);

/* Number of decimals with which `value` has four significant digits: 0 to 9. */
int ms_decimals(double value);

/* A number with four significant digits: "12.77"; from 1e4 on all digits: "28784". */
const char *ms_amount_text(ms_arena *arena, double value);

double ms_gib(double bytes);

/* Whether an output has the use of the host: the plan states how kernels are launched, or
 * the device waits for a thousandth of the step and more. */
bool ms_shows_host(const ms_prediction *prediction);
/* "5,120 launches in 0.41 s; layers wait for them 0.1 s in forward, 0.2 s in backward" */
const char *ms_host_use_text(ms_arena *arena, const ms_prediction *prediction);

#endif
