/* Legal plans drawn at random, for tests of properties that hold for every plan. */
#ifndef MS_TESTS_SUPPORT_RANDOM_PLANS_H
#define MS_TESTS_SUPPORT_RANDOM_PLANS_H

#include "base/rng.h"
#include "sim/step/workload.h"

/* Draws a plan of at most `most_gpus` GPUs and 8 micro-batches, with any schedule but
 * those from files; model, cluster and stack names are those of `base`. */
ms_plan ms_random_plan(ms_rng *rng, const ms_workload *workload, const ms_plan *base,
                       long most_gpus);

#endif
