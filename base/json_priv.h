/* Interface between the json_*.c files. */
#ifndef MS_BASE_JSON_PRIV_H
#define MS_BASE_JSON_PRIV_H

#include "base/json.h"

#define MS_JSON_MAX_DEPTH 64

/* The first fault of a JSON text and the byte offset at which it is. */
typedef struct ms_json_fault {
    const char *message; /* NULL: the text is valid */
    size_t offset;
} ms_json_fault;

/* Checks zero-terminated text against RFC 8259 and this project's limits: valid UTF-8, no
 * zero characters, at most 64 levels, numbers of at most 60 characters. `bare_word` gets
 * the first NaN, Infinity or -Infinity, which is no fault here; its message is NULL if
 * there is none. */
ms_json_fault ms_json_check(const char *text, size_t length, ms_json_fault *bare_word);

/* Copies a text that ms_json_check accepts, with null for NaN and 1e999 for Infinity.
 * `out` has room for twice its length. */
void ms_json_replace_bare_words(const char *text, char *out);

/* Start of value number `index` in text order (0: root), or with `want_key` of its
 * key. */
const char *ms_json_find(const char *text, size_t index, bool want_key);

/* Line and column (in bytes, both from 1) of a byte offset. */
void ms_json_position(const char *text, size_t offset, int *line, int *column);

#endif
