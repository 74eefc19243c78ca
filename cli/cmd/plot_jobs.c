#include "cli/cmd/plot_jobs.h"

#include <string.h>

/* MS_EINPUT for other than one model, batch and length with a campaign. */
static ms_status check_sweep(const ms_plot_request *r, const ms_plan_sweep *sweep)
{
    ms_ctx *cx = r->cx;
    if (sweep->num_tasks > 1) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                "this picture is about one model, batch and sequence length");
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

ms_status ms_plot_jobs_read(const ms_plot_request *r, ms_plot_jobs *out)
{
    ms_ctx *cx = r->cx;
    const ms_model *model;
    MS_TRY(ms_sweep_options_make(cx, &r->sweep, &out->sweep));
    MS_TRY(check_sweep(r, &out->sweep));
    MS_TRY(check_outputs(r, &out->sweep));
    out->num_clusters = count_clusters(&out->sweep);
    if (out->num_clusters > MS_MAX_PLOT_CLUSTERS)
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                       "a picture has room for %d clusters, and these are %d",
                       MS_MAX_PLOT_CLUSTERS, out->num_clusters);
    MS_TRY(ms_model_load(cx, out->sweep.questions[0].base.model, &model));
    out->model = model->name;
    return MS_OK;
}

const char *ms_plot_jobs_reason(ms_arena *arena, const ms_plan_sweep *sweep)
{
    const ms_best_plan *stuck =
        ms_best_plans_stuck(sweep->answers, ms_plan_sweep_num(sweep));
    return stuck != NULL ? ms_no_progress_text(arena, &stuck->campaign)
                         : "no plan fits for any of these jobs";
}
