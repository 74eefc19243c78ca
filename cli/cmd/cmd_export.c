/* meshsim export: a plan as the arguments or the configuration file of a framework. */
#include "cli/options/output.h"
#include "cli/options/plan_command.h"
#include "sim/request/export_answer.h"

static ms_status write_answer(ms_ctx *cx, const ms_args *args,
                              const ms_export_answer *answer)
{
    ms_output out;
    MS_TRY(ms_output_open(cx, args->common.output, &out));
    if (args->common.json)
        ms_export_answer_write_json(&out.json, cx->arena, answer);
    else
        ms_export_answer_write(out.file, cx->arena, answer);
    return ms_output_close(cx, &out, MS_OK);
}

ms_status ms_cmd_export(ms_ctx *cx, ms_args *args)
{
    ms_plan_options plan_options = {0};
    ms_export_inputs inputs = {0};
    const ms_option_set sets[] = {{"export", ms_export_option_table, &inputs},
                                  {"plan", ms_plan_option_table(), &plan_options}};
    MS_TRY(ms_args_read(cx, args, sets, 2));
    if (args->done)
        return MS_OK;
    ms_plan plan;
    const ms_port_format *format;
    MS_TRY(ms_export_check(cx, &inputs, &format));
    MS_TRY(ms_plan_of_command(cx, args, &plan_options, &plan));
    inputs.ignore_rules = plan_options.ignore_rules;
    ms_export_answer answer;
    ms_status status = ms_export_ask(cx, &inputs, &plan, &answer);
    if (answer.is_complete)
        status = write_answer(cx, args, &answer);
    ms_export_answer_close(&answer);
    return status;
}
