/* meshsim plot cost: money and days of a training on clusters and numbers of GPUs. */
#include "cli/cmd/plot_request.h"

#include "cli/options/sweep_answer.h"
#include "plots/cost_data.h"

#include <string.h>

MS_PLOTTED_FUNCTIONS(ms_cost_plot, (out, plot))

/* MS_EINPUT for other than one model, batch and length with a campaign. */
static ms_status check_sweep(const ms_plot_request *r, const ms_plan_sweep *sweep)
{
    ms_ctx *cx = r->cx;
    if (sweep->num_tasks > 1) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                "a picture of costs is about one model, batch and sequence length");
        return ms_hint(cx, "\"meshsim sweep\" takes several");
    }
    if (sweep->questions[0].campaign == NULL) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "the length of training is not given");
        return ms_hint(cx, "add --tokens 15T, --chinchilla or --flop 3.8e25");
    }
    return MS_OK;
}

/* Number of clusters of a sweep of one task, whose points lie cluster by cluster. */
static int count_clusters(const ms_plan_sweep *sweep)
{
    int num = 1;
    for (int i = 1; i < sweep->per_task; i++)
        num += strcmp(sweep->questions[i].base.cluster,
                      sweep->questions[i - 1].base.cluster) != 0;
    return num;
}

/* MS_EINPUT where an output would replace a file that a job or the sweep reads. */
static ms_status check_outputs(const ms_plot_request *r, const ms_plan_sweep *sweep)
{
    for (int i = 0; i < ms_plan_sweep_num(sweep); i++)
        MS_TRY(ms_plot_check_outputs(r, &r->sweep.plan, &sweep->questions[i].base));
    return r->options.state == NULL ? MS_OK : ms_plot_check_input(r, r->options.state);
}

ms_status ms_plot_cost(ms_plot_request *r)
{
    ms_ctx *cx = r->cx;
    ms_plan_sweep sweep;
    const ms_model *model;
    MS_TRY(ms_sweep_options_make(cx, &r->sweep, &sweep));
    MS_TRY(check_sweep(r, &sweep));
    MS_TRY(check_outputs(r, &sweep));
    int num_clusters = count_clusters(&sweep);
    if (num_clusters > MS_MAX_COST_CLUSTERS)
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                       "a picture has room for %d clusters, and these are %d",
                       MS_MAX_COST_CLUSTERS, num_clusters);
    MS_TRY(ms_model_load(cx, sweep.questions[0].base.model, &model));
    MS_TRY(ms_sweep_answer(cx, r->args, r->options.state, &sweep));
    ms_cost_plot plot = ms_cost_plot_make(cx->arena, &sweep, num_clusters, model->name);
    plot.against_gpus = r->options.against.given && r->options.against.value > 0;
    return ms_plot_show_found(r, &(ms_plotted)MS_PLOTTED(ms_cost_plot, &plot),
                              ms_cost_plot_num_points(&plot) > 0,
                              "no plan fits for any of these jobs");
}
