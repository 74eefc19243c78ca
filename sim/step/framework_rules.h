/* Whether the framework that a workload's stack stands for accepts a plan. */
#ifndef MS_SIM_STEP_FRAMEWORK_RULES_H
#define MS_SIM_STEP_FRAMEWORK_RULES_H

#include "sim/step/workload.h"

/* Facts of a legal plan (ms_plan_refusal) for rules; layers_per_stage that equal the
 * stack's own distribution count as its own. */
ms_facts ms_workload_facts(ms_workload *workload, const ms_plan *plan);

/* The first rule of the stack that a legal plan breaks; NULL: the framework accepts it. */
const ms_rule *ms_workload_broken_rule(ms_workload *workload, const ms_plan *plan);

typedef struct ms_broken_rules {
    int num;
    const ms_rule **rules;
} ms_broken_rules;

/* All rules of the stack that a legal plan breaks, each name once, in the arena. */
ms_broken_rules ms_workload_broken_rules(ms_workload *workload, const ms_plan *plan,
                                         ms_arena *arena);

/* Refusal in words: "stack megatron@0.20 refuses the plan: rule interleaving: ... (pp 4,
 * microbatches 10)". */
const char *ms_broken_rule_text(ms_workload *workload, const ms_plan *plan,
                                const ms_rule *rule, ms_arena *arena);

/* Writes the array "broken_rules": objects with rule, says, source. */
void ms_broken_rules_write_json(ms_jout *out, const ms_broken_rules *broken);

#endif
