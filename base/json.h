/* JSON input with positions, by field tables; and a streaming writer. The only user of
 * cJSON is json.c. A value remembers its document, so every error names file:line:column
 * and the path. */
#ifndef MS_BASE_JSON_H
#define MS_BASE_JSON_H

#include "base/diag.h"
#include "base/units.h"

#include <stdbool.h>

typedef struct ms_jdoc ms_jdoc; /* source text and parsed tree */

/* One value inside a document. `node` is opaque; `path` is its place ("/mesh/0"). */
typedef struct ms_jval {
    const ms_jdoc *doc;
    const void *node;
    const char *path;
} ms_jval;

/* Reads and parses a file ("-" is standard input). Errors: MS_EIO cannot be read
 * (directories too), MS_EINPUT no valid JSON, no valid UTF-8, nested deeper than 64, or
 * larger than 64 MiB. The text and the tree belong to `doc`; strings read from it are
 * copied into cx->arena. */
ms_status ms_json_load(ms_ctx *cx, const char *path, ms_jdoc **doc, ms_jval *root);
/* The same from memory; `name` stands for the file in messages. */
ms_status ms_json_parse(ms_ctx *cx, const char *name, const char *text, size_t length,
                        ms_jdoc **doc, ms_jval *root);
void ms_json_close(ms_jdoc *doc);

/* ---- one value ---- */

bool ms_json_is_null(ms_jval value);
bool ms_json_is_object(ms_jval value);
bool ms_json_is_array(ms_jval value);
bool ms_json_is_string(ms_jval value);
/* The member of an object; false when absent. */
bool ms_json_member(ms_ctx *cx, ms_jval object, const char *key, ms_jval *out);
int ms_json_length(ms_jval container); /* members or elements */
ms_jval ms_json_element(ms_ctx *cx, ms_jval array, int index);
/* The index-th member of an object and its key. */
ms_jval ms_json_entry(ms_ctx *cx, ms_jval object, int index, const char **key);

ms_status ms_json_text(ms_ctx *cx, ms_jval value, const char **out);
ms_status ms_json_bool(ms_ctx *cx, ms_jval value, bool *out);
/* A finite number within [low, high]. */
ms_status ms_json_number(ms_ctx *cx, ms_jval value, double low, double high, double *out);
/* A number without fraction within [low, high]. */
ms_status ms_json_integer(ms_ctx *cx, ms_jval value, long low, long high, long *out);
/* A string with a unit, "80 GiB"; a bare number is an error with a hint. */
ms_status ms_json_quantity(ms_ctx *cx, ms_jval value, ms_unit unit, double *out);

/* Where the value (or, for a key of an object, the key) stands in the source. */
ms_loc ms_json_loc(ms_ctx *cx, ms_jval value);
ms_loc ms_json_key_loc(ms_ctx *cx, ms_jval object, const char *key);

/* Records `message` at the value. */
ms_status ms_json_fail(ms_ctx *cx, ms_jval value, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- field tables ---- */

typedef enum ms_field_kind {
    MS_FIELD_END = 0,  /* a table ends with {0} */
    MS_FIELD_TEXT,     /* const char * */
    MS_FIELD_BOOL,     /* bool */
    MS_FIELD_INTEGER,  /* long, within [low, high] */
    MS_FIELD_NUMBER,   /* double, within [low, high] */
    MS_FIELD_QUANTITY, /* double, from a string with `unit` */
    MS_FIELD_CHOICE,   /* int: index into `choices`, a NULL-ended list of words */
    MS_FIELD_ANY       /* accepted and left to the caller */
} ms_field_kind;

typedef struct ms_field {
    ms_field_kind kind;
    const char *key;
    size_t offset; /* into the struct that is filled */
    bool required; /* absent: an error; otherwise the struct keeps what it holds */
    bool nullable; /* null is accepted and leaves the struct as it is */
    /* MS_FIELD_INTEGER, MS_FIELD_NUMBER: low < high, INFINITY for none */
    double low, high;
    ms_unit unit; /* MS_FIELD_QUANTITY */
    const char *const *choices;
    const char *help;
} ms_field;

/* Fills `*out` from an object. All errors of the object are recorded, not only the first.
 * Unknown and repeated keys are errors that name the nearest known key. Keys starting
 * with "_" or equal to "source", "note", "date" are accepted as text and ignored if not
 * in the table. */
ms_status ms_json_read(ms_ctx *cx, ms_jval object, const ms_field *fields, void *out);

/* ---- writing ---- */

/* Streaming writer, two-space indentation; keys and values in call order. NaN and
 * infinities are written as null. Strings are escaped; bytes that are no UTF-8 become
 * \ufffd. */
typedef struct ms_jout {
    FILE *file;
    int depth;
    /* containers nested deeper stand on one line each; 0: none. May be set between
     * calls */
    int line_depth;
    bool need_comma;
    bool after_key;
} ms_jout;

ms_jout ms_jout_open(FILE *file);
void ms_jout_close(ms_jout *out); /* ends the line; does not close the file */
void ms_jout_begin_object(ms_jout *out);
void ms_jout_end_object(ms_jout *out);
void ms_jout_begin_array(ms_jout *out);
void ms_jout_end_array(ms_jout *out);
void ms_jout_key(ms_jout *out, const char *key);
void ms_jout_text(ms_jout *out, const char *text); /* NULL is null */
/* Shortest decimal text that reads back equal; buf holds at least 32 bytes. */
const char *ms_json_number_text(double value, char buf[32]);
void ms_jout_number(ms_jout *out, double value); /* shortest text that reads back equal */
void ms_jout_null(ms_jout *out);
/* An array of whole numbers on one line: long lists of ranks stay readable. */
void ms_jout_integers(ms_jout *out, const long *values, long num_values);
/* key and value in one call */
void ms_jout_text_field(ms_jout *out, const char *key, const char *text);
void ms_jout_number_field(ms_jout *out, const char *key, double value);
void ms_jout_bool_field(ms_jout *out, const char *key, bool value);
void ms_jout_begin_object_field(ms_jout *out, const char *key);
void ms_jout_begin_array_field(ms_jout *out, const char *key);

#endif
