/* Advice on a plan as text. */
#include "base/print.h"
#include "base/table.h"
#include "cli/report/explain_print_priv.h"
#include "sim/step/prediction_text.h"

#include <math.h>
#include <string.h>

static void add_row(ms_table *table, const char *number, const ms_advised *given,
                    const ms_advised *change)
{
    int decimals = ms_decimals(given->step_s);
    double more_s = change->step_s - given->step_s;
    ms_table_cells(table, "%s\t%.*f", number, decimals, change->step_s);
    if (change == given)
        ms_table_cells(table, "-\t-");
    else
        ms_table_cells(table, "%+.*f\t%+.1f", decimals, more_s,
                       100.0 * more_s / given->step_s);
    ms_table_cells(table, "%.1f\t%.2f\t%s", ms_gib(change->peak_bytes),
                   change->fits_probability,
                   change == given ? "this plan" : change->change);
}

/* Whether two changes differ in nothing but the virtual stages of a schedule, or in the
 * number of layers that are recomputed. */
static bool same_but_numbers(const ms_advised *a, const ms_advised *b)
{
    ms_plan plan = a->plan;
    plan.virtual_stages = b->plan.virtual_stages;
    plan.num_stage_layers = b->plan.num_stage_layers;
    plan.layers_per_stage = b->plan.layers_per_stage;
    plan.recompute_layers = b->plan.recompute_layers;
    return ms_plan_equal(&plan, &b->plan);
}

bool ms_advice_is_repeated(const ms_advice *advice, int change)
{
    for (int i = 0; i < change; i++)
        if (same_but_numbers(&advice->changes[i], &advice->changes[change]))
            return true;
    return false;
}

static void print_table(FILE *out, ms_arena *arena, const ms_advice *advice, int rows)
{
    ms_table *table = MS_TABLE(arena, "rrr5rrrL", "#", "step (s)", "by (s)", "(%)", "GiB",
                               "P(fit)", "change");
    int num = 0;
    add_row(table, "-", &advice->given, &advice->given);
    for (int i = 0; i < advice->num_fitting && num < rows; i++)
        if (!ms_advice_is_repeated(advice, i))
            add_row(table, ms_arena_printf(arena, "%d", ++num), &advice->given,
                    &advice->changes[i]);
    ms_table_print(table, out);
    if (num == advice->num_fitting)
        return;
    ms_print(out,
             "%d more fit, some of them rows above with other virtual stages or layers; "
             "--json lists all\n",
             advice->num_fitting - num);
}

/* "step 8.12 s (-25.5 %), peak 31.7 GiB, P(fit) 0.98" */
static const char *outcome_text(ms_arena *arena, const ms_advice *advice,
                                const ms_advised *change)
{
    const char *risk =
        isnan(change->fits_probability)
            ? ""
            : ms_arena_printf(arena, ", P(fit) %.2f", change->fits_probability);
    return ms_arena_printf(arena, "step %.*f s (%+.1f %%), peak %.1f GiB%s",
                           ms_decimals(change->step_s), change->step_s,
                           100.0 * (change->step_s / advice->given.step_s - 1.0),
                           ms_gib(change->peak_bytes), risk);
}

static void print_unfit(FILE *out, ms_arena *arena, const ms_advice *advice)
{
    int num = advice->num - advice->num_fitting;
    if (num == 0)
        return;
    const ms_advised *shown = &advice->changes[advice->num_fitting];
    for (int i = 0; i < advice->num && advice->num_fitting == 0; i++)
        if (advice->changes[i].peak_bytes < shown->peak_bytes)
            shown = &advice->changes[i];
    ms_print_paragraph(
        out,
        ms_arena_printf(arena, "%d change%s not fit; %s of them: %s: %s", num,
                        num == 1 ? " does" : "s do",
                        advice->num_fitting == 0 ? "the smallest" : "the fastest",
                        shown->change, outcome_text(arena, advice, shown)),
        0);
}

const char *ms_advice_pair_text(ms_arena *arena, const ms_advice *advice)
{
    if (advice->has_pair)
        return ms_arena_printf(arena, "%s: %s", advice->pair.change,
                               outcome_text(arena, advice, &advice->pair));
    return advice->num_fitting > 0 || advice->given.fits
               ? "no pair of changes that fits is faster than one alone"
               : "no pair of changes fits";
}

static const char *name_of(const ms_advised *plan)
{
    return plan->change[0] == '\0' ? "this plan" : plan->change;
}

static const char *quantity(ms_arena *arena, const ms_explain_figure *f, double value)
{
    char *text = ms_arena_alloc(arena, 64);
    return ms_format_quantity(text, 64, value, f->unit);
}

static const char *peak_text(ms_arena *arena, const ms_advice_measure *m)
{
    const char *risk = isnan(m->rival->fits_probability)
                           ? ""
                           : ms_arena_printf(arena, ", which fit with probability %.2f",
                                             m->rival->fits_probability);
    return ms_arena_printf(
        arena,
        "peak memory of \"%s\": %.1f GiB are predicted%s. If it fits, it is %.1f %% faster "
        "than \"%s\".",
        m->rival->change, ms_gib(m->rival->peak_bytes), risk,
        100.0 * (1.0 - m->rival->step_s / m->best->step_s), name_of(m->best));
}

static const char *measure_text(ms_arena *arena, const ms_advice_measure *m)
{
    if (m->figure == NULL)
        return peak_text(arena, m);
    const ms_explain_figure *f = m->figure;
    const char *interval =
        isnan(m->low)
            ? "no interval is stated"
            : ms_arena_printf(arena, "90 %% interval %s to %s",
                              quantity(arena, f, m->low), quantity(arena, f, m->high));
    return ms_arena_printf(
        arena,
        "%s of %s (%s): %s, %s; %s. At %s (%+.3g %%) \"%s\" would be as fast as \"%s\".",
        f->key, f->file, f->help, quantity(arena, f, f->value),
        ms_provenance_names[f->from], interval, quantity(arena, f, m->flip_value),
        100.0 * (m->flip_value / f->value - 1.0), name_of(m->rival), name_of(m->best));
}

const char *ms_advice_measure_text(ms_arena *arena, const ms_advice *advice)
{
    return advice->has_measure
               ? measure_text(arena, &advice->measure)
               : "no single coefficient, within its interval or a factor of 2, "
                 "changes which single change is the best";
}

void ms_advice_print(FILE *out, ms_arena *arena, const ms_advice *advice, int rows)
{
    const char *rule = "";
    if (advice->limit.knows_risk && advice->limit.rule.min_probability > 0.0)
        rule = ms_arena_printf(arena, " with probability %g",
                               advice->limit.rule.min_probability);
    ms_print(out,
             "\nwhat to change: the fastest single changes that fit%s\n"
             "(steps by replay, their differences, peaks in GiB)\n",
             rule);
    print_table(out, arena, advice, rows);
    print_unfit(out, arena, advice);
    fputs("\nbest pair of changes\n", out);
    ms_print_paragraph(out, ms_advice_pair_text(arena, advice), 2);
    if (advice->num_fitting == 0)
        return;
    fputs("\nwhat to measure\n", out);
    ms_print_paragraph(out, ms_advice_measure_text(arena, advice), 2);
}
