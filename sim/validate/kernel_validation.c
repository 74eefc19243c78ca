#include "sim/validate/kernel_validation.h"

#include "costmodel/calibrate/fit.h"
#include "sim/validate/pubrun_prices.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
    const ms_kernel_row *row;
    double predicted_s;
} entry;

static bool any_row(const ms_kernel_row *row)
{
    return row != NULL;
}

static bool is_fitted(const ms_kernel_row *row)
{
    return row->fitted;
}

static bool is_not_fitted(const ms_kernel_row *row)
{
    return !row->fitted;
}

static bool in_other_half(const ms_kernel_row *row)
{
    return !row->in_half;
}

/* ---- rate and launch time of a source ---- */

static double adapted_s(double predicted_s, const ms_kernel_score *score_groups)
{
    return predicted_s / score_groups->rate_frac + score_groups->launch_s;
}

static double adapted_law(void *state, const double *parameters, const double *point)
{
    (void)state;
    return point[0] / parameters[0] + parameters[1];
}

#define LEAST_ROWS 8

/* Fits rate_frac and launch_s of a source to its rows in the half for fitting; NaN if
 * there are too few or the fit fails. */
static void fit_rate_and_launch(ms_ctx *cx, const entry *entries, int num_entries,
                                ms_kernel_score *out)
{
    double *points = MS_NEW_ARRAY(cx->arena, 2 * num_entries, double);
    int *launch = MS_NEW_ARRAY(cx->arena, num_entries, int);
    int num_points = 0;
    out->rate_frac = out->launch_s = (double)NAN;
    for (int i = 0; i < num_entries; i++) {
        if (!entries[i].row->in_half)
            continue;
        points[2 * num_points] = entries[i].predicted_s;
        points[2 * num_points++ + 1] = entries[i].row->measured_s;
    }
    if (num_points < LEAST_ROWS)
        return;
    const ms_fit_problem problem = {
        .name = "rate and launch",
        .law = adapted_law,
        .num_parameters = 2,
        .parameters = {{"rate", 1.0, false}, {"launch", 1e-6, true}},
        .num_points = num_points,
        .num_columns = 2,
        .points = points,
        .launch = launch};
    ms_ctx trial = {.arena = cx->arena};
    ms_fit fit;
    if (ms_fit_make(&trial, &problem, &fit) != MS_OK)
        return;
    out->rate_frac = fit.values[0].value;
    out->launch_s = fit.values[1].value;
}

/* ---- scores ---- */

/* Prediction errors of the rows for which `counts` is true. If `adapted` is not NULL, its
 * rate and launch time correct the predictions. */
static ms_row_errors errors_of(ms_arena *arena, const entry *entries, int num_entries,
                               bool (*counts)(const ms_kernel_row *),
                               const ms_kernel_score *adapted)
{
    double *error_fracs = MS_NEW_ARRAY(arena, num_entries, double);
    int num_rows = 0;
    for (int i = 0; i < num_entries; i++) {
        const ms_kernel_row *row = entries[i].row;
        double predicted_s = entries[i].predicted_s;
        if (adapted != NULL)
            predicted_s = adapted_s(predicted_s, adapted);
        if (counts(row))
            error_fracs[num_rows++] = ms_pubrun_error_frac(predicted_s, row->measured_s);
    }
    return ms_row_errors_of(arena, error_fracs, num_rows);
}

static ms_kernel_score score_group(ms_ctx *cx, const entry *entries, int num_entries,
                                   bool detail)
{
    const ms_kernel_row *first = entries[0].row;
    ms_kernel_score out = {.gpu = first->gpu, .source = first->origin};
    if (detail) {
        out.op = first->op;
        out.dtype = ms_dtype_names[first->dtype];
    }
    out.fitted = errors_of(cx->arena, entries, num_entries, is_fitted, NULL);
    out.others = errors_of(cx->arena, entries, num_entries, is_not_fitted, NULL);
    fit_rate_and_launch(cx, entries, num_entries, &out);
    if (isnan(out.rate_frac))
        out.adapted = errors_of(cx->arena, entries, 0, any_row, NULL);
    else
        out.adapted = errors_of(cx->arena, entries, num_entries, in_other_half, &out);
    return out;
}

/* Compares by GPU and source; files of one revision of a repository are one source. */
static int compare_sources(const entry *a, const entry *b)
{
    int order = strcmp(a->row->gpu, b->row->gpu);
    return order != 0 ? order : strcmp(a->row->origin, b->row->origin);
}

static int compare_details(const entry *a, const entry *b)
{
    int order = compare_sources(a, b);
    if (order == 0)
        order = strcmp(a->row->op, b->row->op);
    return order != 0 ? order : (int)a->row->dtype - (int)b->row->dtype;
}

static int compare_details_and_lines(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    int order = compare_details(x, y);
    return order != 0 ? order : (x->row > y->row) - (x->row < y->row);
}

/* Scores prediction errors by GPU and source; if `detail`, also by operation, type. */
static const ms_kernel_score *score_groups(ms_ctx *cx, const entry *entries,
                                           int num_entries, bool detail, int *num_scores)
{
    ms_kernel_score *scores = MS_NEW_ARRAY(cx->arena, num_entries, ms_kernel_score);
    *num_scores = 0;
    for (int first = 0, end; first < num_entries; first = end) {
        end = first + 1;
        while (end < num_entries && (detail ? compare_details : compare_sources)(
                                        &entries[first], &entries[end]) == 0)
            end++;
        scores[(*num_scores)++] = score_group(cx, &entries[first], end - first, detail);
    }
    return scores;
}

/* ---- searches over shapes ---- */

static double flop_of(const ms_kernel_row *row)
{
    ms_gemm_shape shape = row->product;
    return 2.0 * row->sequence * shape.batch * shape.m * shape.n * shape.k;
}

/* How much faster than predicted `best`, the fastest of many shapes, runs: the 99 %
 * quantile of predicted / measured time of the GEMMs that the same cost law was fitted to
 * and that have at least half as many FLOP as `best`. 1 if there are too few. */
static double upper_edge(ms_arena *arena, const ms_kernel_rows *all,
                         const double *predicted_s, const ms_kernel_row *best)
{
    const double top = 0.99;
    double *ratios = MS_NEW_ARRAY(arena, all->num_rows, double);
    int num_ratios = 0;
    for (int i = 0; i < all->num_rows; i++) {
        const ms_kernel_row *row = &all->rows[i];
        if (row->fitted && !row->is_attention && row->profile == best->profile &&
            row->dtype == best->dtype && flop_of(row) >= 0.5 * flop_of(best))
            ratios[num_ratios++] = predicted_s[i] / row->measured_s;
    }
    return num_ratios < LEAST_ROWS ? 1.0 : ms_quantile(ratios, num_ratios, top);
}

static void price_searches(ms_arena *arena, const ms_kernel_rows *rows,
                           double *predicted_s)
{
    for (int i = 0; i < rows->num_rows; i++)
        if (rows->rows[i].best_of_many)
            predicted_s[i] /= upper_edge(arena, rows, predicted_s, &rows->rows[i]);
}

ms_status ms_kernel_validate(ms_ctx *cx, const ms_kernel_rows *rows,
                             ms_kernel_validation *out)
{
    double *predicted_s = MS_NEW_ARRAY(cx->arena, rows->num_rows, double);
    entry *entries = MS_NEW_ARRAY(cx->arena, rows->num_rows, entry);
    *out = (ms_kernel_validation){.rows = rows, .predicted_s = predicted_s};
    for (int i = 0; i < rows->num_rows; i++) {
        ms_pricer pricer;
        predicted_s[i] = (double)NAN;
        if (rows->rows[i].reason != NULL)
            continue;
        MS_TRY(ms_kernel_row_pricer(cx, &rows->rows[i], &pricer));
        predicted_s[i] = ms_kernel_row_s(&pricer, &rows->rows[i]);
    }
    price_searches(cx->arena, rows, predicted_s);
    for (int i = 0; i < rows->num_rows; i++)
        if (rows->rows[i].reason == NULL)
            entries[out->num_priced++] = (entry){&rows->rows[i], predicted_s[i]};
    if (out->num_priced > 1)
        qsort(entries, (size_t)out->num_priced, sizeof *entries,
              compare_details_and_lines);
    out->sources = score_groups(cx, entries, out->num_priced, false, &out->num_sources);
    out->details = score_groups(cx, entries, out->num_priced, true, &out->num_details);
    return MS_OK;
}
