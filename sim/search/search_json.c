#include "sim/search/search_report.h"

#include "base/options.h"
#include "sim/search/ties.h"

#include <math.h>
#include <string.h>

#define MS_MOST_COMPARED                                                                 \
    100 /* longest list whose plans are all compared with each other */

void ms_search_reasons(const ms_counts *counts,
                       ms_search_reason reasons[MS_NUM_SEARCH_REASONS])
{
    int num = 0;
    for (int i = MS_LEGAL + 1; i < MS_NUM_REFUSALS; i++)
        reasons[num++] = (ms_search_reason){ms_refusal_names[i], counts->refused[i]};
    reasons[num++] = (ms_search_reason){"memory", counts->over_memory};
    reasons[num++] = (ms_search_reason){"bound", counts->over_bound};
    reasons[num] = (ms_search_reason){"dominated", counts->dominated};
}

double ms_search_best_step_s(const ms_search_report *report)
{
    int fastest = ms_search_fastest(report->result);
    return fastest < 0 ? (double)NAN : report->predictions[fastest].replay_step_s;
}

double ms_search_faster_probability(const ms_search_report *report, int a, int b)
{
    const ms_found *found = report->result->found;
    return ms_faster_probability(report->ranking, found[a].step_s, found[b].step_s, NULL);
}

void ms_search_write_inputs(ms_jout *out, const ms_search_report *report,
                            const char *stack)
{
    const ms_plan *base = &report->space->base;
    ms_jout_text_field(out, "model", base->model);
    ms_jout_text_field(out, "cluster", base->cluster);
    ms_jout_text_field(out, "stack", stack);
    ms_jout_number_field(out, "gpus", (double)base->gpus);
    ms_jout_number_field(out, "sequence_length", (double)base->sequence_length);
    ms_jout_number_field(out, "global_batch", (double)base->global_batch);
    ms_jout_text_field(out, "compute", ms_dtype_names[base->compute]);
    ms_jout_text_field(out, "limits", report->limits);
    ms_jout_number_field(out, "min_fit", report->memory->rule.min_probability);
    ms_jout_number_field(out, "memory_limit_bytes", report->memory->limit_bytes);
}

static void write_space(ms_jout *out, const ms_search_report *report)
{
    const ms_search_result *result = report->result;
    ms_rule_count broken[MS_MAX_RULES];
    int num_broken = ms_count_broken_rules(&result->counts, report->rules, broken);
    ms_search_reason reasons[MS_NUM_SEARCH_REASONS];
    ms_search_reasons(&result->counts, reasons);
    ms_jout_begin_object_field(out, "space");
    ms_jout_number_field(out, "meshes", (double)result->num_meshes);
    ms_jout_number_field(out, "configurations", (double)result->counts.configurations);
    ms_jout_number_field(out, "evaluated", (double)result->counts.evaluated);
    ms_jout_number_field(out, "replayed", (double)result->counts.replayed);
    ms_jout_number_field(out, "meshes_over_bound",
                         (double)result->counts.meshes_over_bound);
    ms_jout_number_field(out, "schedules_over_bound",
                         (double)result->counts.schedules_over_bound);
    ms_jout_begin_object_field(out, "rejected");
    for (int i = 0; i < MS_NUM_SEARCH_REASONS; i++)
        ms_jout_number_field(out, reasons[i].name, (double)reasons[i].count);
    ms_jout_end_object(out);
    ms_jout_begin_object_field(out, "broken_rules");
    for (int i = 0; i < num_broken; i++)
        ms_jout_number_field(out, broken[i].name, (double)broken[i].count);
    ms_jout_end_object(out);
    ms_jout_end_object(out);
}

void ms_search_write_certificate(ms_jout *out, const ms_search_report *report)
{
    ms_jout_begin_object_field(out, "certificate");
    ms_jout_bool_field(out, "optimal", report->result->optimal);
    ms_jout_number_field(out, "best_step_s", ms_search_best_step_s(report));
    if (!isnan(report->result->balanced_step_s))
        ms_jout_number_field(out, "balanced_step_s", report->result->balanced_step_s);
    ms_jout_number_field(out, "smallest_open_bound_s",
                         report->result->smallest_open_bound_s);
    ms_jout_end_object(out);
}

/* Writes the place of plan `i` among the plans that predictions cannot tell apart, and
 * the probability that it is faster than each listed plan; null for itself. */
static void write_tie(ms_jout *out, const ms_search_report *report, int i)
{
    const ms_search_result *result = report->result;
    ms_jout_number_field(out, "gap_frac", result->ties[i].gap_frac);
    ms_jout_number_field(out, "tie_group", result->ties[i].group);
    ms_jout_bool_field(out, "fastest", result->ties[i].fastest);
    ms_jout_begin_array_field(out, "faster_probability");
    for (int k = 0; k < result->num_found && result->num_found <= MS_MOST_COMPARED; k++)
        ms_jout_number(out,
                       k == i ? (double)NAN : ms_search_faster_probability(report, i, k));
    ms_jout_end_array(out);
}

static void write_ties(ms_jout *out, const ms_search_report *report)
{
    bool by_errors = report->ranking != NULL && !report->tie_band_is_given;
    ms_jout_begin_object_field(out, "ties");
    ms_jout_number_field(out, "band_frac", report->tie_band_frac);
    ms_jout_number_field(out, "probability",
                         by_errors ? MS_TIE_PROBABILITY : (double)NAN);
    ms_jout_end_object(out);
}

static void write_plans(ms_jout *out, const ms_search_report *report)
{
    ms_jout_begin_array_field(out, "plans");
    for (int i = 0; i < report->result->num_found; i++) {
        ms_jout_begin_object(out);
        ms_jout_key(out, "plan");
        ms_plan_write_json(out, &report->plans[i]);
        ms_jout_key(out, "prediction");
        ms_prediction_write_json(out, &report->predictions[i]);
        ms_jout_number_field(out, "fits_probability",
                             report->predictions[i].fits_probability);
        ms_jout_text_field(out, "stack", report->plans[i].stack);
        write_tie(out, report, i);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
}

void ms_search_find_gains(const ms_workload *workload, const char *allowed,
                          ms_search_report *report)
{
    ms_gain all[MS_NUM_ALLOWANCES];
    report->num_gains = 0;
    if (report->result->num_found == 0)
        return;
    int num = ms_find_gains(workload, &report->plans[0], report->result->found[0].step_s,
                            report->predictions[0].peak_bytes, all);
    ms_arena *scratch = ms_arena_open();
    for (int i = 0; i < num; i++) {
        const char *rest = allowed == NULL ? "" : allowed, *name;
        bool is_allowed = false;
        while ((name = ms_list_next(scratch, &rest)) != NULL)
            is_allowed = is_allowed || strcmp(name, all[i].allowance->name) == 0;
        if (!is_allowed)
            report->gains[report->num_gains++] = all[i];
    }
    ms_arena_close(scratch);
}

static void write_gains(ms_jout *out, const ms_search_report *report)
{
    ms_jout_begin_array_field(out, "would_gain");
    for (int i = 0; i < report->num_gains; i++) {
        const ms_gain *gain = &report->gains[i];
        ms_arena *scratch = ms_arena_open();
        ms_jout_begin_object(out);
        ms_jout_text_field(out, "allow", gain->allowance->name);
        ms_jout_text_field(out, "flag", ms_allowance_flag(scratch, gain->allowance));
        ms_jout_number_field(out, "step_s", gain->step_s);
        ms_jout_number_field(out, "gain_frac", gain->gain_frac);
        ms_jout_number_field(out, "peak_bytes", gain->peak_bytes);
        ms_jout_bool_field(out, "fits", gain->fits);
        ms_jout_end_object(out);
        ms_arena_close(scratch);
    }
    ms_jout_end_array(out);
}

void ms_search_write_fields(ms_jout *out, const ms_search_report *report)
{
    ms_jout_text_field(out, "schema", "meshsim.search/1");
    ms_search_write_inputs(out, report, report->space->base.stack);
    ms_jout_number_field(out, "elapsed_s", report->result->elapsed_s);
    ms_jout_number_field(out, "threads", report->num_threads);
    if (report->result->num_found > 0)
        ms_jout_text_field(out, "engine", ms_engine_names[report->predictions[0].engine]);
    write_space(out, report);
    ms_search_write_certificate(out, report);
    write_ties(out, report);
    write_plans(out, report);
    write_gains(out, report);
    if (report->shortfall != NULL) {
        ms_jout_key(out, "shortfall");
        ms_shortfall_write_json(out, report->shortfall);
    }
    if (report->why != NULL) {
        ms_jout_key(out, "why");
        ms_why_write_json(out, report->why);
    }
}
