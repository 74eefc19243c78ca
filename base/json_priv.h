/* Shared by the json_*.c files only: they split reading into checking the text, finding
 * places in it, and the tree. */
#ifndef MS_BASE_JSON_PRIV_H
#define MS_BASE_JSON_PRIV_H

#include "base/json.h"

#define MS_JSON_MAX_DEPTH 64

/* The first fault of a JSON text: what, and where as an offset. */
typedef struct ms_json_fault {
    const char *message; /* NULL: the text is sound */
    size_t offset;
} ms_json_fault;

/* Checks text[0..length), which must be followed by a zero byte, against RFC 8259, and
 * against the limits of this project: valid UTF-8, no zero characters, depth, numbers of
 * at most 60 characters. */
ms_json_fault ms_json_check(const char *text, size_t length);

/* The index-th value of a sound text in the order of opening characters (0 is the root);
 * with `want_key`, the key before it. */
const char *ms_json_find(const char *text, size_t index, bool want_key);

/* Line and column (bytes, both from 1) of an offset. */
void ms_json_position(const char *text, size_t offset, int *line, int *column);

#endif
