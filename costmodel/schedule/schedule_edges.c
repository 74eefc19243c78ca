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

static void find_start(const ms_schedule *schedule, int rank, const ms_action *next)
{
    const ms_schedule_edges *edges = &schedule->edges;
    int *warmup = edges->warmup + (long)rank * schedule->num_chunks;
    for (; !is_backward(next); next++)
        if (next->kind == MS_FORWARD)
            warmup[ms_schedule_chunk(&schedule->shape, next->stage)] +=
                schedule->num_alike;
    edges->first_backward[rank] = backward_stage(next);
}

static void find_end(const ms_schedule *schedule, int rank, const ms_action *last)
{
    const ms_schedule_edges *edges = &schedule->edges;
    int *cooldown = edges->cooldown + (long)rank * schedule->num_chunks;
    for (; !is_backward(last); last--)
        cooldown[ms_schedule_chunk(&schedule->shape, last->stage)] += schedule->num_alike;
    edges->last_gradient[rank] = backward_stage(last);
}

void ms_schedule_find_edges(ms_arena *arena, ms_schedule *schedule)
{
    int num_ranks = schedule->shape.num_ranks;
    long num = (long)num_ranks * schedule->num_chunks;
    ms_schedule_edges *edges = &schedule->edges;
    if (edges->warmup != NULL)
        return;
    edges->warmup = MS_NEW_ARRAY(arena, num, int);
    edges->cooldown = MS_NEW_ARRAY(arena, num, int);
    edges->first_backward = MS_NEW_ARRAY(arena, num_ranks, short);
    edges->last_gradient = MS_NEW_ARRAY(arena, num_ranks, short);
    ms_action_list room = {.arena = ms_arena_open()};
    for (int rank = 0; rank < num_ranks; rank++) {
        ms_rank_actions list = ms_schedule_rank_actions(schedule, rank, &room);
        find_start(schedule, rank, list.actions);
        find_end(schedule, rank, list.actions + list.num - 1);
    }
    ms_arena_close(room.arena);
}
