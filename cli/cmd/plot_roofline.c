/* meshsim plot roofline: kernels of a plan's layer below the device's limits. */
#include "cli/cmd/plot_request.h"

#include "plots/roofline_data.h"

MS_PLOTTED_FUNCTIONS(ms_roofline, (out, plot))

static ms_status draw_roofline(ms_plot_request *r, const ms_plan *plan,
                               ms_workload *workload)
{
    ms_explanation explanation;
    ms_roofline plot;
    MS_TRY(ms_explain(r->cx, workload, plan, &(ms_explain_options){.rank = -1},
                      &explanation));
    MS_TRY(ms_roofline_make(r->cx, &explanation, &plot));
    ms_plot_note_fit(r, &explanation.prediction, "the plan");
    return ms_plot_show(r, &(ms_plotted)MS_PLOTTED(ms_roofline, &plot));
}

ms_status ms_plot_roofline(ms_plot_request *r)
{
    return ms_plot_draw_plan(r, draw_roofline);
}
