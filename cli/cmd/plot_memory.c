/* meshsim plot memory: peaks of the ranks of several plans, or one rank over a step. */
#include "cli/cmd/plot_request.h"

#include "cli/options/plan_command.h"
#include "plots/caption.h"
#include "plots/memory_curve_data.h"
#include "plots/memory_data.h"

#include <string.h>

MS_PLOTTED_FUNCTIONS(ms_memory_plot, (out, plot))
MS_PLOTTED_FUNCTIONS(ms_memory_curve, (out, plot))

/* ---- peaks ---- */

/* Predicts the plan of file `word` (NULL: no file), changed by the plan flags. */
static ms_status predict_plan(const ms_plot_request *r, const char *word,
                              ms_memory_plan *out)
{
    ms_ctx *cx = r->cx;
    ms_plan_options opts = r->plan;
    ms_plan *plan = MS_NEW(cx->arena, ms_plan);
    MS_TRY(ms_plan_options_word(cx, &opts, word));
    MS_TRY(ms_plan_from_options(cx, &opts, plan));
    MS_TRY(ms_plot_check_outputs(r, &opts, plan));
    ms_workload *workload;
    MS_TRY(ms_plan_open_fitted(cx, plan, &workload));
    *out = (ms_memory_plan){.plan = plan, .workload = workload};
    if (opts.plan_file != NULL && strcmp(opts.plan_file, "-") != 0)
        out->name = ms_caption_name(cx->arena, opts.plan_file);
    ms_status status = ms_predict(cx, workload, plan, &out->prediction);
    if (status == MS_OK)
        ms_plot_note_fit(r, &out->prediction, out->name != NULL ? out->name : "the plan");
    ms_workload_close(workload); /* model and cluster stay in the arena */
    return status;
}

/* ---- over time ---- */

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
    const ms_words *words = &r->args->words;
    int num = words->num_words > 1 ? words->num_words - 1 : 1;
    ms_memory_plan *plans = MS_NEW_ARRAY(r->cx->arena, num, ms_memory_plan);
    for (int i = 0; i < num; i++)
        MS_TRY(predict_plan(r, words->num_words > 1 ? words->words[i + 1] : NULL,
                            &plans[i]));
    ms_memory_plot plot = {r->cx->arena, num, plans};
    return ms_plot_show(r, &(ms_plotted)MS_PLOTTED(ms_memory_plot, &plot));
}
