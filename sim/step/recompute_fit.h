/* Fits the budget of saved activations that a plan leaves open for automatic
 * recomputation. */
#ifndef MS_SIM_STEP_RECOMPUTE_FIT_H
#define MS_SIM_STEP_RECOMPUTE_FIT_H

#include "sim/step/prediction.h"

/* For a plan with MS_RECOMPUTE_AUTO and no budget: sets recompute_budget_frac to the
 * largest budget with which every rank fits its memory (0 if none does), which also
 * recomputes for the shortest time. Bisection over the points of the layers' fronts
 * (costmodel/cost/saved_activations.h), each tried by a prediction: exact where more saved bytes need
 * more memory, which holds except for a layer's transient tensors. The whole budget is
 * tried first. Sets the workload's budget too; the workload must not have made such
 * layers yet. Any other plan is left unchanged. */
ms_status ms_recompute_fit(ms_workload *workload, ms_plan *plan);

#endif
