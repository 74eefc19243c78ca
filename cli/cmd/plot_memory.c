/* meshsim plot memory: peaks of the ranks of several plans, or one rank over a step. */
#include "cli/cmd/plot_request.h"

#include "plots/memory_curve_data.h"
#include "plots/memory_data.h"

MS_PLOTTED_FUNCTIONS(ms_memory_plot, (out, plot))
MS_PLOTTED_FUNCTIONS(ms_memory_curve, (out, plot))

static ms_status draw_curve(ms_plot_request *r, const ms_plan *plan,
                            ms_workload *workload)
{
    ms_planned planned;
    ms_memory_curve curve;
    ms_simulate_options options;
    MS_TRY(ms_plot_simulate_options(r, &options));
    MS_TRY(ms_planned_open_listed(r->cx, workload, plan, &planned));
    long rank = r->options.rank.given ? r->options.rank.value : -1;
    MS_TRY(ms_memory_curve_make(r->cx, &planned, &options, rank, &curve));
    ms_simulate_note_links(r->cx, &curve.simulation);
    ms_plot_note_fit(r, &curve.prediction, "the plan");
    return ms_plot_show(r, &(ms_plotted)MS_PLOTTED(ms_memory_curve, &curve));
}

/* Refuses simulation options without --over-time, and several plans with it. */
static ms_status check_over_time(ms_plot_request *r)
{
    const ms_option_set simulation = {"simulate", r->simulate_table, &r->simulate};
    const char *idle = r->options.rank.given ? "--rank" : NULL;
    if (idle == NULL)
        idle = ms_options_given(&simulation, "");
    if (!r->options.over_time && idle != NULL) {
        ms_fail(r->cx, MS_EINPUT, MS_NOWHERE, "%s has no meaning for peaks of memory",
                idle);
        return ms_hint(r->cx, "with --over-time one rank is drawn over a step");
    }
    if (r->options.over_time && r->args->words.num_words > 2) {
        ms_fail(r->cx, MS_EINPUT, MS_NOWHERE, "unexpected argument \"%s\"",
                r->args->words.words[2]);
        return ms_hint(r->cx, "--over-time takes one plan at a time");
    }
    return MS_OK;
}

ms_status ms_plot_memory(ms_plot_request *r)
{
    MS_TRY(check_over_time(r));
    if (r->options.over_time)
        return ms_plot_draw_plan(r, draw_curve);
    ms_memory_plot plot = {.arena = r->cx->arena};
    MS_TRY(ms_plot_price_plans(r, &plot.plans, &plot.num_plans));
    return ms_plot_show(r, &(ms_plotted)MS_PLOTTED(ms_memory_plot, &plot));
}
