/* Writes the measured steps of a run as a trace in the format of simulated ones
 * (sim/simulate/trace.h): a process per rank, a thread per stream, memory counters. */
#ifndef MS_EXEC_RUNNER_RUN_TRACE_H
#define MS_EXEC_RUNNER_RUN_TRACE_H

#include "exec/runner/runner.h"
#include "sim/simulate/node_kinds.h"

typedef struct ms_run_trace {
    const ms_plan *plan;
    const char *backend;
    double step_s;
    long num_steps; /* number of recorded steps */
    long num_ranks;
    const ms_rank_outcome *ranks; /* (num_ranks), in rank order */
    const ms_node_kinds *kinds;   /* measured times by kind of node */
} ms_run_trace;

/* Writes JSON and restores `arena`; times begin at the first slice of any rank. */
void ms_run_trace_write(FILE *out, ms_arena *arena, const ms_run_trace *trace);

#endif
