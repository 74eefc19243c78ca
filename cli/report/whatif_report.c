/* A what-if study as text: the answer in a sentence, then tables. */
#include "cli/report/whatif_report.h"

#include "base/print.h"
#include "base/table.h"
#include "base/wrap.h"
#include "sim/planning/campaign_text.h"
#include "sim/step/prediction_text.h"

#include <math.h>
#include <string.h>

/* Numbers that are printed unless all are. */
#define NUM_PRINTED 15

/* ---- sentences ---- */

static void print_sentence(FILE *out, const char *text)
{
    ms_wrap_print(out, text, (size_t)ms_table_most_width(), 0);
}

static double step_of(const ms_best_plan *plan)
{
    return ms_what_if_value_of(MS_WHAT_IF_STEP, plan);
}

/* Relative change of the kept plan's measure on a side; NaN: nothing fits. */
static double change_frac(const ms_what_if *w, const ms_what_if_number *number, int side)
{
    return ms_what_if_value_of(w->measure, &number->sides[side].kept) /
               ms_what_if_value_of(w->measure, &w->kept) -
           1.0;
}

/* "20 % more saves 9.8 %" */
static const char *side_text(ms_arena *arena, const ms_what_if *w,
                             const ms_what_if_number *number, int side)
{
    double frac = number->changed[side] / number->value - 1.0,
           change = change_frac(w, number, side);
    const char *text = ms_arena_printf(arena, "%.3g %% %s", 100.0 * fabs(frac),
                                       frac < 0.0 ? "less" : "more");
    return isnan(change)
               ? ms_arena_printf(arena, "%s: it does not fit", text)
               : ms_arena_printf(arena, "%s %s %.1f %%", text,
                                 change < 0.0 ? "saves" : "costs", 100.0 * fabs(change));
}

/* "price of campaign, of a GPU for an hour: 20 % less saves 20.0 %, 20 % more costs ..." */
static const char *number_text(ms_arena *arena, const ms_what_if *w,
                               const ms_what_if_number *number)
{
    double low = change_frac(w, number, MS_WHAT_IF_LOW),
           high = change_frac(w, number, MS_WHAT_IF_HIGH);
    int better = low < high || isnan(high) ? MS_WHAT_IF_LOW : MS_WHAT_IF_HIGH;
    return ms_arena_printf(arena, "%s of %s, %.*s: %s, %s.", number->key, number->file,
                           (int)strcspn(number->help, ";:"), number->help,
                           side_text(arena, w, number, better),
                           side_text(arena, w, number, 1 - better));
}

/* The number that the measure depends on most; after a price, which it is proportional to, also what
 * comes next. */
static void print_answer(FILE *out, ms_arena *arena, const ms_what_if *w)
{
    double value = ms_what_if_value_of(w->measure, &w->kept);
    const char *measure[MS_WHAT_IF_MEASURES] = {
        [MS_WHAT_IF_STEP] = ms_arena_printf(arena, "step of %.3f s", value),
        [MS_WHAT_IF_TIME] =
            ms_arena_printf(arena, "training of %s", ms_long_time_text(arena, value)),
        [MS_WHAT_IF_COST] =
            ms_arena_printf(arena, "cost of %s", ms_large_text(arena, value, ""))};
    if (w->num_numbers == 0)
        return;
    const char *text =
        ms_arena_printf(arena, "The %s depends most on %s", measure[w->measure],
                        number_text(arena, w, &w->numbers[0]));
    if (strcmp(w->numbers[0].key, "price") == 0 && w->num_numbers > 1)
        text = ms_arena_printf(arena, "%s Next comes %s", text,
                               number_text(arena, w, &w->numbers[1]));
    print_sentence(out, text);
}

/* "No other hardware of the list makes it faster.", of what was searched. */
static void print_best_hardware(FILE *out, ms_arena *arena, const ms_what_if *w)
{
    const ms_what_if_hardware *best = NULL;
    int num_searched = 0, num_missing = 0;
    for (int i = 0; i < w->num_hardware; i++) {
        const ms_what_if_hardware *h = &w->hardware[i];
        num_searched += h->outcome.searched;
        num_missing += h->reason == NULL && !h->outcome.searched;
        if (h->gain_frac > (best == NULL ? 0.0005 : best->gain_frac))
            best = h;
    }
    const char *scope = num_missing == 0 ? "" : " that was searched", *text;
    if (num_searched == 0 && num_missing > 0)
        text = "No other hardware was searched.";
    else if (best == NULL)
        text = ms_arena_printf(arena, "No other hardware of the list%s makes it faster.",
                               scope);
    else
        text = ms_arena_printf(
            arena, "Of other hardware%s, \"%s\" gives most: %.1f %% more throughput.",
            scope, best->name, 100.0 * best->gain_frac);
    print_sentence(out, text);
}

/* ---- cells ---- */

/* Change of a measure in per cent: "+3.1". */
static const char *change_text(ms_arena *arena, double before, double after)
{
    double percent = 100.0 * (after / before - 1.0);
    if (isnan(percent))
        return "-";
    return fabs(percent) < 0.05 ? "0" : ms_arena_printf(arena, "%+.1f", percent);
}

static const char *plan_word(const ms_what_if_outcome *outcome)
{
    if (!outcome->searched || !outcome->best.found)
        return outcome->searched ? "none" : "-";
    return outcome->plan_changes ? "other" : "same";
}

static bool knows_cost(const ms_what_if *w)
{
    return w->measure == MS_WHAT_IF_COST;
}

/* A measure where it is known, "-" elsewhere. */
static const char *days_text(ms_arena *arena, const ms_best_plan *plan)
{
    double time_s = ms_what_if_value_of(MS_WHAT_IF_TIME, plan);
    return isnan(time_s) ? "-" : ms_arena_printf(arena, "%.2f", time_s / MS_DAY_S);
}

static const char *cost_text(ms_arena *arena, const ms_best_plan *plan)
{
    double cost = ms_what_if_value_of(MS_WHAT_IF_COST, plan);
    return isnan(cost) ? "-" : ms_large_text(arena, cost, "");
}

/* ---- numbers ---- */

static void print_kept_side(ms_table *table, ms_arena *arena, const ms_what_if *w,
                            const ms_what_if_number *number, int side)
{
    const ms_best_plan *kept = &number->sides[side].kept;
    const char *text = kept->found
                           ? change_text(arena, ms_what_if_value_of(w->measure, &w->kept),
                                         ms_what_if_value_of(w->measure, kept))
                           : "none";
    ms_table_cell(table, "%s%s", text, number->limited[side] ? "*" : "");
}

static void print_best_side(ms_table *table, ms_arena *arena, const ms_what_if *w,
                            const ms_what_if_number *number, int side)
{
    const ms_what_if_outcome *o = &number->sides[side];
    ms_table_cell(table, "%s",
                  !o->searched ? "-"
                  : !o->best.found
                      ? "none"
                      : change_text(arena, ms_what_if_value_of(w->measure, &w->best),
                                    ms_what_if_value_of(w->measure, &o->best)));
}

static void print_number(ms_table *table, ms_arena *arena, const ms_what_if *w,
                         const ms_what_if_number *number)
{
    const ms_what_if_outcome *sides = number->sides;
    ms_table_cell(table, "%s", number->key);
    ms_table_cell(table, "%.*s", (int)strcspn(number->file, " "), number->file);
    ms_table_cell(table, "%s", ms_quantity_text(arena, number->value, number->unit));
    for (int side = 0; side < MS_WHAT_IF_SIDES; side++)
        print_kept_side(table, arena, w, number, side);
    for (int side = 0; side < MS_WHAT_IF_SIDES; side++)
        print_best_side(table, arena, w, number, side);
    const char *low = plan_word(&sides[0]), *high = plan_word(&sides[1]);
    ms_table_cell(table, "%s",
                  strcmp(low, high) == 0 ? low
                                         : ms_arena_printf(arena, "%s/%s", low, high));
    if (!w->kept.has_campaign)
        return;
    for (int side = 0; side < MS_WHAT_IF_SIDES; side++)
        ms_table_cell(table, "%s", days_text(arena, &sides[side].kept));
    for (int side = 0; side < MS_WHAT_IF_SIDES && knows_cost(w); side++)
        ms_table_cell(table, "%s", cost_text(arena, &sides[side].kept));
}

static ms_table *number_table(ms_arena *arena, const ms_what_if *w)
{
    double percent = 100.0 * w->change_frac;
    const char *titles[13] = {"number", "file", "value"};
    const char *words[] = {"kept", "best", NULL, "days", "cost"};
    int num = 3;
    int num_words = knows_cost(w) ? 5 : w->kept.has_campaign ? 4 : 3;
    for (int i = 0; i < num_words; i++) {
        if (words[i] == NULL) {
            titles[num++] = "plan";
            continue;
        }
        titles[num++] = ms_arena_printf(arena, "%s -%.3g %%", words[i], percent);
        titles[num++] = ms_arena_printf(arena, "%s +%.3g %%", words[i], percent);
    }
    return ms_table_columns(ms_table_new(arena),
                            knows_cost(w)          ? "ll2r1rrrrlr3r3r4r4"
                            : w->kept.has_campaign ? "ll2r1rrrrlr3r3"
                                                   : "ll2r1rrrrl",
                            titles);
}

/* Names values that were changed by less than asked. */
static void print_limits(FILE *out, ms_arena *arena, const ms_what_if *w, int num)
{
    const char *text = "";
    for (int i = 0; i < MS_WHAT_IF_SIDES * num; i++) {
        const ms_what_if_number *n = &w->numbers[i / MS_WHAT_IF_SIDES];
        int side = i % MS_WHAT_IF_SIDES;
        if (n->limited[side])
            text = ms_arena_printf(arena, "%s%s%s to %s", text,
                                   text[0] == '\0' ? "" : ", ", n->key,
                                   ms_quantity_text(arena, n->changed[side], n->unit));
    }
    if (text[0] != '\0')
        print_sentence(out,
                       ms_arena_printf(arena, "* only as far as is legal: %s", text));
}

static void print_numbers(FILE *out, ms_arena *arena, const ms_what_if *w, bool all)
{
    static const char *const words[] = {"step time", "time of the campaign",
                                        "cost of the campaign"};
    int num = all || w->num_numbers < NUM_PRINTED ? w->num_numbers : NUM_PRINTED;
    ms_table *table = number_table(arena, w);
    for (int i = 0; i < num; i++)
        print_number(table, arena, w, &w->numbers[i]);
    ms_print(out,
             "\nchange of the %s in %%: with the plan kept, and with the best plan "
             "searched again\n\n",
             words[w->measure]);
    ms_table_print(table, out);
    print_limits(out, arena, w, num);
    if (num < w->num_numbers)
        ms_print(out, "%d more numbers have less effect, %d none; --all lists those\n",
                 w->num_numbers - num, w->num_without_effect);
    else
        ms_print(out, "%d more numbers have no effect\n", w->num_without_effect);
}

/* ---- hardware ---- */

static const char *edits_text(ms_arena *arena, const ms_what_if_hardware *h)
{
    const char *text =
        h->reason != NULL ? ms_arena_printf(arena, "not applied: %s", h->reason) : "";
    for (int i = 0; i < h->num_edits; i++) {
        const ms_what_if_edit *e = &h->edits[i];
        const char *key = strchr(e->key, ' ') + 1;
        if (strncmp(key, "levels.", 7) == 0)
            key += 7;
        text = ms_arena_printf(arena, "%s%s%s %s -> %s", text, i > 0 ? ", " : "", key,
                               ms_quantity_text(arena, e->from, e->unit),
                               ms_quantity_text(arena, e->to, e->unit));
    }
    const ms_best_plan *best = &h->outcome.best;
    if (h->outcome.searched && !best->found)
        return ms_arena_printf(arena, "%s: %s", text, best->reason);
    bool beyond = h->outcome.searched && !ms_best_plan_keeps_limits(best);
    return beyond ? ms_arena_printf(arena, "%s; %s", text,
                                    ms_broken_limit_text(arena, &best->campaign))
                  : text;
}

static void print_hardware(FILE *out, ms_arena *arena, const ms_what_if *w)
{
    ms_table *table = MS_TABLE(arena, "lrr", "hardware", "step (s)", "change (%)");
    bool campaign = w->kept.has_campaign;
    if (campaign)
        MS_COLUMNS(table, "r2", "days");
    if (knows_cost(w))
        MS_COLUMNS(table, "r1", "cost");
    MS_COLUMNS(table, "lL", "plan", "what");
    for (int i = 0; i < w->num_hardware; i++) {
        const ms_what_if_hardware *h = &w->hardware[i];
        const ms_best_plan *best = &h->outcome.best;
        ms_table_cell(table, "%s", h->name);
        ms_table_cells(table, "%.3f", step_of(best));
        ms_table_cell(table, "%s", change_text(arena, step_of(&w->best), step_of(best)));
        if (campaign)
            ms_table_cell(table, "%s", days_text(arena, best));
        if (knows_cost(w))
            ms_table_cell(table, "%s", cost_text(arena, best));
        ms_table_cell(table, "%s", plan_word(&h->outcome));
        ms_table_cell(table, "%s", edits_text(arena, h));
    }
    ms_print(out, "\nother hardware, the best plan searched again\n\n");
    ms_table_print(table, out);
}

/* ---- values ---- */

static const char *step_text(ms_arena *arena, const ms_what_if_value *v,
                             ms_what_if_good good)
{
    static const char *const of[] = {"", " a node", " a GPU"};
    if (!v->found)
        return "-";
    return ms_arena_printf(arena, "+%g%s", v->step, of[good]);
}

static void print_values(FILE *out, ms_arena *arena, const ms_what_if *w)
{
    ms_table *table = MS_TABLE(arena, "llrrrr", "one more", "step", "faster (%)",
                               "GPU-hours a day", "worth a day", "less its own price");
    bool notes = false;
    for (ms_what_if_good good = 0; good < MS_WHAT_IF_GOODS; good++)
        notes = notes || !w->values[good].found;
    if (notes)
        MS_COLUMNS(table, "L", "note");
    for (ms_what_if_good good = 0; good < MS_WHAT_IF_GOODS; good++) {
        const ms_what_if_value *v = &w->values[good];
        ms_table_cell(table, "%s", ms_what_if_good_names[good]);
        ms_table_cell(table, "%s", step_text(arena, v, good));
        ms_table_cells(table, "%.2f\t%.4g\t%.4g\t%.4g", 100.0 * v->gain_frac,
                       v->gpu_hours_per_day / v->units, v->money_per_day / v->units,
                       good == MS_WHAT_IF_GPU ? v->net_money_per_day / v->units
                                              : (double)NAN);
        if (notes)
            ms_table_cell(table, "%s", v->found ? "" : v->reason);
    }
    ms_print(out, "\nvalue of one more, by the smallest step that makes the best plan "
                  "faster\n\n");
    ms_table_print(table, out);
    if (isnan(w->gpu_hour_price))
        ms_print(out, "--price 2.5 gives it in money\n");
}

/* ---- plans ---- */

static void print_other_plan(ms_table *table, ms_arena *arena, const char *label,
                             const ms_what_if_outcome *outcome)
{
    if (!outcome->plan_changes)
        return;
    ms_table_cell(table, "%s", label);
    ms_table_cells(table, "%.3f\t%.3f", step_of(&outcome->former),
                   step_of(&outcome->best));
    ms_table_cell(table, "%s", ms_plan_text(arena, &outcome->best.plan));
}

static bool changes_a_plan(const ms_what_if *w, int num_numbers)
{
    for (int i = 0; i < num_numbers; i++)
        for (int side = 0; side < MS_WHAT_IF_SIDES; side++)
            if (w->numbers[i].sides[side].plan_changes)
                return true;
    for (int i = 0; i < w->num_hardware; i++)
        if (w->hardware[i].outcome.plan_changes)
            return true;
    return false;
}

static void print_other_plans(FILE *out, ms_arena *arena, const ms_what_if *w, bool all)
{
    int num = all || w->num_numbers < NUM_PRINTED ? w->num_numbers : NUM_PRINTED;
    if (!changes_a_plan(w, num)) {
        ms_print(out, "\nno change calls for another plan\n");
        return;
    }
    ms_table *table =
        MS_TABLE(arena, "lrrL", "with", "before (s)", "best (s)", "best plan");
    for (int i = 0; i < MS_WHAT_IF_SIDES * num; i++) {
        const ms_what_if_number *n = &w->numbers[i / MS_WHAT_IF_SIDES];
        int side = i % MS_WHAT_IF_SIDES;
        const char *label = ms_arena_printf(arena, "%s %+.3g %%", n->key,
                                            100.0 * (n->changed[side] / n->value - 1.0));
        print_other_plan(table, arena, label, &n->sides[side]);
    }
    for (int i = 0; i < w->num_hardware; i++)
        print_other_plan(table, arena, w->hardware[i].name, &w->hardware[i].outcome);
    ms_print(out, "\nchanges that call for another plan\n\n");
    ms_table_print(table, out);
}

void ms_whatif_report_print(FILE *out, ms_arena *arena, const ms_what_if *w, bool all)
{
    const ms_best_plan *kept = &w->kept;
    if (!kept->found) {
        ms_print(out, "%s: %s\n", w->is_given ? "the plan does not fit" : "no plan fits",
                 kept->reason != NULL ? kept->reason : "not searched");
        return;
    }
    if (ms_best_plans_stuck(kept, 1) != NULL) {
        print_sentence(out, ms_no_progress_text(arena, &kept->campaign));
        return;
    }
    print_answer(out, arena, w);
    print_best_hardware(out, arena, w);
    fputc('\n', out);
    print_sentence(out, ms_plan_inputs_text(arena, &w->job, kept->prediction.unit));
    print_sentence(
        out, ms_arena_printf(arena, "plan kept: %s", ms_plan_text(arena, &kept->plan)));
    if (w->is_given && w->best.found)
        print_sentence(out, ms_arena_printf(arena, "fastest:   %s, %.3f s",
                                            ms_plan_text(arena, &w->best.plan),
                                            step_of(&w->best)));
    if (kept->has_campaign) {
        const char *broken = ms_broken_limit_text(arena, &kept->campaign);
        ms_print(out, "campaign:  %s days, cost %s%s%s\n", days_text(arena, kept),
                 knows_cost(w) ? cost_text(arena, kept) : "unknown without --price",
                 broken == NULL ? "" : ", ", broken == NULL ? "" : broken);
    }
    print_numbers(out, arena, w, all);
    print_hardware(out, arena, w);
    print_values(out, arena, w);
    print_other_plans(out, arena, w, all);
}
