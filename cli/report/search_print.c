/* Prints search results; less usual choices have a column only if a plan sets them. */
#include "base/print.h"
#include "base/table.h"
#include "base/wrap.h"
#include "cli/report/report.h"
#include "costmodel/plan/plan_field.h"
#include "sim/step/prediction_text.h"

#include <math.h>
#include <string.h>

/* ---- which columns ---- */

typedef struct columns {
    bool events, faster;
    ms_plan_columns plan;
} columns;

static bool default_order(const ms_plan *plan)
{
    return ms_plan_is_plain(plan, MS_CHOOSE_ORDER);
}

/* Lists the choices that have a column, from left to right; cp's method after cp. */
static void list_columns(const bool of[MS_NUM_CHOICES], ms_plan_columns *out)
{
    for (ms_choice k = 0; k < MS_NUM_CHOICES; k++) {
        if (of[k] && k != MS_CHOOSE_CP_METHOD)
            out->choices[out->num++] = k;
        if (k == MS_CHOOSE_CP && of[MS_CHOOSE_CP_METHOD])
            out->choices[out->num++] = MS_CHOOSE_CP_METHOD;
    }
}

ms_plan_columns ms_plan_columns_of(const ms_plan *const *plans, int num_plans)
{
    ms_plan_columns c = {0};
    bool of[MS_NUM_CHOICES];
    for (ms_choice k = 0; k < MS_NUM_CHOICES; k++)
        of[k] = ms_plan_fields[k].in_table && !ms_plan_fields[k].hidden;
    for (int i = 0; i < num_plans; i++) {
        c.order = c.order || !default_order(plans[i]);
        for (ms_choice k = 0; k < MS_NUM_CHOICES; k++)
            of[k] =
                of[k] || (ms_plan_fields[k].hidden && !ms_plan_is_plain(plans[i], k) &&
                          ms_plan_matters(plans[i], k));
    }
    of[MS_CHOOSE_EP] = of[MS_CHOOSE_ETP] = of[MS_CHOOSE_EP] || of[MS_CHOOSE_ETP];
    list_columns(of, &c);
    return c;
}

static columns choose_columns(ms_arena *arena, const ms_search_report *report)
{
    int num = report->result->num_found;
    const ms_plan **plans = MS_NEW_ARRAY(arena, num, const ms_plan *);
    columns c = {.faster = report->ranking != NULL};
    for (int i = 0; i < num; i++) {
        plans[i] = &report->plans[i];
        c.events = c.events || report->predictions[i].engine == MS_ENGINE_EVENT;
    }
    c.plan = ms_plan_columns_of(plans, num);
    return c;
}

/* ---- rows ---- */

const char *ms_choice_title(ms_choice choice)
{
    const ms_plan_field *field = &ms_plan_fields[choice];
    return field->short_name != NULL ? field->short_name : field->name;
}

const char *ms_choice_alignment(ms_choice choice)
{
    const ms_plan_field *field = &ms_plan_fields[choice];
    if (choice == MS_CHOOSE_ORDER)
        return "L4";
    if (!field->in_table)
        return "L5";
    if (field->kind == MS_CHOICE_SWITCH || choice == MS_CHOOSE_CP_METHOD)
        return "l2";
    return field->kind != MS_CHOICE_WHOLE || choice == MS_CHOOSE_ZERO ? "l" : "r";
}

void ms_plan_columns_name(ms_table *table, const ms_plan_columns *c)
{
    for (int i = 0; i < c->num; i++)
        MS_COLUMNS(table, ms_choice_alignment(c->choices[i]),
                   ms_choice_title(c->choices[i]));
    if (c->order)
        MS_COLUMNS(table, ms_choice_alignment(MS_CHOOSE_ORDER), "order");
}

static void name_columns(ms_table *table, const columns *c)
{
    MS_COLUMNS(table, "rrr", "#", "step (s)", "slower by (%)");
    if (c->events)
        MS_COLUMNS(table, "r5", "by replay (s)");
    MS_COLUMNS(table, "r8r6r7rr3", "tokens/s/GPU", "MFU (%)", "peak (GiB)", "spare (GiB)",
               "P(fit)");
    if (c->faster)
        MS_COLUMNS(table, "r1", "P(#1 faster)");
    ms_plan_columns_name(table, &c->plan);
}

static const char *order_text(ms_arena *arena, const ms_plan *plan)
{
    if (default_order(plan))
        return "default";
    const char *text = "";
    for (int i = 0; i < MS_NUM_PLAN_AXES; i++)
        if (plan->size[plan->order[i]] > 1)
            text = ms_arena_printf(arena, "%s%s%s", text, text[0] == '\0' ? "" : ",",
                                   ms_plan_axis_names[plan->order[i]]);
    return text;
}

static void probability_cell(ms_table *table, double probability)
{
    if (isnan(probability))
        ms_table_cell(table, "-");
    else
        ms_table_cell(table, "%.2f", probability);
}

static void figure_cells(ms_table *table, const columns *c,
                         const ms_search_report *report, int i)
{
    const ms_prediction *p = &report->predictions[i];
    const ms_tie *tie = &report->result->ties[i];
    ms_table_cells(table, "%d\t%.*f", i + 1, ms_decimals(p->step_s), p->step_s);
    if (tie->fastest)
        ms_table_cell(table, "fastest");
    else
        ms_table_cell(table, "+%.1f", 100.0 * tie->gap_frac);
    if (c->events)
        ms_table_cell(table, "%.*f", ms_decimals(p->step_s), p->replay_step_s);
    ms_table_cells(table, "%.*f\t%.1f\t%.1f\t%.1f", ms_decimals(p->tokens_per_s_per_gpu),
                   p->tokens_per_s_per_gpu, 100.0 * p->mfu_frac, ms_gib(p->peak_bytes),
                   ms_gib(ms_prediction_free_bytes(p, p->peak_bytes)));
    probability_cell(table, p->fits_probability);
    if (c->faster)
        probability_cell(table, i == 0 ? (double)NAN
                                       : ms_search_faster_probability(report, 0, i));
}

static void choice_cell(ms_table *table, ms_arena *arena, const ms_plan *plan,
                        ms_choice choice)
{
    bool kept = plan->zero == 3 && !plan->reshard_after_forward;
    const char *value =
        ms_plan_matters(plan, choice) ? ms_plan_value_text(arena, plan, choice) : "-";
    if (choice == MS_CHOOSE_ZERO)
        ms_table_cell(table, "%s%s", value, kept ? " kept" : "");
    else if (choice == MS_CHOOSE_RECOMPUTE && plan->recompute == MS_RECOMPUTE_FULL &&
             plan->recompute_layers > 0)
        ms_table_cell(table, "full, %ld a stage", plan->recompute_layers);
    else if (choice == MS_CHOOSE_RECOMPUTE && plan->recompute == MS_RECOMPUTE_AUTO)
        ms_table_cell(table, "auto %g", plan->recompute_budget_frac);
    else
        ms_table_cell(table, "%s", value);
}

void ms_plan_columns_cells(ms_table *table, ms_arena *arena, const ms_plan_columns *c,
                           const ms_plan *plan)
{
    for (int i = 0; i < c->num; i++)
        choice_cell(table, arena, plan, c->choices[i]);
    if (c->order)
        ms_table_cell(table, "%s", order_text(arena, plan));
}

/* Prints which plan is fastest by event simulation; the list's order is by replay. */
static void print_events(FILE *out, const ms_search_report *report)
{
    int best = 0;
    for (int i = 1; i < report->result->num_found; i++)
        if (report->predictions[i].step_s < report->predictions[best].step_s)
            best = i;
    ms_print(
        out,
        "step, tokens and MFU are by events, the order and the certificate by replay; "
        "by events #%d is the fastest\n",
        best + 1);
}

static void print_plans(FILE *out, ms_arena *arena, const ms_search_report *report)
{
    if (report->result->num_found == 0) {
        fputs("no plan found\n", out);
        return;
    }
    columns c = choose_columns(arena, report);
    ms_table *table = ms_table_new(arena);
    name_columns(table, &c);
    for (int i = 0; i < report->result->num_found; i++) {
        figure_cells(table, &c, report, i);
        ms_plan_columns_cells(table, arena, &c.plan, &report->plans[i]);
    }
    ms_table_print(table, out);
    if (c.events)
        print_events(out, report);
}

/* ---- rejected configurations ---- */

/* Prints a text behind a label of 13 characters, in lines that the terminal has room for. */
static void print_note(FILE *out, const char *text)
{
    const size_t label = 13;
    ms_wrap_print(out, text, (size_t)ms_table_most_width(), label);
}

static void print_funnel(FILE *out, ms_arena *arena, const ms_search_report *report)
{
    const ms_search_result *result = report->result;
    const ms_counts *counts = &result->counts;
    fputc('\n', out);
    print_note(out, ms_arena_printf(arena,
                                    "space        %ld meshes, %ld configurations looked "
                                    "at: %ld evaluated, %ld replayed",
                                    result->num_meshes, counts->configurations,
                                    counts->evaluated, counts->replayed));
    ms_search_reason reasons[MS_NUM_SEARCH_REASONS];
    ms_search_reasons(counts, reasons);
    const char *text = "rejected    ", *separator = " ";
    for (int i = 0; i < MS_NUM_SEARCH_REASONS; i++) {
        if (reasons[i].count == 0)
            continue;
        bool by_rule =
            strcmp(reasons[i].name, ms_refusal_names[MS_REFUSE_FRAMEWORK]) == 0;
        text = ms_arena_printf(
            arena, "%s%s%s %ld%s", text, separator, reasons[i].name, reasons[i].count,
            by_rule ? ms_broken_counts_text(arena, counts, report->rules) : "");
        separator = ", ";
    }
    print_note(out,
               ms_arena_printf(arena, "%s%s", text, separator[0] == ' ' ? " none" : ""));
}

/* "that fits with probability 0.95 ", or "" if plans fit by their predicted peak alone. */
static const char *fitting_text(ms_arena *arena, const ms_memory_limit *limit)
{
    return limit->knows_risk && limit->peak_factor > 1.0
               ? ms_arena_printf(arena, "that fits with probability %g ",
                                 limit->rule.min_probability)
               : "";
}

/* The certificate of a mixed cluster: it holds for layers balanced by compute. */
static const char *balanced_text(ms_arena *arena, const ms_search_report *report,
                                 double best_s)
{
    double balanced_s = report->result->balanced_step_s;
    if (isinf(balanced_s)) {
        return ms_arena_printf(
            arena, "certificate  no plan of the space with layers balanced by "
                   "compute fits; layers moved to other stages make this one "
                   "fit, which others may outdo");
    }
    return ms_arena_printf(
        arena,
        "certificate  optimal: no plan of the space %sis faster than %.*f s by replay of "
        "every action, with layers balanced by compute; layers of the plans found were "
        "then moved between stages: the fastest takes %.*f s",
        fitting_text(arena, report->memory), ms_decimals(balanced_s), balanced_s,
        ms_decimals(best_s), best_s);
}

static void print_certificate(FILE *out, ms_arena *arena, const ms_search_report *report)
{
    const ms_search_result *result = report->result;
    double best_s = ms_search_best_step_s(report), open_s = result->smallest_open_bound_s;
    double balanced_s = result->balanced_step_s;
    if (result->optimal && result->num_found > 0 && !isnan(balanced_s)) {
        print_note(out, balanced_text(arena, report, best_s));
    } else if (result->optimal && result->num_found > 0) {
        print_note(out, ms_arena_printf(arena,
                                        "certificate  optimal: no plan of the space %sis "
                                        "faster than %.*f s by replay of every action",
                                        fitting_text(arena, report->memory),
                                        ms_decimals(best_s), best_s));
    } else if (result->optimal) {
        fputs("certificate  the whole space was covered: nothing in it fits\n", out);
    } else {
        print_note(out, ms_arena_printf(arena,
                                        "certificate  not optimal: interrupted; what was "
                                        "not explored takes at least %.*f s",
                                        ms_decimals(open_s), open_s));
    }
}

/* Says how the plans are ordered: what the tie band is, and what it means. */
static void print_ties(FILE *out, const ms_search_report *report)
{
    double band_frac = report->tie_band_frac;
    if (report->result->num_found == 0 || band_frac <= 0.0)
        return;
    if (report->tie_band_is_limited) {
        ms_print(out,
                 "tie band %.2g %%: plans slower than that would break a limit; of those "
                 "this close to\nthe fastest the simplest comes first\n",
                 100.0 * band_frac);
    } else if (report->tie_band_is_given) {
        ms_print(out,
                 "plans less than %.3g %% slower than the fastest are tied: the simplest "
                 "comes first\n",
                 100.0 * band_frac);
    } else {
        ms_print(
            out,
            "tie band %.1f %%: a smaller lead is real with odds of less than 2 to 1, so "
            "of the\nplans this close to the fastest the simplest comes first\n",
            100.0 * band_frac);
    }
}

/* Says what the first plan would gain by choices that are not taken unless allowed. */
static void print_gains(FILE *out, ms_arena *arena, const ms_search_report *report)
{
    const char *text = "would gain  ", *names = "";
    for (int i = 0; i < report->num_gains; i++) {
        const ms_gain *gain = &report->gains[i];
        const char *comma = i == 0 ? "" : ",";
        bool faster = ms_gain_is_time(gain);
        text = ms_arena_printf(
            arena, "%s%s %s %.1f %s%s", text, comma, gain->allowance->name,
            faster ? 100.0 * gain->gain_frac : ms_gib(gain->freed_bytes),
            faster ? "% of the step" : "GiB", gain->fits ? "" : " if made to fit");
        names = ms_arena_printf(arena, "%s%s%s", names, comma, gain->allowance->name);
    }
    if (report->num_gains > 0)
        print_note(out, ms_arena_printf(arena, "%s: search --allow %s", text, names));
}

void ms_search_print(FILE *out, ms_arena *arena, const ms_search_report *report)
{
    ms_print(out, "%s%s%s\n",
             ms_plan_inputs_text(arena, &report->space->base, report->unit),
             report->limits[0] == '\0' ? "" : "; limits: ", report->limits);
    print_ties(out, report);
    fputc('\n', out);
    print_plans(out, arena, report);
    const char *few =
        report->result->num_found > 0
            ? ms_few_peaks_text(arena, report->space->base.stack, &report->predictions[0])
            : NULL;
    if (few != NULL)
        print_note(out, few);
    print_funnel(out, arena, report);
    print_certificate(out, arena, report);
    print_gains(out, arena, report);
    double elapsed_s = report->result->elapsed_s;
    ms_print(out, "elapsed      %.*f s, %d thread%s\n", elapsed_s < 1.0 ? 3 : 1,
             elapsed_s, report->num_threads, report->num_threads == 1 ? "" : "s");
}

void ms_why_print(FILE *out, ms_arena *arena, const ms_why *why)
{
    ms_print(out, "why          %s: %s\n", why->question->text,
             ms_why_verdict_names[why->verdict]);
    if (why->has_plan)
        ms_print(out, "  plan       %s\n", ms_plan_text(arena, &why->plan));
    for (int i = 0; i < why->num_stages; i++) {
        const ms_why_stage *stage = &why->stages[i];
        ms_print(out, "  %-10s %s%s%s\n", stage->stage, stage->verdict,
                 stage->detail == NULL ? "" : ": ",
                 stage->detail == NULL ? "" : stage->detail);
    }
}
