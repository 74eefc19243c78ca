/* Checks that a trace is valid for trace viewers, and sums its slices. */
#ifndef MS_TESTS_SUPPORT_TRACE_CHECK_H
#define MS_TESTS_SUPPORT_TRACE_CHECK_H

#include "base/json.h"

#define MS_MAX_CHECKED_PROCESSES 1024

typedef struct ms_trace_process {
    long pid;
    const char *name;
    long long compute_ns; /* sum of the slices of threads named "compute" */
    long long end_ns;     /* end of the process's last slice */
    int num_slices, num_counters;
} ms_trace_process;

typedef struct ms_trace_facts {
    int num_processes;
    ms_trace_process processes[MS_MAX_CHECKED_PROCESSES];
    int num_threads, num_slices, num_counters, num_flows;
    long long step_end_ns; /* time of the step's end marker; -1: no marker */
} ms_trace_facts;

/* Checks a trace; returns its first error as a sentence, NULL if none. Rules: keys and
 * types of every event by its phase; small non-negative ids; exactly one name for every
 * process and thread, before its first event; times of whole nanoseconds; slices of
 * positive length, in order and without overlap on each thread; counters with increasing
 * times and no negative values; every flow arrow with one beginning and one end, which is
 * no earlier, each inside a slice. Sources: "Trace Event Format" (Google, 2016) and
 * Perfetto's documentation of JSON traces. */
const char *ms_trace_check(ms_ctx *cx, const char *text, size_t length,
                           ms_trace_facts *facts);

#endif
