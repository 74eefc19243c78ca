/* meshsim plot pareto: time, memory and money of plans that no other beats. */
#include "cli/cmd/plot_jobs.h"

#include "cli/options/sweep_answer.h"
#include "plots/pareto_data.h"

MS_PLOTTED_FUNCTIONS(ms_pareto, (out, plot))

/* Shares of device memory within which plans are searched. */
static const double shares[] = {1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1};
#define NUM_SHARES ((int)(sizeof shares / sizeof *shares))

/* Each question once for each share of memory. */
static ms_plan_sweep with_less_memory(ms_arena *arena, const ms_plan_sweep *jobs)
{
    int num = ms_plan_sweep_num(jobs) * NUM_SHARES;
    ms_best_question *questions = MS_NEW_ARRAY(arena, num, ms_best_question);
    ms_plan_limits *limits = MS_NEW_ARRAY(arena, NUM_SHARES, ms_plan_limits);
    for (int i = 0; i < NUM_SHARES; i++) {
        limits[i] = *jobs->questions[0].limits;
        if (limits[i].memory.headroom_frac < 1.0 - shares[i])
            limits[i].memory.headroom_frac = 1.0 - shares[i];
    }
    for (int i = 0; i < num; i++) {
        questions[i] = jobs->questions[i / NUM_SHARES];
        questions[i].limits = &limits[i % NUM_SHARES];
    }
    return (ms_plan_sweep){1, num, questions, MS_NEW_ARRAY(arena, num, bool),
                           MS_NEW_ARRAY(arena, num, ms_best_plan)};
}

ms_status ms_plot_pareto(ms_plot_request *r)
{
    ms_ctx *cx = r->cx;
    ms_plot_jobs jobs;
    MS_TRY(ms_plot_jobs_read(r, &jobs));
    ms_plan_sweep sweep = with_less_memory(cx->arena, &jobs.sweep);
    ms_status status = ms_sweep_answer(cx, r->args, r->options.state, &sweep);
    if (status != MS_OK && status != MS_EINTERRUPTED)
        return status;
    ms_pareto plot = ms_pareto_make(cx->arena, &sweep, jobs.num_clusters, jobs.model);
    return ms_plot_show_found(r, &(ms_plotted)MS_PLOTTED(ms_pareto, &plot), status,
                              plot.num > 0 ? NULL
                                           : ms_plot_jobs_reason(cx->arena, &sweep));
}
