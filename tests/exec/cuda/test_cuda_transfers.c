/* Tests of the CUDA backend's transfers on fake GPUs (tests/support/cuda_fake.h): every
 * kind of transfer over every group of random plans, by NCCL and through host memory,
 * with stream work done in many random orders. */
#include "tests/support/cuda_backend.h"
#include "tests/support/cuda_fake.h"
#include "tests/support/transfer_checks.h"

#include "base/rng.h"
#include "tests/test.h"

static ms_backend_job open_job(const ms_cuda_backend *backend, const ms_plan *plan,
                               ms_real_type type)
{
    ms_ctx *cx = test_cx();
    ms_world *world = MS_NEW(cx->arena, ms_world);
    ms_plan *kept = MS_NEW(cx->arena, ms_plan);
    *kept = *plan;
    *world = ms_world_make(cx->arena, kept);
    ms_backend_job job = {.backend = &backend->table, .world = world, .type = type};
    ASSERT_OK(job.backend->open(cx, &job), cx);
    return job;
}

static void check_mesh(const long size[MS_NUM_PLAN_AXES], long ep, ms_real_type type,
                       ms_cuda_transport transport, uint64_t seed)
{
    ms_plan plan = ms_check_plan(size, ep);
    bool shared = transport == MS_CUDA_BY_HOST;
    ms_cuda_fake_begin(&(ms_cuda_fake_options){
        .seed = seed, .num_devices = shared ? 1 : (int)plan.gpus});
    ms_cuda_backend backend = ms_test_cuda_backend(transport);
    ms_backend_job job = open_job(&backend, &plan, type);
    ms_ctx *cx = test_cx();
    ASSERT_OK(job.backend->run(cx, &job, ms_check_transfers, &job), cx);
    ASSERT_INT(cx->num_errors, 0);
    job.backend->close(&job);
    ASSERT_INT(ms_cuda_fake_num_pending(), 0);
    ms_cuda_fake_end();
}

static void by_nccl(void **state)
{
    (void)state;
    check_mesh((long[]){1, 1, 1, 1, 1}, 1, MS_REAL_FP32, MS_CUDA_BY_NCCL, 1);
    check_mesh((long[]){1, 1, 1, 1, 2}, 1, MS_REAL_BF16, MS_CUDA_BY_NCCL, 2);
    check_mesh((long[]){2, 1, 2, 1, 2}, 2, MS_REAL_FP64, MS_CUDA_BY_NCCL, 3);
    check_mesh((long[]){3, 1, 1, 2, 1}, 1, MS_REAL_BF16, MS_CUDA_BY_NCCL, 4);
}

static void through_host_memory(void **state)
{
    (void)state;
    check_mesh((long[]){1, 1, 1, 1, 1}, 1, MS_REAL_FP32, MS_CUDA_BY_HOST, 1);
    check_mesh((long[]){1, 1, 1, 1, 2}, 1, MS_REAL_BF16, MS_CUDA_BY_HOST, 2);
    check_mesh((long[]){2, 1, 2, 1, 2}, 2, MS_REAL_FP64, MS_CUDA_BY_HOST, 3);
    check_mesh((long[]){1, 1, 3, 2, 1}, 3, MS_REAL_BF16, MS_CUDA_BY_HOST, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_nccl),
        cmocka_unit_test(through_host_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
