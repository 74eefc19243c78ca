/* Errors of own runs that the corrections were not fitted to. */
#include "costmodel/calibrate/statistics.h"
#include "sim/validate/own_runs_priv.h"

#include <math.h>

/* One measurement of a group that is held out. */
typedef struct holding {
    ms_ctx *cx;
    ms_own_trial all; /* the group's measured runs that can be predicted */
    int *layout;      /* (all.num_rows): number of the run's layout, from 0 */
    int num_layouts;
    bool *is_fitted;        /* (num_layouts): the present fit sees runs of the layout */
    double *before, *after; /* errors of predictions without and with corrections */
    int num_errors;
} holding;

/* ---- layouts ---- */

static bool same_layout(const ms_pubrun *a, const ms_pubrun *b)
{
    return a->model == b->model && ms_plan_equal(&a->plan, &b->plan);
}

static int layout_of(const holding *h, int row)
{
    const ms_pubrun *runs = h->all.own->runs->runs;
    for (int i = 0; i < row; i++)
        if (same_layout(&runs[h->all.rows[row]], &runs[h->all.rows[i]]))
            return h->layout[i];
    return -1;
}

static void number_layouts(holding *h)
{
    h->layout = MS_NEW_ARRAY(h->cx->arena, h->all.num_rows, int);
    for (int i = 0; i < h->all.num_rows; i++) {
        int known = layout_of(h, i);
        h->layout[i] = known >= 0 ? known : h->num_layouts++;
    }
    h->is_fitted = MS_NEW_ARRAY(h->cx->arena, h->num_layouts, bool);
}

/* ---- fits ---- */

/* Keeps the errors of runs of layouts that the fit did not see. */
static void add_errors(holding *h)
{
    const ms_own_trial *all = &h->all;
    double *errors = MS_NEW_ARRAY(h->cx->arena, 2 * all->num_rows, double);
    ms_own_log_errors(all, errors);
    ms_own_trial_reset(all);
    ms_own_log_errors(all, errors + all->num_rows);
    for (int i = 0; i < all->num_rows; i++) {
        if (h->is_fitted[h->layout[i]])
            continue;
        h->after[h->num_errors] = fabs(expm1(errors[i]));
        h->before[h->num_errors++] = fabs(expm1(errors[all->num_rows + i]));
    }
}

/* Fits `rows`, and predicts layouts that are not marked as fitted. */
static ms_status fit_and_predict(holding *h, const int *rows, int num_rows)
{
    ms_own_trial t = {
        .own = h->all.own, .group = h->all.group, .measurement = h->all.measurement};
    ms_penalised_fit found;
    MS_TRY(ms_own_trial_fit(h->cx, &t, rows, num_rows, &found));
    add_errors(h);
    return MS_OK;
}

/* The group's runs that are of no layout left out: those that ran out of memory, too. */
static int rows_of_fit(const holding *h, int *out)
{
    const ms_own_group *group = h->all.group;
    const ms_pubrun *runs = h->all.own->runs->runs;
    int num = 0;
    for (int i = 0; i < group->num_rows; i++) {
        bool held = false;
        for (int j = 0; j < h->all.num_rows && !held; j++)
            held = !h->is_fitted[h->layout[j]] &&
                   same_layout(&runs[group->rows[i]], &runs[h->all.rows[j]]);
        if (!held)
            out[num++] = group->rows[i];
    }
    return num;
}

static ms_status leave_layouts_out(holding *h, int *num_fits)
{
    int *rows = MS_NEW_ARRAY(h->cx->arena, h->all.group->num_rows, int);
    int num = h->num_layouts < MS_OWN_TURNS ? h->num_layouts : MS_OWN_TURNS;
    for (int turn = 0; turn < num && num > 1; turn++) {
        for (int i = 0; i < h->num_layouts; i++)
            h->is_fitted[i] = i % num != turn;
        int num_rows = rows_of_fit(h, rows);
        MS_TRY(fit_and_predict(h, rows, num_rows));
        ++*num_fits;
    }
    return MS_OK;
}

static ms_status fit_few(holding *h, int num_fitted, int *num_fits)
{
    int *rows = MS_NEW_ARRAY(h->cx->arena, num_fitted, int);
    int spacing = h->all.num_rows / num_fitted;
    int num = spacing < MS_OWN_FITS ? spacing : MS_OWN_FITS;
    for (int k = 0; k < num && h->all.num_rows > num_fitted; k++) {
        for (int i = 0; i < h->num_layouts; i++)
            h->is_fitted[i] = false;
        for (int i = 0; i < num_fitted; i++) {
            int row = k * spacing / num + i * spacing;
            rows[i] = h->all.rows[row];
            h->is_fitted[h->layout[row]] = true;
        }
        MS_TRY(fit_and_predict(h, rows, num_fitted));
        ++*num_fits;
    }
    return MS_OK;
}

/* ---- groups ---- */

static void take_measured(ms_arena *arena, ms_own_trial *t)
{
    int *rows = MS_NEW_ARRAY(arena, t->group->num_rows, int), num = 0;
    for (int i = 0; i < t->group->num_rows; i++)
        if (ms_own_is_measured(&t->own->runs->runs[t->group->rows[i]], t->measurement))
            rows[num++] = t->group->rows[i];
    ms_own_trial_take(arena, t, rows, num);
}

static ms_status hold_out_group(ms_ctx *cx, const ms_own_trial *of, int num_fitted,
                                ms_own_held_out *out)
{
    holding h = {.cx = cx, .all = *of};
    take_measured(cx->arena, &h.all);
    number_layouts(&h);
    int most = MS_OWN_FITS * h.all.num_rows;
    h.before = MS_NEW_ARRAY(cx->arena, most, double);
    h.after = MS_NEW_ARRAY(cx->arena, most, double);
    *out = (ms_own_held_out){
        .group = of->group, .measurement = of->measurement, .num_rows = h.all.num_rows};
    if (num_fitted == 0)
        MS_TRY(leave_layouts_out(&h, &out->num_fits));
    else
        MS_TRY(fit_few(&h, num_fitted, &out->num_fits));
    out->num_predictions = h.num_errors;
    out->before_ape_frac = ms_quantile(h.before, h.num_errors, 0.5);
    out->after_ape_frac = ms_quantile(h.after, h.num_errors, 0.5);
    return MS_OK;
}

ms_status ms_own_runs_hold_out(ms_ctx *cx, ms_own_runs *own, int num_fitted, int *num_out,
                               ms_own_held_out **out)
{
    *num_out = 0;
    *out =
        MS_NEW_ARRAY(cx->arena, MS_NUM_MEASUREMENTS * own->num_groups, ms_own_held_out);
    for (int m = 0; m < MS_NUM_MEASUREMENTS; m++) {
        for (int i = 0; i < own->num_groups; i++) {
            const ms_own_trial t = {
                .own = own, .group = &own->groups[i], .measurement = (ms_measurement)m};
            MS_TRY(hold_out_group(cx, &t, num_fitted, &(*out)[*num_out]));
            *num_out += (*out)[*num_out].num_predictions > 0;
        }
    }
    return MS_OK;
}
