/* Discrete-event simulation of a task graph: tasks start when their dependencies are
 * done, and share links, SMs and HBM while they run. Without sharing, starts and ends
 * equal those of ms_graph_replay bit for bit; with sharing, a task that is never slowed
 * ends exactly its duration after its start.
 *
 * A task's latency passes first, at full speed and without its links. Then the task works
 * at a rate (1: full speed), the smaller of the rates that two resources allow:
 * - links, of which HBM is one: a task uses all its links at the same rate. A link is
 *   contested when the demand on it exceeds 1 + 1.2e-10 of its capacity; then the rates
 *   of its tasks are max-min fair in the bytes per second on the link that each task
 *   loads most (sim/engine/maxmin.h). They change when a task begins or ends its work.
 *   Source: the fluid model of SimGrid (Casanova et al. 2014; src/kernel/lmm).
 * - SMs: communication kernels hold SMs while they run, latency included. If they hold h
 *   of a device's S SMs (at least one stays free), a GEMM of n tiles takes
 *   ceil(n / (S - h)) / ceil(n / S) times as long (whole waves; NVIDIA, Matrix
 *   Multiplication Background User's Guide, section "Wave Quantization"). Of any other
 *   kernel's duration the fraction sm_frac takes S / (S - h) times as long. A new rate
 *   applies to the remaining work at once.
 * Assumption: compute kernels take no SMs from each other. */
#ifndef MS_SIM_ENGINE_EVENT_H
#define MS_SIM_ENGINE_EVENT_H

#include "sim/engine/graph.h"

typedef struct ms_event_options {
    /* tasks compete for the capacity of graph links (a device's HBM may be one) */
    bool share_links;
    bool share_sms;
} ms_event_options;

/* Used share of a link's capacity from time_s until the next sample of the same link. */
typedef struct ms_link_sample {
    double time_s;
    int link;
    double used_frac;
} ms_link_sample;

/* Use of a link over a whole simulation. */
typedef struct ms_link_total {
    double busy_s;    /* used share of the capacity, integrated over time, s */
    double most_frac; /* largest used share at any time */
} ms_link_total;

typedef struct ms_event_result {
    double *start_s, *end_s; /* (1 + num_tasks): times; start_s may be NULL */
    double makespan_s;
    long num_events;       /* number of task starts and ends */
    long num_rate_changes; /* number of changes of a running task's rate */
    /* input: whether `samples` are wanted */
    bool wants_samples;
    long num_samples;
    const ms_link_sample *samples; /* (num_samples): use of links, in the order of time */
    const ms_link_total *links;    /* (graph->num_links); NULL: links are not shared */
} ms_event_result;

/* Simulates the graph and fills `out`. Samples and totals live in `arena`, which is
 * otherwise left as it was. Deterministic. */
void ms_event_run(const ms_graph *graph, const ms_event_options *options, ms_arena *arena,
                  ms_event_result *out);

#endif
