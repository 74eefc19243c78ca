/* meshsim plot sensitivity: the tornado of a what-if study. */
#include "cli/cmd/plot_request.h"

#include "cli/options/whatif_answer.h"
#include "plots/sensitivity_data.h"

MS_PLOTTED_FUNCTIONS(ms_tornado, (out, plot))

/* Why there is nothing to draw; the status of the study. */
static ms_status fail_study(ms_ctx *cx, ms_status status, const ms_what_if *study)
{
    if (status != MS_ENOFIT || cx->first != NULL)
        return status;
    const ms_best_plan *plan = study->is_given ? &study->kept : &study->best;
    return ms_fail(cx, MS_ENOFIT, MS_NOWHERE, "no plan fits: %s", plan->reason);
}

ms_status ms_plot_sensitivity(ms_plot_request *r)
{
    ms_ctx *cx = r->cx;
    ms_what_if_question question;
    ms_what_if study;
    MS_TRY(ms_plan_options_word(cx, &r->whatif.plan,
                                r->args->words.num_words > 1 ? r->args->words.words[1]
                                                             : NULL));
    MS_TRY(ms_whatif_options_make(cx, &r->whatif, &question));
    MS_TRY(ms_plot_check_outputs(r, &r->whatif.plan, &question.job.base));
    ms_status status = ms_whatif_answer(cx, r->args, &question, &study);
    if (status != MS_OK)
        return fail_study(cx, status, &study);
    ms_tornado plot = {cx->arena, &study};
    return ms_plot_show(r, &(ms_plotted)MS_PLOTTED(ms_tornado, &plot));
}
