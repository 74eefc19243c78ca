/* Prints the explanation of an einsum as text. */
#include "base/print.h"
#include "base/table.h"
#include "cli/report/explain_einsum_priv.h"
#include "topo/mesh_text.h"

#include <string.h>

/* A tensor's shape as text: "4 x 8192"; "scalar" without dims. */
static const char *shape_text(ms_arena *arena, const long *size, int num_dims)
{
    const char *text = num_dims == 0 ? "scalar" : "";
    for (int i = 0; i < num_dims; i++)
        text = ms_arena_printf(arena, "%s%s%ld", text, i > 0 ? " x " : "", size[i]);
    return text;
}

const char *ms_einsum_spec_text(const einsum_report *report, const ms_spec *spec)
{
    return ms_spec_text(report->arena, &report->mesh, spec);
}

const char *ms_einsum_rule_text(const einsum_report *report, ms_spread spread)
{
    if (spread.letter == MS_WHOLE)
        return "no letter: every rank computes the same";
    if (spread.letter == MS_LINEAR)
        return "linear: one partial sum passes to the output";
    switch (ms_einsum_letter_kind(&report->problem.einsum, spread.letter)) {
    case MS_LETTER_BATCH:
        return "batch letter, on every input: the output is sharded";
    case MS_LETTER_FREE:
        return "free letter: the output is sharded";
    case MS_LETTER_CONTRACTION:
        return "contraction letter: the output is a partial sum";
    case MS_LETTER_SUMMED:
        return "summed letter: the output is a partial sum";
    }
    return "";
}

/* Placements on an axis of an einsum sharded over it by `spread`: "S(b), R -> S(b)". */
static const char *rule_placements(const einsum_report *report, ms_spread spread)
{
    const ms_einsum *einsum = &report->problem.einsum;
    char buf[MS_PLACEMENT_TEXT];
    const char *text = "";
    for (int i = 0; i < einsum->num_inputs; i++)
        text = ms_arena_printf(
            report->arena, "%s%s%s", text, i > 0 ? ", " : "",
            ms_placement_text(ms_einsum_operand_placement(einsum, spread, i), buf));
    return ms_arena_printf(
        report->arena, "%s -> %s", text,
        ms_placement_text(ms_einsum_output_placement(einsum, spread), buf));
}

static const char *spread_text(ms_arena *arena, ms_spread spread)
{
    if (spread.letter == MS_WHOLE)
        return "nothing";
    if (spread.letter == MS_LINEAR)
        return "a partial sum";
    if (spread.split_factor > 1)
        return ms_arena_printf(arena, "%c in %d pieces", spread.letter,
                               spread.split_factor);
    return ms_arena_printf(arena, "%c", spread.letter);
}

/* ---- tables ---- */

static void print_head(FILE *out, const einsum_report *report, bool is_product)
{
    const ms_einsum *einsum = &report->problem.einsum;
    ms_print(out, "%s (%s) on %s, %ld ranks of %s\n\n",
             is_product ? ms_arena_printf(report->arena, "einsum %s",
                                          ms_einsum_text(report->arena, einsum))
                        : ms_arena_printf(report->arena, "redistribution of %s",
                                          report->problem.output.dims),
             ms_dtype_names[report->dtype], ms_mesh_text(report->arena, &report->mesh),
             report->mesh.num_ranks, report->cluster->name);
    ms_table *table = MS_TABLE(report->arena, "lr", "letter", "size");
    if (is_product)
        MS_COLUMNS(table, "l", "kind");
    MS_COLUMNS(table, "l", "");
    for (const char *c = einsum->letters; *c != '\0'; c++) {
        ms_table_cells(table, "%c\t%ld", *c, report->size[(unsigned char)*c]);
        if (is_product)
            ms_table_cell(table, "%s",
                          ms_letter_kind_names[ms_einsum_letter_kind(einsum, *c)]);
        ms_table_cell(table, "%s",
                      report->is_default[(unsigned char)*c] ? "default size" : "");
    }
    ms_table_print(table, out);
}

/* Whether a placement has partial sums, which partition specs cannot express. */
static bool is_partial(const ms_mesh *mesh, const ms_spec *spec)
{
    for (int axis = 0; axis < mesh->num_axes; axis++)
        if (ms_placement_is_partial(spec->at[axis]))
            return true;
    return false;
}

/* Adds table cells of a tensor's placement, partition spec and local shape. */
static void add_spec(ms_table *table, const einsum_report *report,
                     const ms_global_tensor *tensor, const ms_spec *spec)
{
    const char *why;
    long local[MS_MAX_TENSOR_DIMS];
    const char *partition =
        ms_spec_partition_text(report->arena, &report->mesh, tensor, spec, &why);
    ms_spec_largest_size(&report->mesh, spec, tensor, local);
    ms_table_cells(table, "%s\t%s\t%s", ms_einsum_spec_text(report, spec),
                   partition != NULL                 ? partition
                   : is_partial(&report->mesh, spec) ? "none: partial"
                                                     : "none",
                   shape_text(report->arena, local, tensor->num_dims));
}

/* Adds a table row with a tensor's placement before `move`; if `move` changes it, also a
 * row with the new one. `what`: text of the tensor's global shape, or of the einsum. */
static void add_move(ms_table *table, const einsum_report *report,
                     const ms_global_tensor *tensor, const char *what,
                     const ms_einsum_move *move)
{
    ms_table_cells(table, "%s\t%s\t%s", tensor->name, tensor->dims, what);
    add_spec(table, report, tensor, &move->from);
    if (ms_spec_equal(&report->mesh, &move->from, &move->to))
        return;
    ms_table_cells(table, "  becomes\t\t");
    add_spec(table, report, tensor, &move->to);
}

#define SPEC_TITLES "placement", "partition spec", "local shape"

static const char *global_shape(const einsum_report *report,
                                const ms_global_tensor *tensor)
{
    return shape_text(report->arena, tensor->size, tensor->num_dims);
}

static void print_tensors(FILE *out, const einsum_report *report)
{
    const ms_einsum_problem *problem = &report->problem;
    const ms_einsum_choice *choice = &report->strategy.chosen;
    ms_table *table =
        MS_TABLE(report->arena, "lll2LLl", "tensor", "dims", "global shape", SPEC_TITLES);
    for (int i = 0; i < problem->einsum.num_inputs; i++)
        add_move(table, report, &problem->inputs[i],
                 global_shape(report, &problem->inputs[i]), &choice->inputs[i]);
    add_move(table, report, &problem->output, global_shape(report, &problem->output),
             &choice->output);
    fputc('\n', out);
    ms_table_print(table, out);
}

static void print_gradients(FILE *out, const einsum_report *report)
{
    const ms_einsum_problem *problem = &report->problem;
    const ms_einsum_backward *backward = &report->backward;
    ms_table *table =
        MS_TABLE(report->arena, "lllLLl1", "gradient of", "dims", "einsum", SPEC_TITLES);
    add_move(table, report, &problem->output, "given", &backward->output);
    bool some_partial = false;
    for (int i = 0; i < problem->einsum.num_inputs; i++) {
        const ms_einsum_move *move = &backward->inputs[i].move;
        add_move(table, report, &problem->inputs[i],
                 ms_einsum_text(report->arena, &backward->inputs[i].einsum), move);
        some_partial = some_partial || is_partial(&report->mesh, &move->from);
    }
    fputs("\nbackward\n", out);
    ms_table_print(table, out);
    if (some_partial)
        fputs(
            "A gradient is partial on an axis where its input is whole and another is not.\n",
            out);
}

/* ---- strategy ---- */

static void print_legality(FILE *out, const einsum_report *report)
{
    const ms_einsum_strategy *strategy = &report->strategy;
    fputc('\n', out);
    if (strategy->is_legal)
        fputs("Legal as given: nothing moves before the product.\n", out);
    for (int axis = 0; axis < report->mesh.num_axes; axis++) {
        ms_einsum_conflict conflict = strategy->conflict[axis];
        if (conflict != MS_CONFLICT_NONE)
            ms_print(out, "Not legal as given on axis %s: %s.\n",
                     report->mesh.axes[axis].name, ms_einsum_conflict_texts[conflict]);
    }
    const char *of = report->problem.wanted != NULL ? " and the output" : "";
    const char *how = strategy->is_exhaustive ? "of all combinations of spreads"
                                              : "one axis after the other";
    if (!strategy->is_legal)
        ms_print(out, "Chosen: the least time to move the inputs%s and multiply, %s.\n",
                 of, how);
}

static void print_strategy(FILE *out, const einsum_report *report)
{
    ms_table *table = MS_TABLE(report->arena, "lrllL", "axis", "size", "spread by",
                               "inputs -> output", "rule");
    for (int axis = 0; axis < report->mesh.num_axes; axis++) {
        ms_spread spread = report->strategy.chosen.spread[axis];
        ms_table_cells(table, "%s\t%ld\t%s\t%s\t%s", report->mesh.axes[axis].name,
                       report->mesh.axes[axis].size, spread_text(report->arena, spread),
                       rule_placements(report, spread),
                       ms_einsum_rule_text(report, spread));
    }
    ms_table_print(table, out);
}

static void print_cheaper(FILE *out, const einsum_report *report)
{
    const ms_einsum_choice *cheaper = &report->strategy.cheaper;
    if (!report->strategy.has_cheaper)
        return;
    ms_print(out, "Cheaper forward: %.3f ms instead of %.3f ms, with",
             1e3 * cheaper->total_s, 1e3 * report->strategy.chosen.total_s);
    for (int axis = 0; axis < report->mesh.num_axes; axis++)
        ms_print(out, "%s %s spread by %s", axis > 0 ? "," : "",
                 report->mesh.axes[axis].name,
                 spread_text(report->arena, cheaper->spread[axis]));
    ms_print(out, "; output %s.\n", ms_einsum_spec_text(report, &cheaper->output.to));
}

/* ---- collectives ---- */

/* Names of axes: "dp,tp". */
static const char *axes_text(ms_arena *arena, const ms_mesh *mesh, ms_axis_set axes)
{
    const char *text = "";
    for (int axis = 0; axis < mesh->num_axes; axis++)
        if ((axes & (1U << axis)) != 0)
            text = ms_arena_printf(arena, "%s%s%s", text, text[0] != '\0' ? "," : "",
                                   mesh->axes[axis].name);
    return text;
}

double ms_einsum_sent_bytes(const einsum_report *report, const ms_redistribute_step *step)
{
    if (ms_change_is_local(step->change))
        return 0.0;
    return ms_collective_wire_bytes(ms_change_collective(step->change),
                                    ms_axis_set_ranks(&report->mesh, step->axes),
                                    step->size_bytes);
}

/* Placements before and after on the axes that change: "P@tp -> R". */
static const char *change_text(const einsum_report *report,
                               const ms_redistribute_step *step)
{
    ms_spec from = step->from, to = step->to;
    for (int axis = 0; axis < report->mesh.num_axes; axis++)
        if (ms_placement_equal(from.at[axis], to.at[axis]))
            from.at[axis] = to.at[axis] = ms_replicate;
    return ms_arena_printf(report->arena, "%s -> %s", ms_einsum_spec_text(report, &from),
                           ms_einsum_spec_text(report, &to));
}

static void add_event(ms_table *table, const einsum_report *report,
                      const einsum_event *event)
{
    const ms_redistribute_step *step = event->step;
    ms_arena *arena = report->arena;
    bool local = ms_change_is_local(step->change);
    ms_table_cells(
        table, "%s\t%s\t%s\t%s\t%.3f\t%.3f\t%.3f\t%s", event->tensor,
        ms_change_names[step->change], axes_text(arena, &report->mesh, step->axes),
        local ? "none" : ms_axis_set_tier(&report->mesh, report->cluster, step->axes),
        1e-6 * step->size_bytes, 1e-6 * ms_einsum_sent_bytes(report, step),
        1e3 * step->seconds, change_text(report, step));
}

static void print_events(FILE *out, const einsum_report *report)
{
    if (report->num_events == 0) {
        fputs("none\n", out);
        return;
    }
    ms_table *table = MS_TABLE(report->arena, "Llll2rr1rL", "tensor", "kind", "axis",
                               "tier", "size (MB)", "sent (MB)", "time (ms)", "change");
    for (int i = 0; i < report->num_events; i++)
        add_event(table, report, &report->events[i]);
    ms_table_print(table, out);
}

#define NOT_OPTIMAL                                                                      \
    "Too many placements lie between to look at all of them: there may be a cheaper way"

/* Prints a remark if, for some tensor, cheaper collectives than the chosen may exist. */
static void print_optimality(FILE *out, const einsum_report *report)
{
    const ms_einsum_problem *problem = &report->problem;
    bool optimal = report->strategy.chosen.output.plan.is_optimal &&
                   report->backward.output.plan.is_optimal;
    for (int i = 0; i < problem->einsum.num_inputs; i++)
        optimal = optimal && report->strategy.chosen.inputs[i].plan.is_optimal &&
                  report->backward.inputs[i].move.plan.is_optimal;
    if (!optimal)
        fputs(NOT_OPTIMAL " for some tensor.\n", out);
}

static void print_totals(FILE *out, const einsum_report *report)
{
    ms_table *table = MS_TABLE(report->arena, "lrrr", "total", "forward (ms)",
                               "backward (ms)", "sent (MB)");
    double forward_s = report->strategy.chosen.compute_s;
    double backward_s = report->backward_compute_s, sent_bytes = 0.0;
    ms_table_cells(table, "compute, %.4g and %.4g TFLOP\t%.3f\t%.3f\t%.3f",
                   1e-12 * report->forward_flop, 1e-12 * report->backward_flop,
                   1e3 * forward_s, 1e3 * backward_s, 0.0);
    for (int i = 0; i < report->num_totals; i++) {
        const einsum_total *total = &report->totals[i];
        ms_table_cells(table, "collectives over %s\t%.3f\t%.3f\t%.3f",
                       axes_text(report->arena, &report->mesh, total->axes),
                       1e3 * total->forward_s, 1e3 * total->backward_s,
                       1e-6 * total->sent_bytes);
        forward_s += total->forward_s;
        backward_s += total->backward_s;
        sent_bytes += total->sent_bytes;
    }
    ms_table_cells(table, "one after the other\t%.3f\t%.3f\t%.3f", 1e3 * forward_s,
                   1e3 * backward_s, 1e-6 * sent_bytes);
    fputc('\n', out);
    ms_table_print(table, out);
}

/* ---- limits of notations ---- */

static void print_notation(FILE *out, const einsum_report *report, const char *name,
                           const ms_global_tensor *tensor, const ms_spec *spec)
{
    const char *why;
    if (!is_partial(&report->mesh, spec) &&
        ms_spec_partition_text(report->arena, &report->mesh, tensor, spec, &why) == NULL)
        ms_print(out, "%s has no partition spec:\n  %s\n", name, why);
    const char *strided = ms_spec_needs_strided(report->arena, &report->mesh, spec);
    if (strided != NULL)
        ms_print(out, "%s needs a strided shard:\n  %s\n", name, strided);
}

static void print_notations(FILE *out, const einsum_report *report)
{
    const ms_einsum_problem *problem = &report->problem;
    for (int i = report->num_given; i < problem->einsum.num_inputs; i++)
        ms_print(out, "%s has no --in: replicated\n", problem->inputs[i].name);
    for (int i = 0; i < problem->einsum.num_inputs; i++)
        print_notation(out, report, problem->inputs[i].name, &problem->inputs[i],
                       &problem->given[i]);
    print_notation(out, report, problem->output.name, &problem->output,
                   &report->strategy.chosen.output.to);
}

void ms_einsum_print(FILE *out, const einsum_report *report)
{
    print_head(out, report, true);
    print_tensors(out, report);
    print_notations(out, report);
    print_legality(out, report);
    print_strategy(out, report);
    print_cheaper(out, report);
    print_gradients(out, report);
    fputs("\ncollectives, forward and then backward\n", out);
    print_events(out, report);
    print_optimality(out, report);
    print_totals(out, report);
}

void ms_redistribution_report_print(FILE *out, const einsum_report *report,
                                    const ms_einsum_move *move)
{
    const ms_global_tensor *tensor = &report->problem.output;
    print_head(out, report, false);
    ms_table *table =
        MS_TABLE(report->arena, "lll2LLl", "tensor", "dims", "global shape", SPEC_TITLES);
    add_move(table, report, tensor, global_shape(report, tensor), move);
    fputc('\n', out);
    ms_table_print(table, out);
    print_notation(out, report, "source", tensor, &move->from);
    print_notation(out, report, "target", tensor, &move->to);
    fputs("\ncollectives, in order\n", out);
    print_events(out, report);
    double sent_bytes = 0.0;
    for (int i = 0; i < report->num_events; i++)
        sent_bytes += ms_einsum_sent_bytes(report, report->events[i].step);
    ms_print(out, "total %.3f ms, %.3f MB sent by a rank\n", 1e3 * move->plan.seconds,
             1e-6 * sent_bytes);
    fputs(move->plan.is_optimal
              ? "The cheapest sequence that keeps every dim split in an order of axes.\n"
              : NOT_OPTIMAL ".\n",
          out);
}
