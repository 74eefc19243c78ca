/* Tests of training on fake GPUs (tests/support/cuda_fake.h): losses, gradients and
 * weights of random plans against one rank of the loop backend (threads on CPUs). */
#include "tests/support/cuda_backend.h"
#include "tests/support/cuda_fake.h"
#include "tests/support/run_cases.h"

#include "tests/test.h"

#include <math.h>

#define NUM_SEEDS TEST_CASES(2, 1)

static void check_case(const ms_run_tolerance *how, ms_cuda_transport transport,
                       uint64_t seed, long gpus)
{
    ms_ctx *cx = test_cx();
    ms_run_case c = ms_run_case_draw(cx, how, seed, 0, gpus);
    bool shared = transport == MS_CUDA_BY_HOST;
    ms_cuda_fake_begin(&(ms_cuda_fake_options){
        .seed = seed, .num_devices = shared ? 1 : (int)c.plan.gpus});
    ms_cuda_backend backend = ms_test_cuda_backend(transport);
    if (!ms_run_agrees(cx, &c, &backend.table, how))
        fail_msg("seed %ld", (long)seed);
    ms_cuda_fake_end();
}

static void ranks_in_bf16(void **state)
{
    (void)state;
    if (TEST_CASES(true, false))
        check_case(&ms_run_bf16, MS_CUDA_BY_NCCL, 51, 1);
    check_case(&ms_run_bf16, MS_CUDA_BY_NCCL, 52, 2);
    check_case(&ms_run_bf16, MS_CUDA_BY_HOST, 53, 2);
}

static void one_rank(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= NUM_SEEDS; seed++) {
        check_case(&ms_run_fp64, MS_CUDA_BY_NCCL, seed, 1);
        if (TEST_CASES(true, false))
            check_case(&ms_run_fp32, MS_CUDA_BY_NCCL, seed, 1);
    }
}

static void ranks_by_nccl(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= NUM_SEEDS; seed++) {
        check_case(&ms_run_fp64, MS_CUDA_BY_NCCL, 10 + seed, 4);
        check_case(&ms_run_fp32, MS_CUDA_BY_NCCL, 20 + seed, 2);
    }
}

static void ranks_through_host_memory(void **state)
{
    (void)state;
    check_case(&ms_run_fp64, MS_CUDA_BY_HOST, 31, 4);
    if (TEST_CASES(true, false))
        check_case(&ms_run_fp32, MS_CUDA_BY_HOST, 41, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_rank),
        cmocka_unit_test(ranks_by_nccl),
        cmocka_unit_test(ranks_through_host_memory),
        cmocka_unit_test(ranks_in_bf16),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
