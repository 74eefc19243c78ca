/* JSON input by field tables, with positions in error messages, and a streaming writer.
 * Only json.c uses cJSON. A value knows its document, so every error names
 * file:line:column and the JSON path. */
#ifndef MS_BASE_JSON_H
#define MS_BASE_JSON_H

#include "base/diag.h"
#include "base/units.h"

#include <stdbool.h>

typedef struct ms_jdoc ms_jdoc; /* a document: source text and parsed tree */

/* One value of a document. `node` is opaque; `path` is its JSON pointer ("/mesh/0"). */
typedef struct ms_jval {
    const ms_jdoc *doc;
    const void *node;
    const char *path;
} ms_jval;

/* Reads and parses a file ("-" is standard input). MS_EIO if it cannot be read (a
 * directory, for example); MS_EINPUT if it is not valid JSON or UTF-8, nested deeper
 * than 64 levels, or larger than 64 MiB. `doc` owns text and tree until ms_json_close;
 * strings read from it are copied into cx->arena. */
ms_status ms_json_load(ms_ctx *cx, const char *path, ms_jdoc **doc, ms_jval *root);
/* Parses text in memory like ms_json_load; `name` stands for the file name in
 * messages. */
ms_status ms_json_parse(ms_ctx *cx, const char *name, const char *text, size_t length,
                        ms_jdoc **doc, ms_jval *root);
/* Frees the document; its values become invalid. NULL is allowed. */
void ms_json_close(ms_jdoc *doc);

/* ---- one value ---- */

bool ms_json_is_null(ms_jval value);
bool ms_json_is_object(ms_jval value);
bool ms_json_is_array(ms_jval value);
bool ms_json_is_string(ms_jval value);
/* Finds a member of an object by key; false if it is absent or `object` is no object. */
bool ms_json_member(ms_ctx *cx, ms_jval object, const char *key, ms_jval *out);
/* number of members of an object or elements of an array */
int ms_json_length(ms_jval container);
/* The index-th element of an array, 0 <= index < length. */
ms_jval ms_json_element(ms_ctx *cx, ms_jval array, int index);
/* The index-th member of an object and its key, 0 <= index < length. */
ms_jval ms_json_entry(ms_ctx *cx, ms_jval object, int index, const char **key);

/* The readers below return MS_EINPUT, with the value recorded as an error, if it is of
 * another kind. ms_json_text copies the string into cx->arena. */
ms_status ms_json_text(ms_ctx *cx, ms_jval value, const char **out);
ms_status ms_json_bool(ms_ctx *cx, ms_jval value, bool *out);
/* Reads a finite number within [low, high]. */
ms_status ms_json_number(ms_ctx *cx, ms_jval value, double low, double high, double *out);
/* Reads a number without fraction within [low, high]. */
ms_status ms_json_integer(ms_ctx *cx, ms_jval value, long low, long high, long *out);
/* Reads a string with a unit, "80 GiB"; a number without a unit is an error with a
 * hint, except for MS_UNIT_COUNT. */
ms_status ms_json_quantity(ms_ctx *cx, ms_jval value, ms_unit unit, double *out);

/* The place in the source of a value, or of the key of an object member. */
ms_loc ms_json_loc(ms_ctx *cx, ms_jval value);
ms_loc ms_json_key_loc(ms_ctx *cx, ms_jval object, const char *key);

/* Records an error at the place of a value and returns MS_EINPUT. */
ms_status ms_json_fail(ms_ctx *cx, ms_jval value, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- field tables ---- */

typedef enum ms_field_kind {
    MS_FIELD_END = 0,  /* {0} ends a table */
    MS_FIELD_TEXT,     /* const char * */
    MS_FIELD_BOOL,     /* bool */
    MS_FIELD_INTEGER,  /* long, within [low, high] */
    MS_FIELD_NUMBER,   /* double, within [low, high] */
    MS_FIELD_QUANTITY, /* double, from a string with `unit` */
    MS_FIELD_CHOICE,   /* int: index into `choices`, a NULL-ended list of words */
    MS_FIELD_LIST,     /* ms_list: an array, each element read by `element` */
    MS_FIELD_ANY       /* any value: accepted, and read by the caller */
} ms_field_kind;

/* Rows of one type, in the order of the file. */
typedef struct ms_list {
    const void *rows;
    int num_rows;
} ms_list;

/* One key of an object and the struct member that it fills. */
typedef struct ms_field {
    ms_field_kind kind;
    const char *key;
    size_t offset; /* bytes from the start of the filled struct to the member */
    /* true: absence is an error; false: an absent field leaves the member unchanged */
    bool required;
    bool nullable; /* true: null is accepted and leaves the member unchanged */
    /* limits of MS_FIELD_INTEGER and MS_FIELD_NUMBER, low < high; INFINITY for no
     * limit */
    double low, high;
    ms_unit unit;               /* unit of MS_FIELD_QUANTITY */
    const char *const *choices; /* words of MS_FIELD_CHOICE */
    /* MS_FIELD_LIST: the field table of each element's object, or a single field without a
     * key that reads each element; it fills `element_bytes` of zeros */
    const struct ms_field *element;
    size_t element_bytes;
    const char *help; /* one line for hints; NULL: none */
} ms_field;

/* Fills the struct `*out` from an object by a field table. All errors of the object are
 * recorded, not only the first. Unknown and repeated keys are errors that name the
 * nearest known key. Remarks are ignored: keys that start with "_", and the texts of
 * "source", "note" and "date" where the table does not list them. */
ms_status ms_json_read(ms_ctx *cx, ms_jval object, const ms_field *fields, void *out);

/* ---- writing ---- */

/* Streaming writer with two-space indentation; keys and values appear in call order.
 * NaN and infinities are written as null. Strings are escaped; invalid UTF-8 becomes
 * \ufffd. */
typedef struct ms_jout {
    FILE *file;
    int depth;
    /* nesting depth beyond which each container is written on one line; 0: never. May
     * be changed between calls */
    int line_depth;
    bool need_comma;
    bool after_key;
} ms_jout;

ms_jout ms_jout_open(FILE *file);
void ms_jout_close(ms_jout *out); /* writes the final newline; leaves the file open */
void ms_jout_begin_object(ms_jout *out);
void ms_jout_end_object(ms_jout *out);
void ms_jout_begin_array(ms_jout *out);
void ms_jout_end_array(ms_jout *out);
void ms_jout_key(ms_jout *out, const char *key);
void ms_jout_text(ms_jout *out, const char *text); /* NULL is written as null */
/* The shortest decimal text that reads back as the same double; returns buf. */
const char *ms_json_number_text(double value, char buf[32]);
void ms_jout_number(ms_jout *out, double value);
void ms_jout_bool(ms_jout *out, bool value);
void ms_jout_null(ms_jout *out);
/* Writes an array of whole numbers on one line, so that long lists of ranks stay
 * readable. */
void ms_jout_integers(ms_jout *out, const long *values, long num_values);
/* Each writes a key and its value. */
void ms_jout_text_field(ms_jout *out, const char *key, const char *text);
void ms_jout_number_field(ms_jout *out, const char *key, double value);
void ms_jout_bool_field(ms_jout *out, const char *key, bool value);
void ms_jout_begin_object_field(ms_jout *out, const char *key);
void ms_jout_begin_array_field(ms_jout *out, const char *key);
void ms_jout_numbers_field(ms_jout *out, const char *key, const double *values, long num);

#endif
