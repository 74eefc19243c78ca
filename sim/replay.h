/* Exact longest path over a schedule's actions with given durations: no queue, no sharing of links. */
#ifndef MS_SIM_REPLAY_H
#define MS_SIM_REPLAY_H

#include "costmodel/schedule.h"

/* Durations per virtual stage. The first forward and the last backward that a stage runs (in its rank's order) may take longer
 * than the others: they carry gathers of parameters and reductions of gradients. */
typedef struct ms_stage_times {
    double forward_s, first_forward_s;
    double backward_s, last_backward_s;
    double
        send_forward_s; /* from this stage to the next: added on the edge when they live on different ranks */
    double send_backward_s; /* from this stage to the one before */
} ms_stage_times;

typedef struct ms_replay_result {
    double makespan_s; /* latest end over ranks */
    int last_rank;     /* a rank that ends last (the smallest of several) */
    double *end_s;     /* (num_ranks): end of each rank's last action; NULL: not wanted */
    double *busy_s;    /* (num_ranks): sum of its durations; NULL: not wanted */
} ms_replay_result;

/* `scratch` is used and left as it was found. Deterministic: the order of sums depends on the schedule only. */
void ms_replay(const ms_schedule *schedule, const ms_stage_times *stages,
               ms_arena *scratch, ms_replay_result *out);

/* The same, but tells the end of every action: end_s is (num_ranks, actions_per_rank), in the order of schedule->actions.
 * An action starts at its end less its duration. */
void ms_replay_actions(const ms_schedule *schedule, const ms_stage_times *stages,
                       ms_arena *scratch, double *end_s);

#endif
