/* Lower bounds of the time of a pipeline, in closed form, from the durations of its
 * stages. */
#ifndef MS_SIM_STEP_BOUND_H
#define MS_SIM_STEP_BOUND_H

#include "sim/step/replay.h"
#include "sim/step/workload.h"

typedef struct ms_order_times {
    const ms_split *split; /* the pipeline's stages and their ranks */
    ms_schedule_kind kind;
    const ms_stage_times *times; /* (num_classes): durations by stage class */
    double microbatches;         /* micro-batches that each stage runs */
    double send_s; /* seconds of a message between two ranks, in either direction */
    /* the schedule, or a shorter one with equal edges; NULL: any order of actions */
    const ms_schedule *lists;
    bool spans; /* bounds the longest span of a rank, instead of the makespan */
} ms_order_times;

/* Lower bound, in seconds, of the makespan of ms_replay, or with `spans` of the longest
 * span of a rank, lowered by 1 part in 10^12 for rounding (docs/formulas 6.3). */
double ms_order_bound_s(const ms_order_times *order, ms_arena *scratch);

#endif
