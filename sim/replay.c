/* Longest path in an order fixed when the schedule was made: each action starts when its rank is free
 * and what it receives has arrived. Durations depend on the stage and four cases only, so they stay in
 * the first-level cache. */
#include "sim/replay.h"

#include "base/number.h"

#include <assert.h>

typedef struct step_cost {
    double delay_s; /* after the sender's end; 0 when nothing is received */
    double duration_s;
    double release_s; /* no start before */
} step_cost;

static step_cost *cost_table(const ms_schedule *schedule, const ms_stage_times *stages,
                             ms_arena *scratch)
{
    int num_stages = schedule->num_stages;
    step_cost *table =
        MS_NEW_ARRAY(scratch, (long)num_stages * MS_NUM_STEP_COSTS, step_cost);
    for (int s = 0; s < num_stages; s++) {
        double forward_delay_s = s > 0 ? stages[s - 1].send_forward_s : 0.0;
        double backward_delay_s =
            s + 1 < num_stages ? stages[s + 1].send_backward_s : 0.0;
        step_cost *costs = &table[s * MS_NUM_STEP_COSTS];
        costs[MS_COST_FORWARD] = (step_cost){forward_delay_s, stages[s].forward_s, 0.0};
        costs[MS_COST_FIRST_FORWARD] =
            (step_cost){forward_delay_s, stages[s].first_forward_s, stages[s].release_s};
        costs[MS_COST_BACKWARD] =
            (step_cost){backward_delay_s, stages[s].backward_s, 0.0};
        costs[MS_COST_LAST_BACKWARD] =
            (step_cost){backward_delay_s, stages[s].last_backward_s, 0.0};
    }
    return table;
}

/* Fills end_s[1 ..]; end_s[0] is 0. */
static void walk_steps(const ms_schedule *schedule, const step_cost *table,
                       double *restrict end_s)
{
    const ms_step *steps = schedule->steps;
    int num_steps = schedule->num_steps;
    for (int i = 1; i <= num_steps; i++) {
        const step_cost *cost = &table[steps[i].cost];
        double free_s = end_s[steps[i].before];
        double arrival_s = end_s[steps[i].cross] + cost->delay_s;
        double start_s = free_s > arrival_s ? free_s : arrival_s;
        end_s[i] =
            (start_s > cost->release_s ? start_s : cost->release_s) + cost->duration_s;
    }
}

static double busy_time(const ms_schedule *schedule, const ms_stage_times *stages,
                        int rank)
{
    double others = schedule->shape.num_microbatches - 1, sum_s = 0.0;
    for (int s = rank; s < schedule->num_stages; s += schedule->shape.num_ranks)
        sum_s += stages[s].first_forward_s + stages[s].last_backward_s +
                 others * (stages[s].forward_s + stages[s].backward_s);
    return sum_s;
}

static double *replay_steps(const ms_schedule *schedule, const ms_stage_times *stages,
                            ms_arena *scratch)
{
    /* one rank has no neighbour to send to, and allowed shapes give it one stage */
    assert(schedule->shape.num_ranks > 1 || schedule->num_stages == 1);
    const step_cost *table = cost_table(schedule, stages, scratch);
    double *end_s = MS_NEW_ARRAY(scratch, schedule->num_steps + 1, double);
    walk_steps(schedule, table, end_s);
    return end_s;
}

/* End of a rank's last reduction: chunks finish their backward from the last to the first. */
static double reduced_s(const ms_schedule *schedule, const ms_stage_times *stages,
                        const double *end_s, int rank)
{
    double done_s = 0.0;
    for (int s = schedule->num_stages - schedule->shape.num_ranks + rank; s >= 0;
         s -= schedule->shape.num_ranks) {
        const ms_stage_times *t = &stages[s];
        double rest_s = ms_max(t->reduce_s - t->last_backward_s, t->reduce_tail_s);
        done_s =
            ms_max(done_s + t->reduce_s, end_s[schedule->last_backward_step[s]] + rest_s);
    }
    return done_s;
}

void ms_replay(const ms_schedule *schedule, const ms_stage_times *stages,
               ms_arena *scratch, ms_replay_result *out)
{
    ms_arena_mark mark = ms_arena_save(scratch);
    const double *end_s = replay_steps(schedule, stages, scratch);
    out->makespan_s = -1.0;
    for (int rank = 0; rank < schedule->shape.num_ranks; rank++) {
        double rank_end_s = ms_max(end_s[schedule->last_step[rank]],
                                   reduced_s(schedule, stages, end_s, rank));
        if (rank_end_s > out->makespan_s) {
            out->makespan_s = rank_end_s;
            out->last_rank = rank;
        }
        if (out->end_s != NULL)
            out->end_s[rank] = rank_end_s;
        if (out->busy_s != NULL)
            out->busy_s[rank] = busy_time(schedule, stages, rank);
    }
    ms_arena_rewind(scratch, mark);
}

void ms_replay_actions(const ms_schedule *schedule, const ms_stage_times *stages,
                       ms_arena *scratch, double *end_s)
{
    ms_arena_mark mark = ms_arena_save(scratch);
    const double *step_end_s = replay_steps(schedule, stages, scratch);
    for (int i = 1; i <= schedule->num_steps; i++)
        end_s[schedule->step_action[i]] = step_end_s[i];
    ms_arena_rewind(scratch, mark);
}
