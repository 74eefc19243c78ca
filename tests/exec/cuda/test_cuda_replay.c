/* A rank alone on a fake GPU (tests/support/cuda_fake.h), in any order of work that its
 * streams allow: it allocates to the byte what it does alone on a CPU, its made-up data
 * keep losses finite, and of a gather its own part stays as it is. */
#include "exec/backends/modelled.h"
#include "exec/cuda/cuda_modelled.h"
#include "tests/support/cuda_backend.h"
#include "tests/support/cuda_fake.h"
#include "tests/support/run_cases.h"

#include "tests/test.h"

#include <math.h>

static void replay(ms_ctx *cx, const ms_run_opened *opened, const ms_backend *backend,
                   const ms_runner_options *options, long rank, ms_outcome *out)
{
    ms_backend_job job = {.backend = backend,
                          .world = opened->world,
                          .type = options->type,
                          .replayed_rank = rank,
                          .held_sms = 2};
    ASSERT_OK(backend->open(cx, &job), cx);
    ASSERT_OK(ms_runner_run(cx, &job, opened->planned, options, out), cx);
    backend->close(&job);
}

/* Transfers that took their streams are those that do so on a CPU, one after the other on
 * each stream, and later than nothing that they wait for. */
static void check_moves(const ms_recorder *on_gpu, const ms_recorder *on_cpu)
{
    double end_s[MS_NUM_STREAMS] = {0.0};
    long num = 0, at = 0;
    for (long i = 0; i < on_cpu->num; i++)
        num += on_cpu->slices[i].moves;
    for (long i = 0; i < on_gpu->num; i++) {
        const ms_recorded *slice = &on_gpu->slices[i];
        if (!slice->moves)
            continue;
        while (!on_cpu->slices[at].moves)
            at++;
        ASSERT_TEXT(slice->name, on_cpu->slices[at++].name);
        /* events may happen at once, but the transfer between them takes its time */
        assert_true(slice->end_s > slice->start_s + MS_CUDA_FAKE_WORK_S / 2.0);
        assert_true(slice->start_s > end_s[slice->stream] - MS_CUDA_FAKE_WORK_S / 2.0);
        end_s[slice->stream] = slice->end_s;
        num--;
    }
    ASSERT_INT(num, 0);
}

static void check_case(uint64_t seed, ms_real_type type)
{
    ms_ctx *cx = test_cx();
    ms_run_opened opened;
    ms_run_tolerance how = ms_run_fp32;
    how.type = type;
    ms_run_case c = ms_run_case_draw(cx, &how, seed, 0, 0);
    ms_runner_options options = ms_run_options(c.model, &c.plan, type);
    options.wants_weights = options.wants_gradients = options.wants_updated = false;
    options.replays = options.balanced_routing = true;
    ms_cuda_backend gpu = ms_test_cuda_backend(MS_CUDA_MODELLED);
    ASSERT_OK(ms_run_open(cx, c.model, &c.plan, c.stack, &opened), cx);
    for (long rank = 0; rank < c.plan.gpus; rank += 1 + c.plan.gpus / 3) {
        ms_outcome on_gpu, on_cpu;
        ms_cuda_fake_begin(&(ms_cuda_fake_options){.seed = seed, .num_devices = 1});
        replay(cx, &opened, &gpu.table, &options, rank, &on_gpu);
        ms_cuda_fake_end();
        assert_true(isfinite(on_gpu.losses[0]));
        for (int i = 0; i < on_gpu.num_actions + MS_NUM_STEP_ENDS; i++)
            assert_true(on_gpu.action_s[i] >= 0.0);
        if (type != MS_REAL_FP32) {
            ms_recorder_close(&on_gpu.ranks[0].recorder);
            continue;
        }
        replay(cx, &opened, &ms_backend_modelled, &options, rank, &on_cpu);
        for (int part = 0; part < MS_NUM_MEMORY_CATEGORIES; part++)
            assert_true(on_gpu.ranks[0].ledger.peak_parts[part] ==
                        on_cpu.ranks[0].ledger.peak_parts[part]);
        check_moves(&on_gpu.ranks[0].recorder, &on_cpu.ranks[0].recorder);
        ms_recorder_close(&on_gpu.ranks[0].recorder);
        ms_recorder_close(&on_cpu.ranks[0].recorder);
    }
    ms_run_close(&opened);
}

static void ranks_alone_run_on_a_gpu(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= TEST_CASES(12, 3); seed++)
        check_case(seed, MS_REAL_FP32);
    check_case(31, MS_REAL_BF16);
}

static void made_up_data_are_the_own_ones_with_signs(void **state)
{
    (void)state;
    float own[3] = {1.0f, -2.0f, 3.0f}, to[9] = {0}, drawn[2000];
    ms_cuda_modelled m = {.scalar = MS_SCALAR_FP32,
                          .to = to,
                          .from = own,
                          .count = 9,
                          .num_from = 3,
                          .own_first = 3,
                          .seed = 7};
    ms_cuda_model_transfer(NULL, &m);
    for (int i = 0; i < 9; i++) {
        assert_true(fabsf(to[i]) == fabsf(own[i % 3]));
        if (i >= 3 && i < 6)
            assert_true(to[i] == own[i - 3]);
    }
    m = (ms_cuda_modelled){.scalar = MS_SCALAR_FP32,
                           .to = drawn,
                           .count = 2000,
                           .own_first = -1,
                           .num_blocks = 4,
                           .seed = 8};
    double sum = 0.0, squares = 0.0;
    ms_cuda_model_transfer(NULL, &m);
    for (int i = 0; i < 2000; i++) {
        sum += (double)drawn[i];
        squares += (double)drawn[i] * (double)drawn[i];
    }
    /* standard errors of the mean and of the mean square: 0.022 and 0.02 */
    assert_true(fabs(sum / 2000.0) < 0.1 && fabs(squares / 2000.0 - 1.0) < 0.1);
}

/* Only the rank that executes takes memory and time, however many others there are. */
static void jobs_of_many_ranks_open(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = ms_plan_default(16384);
    plan.size[MS_PP] = 16;
    plan.size[MS_DP_SHARD] = 128;
    plan.size[MS_TP] = 8;
    ms_plan_fill_defaults(&plan);
    ms_world world = ms_world_make(cx->arena, &plan);
    ms_cuda_backend gpu = ms_test_cuda_backend(MS_CUDA_MODELLED);
    ms_backend_job job = {.backend = &gpu.table,
                          .world = &world,
                          .type = MS_REAL_FP32,
                          .replayed_rank = 16383};
    ms_cuda_fake_begin(&(ms_cuda_fake_options){.seed = 1, .num_devices = 1});
    ASSERT_OK(job.backend->open(cx, &job), cx);
    assert_true(job.backend->carries(&job, 16383) && !job.backend->carries(&job, 0));
    job.backend->close(&job);
    ms_cuda_fake_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(made_up_data_are_the_own_ones_with_signs),
        cmocka_unit_test(jobs_of_many_ranks_open),
        cmocka_unit_test(ranks_alone_run_on_a_gpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
