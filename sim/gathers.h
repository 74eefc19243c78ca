/* Whether what tensor parallelism gathers for a product is held in memory until backward,
 * although it is gathered again there: a habit of some stacks (holds_gathers_alone), in
 * runs whose host is ahead. docs/formulas 7.2. */
#ifndef MS_SIM_GATHERS_H
#define MS_SIM_GATHERS_H

#include "sim/workload.h"

/* Of a plan whose bills are made by the key; its own holds_gathers is not looked at. The
 * same for every order of the plan's axes. */
bool ms_plan_holds_gathers(ms_workload *workload, const ms_plan *plan,
                           const ms_bill_key *key);

#endif
