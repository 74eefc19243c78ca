#include "sim/validate/run_rules.h"

#include "costmodel/plan/stack_rules.h"

#include <string.h>

/* Rules of the stack looked up last; runs of a stack are often neighbours. */
typedef struct last_rules {
    const ms_stack *stack;
    ms_rule_set set;
} last_rules;

static ms_status check(ms_ctx *cx, last_rules *last, ms_pubrun *run)
{
    if (last->stack != run->stack) {
        MS_TRY(ms_rule_set_load(cx, run->stack, &last->set));
        last->stack = run->stack;
    }
    run->has_rules = last->set.name != NULL;
    if (!run->has_rules)
        return MS_OK;
    ms_facts facts = ms_facts_of(&run->plan, run->model, run->stack);
    const ms_rule *rule =
        ms_rule_broken(&last->set, &facts, MS_ALL_VARIABLES, MS_ALL_VARIABLES);
    run->broken_rule = rule == NULL ? NULL : rule->name;
    return MS_OK;
}

ms_status ms_pubruns_check_rules(ms_ctx *cx, ms_pubruns *runs)
{
    last_rules last = {0};
    for (int i = 0; i < runs->num_runs; i++)
        if (runs->runs[i].reason == NULL && runs->runs[i].fault == NULL)
            MS_TRY(check(cx, &last, &runs->runs[i]));
    return MS_OK;
}

ms_rule_breaches ms_pubruns_breaches(ms_arena *arena, const ms_pubruns *runs)
{
    ms_rule_breaches out = {0};
    ms_rule_breach *of = NULL;
    int capacity = 0;
    for (int i = 0; i < runs->num_runs; i++) {
        const ms_pubrun *run = &runs->runs[i];
        out.num_checked += run->has_rules;
        if (run->broken_rule == NULL)
            continue;
        int at = 0;
        while (at < out.num && (strcmp(of[at].stack, run->plan.stack) != 0 ||
                                strcmp(of[at].rule, run->broken_rule) != 0))
            at++;
        if (at == out.num) {
            MS_MAKE_ROOM(arena, of, out.num, capacity, 16);
            of[out.num++] =
                (ms_rule_breach){run->plan.stack, run->broken_rule, 0, run->id};
        }
        of[at].num_runs++;
    }
    out.of = of;
    return out;
}

void ms_rule_breaches_write_json(ms_jout *out, const ms_rule_breaches *breaches)
{
    ms_jout_begin_object_field(out, "rules");
    ms_jout_number_field(out, "checked", breaches->num_checked);
    ms_jout_begin_array_field(out, "broken");
    for (int i = 0; i < breaches->num; i++) {
        ms_jout_begin_object(out);
        ms_jout_text_field(out, "stack", breaches->of[i].stack);
        ms_jout_text_field(out, "rule", breaches->of[i].rule);
        ms_jout_number_field(out, "runs", breaches->of[i].num_runs);
        ms_jout_text_field(out, "first", breaches->of[i].first_id);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
    ms_jout_end_object(out);
}
