/* Statistics of a run's time records: a step's time by category, and by kind of node. */
#ifndef MS_EXEC_RUNNER_MEASURED_H
#define MS_EXEC_RUNNER_MEASURED_H

#include "exec/runner/runner.h"
#include "sim/simulate/node_kinds.h"

/* Times of a rank: sums over the measured steps, scaled to the median step, whose time
 * step_s is their total. */
typedef struct ms_measured_times {
    double compute_s;      /* kernels, recomputation included */
    double exposed_comm_s; /* waiting for collectives */
    double bubble_s;       /* waiting for other pipeline stages */
    double optimizer_s;
    /* unrecorded: host code, and waiting for the slowest rank */
    double host_s;
} ms_measured_times;

typedef struct ms_measured {
    long num_steps; /* measured steps: all but the warm-up */
    double step_s;  /* median over measured steps of the slowest rank's time */
    double least_step_s, most_step_s;
    double tokens_per_s;
    double peak_bytes; /* largest peak memory of a rank */
    long worst_rank;
    const ms_measured_times *times; /* times of each rank of the outcome */
    /* Seconds by kind of node, in decreasing order, scaled to the median step. Measured:
     * kernels, and time in which compute waits for a transfer; predicted: the same of the
     * simulated step. A kind that only one of both has is 0 in the other. */
    ms_node_kinds kinds;
} ms_measured;

/* Computes statistics of all steps after the first `warm_up`, or of all steps if there
 * are no others. `predicted`: kinds of nodes in the simulated step (ms_simulated_kinds);
 * NULL: predictions are those in the records, which lack transfers overlapped with
 * compute. Lives in the arena. */
void ms_measured_make(ms_arena *arena, const ms_outcome *outcome, long warm_up,
                      double tokens_per_step, const ms_node_kinds *predicted,
                      ms_measured *out);

/* Mean times over the ranks of one pipeline rank (pp coordinate). */
ms_measured_times ms_measured_stage_times(const ms_measured *measured,
                                          const ms_outcome *outcome,
                                          const ms_world *world, long pipeline_rank);

#endif
