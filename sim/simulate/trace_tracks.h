/* Tracks of a trace: tasks of one simulated rank, no two of a track at the same time. */
#ifndef MS_SIM_SIMULATE_TRACE_TRACKS_H
#define MS_SIM_SIMULATE_TRACE_TRACKS_H

#include "sim/simulate/simulation.h"

/* A task on a track, in whole nanoseconds (traces have microseconds with three decimals).
 * Start and end are rounded, never the duration: adjacent slices stay adjacent. */
typedef struct ms_slice {
    int task;
    int lane; /* 0: the stream's main lane; above 0: tasks that overlap with it */
    long long start_ns, end_ns;
} ms_slice;

typedef struct ms_stream_slices {
    int num_lanes; /* lanes of the stream; 0: no task on it */
    int num_slices;
    const ms_slice *slices; /* slices in the order of their start */
} ms_stream_slices;

long long ms_trace_ns(double seconds);

/* Sorts slices by start and gives them as few lanes as possible; returns their number. */
int ms_slice_lanes(ms_arena *arena, ms_slice *slices, int num_slices);

/* Fills the slices of all streams of a simulated rank. Joins, and tasks that take no time
 * after rounding, are left out. Lives in the arena. */
void ms_trace_slices(ms_arena *arena, const ms_simulation *simulation, int actor,
                     ms_stream_slices out[MS_NUM_STREAMS]);

#endif
