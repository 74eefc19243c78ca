/* Runs in fp8 on GPUs, which here are memory: how far losses are from those in bf16, and what is refused. */
#include "tests/support/cuda_backend.h"
#include "tests/support/cuda_fake.h"
#include "tests/support/run_plan.h"
#include "tests/test.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#define NUM_STEPS 10

static int num_fp8;

static ms_status counted_product(ms_ctx *cx, ms_cuda_stream *stream,
                                 const ms_cuda_product *p)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    num_fp8 += ms_scalar_is_fp8(p->type);
    pthread_mutex_unlock(&lock);
    return ms_cuda_fake_driver.product(cx, stream, p);
}

static const ms_cuda_driver *counting_driver(void)
{
    static ms_cuda_driver driver;
    driver = ms_cuda_fake_driver;
    driver.product = counted_product;
    return &driver;
}

/* Wide enough for FP8: all widths are multiples of 16. */
static const ms_model *wide_model(ms_ctx *cx, ms_make_model *make)
{
    ms_model *model = MS_NEW(cx->arena, ms_model);
    *model = make();
    model->num_layers = 2;
    model->kind_of_layer = MS_NEW_ARRAY(cx->arena, model->num_layers, unsigned char);
    model->hidden = 64;
    model->head_dim = model->value_head_dim = 8;
    model->ffn_hidden = 96;
    model->moe.ffn_hidden = model->moe.num_experts > 0 ? 32 : 0;
    return model;
}

static ms_outcome train(ms_ctx *cx, const ms_model *model, const ms_plan *plan,
                        ms_real_type type)
{
    ms_outcome out;
    ms_plan typed = *plan;
    typed.compute = type == MS_REAL_FP8 ? MS_FP8 : MS_BF16;
    ms_runner_options options = ms_run_options(model, &typed, type);
    options.num_steps = NUM_STEPS;
    options.optimizer.learning_rate = 1e-2;
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

static void compare(const ms_model *model, const ms_plan *plan)
{
    ms_ctx *cx = test_cx();
    ms_outcome want = train(cx, model, plan, MS_REAL_BF16);
    ASSERT_INT(num_fp8, 0);
    ms_outcome got = train(cx, model, plan, MS_REAL_FP8);
    assert_true(num_fp8 > 0);
    const char *worst = "";
    double most = 0,
           gradients = ms_run_difference(&got.gradients, &want.gradients, &worst);
    for (int i = 0; i < NUM_STEPS; i++)
        most = fmax(most, fabs(got.losses[i] / want.losses[i] - 1));
    printf(
        "%s: %d products, loss %.4f to %.4f, bf16 %.4f to %.4f, apart %.2e first %.2e, gradient of %s %.2e\n",
        model->name, num_fp8, got.losses[0], got.losses[NUM_STEPS - 1], want.losses[0],
        want.losses[NUM_STEPS - 1], most, fabs(got.losses[0] / want.losses[0] - 1), worst,
        gradients);
}

static void losses_are_near_those_of_bf16(void **state)
{
    (void)state;
    ms_plan plan = ms_run_base_plan();
    compare(wide_model(test_cx(), ms_small_llama), &plan);
    compare(wide_model(test_cx(), ms_small_gpt), &plan);
    compare(wide_model(test_cx(), ms_small_mixtral), &plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_are_near_those_of_bf16),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
