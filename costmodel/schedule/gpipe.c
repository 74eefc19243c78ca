/* The GPipe schedule (Huang et al. 2019): all forwards, then all backwards, both in
 * ascending order of micro-batches, as in PyTorch. */
#include "costmodel/schedule/schedule_priv.h"

static void fill_rank(const ms_schedule_shape *shape, int rank, ms_action_list *list)
{
    for (int m = 0; m < shape->num_microbatches; m++)
        ms_action_add(list, MS_FORWARD, rank, m);
    for (int m = 0; m < shape->num_microbatches; m++)
        ms_action_add(list, MS_BACKWARD, rank, m);
}

const ms_schedule_family ms_family_gpipe = {
    MS_ALIASES("afab", "all-forward-all-backward", "ScheduleGPipe"),
    .traits = {.placement = MS_PLACE_LOOP,
               .least_virtual = 1,
               .most_virtual = 1,
               .keeps_all = true,
               .first_keeps_most = true,
               .message_wait = MS_WAIT_PLAIN},
    .fill_rank = fill_rank,
};
