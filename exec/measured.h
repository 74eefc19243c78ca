/* What the records of a run's ranks come to: times of a step by what they were spent on,
 * and by kind of node. */
#ifndef MS_EXEC_MEASURED_H
#define MS_EXEC_MEASURED_H

#include "exec/runner.h"
#include "sim/node_kinds.h"

/* Of a rank, mean over the measured steps and scaled from the mean step to the median
 * one: they sum to step_s. */
typedef struct ms_measured_times {
    double compute_s;      /* kernels, recomputation included */
    double exposed_comm_s; /* compute waited for collectives */
    double bubble_s;       /* compute waited for another stage */
    double optimizer_s;
    /* what was not recorded: the runner itself, and waiting for the slowest rank */
    double host_s;
} ms_measured_times;

typedef struct ms_measured {
    long num_steps; /* that are measured: all but the warm-up */
    double step_s;  /* median of the measured steps, each of its slowest rank */
    double least_step_s, most_step_s;
    double tokens_per_s;
    double peak_bytes; /* of the rank that kept most */
    long worst_rank;
    const ms_measured_times *times; /* (ranks of the outcome) */
    /* Most seconds first, scaled likewise. Measured: kernels, and the time in which
     * compute waited for a transfer; predicted: the same of the simulated step. What only
     * one of both has is 0 in the other. */
    ms_node_kinds kinds;
} ms_measured;

/* The first `warm_up` steps are not measured, unless there are no others. `predicted`:
 * kinds of the same plan simulated by nodes (ms_simulated_kinds); NULL: then only what
 * records carry is predicted, which leaves out transfers beside compute. Lives in the arena. */
void ms_measured_make(ms_arena *arena, const ms_outcome *outcome, long warm_up,
                      double tokens_per_step, const ms_node_kinds *predicted,
                      ms_measured *out);

/* Mean over the ranks of one place of the pipeline. */
ms_measured_times ms_measured_stage_times(const ms_measured *measured,
                                          const ms_outcome *outcome,
                                          const ms_world *world, long pipeline_rank);

#endif
