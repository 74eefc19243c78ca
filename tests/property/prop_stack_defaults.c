/* Default plans of every shipped stack, in every version of its rules: what flags leave
 * open breaks no rule, on meshes with and without each axis. */
#include "tests/test.h"

#include "base/paths.h"
#include "costmodel/plan/stack_rules.h"
#include "sim/request/plan_options.h"

/* The bits of the choices that the test gives: sizes of axes, and what follows. */
static ms_variables given(void)
{
    ms_variables bits = MS_VARIABLE(MS_FACT_DP);
    for (int choice = MS_CHOOSE_PP; choice <= MS_CHOOSE_ETP; choice++)
        bits |= MS_VARIABLE(choice);
    return bits;
}

static ms_plan default_plan(ms_ctx *cx, const char *stack,
                            const long size[MS_NUM_PLAN_AXES])
{
    ms_plan_options opts = {0};
    opts.of[MS_CHOOSE_MODEL].text = "llama-3-8b";
    opts.of[MS_CHOOSE_STACK].text = stack;
    for (int axis = 0; axis < MS_NUM_PLAN_AXES; axis++)
        ms_plan_give(&opts, MS_CHOOSE_PP + axis, size[axis]);
    ms_plan plan;
    ASSERT_OK(ms_plan_from_options(cx, &opts, &plan), cx);
    return plan;
}

typedef struct judge {
    ms_ctx *cx;
    const char *stack_name;
    const ms_stack *stack;
    ms_rule_set rules;
    const ms_model *model;
    long num_judged, num_pipelines;
} judge;

/* Judges the default plan of these axes, unless they break a rule by themselves. */
static void judge_axes(judge *j, const long size[MS_NUM_PLAN_AXES])
{
    ms_plan plan = default_plan(j->cx, j->stack_name, size);
    ms_facts facts = ms_facts_of(&plan, j->model, j->stack);
    if (ms_rule_broken(&j->rules, &facts, given(), MS_ALL_VARIABLES) != NULL)
        return;
    j->num_judged++;
    j->num_pipelines += plan.size[MS_PP] > 1;
    const ms_rule *rule =
        ms_rule_broken(&j->rules, &facts, MS_ALL_VARIABLES, MS_ALL_VARIABLES);
    if (rule != NULL)
        fail_msg("stack %s: rule %s: %s\n%s (%s)", j->stack_name, rule->name, rule->says,
                 ms_plan_text(j->cx->arena, &plan),
                 ms_rule_values_text(j->cx->arena, rule, &facts));
    ASSERT_OK(ms_plan_check(j->cx, &plan, j->model, MS_NOWHERE), j->cx);
}

/* Judges default plans of all meshes whose axes have size 1 or, each, one size above. */
static void judge_stack(ms_ctx *cx, const char *name)
{
    judge j = {.cx = cx, .stack_name = name};
    ASSERT_OK(ms_stack_load(cx, name, &j.stack), cx);
    ASSERT_OK(ms_rule_set_load(cx, j.stack, &j.rules), cx);
    ASSERT_OK(ms_model_load(cx, "llama-3-8b", &j.model), cx);
    for (int mesh = 0; mesh < 1 << MS_NUM_PLAN_AXES; mesh++) {
        long size[MS_NUM_PLAN_AXES];
        for (int axis = 0; axis < MS_NUM_PLAN_AXES; axis++)
            size[axis] = (mesh >> axis & 1) == 0 ? 1 : axis == MS_PP ? 4 : 2;
        judge_axes(&j, size);
    }
    /* pp, dp_replicate, dp_shard and tp alone are possible with every framework but
     * accelerate, which has no pipelines */
    bool has_pipelines = strncmp(name, "accelerate", 10) != 0;
    assert_true(j.num_judged >= 8 && (j.num_pipelines >= 3) == has_pipelines);
}

static void default_plans_break_no_rule_of_their_stack(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const char *const *names;
    int num_names;
    ASSERT_OK(ms_config_names(cx, "stacks", &names, &num_names), cx);
    for (int i = 0; i < num_names; i++) {
        const ms_stack *stack;
        ms_rule_set rules;
        ASSERT_OK(ms_stack_load(cx, names[i], &stack), cx);
        ASSERT_OK(ms_rule_set_load(cx, stack, &rules), cx);
        judge_stack(cx, names[i]);
        for (int k = 0; k < rules.num_versions; k++)
            judge_stack(cx,
                        ms_arena_printf(cx->arena, "%s@%s", names[i], rules.versions[k]));
    }
}

static void a_stack_without_1f1b_has_another_default(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const long piped[MS_NUM_PLAN_AXES] = {4, 1, 2, 1, 1};
    const long flat[MS_NUM_PLAN_AXES] = {1, 1, 8, 1, 1};
    ASSERT_INT(default_plan(cx, "maxtext", piped).schedule, MS_GPIPE);
    ASSERT_INT(default_plan(cx, "maxtext", flat).schedule, MS_1F1B);
    ASSERT_INT(default_plan(cx, "nanotron", piped).schedule, MS_GPIPE);
    ASSERT_INT(default_plan(cx, "torchtitan", piped).schedule, MS_1F1B);
    ASSERT_INT(default_plan(cx, "ideal", piped).schedule, MS_1F1B);
}

static void a_default_refused_by_a_rule_gives_way(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const long tensor[MS_NUM_PLAN_AXES] = {1, 1, 4, 1, 2};
    const long replicas[MS_NUM_PLAN_AXES] = {4, 2, 2, 1, 1};
    const long context[MS_NUM_PLAN_AXES] = {1, 1, 2, 2, 1};
    ASSERT_INT(default_plan(cx, "deepspeed@0.19.6", tensor).zero, 3);
    ASSERT_INT(default_plan(cx, "deepspeed@0.16.4", tensor).zero, 2);
    ASSERT_INT(default_plan(cx, "deepspeed", replicas).zero, 0);
    ASSERT_INT(default_plan(cx, "torchtitan@0.2.2", context).cp_method, MS_CP_RING);
    ASSERT_INT(default_plan(cx, "torchtitan@main", context).cp_method, MS_CP_ALL_GATHER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(default_plans_break_no_rule_of_their_stack),
        cmocka_unit_test(a_stack_without_1f1b_has_another_default),
        cmocka_unit_test(a_default_refused_by_a_rule_gives_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
