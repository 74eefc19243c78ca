/* meshsim plot timeline: who does what when. */
#include "cli/cmd/plot_request.h"

#include "plots/timeline_data.h"

static void timeline_data(FILE *out, const void *plot)
{
    ms_timeline_write_data(out, plot);
}

static ms_status timeline_script(ms_ctx *cx, FILE *out, const void *plot,
                                 const char *name, ms_picture_format format)
{
    return ms_timeline_write_script(cx, out, plot, name, format);
}

static void timeline_json(ms_jout *out, const void *plot)
{
    ms_timeline_write_json(out, plot);
}

static void timeline_print(FILE *out, ms_arena *arena, const void *plot)
{
    ms_timeline_print(out, arena, plot);
}

static ms_status draw_timeline(ms_plot_request *r, const ms_plan *plan,
                               ms_workload *workload)
{
    ms_planned planned;
    ms_timeline timeline;
    ms_simulate_options options;
    MS_TRY(ms_plot_simulate_options(r, &options));
    ms_planned_open(r->cx, workload, plan, &planned);
    MS_TRY(ms_timeline_make(r->cx, &planned, &options, &timeline));
    ms_simulate_note_links(r->cx, &timeline.simulation);
    ms_plot_note_fit(r, &timeline.prediction, "the plan");
    ms_plotted p = {
        {&timeline, timeline_data, timeline_script}, timeline_json, timeline_print};
    return ms_plot_show(r, &p);
}

ms_status ms_plot_timeline(ms_plot_request *r)
{
    return ms_plot_draw_plan(r, draw_timeline);
}
