/* How much a plan can keep: the budget that is left open for automatic recomputation. */
#ifndef MS_SIM_RECOMPUTE_FIT_H
#define MS_SIM_RECOMPUTE_FIT_H

#include "sim/prediction.h"

/* For a plan with MS_RECOMPUTE_AUTO and no budget: sets the largest one with which every
 * rank fits its memory (0 when none does), which is also the one that computes again for
 * the shortest time. It is found by bisection over the points of the layers' fronts
 * (costmodel/keep.h), each tried by a prediction: exact where more kept bytes need more
 * memory, which holds but for a layer's transients; none is tried first. The workload, of
 * which no such layers may have been made yet, takes the budget as well. Any other plan
 * is left as it is. */
ms_status ms_recompute_fit(ms_workload *workload, ms_plan *plan);

#endif
