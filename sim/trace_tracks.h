/* Tracks of a trace: the tasks of one simulated rank, laid out by stream so that no two
 * on a track overlap. */
#ifndef MS_SIM_TRACE_TRACKS_H
#define MS_SIM_TRACE_TRACKS_H

#include "sim/simulation.h"

/* Times in whole nanoseconds: the three decimals of a microsecond that traces have. Start
 * and end are rounded, not the duration, so that neighbours still meet. */
typedef struct ms_slice {
    int task;
    int lane; /* 0: the stream's own; others for tasks that run beside it */
    long long start_ns, end_ns;
} ms_slice;

typedef struct ms_stream_slices {
    int num_lanes; /* 0: nothing on this stream */
    int num_slices;
    const ms_slice *slices; /* in the order of start */
} ms_stream_slices;

long long ms_trace_ns(double seconds);

/* Sorts slices by start and gives them lanes, as few as possible; returns how many. */
int ms_slice_lanes(ms_arena *arena, ms_slice *slices, int num_slices);

/* All streams of an actor. Tasks that take no time after rounding, and gathering tasks,
 * are left out. Lives in the arena. */
void ms_trace_slices(ms_arena *arena, const ms_simulation *simulation, int actor,
                     ms_stream_slices out[MS_NUM_STREAMS]);

#endif
