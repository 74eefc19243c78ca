/* Many results as one table, built as lines (a choice or figure each) of one text a
 * result. */
#include "base/print.h"
#include "base/table.h"
#include "base/wrap.h"
#include "cli/report/compare_report.h"
#include "cli/report/report.h"
#include "costmodel/plan/plan_field.h"
#include "sim/step/prediction_text.h"

#include <math.h>
#include <string.h>

#define MOST_SIDE_BY_SIDE 8
#define NUM_FIGURES       7
#define MAX_LINES                                                                        \
    (MS_NUM_CHOICES + NUM_FIGURES + MS_NUM_RESULT_TIMES + MS_NUM_MEMORY_CATEGORIES)

typedef struct line {
    const char *title;
    const char *alignment; /* the column's, where results are rows */
    const char **texts;    /* [result] */
} line;

typedef struct side_by_side {
    ms_arena *arena;
    const ms_results *results;
    const char *equal; /* "model 8b, gpus 64": choices that all plans share */
    int decimals;      /* decimals of seconds */
    int num_lines;
    line lines[MAX_LINES];
} side_by_side;

/* ---- lines ---- */

static const char **add_line(side_by_side *s, const char *title, const char *alignment)
{
    const char **texts = MS_NEW_ARRAY(s->arena, s->results->num, const char *);
    s->lines[s->num_lines++] = (line){title, alignment, texts};
    return texts;
}

/* Adds a line of numbers (result), unless no result knows one. */
static void add_figure(side_by_side *s, const char *title, const char *alignment,
                       const double *values, int decimals)
{
    bool any = false;
    for (int i = 0; i < s->results->num; i++)
        any = any || !isnan(values[i]);
    if (!any)
        return;
    const char **texts = add_line(s, title, alignment);
    for (int i = 0; i < s->results->num; i++)
        texts[i] = isnan(values[i])
                       ? "-"
                       : ms_arena_printf(s->arena, "%.*f", decimals, values[i]);
}

static double *new_values(const side_by_side *s)
{
    return MS_NEW_ARRAY(s->arena, s->results->num, double);
}

static void add_figures(side_by_side *s)
{
    const ms_result *items = s->results->items;
    double *v[NUM_FIGURES];
    for (int k = 0; k < NUM_FIGURES; k++)
        v[k] = new_values(s);
    for (int i = 0; i < s->results->num; i++) {
        v[0][i] = items[i].step_s;
        v[1][i] = items[i].step_s / items[0].step_s;
        v[2][i] = 100.0 * items[i].mfu_frac;
        v[3][i] = ms_gib(items[i].peak_bytes);
        v[4][i] = ms_gib(items[i].capacity_bytes - items[i].device_bytes);
        v[5][i] = items[i].fits_probability;
        v[6][i] = items[i].first_faster_probability;
    }
    add_figure(s, "step (s)", "r", v[0], s->decimals);
    add_figure(s, "step / first", "r", v[1], 3);
    add_figure(s, "P(1 faster)", "r2", v[6], 2);
    add_figure(s, "MFU (%)", "r7", v[2], 1);
    add_figure(s, "peak (GiB)", "r6", v[3], 2);
    add_figure(s, "spare (GiB)", "r", v[4], 2);
    add_figure(s, "P(fit)", "r3", v[5], 2);
}

static void add_times(side_by_side *s)
{
    for (int k = 0; k < MS_NUM_RESULT_TIMES; k++) {
        double *values = new_values(s);
        for (int i = 0; i < s->results->num; i++)
            values[i] = s->results->items[i].times_s[k];
        add_figure(s, ms_arena_printf(s->arena, "%s (s)", ms_result_time_names[k]), "r8",
                   values, s->decimals);
    }
}

static void add_memory(side_by_side *s)
{
    for (int k = 0; k < MS_NUM_MEMORY_CATEGORIES; k++) {
        double *values = new_values(s);
        bool any = false;
        for (int i = 0; i < s->results->num; i++) {
            values[i] = ms_gib(s->results->items[i].memory[k]);
            any = any || values[i] > 0.0;
        }
        if (any)
            add_figure(s,
                       ms_arena_printf(s->arena, "%s (GiB)", ms_memory_category_names[k]),
                       "r9", values, 2);
    }
}

/* ---- choices ---- */

static const char *choice_text(ms_arena *arena, const ms_plan *plan, ms_choice choice)
{
    const ms_plan_field *field = &ms_plan_fields[choice];
    bool is_unset = plan != NULL && field->kind == MS_CHOICE_WHOLE &&
                    (double)ms_plan_get(plan, choice) < field->low;
    if (plan == NULL || is_unset || !ms_plan_matters(plan, choice))
        return "-";
    const char *text = ms_plan_value_text(arena, plan, choice);
    return text == NULL || text[0] == '\0' ? "-" : text;
}

/* Whether plans differ in a choice. Lists of layers count only between plans with as many
 * stages: otherwise they differ because the stages do. */
static bool differs(const side_by_side *s, ms_choice choice)
{
    const ms_plan *first = s->results->items[0].made_for;
    bool any = false;
    for (int i = 1; i < s->results->num; i++) {
        const ms_plan *plan = s->results->items[i].made_for;
        if (choice == MS_CHOOSE_STAGE_LAYERS && first != NULL && plan != NULL &&
            plan->num_stage_layers != first->num_stage_layers)
            return false;
        any = any || strcmp(choice_text(s->arena, first, choice),
                            choice_text(s->arena, plan, choice)) != 0;
    }
    return any;
}

/* Whether a choice that all plans share is worth telling: it is no default. */
static bool is_told(const ms_plan *plan, ms_choice choice)
{
    const ms_plan_field *field = &ms_plan_fields[choice];
    return choice != MS_CHOOSE_STAGE_LAYERS && ms_plan_matters(plan, choice) &&
           (ms_plan_needs_flag(plan, choice) || choice == MS_CHOOSE_CLUSTER ||
            (field->in_table && !field->hidden && !ms_plan_is_plain(plan, choice)));
}

static void add_choices(side_by_side *s)
{
    const ms_plan *first = s->results->items[0].made_for;
    s->equal = "";
    for (ms_choice k = 0; k < MS_NUM_CHOICES; k++) {
        if (ms_plan_fields[k].name == NULL)
            continue;
        if (differs(s, k)) {
            const char **texts = add_line(s, ms_choice_title(k), ms_choice_alignment(k));
            for (int i = 0; i < s->results->num; i++)
                texts[i] = choice_text(s->arena, s->results->items[i].made_for, k);
        } else if (first != NULL && is_told(first, k)) {
            s->equal = ms_arena_printf(
                s->arena, "%s%s%s %s", s->equal, s->equal[0] == '\0' ? "" : ", ",
                ms_choice_title(k), choice_text(s->arena, first, k));
        }
    }
}

/* ---- tables ---- */

static const char *number_text(ms_arena *arena, int idx)
{
    return ms_arena_printf(arena, "%d", idx + 1);
}

/* A row a line, a column a result. */
static ms_table *results_beside(const side_by_side *s)
{
    ms_table *table = MS_TABLE(s->arena, "l", "");
    for (int i = 0; i < s->results->num; i++)
        MS_COLUMNS(table, "R", number_text(s->arena, i));
    for (int k = 0; k < s->num_lines; k++) {
        ms_table_cell(table, "%s", s->lines[k].title);
        for (int i = 0; i < s->results->num; i++)
            ms_table_cell(table, "%s", s->lines[k].texts[i]);
    }
    return table;
}

/* A row a result, a column a line. */
static ms_table *results_below(const side_by_side *s)
{
    ms_table *table = MS_TABLE(s->arena, "r", "#");
    for (int k = 0; k < s->num_lines; k++)
        MS_COLUMNS(table, s->lines[k].alignment, s->lines[k].title);
    for (int i = 0; i < s->results->num; i++) {
        ms_table_cell(table, "%d", i + 1);
        for (int k = 0; k < s->num_lines; k++)
            ms_table_cell(table, "%s", s->lines[k].texts[i]);
    }
    return table;
}

/* Prints the files and the numbers of their results, those of a search in one line. */
static void print_files(FILE *out, const side_by_side *s)
{
    const ms_result *items = s->results->items;
    for (int i = 0, end; i < s->results->num; i = end) {
        const char *number = number_text(s->arena, i);
        end = i + 1;
        while (end < s->results->num && items[end].search_rank > 1)
            end++;
        if (end > i + 1)
            number = ms_arena_printf(s->arena, "%d to %d", i + 1, end);
        ms_print(out, "%-8s %s, %s%s\n", number, items[i].path,
                 items[i].search_rank > 0 ? "plans of a search" : "a ",
                 items[i].search_rank > 0 ? "" : ms_result_kind_names[items[i].kind]);
    }
}

void ms_results_print(FILE *out, ms_arena *arena, const ms_results *results)
{
    side_by_side *s = MS_NEW(arena, side_by_side);
    *s = (side_by_side){.arena = arena, .results = results};
    for (int i = 0; i < results->num; i++) {
        int decimals = ms_decimals(results->items[i].step_s);
        s->decimals = decimals > s->decimals ? decimals : s->decimals;
    }
    add_figures(s);
    add_choices(s);
    add_times(s);
    add_memory(s);
    print_files(out, s);
    fputc('\n', out);
    if (s->equal[0] != '\0')
        ms_wrap_print(out, ms_arena_printf(arena, "all plans: %s", s->equal),
                      (size_t)ms_table_most_width(), 11);
    ms_table *table = results_beside(s);
    bool beside = results->num <= MOST_SIDE_BY_SIDE && ms_table_shows_all(table);
    ms_table_print(beside ? table : results_below(s), out);
}

/* ---- JSON ---- */

static void write_memory(ms_jout *out, const ms_result *result)
{
    ms_jout_begin_object_field(out, "memory");
    ms_jout_number_field(out, "capacity_bytes", result->capacity_bytes);
    ms_jout_number_field(out, "peak_bytes", result->peak_bytes);
    ms_jout_number_field(out, "device_bytes", result->device_bytes);
    ms_jout_number_field(out, "fits_probability", result->fits_probability);
    ms_jout_begin_object_field(out, "parts");
    for (int k = 0; k < MS_NUM_MEMORY_CATEGORIES; k++)
        ms_jout_number_field(out, ms_memory_category_names[k], result->memory[k]);
    ms_jout_end_object(out);
    ms_jout_end_object(out);
}

static void write_result(ms_jout *out, const ms_result *result, double first_s)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "file", result->path);
    ms_jout_text_field(out, "kind", ms_result_kind_names[result->kind]);
    ms_jout_number_field(out, "search_rank",
                         result->search_rank > 0 ? result->search_rank : (double)NAN);
    ms_jout_number_field(out, "step_s", result->step_s);
    ms_jout_number_field(out, "ratio_to_first", result->step_s / first_s);
    ms_jout_number_field(out, "first_faster_probability",
                         result->first_faster_probability);
    ms_jout_number_field(out, "mfu_frac", result->mfu_frac);
    ms_step_time_write_fields(
        out, result->times_s[MS_RESULT_COMPUTE], result->times_s[MS_RESULT_EXPOSED_COMM],
        result->times_s[MS_RESULT_BUBBLE], result->times_s[MS_RESULT_OPTIMIZER],
        result->times_s[MS_RESULT_HOST]);
    write_memory(out, result);
    ms_jout_key(out, "plan");
    if (result->made_for == NULL)
        ms_jout_null(out);
    else
        ms_plan_write_json(out, result->made_for);
    ms_jout_end_object(out);
}

void ms_results_write_plans(ms_jout *out, const ms_results *results)
{
    ms_jout_begin_array_field(out, "plans");
    for (int i = 0; i < results->num; i++)
        write_result(out, &results->items[i], results->items[0].step_s);
    ms_jout_end_array(out);
}
