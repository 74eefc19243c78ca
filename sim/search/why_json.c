#include "sim/search/why.h"

#include "sim/step/prediction_text.h"

static void write_stage(ms_jout *out, const ms_why_stage *stage)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "stage", stage->stage);
    ms_jout_text_field(out, "verdict", stage->verdict);
    ms_jout_text_field(out, "detail", stage->detail);
    for (int i = 0; i < stage->num_numbers; i++)
        ms_jout_number_field(out, stage->numbers[i].name, stage->numbers[i].value);
    ms_jout_end_object(out);
}

static void write_plan(ms_jout *out, const ms_why *why)
{
    ms_jout_key(out, "plan");
    if (!why->has_plan) {
        ms_jout_null(out);
        ms_jout_key(out, "prediction");
        ms_jout_null(out);
        return;
    }
    ms_plan used = ms_prediction_plan(&why->plan, &why->prediction);
    ms_plan_write_json(out, &used);
    ms_jout_key(out, "prediction");
    ms_prediction_write_json(out, &why->prediction);
}

void ms_why_write_json(ms_jout *out, const ms_why *why)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "text", why->question->text);
    ms_jout_text_field(out, "verdict", ms_why_verdict_names[why->verdict]);
    ms_jout_number_field(out, "completions", (double)why->num_plans);
    ms_jout_begin_array_field(out, "stages");
    for (int i = 0; i < why->num_stages; i++)
        write_stage(out, &why->stages[i]);
    ms_jout_end_array(out);
    write_plan(out, why);
    ms_jout_end_object(out);
}
