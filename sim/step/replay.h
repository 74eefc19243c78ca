/* Replay of a pipeline schedule: the exact longest path over its actions with given
 * durations, without queues or sharing of links. */
#ifndef MS_SIM_STEP_REPLAY_H
#define MS_SIM_STEP_REPLAY_H

#include "costmodel/schedule/schedule.h"

/* Durations of a stage's actions, in seconds. Its first forward may wait for parameters.
 * Its first forward and last backward may also take longer than others, because gathers
 * and reductions run beside them. */
typedef struct ms_stage_times {
    double forward_s, first_forward_s;
    double backward_s, last_backward_s; /* unsplit backward */
    double input_s;                     /* input half (I) of a split backward */
    double weight_s, last_weight_s;     /* weight half (W) of a split backward */
    /* ZeRO-3: least seconds between a backward and the action before it on its rank, by
     * its first gather of parameters: after a backward, and after a forward, which hides
     * a part of it */
    double regather_s, late_gather_s;
    /* ZeRO-3: seconds after the last backward, or the last W, until its reductions let
     * another stage of the rank gather parameters or reduce gradients; seconds of the
     * reductions that every W but the last waits for */
    double pending_s, weight_pending_s, reduced_s;
    /* (chunks of a rank): seconds saved if this stage's forward overlaps with the
     * backward of that chunk; NULL: none */
    const double *pair_saved_s;
    double hidden_s; /* for bounds: most seconds saved per overlapped pair */
    /* seconds of a message to the next and to the previous stage, if on another rank */
    double send_forward_s, send_backward_s;
    double release_s; /* earliest start of the first forward, in seconds of the step */
    /* reduce_s: seconds of the stage's gradient reductions, which overlap with its last
     * backward; reduce_tail_s: least seconds from that backward's end to theirs;
     * weight_tail_s: the same from the end of its last W */
    double reduce_s, reduce_tail_s, weight_tail_s;
    /* seconds after all reductions of the rank: sums of gradients over tp, and the exchange
     * with the stage's other copy (DualPipe) */
    double after_rank_s;
    bool reduces_last; /* no overlap: reductions follow the last backward */
} ms_stage_times;

typedef struct ms_replay_result {
    double makespan_s; /* latest end of any rank, reductions included */
    int last_rank;     /* rank that ends last; of several the first */
    double error_s;    /* makespan_s is exact to so many seconds: 0 unless condensed */
    /* arrays (num_ranks); NULL: not wanted */
    double *end_s;   /* end of a rank's last action or reduction */
    double *busy_s;  /* sum of the durations of a rank's actions */
    double *start_s; /* start of a rank's first action */
    /* sum of a rank's waits, before its actions, for messages of other ranks: seconds with
     * no action ready; waits for parameters do not count. `spans`: from the start of its
     * first action, otherwise from time 0. */
    double *idle_s;
    bool spans;
    /* a makespan that certainly is at least this needs no smaller error; 0: each does */
    double enough_s;
} ms_replay_result;

/* Replays a schedule with the durations of its placed stages. Deterministic: the order of
 * sums depends on the schedule only. A condensed schedule is extended by the difference
 * that one period makes (docs/formulas 6.2.1); where ranks do not yet advance alike, by
 * longer lists. */
void ms_replay(const ms_schedule *schedule, const ms_stage_times *stages,
               ms_arena *scratch, ms_replay_result *out);

/* Replays a schedule; fills end_s, ends of actions in the order of schedule->actions. */
void ms_replay_actions(const ms_schedule *schedule, const ms_stage_times *stages,
                       ms_arena *scratch, double *end_s);

/* Duration, in seconds, of a slot of the given class. */
double ms_slot_cost_s(const ms_schedule *schedule, const ms_slot_cost *cost,
                      const ms_stage_times *stages);
/* Least seconds between a slot of the class and the previous slot of its rank. */
double ms_step_wait_s(const ms_slot_cost *cost, const ms_stage_times *stages);
/* Seconds that the reductions of a stage's gradients need after its last backward, which
 * is a slot of kind last_backward. */
double ms_reduce_rest_s(const ms_stage_times *times, ms_slot_kind last_backward);

#endif
