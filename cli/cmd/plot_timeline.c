/* meshsim plot timeline: the actions of every pipeline rank over one step. */
#include "cli/cmd/plot_request.h"

#include "plots/timeline_data.h"

MS_PLOTTED_FUNCTIONS(ms_timeline, (out, arena, plot))

static ms_status draw_timeline(ms_plot_request *r, const ms_plan *plan,
                               ms_workload *workload)
{
    ms_planned planned;
    ms_timeline timeline;
    ms_simulate_options options;
    MS_TRY(ms_plot_simulate_options(r, &options));
    MS_TRY(ms_planned_open_listed(r->cx, workload, plan, &planned));
    MS_TRY(ms_timeline_make(r->cx, &planned, &options, &timeline));
    ms_simulate_note_links(r->cx, &timeline.simulation);
    ms_plot_note_fit(r, &timeline.prediction, "the plan");
    return ms_plot_show(r, &(ms_plotted)MS_PLOTTED(ms_timeline, &timeline));
}

ms_status ms_plot_timeline(ms_plot_request *r)
{
    return ms_plot_draw_plan(r, draw_timeline);
}
