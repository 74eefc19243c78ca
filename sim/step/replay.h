/* Replay of a pipeline schedule: the exact longest path over its actions with given
 * durations, without queues or sharing of links. */
#ifndef MS_SIM_STEP_REPLAY_H
#define MS_SIM_STEP_REPLAY_H

#include "costmodel/schedule/schedule.h"

/* Durations of a placed stage's actions, in seconds. The first forward of a stage may
 * have to wait for its parameters, and may take longer than the others, as may its
 * last backward: they share the device with gathers and reductions. */
typedef struct ms_stage_times {
    double forward_s, first_forward_s;
    double backward_s, last_backward_s; /* duration of an unsplit backward */
    double input_s;                     /* input half (I) of a split backward */
    double weight_s, last_weight_s;     /* weight half (W) of a split backward */
    /* least delay of a backward or I after a preceding backward or W of its rank: no
     * forward hides its first gather (ZeRO-3) */
    double regather_s;
    /* (chunks of a rank): seconds that this stage's forward overlapped with the backward
     * of a chunk saves; NULL: none */
    const double *pair_saved_s;
    double hidden_s; /* for bounds: most seconds that overlap in a pair saves */
    /* messages to the next and the previous stage, if on another rank */
    double send_forward_s, send_backward_s;
    double
        release_s; /* earliest start of the first forward, from the start of the step */
    /* reductions of gradients on a stream of their own: they follow each other, overlap
     * with the last backward, and end at least reduce_tail_s after it */
    double reduce_s, reduce_tail_s;
    bool reduces_last; /* no overlap: tails follow each other after the last backward */
} ms_stage_times;

typedef struct ms_replay_result {
    double makespan_s; /* latest end over ranks, reductions included */
    int last_rank;     /* the rank that ends last; the smallest of several */
    /* three arrays (num_ranks); NULL: not wanted */
    double *end_s;   /* end of a rank's last action or reduction */
    double *busy_s;  /* sum of the durations of a rank's actions, without waiting */
    double *start_s; /* start of a rank's first action */
} ms_replay_result;

/* Replays a schedule; `stages` are by placed stage. `scratch` is left as it was.
 * Deterministic: the order of sums depends on the schedule only. */
void ms_replay(const ms_schedule *schedule, const ms_stage_times *stages,
               ms_arena *scratch, ms_replay_result *out);

/* Replays a schedule and fills end_s with the end of every action, in the order of
 * schedule->actions. An action starts at its end minus its duration. */
void ms_replay_actions(const ms_schedule *schedule, const ms_stage_times *stages,
                       ms_arena *scratch, double *end_s);

/* Duration, in seconds, of a slot with the given class. */
double ms_slot_cost_s(const ms_schedule *schedule, const ms_slot_cost *cost,
                      const ms_stage_times *stages);
/* Least seconds that a slot of the class waits after the previous slot of its rank. */
double ms_step_wait_s(const ms_slot_cost *cost, const ms_stage_times *stages);
/* Seconds that the reductions of a stage's gradients need after its last backward,
 * which is a slot of the given kind. */
double ms_reduce_rest_s(const ms_stage_times *times, ms_slot_kind last_backward);

#endif
