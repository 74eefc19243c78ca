/* Statistics of a run's time records: a step's time by category, and by kind of node. */
#ifndef MS_EXEC_RUNNER_MEASURED_H
#define MS_EXEC_RUNNER_MEASURED_H

#include "exec/runner/runner.h"
#include "sim/simulate/node_kinds.h"

/* Seconds of one rank by category. Each is summed over the measured steps, then scaled to
 * the median step: the five add up to ms_measured.step_s. */
typedef struct ms_measured_times {
    double compute_s;      /* kernels, recomputation included */
    double exposed_comm_s; /* waiting for collectives */
    double bubble_s;       /* waiting for other pipeline stages */
    double optimizer_s;
    /* the rest: host code, and waiting at the step's end for the slowest rank */
    double host_s;
} ms_measured_times;

typedef struct ms_measured {
    long num_steps; /* measured steps: all but the warm-up */
    /* median over the measured steps; a step's time is that of its slowest rank */
    double step_s;
    double least_step_s, most_step_s;
    double wall_step_s; /* median by the host's clock (ms_outcome.wall_s); NaN: none */
    double tokens_per_s;
    double peak_bytes; /* largest peak memory of a rank */
    long worst_rank;
    const ms_measured_times *times; /* times of each rank of the outcome */
    /* Seconds of the median step by kind of node, longest first. Both `measured_s` and
     * `predicted_s` (simulated step) count kernels, and waits of compute for transfers. A
     * kind that occurs in only one of the two has 0 in the other. */
    ms_node_kinds kinds;
} ms_measured;

/* Computes statistics of the steps after the first `warm_up`; of all steps if none would
 * remain. `predicted`: seconds by kind of node in the simulated step
 * (ms_simulated_kinds). If it is NULL, predictions come from the run's time records,
 * which have none for transfers that overlap with compute. `out` lives in the arena. */
void ms_measured_make(ms_arena *arena, const ms_outcome *outcome, long warm_up,
                      double tokens_per_step, const ms_node_kinds *predicted,
                      ms_measured *out);

/* Times by category, averaged over the ranks with pp coordinate `pipeline_rank`. */
ms_measured_times ms_measured_stage_times(const ms_measured *measured,
                                          const ms_outcome *outcome,
                                          const ms_world *world, long pipeline_rank);

#endif
