/* ZB-H1: 1F1B with the backward in two, gradients of weights filling what would be bubble while no rank
 * holds more than 1F1B's first one. */
#include "costmodel/schedule_priv.h"

static void fill(const ms_schedule_shape *shape, ms_arena *scratch, ms_action_list *lists)
{
    (void)scratch;
    ms_fill_split_1f1b(shape, 1, lists);
}

/* Source: Qi et al., "Zero Bubble Pipeline Parallelism" (arXiv 2401.10241), section 2.3 and figure 2. */
const ms_schedule_family ms_family_zb_h1 = {
    .traits = {.placement = MS_PLACE_LOOP,
               .least_virtual = 1,
               .most_virtual = 1,
               .splits_backward = true},
    .objection = ms_no_objection,
    .fill = fill,
};
