/* Events of a trace file, for traces of simulations and of executions. Format: "Trace
 * Event Format" (Google, 2016), as far as Perfetto reads it
 * (perfetto.dev/docs/getting-started/other-formats). */
#ifndef MS_SIM_SIMULATE_TRACE_EVENTS_H
#define MS_SIM_SIMULATE_TRACE_EVENTS_H

#include "sim/simulate/trace_tracks.h"
#include "sim/step/rank_memory.h"

/* Track of an event: process (rank) and thread (stream). */
typedef struct ms_trace_place {
    int pid, tid; /* process and thread; 0: the event is not shown */
} ms_trace_place;

/* Begins an event, a JSON object that ms_trace_end_args or ms_jout_end_object ends.
 * `phase`: "X" slice, "C" counter, "M" name, ... */
void ms_trace_begin_event(ms_jout *json, const char *phase, const char *name,
                          ms_trace_place at);
void ms_trace_time_field(ms_jout *json, const char *key,
                         long long ns); /* nanoseconds; written as microseconds */
void ms_trace_begin_args(ms_jout *json);
void ms_trace_end_args(ms_jout *json); /* ends the "args" object and the event */

/* Writes name and sort index of a track as metadata; `of` is "process" or "thread". */
void ms_trace_write_names(ms_jout *json, const char *of, ms_trace_place at,
                          const char *name, int index);
/* Begins a slice event and its "args" object. */
void ms_trace_begin_slice(ms_jout *json, ms_trace_place at, const char *name,
                          const char *category, const ms_slice *slice);
/* Writes the names of a stream's lanes, one thread each; the first lane is first.tid. */
void ms_trace_write_lanes(ms_jout *json, ms_trace_place first, int stream, int num_lanes);
/* Writes a rank's memory counters at `time_s`: bytes by category. */
void ms_trace_write_memory(ms_jout *json, int pid, double time_s, const double *bytes);
void ms_trace_write_step_end(ms_jout *json, double end_s);

/* Begins the array "traceEvents", which has an event per line. */
void ms_trace_begin_events(ms_jout *json);

#endif
