/* A simulation as a trace for chrome://tracing and Perfetto: a process per rank, a
 * thread per stream, slices that never overlap on a thread, counters of memory and of
 * the use of links, and arrows from sends to the tasks that wait for them. Format:
 * "Trace Event Format" (Google, 2016), as far as Perfetto reads it
 * (perfetto.dev/docs/getting-started/other-formats). */
#ifndef MS_SIM_SIMULATE_TRACE_H
#define MS_SIM_SIMULATE_TRACE_H

#include "sim/simulate/simulation.h"

typedef struct ms_trace_options {
    int num_actors; /* number of simulated ranks shown, a process each; 0: all */
    const int *actors;
} ms_trace_options;

/* Most tasks of a trace, which take about 270 bytes each: viewers open files of a
 * gigabyte. */
#define MS_MAX_TRACED_TASKS 4000000L

/* Maximum number of links with a counter in a trace: the most used ones. */
#define MS_MAX_TRACED_LINKS 48

/* Writes the trace (us with three decimals, memory in GiB); leaves `arena` as it was. */
void ms_trace_write(FILE *out, ms_arena *arena, const ms_simulation *simulation,
                    const ms_trace_options *options);

#endif
