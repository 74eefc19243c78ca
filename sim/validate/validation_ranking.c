/* Ranks layouts: whether predictions order the layouts of one workload as measured. */
#include "costmodel/calibrate/statistics.h"
#include "sim/validate/validation_priv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct ranked_run {
    const char *group;
    const ms_pubrun *run;
    double predicted_s;
    bool over_memory;
} ranked_run;

const char *ms_or_unstated(const char *text)
{
    return text == NULL ? "-" : text;
}

const char *ms_pubrun_workload_text(ms_arena *arena, const ms_pubrun *run)
{
    return ms_arena_printf(arena, "%s: %s, %ld x %s, %s, seq %ld, batch %ld", run->source,
                           run->model_text, run->plan.gpus, run->gpu_type,
                           ms_or_unstated(run->precision), run->plan.sequence_length,
                           run->plan.global_batch);
}

static int compare_groups(const void *a, const void *b)
{
    const ranked_run *x = a, *y = b;
    int order = strcmp(x->group, y->group);
    return order != 0 ? order : (x->run > y->run) - (x->run < y->run);
}

/* One layout of a group, with the mean step times of its repeated runs. */
typedef struct layout {
    const ms_pubrun *run; /* the first of them */
    double measured_s, predicted_s;
    bool over_memory;
} layout;

/* Adds up the measured and predicted step times of all runs with the layout of run
 * `first`. Returns how many; 0, with no sums, if an earlier run has the layout. */
static int sum_repeats(const ranked_run *runs, int num_runs, int first, layout *sum)
{
    const ms_plan *plan = &runs[first].run->plan;
    int num_repeats = 0;
    for (int i = 0; i < num_runs; i++) {
        if (!ms_plan_equal(&runs[i].run->plan, plan))
            continue;
        if (i < first)
            return 0;
        sum->measured_s += runs[i].run->measured_step_s;
        sum->predicted_s += runs[i].predicted_s;
        num_repeats++;
    }
    return num_repeats;
}

/* Lists the layouts of a group of runs; returns their number. */
static int list_layouts(const ranked_run *runs, int num_runs, layout *layouts)
{
    int num_layouts = 0;
    for (int i = 0; i < num_runs; i++) {
        layout sum = {.run = runs[i].run, .over_memory = runs[i].over_memory};
        int num_repeats = sum_repeats(runs, num_runs, i, &sum);
        if (num_repeats == 0)
            continue;
        sum.measured_s /= num_repeats;
        sum.predicted_s /= num_repeats;
        layouts[num_layouts++] = sum;
    }
    return num_layouts;
}

static ms_ranking_group rank_group(ms_arena *arena, const char *name,
                                   const layout *layouts, int num_layouts)
{
    double *measured = MS_NEW_ARRAY(arena, num_layouts, double);
    double *predicted = MS_NEW_ARRAY(arena, num_layouts, double);
    bool *over_memory = MS_NEW_ARRAY(arena, num_layouts, bool);
    for (int i = 0; i < num_layouts; i++) {
        measured[i] = layouts[i].measured_s;
        predicted[i] = layouts[i].predicted_s;
        over_memory[i] = layouts[i].over_memory;
    }
    ms_rank_agreement agreement =
        ms_rank_agree(measured, predicted, over_memory, num_layouts, MS_RANKING_TIE_FRAC);
    return (ms_ranking_group){name, layouts->run->source, num_layouts,
                              agreement.kendall_tau, agreement.top1_regret};
}

/* ---- pairs of layouts ---- */

/* Adds the pairs of a group whose layouts are of one stack. Each layout counts once in
 * its source's weights, however many pairs it is in. */
static void add_pairs(ms_arena *arena, const layout *layouts, int num_layouts,
                      ms_ranking_pairs *out)
{
    for (int i = 0; i < num_layouts; i++) {
        for (int j = 0; j < i; j++) {
            const layout *a = &layouts[i], *b = &layouts[j];
            if (strcmp(a->run->plan.stack, b->run->plan.stack) != 0)
                continue;
            MS_MAKE_ROOM(arena, out->of, out->num, out->capacity, 256);
            out->of[out->num++] =
                (ms_ranking_pair){a->run->source, log(a->predicted_s / b->predicted_s),
                                  log(a->measured_s / b->measured_s), 2.0 / num_layouts};
        }
    }
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const ms_ranking_pair *)a)->source,
                  ((const ms_ranking_pair *)b)->source);
}

static bool is_in_bin(const ms_ranking_bin *bin, const ms_ranking_pair *pair)
{
    double gap_frac = expm1(fabs(pair->predicted));
    return gap_frac >= bin->from_frac && gap_frac < bin->to_frac;
}

/* 1 if the layout predicted faster was measured faster, 0 if slower, 1/2 if neither. */
static double is_right(const ms_ranking_pair *pair)
{
    double product = pair->predicted * pair->measured;
    return product > 0.0 ? 1.0 : product < 0.0 ? 0.0 : 0.5;
}

/* Adds the pairs of one source to a bin, whose fractions are still sums over sources. */
static void add_source(const ms_ranking_spread *spread, const ms_ranking_pair *pairs,
                       int num_pairs, ms_ranking_bin *bin)
{
    double expected = 0.0, right = 0.0, weights = 0.0;
    for (int i = 0; i < num_pairs; i++) {
        if (!is_in_bin(bin, &pairs[i]))
            continue;
        double lead = exp(fabs(pairs[i].predicted)), weight = pairs[i].weight;
        expected += weight * ms_faster_probability(spread, 1.0, lead, pairs[i].source);
        right += weight * is_right(&pairs[i]);
        weights += weight;
        bin->all_right_frac += is_right(&pairs[i]);
        bin->num_pairs++;
    }
    if (weights == 0.0)
        return;
    bin->expected_frac += expected / weights;
    bin->right_frac += right / weights;
    bin->num_sources++;
}

void ms_validation_judge_pairs(ms_arena *arena, const ms_ranking_spread *spread,
                               ms_validation *out)
{
    double band = ms_tie_band_frac(spread, MS_TIE_PROBABILITY);
    const double ends[MS_RANKING_BINS][2] = {{0.0, band},  {band, INFINITY}, {0.0, 0.01},
                                             {0.01, 0.02}, {0.02, 0.05},     {0.05, 0.1},
                                             {0.1, 0.25},  {0.25, INFINITY}};
    const ms_ranking_pairs *pairs = &out->pairs;
    if (spread == NULL || pairs->num == 0)
        return;
    ms_ranking_bin *bins = MS_NEW_ARRAY(arena, MS_RANKING_BINS, ms_ranking_bin);
    for (int k = 0; k < MS_RANKING_BINS; k++) {
        bins[k] = (ms_ranking_bin){.from_frac = ends[k][0], .to_frac = ends[k][1]};
        for (int first = 0, end; first < pairs->num; first = end) {
            for (end = first + 1; end < pairs->num &&
                                  compare_names(&pairs->of[first], &pairs->of[end]) == 0;)
                end++;
            add_source(spread, &pairs->of[first], end - first, &bins[k]);
        }
        bins[k].expected_frac /= bins[k].num_sources; /* NaN (0 / 0) without sources */
        bins[k].right_frac /= bins[k].num_sources;
        bins[k].all_right_frac /= bins[k].num_pairs;
    }
    out->bins = bins;
    out->num_bins = MS_RANKING_BINS;
}

/* ---- summaries by source ---- */

static int compare_sources(const void *a, const void *b)
{
    const ms_ranking_group *x = a, *y = b;
    return strcmp(x->source, y->source);
}

static ms_ranking_summary summary_of(ms_arena *arena, const ms_ranking_group *groups,
                                     int num_groups)
{
    double *regrets = MS_NEW_ARRAY(arena, num_groups, double), sum_tau = 0;
    int num_taus = 0;
    for (int i = 0; i < num_groups; i++) {
        regrets[i] = groups[i].top1_regret_frac;
        if (isnan(groups[i].kendall_tau))
            continue;
        sum_tau += groups[i].kendall_tau;
        num_taus++;
    }
    return (ms_ranking_summary){groups->source, num_groups, sum_tau / num_taus,
                                ms_quantile(regrets, num_groups, 0.5)};
}

static void summarise(ms_arena *arena, ms_validation *out)
{
    ms_ranking_group *large = MS_NEW_ARRAY(arena, out->num_groups, ms_ranking_group);
    ms_ranking_summary *summaries =
        MS_NEW_ARRAY(arena, out->num_groups, ms_ranking_summary);
    int num_large = 0;
    for (int i = 0; i < out->num_groups; i++)
        if (out->groups[i].num_layouts >= MS_RANKING_LAYOUTS)
            large[num_large++] = out->groups[i];
    if (num_large > 1)
        qsort(large, (size_t)num_large, sizeof *large, compare_sources);
    for (int first = 0, end; first < num_large; first = end) {
        end = first + 1;
        while (end < num_large && compare_sources(&large[first], &large[end]) == 0)
            end++;
        summaries[out->num_summaries++] = summary_of(arena, &large[first], end - first);
    }
    out->summaries = summaries;
}

void ms_validation_rank(ms_arena *arena, ms_validation *out)
{
    const ms_pubruns *runs = out->runs;
    const ms_pubrun_score *scores = out->scores;
    ranked_run *ranked = MS_NEW_ARRAY(arena, runs->num_runs, ranked_run);
    int num_ranked = 0;
    for (int i = 0; i < runs->num_runs; i++) {
        const ms_pubrun *run = &runs->runs[i];
        if (!isnan(scores[i].step_error_frac))
            ranked[num_ranked++] = (ranked_run){ms_pubrun_workload_text(arena, run), run,
                                                scores[i].step_s, scores[i].over_memory};
    }
    if (num_ranked > 1)
        qsort(ranked, (size_t)num_ranked, sizeof *ranked, compare_groups);
    ms_ranking_group *groups = MS_NEW_ARRAY(arena, num_ranked, ms_ranking_group);
    layout *layouts = MS_NEW_ARRAY(arena, num_ranked, layout);
    for (int first = 0, end; first < num_ranked; first = end) {
        end = first + 1;
        while (end < num_ranked && strcmp(ranked[first].group, ranked[end].group) == 0)
            end++;
        int num_layouts = list_layouts(&ranked[first], end - first, layouts);
        if (num_layouts < 2)
            continue;
        groups[out->num_groups++] =
            rank_group(arena, ranked[first].group, layouts, num_layouts);
        add_pairs(arena, layouts, num_layouts, &out->pairs);
    }
    if (out->pairs.num > 1)
        qsort(out->pairs.of, (size_t)out->pairs.num, sizeof *out->pairs.of,
              compare_names);
    out->groups = groups;
    summarise(arena, out);
}
