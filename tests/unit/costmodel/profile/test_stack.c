#include "costmodel/profile/stack.h"

#include "base/paths.h"
#include "tests/test.h"

static ms_status read_changed(ms_ctx *cx, const char *old, const char *new, ms_stack *out)
{
    FILE *file = fopen(ms_config_file(cx, "stacks", "generic"), "r");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    const char *text = test_read_back(cx->arena, file);
    const char *at = strstr(text, old);
    if (at == NULL)
        fail_msg("no \"%s\" in the stack", old);
    text = ms_arena_printf(cx->arena, "%.*s%s%s", (int)(at - text), text, new,
                           at + strlen(old));
    ms_jdoc *doc;
    ms_jval root;
    MS_TRY(ms_json_parse(cx, "s.json", text, strlen(text), &doc, &root));
    ms_status status = ms_stack_read(cx, root, out);
    ms_json_close(doc);
    return status;
}

static void expect_error(const char *old, const char *new, const char *message)
{
    ms_ctx *cx = test_cx();
    ms_stack stack;
    ASSERT_INT(read_changed(cx, old, new, &stack), MS_EINPUT);
    const char *messages = test_messages(cx);
    if (strstr(messages, message) == NULL)
        fail_msg("expected \"%s\" in:\n%s", message, messages);
}

static void every_shipped_stack_is_read(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const char *const *names;
    int num_names;
    ASSERT_OK(ms_config_names(cx, "stacks", &names, &num_names), cx);
    assert_true(num_names >= 13);
    for (int i = 0; i < num_names; i++) {
        const ms_stack *stack;
        ASSERT_OK(ms_stack_load(cx, names[i], &stack), cx);
        ASSERT_TEXT(stack->name, names[i]);
        double state_bytes = stack->param_bytes.value + stack->grad_bytes.value +
                             stack->master_bytes.value + stack->moment_bytes.value;
        assert_true(state_bytes >= 14.0 && state_bytes <= 20.0);
        assert_non_null(stack->interference_frac.source);
        assert_non_null(stack->recompute);
    }
}

static void generic_allows_everything(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_stack *stack;
    ASSERT_OK(ms_stack_load(cx, "generic", &stack), cx);
    ASSERT_INT(stack->attention, MS_ATTENTION_FA3);
    assert_true(isnan(stack->host_s_per_layer.value));
    assert_true(stack->regather && stack->counts_context);
    ASSERT_INT(stack->default_zero, -1);
    ASSERT_NEAR(stack->dp_overlap.value, 1.0, 0);
    ASSERT_NEAR(stack->tp_overlap_frac.value, 0.0, 0);
    ASSERT_NEAR(stack->fragmentation_frac.value, 0.03, 1e-15);
    ASSERT_TEXT(stack->recompute, "none");
}

static void host_floor_is_in_seconds(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_stack *stack;
    ASSERT_OK(ms_stack_load(cx, "megatron-deepspeed", &stack), cx);
    assert_in_range(1e6 * stack->host_s_per_layer.value, 1000, 10000);
    ASSERT_INT(stack->attention, MS_ATTENTION_UNFUSED);
}

/* Compares a stack's bytes with `bytes`, whose order is: of a parameter its stored value,
 * gradient, master copy, moments, reduced gradient and gathered value; then of a
 * logit. */
static void expect_bytes(const ms_stack *stack, const double bytes[7])
{
    ASSERT_NEAR(stack->param_bytes.value, bytes[0], 0);
    ASSERT_NEAR(stack->grad_bytes.value, bytes[1], 0);
    ASSERT_NEAR(stack->master_bytes.value, bytes[2], 0);
    ASSERT_NEAR(stack->moment_bytes.value, bytes[3], 0);
    ASSERT_NEAR(stack->grad_comm_bytes.value, bytes[4], 0);
    ASSERT_NEAR(stack->param_comm_bytes.value, bytes[5], 0);
    ASSERT_NEAR(stack->logit_bytes.value, bytes[6], 0);
}

static void the_runner_keeps_everything_in_the_compute_type(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_stack *stack;
    ASSERT_OK(ms_stack_load(cx, "meshsim", &stack), cx);
    ms_stack bf16 = ms_stack_adapt(stack, MS_BF16), fp32 = ms_stack_adapt(stack, MS_FP32),
             fp64 = ms_stack_adapt(stack, MS_FP64);
    expect_bytes(&bf16, (double[]){2, 4, 4, 8, 4, 2, 2});
    expect_bytes(&fp32, (double[]){4, 4, 0, 8, 4, 4, 4});
    expect_bytes(&fp64, (double[]){8, 8, 0, 16, 8, 8, 8});
    ASSERT_NEAR(fp64.optimizer_bytes.value, 64, 0);
    ASSERT_NEAR(fp64.loss_bytes.value, 4 * bf16.loss_bytes.value, 0);
    ASSERT_NEAR(fp64.head_grad_bytes.value + fp64.accumulate_bytes.value, 0, 0);
    /* adapting an adapted stack to another type changes nothing */
    ms_stack again = ms_stack_adapt(&fp64, MS_FP32);
    expect_bytes(&again, (double[]){8, 8, 0, 16, 8, 8, 8});
}

static void other_stacks_keep_their_bytes(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_stack *stack;
    ASSERT_OK(ms_stack_load(cx, "megatron", &stack), cx);
    ms_stack fp32 = ms_stack_adapt(stack, MS_FP32);
    expect_bytes(&fp32, (double[]){2, 4, 4, 8, 4, 2, 6});
}

static void parameters_are_gathered_in_8_bits_where_the_stack_casts_them(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        ms_dtype compute;
        double gathered_bytes;
    } cases[] = {{"megatron-bridge", MS_FP8, 1},
                 {"megatron-bridge", MS_BF16, 2},
                 {"megatron-bridge", MS_FP4, 2},
                 {"torchtitan", MS_FP8, 2},
                 {"megatron", MS_FP8, 2}};
    ms_ctx *cx = test_cx();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const ms_stack *stack;
        ASSERT_OK(ms_stack_load(cx, cases[i].name, &stack), cx);
        ms_stack adapted = ms_stack_adapt(stack, cases[i].compute);
        ASSERT_NEAR(adapted.param_comm_bytes.value, cases[i].gathered_bytes, 0);
        ASSERT_NEAR(adapted.param_bytes.value, stack->param_bytes.value, 0);
    }
}

static void bad_stacks_are_refused(void **state)
{
    (void)state;
    expect_error("\"fa3\"", "\"fa33\"", "fa33");
    expect_error("\"regather\": true", "\"regather\": 1", "regather");
    expect_error("\"dp_overlap\": {\"value\": 1,", "\"dp_overlap\": {\"value\": 2,", "2");
    expect_error("\"dp_overlap\": {\"value\": 1,", "\"dp_overlap\": {\"value\": -1,",
                 "-1");
    expect_error("\"host_per_layer\": {\"value\": null",
                 "\"host_per_layer\": {\"value\": 3.2", "3.2");
    expect_error("\"optimizer_bytes\": {\"value\": 32",
                 "\"optimizer_bytes\": {\"value\": 1e20", "1e+20");
    expect_error("\"default_zero\": -1", "\"default_zero\": 4", "4");
    expect_error("\"interference\"", "\"interferense\"", "interference");
    expect_error("\"recompute\": \"none\"", "\"recompute\": \"some\"", "some");
    expect_error("\"schedules\": \"all\"", "\"schedules\": \"1f1b, interleavd\"",
                 "did you mean \"interleaved\"?");
    expect_error("\"schedules\": \"all\"",
                 "\"schedules\": \"all\", \"default_schedule\": \"gpip\"",
                 "did you mean \"gpipe\"?");
    expect_error("\"schedules\": \"all\"",
                 "\"schedules\": \"1f1b\", \"default_schedule\": \"gpipe\"",
                 "schedules do not have the default \"gpipe\"");
}

static void unknown_stack_suggests_the_nearest(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_stack *stack;
    ASSERT_INT(ms_stack_load(cx, "torchtitann", &stack), MS_EINPUT);
    assert_non_null(strstr(test_messages(cx), "torchtitan\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_shipped_stack_is_read),
        cmocka_unit_test(generic_allows_everything),
        cmocka_unit_test(host_floor_is_in_seconds),
        cmocka_unit_test(the_runner_keeps_everything_in_the_compute_type),
        cmocka_unit_test(other_stacks_keep_their_bytes),
        cmocka_unit_test(parameters_are_gathered_in_8_bits_where_the_stack_casts_them),
        cmocka_unit_test(bad_stacks_are_refused),
        cmocka_unit_test(unknown_stack_suggests_the_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
