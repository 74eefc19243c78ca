/* Coordinate descent over constants: a grid that finds the valley, then Brent's method in it (GSL). Each step prices only the runs that the constant changes. */
#include "sim/runs_fit.h"

#include "costmodel/minimum.h"
#include "sim/runs_fit_priv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NUM_SWEEPS   6
#define NUM_GRID     9
#define TOLERANCE    1e-3 /* of the range of a constant */
#define LEAST_GAIN   1e-5 /* of the objective, by a sweep */
#define LEAST_ROWS   2    /* that tell a constant */
#define KNEE         0.3 /* errors well above it count little more than it: stalled runs */
#define PRIOR_WEIGHT 0.01 /* of the squared distance to the unknown value, in ranges */

/* ---- the objective ---- */

/* Of log(predicted / measured): |e| near 0, bounded far away. */
static double robust(double error)
{
    double size = fabs(error);
    return size / (1.0 + size / KNEE);
}

static double prior(const ms_fit_constant *c)
{
    double away = (c->value - c->unknown) / (c->high - c->low);
    return PRIOR_WEIGHT * away * away;
}

void ms_fit_constant_set(ms_fit_constant *c, double value)
{
    c->value = value;
    for (int i = 0; i < c->num_targets; i++)
        if (c->targets[i].value != NULL)
            *c->targets[i].value = value;
}

typedef struct problem {
    ms_runs_fit *fit;
    ms_fit_constant *constant;
    int left_out;
} problem;

static double objective(double value, void *state)
{
    problem *p = state;
    ms_fit_constant *c = p->constant;
    ms_fit_constant_set(c, value);
    double sum = prior(c);
    for (int i = 0; i < c->num_rows; i++) {
        int run = c->rows[i];
        if (p->fit->source_of[run] == p->left_out)
            continue;
        ms_run_score score = ms_run_unpriced;
        if (ms_run_price(p->fit->prices, &p->fit->runs->runs[run], &score) == MS_OK)
            sum += p->fit->weight_of[run] * robust(log1p(score.step_error_frac));
    }
    ms_run_prices_forget(p->fit->prices);
    return sum;
}

/* ---- one constant ---- */

static int count_rows(const problem *p)
{
    int num = 0;
    for (int i = 0; i < p->constant->num_rows; i++)
        num += p->fit->source_of[p->constant->rows[i]] != p->left_out;
    return num;
}

static double grid_point(const ms_fit_constant *c, int i)
{
    return c->low + (c->high - c->low) * i / (NUM_GRID - 1);
}

/* Returns what the objective gained. */
static double fit_constant(problem *p)
{
    ms_fit_constant *c = p->constant;
    double before = c->value, at_before = objective(before, p);
    double least = before, at_least = at_before;
    for (int i = 0; i < NUM_GRID; i++) {
        double at = objective(grid_point(c, i), p);
        if (at < at_least) {
            at_least = at;
            least = grid_point(c, i);
        }
    }
    double step = (c->high - c->low) / (NUM_GRID - 1);
    const ms_bracket bracket = {fmax(least - step, c->low), least,
                                fmin(least + step, c->high),
                                TOLERANCE * (c->high - c->low)};
    double found = ms_minimum(objective, p, &bracket);
    double at_found = objective(found, p);
    if (at_found < at_least) {
        at_least = at_found;
        least = found;
    }
    ms_fit_constant_set(c, least);
    return at_before - at_least;
}

/* ---- all constants ---- */

static void note_sources(ms_runs_fit *fit, ms_fit_constant *c, int left_out)
{
    c->num_sources = 0;
    for (int s = 0; s < fit->num_sources; s++) {
        bool tells = false;
        for (int i = 0; i < c->num_rows && !tells; i++)
            tells = fit->source_of[c->rows[i]] == s && s != left_out;
        c->num_sources += tells;
    }
}

void ms_runs_fit_make(ms_runs_fit *fit, int left_out)
{
    problem p = {.fit = fit, .left_out = left_out};
    for (int i = 0; i < fit->num_constants; i++) {
        p.constant = &fit->constants[i];
        if (count_rows(&p) < LEAST_ROWS)
            ms_fit_constant_set(p.constant, p.constant->unknown);
        note_sources(fit, p.constant, left_out);
    }
    double gain = 1.0;
    for (int sweep = 0; sweep < NUM_SWEEPS && gain > LEAST_GAIN; sweep++) {
        gain = 0.0;
        for (int i = 0; i < fit->num_constants; i++) {
            p.constant = &fit->constants[i];
            if (count_rows(&p) >= LEAST_ROWS)
                gain += fit_constant(&p);
        }
    }
}

/* ---- cross-validation ---- */

static ms_status score_source(ms_runs_fit *fit, int source, ms_run_score *scores)
{
    for (int i = 0; i < fit->runs->num_runs; i++) {
        const ms_published_run *run = &fit->runs->runs[i];
        if (fit->source_of[i] != source)
            continue;
        MS_TRY(ms_run_price(fit->prices, run, &scores[i]));
        MS_TRY(ms_run_price_range(fit->prices, run, &scores[i]));
    }
    ms_run_prices_forget(fit->prices);
    return MS_OK;
}

ms_status ms_runs_fit_cross_validate(ms_ctx *cx, ms_runs_fit *fit, ms_run_score *scores)
{
    double *all = MS_NEW_ARRAY(cx->arena, fit->num_constants, double);
    for (int i = 0; i < fit->num_constants; i++)
        all[i] = fit->constants[i].value;
    for (int source = 0; source < fit->num_sources; source++) {
        for (int i = 0; i < fit->num_constants; i++)
            ms_fit_constant_set(&fit->constants[i], all[i]);
        ms_runs_fit_make(fit, source);
        MS_TRY(score_source(fit, source, scores));
    }
    for (int i = 0; i < fit->num_constants; i++) {
        ms_fit_constant_set(&fit->constants[i], all[i]);
        note_sources(fit, &fit->constants[i], -1);
    }
    return MS_OK;
}
