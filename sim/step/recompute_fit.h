/* For automatic recomputation: finds how many activations the layers can save so that the
 * plan just fits memory. */
#ifndef MS_SIM_STEP_RECOMPUTE_FIT_H
#define MS_SIM_STEP_RECOMPUTE_FIT_H

#include "sim/step/prediction.h"

/* If the plan has MS_RECOMPUTE_AUTO without a budget, sets recompute_budget_frac of plan
 * and workload to the largest share of saved activations with which every rank fits
 * memory, or 0 if none does. No layers of that mode may be priced yet. Bisection over the
 * layers' choices of saved activations, with a prediction for each: exact if saving more
 * bytes needs more memory, as it does but for a layer's temporary tensors. */
ms_status ms_recompute_fit(ms_workload *workload, ms_plan *plan);

#endif
