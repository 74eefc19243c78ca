/* Finds the source position of a JSON value, only when an error is reported: cJSON nodes
 * have no offsets, but the k-th node of the tree is the k-th value of the text. */
#include "base/json_priv.h"

#include <string.h>

static const char *skip_space(const char *p)
{
    return p + strspn(p, " \t\r\n");
}

static const char *skip_string(const char *p)
{
    for (p++; *p != '\0' && *p != '"'; p++)
        if (*p == '\\' && p[1] != '\0')
            p++;
    return *p == '"' ? p + 1 : p;
}

const char *ms_json_find(const char *text, size_t index, bool want_key)
{
    const char *key = NULL;
    size_t num_seen = 0;
    for (const char *p = skip_space(text); *p != '\0'; p = skip_space(p)) {
        const char *start = p;
        if (strchr(",]}", *p) != NULL) {
            p++;
            continue;
        }
        if (*p == '"') {
            p = skip_string(p);
            const char *after = skip_space(p);
            if (*after == ':') {
                key = start;
                p = after + 1;
                continue;
            }
        } else if (*p == '{' || *p == '[') {
            p++;
        } else {
            p += strcspn(p, " \t\r\n,]}");
        }
        if (num_seen++ == index)
            return want_key && key != NULL ? key : start;
        key = NULL;
    }
    return text;
}

void ms_json_position(const char *text, size_t offset, int *line, int *column)
{
    *line = 1;
    *column = 1;
    for (size_t i = 0; i < offset; i++) {
        if (text[i] == '\n') {
            ++*line;
            *column = 1;
        } else {
            ++*column;
        }
    }
}
