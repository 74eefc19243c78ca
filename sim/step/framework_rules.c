#include "sim/step/framework_rules.h"

#include "sim/step/bill_key.h"

#include <string.h>

static bool has_own_split(ms_workload *workload, const ms_plan *plan)
{
    ms_bill_key key = ms_plan_bill_key(workload, plan);
    ms_bill_set *bills = ms_workload_bills(workload, &key);
    ms_schedule_shape shape = ms_workload_shape(workload, bills, plan);
    const ms_split *split = ms_workload_split(workload, bills, &shape, NULL);
    return split->num_stages == plan->num_stage_layers &&
           memcmp(split->layers, plan->layers_per_stage,
                  (size_t)plan->num_stage_layers * sizeof(long)) == 0;
}

ms_facts ms_workload_facts(ms_workload *workload, const ms_plan *plan)
{
    ms_facts facts = ms_facts_of(plan, workload->model, workload->stack);
    if (plan->num_stage_layers > 0)
        facts.of[MS_FACT_OWN_SPLIT] = has_own_split(workload, plan);
    return facts;
}

const ms_rule *ms_workload_broken_rule(ms_workload *workload, const ms_plan *plan)
{
    ms_facts facts = ms_workload_facts(workload, plan);
    return ms_rule_broken(&workload->rules, &facts, MS_ALL_VARIABLES, MS_ALL_VARIABLES);
}

static bool is_listed(const ms_broken_rules *broken, const char *name)
{
    for (int i = 0; i < broken->num; i++)
        if (strcmp(broken->rules[i]->name, name) == 0)
            return true;
    return false;
}

ms_broken_rules ms_workload_broken_rules(ms_workload *workload, const ms_plan *plan,
                                         ms_arena *arena)
{
    ms_rule_set rest = workload->rules;
    ms_facts facts = ms_workload_facts(workload, plan);
    ms_broken_rules broken = {0, MS_NEW_ARRAY(arena, rest.num, const ms_rule *)};
    const ms_rule *rule;
    while ((rule = ms_rule_broken(&rest, &facts, MS_ALL_VARIABLES, MS_ALL_VARIABLES)) !=
           NULL) {
        if (!is_listed(&broken, rule->name))
            broken.rules[broken.num++] = rule;
        rest.num -= (int)(rule + 1 - rest.rules);
        rest.rules = rule + 1;
    }
    return broken;
}

const char *ms_broken_rule_text(ms_workload *workload, const ms_plan *plan,
                                const ms_rule *rule, ms_arena *arena)
{
    ms_facts facts = ms_workload_facts(workload, plan);
    const char *version = workload->rules.version;
    return ms_arena_printf(arena, "stack %s%s%s refuses the plan: rule %s: %s (%s)",
                           workload->stack->name, version == NULL ? "" : "@",
                           version == NULL ? "" : version, rule->name, rule->says,
                           ms_rule_values_text(arena, rule, &facts));
}

void ms_broken_rules_write_json(ms_jout *out, const ms_broken_rules *broken)
{
    ms_jout_begin_array_field(out, "broken_rules");
    for (int i = 0; i < broken->num; i++) {
        ms_jout_begin_object(out);
        ms_jout_text_field(out, "rule", broken->rules[i]->name);
        ms_jout_text_field(out, "says", broken->rules[i]->says);
        ms_jout_text_field(out, "source", broken->rules[i]->source);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
}
