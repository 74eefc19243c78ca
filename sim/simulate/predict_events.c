#include "sim/simulate/predict_events.h"

#include "sim/simulate/simulation.h"

#include <math.h>

static void take_times(const ms_simulation *simulation, ms_prediction *out)
{
    const ms_actor *last = &simulation->actors[simulation->last_actor];
    out->engine = MS_ENGINE_EVENT;
    out->step_s = simulation->step_s;
    /* error ranges are known only for ms_predict's step times */
    out->interval = MS_NO_ERROR_INTERVAL;
    out->step_low_s = out->step_high_s = (double)NAN;
    out->compute_s = last->compute_s;
    out->exposed_comm_s = last->exposed_comm_s;
    out->bubble_s = last->bubble_s;
    out->optimizer_s = last->optimizer_s;
    out->host_s = last->host_s;
    out->ending_rank = last->pipeline_rank;
}

ms_status ms_predict_by_events(ms_ctx *cx, ms_workload *workload, const ms_plan *plan,
                               ms_prediction *out)
{
    ms_planned planned;
    MS_TRY(ms_planned_open_listed(cx, workload, plan, &planned));
    (void)ms_predict_planned(cx, &planned, out);
    ms_simulate_options options = {.engine = MS_ENGINE_EVENT, .detail = MS_DETAIL_NODE};
    ms_simulation *simulation = MS_NEW(cx->arena, ms_simulation);
    MS_TRY(ms_simulate(cx, &planned, &options, simulation));
    take_times(simulation, out);
    ms_prediction_retime(cx, &planned, out);
    return MS_OK;
}
