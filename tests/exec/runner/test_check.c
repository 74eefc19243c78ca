/* Tests of the check of a training run against a reference run: which differences pass or
 * fail, and that the failing tensor is named. */
#include "exec/runner/run_check.h"

#include "tests/support/run_plan.h"
#include "tests/test.h"

static ms_safe_tensor tensor(const char *name, double *values, long count)
{
    return (ms_safe_tensor){.name = name,
                            .type = MS_SAFE_F32,
                            .num_dims = 1,
                            .shape = {count},
                            .count = count,
                            .values = values};
}

typedef struct pair {
    ms_safe_tensor tensors[2][2];
    double values[2][2][4];
    double losses[2][3];
    ms_outcome outcome[2];
} pair;

/* Makes two equal run outcomes of three steps' losses and two gradient tensors each. */
static pair make_pair(void)
{
    pair p = {0};
    for (int side = 0; side < 2; side++) {
        for (int t = 0; t < 2; t++)
            for (int i = 0; i < 4; i++)
                p.values[side][t][i] = (t + 1) * (i - 1.5);
        for (int i = 0; i < 3; i++)
            p.losses[side][i] = 4.0 - i;
    }
    return p;
}

static void compare(const ms_outcome *run, const ms_outcome *reference, ms_real_type type,
                    ms_run_check *out)
{
    const ms_run_check_tolerance tolerance = ms_run_check_tolerance_of(type, false, 1);
    ms_run_check_outcomes(test_cx()->arena, run, reference, &tolerance, out);
}

static ms_run_check check(pair *p, ms_real_type type)
{
    static const char *const names[] = {"a.weight", "b.weight"};
    for (int side = 0; side < 2; side++) {
        for (int t = 0; t < 2; t++)
            p->tensors[side][t] = tensor(names[t], p->values[side][t], 4);
        ms_safe_file file = {2, p->tensors[side]};
        p->outcome[side] = (ms_outcome){.steps_done = 3,
                                        .losses = p->losses[side],
                                        .gradients = file,
                                        .updated = file};
    }
    ms_run_check out;
    compare(&p->outcome[0], &p->outcome[1], type, &out);
    return out;
}

static void equal_runs_pass(void **state)
{
    (void)state;
    pair p = make_pair();
    ms_run_check c = check(&p, MS_REAL_FP64);
    assert_true(c.passes);
    assert_true(c.gradients.relative == 0.0 && c.first_loss == 0.0 &&
                c.later_loss == 0.0);
    ASSERT_INT(c.gradients.num_tensors, 2);
}

static void worst_gradient_is_named_by_its_largest_value(void **state)
{
    (void)state;
    pair p = make_pair();
    p.values[0][0][1] += 3e-5; /* relative to the tensor's largest value 1.5: 2e-5 */
    p.values[0][1][1] += 4e-5; /* relative to the tensor's largest value 3: 1.3e-5 */
    ms_run_check c = check(&p, MS_REAL_FP32);
    assert_string_equal(c.gradients.name, "a.weight");
    ASSERT_NEAR(c.gradients.relative, 2e-5, 1e-6);
    assert_true(!c.passes && strstr(c.failure, "a.weight") != NULL);
}

static void losses_have_their_tolerances(void **state)
{
    (void)state;
    pair p = make_pair();
    p.losses[0][0] *= 1.0 + 2e-6;
    assert_true(!check(&p, MS_REAL_FP32).passes);
    p = make_pair();
    /* a later step's loss may differ by more than the first's */
    p.losses[0][2] *= 1.0 + 2e-6;
    ms_run_check c = check(&p, MS_REAL_FP32);
    assert_true(c.passes);
    ASSERT_INT(c.worst_step, 3);
    assert_true(!check(&p, MS_REAL_FP64).passes);
}

/* A loss of a module of multi-token prediction counts as the model's does. */
static void losses_of_modules_are_compared(void **state)
{
    (void)state;
    pair p = make_pair();
    double modules[2][6] = {{3, 3, 3, 3, 3, 3}, {3, 3, 3, 3, 3, 3}};
    (void)check(&p, MS_REAL_FP64);
    for (int side = 0; side < 2; side++) {
        p.outcome[side].num_modules = 2;
        p.outcome[side].module_losses = modules[side];
    }
    ms_run_check c;
    compare(&p.outcome[0], &p.outcome[1], MS_REAL_FP64, &c);
    assert_true(c.passes);
    modules[0][3] += 3e-10;
    compare(&p.outcome[0], &p.outcome[1], MS_REAL_FP64, &c);
    assert_true(!c.passes && c.first_loss == 0.0);
    ASSERT_INT(c.worst_step, 2);
    ASSERT_NEAR(c.later_loss, 1e-10, 1e-5); /* relative; 3 + 3e-10 is rounded */
}

static void updated_weights_in_fp32_are_reported_only(void **state)
{
    (void)state;
    pair p = make_pair();
    (void)check(&p, MS_REAL_FP32);
    double moved[4] = {-1.5, -0.5, 0.5, 1.6};
    ms_safe_tensor tensors[2] = {tensor("a.weight", moved, 4), p.tensors[0][1]};
    p.outcome[0].updated = (ms_safe_file){2, tensors};
    ms_run_check c;
    compare(&p.outcome[0], &p.outcome[1], MS_REAL_FP32, &c);
    assert_true(c.passes && c.weights.relative > 0.05);
    compare(&p.outcome[0], &p.outcome[1], MS_REAL_FP64, &c);
    assert_true(!c.passes && strstr(c.failure, "updated weight a.weight") != NULL);
}

/* FP8 changes single gradient elements by any amount and losses by little: gradients are
 * only reported. */
static void gradients_in_fp8_are_reported_only(void **state)
{
    (void)state;
    pair p = make_pair();
    p.values[0][0][1] *= 2;
    p.losses[0][1] *= 1.04;
    ms_run_check c = check(&p, MS_REAL_FP8);
    assert_true(c.passes && c.gradients.relative > 0.1);
    p.losses[0][0] *= 1.06;
    assert_true(!check(&p, MS_REAL_FP8).passes);
    p.losses[0][0] /= 1.06;
    p.values[0][0][1] = NAN;
    assert_true(!check(&p, MS_REAL_FP8).passes);
}

static void what_is_no_number_or_absent_fails(void **state)
{
    (void)state;
    pair p = make_pair();
    p.values[0][1][2] = NAN;
    ms_run_check c = check(&p, MS_REAL_FP32);
    assert_true(!c.passes && isnan(c.gradients.relative));
    assert_string_equal(c.gradients.name, "b.weight");
    p = make_pair();
    (void)check(&p, MS_REAL_FP32);
    p.outcome[0].gradients.num_tensors = 1;
    compare(&p.outcome[0], &p.outcome[1], MS_REAL_FP32, &c);
    assert_true(!c.passes && isinf(c.gradients.relative));
    p = make_pair();
    p.losses[0][1] = NAN;
    assert_true(!check(&p, MS_REAL_FP32).passes);
    p.outcome[0].steps_done = 0;
    compare(&p.outcome[0], &p.outcome[1], MS_REAL_FP32, &c);
    assert_true(!c.passes);
}

/* ---- rounding in bf16 ---- */

static void gradients_in_bf16_may_differ_by_their_roundings(void **state)
{
    (void)state;
    const ms_real_type type = MS_REAL_BF16;
    ms_run_check_tolerance two = ms_run_check_tolerance_of(type, false, 2),
                           six = ms_run_check_tolerance_of(type, false, 6),
                           far = ms_run_check_tolerance_of(type, false, 24),
                           wide = ms_run_check_tolerance_of(type, true, 24);
    assert_true(two.gradient == 2e-2);
    ASSERT_NEAR(six.gradient, 0.02697, 1e-3);
    ASSERT_NEAR(far.gradient, 2.0 * six.gradient, 1e-12);
    ASSERT_NEAR(far.gradient, sqrt(2.0) * wide.gradient, 1e-12);
    assert_true(far.first_loss == 2e-2 && far.later_loss == 2e-2);
}

static ms_outcome first_step(ms_ctx *cx, const ms_model *model, ms_real_type type,
                             long tp)
{
    ms_outcome out;
    ms_plan plan = ms_run_base_plan();
    plan.compute = type == MS_REAL_BF16 ? MS_BF16 : MS_FP32;
    plan.size[MS_TP] = plan.gpus = tp;
    plan.sequence_length = 64;
    plan.global_batch = plan.microbatch = 4;
    ms_runner_options options = ms_run_options(model, &plan, type);
    options.num_steps = 1;
    options.initial = (ms_initial){.deviation = 0.02};
    options.weights_in_bf16 = true;
    ASSERT_OK(ms_run_plan(cx, model, &plan, "meshsim", &ms_backend_loop, &options, &out),
              cx);
    return out;
}

/* The effect of tp in bf16 is rounding: one rank is as far from fp32. */
static void ranks_in_bf16_are_as_far_from_fp32_as_one(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_model *model;
    ASSERT_OK(ms_model_load(cx, "configs/models/llama-15m.json", &model), cx);
    ms_outcome exact = first_step(cx, model, MS_REAL_FP32, 1),
               one = first_step(cx, model, MS_REAL_BF16, 1),
               two = first_step(cx, model, MS_REAL_BF16, 2);
    double error = ms_run_relative_norm(&one.gradients, &exact.gradients);
    ASSERT_NEAR(ms_run_relative_norm(&two.gradients, &exact.gradients), error, 0.15);
    ms_run_check_tolerance tolerance =
        ms_run_check_tolerance_of(MS_REAL_BF16, false, model->num_layers);
    ms_run_check c;
    ms_run_check_outcomes(cx->arena, &two, &one, &tolerance, &c);
    if (!c.passes)
        fail_msg("%s", c.failure);
    assert_true(c.gradients.relative > error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_runs_pass),
        cmocka_unit_test(worst_gradient_is_named_by_its_largest_value),
        cmocka_unit_test(losses_have_their_tolerances),
        cmocka_unit_test(losses_of_modules_are_compared),
        cmocka_unit_test(updated_weights_in_fp32_are_reported_only),
        cmocka_unit_test(gradients_in_fp8_are_reported_only),
        cmocka_unit_test(what_is_no_number_or_absent_fails),
        cmocka_unit_test(gradients_in_bf16_may_differ_by_their_roundings),
        cmocka_unit_test(ranks_in_bf16_are_as_far_from_fp32_as_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
