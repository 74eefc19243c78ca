/* Memory of the fake GPU (tests/support/cuda_fake.h): pages that only queued work may
 * access, and host memory that copies read late. */
/* NOLINTNEXTLINE(cert-dcl37-c,readability-identifier-naming): its name is glibc's */
#define _DEFAULT_SOURCE /* for MAP_ANONYMOUS */
#include "tests/support/cuda_fake_priv.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

/* least number of guard bytes after a block, which must not be written */
#define ALIGNMENT 256
#define GARBAGE   0xff /* byte that makes NaN in every floating-point type */
#define BEHIND    0xa5

static int access_of(bool is_protected)
{
    return is_protected ? PROT_NONE : PROT_READ | PROT_WRITE;
}

static void protect(fake_block *block, bool is_protected)
{
    int failed = mprotect(block->memory, block->mapped_bytes, access_of(is_protected));
    assert(failed == 0);
    (void)failed;
}

void fake_protect_all(bool is_protected)
{
    for (fake_block *b = fake.blocks; b != NULL; b = b->next)
        if (!b->is_host)
            protect(b, is_protected);
}

static size_t mapped_bytes(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + ALIGNMENT + page - 1) / page * page;
}

static void *new_block(ms_cuda_device *device, size_t bytes, bool is_host)
{
    size_t mapped = mapped_bytes(bytes);
    /* one more page without access, which catches overruns */
    void *memory = mmap(NULL, mapped + (size_t)sysconf(_SC_PAGESIZE), PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    fake_block *block = FAKE_NEW(fake_block);
    *block = (fake_block){fake.blocks, device, memory, bytes, mapped, is_host, true};
    fake.blocks = block;
    protect(block, false);
#ifdef __SANITIZE_ADDRESS__
    /* the address sanitizer may have marked these pages as an old stack */
    __asan_unpoison_memory_region(memory, mapped);
#endif
    memset(memory, GARBAGE, bytes);
    memset((unsigned char *)memory + bytes, BEHIND, mapped - bytes);
    if (!is_host)
        protect(block, !fake.is_unprotected);
    return memory;
}

static void look_behind(fake_block *block)
{
    protect(block, false);
    for (size_t i = block->bytes; i < block->mapped_bytes; i++) {
        if (block->memory[i] != BEHIND) {
            fake_note_defect("a write %zu bytes behind a block of %zu",
                             i - block->bytes + 1, block->bytes);
            break;
        }
    }
    /* keep the block until the end, so that work that runs too late reads NaNs */
    memset(block->memory, GARBAGE, block->mapped_bytes);
    if (!block->is_host)
        protect(block, !fake.is_unprotected);
}

fake_block *fake_block_of(const void *memory, bool is_host)
{
    const unsigned char *at = memory;
    for (fake_block *b = fake.blocks; b != NULL; b = b->next)
        if (b->is_host == is_host && b->is_live && at >= b->memory &&
            at <= b->memory + b->bytes)
            return b;
    return NULL;
}

bool fake_expect_memory(const void *memory, size_t bytes, bool is_host, const char *what)
{
    if (bytes == 0)
        return true;
    const fake_block *block = fake_block_of(memory, is_host);
    const char *kind = is_host ? "allocate_host" : "the device";
    if (block == NULL) {
        fake_note_defect("%s: memory that is not of %s", what, kind);
        return false;
    }
    size_t left = (size_t)(block->memory + block->bytes - (const unsigned char *)memory);
    if (bytes > left)
        fake_note_defect("%s: %zu bytes where a block has %zu more", what, bytes, left);
    return bytes <= left;
}

static void *allocate(ms_cuda_device *device, size_t bytes, bool is_host)
{
    pthread_mutex_lock(&fake_lock);
    void *memory = NULL;
    bool fails = fake_call(is_host ? MS_FAKE_ALLOCATE_HOST : MS_FAKE_ALLOCATE);
    double *used = &fake.used_bytes[device->ordinal],
           *most = &fake.most_bytes[device->ordinal];
    fake_expect_entered(device, "allocate");
    if (!fails && (is_host || *used + (double)bytes <= fake.options.memory_bytes))
        memory = new_block(device, bytes, is_host);
    if (memory != NULL && !is_host) {
        *used += (double)bytes;
        *most = *used > *most ? *used : *most;
    }
    pthread_mutex_unlock(&fake_lock);
    return memory;
}

static void release(ms_cuda_device *device, void *memory, bool is_host)
{
    if (memory == NULL)
        return;
    pthread_mutex_lock(&fake_lock);
    fake_call(is_host ? MS_FAKE_RELEASE_HOST : MS_FAKE_RELEASE);
    fake_block *block = fake_block_of(memory, is_host);
    if (block == NULL || block->memory != memory || block->device != device) {
        fake_note_defect("release of what is no block of this device in use");
    } else {
        if (fake_uses(device, block))
            fake_note_defect("release of memory that work may still use");
        block->is_live = false;
        look_behind(block);
        if (!is_host)
            fake.used_bytes[device->ordinal] -= (double)block->bytes;
    }
    pthread_mutex_unlock(&fake_lock);
}

void *fake_allocate(ms_cuda_device *device, size_t bytes)
{
    return allocate(device, bytes, false);
}

void fake_release(ms_cuda_device *device, void *memory)
{
    release(device, memory, false);
}

void *fake_allocate_host(ms_cuda_device *device, size_t bytes)
{
    return allocate(device, bytes, true);
}

void fake_release_host(ms_cuda_device *device, void *memory)
{
    release(device, memory, true);
}

void fake_free_blocks(void)
{
    while (fake.blocks != NULL) {
        fake_block *block = fake.blocks;
        fake.blocks = block->next;
        munmap(block->memory, block->mapped_bytes + (size_t)sysconf(_SC_PAGESIZE));
        free(block);
    }
}
