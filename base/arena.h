/* Folder base: memory, errors, files, numbers and text for all other folders.
 *
 * Arena (bump allocator) for objects that live as long as one command, thread or search
 * candidate. Allocations are zeroed (except by ms_arena_take) and never NULL: when memory
 * is exhausted the program prints the requested size and exits with status 1, unless a
 * guard is set (ms_memory_guard_run). */
#ifndef MS_BASE_ARENA_H
#define MS_BASE_ARENA_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct ms_arena ms_arena;

/* A position in an arena, to rewind to; invalid after a rewind to an earlier one. */
typedef struct ms_arena_mark {
    void *block;
    size_t used;
} ms_arena_mark;

ms_arena *ms_arena_open(void);
/* Frees the arena and all its allocations; NULL is allowed. */
void ms_arena_close(ms_arena *arena);
/* The most bytes that all arenas of the process have held at once. */
size_t ms_arena_peak_bytes(void);
/* Sets the calling thread's name ("rank 3") in the message that memory is exhausted. */
void ms_arena_name_user(const char *name);

/* Keeps exhausted memory from ending the program: a library must not. */
typedef struct ms_memory_guard ms_memory_guard;

/* Calls work(payload); returns false if memory was exhausted meanwhile. The first request
 * that finds none is served from a reserve of MS_MEMORY_RESERVE_BYTES, which is
 * released, and *stop is set to 1 so that long work ends early (ms_is_interrupted). When
 * that was not enough, the calling thread leaves `work` where it is: the arenas that it
 * opened there are closed, and what else it held (documents, files) is lost. While
 * several threads work (base/workers.h) none can leave: one for which the reserve was not
 * enough ends the program, as without a guard. */
bool ms_memory_guard_run(void (*work)(void *payload), void *payload, volatile int *stop);
#define MS_MEMORY_RESERVE_BYTES ((size_t)32 << 20)
/* The guard of the calling thread; NULL: none. */
ms_memory_guard *ms_memory_guard_current(void);
/* Sets the guard, and whether the thread must stay in its work; returns whether it had to
 * until now. */
bool ms_memory_guard_join(ms_memory_guard *guard, bool stays);
/* Deals with a heap that has no `size` bytes: returns if it is worth another try. */
void ms_memory_exhausted(size_t size);

/* Allocates zeroed bytes, aligned for any type; size 0 gives a valid unique pointer. */
void *ms_arena_alloc(ms_arena *arena, size_t size);
/* Allocates `size` bytes without zeroing them. */
void *ms_arena_take(ms_arena *arena, size_t size);
/* A zeroed array; an overflowing size ends the program like exhausted memory. */
void *ms_arena_array(ms_arena *arena, size_t count, size_t item_size);

/* Returns a list with room for an item after its `num` items: `items` itself while num <
 * *capacity, otherwise a copy, with *capacity doubled (`first` if it was 0). */
void *ms_arena_room(ms_arena *arena, void *items, int num, int *capacity, int first,
                    size_t item_size);

/* Copies a text, or formats one, in the arena; zero-terminated. */
char *ms_arena_strdup(ms_arena *arena, const char *text);
char *ms_arena_strndup(ms_arena *arena, const char *text, size_t length);
char *ms_arena_printf(ms_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
char *ms_arena_vprintf(ms_arena *arena, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

/* The current position of the arena, for ms_arena_rewind. */
ms_arena_mark ms_arena_save(const ms_arena *arena);
/* Frees everything allocated since the mark was saved. */
void ms_arena_rewind(ms_arena *arena, ms_arena_mark mark);

#define MS_NEW(arena, type) ((type *)ms_arena_alloc((arena), sizeof(type)))
#define MS_NEW_ARRAY(arena, count, type)                                                 \
    ((type *)ms_arena_array((arena), (size_t)(count), sizeof(type)))
/* An array that the caller fills: it is not zeroed. The size must not overflow. */
#define MS_TAKE_ARRAY(arena, count, type)                                                \
    ((type *)ms_arena_take((arena), (size_t)(count) * sizeof(type)))
/* ms_arena_room for a list held in two variables: assigns both `items` and `capacity`. */
#define MS_MAKE_ROOM(arena, items, num, capacity, first)                                 \
    ((items) =                                                                           \
         ms_arena_room((arena), (items), (num), &(capacity), (first), sizeof *(items)))

#endif
