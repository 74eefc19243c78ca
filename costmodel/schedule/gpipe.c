/* GPipe, all forwards and then all backwards (Huang et al. 2019); backwards ascend, as
 * in PyTorch. */
#include "costmodel/schedule/schedule_priv.h"

static void fill(const ms_schedule_shape *shape, ms_arena *scratch, ms_action_list *lists)
{
    (void)scratch;
    for (int rank = 0; rank < shape->num_ranks; rank++) {
        for (int m = 0; m < shape->num_microbatches; m++)
            ms_action_add(&lists[rank], MS_FORWARD, rank, m);
        for (int m = 0; m < shape->num_microbatches; m++)
            ms_action_add(&lists[rank], MS_BACKWARD, rank, m);
    }
}

const ms_schedule_family ms_family_gpipe = {
    MS_ALIASES("afab", "all-forward-all-backward", "ScheduleGPipe"),
    .traits = {.placement = MS_PLACE_LOOP,
               .least_virtual = 1,
               .most_virtual = 1,
               .message_wait = MS_WAIT_PLAIN},
    .objection = ms_no_objection,
    .fill = fill,
};
