/* Bump allocator: everything that lives as long as one command (or one search candidate)
 * comes from an arena and is freed with it, so no object has a free function of its own.
 * Allocation zero-fills (but for ms_arena_take) and never returns NULL: exhaustion prints
 * the size and ends the program. */
#ifndef MS_BASE_ARENA_H
#define MS_BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>

typedef struct ms_arena ms_arena;

/* A point to which an arena can be rewound; valid until an earlier mark is rewound. */
typedef struct ms_arena_mark {
    void *block;
    size_t used;
} ms_arena_mark;

ms_arena *ms_arena_open(void);
void ms_arena_close(ms_arena *arena);
/* Who this thread works for, to be named when memory is exhausted: "rank 3"; NULL:
 * nobody. Not copied. */
void ms_arena_name_user(const char *name);

/* Returns `size` zeroed bytes aligned for any type; size 0 gives a valid unique
 * pointer. */
void *ms_arena_alloc(ms_arena *arena, size_t size);
/* The same with whatever the memory held before: for what is written before it is
 * read. */
void *ms_arena_take(ms_arena *arena, size_t size);
/* As ms_arena_alloc for `count` items; a product that overflows ends the program. */
void *ms_arena_array(ms_arena *arena, size_t count, size_t item_size);

/* Room for one more item in a list of `num`: the list itself while num < *capacity, else
 * a copy of it with twice the capacity, at first with `first`. */
void *ms_arena_room(ms_arena *arena, void *items, int num, int *capacity, int first,
                    size_t item_size);

char *ms_arena_strdup(ms_arena *arena, const char *text);
char *ms_arena_strndup(ms_arena *arena, const char *text, size_t length);
char *ms_arena_printf(ms_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
char *ms_arena_vprintf(ms_arena *arena, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

ms_arena_mark ms_arena_save(const ms_arena *arena);
/* Frees everything allocated since the mark. */
void ms_arena_rewind(ms_arena *arena, ms_arena_mark mark);

#define MS_NEW(arena, type) ((type *)ms_arena_alloc((arena), sizeof(type)))
#define MS_NEW_ARRAY(arena, count, type)                                                 \
    ((type *)ms_arena_array((arena), (size_t)(count), sizeof(type)))
/* `items` and `capacity` are changed. */
#define MS_MAKE_ROOM(arena, items, num, capacity, first)                                 \
    ((items) =                                                                           \
         ms_arena_room((arena), (items), (num), &(capacity), (first), sizeof *(items)))

#endif
