/* Rules of the stack's framework in the loops of the search: each rule is applied in the
 * outermost loop that knows all its variables. */
#include "sim/search/explore_priv.h"

#include "costmodel/plan/plan_field.h"

#include <string.h>

ms_variables ms_rule_level_variables(ms_rule_level level)
{
    static const ms_variables later[MS_NUM_RULE_LEVELS] = {
        [MS_RULES_OF_ORDER] = MS_VARIABLE(MS_FACT_AXES),
        [MS_RULES_OF_BATCH] =
            MS_VARIABLE(MS_CHOOSE_MICROBATCH) | MS_VARIABLE(MS_FACT_MICROBATCHES) |
            MS_VARIABLE(MS_CHOOSE_SEQUENCE_PARALLEL) | MS_VARIABLE(MS_CHOOSE_CP_METHOD),
        [MS_RULES_OF_SCHEDULE] =
            MS_VARIABLE(MS_CHOOSE_ASYNC_TP) | MS_VARIABLE(MS_CHOOSE_SCHEDULE) |
            MS_VARIABLE(MS_CHOOSE_VIRTUAL_STAGES) | MS_VARIABLE(MS_CHOOSE_GROUP) |
            MS_VARIABLE(MS_FACT_GROUP) | MS_VARIABLE(MS_FACT_SCHEDULE_FILE) |
            MS_VARIABLE(MS_FACT_LAYER_SPLIT) | MS_VARIABLE(MS_FACT_OWN_SPLIT),
        [MS_RULES_OF_STATES] =
            MS_VARIABLE(MS_CHOOSE_ZERO) | MS_VARIABLE(MS_CHOOSE_RESHARD) |
            MS_VARIABLE(MS_CHOOSE_RECOMPUTE) | MS_VARIABLE(MS_CHOOSE_RECOMPUTE_LAYERS)};
    ms_variables all_later = 0;
    for (int i = 0; i < MS_NUM_RULE_LEVELS; i++)
        all_later |= later[i];
    return level == MS_RULES_OF_MESH ? ~all_later : later[level];
}

/* Variables on which equal bounds of meshes do not depend (ms_explore_compare_bounds). */
static const ms_variables replicas =
    MS_VARIABLE(MS_CHOOSE_DP_REPLICATE) | MS_VARIABLE(MS_CHOOSE_DP_SHARD);

static ms_variables rule_reads(const ms_rule *rule)
{
    return rule->when.reads | rule->need.reads;
}

ms_rule_set ms_explore_rules(ms_arena *arena, const ms_workload *workload,
                             const ms_plan *base)
{
    ms_rule_set set = workload->rules;
    ms_rule *rules = MS_TAKE_ARRAY(arena, set.num, ms_rule);
    const ms_facts facts = ms_facts_of(base, workload->model, workload->stack);
    ms_variables kept = 0;
    for (ms_choice i = 0; i < MS_NUM_CHOICES; i++)
        if (ms_plan_fields[i].search == MS_SEARCH_KEEPS &&
            i != MS_CHOOSE_RECOMPUTE_BUDGET)
            kept |= MS_VARIABLE(i);
    for (int i = 0; i < set.num; i++) {
        rules[i] = set.rules[i];
        if (ms_expression_fails(&rules[i].when, facts.of, kept))
            rules[i].when.reads = rules[i].need.reads = 0;
    }
    set.rules = rules;
    return set;
}

/* The variables that the loops down to `level` set. */
static ms_variables known_at(const ms_explore_level *l, ms_rule_level level)
{
    ms_variables known = 0;
    for (int i = 0; i <= (int)level; i++)
        if (i != MS_RULES_OF_ORDER)
            known |= ms_rule_level_variables((ms_rule_level)i);
    return l->any_replicas ? known & ~replicas : known;
}

static void set_states(ms_facts *facts, const ms_plan *plan)
{
    facts->of[MS_CHOOSE_ZERO] = plan->zero;
    facts->of[MS_CHOOSE_RESHARD] = plan->reshard_after_forward;
    facts->of[MS_CHOOSE_RECOMPUTE] = plan->recompute;
    facts->of[MS_CHOOSE_RECOMPUTE_LAYERS] = plan->recompute_layers;
}

static void update_facts(ms_explore_level *l, ms_rule_level level)
{
    const ms_workload *workload = l->explorer->workload;
    if (level <= MS_RULES_OF_BATCH) {
        l->facts = ms_facts_of(&l->plan, workload->model, workload->stack);
        return;
    }
    l->facts.of[MS_CHOOSE_ASYNC_TP] = l->plan.async_tp;
    ms_facts_set_schedule(&l->facts, &l->plan, workload->stack);
}

bool ms_explore_count_rule(ms_explorer *explorer, const ms_rule *broken)
{
    if (broken == NULL)
        return false;
    explorer->counts.refused[MS_REFUSE_FRAMEWORK]++;
    explorer->counts.broken[broken - explorer->workload->rules.rules]++;
    return true;
}

/* Counts one of the explorer's own rules. */
static bool count_own_rule(ms_explorer *explorer, const ms_rule *broken)
{
    return broken != NULL &&
           ms_explore_count_rule(
               explorer,
               &explorer->workload->rules.rules[broken - explorer->rules.rules]);
}

bool ms_explore_breaks_rule(ms_explore_level *l, ms_rule_level level)
{
    const ms_rule_set *rules = &l->explorer->rules;
    if (rules->num == 0)
        return false;
    update_facts(l, level);
    return count_own_rule(l->explorer,
                          ms_rule_broken(rules, &l->facts, known_at(l, level),
                                         ms_rule_level_variables(level)));
}

/* The rule by which the framework refuses the recomputation with the chosen sharding. */
static const ms_rule *state_rule(const ms_explore_level *l, ms_recompute recompute,
                                 long layers)
{
    const ms_rule_set *rules = &l->explorer->rules;
    if (rules->num == 0)
        return NULL;
    ms_plan plan = l->plan;
    plan.recompute = recompute;
    plan.recompute_layers = layers;
    ms_facts facts = l->facts;
    set_states(&facts, &plan);
    ms_variables order = l->has_order ? ms_rule_level_variables(MS_RULES_OF_ORDER) : 0;
    ms_variables fresh = ms_rule_level_variables(MS_RULES_OF_STATES) | order;
    return ms_rule_broken(rules, &facts, known_at(l, MS_RULES_OF_STATES) | order, fresh);
}

/* The recomputations that the framework accepts with the chosen sharding. */
static ms_accepted_recompute find_accepted(const ms_explore_level *l)
{
    ms_accepted_recompute out;
    for (int i = 0; i < MS_NUM_RECOMPUTE; i++)
        out.accepts[i] = state_rule(l, (ms_recompute)i, 0) == NULL;
    out.partial = state_rule(l, MS_RECOMPUTE_FULL, 1) == NULL;
    return out;
}

ms_known_accepted *ms_known_accepted_make(ms_arena *arena, const ms_rule_set *rules)
{
    ms_known_accepted *known = MS_NEW(arena, ms_known_accepted);
    ms_variables states = ms_rule_level_variables(MS_RULES_OF_STATES), all = 0;
    for (int i = 0; i < rules->num; i++) {
        ms_variables reads = rule_reads(&rules->rules[i]);
        all |= (reads & states) != 0 ? reads & ~states : 0;
    }
    for (int i = 0; i < MS_MAX_VARIABLES; i++)
        if ((all & MS_VARIABLE(i)) != 0)
            known->reads[known->num_reads++] = (unsigned char)i;
    return known;
}

static bool same_facts(const ms_known_accepted *known, const ms_facts *a,
                       const ms_facts *b)
{
    for (int i = 0; i < known->num_reads; i++)
        if (a->of[known->reads[i]] != b->of[known->reads[i]])
            return false;
    return true;
}

static ms_accepted_recompute known_accepted(const ms_explore_level *l)
{
    ms_known_accepted *known = l->explorer->accepted;
    ms_sharding sharding = ms_plan_sharding(&l->plan);
    if (l->has_order) /* rules on the order of axes are asked, too */
        return find_accepted(l);
    if (!known->is_known[sharding] ||
        !same_facts(known, &known->facts[sharding], &l->facts)) {
        known->is_known[sharding] = true;
        known->facts[sharding] = l->facts;
        known->of[sharding] = find_accepted(l);
    }
    return known->of[sharding];
}

ms_legal_recompute ms_explore_legal_recompute(const ms_explore_level *l)
{
    const ms_space *space = l->explorer->space;
    ms_accepted_recompute accepted = known_accepted(l);
    ms_legal_recompute out = {
        .partial = ms_space_allows(space, MS_CHOOSE_RECOMPUTE, MS_RECOMPUTE_FULL) &&
                   accepted.accepts[MS_RECOMPUTE_FULL] && accepted.partial};
    for (ms_layer_mode mode = 0; mode < MS_NUM_LAYER_MODES; mode++) {
        ms_recompute recompute = ms_layer_mode_recompute(mode);
        if (ms_space_allows(space, MS_CHOOSE_RECOMPUTE, recompute) &&
            accepted.accepts[recompute] && ms_space_tries_layer_mode(space, mode))
            out.modes |= 1U << mode;
    }
    return out;
}

void ms_explore_count_refused(const ms_explore_level *l)
{
    const ms_rule *broken = NULL;
    for (int i = 0; broken == NULL && i < MS_NUM_RECOMPUTE; i++)
        if (ms_space_allows(l->explorer->space, MS_CHOOSE_RECOMPUTE, i))
            broken = state_rule(l, (ms_recompute)i, 0);
    (void)count_own_rule(l->explorer, broken);
}

bool ms_explore_joins_order(const ms_explore_level *l)
{
    const ms_rule_set *rules = &l->explorer->rules;
    ms_variables order = ms_rule_level_variables(MS_RULES_OF_ORDER);
    ms_variables mesh = ms_rule_level_variables(MS_RULES_OF_MESH);
    for (int i = 0; i < rules->num; i++) {
        ms_variables reads = rule_reads(&rules->rules[i]);
        if ((reads & order) != 0 && (reads & ~(order | mesh)) != 0)
            return true;
    }
    return false;
}

void ms_explore_set_order(ms_explore_level *l, const unsigned char *order)
{
    const ms_workload *workload = l->explorer->workload;
    l->has_order = order != NULL;
    if (order == NULL)
        return;
    memcpy(l->plan.order, order, sizeof l->plan.order);
    ms_facts facts = ms_facts_of(&l->plan, workload->model, workload->stack);
    l->facts.of[MS_FACT_AXES] = facts.of[MS_FACT_AXES];
}

bool ms_explore_accepts_async(const ms_explore_level *l)
{
    const ms_rule_set *rules = &l->explorer->rules;
    const ms_variables async = MS_VARIABLE(MS_CHOOSE_ASYNC_TP);
    ms_variables known = known_at(l, MS_RULES_OF_BATCH) | async;
    for (int i = 0; i < rules->num; i++) {
        ms_variables reads = rule_reads(&rules->rules[i]);
        if ((reads & async) != 0 && (reads & ~known) != 0)
            return false;
    }
    ms_facts facts = l->facts;
    facts.of[MS_CHOOSE_ASYNC_TP] = 1;
    return ms_rule_broken(rules, &facts, known, async) == NULL;
}

/* ---- counts by name ---- */

int ms_count_broken_rules(const ms_counts *counts, const ms_rule_set *rules,
                          ms_rule_count out[MS_MAX_RULES])
{
    int num = 0;
    for (int i = 0; i < rules->num; i++) {
        if (counts->broken[i] == 0)
            continue;
        int at = 0;
        while (at < num && strcmp(out[at].name, rules->rules[i].name) != 0)
            at++;
        if (at == num)
            out[num++] = (ms_rule_count){rules->rules[i].name, 0};
        out[at].count += counts->broken[i];
    }
    return num;
}

const char *ms_broken_counts_text(ms_arena *arena, const ms_counts *counts,
                                  const ms_rule_set *rules)
{
    ms_rule_count broken[MS_MAX_RULES];
    int num = ms_count_broken_rules(counts, rules, broken);
    const char *text = "";
    for (int i = 0; i < num; i++)
        text = ms_arena_printf(arena, "%s%s%s %ld", text, i == 0 ? " (" : ", ",
                               broken[i].name, broken[i].count);
    return num == 0 ? "" : ms_arena_printf(arena, "%s)", text);
}
