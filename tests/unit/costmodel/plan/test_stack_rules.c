/* Rules of frameworks: shipped files in every version, the facts of a plan that rules
 * read, judgements by version, and errors of bad files. */
#include "costmodel/plan/stack_rules.h"

#include "base/paths.h"
#include "costmodel/model/model.h"
#include "tests/test.h"
#include "tests/unit/legal_plans.h"

static const ms_model dense = {.name = "dense",
                               .num_layers = 80,
                               .num_heads = 64,
                               .num_kv_heads = 8,
                               .num_kinds = 1};

static const ms_stack *load_stack(ms_ctx *cx, const char *name)
{
    const ms_stack *stack;
    ASSERT_OK(ms_stack_load(cx, name, &stack), cx);
    return stack;
}

static ms_rule_set load_rules(ms_ctx *cx, const char *name)
{
    ms_rule_set set;
    ASSERT_OK(ms_rule_set_load(cx, load_stack(cx, name), &set), cx);
    return set;
}

static ms_status read_text(ms_ctx *cx, const char *text, const char *version,
                           ms_rule_set *out)
{
    ms_jdoc *doc;
    ms_jval root;
    ASSERT_OK(ms_json_parse(cx, "r.json", text, strlen(text), &doc, &root), cx);
    ms_status status = ms_rule_set_read(cx, root, version, out);
    ms_json_close(doc);
    return status;
}

/* A file with versions 1, 2 and 3 and the given rules. */
static const char *file_text(ms_arena *arena, const char *rules)
{
    return ms_arena_printf(arena,
                           "{\"name\": \"f\", \"source\": \"s\", \"version\": \"2\",\n"
                           "\"versions\": [\"1\", \"2\", \"3\"],\n\"rules\": [\n%s]}",
                           rules);
}

/* A rule with one need, and more keys before its source. */
static const char *rule_text(ms_arena *arena, const char *need, const char *more)
{
    return ms_arena_printf(arena,
                           "{\"rule\": \"a\", \"need\": \"%s\", \"says\": \"\", %s"
                           "\"source\": \"\"}",
                           need, more);
}

static void expect_error(const char *text, const char *version, const char *message)
{
    ms_ctx *cx = test_cx();
    ms_rule_set set;
    ASSERT_INT(read_text(cx, text, version, &set), MS_EINPUT);
    const char *messages = test_messages(cx);
    if (strstr(messages, message) == NULL)
        fail_msg("expected \"%s\" in:\n%s", message, messages);
}

/* ---- shipped files ---- */

/* Whether the texts of an array hold `text`. */
static bool lists(ms_ctx *cx, ms_jval array, const char *text)
{
    const char *one = "";
    bool found = false;
    for (int i = 0; i < ms_json_length(array) && !found; i++) {
        ASSERT_OK(ms_json_text(cx, ms_json_element(cx, array, i), &one), cx);
        found = strcmp(one, text) == 0;
    }
    return found;
}

static void check_file(ms_ctx *cx, const char *name)
{
    ms_jdoc *doc;
    ms_jval root, versions;
    ms_rule_set set;
    ASSERT_OK(ms_json_load(cx, ms_config_file(cx, "rules", name), &doc, &root), cx);
    assert_true(ms_json_member(cx, root, "versions", &versions));
    for (int i = 0; i < ms_json_length(versions); i++) {
        const char *version;
        ASSERT_OK(ms_json_text(cx, ms_json_element(cx, versions, i), &version), cx);
        ASSERT_OK(ms_rule_set_read(cx, root, version, &set), cx);
        ASSERT_TEXT(set.name, name);
        ASSERT_TEXT(set.version, version);
        assert_true(set.num > 0);
    }
    ASSERT_OK(ms_rule_set_read(cx, root, NULL, &set), cx);
    assert_true(lists(cx, versions, set.version));
    ms_json_close(doc);
}

static void every_shipped_file_is_read_in_every_version(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const char *const *names;
    int num_names;
    ASSERT_OK(ms_config_names(cx, "rules", &names, &num_names), cx);
    assert_true(num_names >= 6);
    for (int i = 0; i < num_names; i++)
        check_file(cx, names[i]);
}

static void every_shipped_stack_has_rules_that_load(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const char *const *names;
    int num_names;
    ASSERT_OK(ms_config_names(cx, "stacks", &names, &num_names), cx);
    for (int i = 0; i < num_names; i++) {
        const ms_stack *stack = load_stack(cx, names[i]);
        ms_rule_set set = load_rules(cx, names[i]);
        ASSERT_INT(set.name != NULL, stack->rules != NULL);
    }
}

/* ---- versions ---- */

static void rules_hold_from_since_to_before_until(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const char *text = file_text(
        cx->arena,
        "{\"rule\": \"a\", \"need\": \"tp = 1\", \"says\": \"\", \"source\": \"\"},\n"
        "{\"rule\": \"b\", \"since\": \"2\", \"need\": \"tp = 1\", \"says\": \"\", "
        "\"source\": \"\"},\n"
        "{\"rule\": \"c\", \"until\": \"3\", \"need\": \"tp = 1\", \"says\": \"\", "
        "\"source\": \"\"}");
    const struct {
        const char *version, *names;
    } cases[] = {{"1", "ac"}, {"2", "abc"}, {"3", "ab"}, {NULL, "abc"}};
    for (int i = 0; i < 4; i++) {
        ms_rule_set set;
        ASSERT_OK(read_text(cx, text, cases[i].version, &set), cx);
        ASSERT_INT(set.num, strlen(cases[i].names));
        for (int k = 0; k < set.num; k++)
            ASSERT_INT(set.rules[k].name[0], cases[i].names[k]);
    }
}

static void a_version_asked_for_replaces_that_of_the_first_file(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_rule_set core = load_rules(cx, "megatron@0.12");
    ASSERT_TEXT(core.version, "0.12");
    ASSERT_TEXT(load_rules(cx, "megatron").version, "0.20");
    ASSERT_TEXT(load_rules(cx, "megatron-bridge-2025").version, "0.14");
    ms_rule_set bridge = load_rules(cx, "megatron-bridge@0.12");
    ASSERT_TEXT(bridge.name, "megatron");
    ASSERT_TEXT(bridge.version, "0.12");
    bool has_own = false;
    for (int i = 0; i < bridge.num; i++)
        has_own = has_own || strstr(bridge.rules[i].says, "Megatron-FSDP") != NULL;
    assert_true(has_own && bridge.num > core.num);
}

static void an_unknown_version_is_an_error_that_lists_the_known(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_rule_set set;
    ASSERT_INT(ms_rule_set_load(cx, load_stack(cx, "torchtitan@1"), &set), MS_EINPUT);
    assert_non_null(strstr(test_messages(cx), "torchtitan has no version \"1\""));
    assert_non_null(strstr(test_messages(cx), "use one of 0.2.2, main"));
    cx = test_cx();
    ASSERT_INT(ms_rule_set_load(cx, load_stack(cx, "generic@1"), &set), MS_EINPUT);
    assert_non_null(strstr(test_messages(cx), "has no rules by version"));
}

/* ---- facts ---- */

static long fact(const ms_plan *plan, int which)
{
    ms_ctx *cx = test_cx();
    return ms_facts_of(plan, &dense, load_stack(cx, "megatron")).of[which];
}

/* Asserts that the fact, a word, has this value. */
static void expect_word(const ms_plan *plan, int which, const char *want)
{
    ASSERT_TEXT(ms_rule_variables()[which].words[fact(plan, which)], want);
}

static void the_order_word_ignores_axes_of_size_one(void **state)
{
    (void)state;
    ms_plan plan = dense_plan();
    expect_word(&plan, MS_FACT_AXES, "pp-dp-cp-tp");
    memcpy(plan.order,
           (unsigned char[]){MS_TP, MS_PP, MS_DP_SHARD, MS_CP, MS_DP_REPLICATE},
           sizeof plan.order);
    expect_word(&plan, MS_FACT_AXES, "other");
    plan.size[MS_TP] = 1;
    expect_word(&plan, MS_FACT_AXES, "pp-dp-cp-tp");
    memcpy(plan.order,
           (unsigned char[]){MS_DP_SHARD, MS_PP, MS_CP, MS_TP, MS_DP_REPLICATE},
           sizeof plan.order);
    expect_word(&plan, MS_FACT_AXES, "dp-pp-cp-tp");
    plan.size[MS_CP] = 2;
    plan.size[MS_DP_REPLICATE] = 2;
    expect_word(&plan, MS_FACT_AXES, "other");
}

static void the_split_word_is_the_strictest_that_holds(void **state)
{
    (void)state;
    const struct {
        long pp, v, layers[8];
        const char *want;
    } cases[] = {{4, 1, {20, 20, 20, 20}, "equal"},
                 {4, 1, {19, 20, 20, 20}, "short-ends"},
                 {4, 1, {20, 20, 20, 19}, "short-ends"},
                 {4, 1, {19, 20, 20, 19}, "short-ends"},
                 {4, 1, {18, 21, 21, 20}, "own-ends"},
                 {4, 1, {20, 21, 20, 19}, "free"},
                 {4, 2, {9, 10, 10, 11, 9, 10, 10, 11}, "own-ends"},
                 {4, 2, {9, 10, 10, 11, 11, 10, 10, 9}, "free"},
                 {2, 1, {30, 50}, "own-ends"},
                 {2, 1, {39, 41}, "own-ends"},
                 {2, 1, {39, 40}, "short-ends"},
                 {1, 1, {80}, "equal"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_plan plan = dense_plan();
        plan.size[MS_PP] = cases[i].pp;
        plan.virtual_stages = cases[i].v;
        plan.num_stage_layers = cases[i].pp * cases[i].v;
        plan.layers_per_stage = cases[i].layers;
        expect_word(&plan, MS_FACT_LAYER_SPLIT, cases[i].want);
        ASSERT_INT(fact(&plan, MS_FACT_OWN_SPLIT), 0);
    }
}

static void numbers_of_a_plan_and_of_a_model_are_facts(void **state)
{
    (void)state;
    ms_plan plan = dense_plan(); /* pp 4, dp_shard 16, tp 8, 512 sequences */
    ASSERT_INT(fact(&plan, MS_FACT_DP), 16);
    ASSERT_INT(fact(&plan, MS_FACT_MICROBATCHES), plan.global_batch / 16);
    ASSERT_INT(fact(&plan, MS_FACT_GROUP), 4);
    ASSERT_INT(fact(&plan, MS_FACT_OWN_SPLIT), 1);
    ASSERT_INT(fact(&plan, MS_FACT_LAYERS), 80);
    ASSERT_INT(fact(&plan, MS_FACT_KV_HEADS), 8);
    ASSERT_INT(fact(&plan, MS_FACT_EXPERTS), 0);
    ASSERT_INT(fact(&plan, MS_FACT_MLA), 0);
    ASSERT_INT(fact(&plan, MS_FACT_MAMBA), 0);
    ASSERT_INT(fact(&plan, MS_CHOOSE_TP), 8);
    ASSERT_INT(fact(&plan, MS_FACT_SCHEDULE_FILE), 0);
    plan.microbatch_group = 8;
    ASSERT_INT(fact(&plan, MS_FACT_GROUP), 8);
    ASSERT_INT(fact(&plan, MS_CHOOSE_GROUP), 8);
    plan.schedule = MS_CUSTOM;
    ASSERT_INT(fact(&plan, MS_FACT_SCHEDULE_FILE), 1);
    plan.microbatch = 0; /* not yet filled in */
    ASSERT_INT(fact(&plan, MS_FACT_MICROBATCHES), 0);
}

/* ---- judgement ---- */

static const ms_rule *broken_by(ms_ctx *cx, const char *stack, const ms_plan *plan,
                                ms_facts *facts)
{
    ms_rule_set set = load_rules(cx, stack);
    *facts = ms_facts_of(plan, &dense, load_stack(cx, stack));
    return ms_rule_broken(&set, facts, MS_ALL_VARIABLES, MS_ALL_VARIABLES);
}

static void expect_rule(const char *stack, const ms_plan *plan, const char *want)
{
    ms_facts facts;
    const ms_rule *rule = broken_by(test_cx(), stack, plan, &facts);
    ASSERT_TEXT(rule == NULL ? "none" : rule->name, want);
}

static void a_plan_is_judged_by_the_version(void **state)
{
    (void)state;
    ms_plan plan = dense_plan();
    plan.sequence_parallel = plan.loss_parallel = true;
    expect_rule("megatron", &plan, "none");
    plan.zero = 2;
    expect_rule("megatron@0.11", &plan, "zero");
    expect_rule("megatron@0.12", &plan, "none");
    plan.zero = 1;
    plan.size[MS_TP] = 16; /* 8 key-value heads */
    plan.size[MS_DP_SHARD] = 8;
    expect_rule("megatron@0.15", &plan, "kv_heads");
    expect_rule("megatron@0.16", &plan, "none");
    plan.schedule = MS_ZB_V;
    expect_rule("megatron", &plan, "schedule");
    expect_rule("generic", &plan, "none");
}

static void only_rules_of_known_and_fresh_variables_are_asked(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_rule_set set;
    ASSERT_OK(read_text(cx,
                        file_text(cx->arena, rule_text(cx->arena, "tp = 1",
                                                       "\"when\": \"pp > 1\", ")),
                        NULL, &set),
              cx);
    ms_plan plan = dense_plan();
    ms_facts facts = ms_facts_of(&plan, &dense, load_stack(cx, "generic"));
    ms_variables pp = MS_VARIABLE(MS_CHOOSE_PP), tp = MS_VARIABLE(MS_CHOOSE_TP);
    assert_non_null(ms_rule_broken(&set, &facts, pp | tp, tp));
    assert_non_null(ms_rule_broken(&set, &facts, pp | tp, pp));
    assert_null(ms_rule_broken(&set, &facts, tp, tp));
    assert_null(ms_rule_broken(&set, &facts, MS_ALL_VARIABLES, ~(pp | tp)));
    facts.of[MS_CHOOSE_PP] = 1;
    assert_null(ms_rule_broken(&set, &facts, MS_ALL_VARIABLES, MS_ALL_VARIABLES));
}

static void values_of_a_rule_are_numbers_and_words(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = dense_plan();
    ms_facts facts;
    plan.schedule = MS_ZB_V;
    const ms_rule *rule = broken_by(cx, "megatron", &plan, &facts);
    assert_non_null(rule);
    ASSERT_TEXT(ms_rule_values_text(cx->arena, rule, &facts), "pp 4, schedule zb-v");
    facts.of[MS_CHOOSE_SCHEDULE] = MS_CUSTOM;
    ASSERT_TEXT(ms_rule_values_text(cx->arena, rule, &facts),
                "pp 4, schedule from a file");
}

/* ---- bad files ---- */

static void errors_of_files_name_the_place(void **state)
{
    (void)state;
    ms_arena *arena = test_cx()->arena;
    const char *unknown_name = rule_text(arena, "heds > 1", "");
    const char *bad_when = rule_text(arena, "tp", "\"when\": \"pp >\", ");
    const char *bad_since = rule_text(arena, "tp", "\"since\": \"9\", ");
    const char *bad_key = rule_text(arena, "tp", "\"sinse\": \"1\", ");
    expect_error(file_text(arena, unknown_name), NULL, "r.json:4:1: error: unknown name");
    expect_error(file_text(arena, unknown_name), NULL, "did you mean \"heads\"?");
    expect_error(file_text(arena, bad_when), NULL,
                 "r.json:4:1: error: \"pp >\" ends where a name or a number is expected");
    expect_error(file_text(arena, bad_since), NULL,
                 "r.json:4:1: error: f has no version \"9\"");
    expect_error(file_text(arena, bad_since), NULL, "use one of 1, 2, 3");
    expect_error(file_text(arena, bad_key), NULL, "unknown key \"sinse\"");
    expect_error(file_text(arena, "{\"rule\": \"a\"}"), NULL, "need");
    expect_error(file_text(arena, ""), "9", "f has no version \"9\"");
    expect_error("[]", NULL, "r.json:1:1");
    expect_error("{}", NULL, "versions");
}

static void an_own_file_may_refuse_architectures(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_rule_set set;
    const ms_model *hybrid;
    const char *rule = rule_text(cx->arena, "not mamba", "");
    ASSERT_OK(read_text(cx, file_text(cx->arena, rule), NULL, &set), cx);
    ASSERT_OK(ms_model_load(cx, "nemotron-h-8b", &hybrid), cx);
    ms_plan plan = dense_plan();
    const ms_stack *stack = load_stack(cx, "generic");
    ms_facts facts = ms_facts_of(&plan, hybrid, stack);
    assert_non_null(ms_rule_broken(&set, &facts, MS_ALL_VARIABLES, MS_ALL_VARIABLES));
    facts = ms_facts_of(&plan, &dense, stack);
    assert_null(ms_rule_broken(&set, &facts, MS_ALL_VARIABLES, MS_ALL_VARIABLES));
}

static const char *architectures_text(ms_arena *arena, const char *row)
{
    return ms_arena_printf(arena,
                           "{\"name\": \"f\", \"source\": \"s\", \"version\": \"1\",\n"
                           "\"versions\": [\"1\", \"2\"], \"rules\": [],\n"
                           "\"architectures\": [\n%s]}",
                           row);
}

static void architectures_are_of_a_version(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_rule_set set;
    const char *text = architectures_text(
        cx->arena, "{\"kind\": \"dense\", \"source\": \"a\"},\n"
                   "{\"kind\": \"mamba\", \"since\": \"2\", \"source\": \"b\"}");
    ASSERT_OK(read_text(cx, text, NULL, &set), cx);
    ASSERT_TEXT(set.trains[MS_TRAINS_DENSE], "a");
    assert_null(set.trains[MS_TRAINS_MAMBA]);
    ASSERT_OK(read_text(cx, text, "2", &set), cx);
    ASSERT_TEXT(set.trains[MS_TRAINS_MAMBA], "b");
    assert_null(set.trains[MS_TRAINS_EXPERTS]);
    expect_error(architectures_text(cx->arena, "{\"kind\": \"mambo\", \"source\": \"\"}"),
                 NULL, "r.json:4:");
    expect_error(architectures_text(cx->arena, "{\"kind\": \"mla\", \"since\": \"3\", "
                                               "\"source\": \"\"}"),
                 NULL, "r.json:4:1: error: f has no version \"3\"");
}

static void a_rule_without_variables_is_refused(void **state)
{
    (void)state;
    ms_arena *arena = test_cx()->arena;
    const char *constant = rule_text(arena, "1 > 2", "");
    const char *both = rule_text(arena, "0", "\"when\": \"1\", ");
    expect_error(file_text(arena, constant), NULL,
                 "r.json:4:23: error: rule \"a\" reads no variable");
    expect_error(file_text(arena, constant), NULL, "as in \"pp = 1\"");
    expect_error(file_text(arena, both), "3", "reads no variable");
    ms_ctx *cx = test_cx();
    ms_rule_set set;
    const char *never = rule_text(arena, "0", "\"when\": \"pp > 1\", ");
    ASSERT_OK(read_text(cx, file_text(arena, never), NULL, &set), cx);
}

static void a_name_without_a_like_has_no_hint(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_expression out;
    ASSERT_INT(ms_expression_parse(cx, MS_NOWHERE, "q > 1", ms_rule_variables(), &out),
               MS_EINPUT);
    if (strstr(test_messages(cx), "\"\"?") != NULL)
        fail_msg("%s", test_messages(cx));
}

static void a_file_has_at_most_so_many_rules(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const char *rules = "";
    for (int i = 0; i < MS_MAX_RULES; i++)
        rules = ms_arena_printf(cx->arena, "%s%s%s", rules, i == 0 ? "" : ",\n",
                                rule_text(cx->arena, "tp", ""));
    expect_error(file_text(cx->arena, rules), NULL, "64 rules, must be at most 62");
}

static void uneven_stages_have_a_layout_string(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_stack *stack;
    ASSERT_OK(ms_stack_load(cx, "megatron", &stack), cx);
    ms_rule_set rules;
    ASSERT_OK(ms_rule_set_load(cx, stack, &rules), cx);
    const ms_model model = {.num_layers = 27};
    ms_plan plan = ms_plan_default(8);
    plan.size[MS_PP] = 2;
    plan.virtual_stages = 2;
    plan.num_stage_layers = 4;
    plan.layers_per_stage = (const long[]){7, 7, 7, 6};
    ASSERT_TEXT(ms_plan_layout_text(cx->arena, &plan, &model, stack, &rules),
                "Et*7|t*7|t*7|t*6L");
    plan.layers_per_stage = (const long[]){0, 14, 13, 0};
    ASSERT_TEXT(ms_plan_layout_text(cx->arena, &plan, &model, stack, &rules),
                "E|t*14|t*13|L");
    plan.layers_per_stage = (const long[]){7, 7, 7, 7};
    assert_null(ms_plan_layout_text(cx->arena, &plan, &model, stack, &rules));
    plan.layers_per_stage = (const long[]){7, 7, 7, 6};
    ASSERT_OK(ms_stack_load(cx, "megatron@0.12", &stack), cx);
    ASSERT_OK(ms_rule_set_load(cx, stack, &rules), cx);
    assert_null(ms_plan_layout_text(cx->arena, &plan, &model, stack, &rules));
    ASSERT_OK(ms_stack_load(cx, "torchtitan", &stack), cx);
    assert_null(ms_plan_layout_text(cx->arena, &plan, &model, stack, &rules));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_shipped_file_is_read_in_every_version),
        cmocka_unit_test(every_shipped_stack_has_rules_that_load),
        cmocka_unit_test(rules_hold_from_since_to_before_until),
        cmocka_unit_test(a_version_asked_for_replaces_that_of_the_first_file),
        cmocka_unit_test(an_unknown_version_is_an_error_that_lists_the_known),
        cmocka_unit_test(the_order_word_ignores_axes_of_size_one),
        cmocka_unit_test(the_split_word_is_the_strictest_that_holds),
        cmocka_unit_test(numbers_of_a_plan_and_of_a_model_are_facts),
        cmocka_unit_test(a_plan_is_judged_by_the_version),
        cmocka_unit_test(only_rules_of_known_and_fresh_variables_are_asked),
        cmocka_unit_test(values_of_a_rule_are_numbers_and_words),
        cmocka_unit_test(errors_of_files_name_the_place),
        cmocka_unit_test(an_own_file_may_refuse_architectures),
        cmocka_unit_test(architectures_are_of_a_version),
        cmocka_unit_test(a_rule_without_variables_is_refused),
        cmocka_unit_test(a_name_without_a_like_has_no_hint),
        cmocka_unit_test(a_file_has_at_most_so_many_rules),
        cmocka_unit_test(uneven_stages_have_a_layout_string),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
