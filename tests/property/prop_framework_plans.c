/* Random plans that frameworks accept and refuse (tests/frameworks): enough of both, every
 * check breaks in some plan, choices without effect change no verdict, and later versions
 * accept what earlier ones did. */
#include "tests/test.h"

#include "costmodel/plan/stack_rules.h"
#include "tests/frameworks/frameworks.h"

static const char *const models[] = {"llama-3.1-70b",   "llama-3.1-8b", "mixtral-8x7b",
                                     "qwen3-235b-a22b", "deepseek-v3",  "llama-3.1-405b"};
enum {
    NUM_MODELS = sizeof models / sizeof *models,
    MOST_REASONS = 128
};

static const ms_model *model_named(const char *name)
{
    ms_ctx *cx = test_cx();
    const ms_model *model;
    ASSERT_OK(ms_model_load(cx, name, &model), cx);
    return model;
}

/* ---- both verdicts ---- */

/* The stack's rules must refuse a plan exactly where the framework's own checks do. A plan
 * without layers of stages has the framework's own split. */
static void compare(const char *stack, const ms_plan *plan, const ms_model *model,
                    bool accepted)
{
    static const char *loaded;
    static const ms_stack *of_stack;
    static ms_rule_set rules;
    ms_ctx *cx = test_cx();
    if (loaded != stack) {
        ASSERT_OK(ms_stack_load(cx, stack, &of_stack), cx);
        ASSERT_OK(ms_rule_set_load(cx, of_stack, &rules), cx);
        loaded = stack;
    }
    ASSERT_INT(ms_plan_refusal(plan, model), MS_LEGAL);
    const char *check = ms_check_framework(stack, plan, model);
    ASSERT_INT(check == NULL, accepted);
    ms_facts facts = ms_facts_of(plan, model, of_stack);
    const ms_rule *rule =
        ms_rule_broken(&rules, &facts, MS_ALL_VARIABLES, MS_ALL_VARIABLES);
    /* Versions without layouts take some split of their own, but not the program's; and
     * whether a list is the stack's own split is known with a cluster only (cases.csv). */
    bool is_split =
        rule != NULL && strcmp(rule->name, "layers") == 0 &&
        (plan->num_stage_layers == 0 || of_stack->layer_split == MS_SPLIT_BY_FLOP ||
         facts.of[MS_FACT_LAYER_SPLIT] != MS_LAYERS_EQUAL);
    if ((rule == NULL) != accepted && !is_split)
        fail_msg("stack %s, model %s, plan %s: rule %s, check %s", stack, model->name,
                 ms_plan_text(cx->arena, plan), rule == NULL ? "none" : rule->name,
                 check == NULL ? "none" : check);
}

static void draw_many(const char *stack, bool accepted)
{
    const int num_plans = TEST_CASES(200, 60);
    ms_rng rng = ms_rng_split(ms_rng_seed(22), accepted);
    ms_arena *arena = test_cx()->arena;
    for (int i = 0; i < num_plans; i++) {
        const ms_model *model = model_named(models[i % NUM_MODELS]);
        ms_plan plan = ms_random_framework_plan(&rng, arena, stack, model, accepted);
        compare(stack, &plan, model, accepted);
    }
}

static void both_verdicts_are_frequent(void **state)
{
    (void)state;
    for (int i = 0; ms_framework_stacks[i] != NULL; i++) {
        draw_many(ms_framework_stacks[i], true);
        draw_many(ms_framework_stacks[i], false);
    }
}

/* ---- every check breaks ---- */

/* Checks that cannot break in plans that are legal by ms_plan_refusal. */
static const char *const implied[] = {"M1 ranks",    "M2 batch",      "M3 heads",
                                      "M9 experts",  "T1 ranks",      "T2 experts: ep",

                                      "T3 heads",    "T5 batch",      "N1 ranks",
                                      "N2 heads",    "D1 batch",      "D3 heads",
                                      "D3 sequence", "D5 experts: ep"};

/* Stacks and models with which checks of old versions, of biased experts, sliding windows
 * and tied embeddings can break, besides the usual ones. */
static const char *const all_stacks[] = {"megatron@0.9", "megatron@0.12",   "nemo",
                                         "torchtitan",   "torchtitan@main", "nanotron",
                                         "deepspeed",    "maxtext"};
static const char *const all_models[] = {"llama-3.1-70b", "qwen3-235b-a22b",
                                         "llama-3.2-1b", "gpt-oss-20b"};

typedef struct reasons {
    const char *says[MOST_REASONS];
    int num;
} reasons;

static bool has_reason(const reasons *seen, const char *says)
{
    for (int i = 0; i < seen->num; i++)
        if (seen->says[i] == says)
            return true;
    return false;
}

static void add_reasons(const char *stack, const ms_model *model, ms_rng *rng,
                        reasons *seen)
{
    const char *broken[MOST_REASONS];
    ms_plan plan = ms_random_framework_plan(rng, test_cx()->arena, stack, model, false);
    int num = ms_list_broken_rules(stack, &plan, model, broken, MOST_REASONS);
    for (int i = 0; i < num; i++)
        if (!has_reason(seen, broken[i]))
            seen->says[seen->num++] = broken[i];
}

static void assert_seen(const reasons *seen, const ms_framework_rule *rule)
{
    for (; rule->says != NULL; rule++) {
        bool found = has_reason(seen, rule->says);
        for (size_t i = 0; i < sizeof implied / sizeof *implied; i++)
            found = found || strncmp(rule->says, implied[i], strlen(implied[i])) == 0;
        if (!found)
            fail_msg("no plan breaks \"%s\"", rule->says);
    }
}

static void every_check_breaks_in_some_plan(void **state)
{
    (void)state;
    reasons seen = {0};
    ms_rng rng = ms_rng_seed(5);
    for (size_t m = 0; m < sizeof all_models / sizeof *all_models; m++) {
        const ms_model *model = model_named(all_models[m]);
        for (size_t s = 0; s < sizeof all_stacks / sizeof *all_stacks; s++)
            for (int i = 0; i < 400; i++)
                add_reasons(all_stacks[s], model, &rng, &seen);
    }
    assert_seen(&seen, ms_megatron_rules);
    assert_seen(&seen, ms_bridge_rules);
    assert_seen(&seen, ms_torchtitan_rules);
    assert_seen(&seen, ms_nanotron_rules);
    assert_seen(&seen, ms_deepspeed_rules);
    assert_seen(&seen, ms_maxtext_rules);
}

/* ---- verdicts that agree ---- */

/* Puts axes of size 1 before the others, whose order stays. */
static void move_axes_of_one(ms_plan *plan)
{
    unsigned char order[MS_NUM_PLAN_AXES];
    int num = 0;
    for (int i = 0; i < MS_NUM_PLAN_AXES; i++)
        if (plan->size[plan->order[i]] == 1)
            order[num++] = plan->order[i];
    for (int i = 0; i < MS_NUM_PLAN_AXES; i++)
        if (plan->size[plan->order[i]] > 1)
            order[num++] = plan->order[i];
    memcpy(plan->order, order, sizeof order);
}

/* Changes all choices that have no effect in the plan. */
static void change_idle_choices(ms_plan *plan)
{
    if (plan->size[MS_TP] == 1) {
        plan->sequence_parallel = !plan->sequence_parallel;
        plan->async_tp = !plan->async_tp;
    }
    if (plan->size[MS_CP] == 1) {
        plan->cp_method = MS_CP_RING;
        plan->cp_balance = MS_CP_NONE;
    }
    if (plan->size[MS_CP] * plan->size[MS_DP_SHARD] == 1)
        plan->zero = (plan->zero + 1) % 4;
    if (plan->recompute != MS_RECOMPUTE_FULL)
        plan->recompute_layers = 1;
    move_axes_of_one(plan);
}

static void idle_choices_change_no_verdict(void **state)
{
    (void)state;
    ms_rng rng = ms_rng_seed(7);
    for (int s = 0; ms_framework_stacks[s] != NULL; s++)
        for (int i = 0; i < 120; i++) {
            const char *stack = ms_framework_stacks[s];
            const ms_model *model = model_named(models[i % NUM_MODELS]);
            ms_plan plan = ms_random_framework_plan(&rng, test_cx()->arena, stack, model,
                                                    i % 2 == 0);
            const char *verdict = ms_check_framework(stack, &plan, model);
            change_idle_choices(&plan);
            assert_ptr_equal(ms_check_framework(stack, &plan, model), verdict);
        }
}

/* The second stack of each pair accepts what the first does. */
static void versions_only_grow(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {{"megatron@0.9", "megatron@0.12"},
                                           {"megatron@0.12", "megatron"},
                                           {"nemo", "megatron"}};
    ms_rng rng = ms_rng_seed(9);
    for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++)
        for (int i = 0; i < 120; i++) {
            const ms_model *model = model_named(models[i % NUM_MODELS]);
            ms_plan plan = ms_random_framework_plan(&rng, test_cx()->arena, pairs[p][0],
                                                    model, true);
            assert_null(ms_check_framework(pairs[p][1], &plan, model));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_verdicts_are_frequent),
        cmocka_unit_test(every_check_breaks_in_some_plan),
        cmocka_unit_test(idle_choices_change_no_verdict),
        cmocka_unit_test(versions_only_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
