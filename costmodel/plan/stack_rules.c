#include "costmodel/plan/stack_rules.h"

#include "base/paths.h"

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
    {"mtp", NULL},         {"tied", NULL}};
_Static_assert(MS_NUM_FACTS < MS_MAX_VARIABLES, "a bit per variable");
_Static_assert(sizeof model_variables / sizeof *model_variables ==
                   MS_NUM_FACTS - MS_NUM_CHOICES,
               "a row per fact");

static bool is_value(ms_choice choice)
{
    ms_choice_kind kind = ms_plan_fields[choice].kind;
    return kind == MS_CHOICE_WHOLE || kind == MS_CHOICE_SWITCH || kind == MS_CHOICE_WORD;
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

const char *ms_plan_layout_text(ms_arena *arena, const ms_plan *plan,
                                const ms_model *model, const ms_stack *stack)
{
    const long *layers = plan->layers_per_stage;
    long num = plan->num_stage_layers;
    if (!stack->states_layouts || num < 2 ||
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

/* ---- files ---- */

typedef struct rule_row {
    const char *rule, *since, *until, *when, *need, *says, *source;
} rule_row;

typedef struct rules_file {
    const char *name, *source, *version;
    ms_list versions, rules;
} rules_file;

#define ROW_TEXT(member, must, text)                                                     \
    {                                                                                    \
        .kind = MS_FIELD_TEXT, .key = #member, .offset = offsetof(rule_row, member),     \
        .required = (must), .help = (text)                                               \
    }
#define FILE_TEXT(member, text)                                                          \
    {                                                                                    \
        .kind = MS_FIELD_TEXT, .key = #member, .offset = offsetof(rules_file, member),   \
        .required = true, .help = (text)                                                 \
    }

static const ms_field row_fields[] = {
    ROW_TEXT(rule, true, "name of the rule, as messages print it"),
    ROW_TEXT(since, false, "first version with the rule"),
    ROW_TEXT(until, false, "first version without it"),
    ROW_TEXT(when, false, "expression: the plans that the rule is about"),
    ROW_TEXT(need, true, "expression: what must hold for them"),
    ROW_TEXT(says, true, "the rule in words"),
    ROW_TEXT(source, true, "where the framework states or checks it"),
    {0}};
static const ms_field version_fields[] = {{.kind = MS_FIELD_TEXT}};
static const ms_field file_fields[] = {
    FILE_TEXT(name, "name of the rules"),
    FILE_TEXT(source, "the framework's code or documents that the rules were read in"),
    FILE_TEXT(version, "version taken unless another is asked for"),
    {.kind = MS_FIELD_LIST,
     .key = "versions",
     .offset = offsetof(rules_file, versions),
     .required = true,
     .element = version_fields,
     .element_bytes = sizeof(const char *),
     .help = "known versions, oldest first"},
    {.kind = MS_FIELD_LIST,
     .key = "rules",
     .offset = offsetof(rules_file, rules),
     .required = true,
     .element = row_fields,
     .element_bytes = sizeof(rule_row)},
    {0}};

/* Place of a version in the list of versions, oldest first; MS_EINPUT at `loc`: not
 * listed. */
static ms_status find_version(ms_ctx *cx, ms_loc loc, const rules_file *file,
                              const char *version, int *index)
{
    const char *const *versions = file->versions.rows;
    const char *list = "";
    for (*index = 0; *index < file->versions.num_rows; ++*index) {
        if (strcmp(versions[*index], version) == 0)
            return MS_OK;
        list = ms_arena_printf(cx->arena, "%s%s%s", list, *index == 0 ? "" : ", ",
                               versions[*index]);
    }
    ms_fail(cx, MS_EINPUT, loc, "%s has no version \"%s\"", file->name, version);
    return ms_hint(cx, "use one of %s", list);
}

/* Whether a row holds in the version with this index. */
static ms_status holds_in(ms_ctx *cx, ms_loc loc, const rules_file *file,
                          const rule_row *row, int version, bool *holds)
{
    int since = 0, until = file->versions.num_rows;
    if (row->since != NULL)
        MS_TRY(find_version(cx, loc, file, row->since, &since));
    if (row->until != NULL)
        MS_TRY(find_version(cx, loc, file, row->until, &until));
    *holds = version >= since && version < until;
    return MS_OK;
}

static ms_status read_row(ms_ctx *cx, ms_loc loc, const rule_row *row, ms_rule *out)
{
    *out = (ms_rule){.name = row->rule,
                     .says = row->says,
                     .source = row->source,
                     .since = row->since,
                     .until = row->until,
                     .when_text = row->when};
    if (row->when != NULL)
        MS_TRY(ms_expression_parse(cx, loc, row->when, ms_rule_variables(), &out->when));
    return ms_expression_parse(cx, loc, row->need, ms_rule_variables(), &out->need);
}

/* MS_EINPUT at `need` if neither expression reads a variable: the rule would have one
 * verdict for all plans, and rules are looked up by their variables. */
static ms_status check_reads(ms_ctx *cx, ms_jval row, const ms_rule *rule)
{
    ms_jval need;
    if ((rule->when.reads | rule->need.reads) != 0)
        return MS_OK;
    if (!ms_json_member(cx, row, "need", &need))
        need = row;
    ms_json_fail(cx, need,
                 "rule \"%s\" reads no variable, so all plans keep it or none does",
                 rule->name);
    return ms_hint(cx, "\"need\" or \"when\" must name one, as in \"pp = 1\"");
}

ms_status ms_rule_set_read(ms_ctx *cx, ms_jval root, const char *version,
                           ms_rule_set *out)
{
    rules_file file = {0};
    ms_jval list;
    int index;
    MS_TRY(ms_json_read(cx, root, file_fields, &file));
    const ms_loc loc = version != NULL ? MS_NOWHERE : ms_json_loc(cx, root);
    version = version != NULL ? version : file.version;
    MS_TRY(find_version(cx, loc, &file, version, &index));
    (void)ms_json_member(cx, root, "rules", &list);
    if (file.rules.num_rows > MS_MAX_RULES - 2)
        return ms_json_fail(cx, list, "%d rules, must be at most %d", file.rules.num_rows,
                            MS_MAX_RULES - 2);
    ms_rule *rules = MS_NEW_ARRAY(cx->arena, file.rules.num_rows, ms_rule);
    *out = (ms_rule_set){.name = file.name,
                         .source = file.source,
                         .version = version,
                         .num_versions = file.versions.num_rows,
                         .versions = file.versions.rows,
                         .rules = rules};
    for (int i = 0; i < file.rules.num_rows; i++) {
        const rule_row *row = &((const rule_row *)file.rules.rows)[i];
        const ms_jval element = ms_json_element(cx, list, i);
        const ms_loc at = ms_json_loc(cx, element);
        bool holds;
        MS_TRY(read_row(cx, at, row, &rules[out->num]));
        MS_TRY(check_reads(cx, element, &rules[out->num]));
        MS_TRY(holds_in(cx, at, &file, row, index, &holds));
        out->num += holds;
    }
    return MS_OK;
}

/* ---- rules by the lists of a stack ---- */

/* The names of the values that a stack has, joined by commas. */
static const char *have_text(ms_arena *arena, const char *const *names, const bool *has)
{
    const char *text = "";
    for (int i = 0; names[i] != NULL; i++)
        if (has[i])
            text = ms_arena_printf(arena, "%s%s%s", text, text[0] == '\0' ? "" : ", ",
                                   names[i]);
    return text;
}

static bool has_all(const char *const *names, const bool *has)
{
    for (int i = 0; names[i] != NULL; i++)
        if (!has[i])
            return false;
    return true;
}

static void add_rules(ms_arena *arena, const ms_rule_set *more, ms_rule_set *set)
{
    ms_rule *rules = MS_NEW_ARRAY(arena, set->num + more->num, ms_rule);
    for (int i = 0; i < set->num; i++)
        rules[i] = set->rules[i];
    for (int i = 0; i < more->num; i++)
        rules[set->num + i] = more->rules[i];
    set->rules = rules;
    set->num += more->num;
}

/* Adds the rule `row` unless the stack has all values; `needs` follows the listed ones,
 * and stands alone if there are none. */
static ms_status add_list(ms_ctx *cx, rule_row row, const char *listed, ms_rule_set *set)
{
    row.says = listed[0] == '\0' ? row.says
                                 : ms_arena_printf(cx->arena, "%s: %s", row.says, listed);
    row.need = listed[0] == '\0' ? row.need
                                 : ms_arena_printf(cx->arena, "%s in {%s} or %s",
                                                   row.rule, listed, row.need);
    ms_rule rule;
    MS_TRY(read_row(cx, MS_NOWHERE, &row, &rule));
    add_rules(cx->arena, &(ms_rule_set){.num = 1, .rules = &rule}, set);
    return MS_OK;
}

static ms_status add_lists(ms_ctx *cx, const ms_stack *stack, ms_rule_set *set)
{
    const rule_row schedule = {.rule = "schedule",
                               .when = "pp > 1",
                               .need = stack->can_schedule[MS_CUSTOM] ? "schedule_file"
                                                                      : "pp = 1",
                               .says = "pipelines run one of",
                               .source = stack->source};
    const rule_row method = {.rule = "cp_method",
                             .when = "cp > 1",
                             .need = "cp = 1",
                             .says = "context parallelism is by",
                             .source = stack->source};
    if (!has_all(ms_schedule_names, stack->can_schedule))
        MS_TRY(add_list(cx, schedule,
                        have_text(cx->arena, ms_schedule_names, stack->can_schedule),
                        set));
    if (!has_all(ms_cp_method_names, stack->can_cp))
        MS_TRY(add_list(cx, method,
                        have_text(cx->arena, ms_cp_method_names, stack->can_cp), set));
    return MS_OK;
}

static ms_status load_file(ms_ctx *cx, const char *name, const char *version,
                           ms_rule_set *out)
{
    const char *path;
    MS_TRY(ms_config_resolve(cx, "rules", "rules", name, &path));
    ms_jdoc *doc = NULL;
    ms_jval root;
    MS_TRY(ms_json_load(cx, path, &doc, &root));
    ms_status status = ms_rule_set_read(cx, root, version, out);
    ms_json_close(doc);
    return status;
}

/* Loads the files that a stack lists, as "NAME@VERSION, NAME". The version asked for with
 * the stack replaces that of the first, after which the set is named. */
static ms_status load_files(ms_ctx *cx, const ms_stack *stack, ms_rule_set *out)
{
    for (const char *at = stack->rules; *at != '\0';) {
        size_t length = strcspn(at, ",");
        char *name = ms_arena_strndup(cx->arena, at, length);
        char *version = strchr(name, '@');
        if (version != NULL)
            *version++ = '\0';
        ms_rule_set one = {0};
        bool is_first = at == stack->rules;
        MS_TRY(load_file(cx, name,
                         is_first && stack->version != NULL ? stack->version : version,
                         &one));
        if (is_first) {
            *out = (ms_rule_set){.name = one.name,
                                 .source = one.source,
                                 .version = one.version,
                                 .num_versions = one.num_versions,
                                 .versions = one.versions};
        }
        add_rules(cx->arena, &one, out);
        at += length;
        at += strspn(at, ", ");
    }
    return MS_OK;
}

ms_status ms_rule_set_load(ms_ctx *cx, const ms_stack *stack, ms_rule_set *out)
{
    *out = (ms_rule_set){0};
    if (stack->rules != NULL) {
        MS_TRY(load_files(cx, stack, out));
    } else if (stack->version != NULL) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                "stack %s has no rules by version, so no version \"%s\"", stack->name,
                stack->version);
        return ms_hint(cx, "--stack %s", stack->name);
    }
    MS_TRY(add_lists(cx, stack, out));
    return out->num <= MS_MAX_RULES ? MS_OK
                                    : ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                                              "stack %s has %d rules, must be at most %d",
                                              stack->name, out->num, MS_MAX_RULES);
}

/* ---- judgement ---- */

const ms_rule *ms_rule_broken(const ms_rule_set *set, const ms_facts *facts,
                              unsigned long long known, unsigned long long fresh)
{
    for (int i = 0; i < set->num; i++) {
        const ms_rule *rule = &set->rules[i];
        unsigned long long reads = rule->when.reads | rule->need.reads;
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
    unsigned long long known = ((2ULL << choice) - 1) | 1ULL << MS_FACT_DP;
    if (choice >= MS_CHOOSE_SCHEDULE)
        known |= 1ULL << MS_FACT_SCHEDULE_FILE;
    ms_plan with = *plan;
    ms_plan_set(&with, choice, value);
    ms_facts facts = ms_facts_of(&with, &no_model, stack);
    return ms_rule_broken(set, &facts, known, 1ULL << choice) == NULL;
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

const char *ms_rule_values_text(ms_arena *arena, const ms_rule *rule,
                                const ms_facts *facts)
{
    const ms_variable *variables = ms_rule_variables();
    unsigned long long reads = rule->when.reads | rule->need.reads;
    const char *text = "";
    for (int i = 0; i < MS_NUM_FACTS; i++) {
        if ((reads >> i & 1) == 0)
            continue;
        const char *comma = text[0] == '\0' ? "" : ", ";
        const char *const *words = variables[i].words;
        const char *word = words == NULL ? NULL : words[facts->of[i]];
        text = words == NULL
                   ? ms_arena_printf(arena, "%s%s%s %ld", text, comma, variables[i].name,
                                     facts->of[i])
                   : ms_arena_printf(arena, "%s%s%s %s", text, comma, variables[i].name,
                                     word == NULL ? "from a file" : word);
    }
    return text;
}
