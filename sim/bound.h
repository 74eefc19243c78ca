/* Lower bounds of a pipeline by closed form, from the durations of its stages. */
#ifndef MS_SIM_BOUND_H
#define MS_SIM_BOUND_H

#include "sim/replay.h"
#include "sim/workload.h"

typedef struct ms_order_times {
    const ms_split *split; /* where stages live */
    ms_schedule_kind kind;
    const ms_stage_times *times; /* by class of the split */
    double microbatches;         /* of a stage */
    double send_s;               /* between ranks, either way */
    /* the schedule, or a shorter one with the same edges; NULL: only what holds for any
     * order */
    const ms_schedule *lists;
    /* of each rank's own span, from its first action to its last, instead of the whole */
    bool spans;
} ms_order_times;

/* Never above the makespan of ms_replay (the longest span, with `spans`):
 * docs/formulas 6.3. Lowered by 1 part in 10^12 for rounding. `scratch` is left as it
 * was. */
double ms_order_bound_s(const ms_order_times *order, ms_arena *scratch);

#endif
