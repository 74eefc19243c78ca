#include "exec/cpu/pool.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#define ALIGNMENT 64

/* Blocks up to this size are not pooled; under an address sanitizer none is. */
#if defined(__SANITIZE_ADDRESS__)
#define HEAP_BYTES SIZE_MAX
#else
#define HEAP_BYTES ((size_t)64 << 10)
#endif

/* Blocks are rounded up to a size class, for reuse: 8 classes per doubling of size. */
#define STEPS_BITS  3
#define NUM_CLASSES (64 << STEPS_BITS)

/* An idle block; its first bytes hold the link to the next block of its size class. */
typedef struct idle {
    struct idle *next;
} idle;

struct ms_pool {
    pthread_mutex_t lock;
    size_t used_bytes, most_used_bytes, idle_bytes;
    idle *classes[NUM_CLASSES];
};

/* ---- classes of sizes ---- */

static int class_of(size_t bytes)
{
    int doubling = 63 - __builtin_clzll((unsigned long long)bytes);
    size_t step = (size_t)1 << (doubling - STEPS_BITS);
    size_t above = (bytes - ((size_t)1 << doubling) + step - 1) / step;
    return (doubling << STEPS_BITS) + (int)above;
}

static size_t bytes_of(int class)
{
    int doubling = class >> STEPS_BITS;
    size_t step = (size_t)1 << (doubling - STEPS_BITS);
    return ((size_t)1 << doubling) + step * ((size_t) class & ((1u << STEPS_BITS) - 1));
}

/* ---- open, close ---- */

ms_pool *ms_pool_open(void)
{
    ms_pool *pool = calloc(1, sizeof *pool);
    if (pool != NULL)
        pthread_mutex_init(&pool->lock, NULL);
    return pool;
}

/* Frees idle blocks, the largest first, until at most `most_bytes` are idle. */
static void free_idle_blocks(ms_pool *pool, size_t most_bytes)
{
    for (int c = NUM_CLASSES; c-- > 0 && pool->idle_bytes > most_bytes;) {
        while (pool->classes[c] != NULL && pool->idle_bytes > most_bytes) {
            idle *block = pool->classes[c];
            pool->classes[c] = block->next;
            pool->idle_bytes -= bytes_of(c);
            free(block);
        }
    }
}

size_t ms_pool_held_bytes(ms_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    size_t held = pool->used_bytes + pool->idle_bytes;
    pthread_mutex_unlock(&pool->lock);
    return held;
}

void ms_pool_close(ms_pool *pool)
{
    if (pool == NULL)
        return;
    free_idle_blocks(pool, 0);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

/* ---- blocks ---- */

static void *from_heap(size_t bytes)
{
    if (bytes > SIZE_MAX - ALIGNMENT)
        return NULL;
    return aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
}

/* Allocates a block, freeing all idle blocks if the system has no memory left. */
static void *new_block(ms_pool *pool, size_t bytes)
{
    void *made = from_heap(bytes);
    if (made != NULL)
        return made;
    pthread_mutex_lock(&pool->lock);
    free_idle_blocks(pool, 0);
    pthread_mutex_unlock(&pool->lock);
    return from_heap(bytes);
}

static idle *take_idle(ms_pool *pool, int class)
{
    idle *block = pool->classes[class];
    if (block == NULL)
        return NULL;
    pool->classes[class] = block->next;
    pool->idle_bytes -= bytes_of(class);
    return block;
}

/* Counts a taken block; frees idle ones if used and idle exceed 1.25 times peak use. */
static void note_used(ms_pool *pool, size_t bytes)
{
    pool->used_bytes += bytes;
    if (pool->used_bytes > pool->most_used_bytes)
        pool->most_used_bytes = pool->used_bytes;
    size_t most = pool->most_used_bytes + pool->most_used_bytes / 4;
    if (pool->used_bytes + pool->idle_bytes > most)
        free_idle_blocks(pool, most - pool->used_bytes);
}

void *ms_pool_take(ms_pool *pool, size_t bytes)
{
    if (bytes == 0)
        return NULL;
    if (bytes <= HEAP_BYTES || bytes > SIZE_MAX / 4)
        return from_heap(bytes);
    int class = class_of(bytes);
    pthread_mutex_lock(&pool->lock);
    void *block = take_idle(pool, class);
    pthread_mutex_unlock(&pool->lock);
    if (block == NULL)
        block = new_block(pool, bytes_of(class));
    if (block == NULL)
        return NULL;
    pthread_mutex_lock(&pool->lock);
    note_used(pool, bytes_of(class));
    pthread_mutex_unlock(&pool->lock);
    return block;
}

void ms_pool_give(ms_pool *pool, void *memory, size_t bytes)
{
    if (memory == NULL)
        return;
    if (bytes <= HEAP_BYTES || bytes > SIZE_MAX / 4) {
        free(memory);
        return;
    }
    int class = class_of(bytes);
    idle *block = memory;
    pthread_mutex_lock(&pool->lock);
    *block = (idle){pool->classes[class]};
    pool->classes[class] = block;
    pool->used_bytes -= bytes_of(class);
    pool->idle_bytes += bytes_of(class);
    pthread_mutex_unlock(&pool->lock);
}
