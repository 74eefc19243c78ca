/* Arena (bump allocator): every object that lives as long as one command, thread or
 * search candidate is allocated from an arena and freed with it, so no object has a
 * free function of its own. Allocations are zero-filled (except by ms_arena_take) and
 * never return NULL: when memory is exhausted the requested size is printed and the
 * program exits with status 1. */
#ifndef MS_BASE_ARENA_H
#define MS_BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>

typedef struct ms_arena ms_arena;

/* A position to which an arena can be rewound; it becomes invalid when the arena is
 * rewound to an earlier mark. */
typedef struct ms_arena_mark {
    void *block;
    size_t used;
} ms_arena_mark;

/* Opens an empty arena; the caller closes it. */
ms_arena *ms_arena_open(void);
/* Frees the arena and all its allocations; NULL is allowed. */
void ms_arena_close(ms_arena *arena);
/* Sets the name of the calling thread ("rank 3") for the message that memory is
 * exhausted; NULL: no name. The text is not copied. */
void ms_arena_name_user(const char *name);

/* Allocates `size` zeroed bytes, aligned for any type; size 0 gives a valid unique
 * pointer. */
void *ms_arena_alloc(ms_arena *arena, size_t size);
/* Allocates `size` bytes without zeroing them, for memory that is written before it is
 * read. */
void *ms_arena_take(ms_arena *arena, size_t size);
/* Allocates a zeroed array of `count` items; a product of count and item_size that
 * overflows ends the program like exhausted memory. */
void *ms_arena_array(ms_arena *arena, size_t count, size_t item_size);

/* Grows a list of `num` items for one more: returns the list itself while num <
 * *capacity, otherwise a copy of it with twice the capacity (`first` items if the
 * capacity was 0). *capacity is updated. */
void *ms_arena_room(ms_arena *arena, void *items, int num, int *capacity, int first,
                    size_t item_size);

/* Zero-terminated copies of text, and formatted text, in the arena. */
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
/* ms_arena_room for a list held in two variables: assigns both `items` and `capacity`. */
#define MS_MAKE_ROOM(arena, items, num, capacity, first)                                 \
    ((items) =                                                                           \
         ms_arena_room((arena), (items), (num), &(capacity), (first), sizeof *(items)))

#endif
