#include "cli/cmd/explain_plan.h"

#include "cli/options/plan_command.h"
#include "cli/report/report.h"

static ms_status write_answer(ms_ctx *cx, const ms_args *args,
                              const ms_explain_inputs *inputs,
                              const ms_explain_result *answer, ms_status status)
{
    ms_output out;
    MS_TRY(ms_output_open(cx, args->common.output, &out));
    if (inputs->types)
        return ms_output_close(cx, &out,
                               ms_explain_types(cx, &out, &answer->explanation,
                                                inputs->block, args->common.json));
    if (args->common.json) {
        ms_explain_answer_write_json(&out.json, cx->arena, answer);
        return ms_output_close(cx, &out, status);
    }
    ms_explanation_print(out.file, cx->arena, &answer->explanation, &answer->view);
    if (answer->advice != NULL)
        ms_advice_print(out.file, cx->arena, answer->advice,
                        ms_advise_options_rows(&inputs->advise));
    return ms_output_close(cx, &out, status);
}

ms_status ms_explain_plan(ms_ctx *cx, const ms_args *args,
                          const ms_explain_inputs *inputs, ms_plan_options *options)
{
    ms_plan plan;
    MS_TRY(ms_plan_of_command(cx, args, options, &plan));
    ms_explain_result answer;
    ms_status status = ms_explain_ask(cx, inputs, &plan, &answer);
    if (answer.is_complete)
        status = write_answer(cx, args, inputs, &answer, status);
    ms_explain_answer_close(&answer);
    return status;
}
