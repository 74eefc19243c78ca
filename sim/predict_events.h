/* Predictions whose times come from the event engine. */
#ifndef MS_SIM_PREDICT_EVENTS_H
#define MS_SIM_PREDICT_EVENTS_H

#include "sim/prediction.h"

/* ms_predict, but step time, rates, the parts of the step and what is exposed come from
 * the event engine, a task per node. MS_EINPUT: as ms_simulate. */
ms_status ms_predict_by_events(ms_ctx *cx, ms_workload *workload, const ms_plan *plan,
                               ms_prediction *out);

#endif
