/* Combined forward-backward: interleaved 1F1B with one more warm-up forward per rank, so
 * that the two halves of a pair need no result of each other and run side by side. */
#include "costmodel/schedule/schedule_priv.h"

static const char *objection(const ms_schedule_shape *shape)
{
    if (shape->num_ranks > 1 && shape->virtual_stages == 1)
        return "the combined forward-backward on 2 or more pipeline ranks needs at least "
               "2 virtual stages per rank";
    return ms_loop_objection(shape);
}

static void fill_rank(const ms_schedule_shape *shape, int rank, ms_action_list *list)
{
    int v = shape->virtual_stages;
    int num_forwards = shape->num_microbatches * v;
    int warmup =
        2 * (shape->num_ranks - 1 - rank) + (v - 1) * ms_schedule_group(shape) + 1;
    int num_done = 0;
    while (num_done < num_forwards && num_done < warmup)
        ms_action_push(list, ms_interleaved_action(shape, MS_FORWARD, rank, num_done++));
    for (int k = 0; k < num_forwards; k++) {
        ms_action backward = ms_interleaved_action(shape, MS_BACKWARD, rank, k);
        if (num_done == num_forwards) {
            ms_action_push(list, backward);
            continue;
        }
        ms_action forward = ms_interleaved_action(shape, MS_FORWARD, rank, num_done++);
        ms_action_add_pair(list, forward.stage, forward.microbatch, backward.stage,
                           backward.microbatch);
    }
}

/* Source: Megatron-LM megatron/core/pipeline_parallel/combined_1f1b.py and schedules.py
 * (overlap_moe_expert_parallel_comm), which need virtual stages if pp > 1. */
const ms_schedule_family ms_family_combined_1f1b = {
    MS_ALIASES("combined", "overlap-moe-expert-parallel-comm"),
    .traits = {.placement = MS_PLACE_LOOP,
               .least_virtual = 1,
               .overlaps = true,
               .groups = true,
               .repeats_after = 4,
               .first_keeps_most = true,
               .warmup_slope = 2},
    .objection = objection,
    .fill_rank = fill_rank,
};
