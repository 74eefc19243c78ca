/* Prints a validation on published runs as tables. */
#include "base/print.h"
#include "cli/report/report.h"
#include "sim/step/prediction_text.h"
#include "sim/validate/validation_by.h"
#include "sim/validate/validation_worst.h"

#include <math.h>

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
        ms_table_cells(table, "%s\t%.4f\t%.4f\t%+.1f\t%.2f\t%.2f\t%+.1f", run->id,
                       run->measured_step_s, score->step_s,
                       100.0 * score->step_error_frac, ms_gib(run->measured_peak_bytes),
                       ms_gib(score->peak_bytes), 100.0 * score->peak_error_frac);
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

static void print_scores(FILE *out, ms_arena *arena, const char *shared,
                         const ms_source_score *scores, int num_scores)
{
    bool covered = any_covered(scores, num_scores);
    ms_table *table = MS_TABLE(arena, "Lrrrrr", shared, "runs", "median error (%)",
                               "mean (%)", "bias (%)", "p90 (%)");
    if (covered)
        MS_COLUMNS(table, "r", "in interval (%)");
    for (int i = 0; i < num_scores; i++) {
        const ms_source_score *score = &scores[i];
        ms_table_cells(table, "%s\t%d\t%.1f\t%.1f\t%+.1f\t%.1f", score->source,
                       score->num_runs, 100.0 * score->median_ape_frac,
                       100.0 * score->mean_ape_frac, 100.0 * score->bias_frac,
                       100.0 * score->p90_ape_frac);
        if (covered)
            ms_table_cells(table, "%.1f", 100.0 * score->coverage_frac);
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
    print_scores(out, arena, "source", summary->sources, summary->num_sources);
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
    ms_table *table = MS_TABLE(arena, "Lrrr", "source", "groups", "mean Kendall tau",
                               "first choice above the best, median (%)");
    for (int i = 0; i < v->num_summaries; i++) {
        const ms_ranking_summary *summary = &v->summaries[i];
        ms_table_cells(table, "%s\t%d\t%.2f\t%.1f", summary->source, summary->num_groups,
                       summary->mean_kendall_tau, 100.0 * summary->median_regret_frac);
    }
    ms_table_print(table, out);
}

static const char *lead_text(ms_arena *arena, const ms_ranking_bin *bin)
{
    double from = 100.0 * bin->from_frac, to = 100.0 * bin->to_frac;
    return isinf(to)     ? ms_arena_printf(arena, "from %.1f", from)
           : from == 0.0 ? ms_arena_printf(arena, "below %.1f", to)
                         : ms_arena_printf(arena, "%.1f to %.1f", from, to);
}

/* Prints how often the layout predicted faster was faster; the first two bins are the tie
 * band and the rest. */
static void print_pairs(FILE *out, ms_arena *arena, const ms_validation *v)
{
    if (v->num_bins == 0)
        return;
    ms_print(
        out,
        "\npairs of layouts of one workload and stack: is the one predicted faster "
        "the faster one? Means over sources, each expected by the errors of the others\n");
    ms_table *table = MS_TABLE(arena, "lrrrrr", "lead (%)", "pairs", "sources",
                               "expected (%)", "measured (%)", "of all pairs (%)");
    for (int i = 0; i < v->num_bins; i++) {
        const ms_ranking_bin *bin = &v->bins[i];
        if (bin->num_sources > 0) {
            ms_table_cells(table, "%s%s\t%d\t%d\t%.0f\t%.0f\t%.0f",
                           i == 0   ? "in the tie band: "
                           : i == 1 ? "beyond it: "
                                    : "",
                           lead_text(arena, bin), bin->num_pairs, bin->num_sources,
                           100.0 * bin->expected_frac, 100.0 * bin->right_frac,
                           100.0 * bin->all_right_frac);
        }
    }
    ms_table_print(table, out);
}

static void print_ranking(FILE *out, ms_arena *arena, const ms_validation *v)
{
    if (v->num_groups == 0)
        return;
    ms_print(out, "\nlayouts in the order of their speed\n");
    ms_table *table = MS_TABLE(arena, "Lrrr", "group", "layouts", "Kendall tau",
                               "first choice above the best (%)");
    int num_small = 0;
    for (int i = 0; i < v->num_groups; i++) {
        const ms_ranking_group *group = &v->groups[i];
        if (group->num_layouts < MS_RANKING_LAYOUTS) {
            num_small++;
            continue;
        }
        ms_table_cells(table, "%s\t%d\t%.2f\t%.1f", group->group, group->num_layouts,
                       group->kendall_tau, 100.0 * group->top1_regret_frac);
    }
    ms_table_print(table, out);
    if (num_small > 0)
        ms_print(out, "%d groups of fewer than %d layouts: see --json\n", num_small,
                 MS_RANKING_LAYOUTS);
    print_ranking_summaries(out, arena, v);
    print_pairs(out, arena, v);
}

static void print_groupings(FILE *out, ms_arena *arena, const ms_validation *v)
{
    for (int i = 0; i < 2 * v->num_groupings; i++) {
        const ms_pubrun_grouping *g = &v->groupings[i / 2];
        bool of_memory = i % 2 == 1;
        int num_scores = of_memory ? g->num_memory : g->num_time;
        if (num_scores == 0)
            continue;
        ms_print(out, "\n%s by %s\n", of_memory ? "peak memory" : "step time", g->key);
        print_scores(out, arena, g->key, of_memory ? g->memory : g->time, num_scores);
    }
}

static void print_repeats(ms_table *table, ms_run_repeats others)
{
    if (others.num <= 1)
        ms_table_cells(table, "%.2f", others.least_s);
    else
        ms_table_cell(table, "%.2f to %.2f", others.least_s, others.most_s);
}

static void print_worst(FILE *out, ms_arena *arena, const ms_validation *v)
{
    if (v->num_worst == 0)
        return;
    ms_print(out,
             "\nthe worst step times (%d), with the components of the prediction; MFU as "
             "measured; others: measured step times of the same layout (s)\n",
             v->num_worst);
    ms_table *table = MS_TABLE(arena, "lrrrr9r9", "id", "measured (s)", "predicted (s)",
                               "error (%)", "MFU (%)", "others");
    for (int component = 0; component < MS_NUM_STEP_COMPONENTS; component++)
        MS_COLUMNS(table, "r", ms_step_components[component].title);
    MS_COLUMNS(table, "L8L", "workload", "layout");
    for (int i = 0; i < v->num_worst; i++) {
        const ms_pubrun *run = &v->runs->runs[v->worst[i]];
        const ms_pubrun_score *score = &v->scores[v->worst[i]];
        ms_table_cells(table, "%s\t%.2f\t%.2f\t%+.1f\t%.1f", run->id,
                       run->measured_step_s, score->step_s,
                       100.0 * score->step_error_frac,
                       100.0 * ms_measured_mfu_frac(v, v->worst[i]));
        print_repeats(table, ms_run_repeats_of(v, v->worst[i]));
        for (int component = 0; component < MS_NUM_STEP_COMPONENTS; component++)
            ms_table_cells(table, "%.1f",
                           100.0 * ms_step_component_frac(score, component));
        ms_table_cells(table, "%s, %ld x %s, batch %ld\t%s", run->model_text,
                       run->plan.gpus, run->gpu_type, run->plan.global_batch,
                       ms_plan_text(arena, &run->plan));
    }
    ms_table_print(table, out);
}

static void print_memory_facts(FILE *out, ms_arena *arena, const ms_validation *v)
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
    ms_fits_capacities_print(out, arena, v->capacities);
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

static void print_measurement(FILE *out, ms_arena *arena, const ms_validation *v,
                              ms_measurement measurement)
{
    bool of_peak = measurement == MS_MEASURED_PEAK;
    print_sources(out, arena, ms_measurement_names[measurement],
                  of_peak ? &v->memory : &v->time);
    if (of_peak)
        print_memory_facts(out, arena, v);
}

void ms_validation_print_of(FILE *out, ms_arena *arena, const ms_validation *v,
                            ms_measurement measurement)
{
    if (measurement == MS_MEASURED_STEP)
        print_count(out, v);
    print_measurement(out, arena, v, measurement);
    if (measurement == MS_MEASURED_STEP)
        print_ranking(out, arena, v);
}

static void print_breaches(FILE *out, ms_arena *arena, const ms_rule_breaches *breaches)
{
    if (breaches->num == 0)
        return;
    ms_print(out, "\nlayouts that ran, but that a rule of their stack refuses, of %d\n",
             breaches->num_checked);
    ms_table *table = MS_TABLE(arena, "llrl", "stack", "rule", "runs", "first");
    for (int i = 0; i < breaches->num; i++)
        ms_table_cells(table, "%s\t%s\t%d\t%s", breaches->of[i].stack,
                       breaches->of[i].rule, breaches->of[i].num_runs,
                       breaches->of[i].first_id);
    ms_table_print(table, out);
}

void ms_validation_print(FILE *out, ms_arena *arena, const ms_validation *v, bool rows)
{
    if (rows && v->num_priced > 0)
        print_rows(out, arena, v);
    print_count(out, v);
    print_measurement(out, arena, v, MS_MEASURED_STEP);
    print_measurement(out, arena, v, MS_MEASURED_PEAK);
    ms_fits_print(out, arena, v->fits);
    print_breaches(out, arena, &v->breaches);
    print_ranking(out, arena, v);
    print_groupings(out, arena, v);
    print_worst(out, arena, v);
    ms_skipped skipped = ms_pubruns_skipped(arena, v->runs);
    ms_skipped_print(out, arena, &skipped);
}
