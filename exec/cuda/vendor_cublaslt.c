/* Matrix products (GEMMs) by cuBLASLt, whose matrices are column-major: a row-major c = a
 * b is computed as c' = b' a' on the same memory.
 *
 * Results are bitwise reproducible: the same GEMM always takes the same algorithm, the
 * first of the library's heuristic, which depends on shapes, types and alignments alone,
 * or the one of a table of choices (exec/cuda/cuda_gemm_choices.h), which is filled by
 * timing; partial sums of split-k GEMMs are added in fp32 in a separate pass, never in
 * the order in which thread blocks end. */
#include "exec/cuda/vendor_gemm_timing.h"

#include <cublasLt.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Workspace of a GEMM. cublasSetWorkspace's documentation advises 4 MiB, from Hopper on
 * 32; more leaves the heuristic more algorithms to choose from. */
#define WORKSPACE_BYTES        ((size_t)32 << 20)
#define WORKSPACE_BYTES_HOPPER ((size_t)64 << 20)
#define HOPPER_MAJOR           9
#define FIRST_CAPACITY         256
/* Most cached GEMMs; then all are dropped. */
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

/* An algorithm of the library's heuristic. */
typedef struct algorithm {
    cublasLtMatmulAlgo_t data;
    size_t workspace_bytes;
} algorithm;

typedef struct ready_product {
    bool is_set;
    ms_cuda_gemm_key key;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t layouts[3]; /* a, b and c */
    long sizes[3];                     /* m, n and k that the layouts have */
    cublasStatus_t answer;             /* CUBLAS_STATUS_SUCCESS: there is a candidate */
    int num_candidates;
    algorithm candidates[MS_CUDA_GEMM_CANDIDATES];
    int chosen; /* index of the candidate in use; -1: not chosen yet */
} ready_product;

struct ms_cuda_gemms {
    pthread_mutex_t lock;
    cublasLtHandle_t handle;
    size_t workspace_bytes;
    ms_cuda_stream_workspaces workspaces;
    ready_product *ready;       /* hash table with open addressing */
    size_t num_ready, capacity; /* capacity: a power of 2, at least twice num_ready */
};

static ready_product *slot_of(ready_product *ready, size_t capacity,
                              const ms_cuda_gemm_key *key)
{
    size_t i = ms_cuda_gemm_key_hash(key) & (capacity - 1);
    while (ready[i].is_set && memcmp(&ready[i].key, key, sizeof *key) != 0)
        i = (i + 1) & (capacity - 1);
    return &ready[i];
}

static void destroy_ready(ready_product *ready)
{
    for (int i = 0; i < 3; i++)
        if (ready->layouts[i] != NULL)
            blas.layout_destroy(ready->layouts[i]);
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

/* ---- preparing a product ---- */

static cudaDataType_t data_type(long scalar)
{
    return scalar == MS_SCALAR_BF16   ? CUDA_R_16BF
           : scalar == MS_SCALAR_FP64 ? CUDA_R_64F
           : scalar == MS_SCALAR_E4M3 ? CUDA_R_8F_E4M3
           : scalar == MS_SCALAR_E5M2 ? CUDA_R_8F_E5M2
                                      : CUDA_R_32F;
}

/* Row-major matrices of a GEMM as they are stored. */
typedef struct stored_shapes {
    long rows[3], cols[3];
} stored_shapes;

static stored_shapes shapes_of(bool transpose_a, bool transpose_b, const long mnk[3])
{
    long m = mnk[0], n = mnk[1], k = mnk[2];
    return (stored_shapes){{transpose_a ? k : m, transpose_b ? n : k, m},
                           {transpose_a ? m : k, transpose_b ? k : n, n}};
}

/* Describes a row-major (rows, cols) matrix as a column-major (cols, rows) one. */
static ms_status make_layout(ms_ctx *cx, cublasLtMatrixLayout_t *out, long scalar,
                             const long shape[3], const ms_cuda_gemm_key *key,
                             long stride)
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
    const ms_cuda_gemm_key *k = &ready->key;
    const long scalars[] = {k->type, k->type_b, k->result},
               lds[] = {k->ld_a, k->ld_b, k->ld_c},
               strides[] = {k->stride_a, k->stride_b, k->stride_c};
    stored_shapes s =
        shapes_of(k->transpose_a, k->transpose_b, (const long[]){k->m, k->n, k->k});
    for (int i = 0; i < 3; i++)
        MS_TRY(make_layout(cx, &ready->layouts[i], scalars[i],
                           (const long[]){s.rows[i], s.cols[i], lds[i]}, k, strides[i]));
    memcpy(ready->sizes, (const long[]){k->m, k->n, k->k}, sizeof ready->sizes);
    return MS_OK;
}

/* Gives the layouts the sizes of the GEMM: a key stands for all that round to its own. */
static ms_status set_sizes(ms_ctx *cx, ready_product *ready, const ms_cuda_gemm *p)
{
    const long sizes[] = {p->m, p->n, p->k};
    if (memcmp(ready->sizes, sizes, sizeof sizes) == 0)
        return MS_OK;
    memcpy(ready->sizes, sizes, sizeof sizes);
    stored_shapes s = shapes_of(p->transpose_a, p->transpose_b, sizes);
    for (int i = 0; i < 3; i++) {
        uint64_t rows = (uint64_t)s.cols[i], cols = (uint64_t)s.rows[i];
        TRY_BLAS(cx, blas.layout_set(ready->layouts[i], CUBLASLT_MATRIX_LAYOUT_ROWS,
                                     &rows, sizeof rows));
        TRY_BLAS(cx, blas.layout_set(ready->layouts[i], CUBLASLT_MATRIX_LAYOUT_COLS,
                                     &cols, sizeof cols));
    }
    return MS_OK;
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
    const ms_cuda_gemm_key *k = &ready->key;
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
                                const ms_cuda_gemm_key *key, size_t workspace_bytes)
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

/* Asks the heuristic for candidates: all that may be chosen, or the first. */
static ms_status find_candidates(ms_ctx *cx, const ms_cuda_device *device,
                                 ready_product *ready)
{
    const ms_cuda_gemms *p = device->products;
    cublasLtMatmulPreference_t preference = NULL;
    cublasLtMatmulHeuristicResult_t found[MS_CUDA_GEMM_CANDIDATES] = {0};
    int num_found = 0, most = device->choices != NULL ? MS_CUDA_GEMM_CANDIDATES : 1;
    TRY_BLAS(cx, blas.preference_create(&preference));
    ms_status status = set_preference(cx, preference, &ready->key, p->workspace_bytes);
    cublasStatus_t answer = CUBLAS_STATUS_SUCCESS;
    if (status == MS_OK)
        answer = blas.get_heuristic(
            p->handle, ready->desc, ready->layouts[1], ready->layouts[0],
            ready->layouts[2], ready->layouts[2], preference, most, found, &num_found);
    blas.preference_destroy(preference);
    MS_TRY(status);
    if (answer == CUBLAS_STATUS_SUCCESS)
        answer = num_found > 0 ? found[0].state : CUBLAS_STATUS_NOT_SUPPORTED;
    if (answer != CUBLAS_STATUS_SUCCESS && answer != CUBLAS_STATUS_NOT_SUPPORTED &&
        answer != CUBLAS_STATUS_INVALID_VALUE)
        return blas_failed(cx, answer, "cublasLtMatmulAlgoGetHeuristic");
    ready->answer = answer;
    ready->chosen = device->choices != NULL ? -1 : 0;
    for (int i = 0; i < num_found && found[i].state == CUBLAS_STATUS_SUCCESS; i++)
        ready->candidates[ready->num_candidates++] =
            (algorithm){found[i].algo, found[i].workspaceSize};
    return MS_OK;
}

/* The cache entry (descriptors, candidates) of a GEMM, made if missing; NULL on error. */
static ready_product *find_ready(ms_ctx *cx, const ms_cuda_device *device,
                                 const ms_cuda_gemm *product)
{
    ms_cuda_gemms *p = device->products;
    ms_cuda_gemm_key key = ms_cuda_gemm_key_of(product);
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
        status = find_candidates(cx, device, ready);
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
    ms_cuda_stream_workspaces_close(&p->workspaces);
    blas.destroy(p->handle);
    pthread_mutex_destroy(&p->lock);
    free(p->ready);
    free(p);
}

static ms_status workspace_of(ms_ctx *cx, ms_cuda_gemms *p, cudaStream_t stream,
                              void **out)
{
    ms_cuda_stream_workspace *w = ms_cuda_stream_workspace_of(&p->workspaces, stream);
    if (w == NULL)
        return ms_fail(cx, MS_EIO, MS_NOWHERE, "matrix products on more than %d streams",
                       MS_CUDA_MAX_WORKSPACES);
    if (w->memory == NULL)
        MS_TRY_CUDA(cx, cudaMalloc(&w->memory, p->workspace_bytes));
    *out = w->memory;
    return MS_OK;
}

/* ---- running a product ---- */

static ms_status no_algorithm(ms_ctx *cx, const ready_product *ready)
{
    const ms_cuda_gemm_key *k = &ready->key;
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

/* A GEMM about to run. */
typedef struct running {
    const ms_cuda_device *device;
    ready_product *ready;
    const ms_cuda_gemm *gemm;
    void *workspace;
    void *result; /* where it writes; it always adds to gemm->c */
} running;

static cublasStatus_t run_candidate(const running *r, int which, cudaStream_t stream)
{
    const ready_product *ready = r->ready;
    const ms_cuda_gemm *p = r->gemm;
    const algorithm *chosen = &ready->candidates[which];
    float one = 1, beta = p->add ? 1 : 0;
    double one_fp64 = 1, beta_fp64 = p->add ? 1 : 0;
    bool is_double = p->type == MS_SCALAR_FP64;
    return blas.matmul(r->device->products->handle, ready->desc,
                       is_double ? (const void *)&one_fp64 : (const void *)&one, p->b,
                       ready->layouts[1], p->a, ready->layouts[0],
                       is_double ? (const void *)&beta_fp64 : (const void *)&beta, p->c,
                       ready->layouts[2], r->result, ready->layouts[2], &chosen->data,
                       r->workspace, chosen->workspace_bytes, stream);
}

static bool try_candidate(void *state, int which, cudaStream_t stream)
{
    return run_candidate(state, which, stream) == CUBLAS_STATUS_SUCCESS;
}

/* Times the candidates into `choice`, on the GEMM's own operands. A GEMM that adds to c
 * writes elsewhere; without memory for that nothing is timed. Memory comes from the
 * stream's pool, since cudaFree would wait for transfers that may wait for this rank. */
static ms_status time_candidates(ms_ctx *cx, const running *r, cudaStream_t stream,
                                 ms_cuda_gemm_choice *choice)
{
    const ms_cuda_gemm *p = r->gemm;
    long num_batch = p->num_batch > 1 ? p->num_batch : 1;
    size_t count = (size_t)((num_batch - 1) * p->stride_c + (p->m - 1) * p->ld_c + p->n);
    double seconds[MS_CUDA_GEMM_CANDIDATES];
    void *scratch = NULL;
    running timed = *r;
    if (p->add) {
        if (cudaMallocAsync(&scratch, count * ms_scalar_bytes(p->result), stream) !=
            cudaSuccess) {
            (void)cudaGetLastError();
            return MS_OK;
        }
        timed.result = scratch;
    }
    const ms_cuda_candidates all = {r->ready->num_candidates, try_candidate, &timed};
    ms_status status = ms_cuda_time_candidates(cx, stream, &all, seconds);
    if (scratch != NULL)
        (void)cudaFreeAsync(scratch, stream);
    MS_TRY(status);
    int fastest = ms_cuda_fastest_candidate(all.num, seconds);
    if (!isfinite(seconds[fastest]))
        return MS_OK;
    choice->candidate = fastest;
    choice->time_s = seconds[fastest];
    choice->first_s = seconds[0];
    return MS_OK;
}

/* Chooses a candidate: the table's, else the fastest, or the first if nothing is timed;
 * the table then has it for all ranks. */
static ms_status choose(ms_ctx *cx, const running *r, cudaStream_t stream)
{
    const ms_cuda_device *device = r->device;
    ms_cuda_gemm_choice choice = {.device = device->name,
                                  .library_version = (long)blas.get_version(),
                                  .key = r->ready->key,
                                  .time_s = NAN,
                                  .first_s = NAN};
    if (!ms_cuda_gemm_choices_find(device->choices, &choice, &choice)) {
        if (device->times_gemms)
            MS_TRY(time_candidates(cx, r, stream, &choice));
        choice = ms_cuda_gemm_choices_add(device->choices, &choice);
    }
    if (choice.candidate >= r->ready->num_candidates) {
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                       "the file of GEMM algorithms has candidate %ld of m %ld, n %ld, k "
                       "%ld, but cuBLASLt has %d",
                       choice.candidate, choice.key.m, choice.key.n, choice.key.k,
                       r->ready->num_candidates);
    }
    r->ready->chosen = (int)choice.candidate;
    return MS_OK;
}

static ms_status run_locked(ms_ctx *cx, const ms_cuda_device *device, cudaStream_t stream,
                            const ms_cuda_gemm *p)
{
    running r = {device, find_ready(cx, device, p), p, NULL, p->c};
    if (r.ready == NULL)
        return MS_EIO;
    if (r.ready->answer != CUBLAS_STATUS_SUCCESS)
        return no_algorithm(cx, r.ready);
    MS_TRY(workspace_of(cx, device->products, stream, &r.workspace));
    MS_TRY(set_scales(cx, r.ready->desc, p));
    MS_TRY(set_sizes(cx, r.ready, p));
    if (r.ready->chosen < 0)
        MS_TRY(choose(cx, &r, stream));
    cublasStatus_t answer = run_candidate(&r, r.ready->chosen, stream);
    if (answer != CUBLAS_STATUS_SUCCESS && p->varies != MS_CUDA_GEMM_NONE) {
        /* the algorithm is for the rounded size only: ask for this one */
        ms_cuda_gemm exact = *p;
        exact.varies = MS_CUDA_GEMM_NONE;
        return run_locked(cx, device, stream, &exact);
    }
    return answer == CUBLAS_STATUS_SUCCESS ? MS_OK
                                           : blas_failed(cx, answer, "cublasLtMatmul");
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
    ms_status status = run_locked(cx, device, ms_cuda_stream_of(stream), p);
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
    const ready_product *ready = find_ready(cx, device, p);
    if (ready != NULL)
        *has = ready->answer == CUBLAS_STATUS_SUCCESS;
    pthread_mutex_unlock(&device->products->lock);
    return ready != NULL ? MS_OK : MS_EIO;
}
