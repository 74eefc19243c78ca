/* Training on fake GPUs with few multiprocessors and hardware queues: random plans end and
 * agree with one rank, since the kernels of all communicators of a rank fit at the same
 * time; with kernels that do not fit, ranks wait for each other for ever. */
#include "tests/support/cuda_backend.h"
#include "tests/support/cuda_fake.h"
#include "tests/support/run_cases.h"

#include "tests/test.h"

#define NUM_SMS    20 /* a rank has at most 5 streams and 8 channels; 15 are for them */
#define NUM_QUEUES 15
#define NUM_SEEDS  TEST_CASES(6, 2)

static void random_plans_end(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= NUM_SEEDS; seed++) {
        ms_ctx *cx = test_cx();
        ms_run_case c = ms_run_case_draw(cx, &ms_run_fp64, 900 + seed, 0, 4);
        ms_cuda_fake_begin(&(ms_cuda_fake_options){.seed = seed,
                                                   .num_devices = (int)c.plan.gpus,
                                                   .num_sms = NUM_SMS,
                                                   .num_connections = NUM_QUEUES});
        ms_cuda_backend backend = ms_test_cuda_backend(MS_CUDA_BY_NCCL);
        if (!ms_run_agrees(cx, &c, &backend.table, &ms_run_fp64))
            fail_msg("seed %ld", (long)seed);
        ms_cuda_fake_end();
    }
}

/* ---- two stages ---- */

static ms_status split_without_bounds(ms_ctx *cx, ms_cuda_comm *comm,
                                      const ms_cuda_split *how, ms_cuda_comm **out)
{
    ms_cuda_split all = *how;
    all.max_ctas = NUM_SMS;
    return ms_cuda_fake_driver.split(cx, comm, &all, out);
}

static ms_cuda_driver unbounded;

static const ms_cuda_driver *unbounded_driver(void)
{
    return &unbounded;
}

/* Runs 1F1B on two ranks, with a short deadline where they may wait for ever. */
static ms_status run_two_stages(ms_ctx *cx, const ms_cuda_backend *backend, int num_sms,
                                int num_queues, uint64_t seed)
{
    ms_run_opened opened;
    ms_outcome out;
    const ms_model *model = ms_pubrun_model(cx->arena, ms_small_llama);
    ms_plan plan = ms_run_base_plan();
    plan.gpus = plan.size[MS_PP] = 2;
    plan.microbatch = 1;
    ms_runner_options options = ms_run_options(model, &plan, MS_REAL_FP32);
    options.num_steps = 1;
    ms_cuda_fake_begin(&(ms_cuda_fake_options){.seed = seed,
                                               .num_devices = 2,
                                               .num_sms = num_sms,
                                               .num_connections = num_queues});
    ASSERT_OK(ms_run_open(cx, model, &plan, "ideal", &opened), cx);
    ms_backend_job job = {.backend = &backend->table,
                          .world = opened.world,
                          .type = options.type,
                          .timeout_s = backend->driver == unbounded_driver ? 1 : 60};
    ms_status status = backend->table.open(cx, &job);
    if (status == MS_OK) {
        status = ms_runner_run(cx, &job, opened.planned, &options, &out);
        for (long i = 0; i < out.num_ranks; i++)
            ms_recorder_close(&out.ranks[i].recorder);
        backend->table.close(&job);
    }
    ms_run_close(&opened);
    ms_cuda_fake_end();
    return status;
}

/* Activations and gradients cross: each rank's send holds the GPU and waits for a receive
 * that the other rank cannot place. */
static void kernels_without_bounds_wait_for_ever(void **state)
{
    (void)state;
    ms_cuda_backend bounded = ms_test_cuda_backend(MS_CUDA_BY_NCCL), wide = bounded;
    int num_stuck = 0;
    unbounded = ms_cuda_fake_driver;
    unbounded.split = split_without_bounds;
    wide.driver = unbounded_driver;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        ms_ctx *cx = test_cx();
        ASSERT_OK(run_two_stages(cx, &bounded, NUM_SMS, NUM_QUEUES, seed), cx);
        ms_ctx *other = test_cx();
        bool is_stuck = run_two_stages(other, &wide, NUM_SMS, NUM_QUEUES, seed) == MS_EIO;
        num_stuck += is_stuck;
        if (is_stuck)
            assert_non_null(strstr(test_messages(other), "waited 1 s for "));
    }
    assert_true(num_stuck > 0);
}

static void too_few_are_refused(void **state)
{
    (void)state;
    ms_cuda_backend backend = ms_test_cuda_backend(MS_CUDA_BY_NCCL);
    ms_ctx *cx = test_cx();
    ASSERT_INT(run_two_stages(cx, &backend, 2, NUM_QUEUES, 1), MS_EINPUT);
    assert_non_null(strstr(test_messages(cx), "the GPU's 2 multiprocessors are too few"));
    cx = test_cx();
    ASSERT_INT(run_two_stages(cx, &backend, NUM_SMS, 1, 1), MS_EINPUT);
    assert_non_null(
        strstr(test_messages(cx), "streams of 1 rank share 1 hardware queue"));
    assert_non_null(strstr(test_messages(cx), "unset CUDA_DEVICE_MAX_CONNECTIONS"));
}

/* All streams but compute are urgent. */
static void communication_is_urgent(void **state)
{
    (void)state;
    ms_cuda_backend backend = ms_test_cuda_backend(MS_CUDA_BY_NCCL);
    ms_ctx *cx = test_cx();
    ASSERT_OK(run_two_stages(cx, &backend, NUM_SMS, NUM_QUEUES, 1), cx);
    ASSERT_INT(ms_cuda_fake_calls(MS_FAKE_OPEN_STREAM) - ms_cuda_fake_num_urgent(), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_plans_end),
        cmocka_unit_test(kernels_without_bounds_wait_for_ever),
        cmocka_unit_test(too_few_are_refused),
        cmocka_unit_test(communication_is_urgent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
