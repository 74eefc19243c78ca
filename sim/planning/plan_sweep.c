#include "sim/planning/plan_sweep.h"

#include <math.h>

/* Points of a task that may be chosen, with the figures by which they are compared. */
typedef struct candidate {
    int point;
    double time, cost, gpus;
} candidate;

typedef struct candidates {
    int num;
    candidate *of; /* (num), the first point first */
} candidates;

static candidate candidate_of(int point, const ms_best_plan *answer, bool by_money)
{
    const ms_campaign *c = &answer->campaign.campaign;
    double tokens_per_s = answer->prediction.useful_tokens_per_s;
    candidate of = {point, 1.0 / tokens_per_s, (double)answer->plan.gpus / tokens_per_s,
                    (double)answer->plan.gpus};
    if (answer->has_campaign) {
        of.time = c->elapsed_s;
        of.cost = by_money ? c->cost : c->gpu_hours;
    }
    return of;
}

static candidates list_candidates(ms_arena *arena, const ms_plan_sweep *sweep, int task)
{
    candidates list = {.of = MS_NEW_ARRAY(arena, sweep->per_task, candidate)};
    int first = task * sweep->per_task, end = first + sweep->per_task;
    bool by_money = false;
    for (int i = first; i < end; i++) {
        const ms_best_plan *answer = &sweep->answers[i];
        by_money = by_money || (answer->found && answer->has_campaign &&
                                !isnan(answer->campaign.campaign.cost));
    }
    for (int i = first; i < end; i++)
        if (sweep->answered[i] && ms_best_plan_keeps_limits(&sweep->answers[i]))
            list.of[list.num++] = candidate_of(i, &sweep->answers[i], by_money);
    return list;
}

/* Whether `a` has less of the figure at `offset`, or as much of it in less time. Unknown
 * is never less. */
static bool is_less(const candidate *a, const candidate *b, size_t offset)
{
    double x = *(const double *)((const char *)a + offset),
           y = *(const double *)((const char *)b + offset);
    return x < y || (x == y && a->time < b->time) || (!isnan(x) && isnan(y));
}

/* The point with the least of a figure; -1: of none it is known. */
static int least(const candidates *list, size_t offset)
{
    const candidate *best = NULL;
    for (int i = 0; i < list->num; i++)
        if (best == NULL || is_less(&list->of[i], best, offset))
            best = &list->of[i];
    bool known = best != NULL && !isnan(*(const double *)((const char *)best + offset));
    return known ? best->point : -1;
}

/* Whether another candidate is at least as good in time and cost, and better in one. */
static bool is_beaten(const candidates *list, const candidate *a)
{
    for (int i = 0; i < list->num; i++) {
        const candidate *b = &list->of[i];
        if (b->time <= a->time && b->cost <= a->cost &&
            (b->time < a->time || b->cost < a->cost))
            return true;
    }
    return false;
}

/* Puts a candidate into a list of those that none beats, which is sorted by time. */
static void insert_by_time(candidates *best, const candidate *new)
{
    int at = best->num++;
    for (; at > 0 && new->time < best->of[at - 1].time; at--)
        best->of[at] = best->of[at - 1];
    best->of[at] = *new;
}

ms_plan_sweep_choice ms_plan_sweep_choose(ms_arena *arena, const ms_plan_sweep *sweep,
                                          int task)
{
    candidates list = list_candidates(arena, sweep, task),
               best = {.of = MS_NEW_ARRAY(arena, list.num, candidate)};
    for (int i = 0; i < list.num; i++)
        if (!isnan(list.of[i].cost) && !is_beaten(&list, &list.of[i]))
            insert_by_time(&best, &list.of[i]);
    ms_plan_sweep_choice choice = {.fastest = least(&list, offsetof(candidate, time)),
                                   .cheapest = least(&list, offsetof(candidate, cost)),
                                   .fewest = least(&list, offsetof(candidate, gpus)),
                                   .num_pareto = best.num,
                                   .pareto = MS_NEW_ARRAY(arena, best.num, int)};
    for (int i = 0; i < best.num; i++)
        choice.pareto[i] = best.of[i].point;
    return choice;
}
