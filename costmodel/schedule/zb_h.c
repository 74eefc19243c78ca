/* ZB-H1: 1F1B with the backward in two, gradients of weights filling what would be bubble
 * while no rank holds more than 1F1B's first one. ZB-H2: twice its warm-up, so that no
 * rank waits between its first and its last action when all passes take the same time;
 * for about twice the memory. Source: Qi et al., "Zero Bubble Pipeline Parallelism"
 * (arXiv 2401.10241), section 2.3, figures 2 and 3. */
#include "costmodel/schedule/schedule_priv.h"

static void fill(const ms_schedule_shape *shape, ms_arena *scratch, ms_action_list *lists)
{
    (void)scratch;
    ms_fill_split_1f1b(shape, shape->kind == MS_ZB_H2 ? 2 : 1, lists);
}

#define FAMILY(repeat, ...)                                                              \
    {                                                                                    \
        __VA_ARGS__,                                                                     \
            .traits = {.placement = MS_PLACE_LOOP,                                       \
                       .least_virtual = 1,                                               \
                       .most_virtual = 1,                                                \
                       .splits_backward = true,                                          \
                       .repeats_after = (repeat)},                                       \
            .objection = ms_no_objection, .fill = fill,                                  \
    }

const ms_schedule_family ms_family_zb_h1 = FAMILY(2, MS_ALIASES("zb-1p"));
/* The figure draws one shape; this is the regular order with its warm-up of 2 (p - 1 - r)
 * forwards before the first pair and its 2p - 1 micro-batches in flight. */
const ms_schedule_family ms_family_zb_h2 = FAMILY(4, MS_NO_ALIASES);
