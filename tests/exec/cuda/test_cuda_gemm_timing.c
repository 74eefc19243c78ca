/* Tests of GEMM algorithms chosen by timing, with a mock of cuBLASLt whose candidates take
 * known times, and of the file that keeps the choices. */
#include "tests/test.h"

#include <stdlib.h>
#include <unistd.h>

#if __has_include(<cublasLt.h>)

#include "tests/exec/cuda/cuda_blas_mock.h"

static char path[] = "/tmp/meshsim-gemms-XXXXXX";

static ms_cuda_gemm gemm_of(float *x, long m, bool add)
{
    return (ms_cuda_gemm){.type = MS_SCALAR_FP32,
                          .result = MS_SCALAR_FP32,
                          .add = add,
                          .m = m,
                          .n = 2,
                          .k = 2,
                          .ld_a = 2,
                          .ld_b = 2,
                          .ld_c = 2,
                          .a = x,
                          .b = x + 16,
                          .c = x + 32};
}

static void take_times(const double seconds[MS_CUDA_GEMM_CANDIDATES])
{
    memcpy(candidate_s, seconds, sizeof candidate_s);
}

static void use(ms_cuda_gemm_choices *choices, bool times)
{
    snprintf(device.name, sizeof device.name, "mock GPU");
    device.choices = choices;
    device.times_gemms = times;
}

/* Forgets the device's GEMMs, but not the choices. */
static void close_device(void)
{
    ms_cuda_close_gemms(device.products);
    device.products = NULL;
    device.choices = NULL;
    ASSERT_INT(num_made, 0);
    ASSERT_INT(num_allocated, 0);
}

static ms_cuda_gemm_choices *open_choices(ms_ctx *cx, bool times)
{
    ms_cuda_gemm_choices *choices;
    ASSERT_OK(ms_cuda_gemm_choices_open(cx, path, times, &choices), cx);
    return choices;
}

static void write_choices(const ms_cuda_gemm_choices *choices)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    ms_jout out = ms_jout_open(file);
    ms_cuda_gemm_choices_write(choices, &out);
    ms_jout_close(&out);
    ASSERT_INT(fclose(file), 0);
}

/* Runs the GEMM once; returns the candidate that computed the result. */
static int run(ms_ctx *cx, const ms_cuda_gemm *p)
{
    static char stream;
    ASSERT_OK(ms_cuda_library_gemm(cx, (ms_cuda_stream *)(void *)&stream, p), cx);
    return last_candidate;
}

static void the_fastest_is_taken_and_kept(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    float x[64] = {[0] = 1, [3] = 1, [16] = 2, [19] = 3, [32] = 10};
    ms_cuda_gemm p = gemm_of(x, 2, true);
    ms_cuda_gemm_choices *choices = open_choices(cx, true);
    take_times((const double[]){5, 4, HUGE_VAL, 2, 3});
    use(choices, true);
    num_products = 0;
    ASSERT_INT(run(cx, &p), 3);
    assert_true(num_products > 1 + 4 * 3);
    ASSERT_NEAR(x[32], 12, 0); /* added once, however often it was timed */
    ASSERT_NEAR(x[35], 3, 0);
    num_products = 0;
    ASSERT_INT(run(cx, &p), 3);
    ASSERT_INT(num_products, 1);
    ASSERT_INT(ms_cuda_gemm_choices_num_new(choices), 1);
    write_choices(choices);
    ms_cuda_gemm_choices_close(choices);
    close_device();

    /* later, other times do not matter */
    take_times((const double[]){1, 2, 3, 4, 5});
    choices = open_choices(cx, true);
    use(choices, true);
    num_products = 0;
    ASSERT_INT(run(cx, &p), 3);
    ASSERT_INT(num_products, 1);
    ASSERT_INT(ms_cuda_gemm_choices_num_new(choices), 0);
    p.m = 3; /* another GEMM */
    ASSERT_INT(run(cx, &p), 0);
    ASSERT_INT(ms_cuda_gemm_choices_num_new(choices), 1);
    snprintf(device.name, sizeof device.name, "another GPU");
    p.m = 2;
    ms_cuda_close_gemms(device.products);
    device.products = NULL;
    ASSERT_INT(run(cx, &p), 0);
    ms_cuda_gemm_choices_close(choices);
    close_device();
    ASSERT_INT(remove(path), 0);
}

/* Gains of less than 2 % leave the library's own choice. */
static void small_gains_change_nothing(void **state)
{
    (void)state;
    double seconds[MS_CUDA_GEMM_CANDIDATES] = {1.0, 0.985, 0.99, 1.0, 2.0};
    ASSERT_INT(ms_cuda_fastest_candidate(5, seconds), 0);
    seconds[3] = 0.97;
    ASSERT_INT(ms_cuda_fastest_candidate(5, seconds), 3);
    ASSERT_INT(ms_cuda_fastest_candidate(3, seconds), 0);
    seconds[0] = HUGE_VAL;
    ASSERT_INT(ms_cuda_fastest_candidate(3, seconds), 1);
}

/* Ranks that first met a GEMM in different steps, one timed and one not, agree. */
static void the_first_answer_stands(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    float x[64] = {0};
    ms_cuda_gemm p = gemm_of(x, 2, false);
    ms_cuda_gemm_choices *choices = open_choices(cx, true);
    take_times((const double[]){5, 4, 3, 2, 1});
    use(choices, false);
    num_products = 0;
    ASSERT_INT(run(cx, &p), 0);
    ASSERT_INT(num_products, 1);
    ms_cuda_close_gemms(device.products);
    device.products = NULL;
    use(choices, true);
    ASSERT_INT(run(cx, &p), 0);
    ASSERT_INT(ms_cuda_gemm_choices_num_new(choices), 0); /* nothing to keep */
    ms_cuda_gemm_choices_close(choices);
    close_device();
}

static void without_memory_or_candidates_the_first_is_taken(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    float x[64] = {0};
    ms_cuda_gemm adds = gemm_of(x, 2, true), sets = gemm_of(x, 3, false);
    ms_cuda_gemm_choices *choices = open_choices(cx, true);
    take_times((const double[]){5, 4, 3, 2, 1});
    use(choices, true);
    has_no_memory = true;
    ASSERT_INT(run(cx, &adds), 0);
    ASSERT_INT(ms_cuda_gemm_choices_num_new(choices), 0);
    has_no_memory = false;
    num_offered = 1;
    ASSERT_INT(run(cx, &sets), 0);
    ASSERT_INT(ms_cuda_gemm_choices_num_new(choices), 1);
    num_offered = MS_CUDA_GEMM_CANDIDATES;
    ms_cuda_gemm_choices_close(choices);
    close_device();
}

/* A file made by hand names a candidate that this library does not have. */
static void missing_candidates_are_told(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    float x[64] = {0};
    ms_cuda_gemm p = gemm_of(x, 2, false);
    ms_cuda_gemm_choices *choices = open_choices(cx, true);
    take_times((const double[]){5, 4, 3, 2, 1});
    use(choices, true);
    ASSERT_INT(run(cx, &p), 4);
    ms_cuda_close_gemms(device.products);
    device.products = NULL;
    num_offered = 2;
    ASSERT_INT(ms_cuda_library_gemm(cx, NULL, &p), MS_EINPUT);
    assert_non_null(strstr(test_messages(cx), "candidate 4 of m 2"));
    num_offered = MS_CUDA_GEMM_CANDIDATES;
    ms_cuda_gemm_choices_close(choices);
    close_device();
}

/* ---- GEMMs of experts ---- */

static void buckets_are_close(void **state)
{
    (void)state;
    long num = 0, last = 0;
    for (long size = 1; size <= 65536; size++) {
        long bucket = ms_cuda_gemm_bucket(size);
        assert_true(bucket >= size && bucket >= last);
        assert_true(bucket - size < 16 || 8 * (bucket - size) < size);
        ASSERT_INT(ms_cuda_gemm_bucket(bucket), bucket);
        num += bucket != last;
        last = bucket;
    }
    ASSERT_INT(num, 80);
}

/* Products c = a b, or c = a' b where k varies, with a size of `rows` that varies; a and b
 * have twos and threes. */
static ms_cuda_gemm varying(float *x, long rows, ms_cuda_gemm_size size)
{
    ms_cuda_gemm p = gemm_of(x, 2, false);
    p.b = x + 256;
    p.c = x + 512;
    p.varies = size;
    p.m = size == MS_CUDA_GEMM_M ? rows : 2;
    p.n = size == MS_CUDA_GEMM_N ? rows : 2;
    p.k = size == MS_CUDA_GEMM_K ? rows : 2;
    p.transpose_a = size == MS_CUDA_GEMM_K;
    p.ld_b = size == MS_CUDA_GEMM_N ? 128 : 2;
    p.ld_c = p.ld_b;
    return p;
}

static void check_varying(ms_ctx *cx, float *x, long rows, ms_cuda_gemm_size size)
{
    ms_cuda_gemm p = varying(x, rows, size);
    for (int i = 0; i < 1024; i++)
        x[i] = i < 256 ? 2 : i < 512 ? 3 : -1;
    (void)run(cx, &p);
    for (long i = 0; i < p.m; i++)
        for (long j = 0; j < p.n; j++)
            ASSERT_NEAR(x[512 + i * p.ld_c + j], 6.0 * (double)p.k, 0);
    ASSERT_NEAR(x[512 + p.m * p.ld_c], -1,
                0); /* nothing beyond the rows that there are */
}

/* Sizes of one that varies do not stay for another GEMM of the rounded size. */
static void a_rounded_size_is_no_other_gemm(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    float *x = MS_NEW_ARRAY(cx->arena, 1024, float);
    take_times((const double[]){1, 1, 1, 1, 1});
    check_varying(cx, x, 33, MS_CUDA_GEMM_M);
    ms_cuda_gemm plain = varying(x, 48, MS_CUDA_GEMM_M);
    plain.varies = MS_CUDA_GEMM_NONE;
    for (int i = 0; i < 1024; i++)
        x[i] = i < 256 ? 2 : i < 512 ? 3 : -1;
    (void)run(cx, &plain);
    for (long i = 0; i < 48 * 2; i++)
        ASSERT_NEAR(x[512 + i], 12, 0);
    close_device();
}

static void similar_rows_have_one_algorithm(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    float *x = MS_NEW_ARRAY(cx->arena, 1024, float);
    take_times((const double[]){1, 1, 1, 1, 1});
    for (ms_cuda_gemm_size size = MS_CUDA_GEMM_M; size <= MS_CUDA_GEMM_K; size++) {
        num_heuristics = 0;
        for (long rows = 1; rows <= 100; rows++)
            check_varying(cx, x, rows, size);
        ASSERT_INT(num_heuristics, 7); /* 16, 32, ... 112 */
        is_strict = size != MS_CUDA_GEMM_K;
        check_varying(cx, x, 33, size);
        ASSERT_INT(num_heuristics, is_strict ? 8 : 7);
        is_strict = false;
    }
    close_device();
}

static int make_path(void **state)
{
    (void)state;
    int file = mkstemp(path);
    return file < 0 || close(file) != 0 || remove(path) != 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fastest_is_taken_and_kept),
        cmocka_unit_test(small_gains_change_nothing),
        cmocka_unit_test(the_first_answer_stands),
        cmocka_unit_test(without_memory_or_candidates_the_first_is_taken),
        cmocka_unit_test(missing_candidates_are_told),
        cmocka_unit_test(buckets_are_close),
        cmocka_unit_test(a_rounded_size_is_no_other_gemm),
        cmocka_unit_test(similar_rows_have_one_algorithm),
    };
    return cmocka_run_group_tests(tests, make_path, NULL);
}

#else

static void gemms_are_timed(void **state)
{
    (void)state;
    skip(); /* built without CUDA headers */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gemms_are_timed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
