/* meshsim predict: one plan's step time, where it goes, and its memory; with --advise, what
 * to change. */
#include "base/print.h"
#include "cli/options/advise_options.h"
#include "cli/options/campaign_options.h"
#include "cli/options/plan_command.h"
#include "cli/report/campaign_report.h"
#include "cli/report/report.h"
#include "sim/engine/graph.h"
#include "sim/simulate/predict_events.h"
#include "sim/step/prediction_text.h"

typedef struct predict_options {
    ms_opt_choice engine;
    ms_advise_options advise;
    ms_campaign_options campaign;
} predict_options;

static const ms_option predict_table[] = {
    MS_OPT_CHOICE(
        predict_options, engine, "--engine", ms_engine_names,
        "step time by the longest path over the actions, or by events with shared "
        "links (default replay)"),
    {0},
};

typedef struct request {
    ms_ctx *cx;
    const ms_args *args;
    const ms_plan_options *options;
    const predict_options *how;
    ms_broken_rules broken;
    const ms_advice *advice; /* NULL without --advise */
    bool asks_campaign;
    ms_campaign_answer campaign; /* if asked */
} request;

static void write_json(const request *r, ms_jout *json, const ms_plan *plan,
                       const ms_prediction *prediction, const ms_shortfall *shortfall)
{
    ms_plan used = ms_prediction_plan(plan, prediction);
    ms_jout_begin_object(json);
    ms_prediction_write_fields(json, prediction);
    ms_jout_key(json, "plan");
    ms_plan_write_json(json, &used);
    if (r->asks_campaign)
        ms_campaign_write_field(json, &r->campaign);
    if (r->options->ignore_rules)
        ms_broken_rules_write_json(json, &r->broken);
    if (shortfall != NULL) {
        ms_jout_key(json, "shortfall");
        ms_shortfall_write_json(json, shortfall);
    }
    if (r->advice != NULL)
        ms_advice_write_field(json, r->advice);
    ms_jout_end_object(json);
}

/* Writes the prediction; with --ignore-rules also the rules that the plan breaks, with
 * --advise the advice. */
static void print(const request *r, FILE *out, ms_workload *workload, const ms_plan *plan,
                  const ms_prediction *prediction)
{
    ms_prediction_print(out, r->cx->arena, plan, prediction);
    ms_plan used = ms_prediction_plan(plan, prediction);
    const char *layout = ms_plan_layout_text(r->cx->arena, &used, workload->model,
                                             workload->stack, &workload->rules);
    if (r->asks_campaign)
        ms_campaign_print(out, r->cx->arena, &r->campaign);
    if (layout != NULL)
        ms_print(out, "\nstages       --pipeline-model-parallel-layout '%s'\n", layout);
    for (int i = 0; i < r->broken.num; i++)
        ms_print(out, "ignored      %s\n",
                 ms_broken_rule_text(workload, plan, r->broken.rules[i], r->cx->arena));
    if (r->advice != NULL)
        ms_advice_print(out, r->cx->arena, r->advice,
                        ms_advise_options_rows(&r->how->advise));
}

/* Predicts a plan and writes the result, also if the plan does not fit into memory. */
static ms_status predict(request *r, ms_workload *workload, const ms_plan *plan)
{
    ms_ctx *cx = r->cx;
    const ms_args *args = r->args;
    ms_prediction prediction;
    bool by_events = r->how->engine.value == MS_ENGINE_EVENT;
    MS_TRY(by_events ? ms_predict_by_events(cx, workload, plan, &prediction)
                     : ms_predict(cx, workload, plan, &prediction));
    const char *intervals[] = {ms_interval_text(cx->arena, plan, &prediction),
                               ms_peak_interval_text(cx->arena, plan, &prediction)};
    for (int i = 0; i < 2; i++)
        if (intervals[i] != NULL)
            ms_note_default(cx, "%s", intervals[i]);
    if (plan->cuda_graphs != MS_GRAPHS_NONE)
        ms_note(cx, "the memory of CUDA graphs, their pools and static tensors, is not "
                    "counted");
    if (r->asks_campaign)
        MS_TRY(ms_campaign_options_apply(cx, &r->how->campaign, workload, plan,
                                         &prediction, &r->campaign));
    ms_output out;
    MS_TRY(ms_output_open(cx, args->common.output, &out));
    ms_shortfall shortfall;
    ms_status status =
        ms_plan_check_fits(cx, args, workload, &prediction, plan, &shortfall);
    if (args->common.json)
        write_json(r, &out.json, plan, &prediction, prediction.fits ? NULL : &shortfall);
    else
        print(r, out.file, workload, plan, &prediction);
    return ms_output_close(cx, &out, status);
}

ms_status ms_cmd_predict(ms_ctx *cx, ms_args *args)
{
    ms_plan_options options = {0};
    predict_options how = {.engine = {false, MS_ENGINE_REPLAY}};
    const ms_option_set sets[] = {{"predict", predict_table, &how},
                                  {"advice", ms_advise_option_table, &how.advise},
                                  {"campaign", ms_campaign_option_table, &how.campaign},
                                  {"plan", ms_plan_option_table(), &options}};
    MS_TRY(ms_args_read(cx, args, sets, 4));
    if (args->done)
        return MS_OK;
    bool asks_campaign;
    MS_TRY(ms_campaign_options_check(cx, &how.campaign, &asks_campaign));
    if (!how.engine.given)
        ms_note_default(cx, "--engine replay");
    ms_plan plan;
    MS_TRY(ms_plan_of_command(cx, args, &options, &plan));
    ms_workload *workload;
    MS_TRY(ms_plan_open_workload(cx, &plan, &workload));
    request r = {.cx = cx,
                 .args = args,
                 .options = &options,
                 .how = &how,
                 .asks_campaign = asks_campaign};
    ms_status status =
        ms_plan_obey_rules(cx, workload, &plan, options.ignore_rules, &r.broken);
    if (status == MS_OK)
        status = ms_plan_fit_recompute(cx, workload, &plan);
    if (status == MS_OK)
        status = ms_advise_options_apply(cx, &how.advise, workload, &plan, &r.advice);
    if (status == MS_OK)
        status = predict(&r, workload, &plan);
    ms_workload_close(workload);
    return status;
}
