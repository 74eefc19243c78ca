#include "base/wrap.h"

#include "base/print.h"
#include "base/utf8.h"

#include <stdbool.h>
#include <string.h>

/* Whether a line may end before text[at]; at > 0. */
static bool is_break(const char *text, size_t at, const char *behind)
{
    bool is_end = text[at] == ' ' || text[at] == '\0';
    return text[at - 1] != ' ' && (is_end || strchr(behind, text[at - 1]) != NULL);
}

size_t ms_wrap_bytes(const char *text, size_t width, const char *behind)
{
    size_t most = (size_t)ms_utf8_prefix(text, width < 1 ? 1 : (int)width);
    for (size_t bytes = most; bytes > 0; bytes--)
        if (is_break(text, bytes, behind))
            return bytes;
    return most;
}

size_t ms_wrap_longest_word(const char *text, const char *behind)
{
    size_t longest = 0;
    while (*text != '\0') {
        size_t bytes = strspn(text, " ");
        if (text[bytes] == '\0') /* spaces without a word */
            return bytes > longest ? bytes : longest;
        do
            bytes++;
        while (text[bytes - 1] != '\0' && !is_break(text, bytes, behind));
        size_t width = 0;
        for (size_t at = 0; at < bytes; width++)
            at += (size_t)ms_utf8_prefix(text + at, 1);
        longest = width > longest ? width : longest;
        text = ms_wrap_rest(text, bytes);
    }
    return longest;
}

const char *ms_wrap_rest(const char *text, size_t bytes)
{
    text += bytes;
    return text + strspn(text, " ");
}

void ms_wrap_print(FILE *out, const char *text, size_t width, size_t indent)
{
    size_t room = width;
    indent = indent > width / 2 ? width / 2 : indent;
    do {
        size_t bytes = width == 0 ? strlen(text) : ms_wrap_bytes(text, room, ",");
        ms_print(out, "%*s%.*s\n", room < width ? (int)indent : 0, "", (int)bytes, text);
        text = ms_wrap_rest(text, bytes);
        room = width > indent ? width - indent : 1;
    } while (*text != '\0');
}
