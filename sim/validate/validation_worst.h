/* The runs with the largest errors of the step time, with the components of the
 * prediction. */
#ifndef MS_SIM_VALIDATE_VALIDATION_WORST_H
#define MS_SIM_VALIDATE_VALIDATION_WORST_H

#include "sim/validate/validation.h"

/* Sets validation->worst to the runs with the largest |step error|, at most `num`, the
 * worst first. */
void ms_validation_find_worst(ms_arena *arena, int num, ms_validation *validation);

/* MFU of a run by its measured step time; implausibly low if the run stalled. */
double ms_measured_mfu_frac(const ms_validation *validation, int run);

/* Measured step times of other runs of the same workload and layout, which show how
 * measurements scatter. NaN if there are none. */
typedef struct ms_run_repeats {
    int num;
    double least_s, most_s;
} ms_run_repeats;
ms_run_repeats ms_run_repeats_of(const ms_validation *validation, int run);

#define MS_NUM_STEP_COMPONENTS 5
/* A component of the predicted step time; `offset`: of its member in ms_pubrun_score. */
typedef struct ms_step_component {
    const char *key, *title;
    size_t offset;
} ms_step_component;
extern const ms_step_component ms_step_components[MS_NUM_STEP_COMPONENTS];
/* Share of a component in the predicted step. */
double ms_step_component_frac(const ms_pubrun_score *score, int component);

void ms_worst_write_json(ms_jout *out, const ms_validation *validation);

#endif
