/* meshsim whatif: what would change with other hardware, efficiencies or prices. */
#include "cli/options/output.h"
#include "cli/options/whatif_answer.h"
#include "cli/options/whatif_options.h"
#include "cli/report/whatif_report.h"

static ms_status check_outputs(ms_ctx *cx, const ms_args *args,
                               const ms_whatif_options *options)
{
    if (options->csv && args->common.json) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                "--csv and --json are two forms of the result");
        return ms_hint(cx, "leave out one of them");
    }
    return ms_output_check_differ(cx, options->plan.plan_file, args->common.output);
}

/* Whether an answer has a result to report. */
static bool has_result(ms_status status)
{
    return status == MS_OK || status == MS_ENOFIT || status == MS_EINTERRUPTED;
}

ms_status ms_cmd_whatif(ms_ctx *cx, ms_args *args)
{
    ms_whatif_options options = {0};
    ms_option_set sets[MS_NUM_WHATIF_SETS];
    ms_whatif_options_sets(cx, &options, sets);
    MS_TRY(ms_args_read(cx, args, sets, MS_NUM_WHATIF_SETS));
    if (args->done)
        return MS_OK;
    MS_TRY(ms_plan_options_word(cx, &options.plan, args->words.words[0]));
    MS_TRY(check_outputs(cx, args, &options));
    ms_what_if_question question;
    MS_TRY(ms_whatif_options_make(cx, &options, &question));
    ms_output out;
    MS_TRY(ms_output_open(cx, args->common.output, &out));
    ms_what_if w;
    ms_status status = ms_whatif_answer(cx, args, &question, &w);
    if (!has_result(status)) {
        ms_output_drop(cx, &out);
        return status;
    }
    if (w.kept.has_campaign)
        ms_campaign_options_note(cx, &options.campaign, &w.kept.campaign.terms);
    if (args->common.json)
        ms_whatif_report_write_json(&out.json, &w);
    else if (options.csv)
        ms_whatif_report_write_csv(out.file, cx->arena, &w);
    else
        ms_whatif_report_print(out.file, cx->arena, &w, options.all);
    return ms_output_close(cx, &out, status);
}
