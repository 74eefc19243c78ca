/* Fits the budget of saved activations that a plan leaves open for automatic
 * recomputation. */
#ifndef MS_SIM_STEP_RECOMPUTE_FIT_H
#define MS_SIM_STEP_RECOMPUTE_FIT_H

#include "sim/step/prediction.h"

/* Sets recompute_budget_frac of a plan with MS_RECOMPUTE_AUTO and no budget, and of the
 * workload, which must not have made such layers yet, to the largest budget with which
 * every rank fits its memory (0 if none does). Bisection over the points of the layers'
 * fronts, each tried by a prediction: exact if more saved bytes need more memory, which
 * holds except for a layer's transient tensors. Other plans are left unchanged. */
ms_status ms_recompute_fit(ms_workload *workload, ms_plan *plan);

#endif
