/* Events of a trace as viewers read them: what traces of simulations and of real runs
 * share. Format: "Trace Event Format" (Google, 2016), as far as Perfetto reads it
 * (perfetto.dev/docs/getting-started/other-formats). */
#ifndef MS_SIM_TRACE_EVENTS_H
#define MS_SIM_TRACE_EVENTS_H

#include "sim/memory.h"
#include "sim/trace_tracks.h"

/* Where an event is drawn: rank and stream. */
typedef struct ms_trace_place {
    int pid, tid; /* 0: not shown */
} ms_trace_place;

/* An event is an object that stays open until its args are ended, or ms_jout_end_object.
 * `phase`: "X" slice, "C" counter, "M" name, ... */
void ms_trace_begin_event(ms_jout *json, const char *phase, const char *name,
                          ms_trace_place at);
void ms_trace_time_field(ms_jout *json, const char *key,
                         long long ns); /* in microseconds */
void ms_trace_begin_args(ms_jout *json);
void ms_trace_end_args(ms_jout *json); /* and the event */

/* Name and place in the order of the viewer of a "process" or "thread". */
void ms_trace_write_names(ms_jout *json, const char *of, ms_trace_place at,
                          const char *name, int index);
/* A slice whose args are open. */
void ms_trace_begin_slice(ms_jout *json, ms_trace_place at, const char *name,
                          const char *category, const ms_slice *slice);
/* Names the lanes of a stream, thread `first_tid` first. */
void ms_trace_write_lanes(ms_jout *json, ms_trace_place first, int stream, int num_lanes);
/* Counter of what a rank keeps from `time_s` on. */
void ms_trace_write_memory(ms_jout *json, int pid, double time_s, const double *bytes);
void ms_trace_write_step_end(ms_jout *json, double end_s);

/* The array of events, a line each. */
void ms_trace_begin_events(ms_jout *json);

#endif
