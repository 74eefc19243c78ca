#include "sim/validate/collectives_fit.h"

#include "base/number.h"
#include "base/paths.h"
#include "sim/validate/pubrun_prices.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SOFT_FRAC 0.05
#define NVLS_BASE "nvls.base"

/* Measured rows whose times one cost law of one profile predicts. */
typedef struct law_rows {
    const char *law;
    const ms_profile *profile;
    double link_bytes_per_s; /* datasheet rate of the links of the rows' cluster */
    int num_rows;
    const ms_collective_row **rows;
} law_rows;

/* State of a fit, with copies that hold the coefficients on trial: `profile`, and
 * `cluster`, that of the rows that send between nodes. */
typedef struct trial {
    ms_law_trial law;
    bool is_share[MS_FIT_PARAMETERS]; /* the coefficient is a fraction, below 1 */
    ms_profile profile;
    ms_cluster cluster;
    const ms_cluster *shipped_cluster; /* NULL if no row sends between nodes */
    const law_rows *rows;
    ms_collective_row *priced; /* copies of `rows` with profile and cluster on trial */
} trial;

/* ---- rows ---- */

static bool same_law(const law_rows *law, const ms_profile *profile, const char *name)
{
    return law->profile == profile && strcmp(law->law, name) == 0;
}

static int compare_laws(const void *a, const void *b)
{
    const law_rows *x = a, *y = b;
    int order = strcmp(x->profile->name, y->profile->name);
    return order != 0 ? order : strcmp(x->law, y->law);
}

/* Groups all rows that can be predicted, by cost law and profile. */
static law_rows *group_by_law(ms_ctx *cx, const ms_collective_rows *all, int *num_laws)
{
    law_rows *laws = MS_NEW_ARRAY(cx->arena, 1, law_rows);
    int capacity = 1;
    *num_laws = 0;
    for (int i = 0; i < all->num_rows; i++) {
        const ms_collective_row *row = &all->rows[i];
        if (row->reason != NULL)
            continue;
        const char *name = ms_collective_row_law_name(cx->arena, row);
        int j = 0;
        while (j < *num_laws && !same_law(&laws[j], row->profile, name))
            j++;
        if (j == *num_laws) {
            MS_MAKE_ROOM(cx->arena, laws, *num_laws, capacity, 8);
            laws[(*num_laws)++] = (law_rows){
                name, row->profile, row->cluster->levels[0].bandwidth_bytes_per_s, 0,
                MS_NEW_ARRAY(cx->arena, all->num_rows, const ms_collective_row *)};
        }
        laws[j].rows[laws[j].num_rows++] = row;
    }
    if (*num_laws > 1)
        qsort(laws, (size_t)*num_laws, sizeof *laws, compare_laws);
    return laws;
}

static bool has_system(const law_rows *rows, int num_rows, const char *system)
{
    for (int i = 0; i < num_rows; i++)
        if (strcmp(rows->rows[i]->system, system) == 0)
            return true;
    return false;
}

static int count_systems(const law_rows *rows)
{
    int num = 0;
    for (int i = 0; i < rows->num_rows; i++)
        num += !has_system(rows, i, rows->rows[i]->system);
    return num;
}

/* Selects the rows of one system, or with `others` those of all other systems. */
static law_rows select_rows(ms_arena *arena, const law_rows *from, const char *system,
                            bool others)
{
    law_rows out = {from->law, from->profile, from->link_bytes_per_s, 0,
                    MS_NEW_ARRAY(arena, from->num_rows, const ms_collective_row *)};
    for (int i = 0; i < from->num_rows; i++)
        if ((strcmp(from->rows[i]->system, system) != 0) == others)
            out.rows[out.num_rows++] = from->rows[i];
    return out;
}

/* ---- coefficients ---- */

static const ms_coefficient *coefficient_at(const ms_profile *profile,
                                            const ms_figure *figure)
{
    return (const ms_coefficient *)(const void *)((const char *)profile + figure->offset);
}

static bool names_any_source(const ms_coefficient *c, const law_rows *rows)
{
    for (int i = 0; i < rows->num_rows; i++)
        if (ms_coefficient_names_source(c, rows->rows[i]->source))
            return true;
    return false;
}

/* The cost law's coefficients that were fitted to the source of at least one row. */
static ms_figures fitted_figures(ms_arena *arena, const law_rows *rows)
{
    ms_figures all = {.arena = arena}, named = {.arena = arena};
    ms_profile_figures(rows->profile, &all);
    named.items = MS_NEW_ARRAY(arena, all.num, ms_figure);
    for (int i = 0; i < all.num; i++)
        if (ms_collective_figure_of_law(&all.items[i], rows->law) &&
            names_any_source(coefficient_at(rows->profile, &all.items[i]), rows))
            named.items[named.num++] = all.items[i];
    return named;
}

/* Selects the rows of sources to which at least one of `figures` was fitted. */
static law_rows rows_of_figures(ms_arena *arena, const law_rows *rows,
                                const ms_figures *figures)
{
    law_rows out = {rows->law, rows->profile, rows->link_bytes_per_s, 0,
                    MS_NEW_ARRAY(arena, rows->num_rows, const ms_collective_row *)};
    for (int i = 0; i < rows->num_rows; i++) {
        bool is_named = false;
        for (int j = 0; j < figures->num && !is_named; j++)
            is_named = ms_coefficient_names_source(
                coefficient_at(rows->profile, &figures->items[j]), rows->rows[i]->source);
        if (is_named)
            out.rows[out.num_rows++] = rows->rows[i];
    }
    return out;
}

/* Whether the coefficient is a fraction of a listed rate or of a whole. */
static bool is_share(const ms_figure *figure)
{
    size_t length = strlen(figure->key);
    bool of_rate = length >= 4 && strcmp(figure->key + length - 4, "frac") == 0;
    return of_rate || figure->high == 1.0;
}

/* Converts a parameter of a fit to a coefficient's value. Fractions are fitted as x / (1
 * + x), x > 0: no link is faster than listed. */
static double value_of(bool is_share, double parameter)
{
    return is_share ? parameter / (1.0 + parameter) : parameter;
}

/* Start value of a fitted parameter, independent of the shipped one. In-switch reduction
 * starts as fast as the links but with a long latency, so that both it and rings are
 * chosen for some sizes. */
static double start_of(const ms_figure *figure, const law_rows *rows)
{
    if (figure->unit == MS_UNIT_BYTES_PER_S)
        return rows->link_bytes_per_s;
    if (strcmp(figure->key, NVLS_BASE) == 0)
        return 1e-4;
    if (figure->unit == MS_UNIT_SECONDS)
        return 1e-5;
    return is_share(figure) ? 4.0 : 0.7;
}

/* Whether some row's predicted time differs between *target = range[0] and range[1], with
 * the other coefficients as shipped. */
static bool is_sensitive(const ms_collective_row *rows, int num_rows, double *target,
                         const double range[2])
{
    double shipped = *target;
    bool found = false;
    for (int i = 0; i < num_rows && !found; i++) {
        *target = range[0];
        double low_s = ms_collective_row_s(&rows[i]);
        *target = range[1];
        found = ms_collective_row_s(&rows[i]) != low_s;
    }
    *target = shipped;
    return found;
}

static bool is_determined_by(const ms_collective_row *rows, int num_rows,
                             const ms_figure *figure, double *target, double start)
{
    bool share = is_share(figure);
    const double range[] = {value_of(share, 0.1 * start), value_of(share, 10.0 * start)};
    return is_sensitive(rows, num_rows, target, range);
}

/* Adds coefficient *target, described by `figure`, to the fit, unless no row's predicted
 * time depends on it. *target is in the trial's profile or cluster. */
static void add_coefficient(trial *t, const ms_figure *figure, double *target,
                            ms_law_fit *out)
{
    /* 0 is allowed, but not as in-switch latency: small sizes would all use the switch */
    bool optional = figure->low <= 0.0 && strcmp(figure->key, NVLS_BASE) != 0;
    const ms_fit_parameter parameter = {figure->key, start_of(figure, t->rows), optional};
    int i = t->law.problem.num_parameters;
    if (is_determined_by(t->priced, t->rows->num_rows, figure, target, parameter.start) &&
        ms_law_trial_add(&t->law, &parameter, figure->unit, target, out))
        t->is_share[i] = is_share(figure);
}

static void add_coefficients(ms_arena *arena, trial *t, const ms_figures *figures,
                             ms_law_fit *out)
{
    for (int i = 0; i < figures->num; i++)
        add_coefficient(
            t, &figures->items[i],
            (double *)(void *)((char *)&t->profile + figures->items[i].offset), out);
    if (t->shipped_cluster == NULL)
        return;
    ms_level *level = &t->cluster.levels[1];
    const ms_figure latency = {.key =
                                   ms_arena_printf(arena, "%s: levels.%s.latency",
                                                   t->shipped_cluster->name, level->name),
                               .unit = MS_UNIT_SECONDS};
    add_coefficient(t, &latency, &level->latency_s, out);
}

/* ---- one fit ---- */

static void set_parameters(const trial *t, const double *parameters)
{
    ms_law_trial_set(&t->law, parameters);
    for (int i = 0; i < t->law.problem.num_parameters; i++)
        *t->law.targets[i] = value_of(t->is_share[i], *t->law.targets[i]);
}

/* Converts fitted parameters to values, and sets the coefficients on trial to them. */
static void set_fitted(const trial *t, ms_law_fit *fit)
{
    for (int i = 0; i < fit->num_values; i++) {
        ms_fit_value *fitted = &fit->values[i].fitted;
        fitted->value = value_of(t->is_share[i], fitted->value);
        fitted->low = value_of(t->is_share[i], fitted->low);
        fitted->high = value_of(t->is_share[i], fitted->high);
        *t->law.targets[i] = fitted->value;
    }
}

static double law_s(void *state, const double *parameters, const double *point)
{
    const trial *t = state;
    set_parameters(t, parameters);
    return ms_collective_row_s(&t->priced[(int)point[0]]);
}

/* Cluster of the first row that sends between nodes; a second cluster of the same profile
 * would need its own latency. */
static const ms_cluster *cluster_of_sends(const law_rows *rows)
{
    for (int i = 0; i < rows->num_rows; i++)
        if (rows->rows[i]->collective == MS_SEND && rows->rows[i]->nodes > 1)
            return rows->rows[i]->cluster;
    return NULL;
}

static ms_collective_row *rows_on_trial(ms_arena *arena, trial *t, const law_rows *rows)
{
    ms_collective_row *out = MS_NEW_ARRAY(arena, rows->num_rows, ms_collective_row);
    for (int i = 0; i < rows->num_rows; i++) {
        out[i] = *rows->rows[i];
        out[i].profile = &t->profile;
        if (out[i].cluster == t->shipped_cluster)
            out[i].cluster = &t->cluster;
    }
    return out;
}

static trial *open_trial(ms_arena *arena, const law_rows *rows, const ms_figures *figures,
                         ms_law_fit *out)
{
    trial *t = MS_NEW(arena, trial);
    double *measured_s = MS_NEW_ARRAY(arena, rows->num_rows, double);
    for (int i = 0; i < rows->num_rows; i++)
        measured_s[i] = rows->rows[i]->measured_s;
    ms_law_trial_open(arena, &t->law, measured_s, rows->num_rows);
    t->profile = *rows->profile;
    t->rows = rows;
    t->shipped_cluster = cluster_of_sends(rows);
    if (t->shipped_cluster != NULL)
        t->cluster = *t->shipped_cluster;
    t->priced = rows_on_trial(arena, t, rows);
    *out = (ms_law_fit){.profile = rows->profile->name, .law = rows->law};
    add_coefficients(arena, t, figures, out);
    t->law.problem.name =
        ms_arena_printf(arena, "%s of %s", rows->law, rows->profile->name);
    t->law.problem.law = law_s;
    t->law.problem.soft_frac = SOFT_FRAC;
    t->law.problem.state = t;
    return t;
}

/* Sum of |ln(predicted / measured)| over the rows, which the fit's objective approaches
 * for large errors. */
static double sum_of_errors(const trial *t)
{
    double sum = 0.0;
    for (int i = 0; i < t->rows->num_rows; i++)
        sum += fabs(log(ms_collective_row_s(&t->priced[i]) / t->priced[i].measured_s));
    return sum;
}

/* Sets start `k` of a fit to `starts`; k & 1: longer latencies; k & 2: lower rates. */
#define NUM_STARTS 4
static void choose_start(trial *t, const ms_law_fit *fit, const double *starts, int k)
{
    const double later = (k & 1) != 0 ? 5.0 : 1.0, slower = (k & 2) != 0 ? 0.8 : 1.0;
    for (int i = 0; i < fit->num_values; i++) {
        double factor = fit->values[i].unit == MS_UNIT_SECONDS       ? later
                        : fit->values[i].unit == MS_UNIT_BYTES_PER_S ? slower
                                                                     : 1.0;
        t->law.problem.parameters[i].start = factor * starts[i];
    }
}

/* Fits from several starts and takes the best, since coefficients of an algorithm that
 * another one beats do not change the predicted time. MS_EIO if no fit converges. */
static ms_status fit_trial(ms_ctx *cx, trial *t, ms_law_fit *out)
{
    ms_law_trial *law = &t->law;
    ms_law_fit attempt = *out;
    double starts[MS_FIT_PARAMETERS] = {0}, best = INFINITY;
    for (int i = 0; i < out->num_values; i++)
        starts[i] = law->problem.parameters[i].start;
    for (int k = 0; k < NUM_STARTS; k++) {
        ms_ctx quiet = {.arena = cx->arena};
        choose_start(t, out, starts, k);
        if (ms_law_trial_fit(&quiet, law, &attempt) != MS_OK)
            continue;
        set_fitted(t, &attempt);
        double sum = sum_of_errors(t);
        if (sum < best) {
            best = sum;
            *out = attempt;
        }
    }
    for (int i = 0; i < out->num_values; i++)
        *law->targets[i] = out->values[i].fitted.value;
    if (isfinite(best))
        return MS_OK;
    return ms_fail(cx, MS_EIO, MS_NOWHERE, "the fit of %s to %d rows does not converge",
                   law->problem.name, law->problem.num_points);
}

/* Fits one cost law and appends the result. No fit if the rows are not more than the
 * coefficients that they determine. */
static ms_status fit_law(ms_ctx *cx, const law_rows *rows, const ms_figures *figures,
                         ms_collective_fit *fits, int *num_fits)
{
    ms_collective_fit *out = &fits[*num_fits];
    trial *t = open_trial(cx->arena, rows, figures, &out->law);
    if (out->law.num_values == 0 || rows->num_rows <= out->law.num_values)
        return MS_OK;
    out->num_systems = count_systems(rows);
    (*num_fits)++;
    return fit_trial(cx, t, &out->law);
}

/* ---- cross-validation over systems ---- */

static ms_row_errors errors_of(ms_arena *arena, const ms_collective_row *rows,
                               int num_rows, bool large)
{
    double *error_fracs = MS_NEW_ARRAY(arena, num_rows, double);
    int num = 0;
    for (int i = 0; i < num_rows; i++)
        if ((rows[i].size_bytes >= MS_LARGE_COLLECTIVE_BYTES) == large)
            error_fracs[num++] =
                ms_pubrun_error_frac(ms_collective_row_s(&rows[i]), rows[i].measured_s);
    return ms_row_errors_of(arena, error_fracs, num);
}

static bool has_value(const ms_law_fit *fit, const char *key)
{
    for (int i = 0; i < fit->num_values; i++)
        if (strcmp(fit->values[i].key, key) == 0)
            return true;
    return false;
}

/* Whether the rows depend on a coefficient that is not in the fit. */
static bool need_more(trial *t, const ms_collective_row *rows, int num_rows,
                      const ms_figures *figures, const ms_law_fit *fit)
{
    for (int i = 0; i < figures->num; i++) {
        const ms_figure *figure = &figures->items[i];
        double *target = (double *)(void *)((char *)&t->profile + figure->offset);
        if (!has_value(fit, figure->key) &&
            is_determined_by(rows, num_rows, figure, target, start_of(figure, t->rows)))
            return true;
    }
    return false;
}

/* Finds the prediction errors of rows `held`, by coefficients fitted to `rows`. False if
 * the fit fails, or lacks a coefficient that `held` depends on. */
static bool price_by(ms_ctx *cx, const law_rows *rows, const ms_figures *figures,
                     const law_rows *held, ms_system_errors *out)
{
    ms_ctx attempt = {.arena = cx->arena};
    ms_law_fit fit;
    trial *t = open_trial(cx->arena, rows, figures, &fit);
    /* all rows count as one benchmark launch: no bootstrap intervals */
    t->law.problem.launch = MS_NEW_ARRAY(cx->arena, rows->num_rows, int);
    const ms_collective_row *priced = rows_on_trial(cx->arena, t, held);
    if (need_more(t, priced, held->num_rows, figures, &fit) || fit.num_values == 0 ||
        fit_trial(&attempt, t, &fit) != MS_OK)
        return false;
    out->large = errors_of(cx->arena, priced, held->num_rows, true);
    out->small = errors_of(cx->arena, priced, held->num_rows, false);
    return true;
}

static ms_system_errors hold_out(ms_ctx *cx, const law_rows *law,
                                 const ms_figures *figures, const char *system)
{
    law_rows held = select_rows(cx->arena, law, system, false),
             others = select_rows(cx->arena, law, system, true);
    ms_system_errors out = {.system = system,
                            .profile = law->profile->name,
                            .law = law->law,
                            .large = ms_row_errors_of(cx->arena, NULL, 0),
                            .small = ms_row_errors_of(cx->arena, NULL, 0)};
    ms_collective_row *rows = MS_NEW_ARRAY(cx->arena, held.num_rows, ms_collective_row);
    for (int i = 0; i < held.num_rows; i++)
        rows[i] = *held.rows[i];
    out.shipped_large = errors_of(cx->arena, rows, held.num_rows, true);
    out.shipped_small = errors_of(cx->arena, rows, held.num_rows, false);
    out.has_others = others.num_rows > 0 && price_by(cx, &others, figures, &held, &out);
    return out;
}

/* ---- undetermined coefficients ---- */

static bool is_fitted(const ms_collective_fit *fits, int num_fits, const char *profile,
                      const char *key)
{
    bool found = false;
    for (int i = 0; i < num_fits && !found; i++)
        found = strcmp(fits[i].law.profile, profile) == 0 && has_value(&fits[i].law, key);
    return found;
}

static ms_status find_undetermined(ms_ctx *cx, ms_collectives_fit *out)
{
    const char *const *names;
    int num_names, capacity = 0;
    ms_undetermined *untold = NULL;
    MS_TRY(ms_config_names(cx, "profiles", &names, &num_names));
    for (int i = 0; i < num_names; i++) {
        const ms_profile *profile;
        ms_figures figures = {.arena = cx->arena};
        MS_TRY(ms_profile_load(cx, names[i], &profile));
        ms_profile_figures(profile, &figures);
        for (int j = 0; j < figures.num; j++) {
            const ms_figure *figure = &figures.items[j];
            const ms_coefficient *c = coefficient_at(profile, figure);
            if (!ms_collective_figure(figure) ||
                (c->from != MS_FITTED && c->from != MS_MEASURED) || c->source == NULL ||
                is_fitted(out->fits, out->num_fits, profile->name, figure->key))
                continue;
            MS_MAKE_ROOM(cx->arena, untold, out->num_undetermined, capacity, 16);
            untold[out->num_undetermined++] =
                (ms_undetermined){profile->name, figure->key, figure->unit, c};
        }
    }
    out->untold = untold;
    return MS_OK;
}

ms_status ms_collectives_fit_make(ms_ctx *cx, const ms_collective_rows *rows,
                                  bool holdout, ms_collectives_fit *out)
{
    int num_laws;
    const law_rows *laws = group_by_law(cx, rows, &num_laws);
    ms_collective_fit *fits = MS_NEW_ARRAY(cx->arena, num_laws, ms_collective_fit);
    ms_system_errors *systems = MS_NEW_ARRAY(cx->arena, rows->num_rows, ms_system_errors);
    *out = (ms_collectives_fit){.fits = fits, .systems = systems};
    for (int i = 0; i < num_laws; i++) {
        ms_figures figures = fitted_figures(cx->arena, &laws[i]);
        law_rows used = rows_of_figures(cx->arena, &laws[i], &figures);
        MS_TRY(fit_law(cx, &used, &figures, fits, &out->num_fits));
        for (int j = 0; holdout && figures.num > 0 && j < laws[i].num_rows; j++)
            if (!has_system(&laws[i], j, laws[i].rows[j]->system))
                systems[out->num_systems++] =
                    hold_out(cx, &laws[i], &figures, laws[i].rows[j]->system);
    }
    return find_undetermined(cx, out);
}
