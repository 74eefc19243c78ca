/* Makes error spreads of fitted runs, which are judged twice: as if their source were
 * unknown, and as if their model were new to a known source. */
#include "sim/validate/pubrun_spread.h"

#include "sim/step/prediction.h"

#include <math.h>
#include <string.h>

/* ---- folds ---- */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool same_group(const ms_pubrun *a, const ms_pubrun *b)
{
    return same_text(a->source, b->source) && same_text(a->model_text, b->model_text) &&
           same_text(a->gpu_type, b->gpu_type);
}

void ms_pubruns_fold(const ms_pubruns *runs, int *fold_of)
{
    int num_groups = 0;
    for (int i = 0; i < runs->num_runs; i++) {
        fold_of[i] = -1;
        for (int j = i - 1; j >= 0 && fold_of[i] < 0; j--)
            if (same_group(&runs->runs[i], &runs->runs[j]))
                fold_of[i] = fold_of[j];
        if (fold_of[i] < 0)
            fold_of[i] = num_groups++ % MS_SPREAD_FOLDS;
    }
}

ms_status ms_pubruns_fit_cross_validate_folds(ms_ctx *cx, ms_pubruns_fit *fit,
                                              ms_pubrun_score *scores)
{
    int num_runs = fit->runs->num_runs;
    int *fold_of = MS_NEW_ARRAY(cx->arena, num_runs, int);
    ms_pubruns_fit folds = *fit; /* a copy of the fit whose sources are folds of runs */
    ms_pubruns_fold(fit->runs, fold_of);
    for (int i = 0; i < num_runs; i++)
        if (fit->source_of[i] < 0)
            fold_of[i] = -1;
    folds.source_of = fold_of;
    folds.num_sources = MS_SPREAD_FOLDS;
    return ms_pubruns_fit_cross_validate(cx, &folds, scores);
}

/* ---- spread ---- */

static double log_error(const ms_pubrun_score *score, ms_measurement measurement)
{
    return -log1p(ms_score_error_frac(score, measurement));
}

/* Runs, their folds and both scores, from which error spreads are made. */
typedef struct problem {
    ms_arena *arena;
    const ms_pubruns *runs;
    const int *fold_of;
    ms_measurement measurement;
    ms_pubrun_score *new_scores, *known_scores;
} problem;

static long class_gpus(const ms_pubrun *run, ms_measurement measurement)
{
    return measurement == MS_MEASURED_PEAK ? MS_PEAK_CLASS_GPUS : run->plan.gpus;
}

static ms_error_spread make_spread_without(const problem *p, int left_out,
                                           double prior_sources)
{
    const ms_pubruns *runs = p->runs;
    ms_error_row *rows = MS_NEW_ARRAY(p->arena, runs->num_runs, ms_error_row);
    int num_rows = 0;
    for (int i = 0; i < runs->num_runs; i++) {
        const ms_pubrun *run = &runs->runs[i];
        double new_error = log_error(&p->new_scores[i], p->measurement),
               known_error = log_error(&p->known_scores[i], p->measurement);
        if (isfinite(new_error) && isfinite(known_error) && p->fold_of[i] != left_out)
            rows[num_rows++] = (ms_error_row){
                run->id,   run->source, run->plan.stack, class_gpus(run, p->measurement),
                new_error, known_error};
    }
    return ms_error_spread_make(p->arena, rows, num_rows, prior_sources);
}

static void set_interval(const ms_error_spread *spread, const ms_error_class *class,
                         ms_measurement measurement, ms_pubrun_score *score)
{
    ms_error_interval interval = ms_error_spread_interval(spread, class);
    ms_score_interval ends = ms_score_interval_of(score, measurement);
    double predicted = ms_score_predicted(score, measurement);
    *ends.low = predicted * interval.low_frac;
    *ends.high = predicted * interval.high_frac;
}

void ms_pubruns_spread_apply(const ms_pubruns *runs, const ms_error_spread *spread,
                             ms_measurement measurement, ms_pubrun_score *scores)
{
    for (int i = 0; i < runs->num_runs; i++) {
        const ms_pubrun *run = &runs->runs[i];
        if (!scores[i].priced || isnan(ms_pubrun_measured(run, measurement)))
            continue;
        bool fitted = ms_error_spread_has(spread, run->source, run->id);
        const ms_error_class class = {run->plan.stack, class_gpus(run, measurement),
                                      fitted ? run->source : NULL};
        set_interval(spread, &class, measurement, &scores[i]);
        if (measurement == MS_MEASURED_PEAK)
            scores[i].peak_rank_frac = ms_error_spread_frac_below(
                spread, &class, run->measured_peak_bytes / scores[i].peak_bytes);
    }
}

/* Sets the intervals of each fold's runs by the spread of the other folds, which hold the
 * other runs of the same sources. */
static void set_fold_intervals(const problem *p, double prior_sources)
{
    for (int fold = 0; fold < MS_SPREAD_FOLDS; fold++) {
        ms_error_spread others = make_spread_without(p, fold, prior_sources);
        for (int i = 0; i < p->runs->num_runs; i++) {
            const ms_pubrun *run = &p->runs->runs[i];
            const ms_error_class class = {run->plan.stack,
                                          class_gpus(run, p->measurement), NULL};
            if (p->fold_of[i] == fold && p->known_scores[i].priced)
                set_interval(&others, &class, p->measurement, &p->known_scores[i]);
        }
    }
}

/* ---- score ---- */

static double interval_score(const ms_pubrun *run, ms_measurement measurement,
                             const ms_pubrun_score *score)
{
    ms_pubrun_score copy = *score;
    ms_score_interval ends = ms_score_interval_of(&copy, measurement);
    double low = log(*ends.low), high = log(*ends.high),
           measured = log(ms_pubrun_measured(run, measurement));
    double outside = fmax(low - measured, 0.0) + fmax(measured - high, 0.0);
    return high - low + 2.0 / (1.0 - MS_INTERVAL_FRAC) * outside;
}

double ms_pubruns_interval_score(const ms_pubruns *runs, ms_measurement measurement,
                                 const ms_pubrun_score *scores)
{
    double sum = 0.0;
    int num_sources = 0;
    for (int first = 0; first < runs->num_runs; first++) {
        double of_source = 0.0;
        int num = 0;
        for (int i = 0; i < runs->num_runs; i++) {
            if (!same_text(runs->runs[i].source, runs->runs[first].source))
                continue;
            if (i < first) /* this source was counted at an earlier run */
                break;
            double score = interval_score(&runs->runs[i], measurement, &scores[i]);
            of_source += isnan(score) ? 0.0 : score;
            num += !isnan(score);
        }
        sum += num > 0 ? of_source / num : 0.0;
        num_sources += num > 0;
    }
    return sum / num_sources; /* NaN (0 / 0) if no run has an interval */
}

static ms_error_spread make_and_apply(const problem *p, double prior_sources)
{
    ms_error_spread spread = make_spread_without(p, -1, prior_sources);
    ms_pubruns_spread_apply(p->runs, &spread, p->measurement, p->new_scores);
    set_fold_intervals(p, prior_sources);
    return spread;
}

ms_error_spread ms_pubruns_spread_make(ms_arena *arena, const ms_pubruns *runs,
                                       ms_measurement measurement,
                                       ms_pubrun_score *new_scores,
                                       ms_pubrun_score *known_scores)
{
    int *fold_of = MS_NEW_ARRAY(arena, runs->num_runs, int);
    const problem p = {arena, runs, fold_of, measurement, new_scores, known_scores};
    double best = 1.0, least = INFINITY;
    ms_pubruns_fold(runs, fold_of);
    for (int prior = 1; prior <= 16; prior *= 2) {
        (void)make_and_apply(&p, prior);
        double score = ms_pubruns_interval_score(runs, measurement, new_scores) +
                       ms_pubruns_interval_score(runs, measurement, known_scores);
        if (score < least) {
            least = score;
            best = prior;
        }
    }
    return make_and_apply(&p, best);
}
