#include "sim/validate/fits_score.h"
#include "sim/validate/validation_by.h"
#include "sim/validate/validation_priv.h"
#include "sim/validate/validation_worst.h"

#include <math.h>

static void write_skipped(ms_jout *out, const ms_pubruns *runs)
{
    ms_jout_begin_array_field(out, "skipped");
    for (int i = 0; i < runs->num_runs; i++) {
        const ms_pubrun *run = &runs->runs[i];
        if (run->reason == NULL)
            continue;
        ms_jout_begin_object(out);
        ms_jout_text_field(out, "id", run->id);
        ms_jout_text_field(out, "reason", run->reason);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
}

void ms_validation_write_scores(ms_jout *out, const char *key, const char *name_key,
                                const ms_source_score *scores, int num_scores)
{
    ms_jout_begin_array_field(out, key);
    for (int i = 0; i < num_scores; i++) {
        const ms_source_score *score = &scores[i];
        ms_jout_begin_object(out);
        ms_jout_text_field(out, name_key, score->source);
        ms_jout_number_field(out, "n", score->num_runs);
        ms_jout_number_field(out, "mean_ape", score->mean_ape_frac);
        ms_jout_number_field(out, "median_ape", score->median_ape_frac);
        ms_jout_number_field(out, "bias", score->bias_frac);
        ms_jout_number_field(out, "p90_ape", score->p90_ape_frac);
        if (!isnan(score->coverage_frac))
            ms_jout_number_field(out, "interval_coverage_frac", score->coverage_frac);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
}

static void write_sources(ms_jout *out, const ms_error_summary *summary)
{
    ms_validation_write_scores(out, "by_source", "source", summary->sources,
                               summary->num_sources);
}

static void write_time(ms_jout *out, const ms_error_summary *summary)
{
    ms_jout_begin_object_field(out, "time");
    ms_jout_number_field(out, "macro_median_ape", summary->macro_median_ape_frac);
    ms_jout_number_field(out, "p90_ape", summary->macro_p90_ape_frac);
    ms_jout_number_field(out, "interval_coverage_frac", summary->macro_coverage_frac);
    ms_jout_number_field(out, "interval_coverage_of_runs_frac",
                         summary->run_coverage_frac);
    write_sources(out, summary);
    ms_jout_end_object(out);
}

static void write_memory(ms_jout *out, const ms_error_summary *summary,
                         const ms_fits_capacity capacities[MS_FITS_CAPACITIES])
{
    ms_jout_begin_object_field(out, "memory");
    ms_jout_number_field(out, "macro_median_ape", summary->macro_median_ape_frac);
    ms_jout_number_field(out, "under_frac", summary->under_frac);
    ms_jout_number_field(out, "under_3_frac", summary->under_3_frac);
    ms_jout_number_field(out, "ranges", summary->num_ranges);
    ms_jout_number_field(out, "range_coverage_frac", summary->range_cover_frac);
    ms_jout_number_field(out, "interval_coverage_frac", summary->macro_coverage_frac);
    ms_jout_number_field(out, "interval_coverage_of_runs_frac",
                         summary->run_coverage_frac);
    ms_fits_capacities_write_json(out, capacities);
    write_sources(out, summary);
    ms_jout_end_object(out);
}

static void write_ranking(ms_jout *out, const ms_validation *v)
{
    ms_jout_begin_array_field(out, "ranking");
    for (int i = 0; i < v->num_groups; i++) {
        const ms_ranking_group *group = &v->groups[i];
        ms_jout_begin_object(out);
        ms_jout_text_field(out, "group", group->group);
        ms_jout_number_field(out, "n", group->num_layouts);
        ms_jout_number_field(out, "kendall_tau", group->kendall_tau);
        ms_jout_number_field(out, "top1_regret", group->top1_regret_frac);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
    ms_jout_begin_array_field(out, "ranking_summary");
    for (int i = 0; i < v->num_summaries; i++) {
        const ms_ranking_summary *summary = &v->summaries[i];
        ms_jout_begin_object(out);
        ms_jout_text_field(out, "source", summary->source);
        ms_jout_number_field(out, "groups", summary->num_groups);
        ms_jout_number_field(out, "mean_kendall_tau", summary->mean_kendall_tau);
        ms_jout_number_field(out, "median_top1_regret", summary->median_regret_frac);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
}

static void write_pairs(ms_jout *out, const ms_validation *v)
{
    ms_jout_begin_array_field(out, "ranking_pairs");
    for (int i = 0; i < v->num_bins; i++) {
        const ms_ranking_bin *bin = &v->bins[i];
        ms_jout_begin_object(out);
        ms_jout_number_field(out, "from_frac", bin->from_frac);
        ms_jout_number_field(out, "to_frac", bin->to_frac);
        ms_jout_number_field(out, "pairs", bin->num_pairs);
        ms_jout_number_field(out, "sources", bin->num_sources);
        ms_jout_number_field(out, "expected_frac", bin->expected_frac);
        ms_jout_number_field(out, "right_frac", bin->right_frac);
        ms_jout_number_field(out, "all_right_frac", bin->all_right_frac);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
}

static void write_run(ms_jout *out, const ms_pubrun *run, const ms_pubrun_score *score)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "id", run->id);
    ms_jout_text_field(out, "source", run->source);
    ms_jout_text_field(out, "cluster", run->plan.cluster);
    ms_jout_text_field(out, "stack", run->plan.stack);
    ms_jout_text_field(out, "defaults", run->defaults);
    ms_jout_number_field(out, "measured_step_s", run->measured_step_s);
    ms_jout_number_field(out, "predicted_step_s", score->step_s);
    ms_jout_number_field(out, "predicted_step_low_s", score->step_low_s);
    ms_jout_number_field(out, "predicted_step_high_s", score->step_high_s);
    ms_jout_number_field(out, "step_error_frac", score->step_error_frac);
    ms_jout_bool_field(out, "predicted_to_fit", !score->over_memory);
    ms_jout_text_field(out, "status", run->unfinished ? "unfinished" : "finished");
    ms_jout_number_field(out, "fits_probability", score->fits_probability);
    ms_jout_text_field(out, "broken_rule", run->broken_rule);
    ms_jout_number_field(out, "device_bytes",
                         score->worst_peak_bytes + score->outside_bytes);
    ms_jout_number_field(out, "capacity_bytes", score->capacity_bytes);
    ms_jout_number_field(out, "measured_peak_bytes", run->measured_peak_bytes);
    ms_jout_number_field(out, "predicted_peak_bytes", score->peak_bytes);
    ms_jout_number_field(out, "predicted_peak_low_bytes", score->peak_low_bytes);
    ms_jout_number_field(out, "predicted_peak_high_bytes", score->peak_high_bytes);
    ms_jout_number_field(out, "predicted_peak_interval_low_bytes",
                         score->peak_interval_low_bytes);
    ms_jout_number_field(out, "predicted_peak_interval_high_bytes",
                         score->peak_interval_high_bytes);
    ms_jout_number_field(out, "peak_error_frac", score->peak_error_frac);
    ms_jout_end_object(out);
}

void ms_validation_write_json(ms_jout *out, const ms_validation *v)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "schema", "meshsim.validation/1");
    ms_jout_number_field(out, "rows", v->runs->num_runs);
    ms_jout_number_field(out, "complete", v->num_complete);
    ms_jout_number_field(out, "priced", v->num_priced);
    ms_jout_number_field(out, "changed_mathematics", v->num_changed_mathematics);
    write_skipped(out, v->runs);
    write_time(out, &v->time);
    write_memory(out, &v->memory, v->capacities);
    ms_fits_score_write_json(out, v->fits);
    ms_rule_breaches_write_json(out, &v->breaches);
    write_ranking(out, v);
    write_pairs(out, v);
    ms_pubrun_groupings_write_json(out, v);
    ms_worst_write_json(out, v);
    ms_jout_begin_array_field(out, "runs");
    for (int i = 0; i < v->runs->num_runs; i++)
        if (v->scores[i].priced)
            write_run(out, &v->runs->runs[i], &v->scores[i]);
    ms_jout_end_array(out);
    ms_jout_end_object(out);
}
