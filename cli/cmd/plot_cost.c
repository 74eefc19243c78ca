/* meshsim plot cost: money and days of a training on clusters and numbers of GPUs. */
#include "cli/cmd/plot_jobs.h"

#include "cli/options/sweep_answer.h"
#include "plots/cost_data.h"

MS_PLOTTED_FUNCTIONS(ms_cost_plot, (out, plot))

ms_status ms_plot_cost(ms_plot_request *r)
{
    ms_ctx *cx = r->cx;
    ms_plot_jobs jobs;
    MS_TRY(ms_plot_jobs_read(r, &jobs));
    ms_status status = ms_sweep_answer(cx, r->args, r->options.state, &jobs.sweep);
    if (status != MS_OK && status != MS_EINTERRUPTED)
        return status;
    ms_cost_plot plot =
        ms_cost_plot_make(cx->arena, &jobs.sweep, jobs.num_clusters, jobs.model);
    plot.against_gpus = r->options.against.given && r->options.against.value > 0;
    return ms_plot_show_found(r, &(ms_plotted)MS_PLOTTED(ms_cost_plot, &plot), status,
                              ms_cost_plot_num_points(&plot) > 0
                                  ? NULL
                                  : ms_plot_jobs_reason(cx->arena, &jobs.sweep));
}
