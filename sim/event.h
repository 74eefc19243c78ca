/* Discrete-event simulation of a graph: tasks start when what they wait for is done, and
 * share links, SMs and HBM while they run. Without sharing, and for every task that is
 * never slowed, start and end equal those of ms_graph_replay bit for bit.
 *
 * A task's latency passes first, at full speed and without its links. Then it works at a
 * rate of at most 1, that of the slower of two:
 * - links: the uses of one task move in lock-step. Rates of tasks that contend are
 *   max-min fair in the bytes per second on the link that each loads most (sim/maxmin.h),
 *   and change when a task begins or ends its work. HBM is a link like others. A link is
 *   contested when more than 1 + 1.2e-10 of its capacity is asked for. Source: the fluid
 *   model of SimGrid (Casanova et al. 2014; src/kernel/lmm).
 * - SMs: kernels of communication hold theirs while they run, latency included. With h of
 *   S held, at least one is left; a product of n tiles takes ceil(n / (S - h)) / ceil(n /
 *   S) times as long (whole waves; NVIDIA, Matrix Multiplication Background User's Guide,
 *   section "Wave Quantization"), sm_frac of a cost S / (S - h) times. What is left of
 *   the work takes the new speed at once.
 * Assumption: kernels of computation do not hold SMs against each other. */
#ifndef MS_SIM_EVENT_H
#define MS_SIM_EVENT_H

#include "sim/graph.h"

typedef struct ms_event_options {
    /* max-min fairness over graph->uses, HBM included when the builder made it a link */
    bool share_links;
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
