/* The looped breadth-first schedule: every micro-batch runs through one chunk before any
 * through the next; backwards in reverse, the last micro-batch first. */
#include "costmodel/schedule/schedule_priv.h"

static void fill_rank(const ms_schedule_shape *shape, int rank, ms_action_list *list)
{
    int p = shape->num_ranks, m = shape->num_microbatches;
    for (int chunk = 0; chunk < shape->virtual_stages; chunk++)
        for (int b = 0; b < m; b++)
            ms_action_add(list, MS_FORWARD, chunk * p + rank, b);
    for (int chunk = shape->virtual_stages - 1; chunk >= 0; chunk--)
        for (int b = m - 1; b >= 0; b--)
            ms_action_add(list, MS_BACKWARD, chunk * p + rank, b);
}

/* Source: PyTorch torch/distributed/pipelining/schedules.py, ScheduleLoopedBFS; after
 * Lamy-Poirier, "Breadth-First Pipeline Parallelism" (arXiv 2211.05953). */
const ms_schedule_family ms_family_looped_bfs = {
    MS_ALIASES("bfs", "breadth-first", "ScheduleLoopedBFS"),
    .traits = {.placement = MS_PLACE_LOOP,
               .least_virtual = 1,
               .keeps_all = true,
               .first_keeps_most = true,
               .message_wait = MS_WAIT_INTERLEAVED},
    .objection = ms_loop_objection,
    .fill_rank = fill_rank,
};
