/* meshsim sweep: the fastest plan of each of many jobs, and what to choose among them. */
#include "base/print.h"
#include "cli/options/interrupt.h"
#include "cli/options/output.h"
#include "cli/options/sweep_options.h"
#include "cli/report/sweep_report.h"

#include <unistd.h>

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

typedef struct progress {
    ms_plan_sweep *sweep;
    ms_plan_sweep_state *state; /* NULL: none */
    int num_done;
    bool shows;
} progress;

static ms_status note_answer(void *payload, int index, const ms_best_plan *answer)
{
    progress *p = payload;
    p->sweep->answered[index] = true;
    p->num_done++;
    if (p->shows)
        fprintf(stderr, "\r%d of %d searches done\033[K", p->num_done,
                ms_plan_sweep_num(p->sweep));
    return p->state == NULL ? MS_OK : ms_plan_sweep_state_add(p->state, index, answer);
}

static ms_status answer_all(ms_ctx *cx, const ms_args *args, progress *p)
{
    ms_plan_sweep *sweep = p->sweep;
    int num = ms_plan_sweep_num(sweep);
    bool *known = MS_NEW_ARRAY(cx->arena, num, bool);
    for (int i = 0; i < num; i++)
        known[i] = sweep->answered[i];
    ms_best_batch batch = {.num = num,
                           .questions = sweep->questions,
                           .known = known,
                           .num_threads = ms_args_threads(args),
                           .interrupted = &ms_interrupted,
                           .answered = note_answer,
                           .payload = p};
    int num_answered;
    ms_status status = ms_best_batch_answer(cx, &batch, sweep->answers, &num_answered);
    if (p->shows)
        fputs("\r\033[K", stderr);
    return status;
}

static ms_status answer(ms_ctx *cx, const ms_args *args, const sweep_flags *flags,
                        ms_plan_sweep *sweep)
{
    progress p = {.sweep = sweep, .shows = cx->verbosity >= 0 && isatty(STDERR_FILENO)};
    if (flags->state != NULL) {
        MS_TRY(ms_plan_sweep_state_open(cx, flags->state, sweep, &p.state, &p.num_done));
        if (p.num_done > 0)
            ms_note(cx, "%d of %d searches are in %s", p.num_done,
                    ms_plan_sweep_num(sweep), flags->state);
    }
    ms_status status = answer_all(cx, args, &p);
    if (p.state != NULL)
        ms_plan_sweep_state_close(p.state);
    return status;
}

/* MS_ENOFIT if no job has a plan. */
static ms_status judge(ms_ctx *cx, const ms_plan_sweep *sweep)
{
    for (int i = 0; i < ms_plan_sweep_num(sweep); i++)
        if (sweep->answers[i].found)
            return MS_OK;
    return ms_fail(cx, MS_ENOFIT, MS_NOWHERE, "no plan fits for any of these jobs");
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
    ms_status status = answer(cx, args, &flags, &sweep);
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
