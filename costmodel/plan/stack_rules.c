#include "costmodel/plan/stack_rules.h"

#include <string.h>

/* ---- variables ---- */

typedef enum axis_order {
    ORDER_OTHER,
    ORDER_PP_DP_CP_TP,
    ORDER_DP_PP_CP_TP
} axis_order;
static const char *const order_words[] = {"other", "pp-dp-cp-tp", "dp-pp-cp-tp", NULL};
static const char *const split_words[] = {"equal", "short-ends", "own-ends", "free",
                                          NULL};

static const ms_variable model_variables[] = {
    {"dp", NULL},          {"microbatches", NULL},
    {"group", NULL},       {"schedule_file", NULL},
    {"axes", order_words}, {"layer_split", split_words},
    {"own_split", NULL},   {"layers", NULL},
    {"heads", NULL},       {"kv_heads", NULL},
    {"experts", NULL},     {"expert_bias", NULL},
    {"mla", NULL},         {"windows", NULL},
    {"mtp", NULL},         {"tied", NULL},
    {"mamba", NULL}};
_Static_assert(MS_NUM_FACTS < MS_MAX_VARIABLES, "a bit per variable");
_Static_assert(sizeof model_variables / sizeof *model_variables ==
                   MS_NUM_FACTS - MS_NUM_CHOICES,
               "a row per fact");

static bool is_value(ms_choice choice)
{
    ms_choice_kind kind = ms_plan_fields[choice].kind;
    return kind == MS_CHOICE_WHOLE || kind == MS_CHOICE_SWITCH ||
           kind == MS_CHOICE_WORD || kind == MS_CHOICE_SET;
}

const ms_variable *ms_rule_variables(void)
{
    static _Thread_local ms_variable variables[MS_NUM_FACTS + 1];
    for (ms_choice i = 0; i < MS_NUM_CHOICES; i++)
        variables[i] = (ms_variable){is_value(i) ? ms_plan_fields[i].name : "",
                                     is_value(i) ? ms_choice_words(i) : NULL};
    memcpy(&variables[MS_NUM_CHOICES], model_variables, sizeof model_variables);
    return variables;
}

/* ---- facts ---- */

/* Whether the axes above size 1 come in the given order. */
static bool is_ordered(const ms_plan *plan, const ms_plan_axis wanted[MS_NUM_PLAN_AXES])
{
    int next = 0;
    for (int i = 0; i < MS_NUM_PLAN_AXES; i++) {
        if (plan->size[plan->order[i]] == 1)
            continue;
        while (next < MS_NUM_PLAN_AXES && wanted[next] != plan->order[i])
            next++;
        if (next == MS_NUM_PLAN_AXES)
            return false;
    }
    return true;
}

static axis_order order_of(const ms_plan *plan)
{
    static const ms_plan_axis pp_first[] = {MS_PP, MS_DP_REPLICATE, MS_DP_SHARD, MS_CP,
                                            MS_TP};
    static const ms_plan_axis dp_first[] = {MS_DP_REPLICATE, MS_DP_SHARD, MS_PP, MS_CP,
                                            MS_TP};
    return is_ordered(plan, pp_first)   ? ORDER_PP_DP_CP_TP
           : is_ordered(plan, dp_first) ? ORDER_DP_PP_CP_TP
                                        : ORDER_OTHER;
}

/* Whether `short` layers or none less than `most` is all that tells the ends from the
 * stages between them. */
static bool has_short_ends(const long *layers, long num)
{
    long most = layers[num / 2];
    for (long i = 0; i < num; i++) {
        bool is_end = i == 0 || i == num - 1;
        if (layers[i] != most && !(is_end && layers[i] == most - 1))
            return false;
    }
    return true;
}

static bool has_own_ends(const long *layers, long num, long pp)
{
    for (long i = 0; i < num; i++) {
        long rank = i % pp;
        long like = rank == 0 || rank == pp - 1 || pp < 3 ? rank : 1;
        if (layers[i] != layers[like])
            return false;
    }
    return true;
}

static ms_layer_shape shape_of(const long *layers, long num, long pp)
{
    bool equal = true;
    for (long i = 1; i < num; i++)
        equal = equal && layers[i] == layers[0];
    return equal                           ? MS_LAYERS_EQUAL
           : has_short_ends(layers, num)   ? MS_LAYERS_SHORT_ENDS
           : has_own_ends(layers, num, pp) ? MS_LAYERS_OWN_ENDS
                                           : MS_LAYERS_FREE;
}

/* The shape of the stack's own distribution over `stages`; an even one makes the first
 * and the last stage one layer shorter if stages do not divide the layers. */
static ms_layer_shape own_shape(const ms_stack *stack, long layers, long stages)
{
    if (stages == 1 || (stack->layer_split == MS_SPLIT_EVEN && layers % stages == 0))
        return MS_LAYERS_EQUAL;
    return stack->layer_split == MS_SPLIT_EVEN && (layers + 2) % stages == 0
               ? MS_LAYERS_SHORT_ENDS
               : MS_LAYERS_FREE;
}

static bool has_windows(const ms_model *model)
{
    for (int i = 0; i < model->num_kinds; i++)
        if (model->kinds[i].window_tokens > 0)
            return true;
    return false;
}

ms_facts ms_facts_of(const ms_plan *plan, const ms_model *model, const ms_stack *stack)
{
    ms_facts facts;
    for (ms_choice i = 0; i < MS_NUM_CHOICES; i++)
        facts.of[i] = is_value(i) ? ms_plan_get(plan, i) : 0;
    long at_once = ms_plan_data_parallel(plan) * plan->microbatch;
    facts.of[MS_FACT_DP] = ms_plan_data_parallel(plan);
    facts.of[MS_FACT_MICROBATCHES] = at_once > 0 ? plan->global_batch / at_once : 0;
    facts.of[MS_FACT_AXES] = order_of(plan);
    facts.of[MS_FACT_LAYERS] = model->num_layers;
    facts.of[MS_FACT_HEADS] = model->num_heads;
    facts.of[MS_FACT_KV_HEADS] = model->num_kv_heads;
    facts.of[MS_FACT_EXPERTS] = model->moe.num_experts;
    facts.of[MS_FACT_EXPERT_BIAS] = model->moe.expert_bias;
    facts.of[MS_FACT_MLA] = model->attention == MS_ATTENTION_MLA;
    facts.of[MS_FACT_WINDOWS] = has_windows(model);
    facts.of[MS_FACT_MTP] = model->num_nextn_predict_layers;
    facts.of[MS_FACT_TIED] = model->tied_embeddings;
    facts.of[MS_FACT_MAMBA] = model->mamba.num_heads > 0;
    ms_facts_set_schedule(&facts, plan, stack);
    return facts;
}

void ms_facts_set_schedule(ms_facts *facts, const ms_plan *plan, const ms_stack *stack)
{
    long pp = plan->size[MS_PP], layers = facts->of[MS_FACT_LAYERS];
    facts->of[MS_CHOOSE_SCHEDULE] = plan->schedule;
    facts->of[MS_CHOOSE_VIRTUAL_STAGES] = plan->virtual_stages;
    facts->of[MS_CHOOSE_GROUP] = plan->microbatch_group;
    facts->of[MS_FACT_GROUP] = plan->microbatch_group > 0 ? plan->microbatch_group : pp;
    facts->of[MS_FACT_SCHEDULE_FILE] = plan->schedule == MS_CUSTOM;
    facts->of[MS_FACT_OWN_SPLIT] = plan->num_stage_layers == 0;
    facts->of[MS_FACT_LAYER_SPLIT] =
        plan->num_stage_layers > 0
            ? shape_of(plan->layers_per_stage, plan->num_stage_layers, pp)
            : own_shape(stack, layers, pp * plan->virtual_stages);
}

/* Whether a rule restricts the layers of stages: the version takes no layouts. */
static bool restricts_layers(const ms_rule_set *rules)
{
    for (int i = 0; i < rules->num; i++)
        if (strcmp(rules->rules[i].name, "layers") == 0)
            return true;
    return false;
}

const char *ms_plan_layout_text(ms_arena *arena, const ms_plan *plan,
                                const ms_model *model, const ms_stack *stack,
                                const ms_rule_set *rules)
{
    const long *layers = plan->layers_per_stage;
    long num = plan->num_stage_layers;
    if (!stack->states_layouts || restricts_layers(rules) || num < 2 ||
        shape_of(layers, num, plan->size[MS_PP]) == MS_LAYERS_EQUAL)
        return NULL;
    const char *text = "E";
    for (long i = 0; i < num; i++) {
        text = ms_arena_printf(arena, "%s%s", text, i == 0 ? "" : "|");
        if (layers[i] > 0)
            text = ms_arena_printf(arena, "%st*%ld", text, layers[i]);
    }
    long mtp = stack->trains_mtp ? model->num_nextn_predict_layers : 0;
    for (long i = 0; i < mtp; i++)
        text = ms_arena_printf(arena, "%sm", text);
    return ms_arena_printf(arena, "%sL", text);
}

/* ---- judgement ---- */

const ms_rule *ms_rule_broken(const ms_rule_set *set, const ms_facts *facts,
                              ms_variables known, ms_variables fresh)
{
    for (int i = 0; i < set->num; i++) {
        const ms_rule *rule = &set->rules[i];
        ms_variables reads = rule->when.reads | rule->need.reads;
        if ((reads & ~known) == 0 && (reads & fresh) != 0 &&
            ms_expression_holds(&rule->when, facts->of) &&
            !ms_expression_holds(&rule->need, facts->of))
            return rule;
    }
    return NULL;
}

/* Whether rules about the choice and those before it, which the plan has, allow `value`. */
static bool is_allowed(const ms_rule_set *set, const ms_plan *plan, const ms_stack *stack,
                       ms_choice choice, long value)
{
    static const ms_model no_model = {0}; /* rules that read its facts are not asked */
    ms_variables known = ((MS_VARIABLE(choice) << 1) - 1) | MS_VARIABLE(MS_FACT_DP);
    if (choice >= MS_CHOOSE_SCHEDULE)
        known |= MS_VARIABLE(MS_FACT_SCHEDULE_FILE);
    ms_plan with = *plan;
    ms_plan_set(&with, choice, value);
    ms_facts facts = ms_facts_of(&with, &no_model, stack);
    return ms_rule_broken(set, &facts, known, MS_VARIABLE(choice)) == NULL;
}

long ms_rule_default(const ms_rule_set *set, const ms_plan *plan, const ms_stack *stack,
                     ms_choice choice)
{
    const long usual = ms_plan_usual(plan, stack, choice);
    const ms_choice_kind kind = ms_plan_fields[choice].kind;
    if (kind != MS_CHOICE_WORD && kind != MS_CHOICE_SWITCH && choice != MS_CHOOSE_ZERO)
        return usual;
    const long last = choice == MS_CHOOSE_ZERO ? (long)ms_plan_fields[choice].high
                                               : ms_choice_last(choice);
    for (long value = usual; value >= 0; value--)
        if (is_allowed(set, plan, stack, choice, value))
            return value;
    for (long value = usual + 1; value <= last; value++)
        if (is_allowed(set, plan, stack, choice, value))
            return value;
    return usual;
}

static const char *value_text(ms_arena *arena, int fact, const char *const *words,
                              long value)
{
    if (fact < MS_NUM_CHOICES && ms_plan_fields[fact].kind == MS_CHOICE_SET)
        return value == 0 ? "not stated"
                          : ms_choice_value_text(arena, (ms_choice)fact, value);
    if (words == NULL)
        return ms_arena_printf(arena, "%ld", value);
    return words[value] == NULL ? "from a file" : words[value];
}

const char *ms_rule_values_text(ms_arena *arena, const ms_rule *rule,
                                const ms_facts *facts)
{
    const ms_variable *variables = ms_rule_variables();
    ms_variables reads = rule->when.reads | rule->need.reads;
    const char *text = "";
    for (int i = 0; i < MS_NUM_FACTS; i++) {
        if ((reads >> i & 1) == 0)
            continue;
        text = ms_arena_printf(arena, "%s%s%s %s", text, text[0] == '\0' ? "" : ", ",
                               variables[i].name,
                               value_text(arena, i, variables[i].words, facts->of[i]));
    }
    return text;
}
