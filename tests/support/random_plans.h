/* Legal plans drawn at random, for tests that hold for every plan. */
#ifndef MS_TESTS_SUPPORT_RANDOM_PLANS_H
#define MS_TESTS_SUPPORT_RANDOM_PLANS_H

#include "base/rng.h"
#include "sim/step/workload.h"

/* On at most `most_gpus` GPUs with at most 8 micro-batches, of any schedule that has a
 * rule; the names are those of the workload's plan. */
ms_plan ms_random_plan(ms_rng *rng, const ms_workload *workload, const ms_plan *base,
                       long most_gpus);

#endif
