/* meshsim sweep: the fastest plan of each of many jobs, and what to choose among them. */
#include "cli/options/output.h"
#include "cli/options/sweep_answer.h"
#include "cli/options/sweep_options.h"
#include "cli/report/sweep_report.h"

typedef struct sweep_flags {
    bool csv;
    const char *state;
} sweep_flags;

static const ms_option sweep_table[] = {
    MS_OPT_FLAG(sweep_flags, csv, "--csv", "write CSV, one row a job, instead of text"),
    MS_OPT_TEXT(sweep_flags, state, "--state", "FILE",
                "keep finished searches in FILE, and take those that are there already: "
                "an interrupted sweep goes on"),
    {0},
};

/* MS_ENOFIT if no job has a plan that makes progress and keeps the limits. */
static ms_status judge(ms_ctx *cx, const ms_plan_sweep *sweep)
{
    int num = ms_plan_sweep_num(sweep);
    const ms_best_plan *stuck = ms_best_plans_stuck(sweep->answers, num);
    bool found = false;
    for (int i = 0; i < num; i++) {
        if (ms_best_plan_keeps_limits(&sweep->answers[i]))
            return MS_OK;
        found = found || sweep->answers[i].found;
    }
    if (stuck != NULL)
        return ms_campaign_fail_progress(cx, &stuck->campaign);
    return ms_fail(cx, MS_ENOFIT, MS_NOWHERE,
                   found ? "no plan of these jobs keeps the deadline and the budget"
                         : "no plan fits for any of these jobs");
}

static ms_status check_outputs(ms_ctx *cx, const ms_args *args, const sweep_flags *flags,
                               const ms_sweep_options *options)
{
    if (flags->csv && args->common.json) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                "--csv and --json are two forms of the result");
        return ms_hint(cx, "leave out one of them");
    }
    const char *const files[] = {args->common.output, flags->state,
                                 options->plan.plan_file};
    return ms_output_check_distinct(cx, files, 3);
}

ms_status ms_cmd_sweep(ms_ctx *cx, ms_args *args)
{
    sweep_flags flags = {0};
    ms_sweep_options options = {0};
    ms_option_set sets[1 + MS_NUM_SWEEP_SETS] = {{"sweep", sweep_table, &flags}};
    ms_sweep_options_sets(cx, &options, sets + 1);
    MS_TRY(ms_args_read(cx, args, sets, 1 + MS_NUM_SWEEP_SETS));
    if (args->done)
        return MS_OK;
    MS_TRY(check_outputs(cx, args, &flags, &options));
    ms_plan_sweep sweep;
    MS_TRY(ms_sweep_options_make(cx, &options, &sweep));
    ms_output out;
    MS_TRY(ms_output_open(cx, args->common.output, &out));
    ms_status status = ms_sweep_answer(cx, args, flags.state, &sweep);
    if (status != MS_OK && status != MS_EINTERRUPTED) {
        ms_output_drop(cx, &out);
        return status;
    }
    if (args->common.json)
        ms_sweep_report_write_json(&out.json, cx->arena, &sweep);
    else if (flags.csv)
        ms_sweep_report_write_csv(out.file, &sweep);
    else
        ms_sweep_report_print(out.file, cx->arena, &sweep);
    return ms_output_close(cx, &out, status == MS_OK ? judge(cx, &sweep) : status);
}
