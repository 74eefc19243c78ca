#include "sim/validate/own_runs.h"

#include "costmodel/calibrate/fit.h"
#include "costmodel/calibrate/penalised.h"
#include "costmodel/calibrate/statistics.h"
#include "sim/validate/own_runs_priv.h"
#include "sim/validate/pubrun_prices.h"

#include <math.h>
#include <string.h>

/* Errors beyond this many scatters count linearly: a run may have stalled. */
#define KNEE 2.0
/* least change of ln(prediction) by one width that counts as dependence */
#define CHANGE 1e-5

/* ---- groups ---- */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static ms_own_group *group_of(ms_own_runs *own, const ms_pubrun *run)
{
    for (int i = 0; i < own->num_groups; i++) {
        ms_own_group *group = &own->groups[i];
        if (same_text(group->source, run->source) &&
            same_text(group->stack, run->stack->name) &&
            same_text(group->profile, run->profile->name))
            return group;
    }
    ms_own_group *group = &own->groups[own->num_groups++];
    const ms_pubrun_files *base = own->base;
    *group = (ms_own_group){
        .source = run->source,
        .stack = run->stack->name,
        .profile = run->profile->name,
        .stack_file = base->stack != NULL ? base->stack : run->stack->name,
        .profile_file = base->profile != NULL ? base->profile : run->profile->name};
    return group;
}

static bool is_evidence(const ms_pubrun *run)
{
    return run->reason == NULL && (run->out_of_memory || !isnan(run->measured_step_s) ||
                                   !isnan(run->measured_peak_bytes));
}

void ms_own_runs_open(ms_ctx *cx, ms_pubruns *runs, const ms_own_list *list,
                      const ms_pubrun_files *base, ms_own_runs *out)
{
    *out = (ms_own_runs){.runs = runs,
                         .list = list,
                         .base = base,
                         .prices = ms_pubrun_prices_open(),
                         .groups = MS_NEW_ARRAY(cx->arena, runs->num_runs, ms_own_group)};
    for (int i = 0; i < runs->num_runs; i++) {
        if (!is_evidence(&runs->runs[i]))
            continue;
        ms_pubrun_fill_batch(cx->arena, out->prices, &runs->runs[i]);
        ms_own_group *group = group_of(out, &runs->runs[i]);
        if (group->rows == NULL)
            group->rows = MS_NEW_ARRAY(cx->arena, runs->num_runs - i, int);
        group->rows[group->num_rows++] = i;
    }
    for (int i = 0; i < out->num_groups; i++)
        ms_own_files_open(cx->arena, out, &out->groups[i]);
    ms_pubrun_prices_forget(out->prices);
}

void ms_own_runs_close(ms_own_runs *own)
{
    ms_pubrun_prices_close(own->prices);
}

/* ---- one fit ---- */

bool ms_own_is_measured(const ms_pubrun *run, ms_measurement measurement)
{
    return !run->unfinished && !isnan(ms_pubrun_measured(run, measurement));
}

/* Whether the run ran out of memory, which is evidence on peaks alone. */
static bool is_censored(const ms_pubrun *run, ms_measurement measurement)
{
    return run->out_of_memory && measurement == MS_MEASURED_PEAK;
}

/* ln(predicted / measured); of a run that ran out of memory how far the prediction lies
 * below the device's memory, as a negative number, or 0. NaN if it cannot be predicted. */
static double log_error(const ms_own_trial *t, int row)
{
    const ms_pubrun *run = &t->own->runs->runs[row];
    ms_pubrun_score score = ms_pubrun_unpriced;
    if (ms_pubrun_price(t->own->prices, run, &score) != MS_OK)
        return (double)NAN;
    if (is_censored(run, t->measurement))
        return fmin(0.0, log((score.worst_peak_bytes + score.outside_bytes) /
                             score.capacity_bytes));
    return log(ms_score_predicted(&score, t->measurement) /
               ms_pubrun_measured(run, t->measurement));
}

void ms_own_log_errors(const ms_own_trial *t, double *out)
{
    ms_pubrun_prices_forget(t->own->prices);
    for (int i = 0; i < t->num_rows; i++)
        out[i] = log_error(t, t->rows[i]);
    ms_pubrun_prices_forget(t->own->prices);
}

static void set_free(const ms_own_trial *t, const double *x)
{
    for (int j = 0; j < t->num_free; j++)
        if (t->group->files->x[t->free[j]] != x[j])
            ms_own_files_set(t->own, t->group->files, t->free[j], x[j], NULL);
}

static bool residuals(void *state, const double *x, double *out)
{
    const ms_own_trial *t = state;
    set_free(t, x);
    ms_own_log_errors(t, out);
    for (int i = 0; i < t->num_rows; i++)
        out[i] = ms_soft_l1_residual(out[i] / t->own->list->error[t->measurement], KNEE);
    return true;
}

/* Whether predictions of the trial's rows change when the constant, or one target of it,
 * moves by a width. */
static bool depends(const ms_own_trial *t, int constant, const ms_own_target *only)
{
    ms_own_files *files = t->group->files;
    ms_arena *scratch = ms_arena_open();
    double *now = MS_NEW_ARRAY(scratch, 3 * t->num_rows, double);
    double *up = now + t->num_rows, *down = up + t->num_rows;
    bool changed = false;
    ms_own_log_errors(t, now);
    ms_own_files_set(t->own, files, constant, 1.0, only);
    ms_own_log_errors(t, up);
    ms_own_files_set(t->own, files, constant, -1.0, only);
    ms_own_log_errors(t, down);
    ms_own_files_set(t->own, files, constant, 0.0, NULL);
    for (int i = 0; i < t->num_rows; i++)
        changed =
            changed || fabs(up[i] - now[i]) > CHANGE || fabs(down[i] - now[i]) > CHANGE;
    ms_arena_close(scratch);
    return changed;
}

void ms_own_trial_reset(const ms_own_trial *t)
{
    for (int c = 0; c < t->own->list->num_constants; c++)
        if (t->group->files->x[c] != 0.0)
            ms_own_files_set(t->own, t->group->files, c, 0.0, NULL);
}

/* Keeps rows with evidence that can be predicted. */
void ms_own_trial_take(ms_arena *arena, ms_own_trial *t, const int *rows, int num_rows)
{
    int *kept = MS_NEW_ARRAY(arena, num_rows, int);
    for (int i = 0; i < num_rows; i++) {
        const ms_pubrun *run = &t->own->runs->runs[rows[i]];
        bool counts =
            ms_own_is_measured(run, t->measurement) || is_censored(run, t->measurement);
        if (counts && isfinite(log_error(t, rows[i])))
            kept[t->num_rows++] = rows[i];
    }
    t->rows = kept;
}

static void find_free(ms_arena *arena, ms_own_trial *t)
{
    t->free = MS_NEW_ARRAY(arena, t->own->list->num_constants, int);
    for (int c = 0; c < t->own->list->num_constants; c++)
        if (t->own->list->constants[c].measurement == (int)t->measurement &&
            depends(t, c, NULL))
            t->free[t->num_free++] = c;
}

/* Fits the group's constants to `rows`; its files then have the corrections. */
ms_status ms_own_trial_fit(ms_ctx *cx, ms_own_trial *t, const int *rows, int num_rows,
                           ms_penalised_fit *out)
{
    ms_own_trial_reset(t);
    ms_own_trial_take(cx->arena, t, rows, num_rows);
    find_free(cx->arena, t);
    MS_TRY(ms_penalised_fit_make(
        cx, &(ms_penalised_problem){t->num_free, t->num_rows, residuals, t}, out));
    set_free(t, out->x);
    return MS_OK;
}

/* ---- results ---- */

static void fill_figures(ms_arena *arena, const ms_own_trial *t, ms_own_move *move,
                         int constant, bool is_free)
{
    const ms_own_files *files = t->group->files;
    move->figures = MS_NEW_ARRAY(arena, files->num_targets, ms_own_figure);
    for (int i = 0; i < files->num_targets; i++) {
        const ms_own_target *target = &files->targets[i];
        double before = ms_own_target_value(t->own, files, target, 0.0);
        if (target->constant != constant || isnan(before))
            continue;
        move->figures[move->num_figures++] = (ms_own_figure){
            .file = target->is_stack ? "stack" : "profile",
            .key = target->figure->key,
            .unit = target->figure->unit,
            .before = before,
            .after = ms_own_target_value(t->own, files, target, move->widths),
            .used = is_free && depends(t, constant, target)};
    }
}

static int free_index(const ms_own_trial *t, int constant)
{
    for (int j = 0; j < t->num_free; j++)
        if (t->free[j] == constant)
            return j;
    return -1;
}

static void fill_moves(ms_arena *arena, const ms_own_trial *t,
                       const ms_penalised_fit *found, ms_own_fit *out)
{
    out->moves = MS_NEW_ARRAY(arena, t->own->list->num_constants, ms_own_move);
    for (int c = 0; c < t->own->list->num_constants; c++) {
        if (t->own->list->constants[c].measurement != (int)t->measurement)
            continue;
        int j = free_index(t, c);
        ms_own_move move = {.constant = &t->own->list->constants[c],
                            .widths = j >= 0 ? found->x[j] : 0.0,
                            .deviation = j >= 0 ? found->deviation[j] : 1.0};
        fill_figures(arena, t, &move, c, j >= 0);
        if (move.num_figures > 0)
            out->moves[out->num_moves++] = move;
    }
}

/* Errors of a trial's rows by its files as they are now. */
typedef struct trial_errors {
    double median_ape_frac, rms_frac; /* measured rows alone, as in ms_own_fit */
    int num_rows, num_out_of_memory, num_fitting;
} trial_errors;

static trial_errors find_errors(ms_arena *arena, const ms_own_trial *t)
{
    trial_errors found = {.num_rows = 0};
    double *errors = MS_NEW_ARRAY(arena, 2 * t->num_rows, double);
    double *measured = errors + t->num_rows, squares = 0.0;
    ms_own_log_errors(t, errors);
    for (int i = 0; i < t->num_rows; i++) {
        if (is_censored(&t->own->runs->runs[t->rows[i]], t->measurement)) {
            found.num_out_of_memory++;
            found.num_fitting += errors[i] < 0.0;
            continue;
        }
        measured[found.num_rows++] = fabs(expm1(errors[i]));
        squares += errors[i] * errors[i];
    }
    found.median_ape_frac = ms_quantile(measured, found.num_rows, 0.5);
    found.rms_frac = found.num_rows > 0 ? sqrt(squares / found.num_rows) : (double)NAN;
    return found;
}

static ms_status fit_group(ms_ctx *cx, ms_own_runs *own, ms_own_group *group,
                           ms_measurement measurement)
{
    ms_own_trial t = {.own = own, .group = group, .measurement = measurement};
    ms_penalised_fit fit;
    MS_TRY(ms_own_trial_fit(cx, &t, group->rows, group->num_rows, &fit));
    trial_errors after = find_errors(cx->arena, &t);
    ms_own_trial_reset(&t);
    trial_errors before = find_errors(cx->arena, &t);
    ms_own_fit *out = &group->fits[measurement];
    *out = (ms_own_fit){.measurement = measurement,
                        .num_rows = after.num_rows,
                        .num_out_of_memory = after.num_out_of_memory,
                        .num_fitting_before = before.num_fitting,
                        .num_fitting_after = after.num_fitting,
                        .before_ape_frac = before.median_ape_frac,
                        .after_ape_frac = after.median_ape_frac,
                        .before_rms_frac = before.rms_frac,
                        .after_rms_frac = after.rms_frac,
                        .stopped = fit.stopped};
    fill_moves(cx->arena, &t, &fit, out);
    ms_own_trial_reset(&t);
    return MS_OK;
}

ms_status ms_own_runs_fit(ms_ctx *cx, ms_own_runs *own)
{
    for (int i = 0; i < own->num_groups; i++)
        for (int m = 0; m < MS_NUM_MEASUREMENTS; m++)
            MS_TRY(fit_group(cx, own, &own->groups[i], (ms_measurement)m));
    return MS_OK;
}
