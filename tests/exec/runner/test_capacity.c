/* Experts with a capacity: which copies they drop, what that does to losses and gradients,
 * and which backends refuse it. */
#include "tests/support/cuda_backend.h"
#include "tests/support/cuda_fake.h"
#include "tests/support/run_plan.h"
#include "tests/test.h"

#include <math.h>
#include <string.h>

static ms_plan limited(double capacity, bool pads)
{
    ms_plan plan = ms_run_base_plan();
    plan.compute = MS_FP64;
    plan.expert_capacity = capacity;
    plan.pad_experts = pads;
    return plan;
}

static ms_outcome train(const ms_model *model, const ms_plan *plan,
                        const ms_safe_file *load)
{
    ms_ctx *cx = test_cx();
    ms_outcome out;
    ms_runner_options options = ms_run_options(model, plan, MS_REAL_FP64);
    options.clip_norm = 0.0;
    options.load = load;
    ASSERT_OK(ms_run_plan(cx, model, plan, "meshsim", &ms_backend_loop, &options, &out),
              cx);
    return out;
}

/* A capacity of all copies drops none; one of fewer than the fullest expert has changes
 * the loss; padding changes nothing. */
static void only_what_is_beyond_is_dropped(void **state)
{
    (void)state;
    const ms_model *model = ms_pubrun_model(test_cx()->arena, ms_small_qwen_moe);
    ms_plan free = limited(0.0, false), whole = limited(8.0, false),
            some = limited(0.75, false), padded = limited(0.75, true);
    ms_outcome want = train(model, &free, NULL), all = train(model, &whole, NULL),
               less = train(model, &some, NULL), filled = train(model, &padded, NULL);
    ASSERT_NEAR(all.losses[0], want.losses[0], 0.0);
    assert_true(ms_run_difference(&all.gradients, &want.gradients, NULL) == 0.0);
    printf("losses %.9f, with a capacity %.9f\n", want.losses[0], less.losses[0]);
    assert_true(fabs(less.losses[0] / want.losses[0] - 1.0) > 1e-6);
    ASSERT_NEAR(filled.losses[0], less.losses[0], 1e-13);
    assert_true(ms_run_difference(&filled.gradients, &less.gradients, NULL) < 1e-13);
}

/* ---- gradients ---- */

static double loss_beside(const ms_model *model, const ms_plan *plan,
                          const ms_safe_file *weights, int tensor, long element,
                          double step)
{
    ms_ctx *cx = test_cx();
    ms_safe_tensor *tensors =
        MS_NEW_ARRAY(cx->arena, weights->num_tensors, ms_safe_tensor);
    memcpy(tensors, weights->tensors, (size_t)weights->num_tensors * sizeof *tensors);
    double *values = MS_NEW_ARRAY(cx->arena, tensors[tensor].count, double);
    memcpy(values, tensors[tensor].values,
           (size_t)tensors[tensor].count * sizeof *values);
    values[element] += step;
    tensors[tensor].values = values;
    const ms_safe_file moved = {weights->num_tensors, tensors};
    return train(model, plan, &moved).losses[0];
}

/* Differences of losses on both sides of a weight: of each tensor of the second layer, at
 * the element with the largest gradient. A step is small enough to move no choice. */
static void gradients_are_differences_of_losses(void **state)
{
    (void)state;
    const double step = 1e-5;
    const ms_model *model = ms_pubrun_model(test_cx()->arena, ms_small_deepseek);
    ms_plan plan = limited(0.75, true);
    ms_outcome out = train(model, &plan, NULL);
    int num = 0;
    for (int t = 0; t < out.weights.num_tensors; t++) {
        const char *name = out.weights.tensors[t].name;
        const ms_safe_tensor *gradient = ms_safe_find(&out.gradients, name);
        if (strstr(name, "layers.1.mlp") == NULL || gradient == NULL)
            continue;
        long at = 0;
        for (long i = 0; i < gradient->count; i++)
            if (fabs(gradient->values[i]) > fabs(gradient->values[at]))
                at = i;
        double slope = (loss_beside(model, &plan, &out.weights, t, at, step) -
                        loss_beside(model, &plan, &out.weights, t, at, -step)) /
                       (2.0 * step);
        if (!(fabs(slope - gradient->values[at]) <= 1e-6 * fabs(slope) + 1e-9))
            fail_msg("%s: gradient %.9g, losses differ by %.9g", name,
                     gradient->values[at], slope);
        num += gradient->values[at] != 0.0;
    }
    assert_true(num > 10);
}

/* ---- GPUs ---- */

static void gpus_refuse_it(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_model *model = ms_pubrun_model(cx->arena, ms_small_mixtral);
    ms_cuda_backend cuda = ms_test_cuda_backend(MS_CUDA_BY_HOST);
    ms_plan plan = limited(1.25, false);
    plan.compute = MS_FP32;
    ms_runner_options options = ms_run_options(model, &plan, MS_REAL_FP32);
    ms_outcome out;
    ms_cuda_fake_begin(&(ms_cuda_fake_options){.seed = 1});
    ASSERT_INT(ms_run_plan(cx, model, &plan, "meshsim", &cuda.table, &options, &out),
               MS_EINPUT);
    assert_non_null(strstr(cx->first->message, "--expert-capacity 1.25"));
    ms_cuda_fake_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_is_beyond_is_dropped),
        cmocka_unit_test(gradients_are_differences_of_losses),
        cmocka_unit_test(gpus_refuse_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
