#include "sim/planning/plan_sweep.h"

#include <math.h>
#include <stdlib.h>

double ms_plan_sweep_time(const ms_best_plan *answer)
{
    if (!answer->found)
        return (double)NAN;
    return answer->has_campaign ? answer->campaign.campaign.elapsed_s
                                : 1.0 / answer->prediction.tokens_per_s;
}

double ms_plan_sweep_cost(const ms_best_plan *answer)
{
    if (!answer->found)
        return (double)NAN;
    const ms_campaign *c = &answer->campaign.campaign;
    if (!answer->has_campaign)
        return (double)answer->plan.gpus / answer->prediction.tokens_per_s;
    return isnan(c->cost) ? c->gpu_hours : c->cost;
}

bool ms_plan_sweep_is_choice(const ms_best_plan *answer)
{
    return answer->found &&
           (!answer->has_campaign || ms_campaign_keeps_limits(&answer->campaign));
}

static double gpus_of(const ms_best_plan *answer)
{
    return (double)answer->plan.gpus;
}

/* The choice of a task that has the least `value`, of equal ones the fastest; -1: none. */
static int least(const ms_plan_sweep *sweep, int task,
                 double (*value)(const ms_best_plan *))
{
    int best = -1;
    for (int i = task * sweep->per_task; i < (task + 1) * sweep->per_task; i++) {
        const ms_best_plan *a = &sweep->answers[i];
        if (!sweep->answered[i] || !ms_plan_sweep_is_choice(a))
            continue;
        const ms_best_plan *b = best < 0 ? NULL : &sweep->answers[best];
        if (b == NULL || value(a) < value(b) ||
            (value(a) == value(b) && ms_plan_sweep_time(a) < ms_plan_sweep_time(b)))
            best = i;
    }
    return best;
}

/* Whether another choice is at least as good in time and cost, and better in one. */
static bool is_beaten(const ms_plan_sweep *sweep, int task, int index)
{
    const ms_best_plan *a = &sweep->answers[index];
    for (int i = task * sweep->per_task; i < (task + 1) * sweep->per_task; i++) {
        const ms_best_plan *b = &sweep->answers[i];
        if (!sweep->answered[i] || !ms_plan_sweep_is_choice(b))
            continue;
        double time = ms_plan_sweep_time(b) - ms_plan_sweep_time(a),
               cost = ms_plan_sweep_cost(b) - ms_plan_sweep_cost(a);
        if (time <= 0.0 && cost <= 0.0 && (time < 0.0 || cost < 0.0))
            return true;
    }
    return false;
}

static void sort_by_time(const ms_plan_sweep *sweep, int *points, int num)
{
    for (int i = 1; i < num; i++) {
        int point = points[i], k = i;
        double time = ms_plan_sweep_time(&sweep->answers[point]);
        while (k > 0 && time < ms_plan_sweep_time(&sweep->answers[points[k - 1]])) {
            points[k] = points[k - 1];
            k--;
        }
        points[k] = point;
    }
}

ms_plan_sweep_choice ms_plan_sweep_choose(ms_arena *arena, const ms_plan_sweep *sweep,
                                          int task)
{
    ms_plan_sweep_choice c = {.fastest = least(sweep, task, ms_plan_sweep_time),
                              .cheapest = least(sweep, task, ms_plan_sweep_cost),
                              .fewest = least(sweep, task, gpus_of),
                              .pareto = MS_NEW_ARRAY(arena, sweep->per_task, int)};
    for (int i = task * sweep->per_task; i < (task + 1) * sweep->per_task; i++)
        if (sweep->answered[i] && ms_plan_sweep_is_choice(&sweep->answers[i]) &&
            !is_beaten(sweep, task, i))
            c.pareto[c.num_pareto++] = i;
    sort_by_time(sweep, c.pareto, c.num_pareto);
    return c;
}
