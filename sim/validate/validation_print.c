/* Prints a validation as meshsim.validation/1 and as tables for people. */
#include "base/print.h"
#include "sim/validate/pubrun_measurement.h"
#include "sim/validate/score_print.h"
#include "sim/validate/validation_by.h"
#include "sim/validate/validation_priv.h"
#include "sim/validate/validation_worst.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_PER_GIB 1073741824.0

/* ---- JSON ---- */

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

static void write_memory(ms_jout *out, const ms_error_summary *summary)
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
    write_memory(out, &v->memory);
    write_ranking(out, v);
    ms_pubrun_groupings_write_json(out, v);
    ms_worst_write_json(out, v);
    ms_jout_begin_array_field(out, "runs");
    for (int i = 0; i < v->runs->num_runs; i++)
        if (v->scores[i].priced)
            write_run(out, &v->runs->runs[i], &v->scores[i]);
    ms_jout_end_array(out);
    ms_jout_end_object(out);
}

/* ---- text ---- */

static void print_rows(FILE *out, ms_arena *arena, const ms_validation *v)
{
    ms_table *table =
        MS_TABLE(arena, "lrrrrrr", "id", "measured (s)", "predicted (s)", "error (%)",
                 "measured (GiB)", "predicted (GiB)", "error (%)");
    for (int i = 0; i < v->runs->num_runs; i++) {
        const ms_pubrun *run = &v->runs->runs[i];
        const ms_pubrun_score *score = &v->scores[i];
        if (!score->priced)
            continue;
        ms_table_cell(table, "%s", run->id);
        ms_number_cell(table, 4, run->measured_step_s);
        ms_number_cell(table, 4, score->step_s);
        ms_signed_percent_cell(table, score->step_error_frac);
        ms_number_cell(table, 2, run->measured_peak_bytes / BYTES_PER_GIB);
        ms_number_cell(table, 2, score->peak_bytes / BYTES_PER_GIB);
        ms_signed_percent_cell(table, score->peak_error_frac);
    }
    ms_table_print(table, out);
    fputc('\n', out);
}

void ms_coverage_print(FILE *out, const ms_error_summary *summary)
{
    ms_print(out, "%.1f %% of the measurements lie within, as a mean over sources",
             100.0 * summary->macro_coverage_frac);
    if (!isnan(summary->macro_coverage.low))
        ms_print(out, " (%.1f to %.1f by bootstrap over sources)",
                 100.0 * summary->macro_coverage.low,
                 100.0 * summary->macro_coverage.high);
    ms_print(out, "; %.1f %% of all measurements\n", 100.0 * summary->run_coverage_frac);
}

static bool any_covered(const ms_source_score *scores, int num_scores)
{
    for (int i = 0; i < num_scores; i++)
        if (!isnan(scores[i].coverage_frac))
            return true;
    return false;
}

void ms_validation_print_scores(FILE *out, ms_arena *arena, const char *shared,
                                const ms_source_score *scores, int num_scores)
{
    bool covered = any_covered(scores, num_scores);
    ms_table *table = MS_TABLE(arena, "lrrrrr", shared, "runs", "median error (%)",
                               "mean (%)", "bias (%)", "p90 (%)");
    if (covered)
        MS_COLUMNS(table, "r", "in interval (%)");
    for (int i = 0; i < num_scores; i++) {
        const ms_source_score *score = &scores[i];
        ms_table_cell(table, "%s", score->source);
        ms_table_cell(table, "%d", score->num_runs);
        ms_percent_cell(table, score->median_ape_frac);
        ms_percent_cell(table, score->mean_ape_frac);
        ms_signed_percent_cell(table, score->bias_frac);
        ms_percent_cell(table, score->p90_ape_frac);
        if (covered)
            ms_percent_cell(table, score->coverage_frac);
    }
    ms_table_print(table, out);
}

static void print_sources(FILE *out, ms_arena *arena, const char *what,
                          const ms_error_summary *summary)
{
    if (summary->num_runs == 0) {
        ms_print(out, "\n%s: no measurements\n", what);
        return;
    }
    ms_print(out,
             "\n%s by source; mean over sources: median error %.1f %%, p90 %.1f %%\n",
             what, 100.0 * summary->macro_median_ape_frac,
             100.0 * summary->macro_p90_ape_frac);
    ms_validation_print_scores(out, arena, "source", summary->sources,
                               summary->num_sources);
    if (any_covered(summary->sources, summary->num_sources)) {
        fputs("90 % intervals, made without the run's own source: ", out);
        ms_coverage_print(out, summary);
    }
}

static void print_ranking_summaries(FILE *out, ms_arena *arena, const ms_validation *v)
{
    if (v->num_summaries == 0)
        return;
    ms_print(out, "\nover the groups of a source that have at least %d layouts\n",
             MS_RANKING_LAYOUTS);
    ms_table *table = MS_TABLE(arena, "lrrr", "source", "groups", "mean Kendall tau",
                               "first choice above the best, median (%)");
    for (int i = 0; i < v->num_summaries; i++) {
        const ms_ranking_summary *summary = &v->summaries[i];
        ms_table_cell(table, "%s", summary->source);
        ms_table_cell(table, "%d", summary->num_groups);
        ms_number_cell(table, 2, summary->mean_kendall_tau);
        ms_percent_cell(table, summary->median_regret_frac);
    }
    ms_table_print(table, out);
}

static void print_ranking(FILE *out, ms_arena *arena, const ms_validation *v)
{
    if (v->num_groups == 0)
        return;
    ms_print(out, "\nlayouts in the order of their speed\n");
    ms_table *table = MS_TABLE(arena, "lrrr", "group", "layouts", "Kendall tau",
                               "first choice above the best (%)");
    int num_small = 0;
    for (int i = 0; i < v->num_groups; i++) {
        const ms_ranking_group *group = &v->groups[i];
        if (group->num_layouts < MS_RANKING_LAYOUTS) {
            num_small++;
            continue;
        }
        ms_table_cell(table, "%s", group->group);
        ms_table_cell(table, "%d", group->num_layouts);
        ms_number_cell(table, 2, group->kendall_tau);
        ms_percent_cell(table, group->top1_regret_frac);
    }
    ms_table_print(table, out);
    if (num_small > 0)
        ms_print(out, "%d groups of fewer than %d layouts: see --json\n", num_small,
                 MS_RANKING_LAYOUTS);
}

static void print_skipped(FILE *out, ms_arena *arena, const ms_pubruns *runs)
{
    ms_skipped skipped = ms_pubruns_skipped(arena, runs);
    ms_skipped_print(out, arena, &skipped);
}

static void print_memory_facts(FILE *out, const ms_validation *v)
{
    if (v->num_over_memory > 0)
        ms_print(out, "predicted not to fit the GPU they ran on: %d runs\n",
                 v->num_over_memory);
    if (v->memory.num_runs > 0) {
        ms_print(
            out,
            "more than 2 %% below the measurement: %.1f %% of the runs; more than 3 %% "
            "below: %.1f %%\n",
            100.0 * v->memory.under_frac, 100.0 * v->memory.under_3_frac);
    }
    if (v->memory.num_ranges > 0) {
        ms_print(
            out,
            "peaks predicted as a range: %d, of which %.1f %% contain the measurement "
            "within 2 %%\n",
            v->memory.num_ranges, 100.0 * v->memory.range_cover_frac);
    }
}

static void print_count(FILE *out, const ms_validation *v)
{
    ms_print(out, "%d rows, %d complete, %d predicted", v->runs->num_runs,
             v->num_complete, v->num_priced);
    if (v->num_complete > 0)
        ms_print(out, " (%.1f %% of the complete ones)",
                 100.0 * v->num_priced / v->num_complete);
    if (v->num_changed_mathematics > 0)
        ms_print(out, ", %d that change the model's mathematics left out",
                 v->num_changed_mathematics);
    fputc('\n', out);
}

static void print_time(FILE *out, ms_arena *arena, const ms_validation *v)
{
    print_sources(out, arena, ms_measurement_names[MS_MEASURED_STEP], &v->time);
}

static void print_memory(FILE *out, ms_arena *arena, const ms_validation *v)
{
    print_sources(out, arena, ms_measurement_names[MS_MEASURED_PEAK], &v->memory);
    print_memory_facts(out, v);
}

void ms_validation_print_of(FILE *out, ms_arena *arena, const ms_validation *v,
                            ms_measurement measurement)
{
    if (measurement == MS_MEASURED_PEAK) {
        print_memory(out, arena, v);
        return;
    }
    print_count(out, v);
    print_time(out, arena, v);
    print_ranking(out, arena, v);
    print_ranking_summaries(out, arena, v);
}

void ms_validation_print(FILE *out, ms_arena *arena, const ms_validation *v, bool rows)
{
    if (rows && v->num_priced > 0)
        print_rows(out, arena, v);
    print_count(out, v);
    print_time(out, arena, v);
    print_memory(out, arena, v);
    print_ranking(out, arena, v);
    print_ranking_summaries(out, arena, v);
    ms_pubrun_groupings_print(out, arena, v);
    ms_worst_print(out, arena, v);
    print_skipped(out, arena, v->runs);
}
