/* Statistics of a run's records: times of a step by category, and by kind of node. */
#ifndef MS_EXEC_RUNNER_MEASURED_H
#define MS_EXEC_RUNNER_MEASURED_H

#include "exec/runner/runner.h"
#include "sim/simulate/node_kinds.h"

/* Times of a rank, means over the measured steps, scaled from the mean step time to the
 * median: they sum to step_s. */
typedef struct ms_measured_times {
    double compute_s;      /* time of kernels, recomputation included */
    double exposed_comm_s; /* time in which compute waits for collectives */
    double bubble_s;       /* time in which compute waits for another stage */
    double optimizer_s;
    /* unrecorded time: the runner itself, and waiting for the slowest rank */
    double host_s;
} ms_measured_times;

typedef struct ms_measured {
    long num_steps; /* number of measured steps: all but the warm-up */
    double step_s;  /* median over measured steps of the slowest rank's time */
    double least_step_s, most_step_s;
    double tokens_per_s;
    double peak_bytes; /* largest peak memory of a rank */
    long worst_rank;
    const ms_measured_times *times; /* times of each rank of the outcome */
    /* Sorted by decreasing seconds, scaled likewise. Measured: kernels, and time in which
     * compute waits for a transfer; predicted: the same of the simulated step. A kind
     * that only one of both has is 0 in the other. */
    ms_node_kinds kinds;
} ms_measured;

/* Computes statistics of all steps after the first `warm_up`, or of all steps if there
 * are no others. `predicted`: kinds of the same plan simulated by nodes
 * (ms_simulated_kinds); NULL: predictions are those in the records, which lack transfers
 * overlapped with compute. Lives in the arena. */
void ms_measured_make(ms_arena *arena, const ms_outcome *outcome, long warm_up,
                      double tokens_per_step, const ms_node_kinds *predicted,
                      ms_measured *out);

/* Mean over the ranks of one pipeline position. */
ms_measured_times ms_measured_stage_times(const ms_measured *measured,
                                          const ms_outcome *outcome,
                                          const ms_world *world, long pipeline_rank);

#endif
