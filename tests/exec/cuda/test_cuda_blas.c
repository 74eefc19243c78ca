/* Tests of matrix products by cuBLASLt without a GPU, with a mock of the library. */
#include "base/rng.h"
#include "tests/support/cuda_fake_numbers.h"
#include "tests/test.h"

#if __has_include(<cublasLt.h>)

/* CUDA runtime functions that the tested code calls, replaced by mocks */
#define cudaMalloc        test_cuda_malloc
#define cudaFree          test_cuda_free
#define cudaMemset2DAsync test_cuda_memset_2d
#include "exec/cuda/vendor_cublaslt.c"
#include "tests/support/library_symbols.h"

/* ---- the run time, and what else the driver has ---- */

static int num_allocated, num_made, num_heuristics, num_products;
static bool heuristic_fails, is_missing;
static ms_cuda_device device = {.ordinal = 0, .major = 9};
static ms_cuda_device *entered = &device;

cudaError_t test_cuda_malloc(void **memory, size_t bytes)
{
    *memory = malloc(bytes);
    num_allocated++;
    return cudaSuccess;
}

cudaError_t test_cuda_free(void *memory)
{
    free(memory);
    num_allocated--;
    return cudaSuccess;
}

cudaError_t test_cuda_memset_2d(void *to, size_t pitch, int value, size_t width,
                                size_t height, cudaStream_t stream)
{
    (void)stream;
    for (size_t i = 0; i < height; i++)
        memset((char *)to + i * pitch, value, width);
    return cudaSuccess;
}

ms_cuda_device *ms_cuda_entered(void)
{
    return entered;
}

ms_status ms_cuda_failed(ms_ctx *cx, cudaError_t error, const char *call)
{
    return ms_fail(cx, MS_EIO, MS_NOWHERE, "%s: %d", call, (int)error);
}

typedef struct layout {
    cudaDataType type;
    uint64_t rows, cols;
    int64_t ld, offset;
    int32_t num_batch;
} layout;

typedef struct desc {
    cublasComputeType_t compute;
    cudaDataType scale;
    int32_t transpose_a, transpose_b;
    int8_t fast;
    const float *scale_a, *scale_b;
} desc;

typedef struct preference {
    uint64_t workspace_bytes;
    uint32_t schemes, align_a, align_b, align_c, align_d;
} preference;

static preference preferred; /* preference given to the last heuristic query */
static desc last_desc;

static void *made(size_t bytes)
{
    num_made++;
    return calloc(1, bytes);
}

static cublasStatus_t destroyed(void *what)
{
    num_made--;
    free(what);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t create(cublasLtHandle_t *handle)
{
    *handle = made(1);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t destroy(cublasLtHandle_t handle)
{
    return destroyed(handle);
}

static size_t get_version(void)
{
    return 130000;
}

static const char *status_string(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_NOT_SUPPORTED ? "not supported" : "another";
}

static cublasStatus_t desc_create(cublasLtMatmulDesc_t *out, cublasComputeType_t compute,
                                  cudaDataType_t scale)
{
    desc *d = made(sizeof *d);
    *d = (desc){.compute = compute, .scale = scale};
    *out = (cublasLtMatmulDesc_t)(void *)d;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t desc_destroy(cublasLtMatmulDesc_t d)
{
    return destroyed(d);
}

static cublasStatus_t desc_set(cublasLtMatmulDesc_t of,
                               cublasLtMatmulDescAttributes_t what, const void *value,
                               size_t bytes)
{
    desc *d = (desc *)(void *)of;
    const struct {
        cublasLtMatmulDescAttributes_t what;
        void *to;
        size_t bytes;
    } known[] = {
        {CUBLASLT_MATMUL_DESC_TRANSA, &d->transpose_a, sizeof d->transpose_a},
        {CUBLASLT_MATMUL_DESC_TRANSB, &d->transpose_b, sizeof d->transpose_b},
        {CUBLASLT_MATMUL_DESC_FAST_ACCUM, &d->fast, sizeof d->fast},
        {CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &d->scale_a, sizeof d->scale_a},
        {CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &d->scale_b, sizeof d->scale_b},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i].what != what || known[i].bytes != bytes)
            continue;
        memcpy(known[i].to, value, bytes);
        return CUBLAS_STATUS_SUCCESS;
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

static cublasStatus_t layout_create(cublasLtMatrixLayout_t *out, cudaDataType type,
                                    uint64_t rows, uint64_t cols, int64_t ld)
{
    layout *l = made(sizeof *l);
    *l = (layout){.type = type, .rows = rows, .cols = cols, .ld = ld, .num_batch = 1};
    *out = (cublasLtMatrixLayout_t)(void *)l;
    return ld >= (int64_t)rows ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

static cublasStatus_t layout_destroy(cublasLtMatrixLayout_t l)
{
    return destroyed(l);
}

static cublasStatus_t layout_set(cublasLtMatrixLayout_t of,
                                 cublasLtMatrixLayoutAttribute_t what, const void *value,
                                 size_t bytes)
{
    layout *l = (layout *)(void *)of;
    if (what == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT && bytes == sizeof l->num_batch)
        memcpy(&l->num_batch, value, bytes);
    else if (what == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET &&
             bytes == sizeof l->offset)
        memcpy(&l->offset, value, bytes);
    else
        return CUBLAS_STATUS_INVALID_VALUE;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t preference_create(cublasLtMatmulPreference_t *out)
{
    *out = (cublasLtMatmulPreference_t)made(sizeof(preference));
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t preference_destroy(cublasLtMatmulPreference_t p)
{
    return destroyed(p);
}

static cublasStatus_t preference_set(cublasLtMatmulPreference_t of,
                                     cublasLtMatmulPreferenceAttributes_t what,
                                     const void *value, size_t bytes)
{
    preference *p = (preference *)(void *)of;
    if (what == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) {
        memcpy(&p->workspace_bytes, value, bytes);
        return CUBLAS_STATUS_SUCCESS;
    }
    uint32_t *to = what == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK   ? &p->schemes
                   : what == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES ? &p->align_a
                   : what == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES ? &p->align_b
                   : what == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES ? &p->align_c
                   : what == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES ? &p->align_d
                                                                        : NULL;
    if (to == NULL || bytes != sizeof *to)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(to, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

static ms_scalar scalar_of(cudaDataType type)
{
    return type == CUDA_R_16BF      ? MS_SCALAR_BF16
           : type == CUDA_R_32F     ? MS_SCALAR_FP32
           : type == CUDA_R_8F_E4M3 ? MS_SCALAR_E4M3
           : type == CUDA_R_8F_E5M2 ? MS_SCALAR_E5M2
                                    : MS_SCALAR_FP64;
}

/* Whether cublasLtMatmul()'s documentation allows a product on Hopper and Ada GPUs. */
static bool is_supported(const desc *d, const layout *a, const layout *b, const layout *c)
{
    ms_scalar of_a = scalar_of(a->type), of_b = scalar_of(b->type),
              of_c = scalar_of(c->type);
    if (!ms_scalar_is_fp8(of_a))
        return !ms_scalar_is_fp8(of_b) && d->scale_a == NULL && d->scale_b == NULL;
    return ms_scalar_is_fp8(of_b) && (of_a == MS_SCALAR_E4M3 || of_b == MS_SCALAR_E4M3) &&
           (of_c == MS_SCALAR_BF16 || of_c == MS_SCALAR_FP32) &&
           d->transpose_a == CUBLAS_OP_T && d->transpose_b == CUBLAS_OP_N &&
           d->compute == CUBLAS_COMPUTE_32F && d->scale == CUDA_R_32F &&
           a->rows % 16 == 0 && a->cols % 16 == 0 && b->rows % 16 == 0 &&
           a->ld % 16 == 0 && b->ld % 16 == 0 && c->ld % 16 == 0 && d->scale_a != NULL &&
           d->scale_b != NULL;
}

static cublasStatus_t get_heuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t d,
                                    cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                    cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t to,
                                    cublasLtMatmulPreference_t p, int most,
                                    cublasLtMatmulHeuristicResult_t *out, int *num)
{
    (void)handle, (void)to;
    if (!is_supported((const desc *)(void *)d, (const layout *)(void *)a,
                      (const layout *)(void *)b, (const layout *)(void *)c))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    memcpy(&preferred, (void *)p, sizeof preferred);
    memcpy(&last_desc, (void *)d, sizeof last_desc);
    *num = heuristic_fails ? 0 : most;
    out->algo.data[0] = (uint64_t)++num_heuristics;
    out->workspaceSize = 64;
    return heuristic_fails ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
}

static double element(const layout *l, const void *x, int64_t batch, uint64_t row,
                      uint64_t col)
{
    return fake_number(scalar_of(l->type), x,
                       batch * l->offset + (int64_t)col * l->ld + (int64_t)row);
}

/* Mock cublasLtMatmul: to = op(a) op(b) + beta c with column-major matrices. */
static cublasStatus_t matmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t of,
                             const void *alpha, const void *a, cublasLtMatrixLayout_t la,
                             const void *b, cublasLtMatrixLayout_t lb, const void *beta,
                             const void *c, cublasLtMatrixLayout_t lc, void *to,
                             cublasLtMatrixLayout_t lto, const cublasLtMatmulAlgo_t *algo,
                             void *memory, size_t bytes, cudaStream_t stream)
{
    const desc *d = (const desc *)(void *)of;
    const layout *x = (const layout *)(void *)la, *y = (const layout *)(void *)lb,
                 *z = (const layout *)(void *)lc;
    ms_scalar scale = scalar_of(d->scale);
    uint64_t terms = d->transpose_a == CUBLAS_OP_T ? x->rows : x->cols;
    (void)handle, (void)stream;
    if (lto != lc || c != to || algo->data[0] == 0 || memory == NULL || bytes != 64 ||
        fake_number(scale, alpha, 0) != 1 || !is_supported(d, x, y, z))
        return CUBLAS_STATUS_INVALID_VALUE;
    num_products++;
    for (int64_t i = 0; i < z->num_batch; i++) {
        for (uint64_t row = 0; row < z->rows; row++) {
            for (uint64_t col = 0; col < z->cols; col++) {
                double sum = 0, factor = fake_number(scale, beta, 0);
                for (uint64_t k = 0; k < terms; k++)
                    sum += (d->transpose_a == CUBLAS_OP_T ? element(x, a, i, k, row)
                                                          : element(x, a, i, row, k)) *
                           (d->transpose_b == CUBLAS_OP_T ? element(y, b, i, col, k)
                                                          : element(y, b, i, k, col));
                if (d->scale_a != NULL)
                    sum *= (double)*d->scale_a * (double)*d->scale_b;
                sum += factor != 0 ? factor * element(z, c, i, row, col) : 0;
                fake_set_number(scalar_of(z->type), to,
                                i * z->offset + (int64_t)col * z->ld + (int64_t)row, sum);
            }
        }
    }
    return CUBLAS_STATUS_SUCCESS;
}

bool ms_cuda_library_open(const ms_cuda_library *of, void *table,
                          char reason[MS_CUDA_REASON])
{
    static const blas_table functions = {create,
                                         destroy,
                                         get_version,
                                         status_string,
                                         matmul,
                                         get_heuristic,
                                         desc_create,
                                         desc_destroy,
                                         desc_set,
                                         layout_create,
                                         layout_destroy,
                                         layout_set,
                                         preference_create,
                                         preference_destroy,
                                         preference_set};
    size_t num = 0;
    while (of->symbols[num].name != NULL)
        num++;
    assert_int_equal(num * sizeof(void *), sizeof functions); /* all functions loaded */
    memcpy(table, &functions, sizeof functions);
    if (is_missing)
        snprintf(reason, MS_CUDA_REASON, "no library here");
    return !is_missing;
}

/* ---- tests ---- */

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
