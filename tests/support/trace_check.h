/* Whether a trace is one that viewers load without complaint, and what its slices add up
 * to. */
#ifndef MS_TESTS_SUPPORT_TRACE_CHECK_H
#define MS_TESTS_SUPPORT_TRACE_CHECK_H

#include "base/json.h"

#define MS_MAX_CHECKED_PROCESSES 1024

typedef struct ms_trace_process {
    long pid;
    const char *name;
    long long compute_ns; /* slices of the threads called "compute" */
    long long end_ns;     /* of the last slice */
    int num_slices, num_counters;
} ms_trace_process;

typedef struct ms_trace_facts {
    int num_processes;
    ms_trace_process processes[MS_MAX_CHECKED_PROCESSES];
    int num_threads, num_slices, num_counters, num_flows;
    long long step_end_ns; /* of the marker; -1: there is none */
} ms_trace_facts;

/* The first thing that is wrong, as a sentence; NULL: nothing. Checked are: keys and
 * types of every event by its phase; ids that are small whole numbers; a name for every
 * process and thread, before its first event and once; times of whole nanoseconds; slices
 * longer than nothing, in order and without overlap on each thread; counters that rise in
 * time and are not negative; every arrow with one beginning and one end, no earlier, each
 * inside a slice. Sources: "Trace Event Format" (Google, 2016) and what Perfetto says
 * about JSON traces. */
const char *ms_trace_check(ms_ctx *cx, const char *text, size_t length,
                           ms_trace_facts *facts);

#endif
