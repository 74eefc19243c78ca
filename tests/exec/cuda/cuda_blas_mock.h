/* A mock of cuBLASLt and of what the CUDA run time does for GEMMs, with the code that calls
 * both: exec/cuda/vendor_cublaslt.c, vendor_gemm_timing.c and vendor_workspaces.c. For one test file each. */
#ifndef MS_TESTS_EXEC_CUDA_CUDA_BLAS_MOCK_H
#define MS_TESTS_EXEC_CUDA_CUDA_BLAS_MOCK_H

#include "tests/support/cuda_fake_numbers.h"
#include "tests/test.h"

/* CUDA runtime functions that the tested code calls, replaced by mocks */
#define cudaMalloc           test_cuda_malloc
#define cudaFree             test_cuda_free
#define cudaMemset2DAsync    test_cuda_memset_2d
#define cudaMallocAsync      test_cuda_malloc_async
#define cudaFreeAsync        test_cuda_free_async
#define cudaGetLastError     test_cuda_get_last_error
#define cudaEventCreate      test_cuda_event_create
#define cudaEventDestroy     test_cuda_event_destroy
#define cudaEventRecord      test_cuda_event_record
#define cudaEventQuery       test_cuda_event_query
#define cudaEventElapsedTime test_cuda_event_elapsed
#include "exec/cuda/vendor_cublaslt.c"
#include "exec/cuda/vendor_gemm_timing.c"
#include "exec/cuda/vendor_workspaces.c"

/* ---- the run time, and what else the driver has ---- */

static int num_allocated, num_made, num_heuristics, num_products;
static bool heuristic_fails, is_missing;
/* how long each candidate takes; INFINITY: the library refuses to run it */
static double candidate_s[MS_CUDA_GEMM_CANDIDATES];
static int num_offered = MS_CUDA_GEMM_CANDIDATES, last_candidate;
static bool is_strict; /* algorithms only run products of the rows they were found for */
static bool has_no_memory; /* for GEMMs that add while they are timed */
static double clock_s;
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

cudaError_t test_cuda_malloc_async(void **memory, size_t bytes, cudaStream_t stream)
{
    (void)stream;
    return has_no_memory ? cudaErrorMemoryAllocation : test_cuda_malloc(memory, bytes);
}

cudaError_t test_cuda_free_async(void *memory, cudaStream_t stream)
{
    (void)stream;
    return test_cuda_free(memory);
}

cudaError_t test_cuda_get_last_error(void)
{
    return cudaSuccess;
}

cudaError_t test_cuda_event_create(cudaEvent_t *event)
{
    return test_cuda_malloc((void **)event, sizeof(double));
}

cudaError_t test_cuda_event_destroy(cudaEvent_t event)
{
    return test_cuda_free(event);
}

cudaError_t test_cuda_event_record(cudaEvent_t event, cudaStream_t stream)
{
    (void)stream;
    memcpy((void *)event, &clock_s, sizeof clock_s);
    return cudaSuccess;
}

cudaError_t test_cuda_event_query(cudaEvent_t event)
{
    (void)event;
    return cudaSuccess;
}

cudaError_t test_cuda_event_elapsed(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    double from_s, to_s;
    memcpy(&from_s, (void *)from, sizeof from_s);
    memcpy(&to_s, (void *)to, sizeof to_s);
    *ms = (float)((to_s - from_s) * 1e3);
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

/* ---- the library ---- */

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
    else if (what == CUBLASLT_MATRIX_LAYOUT_ROWS && bytes == sizeof l->rows)
        memcpy(&l->rows, value, bytes);
    else if (what == CUBLASLT_MATRIX_LAYOUT_COLS && bytes == sizeof l->cols)
        memcpy(&l->cols, value, bytes);
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
    layout shape;
    *num = heuristic_fails ? 0 : most < num_offered ? most : num_offered;
    num_heuristics++;
    for (int i = 0; i < *num; i++) {
        out[i].algo.data[0] = (uint64_t)i + 1;
        memcpy(&shape, (void *)c, sizeof shape);
        out[i].algo.data[1] = shape.rows * shape.cols;
        out[i].workspaceSize = 64;
    }
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
    if (lto != lc || algo->data[0] == 0 || memory == NULL || bytes != 64 ||
        fake_number(scale, alpha, 0) != 1 || !is_supported(d, x, y, z))
        return CUBLAS_STATUS_INVALID_VALUE;
    last_candidate = (int)algo->data[0] - 1;
    if (isinf(candidate_s[last_candidate]) ||
        (is_strict && algo->data[1] != z->rows * z->cols))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    clock_s += candidate_s[last_candidate];
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

#endif
