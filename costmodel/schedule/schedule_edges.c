/* Counts a rank's actions before its first backward and after its last input gradient,
 * for bounds of a step's time. */
#include "costmodel/schedule/schedule_priv.h"

static bool is_backward(const ms_action *a)
{
    return a->kind == MS_BACKWARD || a->kind == MS_BACKWARD_INPUT ||
           a->kind == MS_OVERLAP;
}

static short backward_stage(const ms_action *a)
{
    return a->kind == MS_OVERLAP ? a->backward_stage : a->stage;
}

static void find_start(const ms_schedule *schedule, int rank, ms_schedule_edges *edges)
{
    int *warmup = edges->warmup + (long)rank * schedule->num_chunks;
    int i = schedule->first_action[rank];
    for (; !is_backward(&schedule->actions[i]); i++)
        if (schedule->actions[i].kind == MS_FORWARD)
            warmup[ms_schedule_chunk(&schedule->shape, schedule->actions[i].stage)]++;
    edges->first_backward[rank] = backward_stage(&schedule->actions[i]);
}

static void find_end(const ms_schedule *schedule, int rank, ms_schedule_edges *edges)
{
    int *cooldown = edges->cooldown + (long)rank * schedule->num_chunks;
    int i = schedule->first_action[rank + 1] - 1;
    for (; !is_backward(&schedule->actions[i]); i--)
        cooldown[ms_schedule_chunk(&schedule->shape, schedule->actions[i].stage)]++;
    edges->last_gradient[rank] = backward_stage(&schedule->actions[i]);
}

void ms_schedule_find_edges(ms_arena *arena, ms_schedule *schedule)
{
    int num_ranks = schedule->shape.num_ranks;
    long num = (long)num_ranks * schedule->num_chunks;
    ms_schedule_edges *edges = &schedule->edges;
    edges->warmup = MS_NEW_ARRAY(arena, num, int);
    edges->cooldown = MS_NEW_ARRAY(arena, num, int);
    edges->first_backward = MS_NEW_ARRAY(arena, num_ranks, short);
    edges->last_gradient = MS_NEW_ARRAY(arena, num_ranks, short);
    for (int rank = 0; rank < num_ranks; rank++) {
        find_start(schedule, rank, edges);
        find_end(schedule, rank, edges);
    }
}
