/* The 1F1B schedule (PipeDream-flush, Narayanan et al. 2021): of m micro-batches rank r
 * of p runs min(m, p-1-r) forwards, then pairs of a forward and the next backward, then
 * the remaining backwards. PyTorch runs one more forward first and pairs each backward
 * with the next forward, which is the same order. */
#include "costmodel/schedule/schedule_priv.h"

static void fill_rank(const ms_schedule_shape *shape, int rank, ms_action_list *list)
{
    int num_microbatches = shape->num_microbatches;
    int behind = shape->num_ranks - 1 - rank;
    int warmup = behind < num_microbatches ? behind : num_microbatches;
    for (int m = 0; m < warmup; m++)
        ms_action_add(list, MS_FORWARD, rank, m);
    for (int m = 0; m < num_microbatches; m++) {
        if (warmup + m < num_microbatches)
            ms_action_add(list, MS_FORWARD, rank, warmup + m);
        ms_action_add(list, MS_BACKWARD, rank, m);
    }
}

const ms_schedule_family ms_family_1f1b = {
    MS_ALIASES("one-forward-one-backward", "non-interleaved", "pipedream-flush", "dapple",
               "Schedule1F1B", "forward_backward_pipelining_without_interleaving"),
    .traits = {.placement = MS_PLACE_LOOP,
               .least_virtual = 1,
               .most_virtual = 1,
               .repeats_after = 2,
               .first_keeps_most = true,
               .message_wait = MS_WAIT_PLAIN},
    .fill_rank = fill_rank,
};
