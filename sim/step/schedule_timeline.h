/* Timeline of a pipeline schedule with equal durations on every stage: start and end of
 * each action, and idle time of each rank. */
#ifndef MS_SIM_STEP_SCHEDULE_TIMELINE_H
#define MS_SIM_STEP_SCHEDULE_TIMELINE_H

#include "costmodel/schedule/schedule.h"

typedef struct ms_schedule_timeline {
    double makespan;
    /* Makespan minus the busy time of the busiest rank: idle time in a step that all
     * ranks begin and end together. Zero Bubble (arXiv 2401.10241, section 5.3) counts
     * span_bubble instead. */
    double global_bubble;
    const double *start, *end; /* times by action, in the order of schedule->actions */
    const double *busy;        /* (num_ranks): sum of the durations of a rank's actions */
    /* (num_ranks): from a rank's first start to its last end, minus its busy time */
    const double *span_bubble;
} ms_schedule_timeline;

/* Computes the timeline, in the unit of `times`. An unsplit backward takes the time of
 * both halves, an overlapped pair the sum of forward and backward, a message between
 * ranks times->send. Arrays live in the arena. */
ms_schedule_timeline ms_schedule_run(ms_arena *arena, const ms_schedule *schedule,
                                     const ms_schedule_times *times);

#endif
