/* Predicts published runs and summarizes the errors, by medians rather than means since
 * published tables hold outliers. */
#include "sim/validate/validation.h"

#include "costmodel/calibrate/statistics.h"
#include "sim/step/memory_rule.h"
#include "sim/validate/fits_score.h"
#include "sim/validate/pubrun_measurement.h"
#include "sim/validate/pubrun_prices.h"
#include "sim/validate/pubrun_spread.h"
#include "sim/validate/validation_priv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void find_fits_probabilities(const ms_pubruns *runs,
                                    const ms_error_spread *peak_spread,
                                    ms_pubrun_score *scores)
{
    for (int i = 0; i < runs->num_runs; i++) {
        if (!scores[i].priced)
            continue;
        scores[i].fits_probability = ms_fits_probability(
            peak_spread, runs->runs[i].plan.stack, scores[i].worst_peak_bytes,
            scores[i].capacity_bytes - scores[i].outside_bytes);
    }
}

ms_status ms_validate(ms_ctx *cx, ms_pubruns *runs, ms_validation *out)
{
    ms_pubrun_score *scores = MS_NEW_ARRAY(cx->arena, runs->num_runs, ms_pubrun_score);
    const ms_error_spread *spread, *peak_spread;
    const ms_ranking_spread *ranking;
    MS_TRY(ms_ranking_spread_load(cx, MS_RANKING_SPREAD, &ranking));
    MS_TRY(ms_error_spread_load(cx, MS_STEP_SPREAD, &spread));
    MS_TRY(ms_error_spread_load(cx, MS_PEAK_SPREAD, &peak_spread));
    ms_pubrun_prices *prices = ms_pubrun_prices_open();
    for (int i = 0; i < runs->num_runs; i++) {
        ms_pubrun *run = &runs->runs[i];
        scores[i] = ms_pubrun_unpriced;
        if (run->reason != NULL)
            continue;
        ms_pubrun_fill_batch(cx->arena, prices, run);
        if (ms_pubrun_price(prices, run, &scores[i]) != MS_OK ||
            ms_pubrun_price_range(prices, run, &scores[i]) != MS_OK)
            run->reason = "prediction failed";
        else if (!scores[i].priced)
            run->reason = "prediction: not finite";
    }
    ms_pubrun_prices_close(prices);
    if (spread != NULL)
        ms_pubruns_spread_apply(runs, spread, MS_MEASURED_STEP, scores);
    if (peak_spread != NULL) {
        ms_pubruns_spread_apply(runs, peak_spread, MS_MEASURED_PEAK, scores);
        find_fits_probabilities(runs, peak_spread, scores);
    }
    ms_validation_summarise(cx->arena, runs, scores, out);
    ms_validation_judge_pairs(cx->arena, ranking, out);
    return MS_OK;
}

/* ---- errors by source ---- */

typedef struct error_entry {
    const char *source;
    double error_frac;
    double covered; /* 1: measurement in its interval, 0: not; NaN: no interval */
} error_entry;

/* Mean of `covered` over the entries that have an interval; NaN if none has. */
static double coverage(const error_entry *entries, int num_entries)
{
    double sum = 0.0;
    int num = 0;
    for (int i = 0; i < num_entries; i++) {
        if (isnan(entries[i].covered))
            continue;
        sum += entries[i].covered;
        num++;
    }
    return sum / num; /* NaN (0 / 0) if no entry has an interval */
}

static int compare_sources(const void *a, const void *b)
{
    const error_entry *x = a, *y = b;
    return strcmp(x->source, y->source);
}

ms_source_score ms_score_errors(ms_arena *arena, const char *name, const double *errors,
                                int num_errors)
{
    double *sorted = MS_NEW_ARRAY(arena, num_errors, double), sum = 0;
    ms_source_score score = {
        .source = name, .num_runs = num_errors, .coverage_frac = (double)NAN};
    for (int i = 0; i < num_errors; i++)
        sorted[i] = errors[i];
    score.bias_frac = ms_quantile(sorted, num_errors, 0.5);
    for (int i = 0; i < num_errors; i++) {
        sorted[i] = fabs(errors[i]);
        sum += sorted[i];
    }
    score.mean_ape_frac = sum / num_errors; /* NaN (0 / 0) without errors */
    score.median_ape_frac = ms_quantile(sorted, num_errors, 0.5);
    score.p90_ape_frac = ms_quantile(sorted, num_errors, 0.9);
    return score;
}

static ms_source_score source_score(ms_arena *arena, const char *source,
                                    const error_entry *entries, int num_entries)
{
    double *errors = MS_NEW_ARRAY(arena, num_entries, double);
    for (int i = 0; i < num_entries; i++)
        errors[i] = entries[i].error_frac;
    ms_source_score score = ms_score_errors(arena, source, errors, num_entries);
    score.coverage_frac = coverage(entries, num_entries);
    return score;
}

static int gather_errors(const ms_pubruns *runs, const ms_pubrun_score *scores,
                         ms_measurement measurement, error_entry *entries)
{
    int num_entries = 0;
    for (int i = 0; i < runs->num_runs; i++) {
        double error = ms_score_error_frac(&scores[i], measurement);
        if (!isnan(error))
            entries[num_entries++] = (error_entry){
                runs->runs[i].source, error,
                ms_score_is_covered(&runs->runs[i], &scores[i], measurement)};
    }
    if (num_entries > 1)
        qsort(entries, (size_t)num_entries, sizeof *entries, compare_sources);
    return num_entries;
}

/* Scores each source with at least MS_POOLED_SOURCES runs; all others get one score. */
static int score_sources(ms_arena *arena, const error_entry *entries, int num_entries,
                         ms_source_score *sources)
{
    error_entry *pooled = MS_NEW_ARRAY(arena, num_entries, error_entry);
    int num_sources = 0, num_pooled = 0;
    for (int first = 0, end; first < num_entries; first = end) {
        end = first + 1;
        while (end < num_entries && compare_sources(&entries[first], &entries[end]) == 0)
            end++;
        if (end - first >= MS_POOLED_SOURCES) {
            sources[num_sources++] =
                source_score(arena, entries[first].source, &entries[first], end - first);
            continue;
        }
        for (int i = first; i < end; i++)
            pooled[num_pooled++] = entries[i];
    }
    if (num_pooled > 0)
        sources[num_sources++] = source_score(arena, "pooled", pooled, num_pooled);
    return num_sources;
}

/* Finds the shares of peaks measured above the prediction, or in the predicted range. */
static void count_ranges(const ms_pubruns *runs, const ms_pubrun_score *scores,
                         ms_error_summary *out)
{
    int num_under = 0, num_under_3 = 0, num_within = 0;
    for (int i = 0; i < runs->num_runs; i++) {
        double error = scores[i].peak_error_frac,
               measured = runs->runs[i].measured_peak_bytes;
        if (isnan(error))
            continue;
        bool range = scores[i].peak_high_bytes > scores[i].peak_low_bytes;
        double high = range ? ms_pubrun_error_frac(scores[i].peak_high_bytes, measured)
                            : error,
               low = ms_pubrun_error_frac(scores[i].peak_low_bytes, measured);
        num_under += high < -MS_UNDER_FRAC;
        num_under_3 += high < -MS_UNDER_3_FRAC;
        out->num_ranges += range;
        num_within += range && high >= -MS_UNDER_FRAC && low <= MS_UNDER_FRAC;
    }
    out->under_frac = (double)num_under / out->num_runs;
    out->under_3_frac = (double)num_under_3 / out->num_runs;
    out->range_cover_frac = (double)num_within / out->num_ranges;
}

static void summarise_coverage(ms_arena *arena, const error_entry *entries,
                               ms_error_summary *out)
{
    double *covered = MS_NEW_ARRAY(arena, out->num_sources, double);
    int num = 0;
    for (int i = 0; i < out->num_sources; i++)
        if (!isnan(out->sources[i].coverage_frac))
            covered[num++] = out->sources[i].coverage_frac;
    double sum = 0.0;
    for (int i = 0; i < num; i++)
        sum += covered[i];
    out->macro_coverage_frac = sum / num; /* NaN (0 / 0) if no source has intervals */
    out->macro_coverage = ms_bootstrap_mean(covered, num);
    out->run_coverage_frac = coverage(entries, out->num_runs);
}

static ms_error_summary summarise(ms_arena *arena, const ms_pubruns *runs,
                                  const ms_pubrun_score *scores,
                                  ms_measurement measurement)
{
    error_entry *entries = MS_NEW_ARRAY(arena, runs->num_runs, error_entry);
    ms_error_summary out = {0};
    out.num_runs = gather_errors(runs, scores, measurement, entries);
    ms_source_score *sources = MS_NEW_ARRAY(arena, out.num_runs, ms_source_score);
    out.num_sources = score_sources(arena, entries, out.num_runs, sources);
    out.sources = sources;
    if (measurement == MS_MEASURED_PEAK)
        count_ranges(runs, scores, &out);
    for (int i = 0; i < out.num_sources; i++) {
        out.macro_median_ape_frac += sources[i].median_ape_frac;
        out.macro_p90_ape_frac += sources[i].p90_ape_frac;
    }
    out.macro_median_ape_frac /= out.num_sources; /* NaN (0 / 0) without sources */
    out.macro_p90_ape_frac /= out.num_sources;
    summarise_coverage(arena, entries, &out);
    return out;
}

void ms_validation_summarise(ms_arena *arena, const ms_pubruns *runs,
                             const ms_pubrun_score *scores, ms_validation *out)
{
    *out = (ms_validation){.runs = runs, .scores = scores};
    for (int i = 0; i < runs->num_runs; i++) {
        out->num_complete += runs->runs[i].complete;
        out->num_priced += scores[i].priced;
        out->num_over_memory += scores[i].over_memory && !runs->runs[i].unfinished;
        out->num_changed_mathematics += runs->runs[i].changes_mathematics;
    }
    out->time = summarise(arena, runs, scores, MS_MEASURED_STEP);
    out->memory = summarise(arena, runs, scores, MS_MEASURED_PEAK);
    ms_validation_rank(arena, out);
    ms_fits_score *fits = MS_NEW(arena, ms_fits_score);
    *fits = ms_fits_score_make(arena, runs, scores);
    out->breaches = ms_pubruns_breaches(arena, runs);
    out->fits = fits;
    ms_fits_capacities(runs, scores, out->capacities);
}
