/* Searches of several stacks as text. */
#include "base/print.h"
#include "base/table.h"
#include "base/wrap.h"
#include "cli/options/plan_command.h"
#include "cli/report/report.h"
#include "cli/report/stacks_report.h"
#include "sim/step/prediction_text.h"

#include <math.h>

/* Whether a plan is known that no stack beats: not the best so far of a search that was
 * interrupted. */
static bool has_ceiling(const ms_stacks_report *report)
{
    return report->ceiling.outcome == MS_STACK_FOUND;
}

static double over_ceiling_frac(const ms_stacks_report *report, double step_s)
{
    return step_s / report->ceiling.prediction->step_s - 1.0;
}

static void figure_cells(ms_table *table, const ms_stacks_report *report, int i)
{
    const ms_stack_best *best = &report->stacks[i];
    const ms_prediction *p = best->prediction;
    ms_table_cells(table, "%d\t%s\t%.*f", i + 1, best->stack, ms_decimals(p->step_s),
                   p->step_s);
    if (has_ceiling(report))
        ms_table_cell(table, "%+.1f", 100.0 * over_ceiling_frac(report, p->step_s));
    ms_table_cell(table, "%.*f", ms_decimals(best->fastest_s), best->fastest_s);
    ms_table_cells(
        table, "%.1f\t%.1f\t%.1f\t%.2f", 100.0 * p->mfu_frac, ms_gib(p->peak_bytes),
        ms_gib(ms_prediction_free_bytes(p, p->peak_bytes)), p->fits_probability);
}

static void print_plans(FILE *out, ms_arena *arena, const ms_stacks_report *report)
{
    const ms_plan **plans = MS_NEW_ARRAY(arena, report->num_found, const ms_plan *);
    for (int i = 0; i < report->num_found; i++)
        plans[i] = report->stacks[i].plan;
    ms_plan_columns columns = ms_plan_columns_of(plans, report->num_found);
    ms_table *table = MS_TABLE(arena, "rlr", "#", "stack", "step (s)");
    if (has_ceiling(report))
        MS_COLUMNS(table, "r", "over ceiling (%)");
    MS_COLUMNS(table, "rr6r7rr3", "fastest (s)", "MFU (%)", "peak (GiB)", "spare (GiB)",
               "P(fit)");
    ms_plan_columns_name(table, &columns);
    for (int i = 0; i < report->num_found; i++) {
        figure_cells(table, report, i);
        ms_plan_columns_cells(table, arena, &columns, plans[i]);
    }
    ms_table_print(table, out);
}

static const char *rules_text(ms_arena *arena, const ms_broken_rules *broken)
{
    const char *text = "";
    for (int i = 0; i < broken->num; i++)
        text = ms_arena_printf(arena, "%s%s%s", text, i == 0 ? "" : ", ",
                               broken->rules[i]->name);
    return text[0] == '\0' ? "-" : text;
}

/* Prints, stack by stack, where the seconds above the ceiling are lost, and which rules
 * refuse its plan. */
static void print_gaps(FILE *out, ms_arena *arena, const ms_stacks_report *report)
{
    const ms_prediction *ceiling = report->ceiling.prediction;
    int decimals = ms_decimals(ceiling->step_s);
    ms_table *table = MS_TABLE(arena, "lrrrrr4r5L", "stack", "step", "compute", "exposed",
                               "bubble", "optimizer", "host", "rules it breaks");
    for (int i = 0; i < report->num_found; i++) {
        const ms_stack_best *best = &report->stacks[i];
        ms_step_gap gap = ms_step_gap_of(best->prediction, ceiling);
        const double parts[] = {gap.step_s,   gap.compute_s,   gap.exposed_comm_s,
                                gap.bubble_s, gap.optimizer_s, gap.host_s};
        ms_table_cell(table, "%s", best->stack);
        for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
            ms_table_cell(table, "%+.*f", decimals, parts[k]);
        ms_table_cell(table, "%s", rules_text(arena, &best->refused));
    }
    ms_print(out, "\nceiling      meshsim predict %s\n",
             ms_plan_command_text(arena, report->ceiling.plan));
    fputs("seconds beyond the ceiling's, and rules of each stack that the ceiling's plan "
          "breaks\n",
          out);
    ms_table_print(table, out);
}

static void print_without_plan(FILE *out, const ms_stacks_report *report)
{
    for (int i = 0; i < report->num_stacks; i++)
        if (report->stacks[i].reason != NULL)
            ms_print(out, "%-12s %s\n", report->stacks[i].stack,
                     report->stacks[i].reason);
}

/* Prints what an interrupted search of a stack leaves open. */
static void print_open(FILE *out, const ms_stack_best *best)
{
    if (best->outcome != MS_STACK_INTERRUPTED)
        return;
    double open_s = best->search->result->smallest_open_bound_s;
    ms_print(out, "%-12s interrupted: what was not explored takes at least %.*f s\n",
             best->stack, ms_decimals(open_s), open_s);
}

/* Prints the headline; that nothing is faster holds if the ceiling's search was not
 * interrupted and no stack is faster. */
static void print_headline(FILE *out, ms_arena *arena, const ms_stacks_report *report)
{
    const ms_stack_best *best = &report->stacks[0], *ceiling = &report->ceiling;
    if (!has_ceiling(report)) {
        ms_print(out, "no ceiling   %s\n",
                 ceiling->reason != NULL
                     ? ceiling->reason
                     : "interrupted: its search had not proved its best plan");
        return;
    }
    double step_s = ceiling->prediction->step_s;
    bool holds = report->num_found == 0 || best->fastest_s >= step_s;
    const char *text = ms_arena_printf(
        arena, holds ? "no framework can beat %.*f s here" : "stack ideal takes %.*f s",
        ms_decimals(step_s), step_s);
    if (report->num_found > 0)
        text = ms_arena_printf(arena, "%s; %s's best is %.*f s (%+.1f %%)", text,
                               best->stack, ms_decimals(best->fastest_s), best->fastest_s,
                               100.0 * over_ceiling_frac(report, best->fastest_s));
    if (report->num_found > 0 && best->prediction->step_s != best->fastest_s)
        text = ms_arena_printf(arena, "%s, the simplest plan of its tie band %.*f s",
                               text, ms_decimals(best->prediction->step_s),
                               best->prediction->step_s);
    ms_wrap_print(out, text, (size_t)ms_table_most_width(), 0);
}

void ms_stacks_print(FILE *out, ms_arena *arena, const ms_stacks_report *report)
{
    const ms_search_report *inputs = report->inputs;
    ms_plan base = inputs->space->base;
    base.stack = "as listed";
    ms_print(out, "%s%s%s\n\n", ms_plan_inputs_text(arena, &base, inputs->unit),
             inputs->limits[0] == '\0' ? "" : "; limits: ", inputs->limits);
    if (report->num_found == 0)
        fputs("no plan found\n", out);
    else
        print_plans(out, arena, report);
    if (report->num_found > 0 && has_ceiling(report))
        print_gaps(out, arena, report);
    fputc('\n', out);
    print_without_plan(out, report);
    for (int i = 0; i < report->num_stacks; i++)
        print_open(out, &report->stacks[i]);
    print_open(out, &report->ceiling);
    ms_print(out, "elapsed      %.*f s, %d thread%s\n", report->elapsed_s < 1.0 ? 3 : 1,
             report->elapsed_s, inputs->num_threads, inputs->num_threads == 1 ? "" : "s");
    if (report->num_found > 0)
        ms_print(out, "try          meshsim predict %s\n",
                 ms_plan_command_text(arena, report->stacks[0].plan));
    print_headline(out, arena, report);
}
