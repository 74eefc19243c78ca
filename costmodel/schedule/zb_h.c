/* The schedule ZB-H1: 1F1B with a split backward; weight gradients fill idle time, and no
 * rank saves more than the first rank of 1F1B. ZB-H2: twice the warm-up and about twice
 * the memory, without idle time if all passes take the same time. Source: Qi et al.,
 * "Zero Bubble Pipeline Parallelism" (arXiv 2401.10241), section 2.3, figures 2 and 3. */
#include "costmodel/schedule/schedule_priv.h"

/* Fills a rank's list: on p ranks depth x (p - 1 - rank) warm-up forwards; weight
 * gradient k follows input gradient k + depth x rank. */
static void fill_rank(const ms_schedule_shape *shape, int rank, ms_action_list *list)
{
    int p = shape->num_ranks, m = shape->num_microbatches;
    int depth = shape->kind == MS_ZB_H2 ? 2 : 1, num_forwards = 0, num_weights = 0;
    while (num_forwards < m && num_forwards < depth * (p - 1 - rank))
        ms_action_add(list, MS_FORWARD, rank, num_forwards++);
    for (int b = 0; b < m; b++) {
        if (num_forwards < m)
            ms_action_add(list, MS_FORWARD, rank, num_forwards++);
        ms_action_add(list, MS_BACKWARD_INPUT, rank, b);
        if (b >= depth * rank)
            ms_action_add(list, MS_BACKWARD_WEIGHT, rank, num_weights++);
    }
    while (num_weights < m)
        ms_action_add(list, MS_BACKWARD_WEIGHT, rank, num_weights++);
}

#define FAMILY(repeat, ...)                                                              \
    {                                                                                    \
        __VA_ARGS__,                                                                     \
            .traits = {.placement = MS_PLACE_LOOP,                                       \
                       .least_virtual = 1,                                               \
                       .most_virtual = 1,                                                \
                       .splits_backward = true,                                          \
                       .repeats_after = (repeat)},                                       \
            .fill_rank = fill_rank,                                                      \
    }

const ms_schedule_family ms_family_zb_h1 = FAMILY(2, MS_ALIASES("zb-1p"));
/* ZB-H2: figure 3 of the paper draws one shape; this order keeps its warm-up of 2 (p - 1
 * - r) forwards on rank r of p and its 2p - 1 micro-batches in flight. */
const ms_schedule_family ms_family_zb_h2 = FAMILY(4, MS_NO_ALIASES);
