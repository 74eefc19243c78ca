#include "sim/request/stacks_answer.h"
#include "sim/step/prediction_text.h"

const char *const ms_stack_outcome_names[MS_NUM_STACK_OUTCOMES + 1] = {
    "found", "no_fit", "not_legal", "interrupted", NULL};

ms_step_gap ms_step_gap_of(const ms_prediction *prediction, const ms_prediction *ceiling)
{
    return (ms_step_gap){.step_s = prediction->step_s - ceiling->step_s,
                         .compute_s = prediction->compute_s - ceiling->compute_s,
                         .exposed_comm_s =
                             prediction->exposed_comm_s - ceiling->exposed_comm_s,
                         .bubble_s = prediction->bubble_s - ceiling->bubble_s,
                         .optimizer_s = prediction->optimizer_s - ceiling->optimizer_s,
                         .host_s = prediction->host_s - ceiling->host_s};
}

static void write_best(ms_jout *out, const ms_stack_best *best)
{
    ms_jout_key(out, "best");
    if (best->plan == NULL) {
        ms_jout_null(out);
        return;
    }
    ms_jout_begin_object(out);
    ms_jout_key(out, "plan");
    ms_plan_write_json(out, best->plan);
    ms_jout_key(out, "prediction");
    ms_prediction_write_json(out, best->prediction);
    ms_jout_number_field(out, "fits_probability", best->prediction->fits_probability);
    ms_jout_end_object(out);
}

static void write_gap(ms_jout *out, const ms_stack_best *best,
                      const ms_stack_best *ceiling)
{
    ms_jout_key(out, "over_ceiling");
    if (best->plan == NULL || ceiling->outcome != MS_STACK_FOUND) {
        ms_jout_null(out);
        return;
    }
    ms_step_gap gap = ms_step_gap_of(best->prediction, ceiling->prediction);
    ms_jout_begin_object(out);
    ms_jout_number_field(out, "step_s", gap.step_s);
    ms_step_time_write_fields(out, gap.compute_s, gap.exposed_comm_s, gap.bubble_s,
                              gap.optimizer_s, gap.host_s);
    ms_jout_end_object(out);
}

static void write_stack(ms_jout *out, const ms_stack_best *best,
                        const ms_stack_best *ceiling)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "stack", best->stack);
    ms_jout_text_field(out, "status", ms_stack_outcome_names[best->outcome]);
    write_best(out, best);
    ms_jout_number_field(out, "fastest_step_s", best->fastest_s);
    ms_jout_text_field(out, "reason", best->reason);
    if (best->search != NULL)
        ms_search_write_certificate(out, best->search);
    ms_jout_begin_array_field(out, "broken_rules_of_ceiling");
    for (int i = 0; i < best->refused.num && ceiling->outcome == MS_STACK_FOUND; i++)
        ms_jout_text(out, best->refused.rules[i]->name);
    ms_jout_end_array(out);
    write_gap(out, best, ceiling);
    ms_jout_end_object(out);
}

static void write_ceiling(ms_jout *out, const ms_stack_best *ceiling)
{
    ms_jout_begin_object_field(out, "ceiling");
    ms_jout_text_field(out, "stack", ceiling->stack);
    ms_jout_text_field(out, "status", ms_stack_outcome_names[ceiling->outcome]);
    ms_jout_key(out, "step_s");
    if (ceiling->plan == NULL)
        ms_jout_null(out);
    else
        ms_jout_number(out, ceiling->prediction->step_s);
    ms_jout_key(out, "plan");
    if (ceiling->plan == NULL)
        ms_jout_null(out);
    else
        ms_plan_write_json(out, ceiling->plan);
    ms_jout_text_field(out, "reason", ceiling->reason);
    if (ceiling->search != NULL)
        ms_search_write_certificate(out, ceiling->search);
    ms_jout_end_object(out);
}

void ms_stacks_write_json(ms_jout *out, const ms_stacks_report *report)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "schema", "meshsim.search/1");
    ms_search_write_inputs(out, report->inputs, NULL);
    ms_jout_number_field(out, "elapsed_s", report->elapsed_s);
    ms_jout_number_field(out, "threads", report->inputs->num_threads);
    write_ceiling(out, &report->ceiling);
    ms_jout_begin_array_field(out, "stacks");
    for (int i = 0; i < report->num_stacks; i++)
        write_stack(out, &report->stacks[i], &report->ceiling);
    ms_jout_end_array(out);
    ms_jout_end_object(out);
}
