/* JSON input by field tables, with positions in error messages, and a writer. */
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

/* Reads and parses a file ("-": stdin). MS_EIO if it cannot be read; MS_EINPUT if it is
 * not valid UTF-8 JSON, nested deeper than 64 levels, or larger than 64 MiB. `doc` owns
 * text and tree until ms_json_close; strings are copied into cx->arena. */
ms_status ms_json_load(ms_ctx *cx, const char *path, ms_jdoc **doc, ms_jval *root);
/* Parses text in memory; `name` stands for the file name in messages. */
ms_status ms_json_parse(ms_ctx *cx, const char *name, const char *text, size_t length,
                        ms_jdoc **doc, ms_jval *root);
/* Like ms_json_load and ms_json_parse, but bare NaN, Infinity and -Infinity are values, as
 * Python's json module writes them: NaN reads as null, the others as numbers that no
 * range includes. */
ms_status ms_json_load_python(ms_ctx *cx, const char *path, ms_jdoc **doc, ms_jval *root);
ms_status ms_json_parse_python(ms_ctx *cx, const char *name, const char *text,
                               size_t length, ms_jdoc **doc, ms_jval *root);
/* MS_EINPUT, at its place, if a document read so holds one of these words. */
ms_status ms_json_require_strict(ms_ctx *cx, ms_jval root);
/* Frees the document; its values become invalid. NULL is allowed. */
void ms_json_close(ms_jdoc *doc);

/* ---- one value ---- */

bool ms_json_is_null(ms_jval value);
bool ms_json_is_object(ms_jval value);
bool ms_json_is_array(ms_jval value);
bool ms_json_is_string(ms_jval value);
bool ms_json_is_bool(ms_jval value);
/* Finds a member of an object by key; false if it is absent or `object` is no object. */
bool ms_json_member(ms_ctx *cx, ms_jval object, const char *key, ms_jval *out);
/* number of members of an object or elements of an array */
int ms_json_length(ms_jval container);
/* The index-th element of an array, 0 <= index < length. */
ms_jval ms_json_element(ms_ctx *cx, ms_jval array, int index);
/* The index-th member of an object and its key, 0 <= index < length. */
ms_jval ms_json_entry(ms_ctx *cx, ms_jval object, int index, const char **key);

/* Read a value as a text or bool. MS_EINPUT, recorded, if it is of another kind. */
ms_status ms_json_text(ms_ctx *cx, ms_jval value, const char **out);
ms_status ms_json_bool(ms_ctx *cx, ms_jval value, bool *out);
/* Reads a finite number within [low, high]. */
ms_status ms_json_number(ms_ctx *cx, ms_jval value, double low, double high, double *out);
/* Reads a number without fraction within [low, high]. */
ms_status ms_json_integer(ms_ctx *cx, ms_jval value, long low, long high, long *out);
/* Reads a string with a unit, "80 GiB"; MS_UNIT_COUNT needs no unit. */
ms_status ms_json_quantity(ms_ctx *cx, ms_jval value, ms_unit unit, double *out);

/* The place of a value in the source; for a member of an object, the place of its key.
 * MS_NOWHERE for a value that is all zero, of no document. */
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

/* Array elements of one type, in the order of the file. */
typedef struct ms_list {
    const void *rows;
    int num_rows;
} ms_list;

/* One key of an object and the struct member that it fills. */
typedef struct ms_field {
    ms_field_kind kind;
    const char *key;
    size_t offset; /* bytes from the start of the filled struct to the member */
    bool required; /* true: absence is an error; false: the member then stays unchanged */
    bool nullable; /* true: null is accepted and leaves the member unchanged */
    double low, high; /* limits of INTEGER and NUMBER, low < high; INFINITY: none */
    ms_unit unit;     /* unit of MS_FIELD_QUANTITY */
    const char *const *choices; /* words of MS_FIELD_CHOICE */
    /* MS_FIELD_LIST: the table of an element's fields if elements are objects, else one
     * field without a key. Each element fills a struct of `element_bytes` zeroed bytes */
    const struct ms_field *element;
    size_t element_bytes;
    const char *help; /* one line for hints; NULL: none */
} ms_field;

/* Fills `*out` from an object and records all its errors. Unknown and repeated keys are
 * errors that name the nearest known key. Remarks are ignored: keys that start with "_",
 * and texts of "source", "note" and "date" if the table does not list them. */
ms_status ms_json_read(ms_ctx *cx, ms_jval object, const ms_field *fields, void *out);

/* ---- writing ---- */

/* Streaming writer with two-space indentation. NaN and infinities are written as null;
 * strings are escaped, invalid UTF-8 becomes \ufffd. */
typedef struct ms_jout {
    FILE *file;
    int depth;
    int line_depth; /* containers at a greater depth go on one line; 0: none do, -1: all */
    bool need_comma;
    bool after_key;
} ms_jout;

ms_jout ms_jout_open(FILE *file);
void ms_jout_close(ms_jout *out); /* writes the final newline; does not close the file */
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
/* Writes an array of whole numbers on one line. */
void ms_jout_integers(ms_jout *out, const long *values, long num_values);
/* Write a member of an object: its key and value, or the start of its value. */
void ms_jout_text_field(ms_jout *out, const char *key, const char *text);
void ms_jout_number_field(ms_jout *out, const char *key, double value);
void ms_jout_bool_field(ms_jout *out, const char *key, bool value);
void ms_jout_begin_object_field(ms_jout *out, const char *key);
void ms_jout_begin_array_field(ms_jout *out, const char *key);
void ms_jout_numbers_field(ms_jout *out, const char *key, const double *values, long num);

#endif
