/* Lower bounds of the time of a pipeline, in closed form, from the durations of its
 * stages. */
#ifndef MS_SIM_STEP_BOUND_H
#define MS_SIM_STEP_BOUND_H

#include "sim/step/replay.h"
#include "sim/step/workload.h"

typedef struct ms_order_times {
    const ms_split *split; /* the stages and their ranks */
    ms_schedule_kind kind;
    /* durations of a stage's actions, by class of the split */
    const ms_stage_times *times;
    double microbatches; /* micro-batches that each stage runs */
    double send_s;       /* seconds of a message between two ranks, in either direction */
    /* The schedule, or a shorter one that begins and ends alike (edges). NULL: the
     * bound holds for any order of actions. */
    const ms_schedule *lists;
    /* true: bounds the longest span of a rank, from its first action to its last,
     * instead of the makespan */
    bool spans;
} ms_order_times;

/* Lower bound, in seconds, of the makespan of ms_replay (of the longest span of a
 * rank, with `spans`): docs/formulas 6.3. It is lowered by 1 part in 10^12 for
 * rounding. `scratch` is left as it was. */
double ms_order_bound_s(const ms_order_times *order, ms_arena *scratch);

#endif
