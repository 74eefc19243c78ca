#include "cli/report/stack_report.h"

#include "base/print.h"
#include "base/table.h"
#include "base/units.h"
#include "base/wrap.h"

#include <math.h>
#include <string.h>

#define INDENT 4 /* columns before all lines of a paragraph but the first */

static void print_wrapped(FILE *out, const char *text)
{
    ms_wrap_print(out, text, (size_t)ms_table_most_width(), INDENT);
}

/* The items joined by ", "; of `has`, if given, those that are true. */
static const char *joined(ms_arena *arena, const char *const *items, int num,
                          const bool *has)
{
    const char *text = "";
    for (int i = 0; i < num; i++)
        if (has == NULL || has[i])
            text = ms_arena_printf(arena, "%s%s%s", text, text[0] == '\0' ? "" : ", ",
                                   items[i]);
    return text[0] == '\0' ? "none" : text;
}

static void write_list(ms_jout *json, const char *key, const char *const *items, int num,
                       const bool *has)
{
    ms_jout_begin_array_field(json, key);
    for (int i = 0; i < num; i++)
        if (has == NULL || has[i])
            ms_jout_text(json, items[i]);
    ms_jout_end_array(json);
}

/* "megatron@0.20, megatron-bridge@0.7"; NULL: no rules are known. */
static const char *rules_text(ms_arena *arena, const ms_rule_set *rules)
{
    const char *text = NULL;
    for (int i = 0; i < rules->num_files; i++)
        text = ms_arena_printf(arena, "%s%s%s@%s", i == 0 ? "" : text, i == 0 ? "" : ", ",
                               rules->files[i].name, rules->files[i].version);
    return text;
}

/* ---- defaults ---- */

/* A plan in which the choices of `defaults` have an effect. */
static ms_plan usual_plan(const ms_stack *stack, bool has_pipeline)
{
    ms_plan plan = ms_plan_default(has_pipeline ? 16 : 8);
    plan.stack = stack->name;
    plan.size[MS_PP] = has_pipeline ? 2 : 1;
    plan.size[MS_DP_SHARD] = plan.size[MS_CP] = plan.size[MS_TP] = 2;
    return plan;
}

typedef struct default_row {
    ms_choice choice;
    const char *key, *label;
    const char *pipeline_key; /* key of the value with a pipeline; NULL: it is the same */
} default_row;

static const default_row defaults[] = {
    {MS_CHOOSE_ZERO, "zero", "ZeRO stage", "zero_in_pipelines"},
    {MS_CHOOSE_RESHARD, "reshard_after_forward", "ZeRO 3 gathers again",
     "reshard_in_pipelines"},
    {MS_CHOOSE_SCHEDULE, "schedule", "schedule", NULL},
    {MS_CHOOSE_RECOMPUTE, "recompute", "recomputation", NULL},
    {MS_CHOOSE_RECOMPUTE_MODULES, "recompute_modules", "selective modules", NULL},
    {MS_CHOOSE_SEQUENCE_PARALLEL, "sequence_parallel", "sequence parallelism", NULL},
    {MS_CHOOSE_CP_METHOD, "cp_method", "context parallelism", NULL},
    {MS_CHOOSE_ORDER, "order", "order of axes", NULL}};
enum {
    NUM_DEFAULTS = sizeof defaults / sizeof *defaults
};

static ms_plan default_plan(const ms_stack_report *report, const default_row *row,
                            bool has_pipeline)
{
    const ms_stack *stack = report->stack;
    ms_plan plan = usual_plan(stack, has_pipeline || row->choice == MS_CHOOSE_SCHEDULE);
    if (row->choice == MS_CHOOSE_RESHARD)
        plan.zero = 3;
    if (row->choice == MS_CHOOSE_RECOMPUTE_MODULES)
        plan.recompute_modules = stack->selective_modules;
    if (ms_plan_fields[row->choice].usual != NULL)
        ms_plan_set(&plan, row->choice,
                    ms_rule_default(&report->rules, &plan, stack, row->choice));
    return plan;
}

static void print_defaults(FILE *out, ms_arena *arena, const ms_stack_report *report)
{
    fputs("\ndefaults\n", out);
    for (int i = 0; i < NUM_DEFAULTS; i++) {
        const ms_plan plain = default_plan(report, &defaults[i], false);
        const ms_plan piped = default_plan(report, &defaults[i], true);
        const char *text = ms_plan_value_text(arena, &plain, defaults[i].choice);
        if (!ms_plan_same(&plain, &piped, defaults[i].choice))
            text = ms_arena_printf(arena, "%s, with a pipeline %s", text,
                                   ms_plan_value_text(arena, &piped, defaults[i].choice));
        ms_print(out, "  %-22s %s\n", defaults[i].label, text);
    }
    ms_print(out, "  %-22s %s\n", "layers over stages",
             ms_layer_split_names[report->stack->layer_split]);
}

static void write_choice(ms_jout *json, ms_arena *arena, const char *key,
                         const ms_plan *plan, ms_choice choice)
{
    ms_choice_kind kind = ms_plan_fields[choice].kind;
    if (kind == MS_CHOICE_SWITCH)
        ms_jout_bool_field(json, key, ms_plan_get(plan, choice) != 0);
    else if (kind == MS_CHOICE_WHOLE)
        ms_jout_number_field(json, key, (double)ms_plan_get(plan, choice));
    else
        ms_jout_text_field(json, key, ms_plan_value_text(arena, plan, choice));
}

static void write_defaults(ms_jout *json, ms_arena *arena, const ms_stack_report *report)
{
    ms_jout_begin_object_field(json, "defaults");
    for (int i = 0; i < NUM_DEFAULTS; i++) {
        const ms_plan plain = default_plan(report, &defaults[i], false);
        const ms_plan piped = default_plan(report, &defaults[i], true);
        write_choice(json, arena, defaults[i].key, &plain, defaults[i].choice);
        if (defaults[i].pipeline_key != NULL)
            write_choice(json, arena, defaults[i].pipeline_key, &piped,
                         defaults[i].choice);
    }
    ms_jout_text_field(json, "layer_split",
                       ms_layer_split_names[report->stack->layer_split]);
    ms_jout_end_object(json);
}

/* ---- rules ---- */

/* The versions that have a rule: " (since 0.12, until 0.16)"; "" for all. */
static const char *versions_text(ms_arena *arena, const ms_rule *rule)
{
    if (rule->since != NULL && rule->until != NULL)
        return ms_arena_printf(arena, " (since %s, until %s)", rule->since, rule->until);
    return rule->since != NULL   ? ms_arena_printf(arena, " (since %s)", rule->since)
           : rule->until != NULL ? ms_arena_printf(arena, " (until %s)", rule->until)
                                 : "";
}

static void print_rules(FILE *out, ms_arena *arena, const ms_stack_report *report)
{
    const ms_rule_set *rules = &report->rules;
    if (rules->num_files == 0)
        fputs("\nrules: no file of rules; plans are refused by the lists above alone\n",
              out);
    for (int k = 0; k < rules->num_files; k++) {
        const ms_rules_file *file = &rules->files[k];
        fputc('\n', out);
        print_wrapped(out, ms_arena_printf(arena, "rules of %s@%s, read in %s",
                                           file->name, file->version, file->source));
        for (int i = 0; i < file->num_rules; i++) {
            const ms_rule *rule = &rules->rules[file->first_rule + i];
            print_wrapped(out, ms_arena_printf(arena, "  %s%s: %s [%s]", rule->name,
                                               versions_text(arena, rule), rule->says,
                                               rule->source));
        }
    }
}

static void write_rules_files(ms_jout *json, const ms_rule_set *rules)
{
    ms_jout_begin_array_field(json, "rules_files");
    for (int i = 0; i < rules->num_files; i++) {
        const ms_rules_file *file = &rules->files[i];
        ms_jout_begin_object(json);
        ms_jout_text_field(json, "name", file->name);
        ms_jout_text_field(json, "version", file->version);
        ms_jout_text_field(json, "source", file->source);
        write_list(json, "versions", file->versions, file->num_versions, NULL);
        ms_jout_end_object(json);
    }
    ms_jout_end_array(json);
}

static void write_rules(ms_jout *json, const ms_rule_set *rules)
{
    ms_jout_begin_array_field(json, "rules");
    for (int i = 0; i < rules->num; i++) {
        const ms_rule *rule = &rules->rules[i];
        ms_jout_begin_object(json);
        ms_jout_text_field(json, "rule", rule->name);
        if (rule->when_text != NULL)
            ms_jout_text_field(json, "when", rule->when_text);
        ms_jout_text_field(json, "says", rule->says);
        ms_jout_text_field(json, "source", rule->source);
        ms_jout_text_field(json, "since", rule->since);
        ms_jout_text_field(json, "until", rule->until);
        ms_jout_end_object(json);
    }
    ms_jout_end_array(json);
}

/* ---- architectures ---- */

static const char *const architecture_texts[MS_NUM_ARCHITECTURES] = {
    [MS_TRAINS_DENSE] = "dense",
    [MS_TRAINS_EXPERTS] = "mixture of experts",
    [MS_TRAINS_MLA] = "latent attention (MLA)",
    [MS_TRAINS_WINDOWS] = "sliding windows",
    [MS_TRAINS_MTP] = "multi-token prediction",
    [MS_TRAINS_MAMBA] = "Mamba-2"};

/* Architectures that the rules' sources name, with the place, and those that they pass
 * over in silence, of which no plan is refused either. */
static void print_architectures(FILE *out, ms_arena *arena, const ms_rule_set *rules)
{
    bool is_silent[MS_NUM_ARCHITECTURES];
    int num_silent = 0;
    for (int i = 0; i < MS_NUM_ARCHITECTURES; i++) {
        is_silent[i] = rules->trains[i] == NULL;
        num_silent += is_silent[i];
    }
    if (num_silent == MS_NUM_ARCHITECTURES) {
        fputs("\narchitectures: all that meshsim knows\n", out);
        return;
    }
    fputs("\narchitectures\n", out);
    for (int i = 0; i < MS_NUM_ARCHITECTURES; i++)
        if (!is_silent[i])
            print_wrapped(out, ms_arena_printf(arena, "  %s [%s]", architecture_texts[i],
                                               rules->trains[i]));
    if (num_silent > 0)
        print_wrapped(out, ms_arena_printf(arena, "  not stated, and not refused: %s",
                                           joined(arena, architecture_texts,
                                                  MS_NUM_ARCHITECTURES, is_silent)));
}

static void write_architectures(ms_jout *json, const ms_rule_set *rules)
{
    ms_jout_begin_array_field(json, "architectures");
    for (int i = 0; i < MS_NUM_ARCHITECTURES; i++) {
        if (rules->trains[i] == NULL)
            continue;
        ms_jout_begin_object(json);
        ms_jout_text_field(json, "kind", ms_architecture_names[i]);
        ms_jout_text_field(json, "source", rules->trains[i]);
        ms_jout_end_object(json);
    }
    ms_jout_end_array(json);
}

/* ---- conventions ---- */

/* The coefficient of a figure; NULL if the stack's file leaves it out. */
static const ms_coefficient *coefficient_of(const ms_stack *stack, const ms_figure *f)
{
    const void *at = (const char *)stack + f->offset;
    const ms_coefficient *coefficient = at;
    return coefficient->source == NULL ? NULL : coefficient;
}

static void print_coefficients(FILE *out, ms_arena *arena, const ms_stack *stack)
{
    ms_figures list = {.arena = arena};
    ms_stack_figures(&list);
    fputs("\ncoefficients\n", out);
    for (int i = 0; i < list.num; i++) {
        const ms_figure *f = &list.items[i];
        const ms_coefficient *c = coefficient_of(stack, f);
        char value[48];
        if (c == NULL)
            continue;
        if (f->unit == MS_UNIT_COUNT)
            snprintf(value, sizeof value, "%.10g", c->value);
        else
            ms_format_quantity(value, sizeof value, c->value, f->unit);
        print_wrapped(out, ms_arena_printf(arena, "  %s %s: %s [%s: %s]", f->key,
                                           isnan(c->value) ? "null" : value, f->help,
                                           ms_provenance_names[c->from], c->source));
    }
}

static void write_coefficients(ms_jout *json, ms_arena *arena, const ms_stack *stack)
{
    ms_figures list = {.arena = arena};
    ms_stack_figures(&list);
    ms_jout_begin_array_field(json, "coefficients");
    for (int i = 0; i < list.num; i++) {
        const ms_coefficient *c = coefficient_of(stack, &list.items[i]);
        if (c == NULL)
            continue;
        ms_jout_begin_object(json);
        ms_jout_text_field(json, "name", list.items[i].key);
        ms_jout_number_field(json, "value", c->value);
        ms_jout_text_field(json, "unit",
                           list.items[i].unit == MS_UNIT_SECONDS ? "s" : NULL);
        ms_jout_text_field(json, "says", list.items[i].help);
        ms_jout_text_field(json, "from", ms_provenance_names[c->from]);
        ms_jout_text_field(json, "source", c->source);
        ms_jout_end_object(json);
    }
    ms_jout_end_array(json);
}

static void print_switches(FILE *out, ms_arena *arena, const ms_stack *stack)
{
    const ms_stack_switch *list;
    int num = ms_stack_switches(arena, stack, &list);
    fputs("\nconventions\n", out);
    for (int i = 0; i < num; i++)
        print_wrapped(out, ms_arena_printf(arena, "  %s: %s", list[i].key, list[i].help));
}

static void write_switches(ms_jout *json, ms_arena *arena, const ms_stack *stack)
{
    const ms_stack_switch *list;
    int num = ms_stack_switches(arena, stack, &list);
    ms_jout_begin_array_field(json, "conventions");
    for (int i = 0; i < num; i++) {
        ms_jout_begin_object(json);
        ms_jout_text_field(json, "name", list[i].key);
        ms_jout_text_field(json, "says", list[i].help);
        ms_jout_end_object(json);
    }
    ms_jout_end_array(json);
}

/* ---- one stack ---- */

/* Schedules as a stack's file names them. */
static const char *const *schedule_names(void)
{
    static const char *names[MS_NUM_SCHEDULES];
    memcpy(names, ms_schedule_names, MS_CUSTOM * sizeof *names);
    names[MS_CUSTOM] = "file";
    return names;
}

static const char *schedules_text(ms_arena *arena, const ms_stack *stack)
{
    bool all = true;
    for (int i = 0; i < MS_NUM_SCHEDULES; i++)
        all = all && stack->can_schedule[i];
    return all ? "all"
               : joined(arena, schedule_names(), MS_NUM_SCHEDULES, stack->can_schedule);
}

static void print_field(FILE *out, ms_arena *arena, const char *label, const char *text)
{
    print_wrapped(out, ms_arena_printf(arena, "  %-22s %s", label, text));
}

/* The rules files and their versions; "NAME@VERSION" takes those of the first file. */
static void print_versions(FILE *out, ms_arena *arena, const ms_stack_report *report)
{
    const ms_rule_set *rules = &report->rules;
    if (rules->num_files == 0)
        return;
    print_field(out, arena, "rules", report->stack->rules);
    print_field(out, arena, "version",
                rules->num_files == 1 ? rules->version : rules_text(arena, rules));
    for (int i = 0; i < rules->num_files; i++) {
        const ms_rules_file *file = &rules->files[i];
        const char *versions = joined(arena, file->versions, file->num_versions, NULL);
        print_field(out, arena, i == 0 ? "known versions" : "",
                    rules->num_files == 1
                        ? versions
                        : ms_arena_printf(arena, "%s %s", file->name, versions));
    }
}

void ms_stack_report_print(FILE *out, ms_arena *arena, const ms_stack_report *report)
{
    const ms_stack *stack = report->stack;
    ms_print(out, "stack %s\n", stack->name);
    print_wrapped(out, ms_arena_printf(arena, "  %s", stack->source));
    if (report->num_aliases > 0)
        print_field(out, arena, "other names",
                    joined(arena, report->aliases, report->num_aliases, NULL));
    print_versions(out, arena, report);
    print_field(out, arena, "schedules", schedules_text(arena, stack));
    print_field(out, arena, "context parallelism",
                joined(arena, ms_cp_method_names, MS_NUM_CP_METHODS, stack->can_cp));
    print_field(out, arena, "attention kernel",
                ms_attention_kernel_names[stack->attention]);
    print_defaults(out, arena, report);
    print_architectures(out, arena, &report->rules);
    print_rules(out, arena, report);
    print_switches(out, arena, stack);
    print_coefficients(out, arena, stack);
}

static void write_lists(ms_jout *json, const ms_stack *stack)
{
    ms_jout_begin_object_field(json, "lists");
    write_list(json, "schedules", schedule_names(), MS_NUM_SCHEDULES,
               stack->can_schedule);
    write_list(json, "cp_methods", ms_cp_method_names, MS_NUM_CP_METHODS, stack->can_cp);
    ms_jout_end_object(json);
}

void ms_stack_report_write_json(ms_jout *json, ms_arena *arena,
                                const ms_stack_report *report)
{
    const ms_stack *stack = report->stack;
    const ms_rule_set *rules = &report->rules;
    ms_jout_begin_object(json);
    ms_jout_text_field(json, "schema", "meshsim.stack/1");
    ms_jout_text_field(json, "name", stack->name);
    ms_jout_text_field(json, "source", stack->source);
    write_list(json, "aliases", report->aliases, report->num_aliases, NULL);
    ms_jout_text_field(json, "rules_name", rules->name);
    ms_jout_text_field(json, "rules_source", rules->source);
    ms_jout_text_field(json, "version", rules->version);
    write_list(json, "versions", rules->versions, rules->num_versions, NULL);
    write_rules_files(json, rules);
    write_architectures(json, rules);
    write_rules(json, rules);
    write_defaults(json, arena, report);
    write_lists(json, stack);
    ms_jout_text_field(json, "attention", ms_attention_kernel_names[stack->attention]);
    write_switches(json, arena, stack);
    write_coefficients(json, arena, stack);
    ms_jout_end_object(json);
}

/* ---- all stacks ---- */

/* The ZeRO stage by default: "1", or "3 (pp: 1)" if a pipeline changes it. */
static const char *zero_text(ms_arena *arena, const ms_stack_report *report)
{
    const long plain = default_plan(report, &defaults[0], false).zero;
    const long piped = default_plan(report, &defaults[0], true).zero;
    return plain == piped ? ms_arena_printf(arena, "%ld", plain)
                          : ms_arena_printf(arena, "%ld (pp: %ld)", plain, piped);
}

/* The first clause of a stack's source, which says what it is; it ends at a semicolon
 * outside parentheses. */
static const char *meaning_text(ms_arena *arena, const ms_stack *stack)
{
    size_t length = 0;
    for (int depth = 0; stack->source[length] != '\0'; length++) {
        char c = stack->source[length];
        depth += (c == '(') - (c == ')');
        if (c == ';' && depth == 0)
            break;
    }
    return ms_arena_strndup(arena, stack->source, length);
}

/* Two paragraphs a stack, for lines too short for a table. */
static void print_stacks(FILE *out, ms_arena *arena, const ms_stack_report *reports,
                         int num)
{
    for (int i = 0; i < num; i++) {
        const ms_stack *stack = reports[i].stack;
        const char *rules = rules_text(arena, &reports[i].rules);
        print_wrapped(out, ms_arena_printf(arena, "%s: %s", stack->name,
                                           meaning_text(arena, stack)));
        print_wrapped(
            out, ms_arena_printf(arena, "    %s%sZeRO %s, recompute %s, schedules %s",
                                 rules == NULL ? "" : rules, rules == NULL ? "" : ", ",
                                 zero_text(arena, &reports[i]), stack->recompute,
                                 schedules_text(arena, stack)));
    }
}

void ms_stack_list_print(FILE *out, ms_arena *arena, const ms_stack_report *reports,
                         int num)
{
    ms_table *table = MS_TABLE(arena, "llllll", "stack", "rules", "ZeRO", "recompute",
                               "schedules", "what it is");
    for (int i = 0; i < num; i++) {
        const ms_stack *stack = reports[i].stack;
        const char *rules = rules_text(arena, &reports[i].rules);
        ms_table_cells(table, "%s\t%s\t%s\t%s\t%s\t%s", stack->name,
                       rules == NULL ? "-" : rules, zero_text(arena, &reports[i]),
                       stack->recompute, schedules_text(arena, stack),
                       meaning_text(arena, stack));
    }
    if (ms_table_shows_all(table))
        ms_table_print(table, out);
    else
        print_stacks(out, arena, reports, num);
}

void ms_stack_list_write_json(ms_jout *json, ms_arena *arena,
                              const ms_stack_report *reports, int num)
{
    ms_jout_begin_object(json);
    ms_jout_text_field(json, "schema", "meshsim.stacks/1");
    ms_jout_begin_array_field(json, "stacks");
    for (int i = 0; i < num; i++) {
        ms_jout_begin_object(json);
        ms_jout_text_field(json, "name", reports[i].stack->name);
        ms_jout_text_field(json, "source", reports[i].stack->source);
        ms_jout_text_field(json, "rules", reports[i].rules.name);
        ms_jout_text_field(json, "version", reports[i].rules.version);
        write_rules_files(json, &reports[i].rules);
        write_defaults(json, arena, &reports[i]);
        write_lists(json, reports[i].stack);
        ms_jout_end_object(json);
    }
    ms_jout_end_array(json);
    ms_jout_end_object(json);
}
