/* The measurement that could most easily turn a choice between two plans: the peak memory
 * of a faster plan that may fit; else the coefficient of which the smallest change makes
 * the slower plan the faster one. */
#include "sim/explain/advise_priv.h"
#include "sim/explain/explain_priv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Coefficients without a stated interval are changed by this factor at most. */
#define MOST_FACTOR 2.0
/* Relative difference of step times up to which two plans count as one. */
#define EQUAL_STEPS  1e-9
#define NUM_HALVINGS 20

typedef struct duel {
    ms_ctx *cx;
    const ms_workload *workload;
    const ms_advised *best, *rival;
} duel;

/* A coefficient with the relative change (as a logarithm) that would make both plans
 * equally fast if effects were linear. */
typedef struct suspect {
    const ms_explain_figure *figure;
    double log_change;
} suspect;

/* ---- intervals ---- */

/* Reads the 90 % interval that the source of a fitted coefficient states, as calibrate
 * writes it: "90 % 0.796-0.806", "90 % interval 3.1 us to 3.46 us". False if it states
 * none, or one that does not hold the value. */
static bool read_interval(ms_arena *arena, const ms_explain_figure *f, double *low,
                          double *high)
{
    const char *text = strstr(f->source, "90 % ");
    if (text == NULL)
        return false;
    text += strlen("90 % ");
    if (strncmp(text, "interval ", strlen("interval ")) == 0)
        text += strlen("interval ");
    char *end;
    *low = strtod(text, &end);
    const char *to = *end == '-' ? end : strstr(end, " to ");
    if (end == text || to == NULL)
        return false;
    const char *second = to + (*to == '-' ? 1 : strlen(" to "));
    *high = strtod(second, &end);
    double scale = 1.0;
    const char *one = ms_arena_printf(
        arena, "1 %.*s", (int)strcspn(end + (*end == ' '), " ,;:"), end + (*end == ' '));
    if (f->unit != MS_UNIT_COUNT && !ms_parse_quantity(one, f->unit, &scale))
        return false;
    *low *= scale;
    *high *= scale;
    return end != second && *low <= f->value && f->value <= *high;
}

/* ---- one coefficient ---- */

/* Logarithm of the rival's step time over the best plan's; NaN for an illegal value. */
static double lead(const duel *d, const ms_explain_figure *f, double value)
{
    if (value == f->value)
        return log(d->rival->step_s / d->best->step_s);
    return log(ms_explain_step_with(d->workload, &d->rival->plan, f, value) /
               ms_explain_step_with(d->workload, &d->best->plan, f, value));
}

/* The farthest value to try in the direction of the suspect's change. */
static double farthest(const suspect *s, const ms_advice_measure *m)
{
    const ms_figure *number = s->figure->number;
    bool up = s->log_change > 0.0;
    if (!isnan(m->low))
        return up ? m->high : m->low;
    double value = s->figure->value * (up ? MOST_FACTOR : 1.0 / MOST_FACTOR);
    if (number->low < number->high)
        value = fmin(fmax(value, number->low), number->high);
    return value;
}

/* Finds by bisection the value nearest to the coefficient's own at which the rival is as
 * fast; false if there is none up to the farthest one. */
static bool find_flip(const duel *d, const suspect *s, ms_advice_measure *m)
{
    double keeps = s->figure->value, turns = farthest(s, m);
    if (!(lead(d, s->figure, turns) <= 0.0))
        return false;
    for (int i = 0; i < NUM_HALVINGS; i++) {
        double middle = 0.5 * (keeps + turns);
        *(lead(d, s->figure, middle) > 0.0 ? &keeps : &turns) = middle;
    }
    m->flip_value = turns;
    return true;
}

/* ---- all coefficients ---- */

/* The numbers on which a plan's prediction depends, as ms_explain lists them. */
static ms_status list_figures(const duel *d, const ms_plan *plan, ms_explanation *e)
{
    const ms_workload *w = d->workload;
    ms_workload_inputs inputs = {w->model, w->cluster, w->profile, w->stack,
                                 w->group_profiles};
    const ms_explain_options options = {.rank = -1, .figures = true};
    ms_workload *own;
    MS_TRY(ms_workload_make(d->cx, &inputs, plan, &own));
    ms_status status = ms_explain(d->cx, own, plan, &options, e);
    ms_workload_close(own);
    return status;
}

static double effect_of(const ms_explanation *e, const ms_explain_figure *f)
{
    for (int i = 0; i < e->num_figures; i++)
        if (strcmp(e->figures[i].file, f->file) == 0 &&
            strcmp(e->figures[i].key, f->key) == 0)
            return e->figures[i].step_effect;
    return 0.0;
}

/* Adds the coefficients of `of` that are no datasheet figures and not in `without`. */
static int add_suspects(const duel *d, const ms_explanation *of, ms_explanation *sides[2],
                        const ms_explanation *without, suspect *list)
{
    int num = 0;
    for (int i = 0; i < of->num_figures; i++) {
        const ms_explain_figure *f = &of->figures[i];
        double slope = effect_of(sides[1], f) - effect_of(sides[0], f);
        if (f->from == MS_SPEC || !(fabs(slope) > 0.0) ||
            (without != NULL && effect_of(without, f) != 0.0))
            continue;
        list[num++] = (suspect){f, -log(d->rival->step_s / d->best->step_s) / slope};
    }
    return num;
}

static int by_change(const void *left, const void *right)
{
    const suspect *a = left, *b = right;
    double x = fabs(a->log_change), y = fabs(b->log_change);
    return (x > y) - (x < y);
}

/* Finds the coefficient of which the smallest change makes the rival the faster plan. */
static ms_status find_measure(const duel *d, ms_advice *advice)
{
    ms_explanation *best = MS_NEW(d->cx->arena, ms_explanation);
    ms_explanation *rival = MS_NEW(d->cx->arena, ms_explanation);
    ms_explanation *sides[] = {best, rival};
    MS_TRY(list_figures(d, &d->best->plan, best));
    MS_TRY(list_figures(d, &d->rival->plan, rival));
    suspect *list =
        MS_NEW_ARRAY(d->cx->arena, best->num_figures + rival->num_figures, suspect);
    int num = add_suspects(d, best, sides, NULL, list);
    num += add_suspects(d, rival, sides, best, list + num);
    qsort(list, (size_t)num, sizeof *list, by_change);
    for (int i = 0; i < num && !advice->has_measure; i++) {
        ms_advice_measure m = {list[i].figure, d->best,    d->rival, NAN,
                               .low = NAN,     .high = NAN};
        if (!read_interval(d->cx->arena, list[i].figure, &m.low, &m.high))
            m.low = m.high = NAN;
        advice->has_measure = fabs(list[i].log_change) <= 2.0 * log(MOST_FACTOR) &&
                              find_flip(d, &list[i], &m);
        advice->measure = m;
    }
    return MS_OK;
}

/* ---- the choice ---- */

/* The fastest plan that fits, with at most one change; NULL: none fits. */
static const ms_advised *fastest_single(const ms_advice *advice)
{
    const ms_advised *given = advice->given.fits ? &advice->given : NULL;
    const ms_advised *change = advice->num_fitting > 0 ? &advice->changes[0] : given;
    return given != NULL && given->step_s <= change->step_s ? given : change;
}

/* The fastest change that fits and is slower than the plan `best`; NULL: none. */
static const ms_advised *runner_up(const ms_advice *advice, const ms_advised *best)
{
    for (int i = 0; i < advice->num_fitting; i++)
        if (advice->changes[i].step_s > best->step_s * (1.0 + EQUAL_STEPS))
            return &advice->changes[i];
    return NULL;
}

/* The fastest change that is faster than `best` and whose predicted peak fits, though not
 * with the probability asked for; NULL: none. */
static const ms_advised *doubtful(const ms_advice *advice, const ms_advised *best)
{
    for (int i = advice->num_fitting; i < advice->num; i++) {
        const ms_advised *change = &advice->changes[i];
        if (change->peak_fits && change->step_s < best->step_s * (1.0 - EQUAL_STEPS))
            return change;
    }
    return NULL;
}

ms_status ms_advise_measure(ms_ctx *cx, const ms_workload *workload, ms_advice *advice)
{
    const ms_advised *single = fastest_single(advice);
    const ms_advised *best = advice->has_pair ? &advice->pair : single;
    const ms_advised *faster = best != NULL ? doubtful(advice, best) : NULL;
    if (faster != NULL) {
        advice->has_measure = true;
        advice->measure = (ms_advice_measure){NULL, best, faster, NAN, NAN, NAN};
        return MS_OK;
    }
    if (single == NULL)
        return MS_OK;
    bool keeps = single == &advice->given || !advice->given.fits;
    const ms_advised *rivals[] = {keeps ? NULL : &advice->given,
                                  runner_up(advice, single)};
    for (int i = 0; i < 2 && !advice->has_measure; i++)
        if (rivals[i] != NULL)
            MS_TRY(find_measure(&(duel){cx, workload, single, rivals[i]}, advice));
    return MS_OK;
}
