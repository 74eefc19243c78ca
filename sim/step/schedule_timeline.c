/* Timeline of a schedule: ends of actions by replay, starts and idle times from them. */
#include "sim/step/schedule_timeline.h"

#include "base/number.h"
#include "sim/step/replay.h"

static const ms_stage_times *stage_times(ms_arena *arena, const ms_schedule *schedule,
                                         const ms_schedule_times *times)
{
    double backward = times->backward_input + times->backward_weight;
    ms_stage_times *stages = MS_NEW_ARRAY(arena, schedule->num_stages, ms_stage_times);
    for (int s = 0; s < schedule->num_stages; s++) {
        stages[s] = (ms_stage_times){.forward_s = times->forward,
                                     .first_forward_s = times->forward,
                                     .backward_s = backward,
                                     .last_backward_s = backward,
                                     .input_s = times->backward_input,
                                     .weight_s = times->backward_weight,
                                     .last_weight_s = times->backward_weight,
                                     .send_forward_s = times->send,
                                     .send_backward_s = times->send};
    }
    return stages;
}

/* Difference of two sums of durations; 0 if only a rounding error is left. */
static double rest(double whole, double part)
{
    double left = whole - part;
    return left > 1e-12 * whole ? left : 0.0;
}

ms_schedule_timeline ms_schedule_run(ms_arena *arena, const ms_schedule *schedule,
                                     const ms_schedule_times *times)
{
    int num_ranks = schedule->shape.num_ranks;
    int num_actions = schedule->first_action[num_ranks];
    double *start = MS_NEW_ARRAY(arena, num_actions, double);
    double *end = MS_NEW_ARRAY(arena, num_actions, double);
    double *busy = MS_NEW_ARRAY(arena, num_ranks, double);
    double *span_bubble = MS_NEW_ARRAY(arena, num_ranks, double);
    ms_replay_actions(schedule, stage_times(arena, schedule, times), arena, end);
    ms_schedule_timeline out = {
        .start = start, .end = end, .busy = busy, .span_bubble = span_bubble};
    double backward = times->backward_input + times->backward_weight, most_busy = 0.0;
    const double lengths[MS_NUM_ACTIONS] = {[MS_FORWARD] = times->forward,
                                            [MS_BACKWARD] = backward,
                                            [MS_BACKWARD_INPUT] = times->backward_input,
                                            [MS_BACKWARD_WEIGHT] = times->backward_weight,
                                            [MS_OVERLAP] = times->forward + backward};
    for (int r = 0; r < num_ranks; r++) {
        int first = schedule->first_action[r], last = schedule->first_action[r + 1] - 1;
        for (int i = first; i <= last; i++) {
            double length = lengths[schedule->actions[i].kind];
            start[i] = end[i] - length;
            busy[r] += length;
        }
        span_bubble[r] = rest(end[last] - start[first], busy[r]);
        out.makespan = ms_max(out.makespan, end[last]);
        most_busy = ms_max(most_busy, busy[r]);
    }
    out.global_bubble = rest(out.makespan, most_busy);
    return out;
}
