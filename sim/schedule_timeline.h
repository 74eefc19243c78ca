/* One schedule run with the same durations on every stage: when each action runs, and how
 * long ranks wait. */
#ifndef MS_SIM_SCHEDULE_TIMELINE_H
#define MS_SIM_SCHEDULE_TIMELINE_H

#include "costmodel/schedule.h"

typedef struct ms_schedule_timeline {
    double makespan;
    /* Makespan less the work of the busiest rank: what a step waits when all ranks begin
     * and end it together. Zero Bubble (arXiv 2401.10241, section 5.3) counts
     * span_bubble instead. */
    double global_bubble;
    const double *start, *end; /* of every action, in the order of schedule->actions */
    const double *busy;        /* (num_ranks): sum of its durations */
    /* (num_ranks): from its first start to its last end, less busy */
    const double *span_bubble;
} ms_schedule_timeline;

/* Any unit of time. A whole backward is both of its parts, a pair its forward and its
 * backward, one after the other; times->send is added where an activation or gradient
 * goes to another rank. Arrays live in the arena. */
ms_schedule_timeline ms_schedule_run(ms_arena *arena, const ms_schedule *schedule,
                                     const ms_schedule_times *times);

#endif
