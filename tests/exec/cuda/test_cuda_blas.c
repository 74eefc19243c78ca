/* Tests of matrix products by cuBLASLt without a GPU, with a mock of the library. */
#include "base/rng.h"
#include "tests/test.h"

#if __has_include(<cublasLt.h>)

#include "tests/exec/cuda/cuda_blas_mock.h"
#include "tests/support/library_symbols.h"

#define MOST 3000

typedef struct arrays {
    double a[MOST], b[MOST], c[MOST], want[MOST]; /* buffers for elements of any type */
} arrays;

static ms_cuda_stream *stream(int i)
{
    static char streams[16];
    return (ms_cuda_stream *)(void *)&streams[i];
}

static void fill(arrays *x, const ms_cuda_gemm *p, ms_rng *rng)
{
    for (long i = 0; i < MOST; i++) {
        fake_set_number(p->type, x->a, i, 2 * ms_rng_uniform(rng) - 1);
        fake_set_number(p->type, x->b, i, 2 * ms_rng_uniform(rng) - 1);
        fake_set_number(p->result, x->c, i, 2 * ms_rng_uniform(rng) - 1);
    }
    memcpy(x->want, x->c, sizeof x->c);
}

static void compare(ms_cuda_gemm p, arrays *x)
{
    const double tolerance[] = {
        [MS_SCALAR_FP32] = 1e-5, [MS_SCALAR_FP64] = 1e-13, [MS_SCALAR_BF16] = 0x1p-6};
    ms_ctx *cx = test_cx();
    p.a = x->a;
    p.b = x->b;
    p.c = x->c;
    ASSERT_OK(ms_cuda_library_gemm(cx, stream(1), &p), cx);
    p.c = x->want;
    if (p.m > 0 && p.n > 0)
        fake_run_product(&p);
    for (long i = 0; i < MOST; i++) {
        double got = fake_number(p.result, x->c, i),
               want = fake_number(p.result, x->want, i);
        if (!(fabs(got - want) <= tolerance[p.result] * (1 + fabs(want))))
            fail_msg(
                "%s, %ld x %ld x %ld, transposes %d %d: element %ld is %.9g, not %.9g",
                ms_scalar_names[p.type], p.m, p.n, p.k, p.transpose_a, p.transpose_b, i,
                got, want);
    }
}

static ms_cuda_gemm random_product(ms_rng *rng)
{
    static const ms_scalar types[4][2] = {{MS_SCALAR_FP32, MS_SCALAR_FP32},
                                          {MS_SCALAR_FP64, MS_SCALAR_FP64},
                                          {MS_SCALAR_BF16, MS_SCALAR_BF16},
                                          {MS_SCALAR_BF16, MS_SCALAR_FP32}};
    uint64_t type = ms_rng_below(rng, 4);
    ms_cuda_gemm p = {.type = types[type][0],
                      .result = types[type][1],
                      .transpose_a = ms_rng_below(rng, 2),
                      .transpose_b = ms_rng_below(rng, 2),
                      .add = ms_rng_below(rng, 2),
                      .m = (long)ms_rng_below(rng, 12),
                      .n = (long)ms_rng_below(rng, 12),
                      .k = (long)ms_rng_below(rng, 12),
                      .num_batch = (long)ms_rng_below(rng, 4)};
    long pad = (long)ms_rng_below(rng, 3);
    p.ld_a = (p.transpose_a ? p.m : p.k) + pad;
    p.ld_b = (p.transpose_b ? p.k : p.n) + pad;
    p.ld_c = p.n + pad;
    p.stride_a = 13 * p.ld_a + pad;
    p.stride_b = 13 * p.ld_b;
    p.stride_c = 13 * p.ld_c + pad;
    return p;
}

static void close_products(void)
{
    ms_cuda_close_gemms(device.products);
    device.products = NULL;
    ASSERT_INT(num_made, 0);
    ASSERT_INT(num_allocated, 0);
}

static void row_major_products_are_told_in_columns(void **state)
{
    (void)state;
    ms_rng rng = ms_rng_seed(20);
    arrays *x = MS_NEW(test_cx()->arena, arrays);
    for (int i = 0; i < 1500; i++) {
        ms_cuda_gemm p = random_product(&rng);
        fill(x, &p, &rng);
        compare(p, x);
    }
    assert_true(num_products > 1000);
    close_products();
}

static ms_cuda_gemm plain(arrays *x, ms_scalar type)
{
    return (ms_cuda_gemm){.type = type,
                          .result = type,
                          .m = 4,
                          .n = 8,
                          .k = 16,
                          .ld_a = 16,
                          .ld_b = 8,
                          .ld_c = 8,
                          .a = x->a,
                          .b = x->b,
                          .c = x->c};
}

static void algorithms_are_chosen_once_for_each_shape(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    arrays *x = NULL;
    assert_int_equal(posix_memalign((void **)&x, 256, sizeof *x), 0);
    memset(x, 0, sizeof *x);
    ms_cuda_gemm p = plain(x, MS_SCALAR_BF16);
    p.b = (char *)x + 2 * 256;
    p.c = (char *)x + 4 * 256;
    num_heuristics = 0;
    for (int i = 0; i < 3; i++)
        ASSERT_OK(ms_cuda_library_gemm(cx, stream(1), &p), cx);
    ASSERT_INT(num_heuristics, 1);
    ASSERT_INT(preferred.align_a, 256);
    ASSERT_INT(preferred.schemes, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
    ASSERT_INT(preferred.workspace_bytes, 64 << 20);
    ASSERT_INT(last_desc.compute, CUBLAS_COMPUTE_32F);
    /* cuBLASLt's a is the caller's b, as its matrices are column-major */
    p.a = (const char *)p.a + 2;
    p.b = (const char *)p.b + 48;
    ASSERT_OK(ms_cuda_library_gemm(cx, stream(1), &p), cx);
    ASSERT_INT(num_heuristics, 2);
    ASSERT_INT(preferred.align_a, 16);
    ASSERT_INT(preferred.align_b, 2);
    ASSERT_INT(preferred.align_c, 256);
    ASSERT_INT(preferred.align_d, 256);
    p.num_batch = 2;
    p.stride_a = p.stride_b = 0;
    p.stride_c = 36;
    ASSERT_OK(ms_cuda_library_gemm(cx, stream(1), &p), cx);
    ASSERT_INT(preferred.align_c, 8);
    for (int type = 0; type < 2; type++) {
        p = plain(x, type == 0 ? MS_SCALAR_FP32 : MS_SCALAR_FP64);
        ASSERT_OK(ms_cuda_library_gemm(cx, stream(1), &p), cx);
        ASSERT_INT(last_desc.compute,
                   type == 0 ? CUBLAS_COMPUTE_32F : CUBLAS_COMPUTE_64F);
        ASSERT_INT(last_desc.scale, type == 0 ? CUDA_R_32F : CUDA_R_64F);
    }
    ASSERT_INT(num_allocated, 1);
    ASSERT_OK(ms_cuda_library_gemm(cx, stream(2), &p), cx);
    ASSERT_INT(num_allocated, 2); /* each stream has its own workspace */
    for (int i = 3; i <= MS_CUDA_MAX_WORKSPACES; i++)
        ASSERT_OK(ms_cuda_library_gemm(cx, stream(i), &p), cx);
    ASSERT_INT(ms_cuda_library_gemm(cx, stream(0), &p), MS_EIO);
    ASSERT_TEXT(cx->first->message, "matrix products on more than 8 streams");
    ASSERT_INT(num_allocated, MS_CUDA_MAX_WORKSPACES);
    close_products();
    free(x);
}

/* FP8 products take new scales at each call without a new search for an algorithm. */
static void products_of_fp8_have_scales(void **state)
{
    (void)state;
    const ms_scalar types[3][3] = {{MS_SCALAR_E4M3, MS_SCALAR_E4M3, MS_SCALAR_BF16},
                                   {MS_SCALAR_E5M2, MS_SCALAR_E4M3, MS_SCALAR_BF16},
                                   {MS_SCALAR_E4M3, MS_SCALAR_E5M2, MS_SCALAR_FP32}};
    ms_ctx *cx = test_cx();
    ms_rng rng = ms_rng_seed(21);
    arrays *x = MS_NEW(cx->arena, arrays);
    num_heuristics = 0;
    for (int i = 0; i < 6; i++) {
        const ms_scalar *type = types[i % 3];
        float scales[2] = {0.25F, 0x1p-9F * (float)(i + 1)};
        ms_cuda_gemm p = {.type = type[0],
                          .type_b = type[1],
                          .result = type[2],
                          .transpose_b = true,
                          .add = i % 3 == 2,
                          .fast = i % 3 == 0,
                          .m = 5,
                          .n = 32,
                          .k = 48,
                          .ld_a = 64,
                          .ld_b = 48,
                          .ld_c = 32,
                          .scale_a = &scales[0],
                          .scale_b = &scales[1]};
        fill(x, &p, &rng); /* fills c; a and b, which are FP8, are filled below */
        for (size_t j = 0; j < sizeof x->a; j++) {
            ((unsigned char *)x->a)[j] = (unsigned char)ms_rng_below(&rng, 0x50);
            ((unsigned char *)x->b)[j] = (unsigned char)(0x80 + ms_rng_below(&rng, 0x50));
        }
        compare(p, x);
        ASSERT_INT(num_heuristics, i < 3 ? i + 1 : 3);
        assert_true(i > 2 || last_desc.fast == (i == 0));
    }
    float scale = 1;
    ms_cuda_gemm p = plain(x, MS_SCALAR_E4M3);
    p.type_b = MS_SCALAR_E4M3;
    p.result = MS_SCALAR_BF16;
    p.scale_a = p.scale_b = &scale;
    ASSERT_INT(ms_cuda_library_gemm(cx, stream(1), &p), MS_EIO);
    assert_non_null(strstr(test_messages(cx), "no algorithm for e4m3 to bf16"));
    close_products();
}

static void thousands_of_shapes_are_forgotten(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    arrays *x = MS_NEW(cx->arena, arrays);
    ms_cuda_gemm p = plain(x, MS_SCALAR_FP32);
    p.m = p.n = p.k = 1;
    num_heuristics = 0;
    for (int i = 0; i < MAX_READY + 100; i++) {
        p.ld_a = 16 + i; /* another row stride gives another cache key */
        ASSERT_OK(ms_cuda_library_gemm(cx, stream(1), &p), cx);
    }
    ASSERT_INT(num_heuristics, MAX_READY + 100);
    ASSERT_INT(device.products->num_ready, 100);
    p.ld_a = 16 + MAX_READY + 99;
    ASSERT_OK(ms_cuda_library_gemm(cx, stream(1), &p), cx);
    ASSERT_INT(num_heuristics, MAX_READY + 100);
    close_products();
}

static void failures_are_told(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    arrays *x = MS_NEW(cx->arena, arrays);
    ms_cuda_gemm p = plain(x, MS_SCALAR_BF16);
    bool has = true;
    heuristic_fails = true;
    ASSERT_OK(ms_cuda_library_has_gemm(cx, &p, &has), cx);
    ASSERT_INT(has, false);
    heuristic_fails = false; /* cached answer: the library is not asked again */
    ASSERT_INT(ms_cuda_library_gemm(cx, stream(1), &p), MS_EIO);
    assert_non_null(strstr(test_messages(cx), "no algorithm for bf16 to bf16, m 4, n 8"));
    p.ld_b = 3; /* rows overlap, which the mock library refuses */
    ASSERT_INT(ms_cuda_library_gemm(cx, stream(1), &p), MS_EIO);
    entered = NULL;
    ASSERT_INT(ms_cuda_library_gemm(cx, stream(1), &p), MS_EIO);
    assert_non_null(strstr(test_messages(cx), "has entered no GPU"));
    entered = &device;
    close_products();
}

MS_LIBRARY_TEST(blas_table)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_installed_library_has_all_functions),
        cmocka_unit_test(row_major_products_are_told_in_columns),
        cmocka_unit_test(algorithms_are_chosen_once_for_each_shape),
        cmocka_unit_test(products_of_fp8_have_scales),
        cmocka_unit_test(thousands_of_shapes_are_forgotten),
        cmocka_unit_test(failures_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else
static void products_by_cublaslt(void **state)
{
    (void)state;
    skip(); /* built without CUDA headers */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(products_by_cublaslt)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
