/* Discrete-event simulation of a graph: tasks start when what they wait for is done, and share links, SMs and HBM while they run.
 * Without sharing the result equals ms_graph_replay bit for bit. */
#ifndef MS_SIM_EVENT_H
#define MS_SIM_EVENT_H

#include "sim/graph.h"

typedef struct ms_event_options {
    bool
        share_links; /* max-min fairness over graph->uses, HBM included when the builder made it a link */
    bool share_sms;
} ms_event_options;

/* Use of a link over time: from time_s on, until the next sample of the same link. */
typedef struct ms_link_sample {
    double time_s;
    int link;
    double used_frac;
} ms_link_sample;

typedef struct ms_event_result {
    double *start_s,
        *end_s; /* (1 + num_tasks), given by the caller; start_s may be NULL */
    double makespan_s;
    long num_events;       /* starts and ends */
    long num_rate_changes; /* of running tasks */
    /* filled when the caller sets wants_samples */
    bool wants_samples;
    long num_samples;
    const ms_link_sample *samples; /* in the order of time; in the arena */
} ms_event_result;

/* `arena` keeps the samples and is otherwise left as it was. Deterministic. */
void ms_event_run(const ms_graph *graph, const ms_event_options *options, ms_arena *arena,
                  ms_event_result *out);

#endif
