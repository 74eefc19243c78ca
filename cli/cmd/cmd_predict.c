/* meshsim predict: one plan's step time, where it goes, and its memory; with --advise, what
 * to change. */
#include "base/print.h"
#include "cli/options/plan_command.h"
#include "cli/report/campaign_report.h"
#include "cli/report/report.h"
#include "sim/request/predict_answer.h"
#include "sim/step/prediction_text.h"

/* Writes the prediction; with --ignore-rules also the rules that the plan breaks, with
 * --advise the advice. */
static void print(FILE *out, ms_arena *arena, const ms_predict_inputs *inputs,
                  const ms_plan_options *options, const ms_predict_answer *a)
{
    ms_workload *workload = a->workload;
    ms_prediction_print(out, arena, &a->plan, &a->prediction);
    ms_plan used = ms_prediction_plan(&a->plan, &a->prediction);
    const char *layout = ms_plan_layout_text(arena, &used, workload->model,
                                             workload->stack, &workload->rules);
    if (a->asks_campaign)
        ms_campaign_print(out, arena, &a->campaign);
    if (layout != NULL)
        ms_print(out, "\nstages       --pipeline-model-parallel-layout '%s'\n", layout);
    const char *command =
        ms_export_command_text(arena, &a->plan, options->ignore_rules,
                               ms_plan_arguments_text(arena, options, &a->plan));
    if (command != NULL) {
        fputs(layout == NULL ? "\n" : "", out);
        ms_print(out, "export       %s\n", command);
    }
    for (int i = 0; i < a->broken.num; i++)
        ms_print(out, "ignored      %s\n",
                 ms_broken_rule_text(workload, &a->plan, a->broken.rules[i], arena));
    if (a->advice != NULL)
        ms_advice_print(out, arena, a->advice, ms_advise_options_rows(&inputs->advise));
}

/* Writes the answer, also of a plan that does not fit into memory. */
static ms_status write_answer(ms_ctx *cx, const ms_args *args,
                              const ms_predict_inputs *inputs,
                              const ms_plan_options *options,
                              const ms_predict_answer *answer, ms_status status)
{
    ms_output out;
    MS_TRY(ms_output_open(cx, args->common.output, &out));
    if (args->common.json)
        ms_predict_answer_write_json(&out.json, answer);
    else
        print(out.file, cx->arena, inputs, options, answer);
    return ms_output_close(cx, &out, status);
}

ms_status ms_cmd_predict(ms_ctx *cx, ms_args *args)
{
    ms_plan_options options = {0};
    ms_predict_inputs inputs;
    ms_option_set sets[MS_NUM_PREDICT_SETS + 1];
    int num_sets = ms_predict_option_sets(&inputs, sets);
    sets[num_sets++] = (ms_option_set){"plan", ms_plan_option_table(), &options};
    MS_TRY(ms_args_read(cx, args, sets, num_sets));
    if (args->done)
        return MS_OK;
    inputs.ignore_rules = options.ignore_rules;
    ms_predict_answer answer;
    MS_TRY(ms_predict_check(cx, &inputs, &answer));
    ms_plan plan;
    MS_TRY(ms_plan_of_command(cx, args, &options, &plan));
    ms_status status = ms_predict_ask(cx, &inputs, &plan, &answer);
    if (answer.is_complete)
        status = write_answer(cx, args, &inputs, &options, &answer, status);
    ms_predict_answer_close(&answer);
    return status;
}
