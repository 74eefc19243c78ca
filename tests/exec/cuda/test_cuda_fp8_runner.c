/* Tests of FP8 training runs on fake GPUs (tests/support/cuda_fake.h): how far losses and
 * gradients are from bf16's, and which runs are refused. */
#include "tests/support/cuda_backend.h"
#include "tests/support/cuda_fake.h"
#include "tests/support/run_plan.h"
#include "tests/test.h"

#include <pthread.h>
#include <string.h>

#define NUM_STEPS TEST_CASES(10, 4)
/* greatest last loss, relative to the first one */
#define LEAST_LOSS TEST_CASES(0.8, 1.0)
#define NUM_LAYERS 2

static int num_fp8;

static ms_status counted_product(ms_ctx *cx, ms_cuda_stream *stream,
                                 const ms_cuda_gemm *p)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    num_fp8 += ms_scalar_is_fp8(p->type);
    pthread_mutex_unlock(&lock);
    return ms_cuda_fake_driver.product(cx, stream, p);
}

static bool has_none; /* whether the mock library has no FP8 algorithm */

static ms_status answer(ms_ctx *cx, const ms_cuda_gemm *p, bool *has)
{
    MS_TRY(ms_cuda_fake_driver.has_product(cx, p, has));
    *has = *has && !has_none;
    return MS_OK;
}

static const ms_cuda_driver *counting_driver(void)
{
    static ms_cuda_driver driver;
    driver = ms_cuda_fake_driver;
    driver.product = counted_product;
    driver.has_product = answer;
    return &driver;
}

static ms_plan small_plan(void)
{
    ms_plan plan = ms_run_base_plan();
    plan.global_batch = plan.microbatch = 4;
    return plan;
}

static ms_outcome train(ms_ctx *cx, const ms_model *model, const ms_plan *plan,
                        ms_real_type type)
{
    ms_outcome out;
    ms_plan typed = *plan;
    typed.compute = type == MS_REAL_FP8 ? MS_FP8 : MS_BF16;
    ms_runner_options options = ms_run_options(model, &typed, type);
    options.num_steps = NUM_STEPS;
    options.optimizer.learning_rate = 5e-3;
    ms_cuda_fake_begin(
        &(ms_cuda_fake_options){.seed = 3, .num_devices = (int)plan->gpus});
    ms_cuda_backend backend = ms_test_cuda_backend(MS_CUDA_BY_NCCL);
    backend.driver = counting_driver;
    num_fp8 = 0;
    ASSERT_OK(ms_run_plan(cx, model, &typed, "meshsim", &backend.table, &options, &out),
              cx);
    ms_cuda_fake_end();
    ASSERT_INT(out.steps_done, NUM_STEPS);
    return out;
}

/* Trains in FP8 and in bf16 and compares. Rounding to e4m3 is off by at most 2^-4, 2.6 %
 * in the mean square, to e5m2 by twice as much, randomly for each term of a sum. So a
 * forward product is off by 3.7 %, a backward one by 5.8 %; with two layers of 4
 * successive products each, both ways, gradients are off by the root of 8 (3.7^2 +
 * 5.8^2), 20 %. Logits are off by a few hundredths, and losses by no more. */
static void compare(const ms_model *model, const ms_plan *plan, int num_products)
{
    const double most_loss = 5e-2, most_gradients = 0.2;
    ms_ctx *cx = test_cx();
    ms_outcome want = train(cx, model, plan, MS_REAL_BF16);
    ASSERT_INT(num_fp8, 0);
    ms_outcome got = train(cx, model, plan, MS_REAL_FP8);
    ASSERT_INT(num_fp8, NUM_STEPS * num_products);
    for (int i = 0; i < NUM_STEPS; i++)
        ASSERT_NEAR(got.losses[i] / want.losses[i], 1, most_loss);
    assert_true(got.losses[NUM_STEPS - 1] < LEAST_LOSS * got.losses[0]);
    double apart = ms_run_relative_norm(&got.gradients, &want.gradients);
    assert_true(apart > 0 && apart < most_gradients);
}

/* Llama and GPT layers make forward, input-gradient and weight-gradient products in FP8:
 * of query, key, value and output projections and of the MLP's matrices. */
static void losses_are_near_those_of_bf16(void **state)
{
    (void)state;
    ms_plan plan = small_plan();
    compare(ms_run_wide_model(test_cx()->arena, ms_small_llama, NUM_LAYERS), &plan,
            NUM_LAYERS * 3 * (4 + 3));
    compare(ms_run_wide_model(test_cx()->arena, ms_small_gpt, NUM_LAYERS), &plan,
            NUM_LAYERS * 3 * (4 + 2));
}

/* A sharded run, in which each shard of a matrix has its own FP8 scale, stays near
 * bf16. */
static void ranks_share_the_work(void **state)
{
    (void)state;
    ms_plan plan = small_plan();
    plan.gpus = 4;
    plan.size[MS_TP] = 2;
    plan.size[MS_DP_SHARD] = 2;
    plan.microbatch = 2;
    plan.zero = 3;
    plan.sequence_parallel = true;
    ms_plan_fill_defaults(&plan);
    compare(ms_run_wide_model(test_cx()->arena, ms_small_llama, NUM_LAYERS), &plan,
            4 * NUM_LAYERS * 3 * (4 + 3));
}

/* A model with experts: only losses are compared, as another choice of the router changes
 * gradients more than rounding does. */
static void experts_learn(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = small_plan();
    const ms_model *model = ms_run_wide_model(cx->arena, ms_small_mixtral, NUM_LAYERS);
    ms_outcome want = train(cx, model, &plan, MS_REAL_BF16),
               got = train(cx, model, &plan, MS_REAL_FP8);
    assert_true(num_fp8 > NUM_STEPS * NUM_LAYERS * 3 * (4 + 3));
    ASSERT_NEAR(got.losses[0] / want.losses[0], 1, 5e-2);
    ASSERT_NEAR(got.losses[NUM_STEPS - 1] / want.losses[NUM_STEPS - 1], 1, 0.1);
    assert_true(got.losses[NUM_STEPS - 1] < LEAST_LOSS * got.losses[0]);
}

/* Where the library has no FP8 algorithms an FP8 run gives the bits of a bf16 run. */
static void runs_without_algorithms_are_in_bf16(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = small_plan();
    const ms_model *model = ms_run_wide_model(cx->arena, ms_small_llama, NUM_LAYERS);
    has_none = true;
    ms_outcome got = train(cx, model, &plan, MS_REAL_FP8);
    has_none = false;
    ASSERT_INT(num_fp8, 0);
    ms_outcome want = train(cx, model, &plan, MS_REAL_BF16);
    for (int i = 0; i < NUM_STEPS; i++)
        ASSERT_NEAR(got.losses[i], want.losses[i], 0);
    ASSERT_NEAR(ms_run_relative_norm(&got.gradients, &want.gradients), 0, 0);
}

/* The recipe that GPUs have may be stated. */
static void the_stated_recipe_is_the_usual_one(void **state)
{
    (void)state;
    ms_plan plan = small_plan(), stated = plan;
    const ms_model *model =
        ms_run_wide_model(test_cx()->arena, ms_small_llama, NUM_LAYERS);
    stated.recipe = MS_RECIPE_TENSORWISE;
    ms_outcome want = train(test_cx(), model, &plan, MS_REAL_FP8),
               got = train(test_cx(), model, &stated, MS_REAL_FP8);
    ASSERT_NEAR(got.losses[NUM_STEPS - 1], want.losses[NUM_STEPS - 1], 0);
}

/* ---- refused runs ---- */

static void other_recipes_are_refused(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_model *model = ms_run_wide_model(cx->arena, ms_small_llama, 1);
    ms_plan plan = small_plan();
    plan.compute = MS_FP8;
    plan.recipe = MS_RECIPE_ROWWISE;
    ms_runner_options options = ms_run_options(model, &plan, MS_REAL_FP8);
    ms_outcome out;
    ms_cuda_fake_begin(&(ms_cuda_fake_options){.num_devices = 1});
    ms_cuda_backend backend = ms_test_cuda_backend(MS_CUDA_BY_NCCL);
    ASSERT_INT(ms_run_plan(cx, model, &plan, "meshsim", &backend.table, &options, &out),
               MS_EINPUT);
    ms_cuda_fake_end();
    assert_non_null(strstr(test_messages(cx), "--precision-recipe rowwise"));
}

static ms_status open_on(ms_ctx *cx, int capability, ms_real_type type)
{
    ms_plan plan = ms_run_base_plan();
    ms_world world = ms_world_make(cx->arena, &plan);
    ms_cuda_fake_begin(
        &(ms_cuda_fake_options){.num_devices = 2, .capability = capability});
    ms_cuda_backend backend = ms_test_cuda_backend(MS_CUDA_BY_NCCL);
    ms_backend_job job = {.backend = &backend.table, .world = &world, .type = type};
    ms_status status = backend.table.open(cx, &job);
    if (status == MS_OK)
        backend.table.close(&job);
    ms_cuda_fake_end();
    return status;
}

static void gpus_without_fp8_are_refused(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ASSERT_INT(open_on(cx, 80, MS_REAL_FP8), MS_EINPUT);
    assert_non_null(strstr(test_messages(cx),
                           "compute capability 8.9 or later, and GPU 0, "
                           "\"fake device\", has 8.0"));
    ASSERT_INT(open_on(test_cx(), 86, MS_REAL_FP8), MS_EINPUT);
    ASSERT_INT(open_on(test_cx(), 80, MS_REAL_BF16), MS_OK);
    ASSERT_INT(open_on(test_cx(), 89, MS_REAL_FP8), MS_OK);
    ASSERT_INT(open_on(test_cx(), 120, MS_REAL_FP8), MS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_are_near_those_of_bf16),
        cmocka_unit_test(ranks_share_the_work),
        cmocka_unit_test(experts_learn),
        cmocka_unit_test(runs_without_algorithms_are_in_bf16),
        cmocka_unit_test(the_stated_recipe_is_the_usual_one),
        cmocka_unit_test(other_recipes_are_refused),
        cmocka_unit_test(gpus_without_fp8_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
