/* Growing lists of texts, and the lines of a text. */
#ifndef MS_BASE_TEXTS_H
#define MS_BASE_TEXTS_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdio.h>

/* A list of texts that grows; starts zeroed. */
typedef struct ms_texts {
    const char **texts; /* (num) */
    int num, capacity;
} ms_texts;

/* Add a text, or a formatted one, to a list of the arena. */
void ms_texts_add(ms_arena *arena, ms_texts *list, const char *text);
void ms_texts_print(ms_arena *arena, ms_texts *list, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The text that `write` writes to a file, in the arena; NULL: there is no memory for it. It
 * is called until the buffer has room. */
const char *ms_text_written(ms_arena *arena,
                            void (*write)(FILE *out, const void *payload),
                            const void *payload);

/* Lines of a text, without carriage returns at their ends; starts with text and length. */
typedef struct ms_lines {
    const char *text;
    size_t length, offset;
    int number; /* number of the line read last, from 1 */
} ms_lines;

/* Reads the next line; false at the end of the text. */
bool ms_lines_next(ms_lines *lines, const char **line, size_t *length);

#endif
