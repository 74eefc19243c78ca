/* Fits constants to published runs by coordinate descent in an approximation of the
 * predictions (pubrun_response.h), made anew around each result. Brent's method (GSL)
 * searches between the points of the approximation. */
#include "sim/validate/pubrun_fit.h"

#include "base/rng.h"
#include "costmodel/calibrate/minimum.h"
#include "costmodel/calibrate/statistics.h"
#include "sim/validate/pubrun_response.h"

#include <math.h>
#include <string.h>

#define NUM_SWEEPS    40
#define TOLERANCE     1e-3 /* share of a constant's range, for Brent's method */
#define LEAST_GAIN    1e-5 /* gain of the objective below which sweeps end */
#define LEAST_ROWS    2    /* number of rows that it takes to fit a constant */
#define KNEE          0.3 /* log error where the loss flattens, because of stalled runs */
#define NUM_HALVINGS  4
#define NUM_RESAMPLES 200

/* ---- the objective ---- */

/* Loss of e = ln(predicted / measured): |e| near 0, bounded by KNEE far away. */
static double robust_loss(double error)
{
    double size = fabs(error);
    return size / (1.0 + size / KNEE);
}

/* Weights in fits to {step times, peaks} of a constant's squared distance, in units of
 * its range, to its `unknown` value: errors of peaks are a tenth of step times'. */
static const double prior_weights[MS_NUM_MEASUREMENTS] = {0.3, 0.03};

/* Penalty on a constant's distance to its `unknown` value; 0 for a constant with choices,
 * none of which is nearer than another. */
static double prior_penalty(const ms_pubruns_fit *fit, const ms_fit_constant *c,
                            double value)
{
    if (c->num_choices > 0)
        return 0.0;
    double away = (value - c->unknown) / (c->high - c->low);
    return prior_weights[fit->measurement] * away * away;
}

/* Objective of the fit at the current constants; `weights` are those of the sources. */
static double objective(const ms_pubruns_fit *fit, const double *log_error,
                        const double *weights)
{
    double sum = 0.0;
    for (int i = 0; i < fit->num_constants; i++)
        sum += prior_penalty(fit, &fit->constants[i], fit->constants[i].value);
    for (int i = 0; i < fit->runs->num_runs; i++)
        if (!isnan(log_error[i]))
            sum += weights[fit->source_of[i]] * fit->weight_of[i] *
                   robust_loss(log_error[i]);
    return sum;
}

/* ---- one constant, in an expansion ---- */

typedef struct problem {
    ms_pubruns_fit *fit;
    const ms_expansion *around;
    const double *weights; /* (num_sources): how often each source counts */
    double *log_error;     /* (num_runs): log errors at `values` */
    double *values;        /* (num_constants): current values */
    int constant;
} problem;

static double row_weight(const problem *p, int run)
{
    return p->weights[p->fit->source_of[run]] * p->fit->weight_of[run];
}

static double objective_at(double value, void *state)
{
    const problem *p = state;
    const ms_fit_constant *c = &p->fit->constants[p->constant];
    const ms_response *response = &p->around->responses[p->constant];
    double now = p->values[p->constant], sum = prior_penalty(p->fit, c, value);
    for (int i = 0; i < c->num_rows; i++) {
        int run = c->rows[i];
        double change =
            ms_response_at(response, i, value) - ms_response_at(response, i, now);
        if (!isnan(p->log_error[run]))
            sum += row_weight(p, run) * robust_loss(p->log_error[run] + change);
    }
    return sum;
}

static void move_constant(problem *p, double value)
{
    const ms_fit_constant *c = &p->fit->constants[p->constant];
    const ms_response *response = &p->around->responses[p->constant];
    for (int i = 0; i < c->num_changed; i++)
        p->log_error[c->rows[i]] += ms_response_at(response, i, value) -
                                    ms_response_at(response, i, p->values[p->constant]);
    p->values[p->constant] = value;
}

/* Minimizes the objective between the points next to *least, a value of the constant with
 * objective `at_least`. Sets *least to the best value; returns the objective there. */
static double fit_between(problem *p, double *least, double at_least)
{
    const ms_fit_constant *c = &p->fit->constants[p->constant];
    const double *points = p->around->responses[p->constant].points;
    double spacing = points[1] - points[0];
    const ms_bracket bracket = {fmax(*least - spacing, points[0]), *least,
                                fmin(*least + spacing, points[MS_RESPONSE_POINTS - 1]),
                                TOLERANCE * (c->high - c->low)};
    double found = ms_minimum(objective_at, p, &bracket);
    double at_found = objective_at(found, p);
    if (at_found >= at_least)
        return at_least;
    *least = found;
    return at_found;
}

/* Fits one constant while the others are fixed. Returns the decrease of the objective. */
static double fit_constant(problem *p)
{
    const ms_response *response = &p->around->responses[p->constant];
    double least = p->values[p->constant], before = objective_at(least, p),
           at_least = before;
    for (int i = 0; i < response->num_points; i++) {
        double at = objective_at(response->points[i], p);
        if (at < at_least) {
            at_least = at;
            least = response->points[i];
        }
    }
    if (p->fit->constants[p->constant].num_choices == 0)
        at_least = fit_between(p, &least, at_least);
    move_constant(p, least);
    return before - at_least;
}

static int count_rows(const problem *p, const ms_fit_constant *c)
{
    int num = 0;
    for (int i = 0; i < c->num_rows; i++)
        num += p->weights[p->fit->source_of[c->rows[i]]] > 0.0;
    return num;
}

/* Fits all constants to the approximated predictions; a constant with too few rows takes
 * its `unknown` value. */
static void fit_expanded(problem *p)
{
    double gain = 1.0;
    for (int sweep = 0; sweep < NUM_SWEEPS && gain > LEAST_GAIN; sweep++) {
        gain = 0.0;
        for (p->constant = 0; p->constant < p->fit->num_constants; p->constant++) {
            const ms_fit_constant *c = &p->fit->constants[p->constant];
            if (count_rows(p, c) >= LEAST_ROWS)
                gain += fit_constant(p);
            else
                move_constant(p, c->unknown);
        }
    }
}

static problem begin(ms_arena *arena, ms_pubruns_fit *fit, const ms_expansion *around,
                     const double *weights)
{
    problem p = {.fit = fit,
                 .around = around,
                 .weights = weights,
                 .log_error = MS_NEW_ARRAY(arena, fit->runs->num_runs, double),
                 .values = MS_NEW_ARRAY(arena, fit->num_constants, double)};
    memcpy(p.log_error, around->log_error,
           sizeof *p.log_error * (size_t)fit->runs->num_runs);
    memcpy(p.values, around->values, sizeof *p.values * (size_t)fit->num_constants);
    return p;
}

/* ---- rounds ---- */

static void set_all(ms_pubruns_fit *fit, const double *values)
{
    for (int i = 0; i < fit->num_constants; i++)
        ms_fit_constant_set(&fit->constants[i], values[i]);
}

/* Moves the constants to the best values by approximated predictions; then halfway back
 * towards the centre of the approximation while exact predictions are not improved. */
static void step_in_expansion(ms_arena *arena, ms_pubruns_fit *fit,
                              const ms_expansion *around, const double *weights)
{
    problem p = begin(arena, fit, around, weights);
    double before = objective(fit, around->log_error, weights);
    fit_expanded(&p);
    for (int i = 0; i < NUM_HALVINGS; i++) {
        set_all(fit, p.values);
        if (objective(fit, ms_fit_log_errors(arena, fit), weights) <= before)
            return;
        for (int c = 0; c < fit->num_constants; c++)
            if (fit->constants[c].num_choices == 0)
                p.values[c] = 0.5 * (p.values[c] + around->values[c]);
    }
    set_all(fit, around->values);
}

static void note_sources(ms_pubruns_fit *fit, ms_fit_constant *c, const double *weights)
{
    c->num_sources = 0;
    for (int s = 0; s < fit->num_sources; s++) {
        bool determines = false;
        for (int i = 0; i < c->num_rows && !determines; i++)
            determines = fit->source_of[c->rows[i]] == s && weights[s] > 0.0;
        c->num_sources += determines;
    }
}

/* Fits all constants in three rounds; `first`: approximation around the start values. */
static void fit_from(ms_pubruns_fit *fit, const ms_expansion *first,
                     const double *weights)
{
    static const double widths[] = {0.3, 0.1}; /* half-widths / constant's range */
    ms_arena_mark mark = ms_arena_save(fit->arena);
    step_in_expansion(fit->arena, fit, first, weights);
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        ms_expansion around = ms_fit_expand(fit->arena, fit, widths[i]);
        step_in_expansion(fit->arena, fit, &around, weights);
    }
    ms_arena_rewind(fit->arena, mark);
    for (int i = 0; i < fit->num_constants; i++)
        note_sources(fit, &fit->constants[i], weights);
}

static ms_expansion expand_start(ms_pubruns_fit *fit)
{
    for (int i = 0; i < fit->num_constants; i++)
        ms_fit_constant_set(&fit->constants[i], fit->constants[i].start);
    return ms_fit_expand(fit->arena, fit, 1.0);
}

/* Weights of the sources: 1, but 0 for `left_out` (-1: for none). */
static double *all_but(ms_pubruns_fit *fit, int left_out)
{
    double *weights = MS_NEW_ARRAY(fit->arena, fit->num_sources, double);
    for (int s = 0; s < fit->num_sources; s++)
        weights[s] = s != left_out;
    return weights;
}

void ms_pubruns_fit_make(ms_pubruns_fit *fit, int left_out)
{
    ms_arena_mark mark = ms_arena_save(fit->arena);
    ms_expansion first = expand_start(fit);
    fit_from(fit, &first, all_but(fit, left_out));
    ms_arena_rewind(fit->arena, mark);
}

/* ---- intervals ---- */

static void draw_sources(ms_rng *rng, double *weights, int num_sources)
{
    for (int s = 0; s < num_sources; s++)
        weights[s] = 0.0;
    for (int s = 0; s < num_sources; s++)
        weights[ms_rng_below(rng, (uint64_t)num_sources)] += 1.0;
}

void ms_pubruns_fit_intervals(ms_pubruns_fit *fit)
{
    ms_arena_mark mark = ms_arena_save(fit->arena);
    ms_expansion around = ms_fit_expand(fit->arena, fit, 1.0);
    double *weights = all_but(fit, -1);
    double *drawn = MS_NEW_ARRAY(fit->arena, fit->num_constants * NUM_RESAMPLES, double);
    ms_rng rng = ms_rng_seed(1);
    for (int r = 0; r < NUM_RESAMPLES; r++) {
        ms_arena_mark inner = ms_arena_save(fit->arena);
        draw_sources(&rng, weights, fit->num_sources);
        problem p = begin(fit->arena, fit, &around, weights);
        fit_expanded(&p);
        for (int c = 0; c < fit->num_constants; c++)
            drawn[c * NUM_RESAMPLES + r] = p.values[c];
        ms_arena_rewind(fit->arena, inner);
    }
    for (int c = 0; c < fit->num_constants; c++) {
        double *values = drawn + c * NUM_RESAMPLES;
        fit->constants[c].value_low = ms_quantile(values, NUM_RESAMPLES, 0.05);
        fit->constants[c].value_high = ms_quantile(values, NUM_RESAMPLES, 0.95);
    }
    ms_arena_rewind(fit->arena, mark);
}

/* ---- cross-validation ---- */

static ms_status score_source(ms_pubruns_fit *fit, int source, ms_pubrun_score *scores)
{
    for (int i = 0; i < fit->runs->num_runs; i++) {
        const ms_pubrun *run = &fit->runs->runs[i];
        if (fit->source_of[i] != source)
            continue;
        MS_TRY(ms_pubrun_price(fit->prices, run, &scores[i]));
        MS_TRY(ms_pubrun_price_range(fit->prices, run, &scores[i]));
    }
    ms_pubrun_prices_forget(fit->prices);
    return MS_OK;
}

ms_status ms_pubruns_fit_cross_validate(ms_ctx *cx, ms_pubruns_fit *fit,
                                        ms_pubrun_score *scores)
{
    double *all = MS_NEW_ARRAY(cx->arena, fit->num_constants, double);
    for (int i = 0; i < fit->num_constants; i++)
        all[i] = fit->constants[i].value;
    ms_arena_mark mark = ms_arena_save(fit->arena);
    ms_expansion first = expand_start(fit);
    for (int source = 0; source < fit->num_sources; source++) {
        set_all(fit, first.values);
        fit_from(fit, &first, all_but(fit, source));
        MS_TRY(score_source(fit, source, scores));
    }
    set_all(fit, all);
    for (int i = 0; i < fit->num_constants; i++)
        note_sources(fit, &fit->constants[i], all_but(fit, -1));
    ms_arena_rewind(fit->arena, mark);
    return MS_OK;
}
