/* Exact longest path over a schedule's actions with given durations: no queue, no sharing
 * of links. */
#ifndef MS_SIM_REPLAY_H
#define MS_SIM_REPLAY_H

#include "costmodel/schedule.h"

/* Durations per placed stage. The first forward that a stage runs may have to wait for
 * its parameters, and may take longer than the others, as may its last backward: they
 * share the device with gathers and reductions. */
typedef struct ms_stage_times {
    double forward_s, first_forward_s;
    double backward_s, last_backward_s; /* whole */
    double input_s;                     /* I of a split backward */
    double weight_s, last_weight_s;     /* W */
    /* that a backward or I starts later at least after a backward or W of its rank: its
     * first gather has no forward to hide behind (ZeRO 3) */
    double regather_s;
    /* What a pair takes less than its forward, of this stage, and its backward, of the
     * chunk that the entry is for, take one after the other (chunks of a rank); NULL:
     * nothing. */
    const double *pair_saved_s;
    /* the most that a pair of this stage's forward with any backward of its rank
     * saves; for bounds */
    double hidden_s;
    /* from this stage to the next: added on the edge when they live on different ranks */
    double send_forward_s;
    double send_backward_s; /* from this stage to the one before */
    /* the first forward starts no earlier, counted from the start of the step */
    double release_s;
    /* Reductions of the stage's gradients, on a stream of their own: those of a rank's
     * stages follow each other, overlap with the last backward, and outlast it by
     * reduce_tail_s at least. */
    double reduce_s, reduce_tail_s;
    /* without overlap: after the last backward of the rank, a tail after the other */
    bool reduces_last;
} ms_stage_times;

typedef struct ms_replay_result {
    double makespan_s; /* latest end over ranks, reductions included */
    int last_rank;     /* a rank that ends last (the smallest of several) */
    /* (num_ranks): end of each rank's last action or reduction; NULL: not wanted */
    double *end_s;
    /* (num_ranks): sum of its actions' durations, without what they wait for others or
     * for parameters; NULL: not wanted */
    double *busy_s;
    double *start_s; /* (num_ranks): start of its first action; NULL: not wanted */
} ms_replay_result;

/* `scratch` is used and left as it was found. Deterministic: the order of sums depends on
 * the schedule only. */
void ms_replay(const ms_schedule *schedule, const ms_stage_times *stages,
               ms_arena *scratch, ms_replay_result *out);

/* The same, but tells the end of every action: end_s is in the order of
 * schedule->actions. An action starts at its end less its duration. */
void ms_replay_actions(const ms_schedule *schedule, const ms_stage_times *stages,
                       ms_arena *scratch, double *end_s);

/* Seconds of a step of the class. */
double ms_step_cost_s(const ms_schedule *schedule, const ms_step_cost *cost,
                      const ms_stage_times *stages);
/* What a step of the class waits at least after the one before it on its rank. */
double ms_step_wait_s(const ms_step_cost *cost, const ms_stage_times *stages);
/* What the reductions of a stage's gradients need after its last backward, which is of
 * the step's class. */
double ms_reduce_rest_s(const ms_stage_times *times, ms_step_kind last_backward);

#endif
