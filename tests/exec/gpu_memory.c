/* Runs the tests of CUDA kernels on a real GPU: the test programs of the kernel emulation
 * are linked with nvcc's code and with this file. Tests pass addresses of host memory to
 * kernels, and the GPU reads and writes the host memory in place: heap, global variables
 * and stack are registered with the driver (cudaHostRegister), so that their addresses
 * are valid on the GPU as well (CUDA C++ Programming Guide, "Mapped Memory"). Kernel
 * launches are synchronous (CUDA_LAUNCH_BLOCKING), so that a test may read results after
 * the call, as with emulated kernels. Too slow for measurements: only numbers are
 * compared.
 *
 * Without a GPU the program prints that it is skipped, and the reason. */
#define _DEFAULT_SOURCE /* for MAP_ANONYMOUS */
#include "exec/cuda/cuda_driver.h"
#include "tests/support/attention_cases.h"
#include "tests/support/cuda_emulated.h"

#include <cuda_runtime_api.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- the heap: one region, parts of powers of two ---- */

#define HEAP_BYTES  ((size_t)1 << 36) /* reserved address space of the heap */
#define CHUNK_BYTES ((size_t)1 << 29) /* heap bytes registered with the GPU at a time */
#define LEAST_CLASS 7                 /* log2 of the smallest heap block: 128 bytes */
#define MOST_CLASS  28 /* log2 of the largest heap block, below CHUNK_BYTES */
/* bytes before the user's memory, which stays aligned to 64 bytes */
#define HEADER_BYTES 64

typedef struct header {
    struct header *next; /* next free block of the same size class */
    unsigned char class;
    char *part;
} header;

static char *heap, *heap_end, *unused;
/* end of the registered part of the heap; NULL: no GPU is in use yet */
static char *registered;
static bool is_registering;
static header *free_parts[MOST_CLASS + 1];
static pthread_mutex_t heap_lock = PTHREAD_MUTEX_INITIALIZER;

static char *open_heap(void)
{
    void *memory = mmap(NULL, HEAP_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    heap = unused = memory;
    heap_end = heap + HEAP_BYTES;
    return heap;
}

static header *header_of(void *memory)
{
    return (header *)(void *)((char *)memory - HEADER_BYTES);
}

/* Takes a heap block of 2^class bytes; NULL: no memory is left. */
static char *take_part(int class)
{
    header *found = free_parts[class];
    if (found != NULL) {
        free_parts[class] = found->next;
        return found->part;
    }
    if ((heap == NULL && open_heap() == NULL) ||
        (size_t)(heap_end - unused) < (size_t)1 << class)
        return NULL;
    char *part = unused;
    unused += (size_t)1 << class;
    return part;
}

static bool share(const char *what, char *from, char *to);
static void leave(const char *how, const char *why);

/* Whether less than one chunk is registered beyond the used heap; false while
 * registering, which itself allocates. */
static bool must_register(void)
{
    return registered != NULL && !is_registering && unused + CHUNK_BYTES > registered;
}

static void register_more(void)
{
    while (registered < heap_end && unused + CHUNK_BYTES > registered) {
        if (!share("the heap", registered, registered + CHUNK_BYTES))
            leave("FAILED ", "the GPU cannot use the heap");
        registered += CHUNK_BYTES;
    }
    is_registering = false;
}

static void *allocate(size_t bytes, size_t alignment)
{
    int class = LEAST_CLASS;
    alignment = alignment < HEADER_BYTES ? HEADER_BYTES : alignment;
    while (class <= MOST_CLASS && bytes + alignment + HEADER_BYTES > (size_t)1 << class)
        class ++;
    pthread_mutex_lock(&heap_lock);
    char *part = class <= MOST_CLASS ? take_part(class) : NULL;
    bool more = must_register();
    is_registering = is_registering || more;
    pthread_mutex_unlock(&heap_lock);
    if (more)
        register_more();
    if (part == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    uintptr_t first = (uintptr_t)part + HEADER_BYTES;
    char *memory = part + HEADER_BYTES + (alignment - first % alignment) % alignment;
    *header_of(memory) = (header){NULL, (unsigned char)class, part};
    return memory;
}

static size_t room_of(void *memory)
{
    const header *h = header_of(memory);
    return (size_t)(h->part + ((size_t)1 << h->class) - (char *)memory);
}

void *malloc(size_t bytes)
{
    return allocate(bytes, 1);
}

void free(void *memory)
{
    if (memory == NULL)
        return;
    /* a free block's header lies at the block's beginning, where take_part expects it */
    header kept = *header_of(memory);
    header *at = (header *)(void *)kept.part;
    pthread_mutex_lock(&heap_lock);
    *at = (header){free_parts[kept.class], kept.class, kept.part};
    free_parts[kept.class] = at;
    pthread_mutex_unlock(&heap_lock);
}

void *calloc(size_t num, size_t bytes)
{
    if (bytes != 0 && num > SIZE_MAX / bytes)
        return NULL;
    void *memory = allocate(num * bytes, 1);
    return memory != NULL ? memset(memory, 0, num * bytes) : NULL;
}

void *realloc(void *memory, size_t bytes)
{
    if (memory != NULL && bytes <= room_of(memory))
        return memory;
    void *grown = allocate(bytes, 1);
    if (grown != NULL && memory != NULL) {
        memcpy(grown, memory, room_of(memory));
        free(memory);
    }
    return grown;
}

int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    *out = allocate(bytes, alignment);
    return *out != NULL ? 0 : ENOMEM;
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return allocate(bytes, alignment);
}

void *memalign(size_t alignment, size_t bytes);
void *memalign(size_t alignment, size_t bytes)
{
    return allocate(bytes, alignment);
}

size_t malloc_usable_size(void *memory);
size_t malloc_usable_size(void *memory)
{
    return memory != NULL ? room_of(memory) : 0;
}

/* ---- the GPU ---- */

/* first and last address of the program's variables, set by the linker */
extern char __data_start, _end;
#define STACK_BYTES ((size_t)1 << 20) /* stack registered below the first frame, bytes */

static void leave(const char *how, const char *why)
{
    printf("[ RUN      ] on a GPU\n[  %s ] on a GPU\n%s\n", how, why);
    fflush(stdout);
    _exit(strcmp(how, "SKIPPED") == 0 ? 0 : 1);
}

/* Registers the pages of [from, to) with the GPU; prints why and returns false where that
 * fails. Most tests run without registered variables or stack. */
static bool share(const char *what, char *from, char *to)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    char *first = from - (uintptr_t)from % page;
    size_t bytes = (size_t)(to - first) + (page - (uintptr_t)to % page) % page;
    cudaError_t error = cudaHostRegister(first, bytes, cudaHostRegisterDefault);
    if (error == cudaSuccess)
        return true;
    (void)cudaGetLastError(); /* clears the error, which is printed below */
    printf("the GPU cannot use %s: %s\n", what, cudaGetErrorString(error));
    return false;
}

/* Registers this thread's stack with the GPU, after touching its pages so that they
 * exist. */
static void share_stack(void)
{
    char below[STACK_BYTES];
    volatile char *touched = below;
    for (size_t i = 0; i < STACK_BYTES; i += 1024)
        touched[i] = 0;
    unsigned long from, to;
    char line[256], name[64];
    FILE *file = fopen("/proc/self/maps", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %63s", &from, &to, name) == 3 &&
            strcmp(name, "[stack]") == 0)
            /* NOLINTNEXTLINE(performance-no-int-to-ptr): addresses read as text */
            (void)share("the stack", (char *)(uintptr_t)from, (char *)(uintptr_t)to);
    }
    if (file != NULL)
        fclose(file);
}

/* Whether the GPU uses the host's address for the heap; a device attribute is not
 * trusted. */
static bool has_same_addresses(void)
{
    void *of_gpu = NULL;
    if (cudaHostGetDevicePointer(&of_gpu, heap, 0) != cudaSuccess)
        (void)cudaGetLastError();
    return of_gpu == (void *)heap;
}

/* Prints the CUDA error of a failed kernel or launch, which tests see as wrong numbers
 * only. */
static void tell_error(void)
{
    cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess)
        fprintf(stderr, "error: a kernel or its launch: %s (%s)\n",
                cudaGetErrorString(error), cudaGetErrorName(error));
}

__attribute__((constructor)) static void share_all(void)
{
    int num_gpus = 0;
    setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
    free(malloc(1)); /* opens the heap */
    cudaError_t error = cudaGetDeviceCount(&num_gpus);
    if (error != cudaSuccess || num_gpus == 0)
        leave("SKIPPED", error != cudaSuccess ? cudaGetErrorString(error) : "no GPU");
    (void)atexit(tell_error); /* runs before the exit handlers of the CUDA runtime */
    registered = heap;
    free(malloc(1));
    if (!has_same_addresses())
        leave("SKIPPED", "this GPU has other addresses for the program's memory");
    (void)share("variables", &__data_start, &_end);
    share_stack();
}

/* The driver of this machine's GPU, which the calling thread has entered. */
const ms_cuda_driver *ms_test_gpu_driver(void)
{
    static ms_cuda_device *device;
    const ms_cuda_driver *driver = ms_cuda_driver_of_libraries();
    ms_ctx cx = {.verbosity = -1};
    if (device == NULL && driver->open(&cx, 0, &device) != MS_OK)
        return NULL;
    return driver;
}

/* Ignores the seed: on a GPU the order of threads cannot be chosen. */
void ms_cuda_emulated_set_seed(unsigned long seed)
{
    (void)seed;
}

/* Returns 0: launches on a GPU are not counted. Tests of needless launches run with
 * emulated kernels. */
unsigned long ms_cuda_emulated_num_launches(void)
{
    return 0;
}
