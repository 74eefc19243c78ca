/* Shared by the files of the plan module. */
#ifndef MS_COSTMODEL_PLAN_PLAN_PRIV_H
#define MS_COSTMODEL_PLAN_PLAN_PRIV_H

#include "costmodel/plan/plan.h"

/* Why the schedule refuses the plan, NULL when it does not. The batch must divide. */
const char *ms_plan_schedule_objection(const ms_plan *plan);

#endif
