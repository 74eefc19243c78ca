#include "sim/request/predict_answer.h"

#include "base/note.h"
#include "sim/engine/graph.h"
#include "sim/planning/campaign_text.h"
#include "sim/simulate/predict_events.h"
#include "sim/step/prediction_text.h"

static const ms_option predict_table[] = {
    MS_OPT_CHOICE(
        ms_predict_inputs, engine, "--engine", ms_engine_names,
        "step time by the longest path over the actions, or by events with shared "
        "links (default replay)"),
    {0},
};

int ms_predict_option_sets(ms_predict_inputs *inputs,
                           ms_option_set sets[MS_NUM_PREDICT_SETS])
{
    *inputs = (ms_predict_inputs){.engine = {false, MS_ENGINE_REPLAY, NULL}};
    sets[0] = (ms_option_set){"predict", predict_table, inputs};
    sets[1] = (ms_option_set){"advice", ms_advise_option_table, &inputs->advise};
    sets[2] = (ms_option_set){"campaign", ms_campaign_option_table, &inputs->campaign};
    return MS_NUM_PREDICT_SETS;
}

ms_status ms_predict_check(ms_ctx *cx, const ms_predict_inputs *inputs,
                           ms_predict_answer *out)
{
    *out = (ms_predict_answer){.lists_rules = inputs->ignore_rules};
    MS_TRY(ms_campaign_options_check(cx, &inputs->campaign, &out->asks_campaign));
    if (!inputs->engine.given)
        ms_note_default(cx, "--engine replay");
    return MS_OK;
}

/* Predicts the opened plan of the answer, by the engine asked for. */
static ms_status predict(ms_ctx *cx, const ms_predict_inputs *inputs,
                         ms_predict_answer *out)
{
    ms_workload *workload = out->workload;
    const ms_plan *plan = &out->plan;
    ms_prediction *prediction = &out->prediction;
    bool by_events = inputs->engine.value == MS_ENGINE_EVENT;
    MS_TRY(by_events ? ms_predict_by_events(cx, workload, plan, prediction)
                     : ms_predict(cx, workload, plan, prediction));
    const char *intervals[] = {ms_interval_text(cx->arena, plan, prediction),
                               ms_peak_interval_text(cx->arena, plan, prediction)};
    for (int i = 0; i < 2; i++)
        if (intervals[i] != NULL)
            ms_note_default(cx, "%s", intervals[i]);
    if (plan->cuda_graphs != MS_GRAPHS_NONE)
        ms_note(cx, "the memory of CUDA graphs, their pools and static tensors, is not "
                    "counted");
    if (out->asks_campaign)
        MS_TRY(ms_campaign_options_apply(cx, &inputs->campaign, workload, plan,
                                         prediction, &out->campaign));
    out->is_complete = true;
    return ms_plan_check_fits(cx, workload, prediction, plan, &out->shortfall);
}

ms_status ms_predict_ask(ms_ctx *cx, const ms_predict_inputs *inputs, const ms_plan *plan,
                         ms_predict_answer *out)
{
    out->plan = *plan;
    MS_TRY(ms_plan_open_workload(cx, &out->plan, &out->workload));
    MS_TRY(ms_plan_obey_rules(cx, out->workload, &out->plan, inputs->ignore_rules,
                              &out->broken));
    MS_TRY(ms_plan_fit_recompute(cx, out->workload, &out->plan));
    MS_TRY(ms_advise_options_apply(cx, &inputs->advise, out->workload, &out->plan,
                                   &out->advice));
    return predict(cx, inputs, out);
}

void ms_predict_answer_close(ms_predict_answer *answer)
{
    if (answer->workload != NULL)
        ms_workload_close(answer->workload);
}

void ms_predict_answer_write_json(ms_jout *out, const ms_predict_answer *answer)
{
    ms_plan used = ms_prediction_plan(&answer->plan, &answer->prediction);
    ms_jout_begin_object(out);
    ms_prediction_write_fields(out, &answer->prediction);
    ms_jout_key(out, "plan");
    ms_plan_write_json(out, &used);
    if (answer->asks_campaign)
        ms_campaign_write_field(out, &answer->campaign);
    if (answer->lists_rules)
        ms_broken_rules_write_json(out, &answer->broken);
    if (!answer->prediction.fits) {
        ms_jout_key(out, "shortfall");
        ms_shortfall_write_json(out, &answer->shortfall);
    }
    if (answer->advice != NULL)
        ms_advice_write_field(out, answer->advice);
    ms_jout_end_object(out);
}
