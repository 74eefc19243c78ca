/* Tests of a short measurement on fake GPUs (tests/support/cuda_fake.h): every kernel and
 * transfer runs through the CUDA backend, and times are taken from event time stamps. */
#include "exec/cuda/cuda_gemm_choices.h"
#include "exec/measure/measure.h"
#include "tests/support/cuda_backend.h"
#include "tests/support/cuda_fake.h"
#include "tests/test.h"

#define MOST_QUICK_S 2.0 /* longest warm-up of a quick measurement */

static bool has(const ms_samples *samples, int kind, int what)
{
    for (int i = 0; i < samples->num; i++)
        if (samples->items[i].kind == kind && samples->items[i].what == what)
            return true;
    return false;
}

static ms_measure how_of(const ms_backend *backend, ms_real_type type, long num_ranks)
{
    return (ms_measure){.backend = backend,
                        .type = type,
                        .num_ranks = num_ranks,
                        .quick = true,
                        .most_calls = 2,
                        .most_shapes = 1,
                        .least_region_bytes = 1 << 16};
}

static void measure_kernels(ms_real_type type)
{
    ms_ctx *cx = test_cx();
    ms_samples samples = {0};
    ms_cuda_fake_begin(&(ms_cuda_fake_options){.seed = 3, .num_devices = 1});
    ms_cuda_backend backend = ms_test_cuda_backend(MS_CUDA_BY_NCCL);
    ms_measure how = how_of(&backend.table, type, 1);
    how.kernels = true;
    ASSERT_OK(ms_measure_launch(cx, &how, &samples), cx);
    ms_cuda_fake_end();
    static const ms_op ops[] = {MS_OP_ADD,        MS_OP_NORM,       MS_OP_NORM_GRAD,
                                MS_OP_ROTARY,     MS_OP_EMBED,      MS_OP_LOSS_SUM,
                                MS_OP_LOSS_GRAD,  MS_OP_ACTIVATION, MS_OP_ADAM,
                                MS_OP_BIAS,       MS_OP_PERMUTE,    MS_OP_UNPERMUTE_GRAD,
                                MS_OP_ROUTE_GRAD, MS_OP_EMBED_GRAD};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (!has(&samples, MS_SAMPLE_POINTWISE, ops[i]))
            fail_msg("%s is not measured", ms_op_names[ops[i]]);
    static const int kinds[] = {
        MS_SAMPLE_GEMM,   MS_SAMPLE_ATTENTION, MS_SAMPLE_ATTENTION_GRAD, MS_SAMPLE_STREAM,
        MS_SAMPLE_LAUNCH, MS_SAMPLE_ZERO_GEMM, MS_SAMPLE_WARM_UP};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        assert_true(has(&samples, kinds[i], 0));
    /* windows of wall-clock time may be too few on a busy machine; then it ends late;
     * the fake GPU counts 1 us per piece of work; an operation has a few pieces */
    for (int i = 0; i < samples.num; i++)
        if (samples.items[i].kind == MS_SAMPLE_WARM_UP)
            assert_true(samples.items[i].size[0] == 1.0 ||
                        samples.items[i].seconds >= MOST_QUICK_S);
        else if (samples.items[i].kind != MS_SAMPLE_LAUNCH)
            assert_true(samples.items[i].seconds >= 0.99 * MS_CUDA_FAKE_WORK_S &&
                        samples.items[i].seconds <= 50 * MS_CUDA_FAKE_WORK_S);
}

/* Skips the test under sanitizers, where it takes minutes; they check kernels and
 * measurement in other tests. */
static void skip_if_slow(void)
{
    if (TEST_CASES(false, true))
        skip();
}

static void kernels_in_fp32(void **state)
{
    (void)state;
    skip_if_slow();
    measure_kernels(MS_REAL_FP32);
}

static void kernels_in_bf16(void **state)
{
    (void)state;
    skip_if_slow();
    measure_kernels(MS_REAL_BF16);
}

static void kernels_in_fp8(void **state)
{
    (void)state;
    skip_if_slow();
    measure_kernels(MS_REAL_FP8);
}

/* Algorithms may be timed until the first time stamp is read. */
static void missing_algorithms_are_found_before_measuring(void **state)
{
    (void)state;
    skip_if_slow();
    ms_ctx *cx = test_cx();
    ms_samples samples = {0};
    ms_cuda_attention_use use = {.num_by_own = -1};
    ms_cuda_fake_begin(&(ms_cuda_fake_options){.seed = 3, .num_devices = 1});
    ms_cuda_backend backend = ms_test_cuda_backend(MS_CUDA_BY_NCCL);
    ms_measure how = how_of(&backend.table, MS_REAL_BF16, 1);
    how.kernels = true;
    how.most_shapes = 1;
    how.attention = MS_RUN_ATTENTION_CUDNN;
    how.attention_use = &use;
    ASSERT_OK(
        ms_cuda_gemm_choices_open(cx, "build/no-such-file", true, &how.gemm_choices), cx);
    ASSERT_OK(ms_measure_launch(cx, &how, &samples), cx);
    ms_cuda_fake_end();
    long num_gemms = 0;
    for (int i = 0; i < samples.num; i++)
        num_gemms += samples.items[i].kind == MS_SAMPLE_GEMM;
    assert_true(num_gemms >= 1);
    assert_true(ms_cuda_gemm_choices_num_new(how.gemm_choices) >= num_gemms);
    ms_cuda_gemm_choices_close(how.gemm_choices);
    /* the fake device has no cuDNN: own kernels are measured, and known to be */
    assert_true(use.num_by_own > 0 && use.num_by_library == 0);
}

static void the_gpu_is_described(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_machine machine = {0};
    ms_cuda_facts facts = {.name = "NVIDIA H200",
                           .major = 9,
                           .num_sms = 132,
                           .memory_bytes = 1.5 * 1073741824.0,
                           .l2_bytes = 50.0 * 1048576.0,
                           .clock_hz = 1.98e9,
                           .bus_bits = 6144,
                           .driver_version = 13000,
                           .runtime_version = 12080,
                           .blas_version = 130100,
                           .nccl_version = 22809};
    ms_machine_add_gpu(cx->arena, &facts, &machine);
    ASSERT_TEXT(machine.gpu, "NVIDIA H200, compute capability 9.0, 132 multiprocessors");
    ASSERT_TEXT(machine.gpu_memory, "1.5 GiB over 6144 bits, L2 cache 50 MiB");
    ASSERT_TEXT(machine.gpu_clocks, "multiprocessors 1980 MHz, memory unknown");
    ASSERT_TEXT(machine.gpu_driver, "for CUDA 13.0.0");
    ASSERT_TEXT(machine.gpu_libraries,
                "CUDA 12.8.0, cuBLASLt 13.1.0, cuDNN none, NCCL 2.28.9");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_in_fp32),
        cmocka_unit_test(kernels_in_bf16),
        cmocka_unit_test(kernels_in_fp8),
        cmocka_unit_test(missing_algorithms_are_found_before_measuring),
        cmocka_unit_test(the_gpu_is_described),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
