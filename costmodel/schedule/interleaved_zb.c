/* The interleaved zero-bubble schedule: interleaved 1F1B with a shorter warm-up; on rank
 * r weight gradients W number k follow input gradient I number k + r. */
#include "costmodel/schedule/schedule_priv.h"

static void add_weight(const ms_schedule_shape *shape, int rank, int k,
                       ms_action_list *list)
{
    ms_action action = ms_interleaved_action(shape, MS_BACKWARD, rank, k);
    ms_action_add(list, MS_BACKWARD_WEIGHT, action.stage, action.microbatch);
}

static void fill_rank(const ms_schedule_shape *shape, int rank, ms_action_list *list)
{
    int v = shape->virtual_stages;
    int num_forwards = shape->num_microbatches * v;
    int warmup = shape->num_ranks - 1 - rank + (v - 1) * ms_schedule_group(shape);
    int num_done = 0, num_weights = 0;
    while (num_done < num_forwards && num_done < warmup)
        ms_action_push(list, ms_interleaved_action(shape, MS_FORWARD, rank, num_done++));
    for (int k = 0; k < num_forwards; k++) {
        if (num_done < num_forwards)
            ms_action_push(list,
                           ms_interleaved_action(shape, MS_FORWARD, rank, num_done++));
        ms_action input = ms_interleaved_action(shape, MS_BACKWARD, rank, k);
        ms_action_add(list, MS_BACKWARD_INPUT, input.stage, input.microbatch);
        if (k >= rank)
            add_weight(shape, rank, num_weights++, list);
    }
    while (num_weights < num_forwards)
        add_weight(shape, rank, num_weights++, list);
}

/* Source: PyTorch torch/distributed/pipelining/schedules.py,
 * ScheduleInterleavedZeroBubble. */
const ms_schedule_family ms_family_interleaved_zb = {
    MS_ALIASES("interleaved-zero-bubble", "ScheduleInterleavedZeroBubble"),
    .traits = {.placement = MS_PLACE_LOOP,
               .least_virtual = 1,
               .splits_backward = true,
               .groups = true,
               .repeats_after = 4,
               .warmup_slope = 1},
    .objection = ms_loop_objection,
    .fill_rank = fill_rank,
};
