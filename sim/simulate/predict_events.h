/* Predictions whose times come from discrete-event simulation. */
#ifndef MS_SIM_SIMULATE_PREDICT_EVENTS_H
#define MS_SIM_SIMULATE_PREDICT_EVENTS_H

#include "sim/step/prediction.h"

/* Predicts like ms_predict, but step time, its breakdown, rates and exposed communication
 * come from the event engine with a task per node. MS_EINPUT: errors of ms_simulate. */
ms_status ms_predict_by_events(ms_ctx *cx, ms_workload *workload, const ms_plan *plan,
                               ms_prediction *out);

#endif
