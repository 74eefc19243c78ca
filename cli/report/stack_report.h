/* Text and JSON of `meshsim stack`: rules, defaults and conventions of a stack. */
#ifndef MS_CLI_REPORT_STACK_REPORT_H
#define MS_CLI_REPORT_STACK_REPORT_H

#include "base/json.h"
#include "costmodel/plan/stack_rules.h"

#include <stdio.h>

typedef struct ms_stack_report {
    const ms_stack *stack;
    ms_rule_set rules;
    int num_aliases;
    const char *const *aliases; /* (num_aliases): other names that options take */
} ms_stack_report;

/* Prints one stack: defaults, what it supports, rules of its version, conventions. */
void ms_stack_report_print(FILE *out, ms_arena *arena, const ms_stack_report *report);
/* Writes meshsim.stack/1. */
void ms_stack_report_write_json(ms_jout *json, ms_arena *arena,
                                const ms_stack_report *report);

/* Prints rules with version, defaults, schedules and meaning of each stack: a table, or
 * paragraphs where lines have no room for it. */
void ms_stack_list_print(FILE *out, ms_arena *arena, const ms_stack_report *reports,
                         int num);
/* Writes meshsim.stacks/1. */
void ms_stack_list_write_json(ms_jout *json, ms_arena *arena,
                              const ms_stack_report *reports, int num);

#endif
