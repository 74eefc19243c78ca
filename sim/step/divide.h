/* Layers of pipeline stages on the groups of a mixed cluster: the split of one plan with
 * the shortest predicted step among those that fit each stage's memory, by descent.
 * docs/formulas 5.8. */
#ifndef MS_SIM_STEP_DIVIDE_H
#define MS_SIM_STEP_DIVIDE_H

#include "sim/step/step.h"

/* Divides the layers of a plan: from the split that balances compute, layers move between
 * two stages, one or two at once, as long as less memory is over the limits, or equally
 * little and the step by replay of `schedule` is shorter. The limits are those of the
 * workload's memory rule; without one, of MS_DEFAULT_MIN_FIT. `pipeline` is complete but
 * for stages and loads, and its split is that of ms_workload_split. The result lives in the
 * arena. */
const ms_split *ms_divide_layers(const ms_pipeline *pipeline, ms_sharding sharding,
                                 const ms_schedule *schedule, ms_arena *arena);

#endif
