/* Lower bounds, in closed form, of a pipeline schedule's time, from stage durations. */
#ifndef MS_SIM_STEP_BOUND_H
#define MS_SIM_STEP_BOUND_H

#include "sim/step/replay.h"
#include "sim/step/workload.h"

typedef struct ms_order_times {
    const ms_split *split; /* the pipeline's stages and their ranks */
    ms_schedule_kind kind;
    const ms_stage_times *times; /* (num_classes): durations, by class of equal stages */
    double microbatches;         /* number of micro-batches that each stage runs */
    double send_s; /* seconds of a message between two ranks, in either direction */
    /* the schedule, or a shorter one that begins and ends like it; NULL: the bound must
     * hold for actions in any order */
    const ms_schedule *lists;
    bool spans; /* true: bound the longest time of a rank from its start to its end */
} ms_order_times;

/* Whether the last action of every rank is the last micro-batch's backward on its first
 * virtual stage: bounds of such orders need no lists. */
bool ms_order_ends_with_first_chunk(ms_schedule_kind kind);
/* Lower bound, s, of the makespan of ms_replay; with `spans`, of the longest time of any
 * rank from its start to its end (docs/formulas 6.3). Lowered by 1e-12 of itself. */
double ms_order_bound_s(const ms_order_times *order, ms_arena *scratch);

#endif
