/* Tests of gradients in bf16 on fake GPUs (tests/support/cuda_fake.h), against fp32 on
 * one CPU rank that begins with the same rounded weights.
 *
 * A gradient passes n roundings of activations, each changing it by up to 2^-9 of its
 * size with either sign: together by about 2^-9 root(n / 3), 0.01 for a hundred. Rounding
 * all weights once changes it about as much, since every product has one weight for one
 * activation. This change is measured here by two fp32 runs, with exact and with rounded
 * weights; the bf16 run may differ by at most twice as much. */
#include "tests/support/cuda_backend.h"
#include "tests/support/cuda_fake.h"
#include "tests/support/run_plan.h"

#include "base/number.h"
#include "tests/test.h"

#include <string.h>

#define LIMIT 2e-2

#define NUM_DENSE TEST_CASES(MS_NUM_SMALL_DENSE, 2)
#define NUM_MOE   TEST_CASES(MS_NUM_SMALL_MOE, 1)

typedef struct mesh {
    long size[MS_NUM_PLAN_AXES]; /* ranks along pp, dp_replicate, dp_shard, cp, tp */
    long zero;
    ms_cp_method cp_method;
} mesh;

/* Makes run options; experts get tokens in turn, as rounding would change a router's
 * choice between nearly equal logits. */
static ms_runner_options options_of(const ms_model *model, const ms_plan *plan)
{
    ms_runner_options options = ms_run_options(model, plan, MS_REAL_FP32);
    options.balanced_routing = model->moe.num_experts > 0;
    options.wants_weights = options.wants_updated = false;
    return options;
}

static ms_outcome run_serial(const ms_model *model, bool weights_in_bf16)
{
    ms_outcome out;
    ms_ctx *cx = test_cx();
    ms_plan plan = ms_run_base_plan();
    ms_runner_options options = options_of(model, &plan);
    options.weights_in_bf16 = weights_in_bf16;
    ASSERT_OK(ms_run_plan(cx, model, &plan, "generic", &ms_backend_loop, &options, &out),
              cx);
    return out;
}

static ms_outcome run_in_bf16(const ms_model *model, const mesh *on)
{
    ms_outcome out;
    ms_ctx *cx = test_cx();
    ms_plan plan = ms_run_base_plan();
    memcpy(plan.size, on->size, sizeof plan.size);
    plan.gpus = 1;
    for (int axis = 0; axis < MS_NUM_PLAN_AXES; axis++)
        plan.gpus *= on->size[axis];
    plan.microbatch = 2;
    plan.zero = on->zero;
    plan.cp_method = on->cp_method;
    plan.compute = MS_BF16;
    ms_plan_fill_defaults(&plan);
    ms_runner_options options = options_of(model, &plan);
    options.type = MS_REAL_BF16;
    ms_cuda_fake_begin(&(ms_cuda_fake_options){.seed = 3, .num_devices = (int)plan.gpus});
    ms_cuda_backend cuda = ms_test_cuda_backend(MS_CUDA_BY_NCCL);
    ASSERT_OK(ms_run_plan(cx, model, &plan, "generic", &cuda.table, &options, &out), cx);
    ms_cuda_fake_end();
    return out;
}

/* Checks the criterion of `run --check`: each gradient tensor's largest difference
 * relative to the tensor's largest value. */
static void check_each_tensor(ms_make_model *make, const mesh *on)
{
    ms_ctx *cx = test_cx();
    ms_model *model = MS_NEW(cx->arena, ms_model);
    const char *worst = "";
    *model = *ms_pubrun_model(cx->arena, make);
    model->num_layers = 2;
    ms_outcome want = run_serial(model, true), got = run_in_bf16(model, on);
    double relative = ms_run_difference(&got.gradients, &want.gradients, &worst);
    /* a difference of 0: the run was not in bf16 */
    if (!(relative > 0.0 && relative <= LIMIT))
        fail_msg("%s: gradient of %s %.2e", model->name, worst, relative);
    ASSERT_NEAR(got.losses[0], want.losses[0], LIMIT * want.losses[0]);
}

static void two_layers_differ_by_less_than_the_limit_in_every_tensor(void **state)
{
    (void)state;
    static const mesh meshes[] = {{{1, 1, 1, 1, 1}, 0, MS_CP_ALL_GATHER},
                                  {{1, 1, 1, 4, 1}, 1, MS_CP_RING},
                                  {{1, 1, 2, 1, 1}, 3, MS_CP_ALL_GATHER}};
    for (size_t i = 0; i < sizeof meshes / sizeof *meshes; i++) {
        check_each_tensor(ms_small_llama, &meshes[i]);
        check_each_tensor(ms_small_gpt, &meshes[i]);
        if (meshes[i].size[MS_CP] == 1)
            check_each_tensor(ms_small_mixtral, &meshes[i]);
    }
}

static void check_all_together(ms_make_model *make, const mesh *on)
{
    const ms_model *model = ms_pubrun_model(test_cx()->arena, make);
    ms_outcome unrounded = run_serial(model, false), want = run_serial(model, true),
               got = run_in_bf16(model, on);
    double relative = ms_run_relative_norm(&got.gradients, &want.gradients),
           of_weights = ms_run_relative_norm(&unrounded.gradients, &want.gradients);
    if (!(relative > 0.0 && relative <= LIMIT && relative <= 2.0 * of_weights))
        fail_msg("%s: %.2e, rounding weights %.2e", model->name, relative, of_weights);
}

/* All small models: gradients in bf16 differ from fp32 as much as rounding only the
 * weights does. Single tensors differ by up to 0.09 where terms of either sign cancel. */
static void four_layers_differ_by_what_rounding_does(void **state)
{
    (void)state;
    static const mesh alone = {{1, 1, 1, 1, 1}, 0, MS_CP_ALL_GATHER},
                      ring = {{1, 1, 1, 4, 1}, 0, MS_CP_RING};
    for (int i = 0; i < NUM_DENSE; i++)
        check_all_together(ms_small_dense[i], i % 2 == 0 ? &alone : &ring);
    for (int i = 0; i < NUM_MOE; i++)
        check_all_together(ms_small_moe[i], &alone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_layers_differ_by_less_than_the_limit_in_every_tensor),
        cmocka_unit_test(four_layers_differ_by_what_rounding_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
