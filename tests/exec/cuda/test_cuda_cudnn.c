/* Tests of attention by cuDNN without a GPU: the graphs are executed by a fake of the
 * library, which gives the numbers of attention; and the library itself, where it is
 * installed, has engines for them on the properties of real devices. */
#include "tests/support/attention_cases.h"
#include "tests/support/cuda_cases.h"
#include "tests/test.h"

#if __has_include(<cudnn_graph.h>)

/* CUDA runtime functions that the tested code calls, replaced by mocks */
#define cudaMallocAsync  test_cuda_malloc
#define cudaFreeAsync    test_cuda_free_async
#define cudaFree         test_cuda_free
#define cudaMemsetAsync  test_cuda_memset
#define cudaGetLastError test_cuda_last_error
#ifndef MS_WITH_CUDNN
#define MS_WITH_CUDNN
#endif
#include "exec/cuda/vendor_cudnn.c"
#include "exec/cuda/vendor_cudnn_attention.c"
#undef ALIGNMENT
#include "exec/cuda/vendor_cudnn_graph.c"
#include "exec/cuda/vendor_cudnn_plan.c"
#include "exec/cuda/vendor_workspaces.c"
#include "tests/support/cudnn_fake.h"
#include "tests/support/library_symbols.h"

/* ---- the run time, and what else the driver has ---- */

static int num_allocated;
static bool is_missing, is_full;
static ms_cuda_device device = {.ordinal = 0, .major = 9};

cudaError_t test_cuda_malloc(void **memory, size_t bytes, cudaStream_t stream)
{
    (void)stream;
    if (is_full)
        return cudaErrorMemoryAllocation;
    *memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
    assert_non_null(*memory);
    memset(*memory, 0x7f, bytes);
    num_allocated++;
    return cudaSuccess;
}

cudaError_t test_cuda_free(void *memory)
{
    num_allocated -= memory != NULL;
    free(memory);
    return cudaSuccess;
}

cudaError_t test_cuda_free_async(void *memory, cudaStream_t stream)
{
    (void)stream;
    return test_cuda_free(memory);
}

cudaError_t test_cuda_memset(void *memory, int value, size_t bytes, cudaStream_t stream)
{
    (void)stream;
    memset(memory, value, bytes);
    return cudaSuccess;
}

cudaError_t test_cuda_last_error(void)
{
    return cudaSuccess;
}

ms_cuda_device *ms_cuda_entered(void)
{
    return &device;
}

ms_status ms_cuda_failed(ms_ctx *cx, cudaError_t error, const char *call)
{
    return ms_fail(cx, MS_EIO, MS_NOWHERE, "%s: %d", call, (int)error);
}

bool ms_cuda_library_open(const ms_cuda_library *which, void *functions,
                          char reason[MS_CUDA_REASON])
{
    static const ms_cudnn_table fake = {.get_version = cudnn_fake_get_version,
                                        .error_string = cudnn_fake_error_string,
                                        .last_error = cudnn_fake_last_error,
                                        .create = cudnn_fake_create,
                                        .destroy = cudnn_fake_destroy,
                                        .set_stream = cudnn_fake_set_stream,
                                        .make = cudnn_fake_make,
                                        .drop = cudnn_fake_drop,
                                        .set = cudnn_fake_set,
                                        .get = cudnn_fake_get,
                                        .finalize = cudnn_fake_finalize,
                                        .execute = cudnn_fake_execute};
    assert_string_equal(which->what, "cuDNN");
    snprintf(reason, MS_CUDA_REASON, "%s", is_missing ? "cuDNN is missing" : "");
    memcpy(functions, &fake, sizeof fake);
    return !is_missing;
}

static void begin(void)
{
    cudnn_fake = (cudnn_fake_state){.num_configs = 2, .workspace_bytes = 1000};
    is_missing = is_full = false;
    pthread_once(&load_once, load);
    load(); /* anew */
}

static void end(void)
{
    ms_cuda_close_fused(device.fused);
    device.fused = NULL;
    ASSERT_TEXT(cudnn_fake.defect, "");
    assert_int_equal(cudnn_fake.num_defects, 0);
    assert_int_equal(cudnn_fake.num_live, 0);
    assert_int_equal(num_allocated, 0);
}

static const ms_cuda_driver driver = {.name = "cudnn",
                                      .attention = ms_cuda_library_attention};

/* ---- meaning of the graphs ---- */

static void run_cases(const char *const *cases, ms_attention_library *by)
{
    by->driver = &driver;
    ms_attention_cases_run_by(cases, by);
}

static void graphs_mean_attention(void **state)
{
    (void)state;
    static const char *const cases[] = {"b 1 s 1 n 1 g 1 d 64 w 64",
                                        "b 2 s 17 n 2 g 2 d 128 w 128",
                                        "b 1 s 33 n 4 g 4 d 64 w 64",
                                        "b 1 s 20 n 3 g 3 d 256 w 256",
                                        "b 1 s 18 n 2 g 2 d 192 w 128",
                                        "b 1 s 40 n 1 g 1 d 8 w 16",
                                        "b 1 s 40 n 2 g 2 d 64 w 64 window 40",
                                        NULL};
    for (int choice = MS_RUN_ATTENTION_CUDNN;
         choice <= MS_RUN_ATTENTION_CUDNN_DETERMINISTIC; choice++) {
        begin();
        ms_attention_library by = {.choice = (ms_run_attention)choice};
        run_cases(cases, &by);
        assert_int_equal(by.use.num_by_own, 0);
        assert_int_equal(by.use.num_by_library, 4 * 7);
        assert_int_equal(cudnn_fake.num_executed, 4 * 7);
        assert_int_equal(cudnn_fake.num_plans, 2 * 6 + 2); /* two per shape */
        end();
    }
}

static void graphs_mean_attention_of_shared_heads(void **state)
{
    (void)state;
    static const char *const cases[] = {"b 2 s 17 n 8 g 1 d 64 w 64",
                                        "b 1 s 35 n 8 g 2 d 128 w 128",
                                        "b 2 s 9 n 6 g 3 d 64 w 64", NULL};
    for (int choice = MS_RUN_ATTENTION_CUDNN;
         choice <= MS_RUN_ATTENTION_CUDNN_DETERMINISTIC; choice++) {
        begin();
        ms_attention_library by = {.choice = (ms_run_attention)choice};
        run_cases(cases, &by);
        assert_int_equal(by.use.num_by_library, 4 * 3);
        assert_int_equal(by.use.num_by_own, 0);
        end();
    }
}

/* Every query without a mask sees all keys; there may be more or fewer of them. */
static void graphs_without_a_mask(void **state)
{
    (void)state;
    enum {
        S = 3,
        T = 5,
        D = 8
    };
    static _Alignas(16) unsigned short q[S * D], k[T * D], v[T * D], o[S * D];
    static _Alignas(16) float lse[S];
    double from[T * D], scores[T];
    begin();
    for (int i = 0; i < T * D; i++)
        from[i] = (i * 7 % 16) / 8.0 - 1;
    ms_case_store(MS_SCALAR_BF16, q, from, (long)S * D);
    ms_case_store(MS_SCALAR_BF16, k, from, (long)T * D);
    ms_case_store(MS_SCALAR_BF16, v, from, (long)T * D);
    const ms_cuda_fused how = {.shape = {1, S, T, 1, 1, D, D, 0, 0, 0},
                               .scale = 0.25,
                               .q = q,
                               .k = k,
                               .v = v,
                               .o = o,
                               .lse = lse};
    const char *why = "unset";
    ASSERT_OK(ms_cuda_library_attention(test_cx(), NULL, &how, &why), test_cx());
    assert_null(why);
    for (int i = 0; i < S; i++) {
        double sum = 0;
        for (int j = 0; j < T; j++) {
            scores[j] = 0;
            for (int c = 0; c < D; c++)
                scores[j] += 0.25 * from[i * D + c] * from[j * D + c];
            sum += exp(scores[j]);
        }
        assert_float_equal(lse[i], log(sum), 1e-6);
        for (int c = 0; c < D; c++) {
            double want = 0;
            for (int j = 0; j < T; j++)
                want += exp(scores[j]) / sum * from[j * D + c];
            assert_float_equal(ms_case_from_bf16(o[i * D + c]), want, 0x1p-7);
        }
    }
    end();
}

/* ---- refusals ---- */

static void masks_and_blocks_are_left_to_own_kernels(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "b 1 s 66 n 2 g 1 d 64 w 64 ranks 2",   "b 1 s 33 n 2 g 1 d 64 w 64 window 7",
        "b 1 s 34 n 2 g 2 d 16 w 16 head-tail", "b 1 s 19 n 2 g 2 d 7 w 67",
        "b 1 s 19 n 2 g 2 d 64 w 64 unaligned", NULL};
    begin();
    ms_attention_library by = {.choice = MS_RUN_ATTENTION_CUDNN_DETERMINISTIC};
    run_cases(cases, &by);
    assert_int_equal(by.use.num_by_library, 0);
    assert_true(by.use.num_by_own > 0);
    assert_non_null(strstr(by.use.why, "own kernels"));
    assert_int_equal(cudnn_fake.num_plans, 0);
    end();
}

/* Runs one shape, which the library refuses; returns the reason. */
static const char *refused(const char *expected)
{
    static const char *const cases[] = {"b 1 s 17 n 2 g 1 d 64 w 64", NULL};
    static ms_attention_library by;
    by = (ms_attention_library){.choice = MS_RUN_ATTENTION_CUDNN_DETERMINISTIC};
    run_cases(cases, &by);
    assert_int_equal(by.use.num_by_library, 0);
    assert_int_equal(by.use.num_by_own, 4);
    if (strstr(by.use.why, expected) == NULL)
        fail_msg("\"%s\" lacks \"%s\"", by.use.why, expected);
    return by.use.why;
}

static void refusals_are_no_failures(void **state)
{
    (void)state;
    begin();
    cudnn_fake.num_configs = 0;
    refused("no engine");
    end();
    begin();
    cudnn_fake.num_bad_configs = 2;
    refused("an error");
    end();
    begin();
    cudnn_fake.execute_status = CUDNN_STATUS_NOT_SUPPORTED;
    refused("cudnnBackendExecute");
    assert_int_equal(cudnn_fake.num_executed, 2); /* never asked again */
    end();
    begin();
    cudnn_fake.create_status = CUDNN_STATUS_NOT_INITIALIZED;
    refused("cudnnCreate");
    end();
    begin();
    is_full = true;
    refused("no GPU memory");
    end();
    begin();
    static char streams[MS_CUDA_MAX_WORKSPACES];
    for (int i = 0; i < MS_CUDA_MAX_WORKSPACES; i++)
        assert_non_null(ms_cuda_stream_workspace_of(&open_state(&device)->workspaces,
                                                    (cudaStream_t)(void *)&streams[i]));
    refused("too many streams");
    end();
    begin();
    is_missing = true;
    load();
    refused("cuDNN is missing");
    end();
}

static void an_engine_that_fails_gives_way_to_the_next(void **state)
{
    (void)state;
    static const char *const cases[] = {"b 1 s 17 n 2 g 1 d 64 w 64", NULL};
    begin();
    cudnn_fake.num_bad_configs = 1;
    ms_attention_library by = {.choice = MS_RUN_ATTENTION_CUDNN};
    run_cases(cases, &by);
    assert_int_equal(by.use.num_by_library, 4);
    assert_int_equal(cudnn_fake.num_plans, 4);
    end();
}

static void plans_are_dropped_when_there_are_many(void **state)
{
    (void)state;
    static _Alignas(16) unsigned short x[2 * 80 * 8];
    static _Alignas(16) float lse[80];
    begin();
    for (long s = 1; s <= MAX_PLANS + 3; s++) {
        const ms_cuda_fused how = {.shape = {1, s, s, 1, 1, 8, 8, 1, 0, 0},
                                   .q = x,
                                   .k = x,
                                   .v = x,
                                   .o = x + 80 * 8,
                                   .lse = lse};
        const char *why;
        ASSERT_OK(ms_cuda_library_attention(test_cx(), NULL, &how, &why), test_cx());
        assert_null(why);
    }
    assert_int_equal(device.fused->num_ready, 3);
    assert_int_equal(num_allocated, 1);
    end();
}

/* ---- the library itself ---- */

/* Properties of a device as cuDNN writes them (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION):
 * of H100, A100 and B200 what selects kernels; clocks, caches and memory are an H100's. */
#define PROPERTIES                                                                       \
    "{\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],"         \
    "\"regsPerBlock\":65536,\"multiProcessorCount\":%d,\"warpSize\":32,"                 \
    "\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":%d,"             \
    "\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,"                 \
    "\"maxCtasPerSM\":32,\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,"          \
    "\"pciDeviceId\":0,\"isTccDriver\":0,\"supportCoopLaunch\":1,"                       \
    "\"smClockRateKHz\":1980000,\"memClockRateKHz\":2619000,\"l2CacheSize\":52428800,"   \
    "\"deviceName\":\"%s\",\"deviceVer\":%d,\"driverVer\":13000,\"cudaDeviceId\":0,"     \
    "\"totalGlobalMem\":85017755648}"

static const struct {
    const char *name;
    int num_sms, shared_bytes, version;
} devices[] = {{"NVIDIA A100-SXM4-80GB", 108, 166912, 800},
               {"NVIDIA H100 80GB HBM3", 132, 232448, 900},
               {"NVIDIA B200", 148, 232448, 1000}};

/* Opens cuDNN; false: it is not installed. Engines need the driver's library by its name,
 * for which the toolkit's stub suffices, whose calls fail. */
static bool open_cudnn(void)
{
    return open_all_symbols(&library, &ms_cudnn) &&
           (dlopen("libcuda.so.1", RTLD_NOW) != NULL ||
            open_installed("stubs/libcuda.so") != NULL);
}

static bool make_properties(int i, cudnnBackendDescriptor_t *out)
{
    char text[1024];
    int length = snprintf(text, sizeof text, PROPERTIES, devices[i].num_sms,
                          devices[i].shared_bytes, devices[i].name, devices[i].version);
    return ms_cudnn.make(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, out) ==
               CUDNN_STATUS_SUCCESS &&
           ms_cudnn.set(*out, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                        length + 1, text) == CUDNN_STATUS_SUCCESS &&
           ms_cudnn.finalize(*out) == CUDNN_STATUS_SUCCESS;
}

/* Whether the heuristic finds an engine; with `compiles` also whether its kernel can be
 * made: there is a plan, or one that fails only when the stub refuses to load it. */
static bool has_engine(const ms_cuda_fused_shape *shape, bool compiles,
                       cudnnBackendDescriptor_t properties, const char **why)
{
    static ms_cudnn_plan plan;
    cudnnBackendDescriptor_t configs[MOST_CONFIGS];
    const ms_cudnn_place place = {.properties = properties};
    bool has;
    plan = (ms_cudnn_plan){0};
    if (compiles) {
        ms_cudnn_plan_make(&plan, &place, shape);
        has = plan.desc != NULL || strstr(plan.why, "CUDA_DRIVER") != NULL;
    } else {
        ms_cudnn_add_attention(&plan.graph, shape);
        has = find_configs(&plan.graph, &place, configs) > 0;
    }
    *why = plan.why;
    ms_cudnn_graph_drop(&plan.graph);
    return has;
}

static void the_library_has_engines(void **state)
{
    (void)state;
    static const struct {
        ms_cuda_fused_shape shape;
        bool compiles;
        int least, most; /* versions of devices that have an engine */
    } wanted[] = {
        {{1, 8192, 8192, 32, 8, 128, 128, 1, 0, 0}, false, 800, 1000},
        {{1, 8192, 8192, 32, 8, 128, 128, 1, 1, 0}, true, 800, 1000},
        {{1, 2048, 2048, 32, 8, 128, 128, 1, 1, 1}, false, 800, 1000},
        {{2, 1000, 1000, 8, 8, 64, 64, 1, 0, 0}, true, 900, 900},
        {{2, 1000, 1000, 8, 8, 64, 64, 1, 1, 0}, false, 800, 1000},
        {{2, 256, 256, 8, 8, 96, 96, 1, 1, 0}, false, 800, 1000},
        {{2, 200, 300, 8, 4, 128, 128, 0, 1, 0}, false, 800, 1000},
        {{1, 1024, 1024, 8, 8, 256, 256, 1, 0, 0}, false, 800, 1000},
        {{1, 1024, 1024, 8, 8, 256, 256, 1, 1, 0}, false, 900, 900},
        {{1, 1024, 1024, 8, 8, 192, 128, 1, 1, 0}, false, 900, 1000},
    };
    /* the library does not release what it compiled, which a leak sanitizer reports */
    if (TEST_CASES(false, true) || !open_cudnn())
        skip();
    for (size_t d = 0; d < sizeof devices / sizeof *devices; d++) {
        cudnnBackendDescriptor_t properties;
        if (!make_properties((int)d, &properties))
            skip(); /* this version of cuDNN needs a device */
        for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
            const char *why = "";
            bool wants = devices[d].version >= wanted[i].least &&
                         devices[d].version <= wanted[i].most;
            if (wants &&
                !has_engine(&wanted[i].shape, wanted[i].compiles, properties, &why))
                fail_msg("%s, shape %zu: %s", devices[d].name, i, why);
        }
        (void)ms_cudnn.drop(properties);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_mean_attention),
        cmocka_unit_test(graphs_mean_attention_of_shared_heads),
        cmocka_unit_test(graphs_without_a_mask),
        cmocka_unit_test(masks_and_blocks_are_left_to_own_kernels),
        cmocka_unit_test(refusals_are_no_failures),
        cmocka_unit_test(an_engine_that_fails_gives_way_to_the_next),
        cmocka_unit_test(plans_are_dropped_when_there_are_many),
        cmocka_unit_test(the_library_has_engines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static void attention_by_cudnn(void **state)
{
    (void)state;
    skip(); /* needs cudnn_graph.h */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(attention_by_cudnn)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
