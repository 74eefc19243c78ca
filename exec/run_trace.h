/* The measured steps of a run as a trace, in the form of simulated ones (sim/trace.h): a
 * process per rank, a thread per stream, counters of memory. */
#ifndef MS_EXEC_RUN_TRACE_H
#define MS_EXEC_RUN_TRACE_H

#include "exec/runner.h"
#include "sim/node_kinds.h"

typedef struct ms_run_trace {
    const ms_plan *plan;
    const char *backend;
    double step_s;
    long num_steps; /* that the records are of */
    long num_ranks;
    const ms_rank_outcome *ranks; /* in the order of ranks */
    const ms_node_kinds *kinds;   /* of all ranks */
} ms_run_trace;

/* `arena` is left as it was. Times begin at the first slice of any rank. */
void ms_run_trace_write(FILE *out, ms_arena *arena, const ms_run_trace *trace);

#endif
