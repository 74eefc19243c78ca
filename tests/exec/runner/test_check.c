/* Tests of the check of a training run against a reference run: which differences pass or
 * fail, and that the failing tensor is named. */
#include "exec/runner/run_check.h"

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
    const ms_run_check_tolerance tolerance = ms_run_check_tolerance_of(type, false);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_runs_pass),
        cmocka_unit_test(worst_gradient_is_named_by_its_largest_value),
        cmocka_unit_test(losses_have_their_tolerances),
        cmocka_unit_test(updated_weights_in_fp32_are_reported_only),
        cmocka_unit_test(gradients_in_fp8_are_reported_only),
        cmocka_unit_test(what_is_no_number_or_absent_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
