/* Prints arguments escaped: the text is formatted twice, the second time with spaces for
 * the format's own control characters, which tells them from those of arguments. */
#include "base/print.h"

#include "base/utf8.h"

#include <assert.h>
#include <string.h>

#define ESCAPED_BYTES 4 /* bytes printed for one escaped byte, \xNN */
#define SHORT_BYTES   2048

/* Copies `text` to `out` (NULL: counts only), with control characters and invalid UTF-8
 * escaped where `text` equals `blanked`. Returns the bytes, <= ESCAPED_BYTES x length. */
static size_t escape(char *out, const char *text, const char *blanked)
{
    size_t length = strlen(text), written = 0;
    for (size_t at = 0, step; at < length; at += step) {
        step = ms_utf8_step(text + at, length - at);
        bool is_of_format = text[at] != blanked[at];
        bool is_copied =
            is_of_format || (step > 0 && !ms_utf8_is_control(text + at, step));
        step = is_copied ? step : 1;
        if (out != NULL && is_copied)
            memcpy(out + written, text + at, step);
        else if (out != NULL)
            snprintf(out + written, ESCAPED_BYTES + 1, "\\x%02X",
                     (unsigned)(unsigned char)text[at]);
        written += is_copied ? step : ESCAPED_BYTES;
    }
    return written;
}

static void blank_controls(char *out, const char *format)
{
    do
        *out++ = *format != '\0' && ms_utf8_is_control(format, 1) ? ' ' : *format;
    while (*format++ != '\0');
}

int ms_vprint(FILE *out, const char *format, va_list args)
{
    va_list again, once_more;
    va_copy(again, args);
    va_copy(once_more, args);
    int length = vsnprintf(NULL, 0, format, args);
    assert(length >= 0);
    size_t size = (size_t)length + 1, format_size = strlen(format) + 1;
    size_t all = (2 + ESCAPED_BYTES) * size + format_size;
    char small[SHORT_BYTES];
    ms_arena *arena = all <= sizeof small ? NULL : ms_arena_open();
    char *text = arena == NULL ? small : ms_arena_take(arena, all);
    char *blanked = text + size, *blank = blanked + size, *escaped = blank + format_size;
    blank_controls(blank, format);
    vsnprintf(text, size, format, again);
    vsnprintf(blanked, size, blank, once_more);
    va_end(again);
    va_end(once_more);
    size_t written = escape(escaped, text, blanked);
    /* errors are reported when the stream is closed */
    (void)fwrite(escaped, 1, written, out);
    ms_arena_close(arena);
    return (int)written;
}

int ms_print(FILE *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int written = ms_vprint(out, format, args);
    va_end(args);
    return written;
}

const char *ms_printable(ms_arena *arena, const char *text)
{
    size_t length = escape(NULL, text, text);
    if (length == strlen(text))
        return text;
    char *escaped = ms_arena_alloc(arena, length + 1);
    (void)escape(escaped, text, text);
    return escaped;
}

void ms_print_csv_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '"')
            fputc('"', out);
        fputc(*c, out);
    }
    fputc('"', out);
}
