/* meshsim simulate: one plan's step, task by task. */
#include "cli/cmd/simulate_trace.h"
#include "cli/options/plan_command.h"
#include "cli/report/simulate_report.h"
#include "sim/request/simulate_answer.h"

/* Writes trace and result, also of a plan that does not fit into memory. */
static ms_status write_answer(ms_ctx *cx, const ms_args *args,
                              const ms_simulate_flags *flags, ms_simulate_answer *answer,
                              ms_status status)
{
    ms_simulate_report *report = &answer->report;
    const char *path = args->common.output;
    report->width = flags->width.given ? (int)flags->width.value
                                       : ms_output_width(path, MS_SIMULATE_WIDTH);
    report->colours = ms_output_takes_colours(path);
    MS_TRY(ms_simulate_trace_write(cx, flags, report));
    ms_output out;
    MS_TRY(ms_output_open(cx, path, &out));
    if (args->common.json)
        ms_simulate_write_json(&out.json, cx->arena, report);
    else
        ms_simulate_print(out.file, cx->arena, report);
    return ms_output_close(cx, &out, status);
}

ms_status ms_cmd_simulate(ms_ctx *cx, ms_args *args)
{
    ms_plan_options options = {0};
    ms_simulate_flags flags = {0};
    const ms_option_set sets[] = {{"simulate", ms_simulate_option_table, &flags},
                                  {"plan", ms_plan_option_table(), &options}};
    MS_TRY(ms_args_read(cx, args, sets, 2));
    if (args->done)
        return MS_OK;
    MS_TRY(ms_simulate_trace_check(cx, &flags));
    MS_TRY(ms_simulate_flags_check(cx, &flags));
    ms_plan plan;
    MS_TRY(ms_plan_of_command(cx, args, &options, &plan));
    MS_TRY(ms_plan_options_check_output(cx, &options, &plan, flags.trace));
    MS_TRY(ms_output_check_differ(cx, args->common.output, flags.trace));
    flags.ignore_rules = options.ignore_rules;
    ms_simulate_answer *answer = MS_NEW(cx->arena, ms_simulate_answer);
    ms_status status = ms_simulate_ask(cx, &flags, &plan, answer);
    if (answer->is_complete)
        status = write_answer(cx, args, &flags, answer, status);
    ms_simulate_answer_close(answer);
    return status;
}
