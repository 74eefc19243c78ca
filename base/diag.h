/* Errors that the user can cause: recorded in a context as diagnostics, returned as a
 * status. A broken invariant of our own is an assert; a search candidate that does not
 * fit is plain data. */
#ifndef MS_BASE_DIAG_H
#define MS_BASE_DIAG_H

#include "base/arena.h"

#include <stdio.h>

/* The values are the documented exit codes. */
typedef enum ms_status {
    MS_OK = 0,
    MS_EIO = 1,    /* I/O or run-time failure */
    MS_EINPUT = 2, /* wrong usage or bad input */
    MS_ENOFIT = 3, /* no plan fits */
    MS_ECHECK = 4, /* a check or tolerance failed */
    MS_EINTERRUPTED = 130
} ms_status;

/* Where something is wrong. Any part may be absent: file and path NULL, line and column
 * 0. */
typedef struct ms_loc {
    const char *file;
    const char *path; /* inside the file: "/mesh/0/size" */
    int line;
    int column;
} ms_loc;

typedef struct ms_diag {
    ms_status status;
    ms_loc loc;
    const char *message;
    const char *hint; /* NULL: none */
    struct ms_diag *next;
} ms_diag;

/* One per command or worker thread. */
typedef struct ms_ctx {
    ms_arena *arena;
    ms_diag *first;
    ms_diag *last;
    int num_errors;
    int verbosity; /* -1 quiet, 0 normal, 1 verbose */
} ms_ctx;

#define MS_NOWHERE ((ms_loc){0})

/* Records an error and returns `status`. The text is lower case, without a full stop, and
 * holds the offending value. At most 20 diagnostics are kept; later ones are only
 * counted. */
ms_status ms_fail(ms_ctx *cx, ms_status status, ms_loc loc, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Adds a hint to the error recorded last. */
void ms_hint(ms_ctx *cx, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints all diagnostics as `file:line:column: error: message (at /path)` with their
 * hints. Bytes that are no valid UTF-8, and control characters, appear as \xNN. */
void ms_diag_print(const ms_ctx *cx, FILE *out);

/* Index of `text` in a NULL-ended list of names; -1 when it is none of them. */
int ms_choice_find(const char *text, const char *const *choices);

/* The candidate nearest to `text` by edit distance (at most 2, or a third of its
 * length), or NULL. */
const char *ms_nearest(const char *text, const char *const *candidates,
                       int num_candidates);

/* Only in functions that hold nothing but arena memory. */
#define MS_TRY(expr)                                                                     \
    do {                                                                                 \
        ms_status try_status_ = (expr);                                                  \
        if (try_status_ != MS_OK)                                                        \
            return try_status_;                                                          \
    } while (0)

#endif
