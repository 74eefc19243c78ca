/* meshsim compare: the difference of two predictions, simulations, runs or traces; or a
 * table of any number of them, of plans, and of the plans of a search. */
#include "base/print.h"
#include "base/table.h"
#include "cli/options/plan_command.h"
#include "cli/report/compare_report.h"
#include "costmodel/calibrate/ranking_spread.h"
#include "costmodel/plan/plan_field.h"
#include "sim/result/comparison.h"
#include "sim/step/prediction_text.h"

#include <math.h>
#include <string.h>

#define MAX_NODES 20 /* most kinds of graph nodes listed in text */

/* ---- which is faster ---- */

/* Whether errors known from published runs cancel between two predictions as between
 * layouts measured side by side: one model, cluster, stack and batch. */
static bool are_of_one_workload(const ms_result *a, const ms_result *b)
{
    static const ms_choice shared[] = {
        MS_CHOOSE_MODEL,  MS_CHOOSE_CLUSTER,         MS_CHOOSE_GPUS,
        MS_CHOOSE_STACK,  MS_CHOOSE_SEQUENCE_LENGTH, MS_CHOOSE_GLOBAL_BATCH,
        MS_CHOOSE_COMPUTE};
    bool same =
        a->has_interval && b->has_interval && a->made_for != NULL && b->made_for != NULL;
    for (size_t i = 0; i < sizeof shared / sizeof *shared && same; i++)
        same = ms_plan_same(a->made_for, b->made_for, shared[i]);
    return same;
}

/* Sets the probabilities that the first result is faster than others of its workload. */
static ms_status find_faster(ms_ctx *cx, ms_results *results)
{
    const ms_ranking_spread *spread;
    const ms_result *first = &results->items[0];
    for (int i = 1; i < results->num; i++) {
        ms_result *other = &results->items[i];
        if (!are_of_one_workload(first, other))
            continue;
        MS_TRY(ms_ranking_spread_load(cx, MS_RANKING_SPREAD, &spread));
        other->first_faster_probability =
            ms_faster_probability(spread, first->step_s, other->step_s, NULL);
    }
    return MS_OK;
}

/* ---- text ---- */

static void value_cell(ms_table *table, double value)
{
    if (isnan(value))
        ms_table_cell(table, "%s", "");
    else
        ms_table_cell(table, "%.3f", value);
}

static void ratio_cell(ms_table *table, double a, double b)
{
    if (a > 0.0 && b > 0.0)
        ms_table_cell(table, "%.3g", b / a);
    else
        ms_table_cell(table, "%s", "");
}

/* Adds a cell: a row's share of the difference between both step times, in percent. */
static void share_cell(ms_table *table, double difference_s, double all_s)
{
    if (all_s == 0.0 || isnan(difference_s))
        ms_table_cell(table, "%s", "");
    else
        ms_table_cell(table, "%.1f", 100.0 * difference_s / all_s);
}

static void time_row(ms_table *table, const char *name, double a_s, double b_s,
                     double all_s)
{
    double difference_s = (isnan(b_s) ? 0.0 : b_s) - (isnan(a_s) ? 0.0 : a_s);
    ms_table_cell(table, "%s", name);
    value_cell(table, 1e3 * a_s);
    value_cell(table, 1e3 * b_s);
    value_cell(table, 1e3 * difference_s);
    ratio_cell(table, a_s, b_s);
    share_cell(table, difference_s, all_s);
}

static void print_times(FILE *out, ms_arena *arena, const ms_comparison *c)
{
    double all_s = c->b->step_s - c->a->step_s;
    ms_table *table = MS_TABLE(arena, "lrrrrr", "times", "A (ms)", "B (ms)", "B - A (ms)",
                               "B / A", "of the difference (%)");
    time_row(table, "step", c->a->step_s, c->b->step_s, all_s);
    for (int i = 0; i < MS_NUM_RESULT_TIMES; i++)
        if (!isnan(c->a->times_s[i]) && !isnan(c->b->times_s[i]))
            time_row(table, ms_result_time_names[i], c->a->times_s[i], c->b->times_s[i],
                     all_s);
    fputc('\n', out);
    ms_table_print(table, out);
}

static void memory_row(ms_table *table, const char *name, double a, double b)
{
    const double mib = 1048576.0;
    ms_table_cell(table, "%s", name);
    value_cell(table, a / mib);
    value_cell(table, b / mib);
    value_cell(table, (b - a) / mib);
    ratio_cell(table, a, b);
}

static void print_memory(FILE *out, ms_arena *arena, const ms_comparison *c)
{
    if (isnan(c->a->peak_bytes) || isnan(c->b->peak_bytes))
        return;
    ms_table *table = MS_TABLE(arena, "lrrrr", "memory at the peak", "A (MiB)", "B (MiB)",
                               "B - A (MiB)", "B / A");
    memory_row(table, "peak", c->a->peak_bytes, c->b->peak_bytes);
    for (int i = 0; i < MS_NUM_MEMORY_CATEGORIES; i++)
        if (c->a->memory[i] > 0.0 || c->b->memory[i] > 0.0)
            memory_row(table, ms_memory_category_names[i], c->a->memory[i],
                       c->b->memory[i]);
    fputc('\n', out);
    ms_table_print(table, out);
}

/* Prints the kinds of nodes from index `first` on, summed in one row. */
static void print_others(ms_table *table, ms_arena *arena, const ms_comparison *c,
                         int first)
{
    double a_s = 0.0, b_s = 0.0;
    for (int i = first; i < c->num_nodes; i++) {
        a_s += isnan(c->nodes[i].a_s) ? 0.0 : c->nodes[i].a_s;
        b_s += isnan(c->nodes[i].b_s) ? 0.0 : c->nodes[i].b_s;
    }
    time_row(table, ms_arena_printf(arena, "(%d other kinds)", c->num_nodes - first), a_s,
             b_s, c->b->step_s - c->a->step_s);
}

static void print_nodes_heading(FILE *out, const ms_comparison *c)
{
    fputs("\nwhat explains the difference: times of one step, mean over ranks; transfers "
          "count while compute waits for them\n",
          out);
    if (c->a_is_predicted_by_b || c->b_is_predicted_by_a) {
        ms_print(
            out,
            "(kinds of %s are from the prediction of the same step that %s recorded)\n",
            c->a_is_predicted_by_b ? "A" : "B", c->a_is_predicted_by_b ? "B" : "A");
    }
}

static void print_nodes(FILE *out, ms_arena *arena, const ms_comparison *c)
{
    if (c->num_nodes == 0)
        return;
    double all_s = c->b->step_s - c->a->step_s;
    ms_table *table = MS_TABLE(arena, "Lrrrrr", "kind of node", "A (ms)", "B (ms)",
                               "B - A (ms)", "B / A", "of the difference (%)");
    int num = c->num_nodes < MAX_NODES ? c->num_nodes : MAX_NODES;
    for (int i = 0; i < num; i++)
        time_row(table, c->nodes[i].kind, c->nodes[i].a_s, c->nodes[i].b_s, all_s);
    if (c->num_nodes > num)
        print_others(table, arena, c, num);
    time_row(table, "(no kind: host, waiting for the last rank)", c->rest.a_s,
             c->rest.b_s, all_s);
    time_row(table, "step", c->a->step_s, c->b->step_s, all_s);
    print_nodes_heading(out, c);
    ms_table_print(table, out);
}

static void print_text(FILE *out, ms_arena *arena, const ms_comparison *c)
{
    ms_print(out, "A  %s, a %s\n", c->a->path, ms_result_kind_names[c->a->kind]);
    ms_print(out, "B  %s, a %s\n", c->b->path, ms_result_kind_names[c->b->kind]);
    if (c->a->plan != NULL && c->b->plan != NULL && strcmp(c->a->plan, c->b->plan) != 0)
        ms_print(out, "\nA and B have different plans:\nA  %s\nB  %s\n", c->a->plan,
                 c->b->plan);
    if (!isnan(c->b->first_faster_probability))
        ms_print(out, "\nA is faster than B with probability %.2f\n",
                 c->b->first_faster_probability);
    print_times(out, arena, c);
    print_memory(out, arena, c);
    print_nodes(out, arena, c);
}

/* ---- JSON ---- */

static void write_result(ms_jout *out, const char *key, const ms_result *result)
{
    ms_jout_begin_object_field(out, key);
    ms_jout_text_field(out, "file", result->path);
    ms_jout_text_field(out, "kind", ms_result_kind_names[result->kind]);
    ms_jout_text_field(out, "plan", result->plan);
    ms_jout_number_field(out, "step_s", result->step_s);
    ms_jout_number_field(out, "peak_bytes", result->peak_bytes);
    ms_jout_end_object(out);
}

static void write_pair(ms_jout *out, const char *label, const char *name,
                       const char *unit, const double values[2])
{
    const char *const sides[] = {"a", "b"};
    char key[32];
    ms_jout_begin_object(out);
    ms_jout_text_field(out, label, name);
    for (int i = 0; i < 2; i++) {
        snprintf(key, sizeof key, "%s_%s", sides[i], unit);
        ms_jout_number_field(out, key, values[i]);
    }
    snprintf(key, sizeof key, "difference_%s", unit);
    ms_jout_number_field(out, key, values[1] - values[0]);
    ms_jout_end_object(out);
}

/* Writes the times of one kind of graph node in results a and b, and their difference. A
 * result without the kind has null, counted as 0 s in the difference. */
static void write_node(ms_jout *out, const ms_compared_node *node)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "kind", node->kind);
    ms_jout_number_field(out, "a_s", node->a_s);
    ms_jout_number_field(out, "b_s", node->b_s);
    ms_jout_number_field(out, "difference_s", ms_compared_difference_s(node));
    ms_jout_end_object(out);
}

static void write_pair_fields(ms_jout *out, const ms_comparison *c)
{
    const ms_result *a = c->a, *b = c->b;
    write_result(out, "a", a);
    write_result(out, "b", b);
    ms_jout_number_field(out, "difference_s", b->step_s - a->step_s);
    ms_jout_number_field(out, "difference_frac", b->step_s / a->step_s - 1.0);
    ms_jout_number_field(out, "faster_probability", b->first_faster_probability);
    ms_jout_begin_array_field(out, "times");
    for (int i = 0; i < MS_NUM_RESULT_TIMES; i++)
        write_pair(out, "time", ms_result_time_names[i], "s",
                   (const double[]){a->times_s[i], b->times_s[i]});
    ms_jout_end_array(out);
    ms_jout_begin_array_field(out, "memory");
    for (int i = 0; i < MS_NUM_MEMORY_CATEGORIES; i++)
        write_pair(out, "part", ms_memory_category_names[i], "bytes",
                   (const double[]){a->memory[i], b->memory[i]});
    ms_jout_end_array(out);
    ms_jout_begin_array_field(out, "nodes");
    for (int i = 0; i < c->num_nodes; i++)
        write_node(out, &c->nodes[i]);
    ms_jout_end_array(out);
    if (c->num_nodes > 0) {
        ms_jout_key(out, "rest");
        write_node(out, &c->rest);
    }
}

/* Writes all results and, with `pair`, the difference of the two. */
static void write_json(ms_jout *out, const ms_results *results, const ms_comparison *pair)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "schema", "meshsim.comparison/1");
    if (pair != NULL)
        write_pair_fields(out, pair);
    ms_results_write_plans(out, results);
    ms_jout_end_object(out);
}

/* ---- input ---- */

/* Predicts a plan of a plan file; what does not fit into memory is no error here. */
static ms_status predict(ms_ctx *cx, ms_result *result)
{
    ms_plan plan = *result->made_for;
    ms_workload *workload;
    ms_prediction prediction;
    MS_TRY(ms_plan_open_fitted(cx, &plan, &workload));
    ms_status status = ms_predict(cx, workload, &plan, &prediction);
    if (status == MS_OK)
        ms_result_predicted(result, &prediction);
    ms_workload_close(workload);
    return status;
}

/* Reads all files, so that the errors of all are reported; the first decides. */
static ms_status read_files(ms_ctx *cx, const ms_words *words, ms_results *results)
{
    ms_status first = MS_OK;
    for (int i = 0; i < words->num_words; i++) {
        int before = results->num;
        ms_status status = ms_results_add_file(cx, words->words[i], results);
        for (int k = before; k < results->num && status == MS_OK; k++)
            if (results->items[k].kind == MS_RESULT_PLAN &&
                results->items[k].search_rank == 0)
                status = predict(cx, &results->items[k]);
        first = first != MS_OK ? first : status;
    }
    return first;
}

static ms_status check_words(ms_ctx *cx, const ms_args *args)
{
    const ms_words *words = &args->words;
    int num_stdin = 0;
    for (int i = 0; i < words->num_words; i++) {
        MS_TRY(ms_output_check_differ(cx, words->words[i], args->common.output));
        num_stdin += strcmp(words->words[i], "-") == 0;
    }
    if (num_stdin > 1)
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE, "%s files are standard input",
                       words->num_words == 2 ? "both" : "several");
    return MS_OK;
}

/* MS_EINPUT unless there are at least two results. */
static ms_status check_number(ms_ctx *cx, const ms_words *words,
                              const ms_results *results)
{
    if (results->num >= 2)
        return MS_OK;
    if (results->num == 1 && results->items[0].search_rank > 0) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "%s has one plan, two are needed to compare",
                words->words[0]);
        return ms_hint(cx, "\"meshsim search --top N --json\" lists more");
    }
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "two files to compare are needed, %s given",
            words->num_words == 0 ? "none is" : "one is");
    return ms_hint(cx, "meshsim compare predicted.json measured.json");
}

/* ---- command ---- */

static ms_comparison compare_pair(ms_ctx *cx, const ms_results *results)
{
    ms_comparison c =
        ms_comparison_make(cx->arena, &results->items[0], &results->items[1]);
    if (c.num_nodes == 0) {
        ms_note(
            cx,
            "no kinds of nodes to compare: only traces, and runs and simulations with "
            "--detail node, have them, and both files must");
    }
    return c;
}

static ms_status compare(ms_ctx *cx, const ms_args *args, const ms_results *results)
{
    bool is_pair = results->num == 2 && results->items[0].search_rank == 0 &&
                   results->items[1].search_rank == 0;
    ms_comparison pair = {0};
    if (is_pair)
        pair = compare_pair(cx, results);
    ms_output out;
    MS_TRY(ms_output_open(cx, args->common.output, &out));
    if (args->common.json)
        write_json(&out.json, results, is_pair ? &pair : NULL);
    else if (is_pair)
        print_text(out.file, cx->arena, &pair);
    else
        ms_results_print(out.file, cx->arena, results);
    return ms_output_close(cx, &out, MS_OK);
}

ms_status ms_cmd_compare(ms_ctx *cx, ms_args *args)
{
    MS_TRY(ms_args_read(cx, args, NULL, 0));
    if (args->done)
        return MS_OK;
    ms_results results = {0};
    MS_TRY(check_words(cx, args));
    MS_TRY(read_files(cx, &args->words, &results));
    MS_TRY(check_number(cx, &args->words, &results));
    MS_TRY(find_faster(cx, &results));
    return compare(cx, args, &results);
}
