/* Compilation and CUDA graphs that a plan chooses: the numbers of its stack, and what is
 * refused. */
#include "costmodel/plan/stack_choices.h"

#include "tests/test.h"

static const ms_stack *loaded(ms_ctx *cx, const char *name)
{
    const ms_stack *stack = NULL;
    ASSERT_OK(ms_stack_load(cx, name, &stack), cx);
    return stack;
}

static void assert_launched_as(const ms_stack *a, const ms_stack *b)
{
    ASSERT_NEAR(a->unfused_traffic.value, b->unfused_traffic.value, 0);
    ASSERT_NEAR(a->norm_bytes.value, b->norm_bytes.value, 0);
    ASSERT_NEAR(a->norm_grad_bytes.value, b->norm_grad_bytes.value, 0);
    ASSERT_NEAR(a->launch_frac.value, b->launch_frac.value, 0);
    ASSERT_NEAR(a->logit_bytes.value, b->logit_bytes.value, 0);
    ASSERT_NEAR(a->sharded_logit_bytes.value, b->sharded_logit_bytes.value, 0);
    ASSERT_NEAR(a->fragmentation_frac.value, b->fragmentation_frac.value, 0);
    ASSERT_NEAR(a->dtensor_s.value, b->dtensor_s.value, 0);
    ASSERT_INT(a->keeps_gate, b->keeps_gate);
    ASSERT_INT(a->keeps_eager_norms, b->keeps_eager_norms);
    ASSERT_INT(a->launches_operations, b->launches_operations);
    ASSERT_INT(a->compile, b->compile);
}

static void a_choice_takes_the_numbers_of_the_counterpart(void **state)
{
    (void)state;
    static const struct {
        const char *stack;
        ms_compile compile;
        const char *as;
    } cases[] = {{"torchtitan", MS_COMPILE_NONE, "torchtitan-eager"},
                 {"torchtitan-eager", MS_COMPILE_REGIONAL, "torchtitan"},
                 {"torchtune", MS_COMPILE_NONE, "torchtune-eager"},
                 {"torchtune-eager", MS_COMPILE_REGIONAL, "torchtune"},
                 {"generic", MS_COMPILE_NONE, "torchtitan-eager"}};
    ms_ctx *cx = test_cx();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const ms_stack *own = loaded(cx, cases[i].stack), *as = loaded(cx, cases[i].as);
        ms_plan plan = ms_plan_default(8);
        plan.compile = cases[i].compile;
        ms_stack once = ms_stack_of_plan(own, &plan);
        ms_stack twice = ms_stack_of_plan(&once, &plan);
        assert_launched_as(&once, as);
        assert_launched_as(&twice, as);
        /* states stay the stack's own */
        ASSERT_NEAR(once.param_bytes.value, own->param_bytes.value, 0);
        ASSERT_NEAR(once.grad_comm_bytes.value, own->grad_comm_bytes.value, 0);
    }
}

static void a_stack_keeps_its_own_way(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_stack *own = loaded(cx, "torchtitan");
    ms_plan plan = ms_plan_default(8);
    ms_stack unstated = ms_stack_of_plan(own, &plan);
    assert_launched_as(&unstated, own);
    plan.compile = MS_COMPILE_REGIONAL;
    ms_stack stated = ms_stack_of_plan(own, &plan);
    assert_launched_as(&stated, own);
    plan.compile = MS_COMPILE_FULL;
    ms_stack whole = ms_stack_of_plan(own, &plan);
    ASSERT_INT(whole.compile, MS_COMPILE_FULL);
    ASSERT_NEAR(whole.unfused_traffic.value, own->unfused_traffic.value, 0);
}

static ms_status check(ms_ctx *cx, const char *stack, const ms_plan *plan, long experts)
{
    ms_model model = {.moe.num_experts = experts};
    return ms_plan_check_host(cx, plan, loaded(cx, stack), &model);
}

static void what_a_stack_lacks_is_refused(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = ms_plan_default(8);
    plan.stack = "megatron";
    plan.compile = MS_COMPILE_NONE; /* the own way of the stack */
    ASSERT_OK(check(cx, "megatron", &plan, 0), cx);
    plan.compile = MS_COMPILE_FULL;
    ASSERT_INT(check(cx, "megatron", &plan, 0), MS_EINPUT);
    assert_non_null(strstr(cx->first->message, "megatron"));
    plan.compile = MS_COMPILE_NONE;
    ASSERT_INT(check(test_cx(), "maxtext", &plan, 0), MS_EINPUT);
    plan.compile = MS_COMPILE_OF_STACK;
    plan.cuda_graphs = MS_GRAPHS_LAYERS;
    ASSERT_OK(check(cx, "megatron", &plan, 64), cx);
    ASSERT_INT(check(test_cx(), "nanotron", &plan, 0), MS_EINPUT);
    plan.cuda_graphs = MS_GRAPHS_FULL;
    ASSERT_OK(check(cx, "megatron", &plan, 0), cx);
    ASSERT_INT(check(test_cx(), "megatron", &plan, 64), MS_EINPUT);
    plan.pad_experts = true; /* experts without a capacity have nothing to pad to */
    ASSERT_INT(check(test_cx(), "megatron", &plan, 64), MS_EINPUT);
    plan.expert_capacity = 1.5;
    ASSERT_OK(check(cx, "megatron", &plan, 64), cx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_choice_takes_the_numbers_of_the_counterpart),
        cmocka_unit_test(a_stack_keeps_its_own_way),
        cmocka_unit_test(what_a_stack_lacks_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
