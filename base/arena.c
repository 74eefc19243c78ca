/* An arena is a linked list of memory blocks. With the address sanitizer every allocation
 * is a block of its own: overflows and uses after a rewind are caught. */
#include "base/arena.h"

#include <assert.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ONE_BLOCK_EACH 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define ONE_BLOCK_EACH 1
#endif
#ifndef ONE_BLOCK_EACH
#define ONE_BLOCK_EACH 0
#endif

#define FIRST_BLOCK_BYTES ((size_t)32 << 10)
#define LAST_BLOCK_BYTES  ((size_t)4 << 20)
#define ALIGNMENT         _Alignof(max_align_t)

typedef struct block {
    struct block *below;
    size_t capacity;
    size_t used;
    _Alignas(max_align_t) unsigned char data[];
} block;

struct ms_arena {
    block *top;
    /* the largest block freed by a rewind, so that loops of save and rewind reuse it */
    block *spare;
    size_t next_capacity;
    ms_memory_guard *guard;   /* guard of the thread that opened it; NULL: none */
    ms_arena *before, *after; /* in the list of the guard */
};

struct ms_memory_guard {
    jmp_buf escape;
    void *_Atomic reserve; /* memory for the first exhaustion; NULL: released */
    atomic_bool exhausted;
    volatile int *stop;
    ms_arena *opened; /* arenas that the guarded thread has opened and not closed */
};

static _Thread_local ms_memory_guard *guard; /* guard of the calling thread; NULL: none */
static _Thread_local bool must_stay;         /* the thread works beside others */

static _Thread_local const char *user_name; /* name of the calling thread; NULL: none */

void ms_arena_name_user(const char *name)
{
    user_name = name;
}

static _Noreturn void out_of_memory(size_t size)
{
    fprintf(stderr, "error: %s%sno memory is left for %zu bytes\n",
            user_name != NULL ? user_name : "", user_name != NULL ? ": " : "", size);
    _Exit(1); /* not exit(): exit handlers may allocate memory, too */
}

void ms_memory_exhausted(size_t size)
{
    if (guard == NULL)
        out_of_memory(size);
    atomic_store(&guard->exhausted, true);
    __atomic_store_n(guard->stop, 1, __ATOMIC_RELAXED);
    void *reserve = atomic_exchange(&guard->reserve, NULL);
    if (reserve == NULL && must_stay)
        out_of_memory(size);
    if (reserve == NULL)
        longjmp(guard->escape, 1);
    free(reserve);
}

/* Deals with a size that no heap has. */
static _Noreturn void refuse(size_t size)
{
    for (;;)
        ms_memory_exhausted(size);
}

/* Bytes of the blocks of all arenas, now and at most so far. */
static atomic_size_t held_bytes, peak_bytes;

size_t ms_arena_peak_bytes(void)
{
    return atomic_load(&peak_bytes);
}

static void count_block(const block *added)
{
    size_t size = sizeof *added + added->capacity;
    size_t held = atomic_fetch_add(&held_bytes, size) + size;
    size_t peak = atomic_load(&peak_bytes);
    while (held > peak && !atomic_compare_exchange_weak(&peak_bytes, &peak, held))
        ;
}

static void free_block(block *freed)
{
    if (freed != NULL)
        atomic_fetch_sub(&held_bytes, sizeof *freed + freed->capacity);
    free(freed);
}

static void *allocate(size_t size)
{
    void *memory;
    while ((memory = malloc(size)) == NULL)
        ms_memory_exhausted(size);
    return memory;
}

ms_arena *ms_arena_open(void)
{
    ms_arena *arena = allocate(sizeof *arena);
    *arena = (ms_arena){.next_capacity = FIRST_BLOCK_BYTES};
    if (guard != NULL && !must_stay) {
        arena->guard = guard;
        arena->after = guard->opened;
        if (guard->opened != NULL)
            guard->opened->before = arena;
        guard->opened = arena;
    }
    return arena;
}

/* Takes an arena off the list of its guard. */
static void leave_guard(ms_arena *arena)
{
    if (arena->guard == NULL)
        return;
    if (arena->before == NULL)
        arena->guard->opened = arena->after;
    else
        arena->before->after = arena->after;
    if (arena->after != NULL)
        arena->after->before = arena->before;
    arena->guard = NULL;
}

static void free_down_to(ms_arena *arena, const block *keep)
{
    while (arena->top != keep) {
        /* NULL: `keep` is in another arena, or an earlier rewind has freed it */
        assert(arena->top != NULL);
        block *freed = arena->top;
        arena->top = freed->below;
        if (!ONE_BLOCK_EACH &&
            (arena->spare == NULL || arena->spare->capacity < freed->capacity)) {
            block *smaller = arena->spare;
            arena->spare = freed;
            freed = smaller;
        }
        free_block(freed);
    }
}

void ms_arena_close(ms_arena *arena)
{
    if (arena == NULL)
        return;
    leave_guard(arena);
    free_down_to(arena, NULL);
    free_block(arena->spare);
    free(arena);
}

ms_memory_guard *ms_memory_guard_current(void)
{
    return guard;
}

bool ms_memory_guard_join(ms_memory_guard *shared, bool stays)
{
    bool before = must_stay;
    guard = shared;
    must_stay = stays;
    return before;
}

bool ms_memory_guard_run(void (*work)(void *payload), void *payload, volatile int *stop)
{
    ms_memory_guard *outer = guard;
    ms_memory_guard own = {0};
    void *reserve = malloc(MS_MEMORY_RESERVE_BYTES);
    if (reserve == NULL)
        return false;
    own.stop = stop;
    atomic_store(&own.reserve, reserve);
    guard = &own;
    bool escaped = setjmp(own.escape) != 0;
    if (!escaped)
        work(payload);
    for (ms_arena *arena = own.opened, *after; arena != NULL; arena = after) {
        after = arena->after;
        arena->guard = NULL;
        if (escaped)
            ms_arena_close(arena);
    }
    guard = outer;
    free(atomic_load(&own.reserve));
    return !atomic_load(&own.exhausted);
}

static void push_block(ms_arena *arena, size_t size)
{
    block *added = arena->spare;
    if (added != NULL && added->capacity >= size) {
        arena->spare = NULL;
    } else {
        size_t capacity = size;
        if (!ONE_BLOCK_EACH && capacity < arena->next_capacity)
            capacity = arena->next_capacity;
        if (arena->next_capacity < LAST_BLOCK_BYTES)
            arena->next_capacity *= 2;
        added = allocate(sizeof *added + capacity);
        added->capacity = capacity;
        count_block(added);
    }
    added->used = 0;
    added->below = arena->top;
    arena->top = added;
}

void *ms_arena_take(ms_arena *arena, size_t size)
{
    assert(arena != NULL);
    if (size > SIZE_MAX / 2)
        refuse(size);
    size_t wanted = size == 0 ? 1 : size;
    block *top = arena->top;
    size_t start = top == NULL ? 0 : (top->used + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (ONE_BLOCK_EACH || top == NULL || start > top->capacity ||
        top->capacity - start < wanted) {
        push_block(arena, wanted);
        top = arena->top;
        start = 0;
    }
    top->used = start + wanted;
    return top->data + start;
}

void *ms_arena_alloc(ms_arena *arena, size_t size)
{
    return memset(ms_arena_take(arena, size), 0, size == 0 ? 1 : size);
}

void *ms_arena_array(ms_arena *arena, size_t count, size_t item_size)
{
    if (item_size != 0 && count > SIZE_MAX / item_size)
        refuse(SIZE_MAX);
    return ms_arena_alloc(arena, count * item_size);
}

void *ms_arena_room(ms_arena *arena, void *items, int num, int *capacity, int first,
                    size_t item_size)
{
    assert(num <= *capacity && first > 0);
    if (num < *capacity)
        return items;
    assert(*capacity <= INT_MAX / 2);
    *capacity = *capacity == 0 ? first : 2 * *capacity;
    void *larger = ms_arena_array(arena, (size_t)*capacity, item_size);
    if (num > 0)
        memcpy(larger, items, (size_t)num * item_size);
    return larger;
}

char *ms_arena_strndup(ms_arena *arena, const char *text, size_t length)
{
    char *copy = ms_arena_alloc(arena, length + 1);
    memcpy(copy, text, length);
    return copy;
}

char *ms_arena_strdup(ms_arena *arena, const char *text)
{
    return ms_arena_strndup(arena, text, strlen(text));
}

char *ms_arena_printf(ms_arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = ms_arena_vprintf(arena, format, args);
    va_end(args);
    return text;
}

char *ms_arena_vprintf(ms_arena *arena, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    assert(length >= 0);
    char *text = ms_arena_alloc(arena, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

ms_arena_mark ms_arena_save(const ms_arena *arena)
{
    return (ms_arena_mark){arena->top, arena->top == NULL ? 0 : arena->top->used};
}

void ms_arena_rewind(ms_arena *arena, ms_arena_mark mark)
{
    free_down_to(arena, mark.block);
    if (arena->top != NULL) {
        assert(mark.used <= arena->top->used);
        arena->top->used = mark.used;
    }
}
