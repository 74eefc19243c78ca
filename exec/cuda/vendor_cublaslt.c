/* Matrix products (GEMMs) by cuBLASLt, whose matrices are column-major: a row-major c = a
 * b is computed as c' = b' a' on the same memory.
 *
 * Results are bitwise reproducible: the same GEMM always takes the same algorithm, the
 * first of the library's heuristic, which depends on shapes, types and alignments alone;
 * partial sums of split-k GEMMs are added in fp32 in a separate pass, never in the order
 * in which thread blocks end. */
#include "exec/cuda/vendor_priv.h"

#include <cublasLt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Workspace of a GEMM. cublasSetWorkspace's documentation advises 4 MiB, from Hopper on
 * 32; more leaves the heuristic more algorithms to choose from. */
#define WORKSPACE_BYTES        ((size_t)32 << 20)
#define WORKSPACE_BYTES_HOPPER ((size_t)64 << 20)
#define HOPPER_MAJOR           9
#define MAX_WORKSPACES         8
#define MAX_ALIGNMENT          256
#define FIRST_CAPACITY         256
/* Most cached GEMMs; then all are dropped. Shapes of experts change in each step. */
#define MAX_READY 16384

/* ---- the library ---- */

/* Needed library functions: X(function, its field in blas_table). */
#define FUNCTIONS(X)                                                                     \
    X(cublasLtCreate, create)                                                            \
    X(cublasLtDestroy, destroy)                                                          \
    X(cublasLtGetVersion, get_version)                                                   \
    X(cublasLtGetStatusString, status_string)                                            \
    X(cublasLtMatmul, matmul)                                                            \
    X(cublasLtMatmulAlgoGetHeuristic, get_heuristic)                                     \
    X(cublasLtMatmulDescCreate, desc_create)                                             \
    X(cublasLtMatmulDescDestroy, desc_destroy)                                           \
    X(cublasLtMatmulDescSetAttribute, desc_set)                                          \
    X(cublasLtMatrixLayoutCreate, layout_create)                                         \
    X(cublasLtMatrixLayoutDestroy, layout_destroy)                                       \
    X(cublasLtMatrixLayoutSetAttribute, layout_set)                                      \
    X(cublasLtMatmulPreferenceCreate, preference_create)                                 \
    X(cublasLtMatmulPreferenceDestroy, preference_destroy)                               \
    X(cublasLtMatmulPreferenceSetAttribute, preference_set)
#define FIELD(function, field) __typeof__(function) *(field);
typedef struct blas_table {
    FUNCTIONS(FIELD)
} blas_table;
#define SYMBOL(function, field) {#function, offsetof(blas_table, field)},
static const ms_cuda_symbol symbols[] = {FUNCTIONS(SYMBOL){NULL, 0}};

/* File names of the library; the version of the headers, as compiled, comes first. */
#define TEXT_OF(x)   #x
#define NUMBER_OF(x) TEXT_OF(x)
static const char file_of_headers[] = "libcublasLt.so." NUMBER_OF(CUBLAS_VER_MAJOR);
static const char *const files[] = {file_of_headers, "libcublasLt.so.13",
                                    "libcublasLt.so.12", "libcublasLt.so", NULL};
static const ms_cuda_library library = {"cuBLASLt", files, symbols};

static blas_table blas;
static bool is_loaded;
static char load_reason[MS_CUDA_REASON];
static pthread_once_t load_once = PTHREAD_ONCE_INIT;

static void load(void)
{
    is_loaded = ms_cuda_library_open(&library, &blas, load_reason);
}

int ms_cuda_gemm_version(char reason[MS_CUDA_REASON])
{
    pthread_once(&load_once, load);
    snprintf(reason, MS_CUDA_REASON, "%s", load_reason);
    return is_loaded ? (int)blas.get_version() : 0;
}

static ms_status blas_failed(ms_ctx *cx, cublasStatus_t status, const char *call)
{
    return ms_fail(cx, MS_EIO, MS_NOWHERE, "cuBLASLt: %.*s: %s", (int)strcspn(call, "("),
                   call, blas.status_string(status));
}

#define TRY_BLAS(cx, call)                                                               \
    do {                                                                                 \
        cublasStatus_t try_status_ = (call);                                             \
        if (try_status_ != CUBLAS_STATUS_SUCCESS)                                        \
            return blas_failed((cx), try_status_, #call);                                \
    } while (0)

/* ---- cache of prepared products ---- */

/* GEMM properties that determine the algorithm, compared and hashed as bytes. */
typedef struct product_key {
    long m, n, k, ld_a, ld_b, ld_c, num_batch, stride_a, stride_b, stride_c;
    long align_a, align_b, align_c;
    long type, type_b, result, transpose_a, transpose_b, add, fast;
} product_key;

typedef struct ready_product {
    bool is_set;
    product_key key;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, c;
    cublasStatus_t answer; /* CUBLAS_STATUS_SUCCESS: there is an algorithm */
    cublasLtMatmulAlgo_t algorithm;
    size_t workspace_bytes;
} ready_product;

/* A stream's workspace: GEMMs on different streams run concurrently. */
typedef struct workspace {
    cudaStream_t stream;
    void *memory;
} workspace;

struct ms_cuda_gemms {
    pthread_mutex_t lock;
    cublasLtHandle_t handle;
    size_t workspace_bytes;
    int num_workspaces;
    workspace workspaces[MAX_WORKSPACES];
    ready_product *ready;       /* hash table with open addressing */
    size_t num_ready, capacity; /* capacity: a power of 2, at least twice num_ready */
};

/* FNV-1a hash (Fowler, Noll and Vo). */
static size_t hash_of(const product_key *key)
{
    size_t hash = 14695981039346656037ULL;
    const unsigned char *bytes = (const unsigned char *)key;
    for (size_t i = 0; i < sizeof *key; i++)
        hash = (hash ^ bytes[i]) * 1099511628211ULL;
    return hash ^ hash >> 32;
}

static ready_product *slot_of(ready_product *ready, size_t capacity,
                              const product_key *key)
{
    size_t i = hash_of(key) & (capacity - 1);
    while (ready[i].is_set && memcmp(&ready[i].key, key, sizeof *key) != 0)
        i = (i + 1) & (capacity - 1);
    return &ready[i];
}

static void destroy_ready(ready_product *ready)
{
    const cublasLtMatrixLayout_t layouts[] = {ready->a, ready->b, ready->c};
    for (int i = 0; i < 3; i++)
        if (layouts[i] != NULL)
            blas.layout_destroy(layouts[i]);
    if (ready->desc != NULL)
        blas.desc_destroy(ready->desc);
    *ready = (ready_product){0};
}

static void forget_all(ms_cuda_gemms *p)
{
    for (size_t i = 0; i < p->capacity; i++)
        if (p->ready[i].is_set)
            destroy_ready(&p->ready[i]);
    p->num_ready = 0;
}

static bool grow(ms_cuda_gemms *p)
{
    if (p->num_ready == MAX_READY)
        forget_all(p);
    if (2 * (p->num_ready + 1) <= p->capacity)
        return true;
    size_t capacity = p->capacity > 0 ? 2 * p->capacity : FIRST_CAPACITY;
    ready_product *table = calloc(capacity, sizeof *table);
    if (table == NULL)
        return false;
    for (size_t i = 0; i < p->capacity; i++)
        if (p->ready[i].is_set)
            *slot_of(table, capacity, &p->ready[i].key) = p->ready[i];
    free(p->ready);
    p->ready = table;
    p->capacity = capacity;
    return true;
}

/* Largest power of 2 up to 256 that divides the address and, in batches, the stride. */
static long alignment(const void *x, long stride, long num_batch, ms_scalar scalar)
{
    uintptr_t bits = (uintptr_t)x | MAX_ALIGNMENT;
    if (num_batch > 1)
        bits |= (uintptr_t)stride * ms_scalar_bytes(scalar);
    return (long)(bits & (~bits + 1));
}

static product_key key_of(const ms_cuda_gemm *p)
{
    long num_batch = p->num_batch > 1 ? p->num_batch : 1;
    bool has_strides = num_batch > 1, is_fp8 = ms_scalar_is_fp8(p->type);
    ms_scalar type_b = is_fp8 ? p->type_b : p->type;
    return (product_key){.m = p->m,
                         .n = p->n,
                         .k = p->k,
                         .ld_a = p->ld_a,
                         .ld_b = p->ld_b,
                         .ld_c = p->ld_c,
                         .num_batch = num_batch,
                         .stride_a = has_strides ? p->stride_a : 0,
                         .stride_b = has_strides ? p->stride_b : 0,
                         .stride_c = has_strides ? p->stride_c : 0,
                         .align_a = alignment(p->a, p->stride_a, num_batch, p->type),
                         .align_b = alignment(p->b, p->stride_b, num_batch, type_b),
                         .align_c = alignment(p->c, p->stride_c, num_batch, p->result),
                         .type = p->type,
                         .type_b = type_b,
                         .result = p->result,
                         .transpose_a = p->transpose_a,
                         .transpose_b = p->transpose_b,
                         .add = p->add,
                         .fast = is_fp8 && p->fast};
}

/* ---- preparing a product ---- */

static cudaDataType_t data_type(long scalar)
{
    return scalar == MS_SCALAR_BF16   ? CUDA_R_16BF
           : scalar == MS_SCALAR_FP64 ? CUDA_R_64F
           : scalar == MS_SCALAR_E4M3 ? CUDA_R_8F_E4M3
           : scalar == MS_SCALAR_E5M2 ? CUDA_R_8F_E5M2
                                      : CUDA_R_32F;
}

/* Describes a row-major (rows, cols) matrix as a column-major (cols, rows) one. */
static ms_status make_layout(ms_ctx *cx, cublasLtMatrixLayout_t *out, long scalar,
                             const long shape[3], const product_key *key, long stride)
{
    long rows = shape[0], cols = shape[1], ld = shape[2];
    int32_t num_batch = (int32_t)key->num_batch;
    int64_t offset = stride;
    TRY_BLAS(cx, blas.layout_create(out, data_type(scalar), (uint64_t)cols,
                                    (uint64_t)rows, ld));
    TRY_BLAS(cx, blas.layout_set(*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &num_batch,
                                 sizeof num_batch));
    TRY_BLAS(cx, blas.layout_set(*out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                 &offset, sizeof offset));
    return MS_OK;
}

static ms_status make_layouts(ms_ctx *cx, ready_product *ready)
{
    const product_key *k = &ready->key;
    const long a[3] = {k->transpose_a ? k->k : k->m, k->transpose_a ? k->m : k->k,
                       k->ld_a};
    const long b[3] = {k->transpose_b ? k->n : k->k, k->transpose_b ? k->k : k->n,
                       k->ld_b};
    const long c[3] = {k->m, k->n, k->ld_c};
    MS_TRY(make_layout(cx, &ready->a, k->type, a, k, k->stride_a));
    MS_TRY(make_layout(cx, &ready->b, k->type_b, b, k, k->stride_b));
    return make_layout(cx, &ready->c, k->result, c, k, k->stride_c);
}

/* Sets FP8 scales; cuBLASLt's A is the product's b, because operands are swapped. */
static ms_status set_scales(ms_ctx *cx, cublasLtMatmulDesc_t desc, const ms_cuda_gemm *p)
{
    if (!ms_scalar_is_fp8(p->type))
        return MS_OK;
    TRY_BLAS(cx, blas.desc_set(desc, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &p->scale_b,
                               sizeof p->scale_b));
    TRY_BLAS(cx, blas.desc_set(desc, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &p->scale_a,
                               sizeof p->scale_a));
    return MS_OK;
}

static ms_status make_desc(ms_ctx *cx, ready_product *ready, const ms_cuda_gemm *p)
{
    const product_key *k = &ready->key;
    bool is_double = k->type == MS_SCALAR_FP64;
    /* fp32 operands are multiplied in fp32, not in TF32 */
    cublasComputeType_t compute = is_double ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F;
    int32_t op_a = k->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
            op_b = k->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    TRY_BLAS(
        cx, blas.desc_create(&ready->desc, compute, is_double ? CUDA_R_64F : CUDA_R_32F));
    TRY_BLAS(cx,
             blas.desc_set(ready->desc, CUBLASLT_MATMUL_DESC_TRANSA, &op_a, sizeof op_a));
    TRY_BLAS(cx,
             blas.desc_set(ready->desc, CUBLASLT_MATMUL_DESC_TRANSB, &op_b, sizeof op_b));
    int8_t fast = 1;
    if (k->fast)
        TRY_BLAS(cx, blas.desc_set(ready->desc, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast,
                                   sizeof fast));
    return set_scales(cx, ready->desc, p);
}

static ms_status set_preference(ms_ctx *cx, cublasLtMatmulPreference_t preference,
                                const product_key *key, size_t workspace_bytes)
{
    uint64_t most_bytes = workspace_bytes;
    const struct {
        cublasLtMatmulPreferenceAttributes_t attribute;
        uint32_t value;
    } settings[] = {{CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                     CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE},
                    {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, (uint32_t)key->align_b},
                    {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, (uint32_t)key->align_a},
                    {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, (uint32_t)key->align_c},
                    {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, (uint32_t)key->align_c}};
    TRY_BLAS(cx, blas.preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                     &most_bytes, sizeof most_bytes));
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        TRY_BLAS(cx, blas.preference_set(preference, settings[i].attribute,
                                         &settings[i].value, sizeof settings[i].value));
    return MS_OK;
}

static ms_status choose_algorithm(ms_ctx *cx, const ms_cuda_gemms *p,
                                  ready_product *ready)
{
    const product_key *k = &ready->key;
    cublasLtMatmulPreference_t preference = NULL;
    cublasLtMatmulHeuristicResult_t found = {0};
    int num_found = 0;
    TRY_BLAS(cx, blas.preference_create(&preference));
    ms_status status = set_preference(cx, preference, k, p->workspace_bytes);
    cublasStatus_t answer = CUBLAS_STATUS_SUCCESS;
    if (status == MS_OK)
        answer = blas.get_heuristic(p->handle, ready->desc, ready->b, ready->a, ready->c,
                                    ready->c, preference, 1, &found, &num_found);
    blas.preference_destroy(preference);
    MS_TRY(status);
    if (answer == CUBLAS_STATUS_SUCCESS)
        answer = num_found > 0 ? found.state : CUBLAS_STATUS_NOT_SUPPORTED;
    if (answer != CUBLAS_STATUS_SUCCESS && answer != CUBLAS_STATUS_NOT_SUPPORTED &&
        answer != CUBLAS_STATUS_INVALID_VALUE)
        return blas_failed(cx, answer, "cublasLtMatmulAlgoGetHeuristic");
    ready->answer = answer;
    ready->algorithm = found.algo;
    ready->workspace_bytes = found.workspaceSize;
    return MS_OK;
}

/* The cache entry (descriptors, algorithm) of a GEMM, made if missing; NULL on error. */
static ready_product *find_ready(ms_ctx *cx, ms_cuda_gemms *p,
                                 const ms_cuda_gemm *product)
{
    product_key key = key_of(product);
    if (!grow(p)) {
        ms_fail(cx, MS_EIO, MS_NOWHERE, "no memory for a matrix product");
        return NULL;
    }
    ready_product *ready = slot_of(p->ready, p->capacity, &key);
    if (ready->is_set)
        return ready;
    ready->key = key;
    ms_status status = make_desc(cx, ready, product);
    if (status == MS_OK)
        status = make_layouts(cx, ready);
    if (status == MS_OK)
        status = choose_algorithm(cx, p, ready);
    if (status != MS_OK) {
        destroy_ready(ready);
        return NULL;
    }
    ready->is_set = true;
    p->num_ready++;
    return ready;
}

/* ---- state of a device ---- */

static ms_status open_products(ms_ctx *cx, ms_cuda_device *device)
{
    char reason[MS_CUDA_REASON];
    if (device == NULL)
        return ms_fail(cx, MS_EIO, MS_NOWHERE, "the thread has entered no GPU");
    if (device->products != NULL)
        return MS_OK;
    if (ms_cuda_gemm_version(reason) == 0)
        return ms_fail(cx, MS_EIO, MS_NOWHERE, "%s", reason);
    cublasLtHandle_t handle = NULL;
    TRY_BLAS(cx, blas.create(&handle));
    ms_cuda_gemms *made = calloc(1, sizeof *made);
    if (made == NULL) {
        blas.destroy(handle);
        return ms_fail(cx, MS_EIO, MS_NOWHERE, "no memory for matrix products");
    }
    pthread_mutex_init(&made->lock, NULL);
    made->handle = handle;
    made->workspace_bytes =
        device->major >= HOPPER_MAJOR ? WORKSPACE_BYTES_HOPPER : WORKSPACE_BYTES;
    device->products = made;
    return MS_OK;
}

void ms_cuda_close_gemms(ms_cuda_gemms *p)
{
    if (p == NULL)
        return;
    forget_all(p);
    for (int i = 0; i < p->num_workspaces; i++)
        (void)cudaFree(p->workspaces[i].memory);
    blas.destroy(p->handle);
    pthread_mutex_destroy(&p->lock);
    free(p->ready);
    free(p);
}

static ms_status workspace_of(ms_ctx *cx, ms_cuda_gemms *p, cudaStream_t stream,
                              void **out)
{
    for (int i = 0; i < p->num_workspaces; i++) {
        *out = p->workspaces[i].memory;
        if (p->workspaces[i].stream == stream)
            return MS_OK;
    }
    if (p->num_workspaces == MAX_WORKSPACES)
        return ms_fail(cx, MS_EIO, MS_NOWHERE, "matrix products on more than %d streams",
                       MAX_WORKSPACES);
    MS_TRY_CUDA(cx, cudaMalloc(out, p->workspace_bytes));
    p->workspaces[p->num_workspaces++] = (workspace){stream, *out};
    return MS_OK;
}

/* ---- running a product ---- */

static ms_status no_algorithm(ms_ctx *cx, const ready_product *ready)
{
    const product_key *k = &ready->key;
    return ms_fail(
        cx, MS_EIO, MS_NOWHERE,
        "cuBLASLt has no algorithm for %s to %s, m %ld, n %ld, k %ld, batch %ld: %s",
        ms_scalar_names[k->type], ms_scalar_names[k->result], k->m, k->n, k->k,
        k->num_batch, blas.status_string(ready->answer));
}

/* A GEMM with k = 0 sets c to zeros, or leaves c unchanged if it adds to c. */
static ms_status run_empty(ms_ctx *cx, cudaStream_t stream, const ms_cuda_gemm *p)
{
    long num_batch = p->num_batch > 1 ? p->num_batch : 1;
    size_t element = ms_scalar_bytes(p->result);
    for (long i = 0; i < num_batch && !p->add; i++) {
        unsigned char *to = (unsigned char *)p->c + (size_t)(i * p->stride_c) * element;
        MS_TRY_CUDA(cx, cudaMemset2DAsync(to, (size_t)p->ld_c * element, 0,
                                          (size_t)p->n * element, (size_t)p->m, stream));
    }
    return MS_OK;
}

static ms_status run_locked(ms_ctx *cx, ms_cuda_gemms *products, cudaStream_t stream,
                            const ms_cuda_gemm *p)
{
    void *memory = NULL;
    float one = 1, beta = p->add ? 1 : 0;
    double one_fp64 = 1, beta_fp64 = p->add ? 1 : 0;
    bool is_double = p->type == MS_SCALAR_FP64;
    const ready_product *ready = find_ready(cx, products, p);
    if (ready == NULL)
        return MS_EIO;
    if (ready->answer != CUBLAS_STATUS_SUCCESS)
        return no_algorithm(cx, ready);
    MS_TRY(workspace_of(cx, products, stream, &memory));
    MS_TRY(set_scales(cx, ready->desc, p));
    TRY_BLAS(cx, blas.matmul(products->handle, ready->desc,
                             is_double ? (const void *)&one_fp64 : (const void *)&one,
                             p->b, ready->b, p->a, ready->a,
                             is_double ? (const void *)&beta_fp64 : (const void *)&beta,
                             p->c, ready->c, p->c, ready->c, &ready->algorithm, memory,
                             ready->workspace_bytes, stream));
    return MS_OK;
}

ms_status ms_cuda_library_gemm(ms_ctx *cx, ms_cuda_stream *stream, const ms_cuda_gemm *p)
{
    ms_cuda_device *device = ms_cuda_entered();
    if (p->m == 0 || p->n == 0)
        return MS_OK;
    if (p->k == 0)
        return run_empty(cx, ms_cuda_stream_of(stream), p);
    MS_TRY(open_products(cx, device));
    pthread_mutex_lock(&device->products->lock);
    ms_status status = run_locked(cx, device->products, ms_cuda_stream_of(stream), p);
    pthread_mutex_unlock(&device->products->lock);
    return status;
}

ms_status ms_cuda_library_has_gemm(ms_ctx *cx, const ms_cuda_gemm *p, bool *has)
{
    ms_cuda_device *device = ms_cuda_entered();
    *has = true;
    if (p->m == 0 || p->n == 0 || p->k == 0)
        return MS_OK;
    MS_TRY(open_products(cx, device));
    pthread_mutex_lock(&device->products->lock);
    const ready_product *ready = find_ready(cx, device->products, p);
    if (ready != NULL)
        *has = ready->answer == CUBLAS_STATUS_SUCCESS;
    pthread_mutex_unlock(&device->products->lock);
    return ready != NULL ? MS_OK : MS_EIO;
}
