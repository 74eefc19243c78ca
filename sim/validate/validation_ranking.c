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

/* Adds up the measured and predicted step times of all runs with the layout of run
 * `first`. Returns how many; 0, with no sums, if an earlier run has the layout. */
static int sum_repeats(const ranked_run *runs, int num_runs, int first, double *measured,
                       double *predicted)
{
    const ms_plan *plan = &runs[first].run->plan;
    int num_repeats = 0;
    for (int i = 0; i < num_runs; i++) {
        if (!ms_plan_equal(&runs[i].run->plan, plan))
            continue;
        if (i < first)
            return 0;
        *measured += runs[i].run->measured_step_s;
        *predicted += runs[i].predicted_s;
        num_repeats++;
    }
    return num_repeats;
}

static ms_ranking_group rank_group(ms_arena *arena, const ranked_run *runs, int num_runs)
{
    double *measured = MS_NEW_ARRAY(arena, num_runs, double);
    double *predicted = MS_NEW_ARRAY(arena, num_runs, double);
    bool *over_memory = MS_NEW_ARRAY(arena, num_runs, bool);
    int num_layouts = 0;
    for (int i = 0; i < num_runs; i++) {
        double sum_measured = 0, sum_predicted = 0;
        int num_repeats = sum_repeats(runs, num_runs, i, &sum_measured, &sum_predicted);
        if (num_repeats == 0)
            continue;
        measured[num_layouts] = sum_measured / num_repeats;
        over_memory[num_layouts] = runs[i].over_memory;
        predicted[num_layouts++] = sum_predicted / num_repeats;
    }
    ms_rank_agreement agreement =
        ms_rank_agree(measured, predicted, over_memory, num_layouts, MS_RANKING_TIE_FRAC);
    return (ms_ranking_group){runs->group, runs->run->source, num_layouts,
                              agreement.kendall_tau, agreement.top1_regret};
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
    for (int first = 0, end; first < num_ranked; first = end) {
        end = first + 1;
        while (end < num_ranked && strcmp(ranked[first].group, ranked[end].group) == 0)
            end++;
        ms_ranking_group group = rank_group(arena, &ranked[first], end - first);
        if (group.num_layouts > 1)
            groups[out->num_groups++] = group;
    }
    out->groups = groups;
    summarise(arena, out);
}
