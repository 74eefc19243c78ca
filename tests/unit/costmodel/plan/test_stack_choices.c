/* Bytes per parameter, messages and traffic of an update, by a plan's types and
 * optimizer. */
#include "costmodel/plan/stack_choices.h"

#include "tests/test.h"

static ms_stack stack_of(ms_ctx *cx, const char *name, const ms_plan *plan)
{
    const ms_stack *stack = NULL;
    ASSERT_OK(ms_stack_load(cx, name, &stack), cx);
    return ms_stack_of_plan(stack, plan);
}

static double state_bytes(const ms_stack *s)
{
    return s->param_bytes.value + s->grad_bytes.value + s->bucket_bytes.value +
           s->master_bytes.value + s->moment_bytes.value;
}

/* Sums per parameter as published. Sources: the table "FP8 pretraining" of nanotron's
 * playbook (fp32 16, mixed 16, with fp32 accumulation 20, without a master copy 10); docs
 * of Megatron-LM's distributed optimizer (18; 16 with --grad-reduce-in-bf16) and its
 * --use-precision-aware-optimizer (14); PyTorch FSDP2 with fp32 shards (16), torchtitan
 * with bf16 moments (optimizer.implementation, 12) and in bf16 throughout (training.dtype,
 * 8); Dettmers et al. 2022 (arXiv 2110.02861) for two moments of 8 bits, with scales. */
static void types_give_the_published_bytes_per_parameter(void **state)
{
    (void)state;
    const struct {
        const char *stack;
        ms_plan plan;
        double bytes;
    } cases[] = {
        {"megatron", {0}, 18.0},
        {"nanotron", {0}, 20.0},
        {"torchtitan", {0}, 16.0},
        {"megatron", {.param_dtype = MS_STORE_FP32}, 16.0},
        {"megatron", {.grad_dtype = MS_STORE_BF16}, 16.0},
        {"nanotron", {.grad_dtype = MS_STORE_BF16}, 16.0},
        {"megatron",
         {.optimizer_dtype = MS_STORE_BF16, .master_dtype = MS_MASTER_FP32},
         14.0},
        {"megatron",
         {.grad_dtype = MS_STORE_BF16,
          .optimizer_dtype = MS_STORE_BF16,
          .master_dtype = MS_MASTER_FP32},
         12.0},
        {"torchtitan", {.optimizer_dtype = MS_STORE_BF16}, 12.0},
        {"megatron", {.optimizer_dtype = MS_STORE_BF16}, 10.0},
        {"torchtitan", {.param_dtype = MS_STORE_BF16}, 8.0},
        {"megatron",
         {.grad_dtype = MS_STORE_BF16, .optimizer_dtype = MS_STORE_BF16},
         8.0},
        {"megatron",
         {.param_dtype = MS_STORE_BF16,
          .grad_dtype = MS_STORE_BF16,
          .master_dtype = MS_MASTER_NONE},
         12.0},
        {"deepspeed", {.optimizer = MS_OPTIMIZER_ADAM_8BIT}, 8.0 + 2.0 + 8.0 / 256.0},
        {"megatron", {.optimizer_dtype = MS_STORE_FP8}, 12.0},
        {"megatron", {.optimizer = MS_OPTIMIZER_SGD}, 14.0},
        {"megatron", {.optimizer = MS_OPTIMIZER_LION}, 14.0},
        {"megatron", {.optimizer = MS_OPTIMIZER_MUON}, 14.0},
        {"megatron", {.optimizer = MS_OPTIMIZER_ADAFACTOR}, 10.0},
        {"torchtitan",
         {.optimizer = MS_OPTIMIZER_LION, .optimizer_dtype = MS_STORE_BF16},
         10.0}};
    ms_ctx *cx = test_cx();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_plan plan = cases[i].plan;
        plan.compute = MS_BF16;
        ms_stack stack = stack_of(cx, cases[i].stack, &plan);
        if (state_bytes(&stack) != cases[i].bytes)
            print_error("case %zu: %s\n", i, cases[i].stack);
        ASSERT_NEAR(state_bytes(&stack), cases[i].bytes, 0);
    }
}

static void assert_same_numbers(const ms_stack *a, const ms_stack *b)
{
    ASSERT_NEAR(state_bytes(a), state_bytes(b), 0);
    ASSERT_NEAR(a->optimizer_bytes.value, b->optimizer_bytes.value, 0);
    ASSERT_NEAR(a->accumulate_bytes.value, b->accumulate_bytes.value, 0);
    ASSERT_NEAR(a->grad_comm_bytes.value, b->grad_comm_bytes.value, 0);
    ASSERT_NEAR(a->param_comm_bytes.value, b->param_comm_bytes.value, 0);
    ASSERT_NEAR(a->late_grad_bytes.value, b->late_grad_bytes.value, 0);
    ASSERT_NEAR(a->head_grad_bytes.value, b->head_grad_bytes.value, 0);
}

static void a_plan_without_choices_leaves_the_stack(void **state)
{
    (void)state;
    const char *const names[] = {"megatron", "torchtitan", "nanotron", "deepspeed",
                                 "fms-fsdp", "hai-llm",    "meshsim"};
    ms_ctx *cx = test_cx();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const ms_stack *stack = NULL;
        ASSERT_OK(ms_stack_load(cx, names[i], &stack), cx);
        ms_plan plan = ms_plan_default(8);
        ms_stack chosen = ms_stack_of_plan(stack, &plan),
                 adapted = ms_stack_adapt(stack, plan.compute);
        assert_same_numbers(&chosen, &adapted);
    }
}

/* Types that equal the stack's own change no byte either. */
static void stating_the_stacks_own_types_changes_nothing(void **state)
{
    (void)state;
    const char *const names[] = {"megatron", "nanotron", "generic", "megatron-2023"};
    ms_ctx *cx = test_cx();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ms_plan plan = ms_plan_default(8);
        ms_stack own = stack_of(cx, names[i], &plan);
        plan.param_dtype = MS_STORE_BF16;
        plan.grad_dtype = plan.optimizer_dtype = plan.comm_dtype = MS_STORE_FP32;
        ms_stack stated = stack_of(cx, names[i], &plan);
        assert_same_numbers(&stated, &own);
    }
}

static void messages_follow_sums_unless_stated(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = ms_plan_default(8);
    plan.grad_dtype = MS_STORE_BF16;
    ASSERT_NEAR(stack_of(cx, "megatron", &plan).grad_comm_bytes.value, 2, 0);
    plan.comm_dtype = MS_STORE_FP32;
    ASSERT_NEAR(stack_of(cx, "megatron", &plan).grad_comm_bytes.value, 4, 0);
    /* reductions in 16 bits beside 32-bit sums do not follow */
    plan = ms_plan_default(8);
    plan.grad_dtype = MS_STORE_FP32;
    ASSERT_NEAR(stack_of(cx, "fms-fsdp", &plan).grad_comm_bytes.value, 2, 0);
}

/* Megatron's update moves 4 + 2 (4 + 8) + 2 = 30 bytes, and 2 of its 32 are for the norm:
 * without a second moment 8 less; bf16 gradients 2 less. nanotron's sums move 10 bytes: 2
 * read, then 4 read and 4 written. */
static void traffic_follows_from_the_bytes(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = ms_plan_default(8);
    plan.optimizer = MS_OPTIMIZER_LION;
    ASSERT_NEAR(stack_of(cx, "megatron", &plan).optimizer_bytes.value, 24, 0);
    plan.optimizer = MS_OPTIMIZER_ADAFACTOR;
    ASSERT_NEAR(stack_of(cx, "megatron", &plan).optimizer_bytes.value, 24, 0);
    plan.optimizer = MS_OPTIMIZER_ADAMW;
    plan.grad_dtype = MS_STORE_BF16;
    ASSERT_NEAR(stack_of(cx, "megatron", &plan).optimizer_bytes.value, 30, 0);
    ASSERT_NEAR(stack_of(cx, "nanotron", &plan).accumulate_bytes.value, 6, 0);
    ASSERT_NEAR(stack_of(cx, "megatron", &plan).accumulate_bytes.value, 0, 0);
}

static void choices_are_made_once(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = ms_plan_default(8);
    plan.optimizer = MS_OPTIMIZER_MUON;
    plan.grad_dtype = MS_STORE_BF16;
    ms_stack once = stack_of(cx, "megatron", &plan);
    ms_stack twice = ms_stack_of_plan(&once, &plan);
    assert_same_numbers(&once, &twice);
    ASSERT_NEAR(twice.vector_moment_bytes, 4, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_give_the_published_bytes_per_parameter),
        cmocka_unit_test(a_plan_without_choices_leaves_the_stack),
        cmocka_unit_test(stating_the_stacks_own_types_changes_nothing),
        cmocka_unit_test(messages_follow_sums_unless_stated),
        cmocka_unit_test(traffic_follows_from_the_bytes),
        cmocka_unit_test(choices_are_made_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
