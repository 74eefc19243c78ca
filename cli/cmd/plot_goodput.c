/* meshsim plot goodput: goodput of a plan over the interval between checkpoints. */
#include "cli/cmd/plot_request.h"

#include "plots/goodput_data.h"

MS_PLOTTED_FUNCTIONS(ms_goodput_plot, (out, plot))

static ms_status draw_goodput(ms_plot_request *r, const ms_plan *plan,
                              ms_workload *workload)
{
    ms_prediction prediction;
    ms_campaign_answer answer;
    MS_TRY(ms_predict(r->cx, workload, plan, &prediction));
    ms_plot_note_fit(r, &prediction, "the plan");
    /* the length of training has no effect on goodput */
    MS_TRY(ms_campaign_options_apply(r->cx, &r->campaign, workload, plan, &prediction,
                                     &answer));
    const ms_goodput_plot plot = {.arena = r->cx->arena,
                                  .plan = plan,
                                  .workload = workload,
                                  .job = answer.campaign.job,
                                  .gpu_mean_s = answer.terms.gpu_mean_s,
                                  .step_s = answer.step.step_s,
                                  .interval_steps = answer.campaign.interval_steps};
    return ms_plot_show(r, &(ms_plotted)MS_PLOTTED(ms_goodput_plot, &plot));
}

ms_status ms_plot_goodput(ms_plot_request *r)
{
    return ms_plot_draw_plan(r, draw_goodput);
}
