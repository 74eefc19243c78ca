/* Devices, memory, streams, events and copies by the CUDA run time, which is linked
 * statically, so that the program also starts without CUDA and reports the reason. */
#include "exec/cuda/vendor_priv.h"
#include "exec/launch/environment.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define HAVE_NVTX 1
#else
#define HAVE_NVTX 0
#endif

/* Least compute capability: bf16 tensor cores and asynchronous copies need Ampere. */
#define LEAST_MAJOR 8
#define HZ_PER_KHZ  1e3

extern const ms_cuda_driver ms_cuda_library_driver;

static _Thread_local ms_cuda_device *entered;

ms_cuda_device *ms_cuda_entered(void)
{
    return entered;
}

/* ---- errors ---- */

ms_status ms_cuda_failed(ms_ctx *cx, cudaError_t error, const char *call)
{
    (void)cudaGetLastError(); /* clears the CUDA run time's last error */
    return ms_fail(cx, MS_EIO, MS_NOWHERE, "%.*s: %s (%s)", (int)strcspn(call, "("), call,
                   cudaGetErrorString(error), cudaGetErrorName(error));
}

/* ---- libraries ---- */

/* Folders searched for CUDA libraries; "" is the dynamic loader's own search. */
static const char *const folders[] = {"", "/usr/local/cuda/lib64/",
                                      "/usr/local/cuda/targets/x86_64-linux/lib/",
                                      "/usr/local/cuda/targets/sbsa-linux/lib/", NULL};

/* Opens a library: the first of its files that opens. If none does, reports the error of
 * the first, since the others are other versions. */
static void *open_one_of(const ms_cuda_library *library, char reason[MS_CUDA_REASON])
{
    char first_error[MS_CUDA_REASON / 2] = "", path[MS_CUDA_REASON / 2];
    for (int folder = 0; folders[folder] != NULL; folder++) {
        for (int i = 0; library->files[i] != NULL; i++) {
            snprintf(path, sizeof path, "%s%s", folders[folder], library->files[i]);
            void *opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
            if (opened != NULL)
                return opened;
            const char *error = dlerror();
            if (first_error[0] == '\0' && error != NULL)
                snprintf(first_error, sizeof first_error, "%s", error);
        }
    }
    snprintf(
        reason, MS_CUDA_REASON,
        "%s cannot be opened: %s (LD_LIBRARY_PATH names other folders, such as those "
        "of pip's packages nvidia/*/lib)",
        library->what, first_error);
    return NULL;
}

bool ms_cuda_library_open(const ms_cuda_library *library, void *table,
                          char reason[MS_CUDA_REASON])
{
    void *opened = open_one_of(library, reason);
    if (opened == NULL)
        return false;
    for (const ms_cuda_symbol *s = library->symbols; s->name != NULL; s++) {
        void *address = dlsym(opened, s->name);
        if (address == NULL) {
            snprintf(reason, MS_CUDA_REASON, "%s is too old: it has no %s", library->what,
                     s->name);
            return false;
        }
        memcpy((unsigned char *)table + s->offset, &address, sizeof address);
    }
    return true;
}

/* ---- devices and their properties ---- */

static ms_status no_devices(ms_ctx *cx, cudaError_t error)
{
    int driver = 0, runtime = 0;
    (void)cudaDriverGetVersion(&driver);
    (void)cudaRuntimeGetVersion(&runtime);
    (void)cudaGetLastError();
    if (error == cudaErrorInsufficientDriver && driver == 0)
        return ms_fail(cx, MS_EIO, MS_NOWHERE,
                       "no NVIDIA driver on this machine (libcuda.so.1)");
    if (error == cudaErrorInsufficientDriver) {
        return ms_fail(cx, MS_EIO, MS_NOWHERE,
                       "the NVIDIA driver is for CUDA %d.%d, this program needs %d.%d",
                       driver / 1000, driver % 1000 / 10, runtime / 1000,
                       runtime % 1000 / 10);
    }
    if (error == cudaSuccess || error == cudaErrorNoDevice)
        return ms_fail(cx, MS_EIO, MS_NOWHERE,
                       "an NVIDIA driver (CUDA %d.%d), but no GPU that it may use",
                       driver / 1000, driver % 1000 / 10);
    return ms_cuda_failed(cx, error, "cudaGetDeviceCount");
}

#define MOST_QUEUES "32" /* CUDA programming guide, CUDA environment variables */

/* Asks CUDA, before it starts, for 32 hardware queues: sends sharing one can deadlock. */
static void request_hardware_queues(void)
{
    (void)setenv(MS_QUEUES_VARIABLE, MOST_QUEUES, 0);
}

/* Makes CUDA load all kernels at start. Loading one at its first launch may wait for all
 * work on the GPU (CUDA C++ Programming Guide, "Lazy Loading"). If ranks share the GPU,
 * that work may be a collective that waits for this rank, and so for this launch. */
static void load_kernels_eagerly(void)
{
    if (ms_nccl_shares_gpus())
        (void)setenv("CUDA_MODULE_LOADING", "EAGER", 0);
}

static ms_status find(ms_ctx *cx, int *num_devices)
{
    char reason[MS_CUDA_REASON];
    *num_devices = 0;
    request_hardware_queues();
    load_kernels_eagerly();
    cudaError_t error = cudaGetDeviceCount(num_devices);
    if (error != cudaSuccess || *num_devices == 0)
        return no_devices(cx, error);
    if (ms_cuda_gemm_version(reason) == 0)
        return ms_fail(cx, MS_EIO, MS_NOWHERE, "%s", reason);
    return MS_OK;
}

/* A device attribute; 0 if not reported. */
static double attribute(enum cudaDeviceAttr which, int ordinal)
{
    int value = 0;
    if (cudaDeviceGetAttribute(&value, which, ordinal) != cudaSuccess) {
        (void)cudaGetLastError();
        return 0;
    }
    return value;
}

static ms_status describe(ms_ctx *cx, int ordinal, ms_cuda_facts *out)
{
    struct cudaDeviceProp properties;
    char reason[MS_CUDA_REASON];
    MS_TRY_CUDA(cx, cudaGetDeviceProperties(&properties, ordinal));
    *out = (ms_cuda_facts){
        .major = properties.major,
        .minor = properties.minor,
        .num_sms = properties.multiProcessorCount,
        .num_queues = ms_cuda_num_queues(),
        .memory_bytes = (double)properties.totalGlobalMem,
        .shared_bytes = (double)properties.sharedMemPerBlockOptin,
        .l2_bytes = properties.l2CacheSize,
        .clock_hz = HZ_PER_KHZ * attribute(cudaDevAttrClockRate, ordinal),
        .memory_clock_hz = HZ_PER_KHZ * attribute(cudaDevAttrMemoryClockRate, ordinal),
        .bus_bits = properties.memoryBusWidth,
        .blas_version = ms_cuda_gemm_version(reason),
        .nccl_version = ms_cuda_comm_version(reason),
        .cudnn_version = ms_cuda_fused_version(reason)};
    snprintf(out->name, sizeof out->name, "%.*s", MS_CUDA_TEXT - 1, properties.name);
    MS_TRY_CUDA(cx, cudaDriverGetVersion(&out->driver_version));
    MS_TRY_CUDA(cx, cudaRuntimeGetVersion(&out->runtime_version));
    return MS_OK;
}

/* ---- devices ---- */

static void enter(ms_cuda_device *device)
{
    /* an error is returned again by the next CUDA call */
    (void)cudaSetDevice(device->ordinal);
    entered = device;
}

static ms_status open_device(ms_ctx *cx, int ordinal, ms_cuda_device **out)
{
    int major = 0, minor = 0;
    *out = NULL;
    MS_TRY_CUDA(
        cx, cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, ordinal));
    MS_TRY_CUDA(
        cx, cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, ordinal));
    if (major < LEAST_MAJOR)
        return ms_fail(cx, MS_EIO, MS_NOWHERE,
                       "GPU %d has compute capability %d.%d, kernels need %d.0", ordinal,
                       major, minor, LEAST_MAJOR);
    MS_TRY_CUDA(cx, cudaSetDevice(ordinal));
    ms_cuda_device *device = calloc(1, sizeof *device);
    if (device == NULL)
        return ms_fail(cx, MS_EIO, MS_NOWHERE, "no memory for a device");
    device->ordinal = ordinal;
    device->major = major;
    struct cudaDeviceProp properties;
    cudaError_t error = cudaGetDeviceProperties(&properties, ordinal);
    if (error != cudaSuccess) {
        free(device);
        return ms_cuda_failed(cx, error, "cudaGetDeviceProperties(");
    }
    snprintf(device->name, sizeof device->name, "%.*s", MS_CUDA_TEXT - 1,
             properties.name);
    enter(device);
    *out = device;
    return MS_OK;
}

static void choose_gemms(ms_cuda_device *device, ms_cuda_gemm_choices *choices,
                         bool times)
{
    device->choices = choices;
    device->times_gemms = times;
}

static void close_device(ms_cuda_device *device)
{
    if (device == NULL)
        return;
    enter(device);
    ms_cuda_close_gemms(device->products);
    ms_cuda_close_fused(device->fused);
    entered = NULL;
    free(device);
}

static ms_status memory(ms_ctx *cx, ms_cuda_device *device, double *free_bytes,
                        double *total_bytes)
{
    (void)device;
    size_t free_size = 0, total = 0;
    MS_TRY_CUDA(cx, cudaMemGetInfo(&free_size, &total));
    *free_bytes = (double)free_size;
    *total_bytes = (double)total;
    return MS_OK;
}

/* Returns `made`, or NULL on error. Clears the error of exhausted memory, so that `check`
 * does not report it. */
static void *memory_or_null(cudaError_t error, void *made)
{
    if (error == cudaSuccess)
        return made;
    if (error == cudaErrorMemoryAllocation)
        (void)cudaGetLastError();
    return NULL;
}

static void *allocate(ms_cuda_device *device, size_t bytes)
{
    (void)device;
    void *made = NULL;
    return memory_or_null(cudaMalloc(&made, bytes), made);
}

/* Frees device memory; ignores errors of earlier work, which `check` reports. */
static void release(ms_cuda_device *device, void *memory)
{
    (void)device;
    (void)cudaFree(memory);
}

static void *allocate_host(ms_cuda_device *device, size_t bytes)
{
    (void)device;
    void *made = NULL;
    return memory_or_null(cudaHostAlloc(&made, bytes, cudaHostAllocPortable), made);
}

static void release_host(ms_cuda_device *device, void *memory)
{
    (void)device;
    (void)cudaFreeHost(memory);
}

static ms_status check(ms_ctx *cx, ms_cuda_device *device)
{
    (void)device;
    cudaError_t error = cudaGetLastError();
    /* cudaErrorNotReady: a queried event has not happened, which is no failure */
    if (error == cudaSuccess || error == cudaErrorNotReady)
        return MS_OK;
    return ms_cuda_failed(cx, error, "a kernel or its launch");
}

/* ---- streams and events ---- */

static ms_status open_stream(ms_ctx *cx, ms_cuda_device *device, bool urgent,
                             ms_cuda_stream **out)
{
    (void)device;
    cudaStream_t made = NULL;
    int least = 0, greatest = 0; /* CUDA's greatest priority is its least number */
    MS_TRY_CUDA(cx, cudaDeviceGetStreamPriorityRange(&least, &greatest));
    MS_TRY_CUDA(cx, cudaStreamCreateWithPriority(&made, cudaStreamNonBlocking,
                                                 urgent ? greatest : least));
    *out = (ms_cuda_stream *)made;
    return MS_OK;
}

static void close_stream(ms_cuda_stream *stream)
{
    if (stream != NULL)
        (void)cudaStreamDestroy(ms_cuda_stream_of(stream));
}

static cudaEvent_t event_of(ms_cuda_event *event)
{
    return (cudaEvent_t)event;
}

static ms_status open_event(ms_ctx *cx, ms_cuda_device *device, bool timed,
                            ms_cuda_event **out)
{
    (void)device;
    cudaEvent_t made = NULL;
    MS_TRY_CUDA(cx, cudaEventCreateWithFlags(&made, timed ? cudaEventDefault
                                                          : cudaEventDisableTiming));
    *out = (ms_cuda_event *)made;
    return MS_OK;
}

static void close_event(ms_cuda_event *event)
{
    if (event != NULL)
        (void)cudaEventDestroy(event_of(event));
}

static ms_status record(ms_ctx *cx, ms_cuda_event *event, ms_cuda_stream *stream)
{
    MS_TRY_CUDA(cx, cudaEventRecord(event_of(event), ms_cuda_stream_of(stream)));
    return MS_OK;
}

static ms_status wait_for(ms_ctx *cx, ms_cuda_stream *stream, ms_cuda_event *event)
{
    MS_TRY_CUDA(cx, cudaStreamWaitEvent(ms_cuda_stream_of(stream), event_of(event), 0));
    return MS_OK;
}

static ms_status query(ms_ctx *cx, ms_cuda_event *event, bool *happened)
{
    cudaError_t error = cudaEventQuery(event_of(event));
    *happened = error == cudaSuccess;
    if (error == cudaSuccess || error == cudaErrorNotReady)
        return MS_OK;
    return ms_cuda_failed(cx, error, "cudaEventQuery");
}

static ms_status elapsed(ms_ctx *cx, ms_cuda_event *from, ms_cuda_event *to,
                         double *seconds)
{
    float milliseconds = 0;
    MS_TRY_CUDA(cx, cudaEventElapsedTime(&milliseconds, event_of(from), event_of(to)));
    *seconds = 1e-3 * (double)milliseconds;
    return MS_OK;
}

static ms_status finish(ms_ctx *cx, ms_cuda_stream *stream)
{
    MS_TRY_CUDA(cx, cudaStreamSynchronize(ms_cuda_stream_of(stream)));
    return MS_OK;
}

/* ---- copies ---- */

static ms_status copy(ms_ctx *cx, ms_cuda_stream *stream, void *to, const void *from,
                      size_t bytes, ms_cuda_direction direction)
{
    static const enum cudaMemcpyKind kinds[] = {
        [MS_CUDA_TO_DEVICE] = cudaMemcpyHostToDevice,
        [MS_CUDA_TO_HOST] = cudaMemcpyDeviceToHost,
        [MS_CUDA_ON_DEVICE] = cudaMemcpyDeviceToDevice};
    if (bytes == 0)
        return MS_OK;
    MS_TRY_CUDA(cx, cudaMemcpyAsync(to, from, bytes, kinds[direction],
                                    ms_cuda_stream_of(stream)));
    return MS_OK;
}

static ms_status clear(ms_ctx *cx, ms_cuda_stream *stream, void *to, size_t bytes)
{
    if (bytes == 0)
        return MS_OK;
    MS_TRY_CUDA(cx, cudaMemsetAsync(to, 0, bytes, ms_cuda_stream_of(stream)));
    return MS_OK;
}

/* ---- ranges: nothing but a test of a pointer where no profiler listens ---- */

static void push_range(const char *name)
{
#if HAVE_NVTX
    nvtxRangePushA(name);
#else
    (void)name;
#endif
}

static void pop_range(void)
{
#if HAVE_NVTX
    nvtxRangePop();
#endif
}

const ms_cuda_driver ms_cuda_library_driver = {
    .name = "cuda",
    .find = find,
    .open = open_device,
    .enter = enter,
    .close = close_device,
    .describe = describe,
    .memory = memory,
    .allocate = allocate,
    .release = release,
    .allocate_host = allocate_host,
    .release_host = release_host,
    .open_stream = open_stream,
    .close_stream = close_stream,
    .open_event = open_event,
    .close_event = close_event,
    .record = record,
    .wait = wait_for,
    .query = query,
    .elapsed = elapsed,
    .finish = finish,
    .check = check,
    .copy = copy,
    .clear = clear,
    .product = ms_cuda_library_gemm,
    .has_product = ms_cuda_library_has_gemm,
    .choose_gemms = choose_gemms,
    .attention = ms_cuda_library_attention,
    .make_id = ms_cuda_library_make_id,
    .open_comm = ms_cuda_library_open_comm,
    .split = ms_cuda_library_split,
    .communicate = ms_cuda_library_communicate,
    .check_comm = ms_cuda_library_check_comm,
    .abort_comm = ms_cuda_library_abort_comm,
    .close_comm = ms_cuda_library_close_comm,
    .push_range = push_range,
    .pop_range = pop_range,
};
