#include "base/texts.h"

#include <stdarg.h>
#include <string.h>

void ms_texts_add(ms_arena *arena, ms_texts *list, const char *text)
{
    MS_MAKE_ROOM(arena, list->texts, list->num, list->capacity, 8);
    list->texts[list->num++] = text;
}

void ms_texts_print(ms_arena *arena, ms_texts *list, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    ms_texts_add(arena, list, ms_arena_vprintf(arena, format, args));
    va_end(args);
}

const char *ms_text_written(ms_arena *arena,
                            void (*write)(FILE *out, const void *payload),
                            const void *payload)
{
    for (size_t size = 1 << 14;; size *= 4) {
        char *text = ms_arena_alloc(arena, size);
        FILE *file = fmemopen(text, size, "w");
        if (file == NULL)
            return NULL;
        write(file, payload);
        bool fits = fflush(file) == 0 && ftell(file) + 1 < (long)size;
        fclose(file);
        if (fits)
            return text;
    }
}

bool ms_lines_next(ms_lines *lines, const char **line, size_t *length)
{
    if (lines->offset >= lines->length)
        return false;
    *line = lines->text + lines->offset;
    size_t left = lines->length - lines->offset;
    const char *end = memchr(*line, '\n', left);
    *length = end == NULL ? left : (size_t)(end - *line);
    lines->offset += *length + (end != NULL);
    lines->number++;
    if (*length > 0 && (*line)[*length - 1] == '\r')
        --*length;
    return true;
}
