/* The interleaved 1F1B schedule (Narayanan et al. 2021), with groups of any number of
 * micro-batches (Llama 3, arXiv 2407.21783, section 3.3.2). */
#include "costmodel/schedule/schedule_priv.h"

static int least(int a, int b)
{
    return a < b ? a : b;
}

static const char *objection(const ms_schedule_shape *shape)
{
    if (shape->num_ranks < 2)
        return "an interleaved schedule needs at least 2 pipeline ranks";
    return ms_loop_objection(shape);
}

ms_action ms_interleaved_action(const ms_schedule_shape *shape, ms_action_kind kind,
                                int rank, int k)
{
    int v = shape->virtual_stages;
    int group = ms_schedule_group(shape);
    int group_idx = k / (group * v);
    int first = group_idx * group;
    int size = least(group, shape->num_microbatches - first);
    int inside = k - first * v;
    int chunk = inside / size;
    if (kind != MS_FORWARD)
        chunk = v - 1 - chunk;
    return (ms_action){.kind = (unsigned char)kind,
                       .stage = (short)(chunk * shape->num_ranks + rank),
                       .microbatch = first + inside % size};
}

/* Forwards of the rank before its first forward-backward pair. Source: Megatron-LM
 * schedules.py, get_pp_rank_microbatches. */
static int num_warmup(const ms_schedule_shape *shape, int rank)
{
    int behind = shape->num_ranks - 1 - rank;
    return least(shape->num_microbatches * shape->virtual_stages,
                 2 * behind + (shape->virtual_stages - 1) * ms_schedule_group(shape));
}

static void fill_rank(const ms_schedule_shape *shape, int rank, ms_action_list *list)
{
    int num_forwards = shape->num_microbatches * shape->virtual_stages;
    int warmup = num_warmup(shape, rank);
    for (int k = 0; k < warmup; k++)
        ms_action_push(list, ms_interleaved_action(shape, MS_FORWARD, rank, k));
    for (int k = 0; k < num_forwards; k++) {
        if (warmup + k < num_forwards)
            ms_action_push(list,
                           ms_interleaved_action(shape, MS_FORWARD, rank, warmup + k));
        ms_action_push(list, ms_interleaved_action(shape, MS_BACKWARD, rank, k));
    }
}

const ms_schedule_family ms_family_interleaved = {
    MS_ALIASES("interleaved-1f1b", "1f1b-interleaved", "1f1b-i", "vpp",
               "ScheduleInterleaved1F1B",
               "forward_backward_pipelining_with_interleaving"),
    .traits = {.placement = MS_PLACE_LOOP,
               .least_virtual = 2,
               .groups = true,
               .repeats_after = 4,
               .first_keeps_most = true,
               .warmup_slope = 2,
               .message_wait = MS_WAIT_INTERLEAVED},
    .objection = objection,
    .fill_rank = fill_rank,
};
