#include "sim/runs_spread.h"

#include <math.h>
#include <string.h>

/* ---- folds ---- */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool same_group(const ms_published_run *a, const ms_published_run *b)
{
    return same_text(a->source, b->source) && same_text(a->model_text, b->model_text) &&
           same_text(a->gpu_type, b->gpu_type);
}

void ms_runs_fold(const ms_published_runs *runs, int *fold_of)
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

ms_status ms_runs_fit_cross_validate_folds(ms_ctx *cx, ms_runs_fit *fit,
                                           ms_run_score *scores)
{
    int num_runs = fit->runs->num_runs;
    int *fold_of = MS_NEW_ARRAY(cx->arena, num_runs, int);
    ms_runs_fit folds = *fit; /* its sources are the folds */
    ms_runs_fold(fit->runs, fold_of);
    for (int i = 0; i < num_runs; i++)
        if (fit->source_of[i] < 0)
            fold_of[i] = -1;
    folds.source_of = fold_of;
    folds.num_sources = MS_SPREAD_FOLDS;
    return ms_runs_fit_cross_validate(cx, &folds, scores);
}

/* ---- spread ---- */

static double log_error(const ms_run_score *score)
{
    return -log1p(score->step_error_frac);
}

ms_error_spread ms_runs_spread_make(ms_arena *arena, const ms_published_runs *runs,
                                    const ms_run_score *new_scores,
                                    const ms_run_score *known_scores, int left_out)
{
    int *fold_of = MS_NEW_ARRAY(arena, runs->num_runs, int);
    ms_error_row *rows = MS_NEW_ARRAY(arena, runs->num_runs, ms_error_row);
    int num_rows = 0;
    ms_runs_fold(runs, fold_of);
    for (int i = 0; i < runs->num_runs; i++) {
        const ms_published_run *run = &runs->runs[i];
        double new_error = log_error(&new_scores[i]),
               known_error = log_error(&known_scores[i]);
        if (isfinite(new_error) && isfinite(known_error) && fold_of[i] != left_out)
            rows[num_rows++] =
                (ms_error_row){run->id,        run->source, run->plan.stack,
                               run->plan.gpus, new_error,   known_error};
    }
    return ms_error_spread_make(arena, rows, num_rows);
}

static void apply(const ms_error_spread *spread, const ms_error_class *class,
                  ms_run_score *score)
{
    ms_error_interval interval = ms_error_spread_interval(spread, class);
    score->step_low_s = score->step_s * interval.low_frac;
    score->step_high_s = score->step_s * interval.high_frac;
}

void ms_runs_spread_apply(const ms_published_runs *runs, const ms_error_spread *spread,
                          ms_run_score *scores)
{
    for (int i = 0; i < runs->num_runs; i++) {
        const ms_published_run *run = &runs->runs[i];
        if (!scores[i].priced)
            continue;
        bool fitted = ms_error_spread_has(spread, run->source, run->id);
        const ms_error_class class = {run->plan.stack, run->plan.gpus,
                                      fitted ? run->source : NULL};
        apply(spread, &class, &scores[i]);
    }
}

void ms_runs_spread_apply_folds(ms_arena *arena, const ms_published_runs *runs,
                                const ms_run_score *new_scores,
                                ms_run_score *known_scores)
{
    int *fold_of = MS_NEW_ARRAY(arena, runs->num_runs, int);
    ms_runs_fold(runs, fold_of);
    for (int fold = 0; fold < MS_SPREAD_FOLDS; fold++) {
        ms_error_spread others =
            ms_runs_spread_make(arena, runs, new_scores, known_scores, fold);
        for (int i = 0; i < runs->num_runs; i++) {
            const ms_published_run *run = &runs->runs[i];
            const ms_error_class class = {run->plan.stack, run->plan.gpus, NULL};
            if (fold_of[i] == fold && known_scores[i].priced)
                apply(&others, &class, &known_scores[i]);
        }
    }
}
