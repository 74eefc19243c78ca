/* Whether activations that tensor parallelism gathers for a GEMM stay in memory until
 * the backward, although they are gathered again there: a convention of some stacks
 * (holds_gathers_alone) when the host runs ahead of the device. docs/formulas 7.2. */
#ifndef MS_SIM_STEP_GATHERS_H
#define MS_SIM_STEP_GATHERS_H

#include "sim/step/workload.h"

/* Whether the plan holds gathered activations. `key` is that of its bills;
 * key->holds_gathers is not read. The order of the plan's axes does not matter. */
bool ms_plan_holds_gathers(ms_workload *workload, const ms_plan *plan,
                           const ms_bill_key *key);

#endif
