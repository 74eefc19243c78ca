/* Errors that the user can cause: recorded in a context as diagnostics and returned as a
 * status. Broken invariants of the program are asserts instead. */
#ifndef MS_BASE_DIAG_H
#define MS_BASE_DIAG_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdio.h>

/* Status of an operation; the values are the documented exit codes of the program. */
typedef enum ms_status {
    MS_OK = 0,
    MS_EIO = 1,    /* I/O or run-time failure */
    MS_EINPUT = 2, /* wrong usage or bad input */
    MS_ENOFIT = 3, /* no plan fits into memory, makes progress, or keeps the limits */
    MS_ECHECK = 4, /* a check or tolerance failed */
    MS_EINTERRUPTED = 130
} ms_status;

/* The place of an error; absent members are NULL or 0. */
typedef struct ms_loc {
    const char *file;
    const char *path; /* JSON pointer inside the file: "/mesh/0/size" */
    int line;
    int column;
} ms_loc;

typedef struct ms_diag {
    ms_status status;
    ms_loc loc;
    const char *message;
    const char *hint; /* suggestion for the user; NULL: none */
    struct ms_diag *next;
} ms_diag;

/* A note for people, or a default that a command used, kept for a report. */
typedef struct ms_kept_note {
    const char *kind, *text; /* "note" or "default" */
    struct ms_kept_note *next;
} ms_kept_note;

/* Notes in order. Starts zeroed. */
typedef struct ms_kept_notes {
    ms_kept_note *first, *last;
} ms_kept_notes;

/* Context of one command or worker thread: its arena and the errors recorded so far. */
typedef struct ms_ctx {
    ms_arena *arena;
    ms_diag *first; /* recorded errors in order; NULL: none */
    ms_diag *last;
    ms_status status;     /* status of the last error */
    int num_errors;       /* all errors so far: the 20 recorded ones and later ones */
    int verbosity;        /* amount of output: -1 quiet, 0 normal, 1 verbose */
    ms_kept_notes *notes; /* keeps notes and defaults, printed or not; NULL: none kept */
    const char *configs;  /* folder of data files looked into first; NULL: none */
    int num_threads;      /* worker threads of long work; 0 is 1 */
    const volatile int *interrupted; /* nonzero: stop long work; NULL: never */
} ms_ctx;

#define MS_NOWHERE ((ms_loc){0})

/* The context of a part of what `cx` does: its data, threads and interrupts, with errors
 * and notes of its own, none of which are printed. */
ms_ctx ms_ctx_quiet(const ms_ctx *cx, ms_arena *arena);
/* The number of worker threads of long work. */
int ms_ctx_threads(const ms_ctx *cx);
/* Whether long work is to stop, because of a signal or another thread; NULL: never. */
static inline bool ms_is_interrupted(const volatile int *interrupted)
{
    return interrupted != NULL && __atomic_load_n(interrupted, __ATOMIC_RELAXED) != 0;
}

/* Records an error and returns `status`. The message is lower case, without a full stop,
 * and names the offending value. After 20 errors, further ones are only counted. */
ms_status ms_fail(ms_ctx *cx, ms_status status, ms_loc loc, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Adds a hint to the last error, whose status it returns. */
ms_status ms_hint(ms_ctx *cx, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Prints errors and hints, escaped: `file:line:column: error: message (at /path)`. */
void ms_diag_print(const ms_ctx *cx, FILE *out);

/* Index of `text` in a NULL-ended list of names; -1 if it is none of them. */
int ms_choice_find(const char *text, const char *const *choices);

/* The candidate with the least edit distance to `text`, for "did you mean" hints; NULL if
 * every distance exceeds both 2 and a third of the length of `text`. */
const char *ms_nearest(const char *text, const char *const *candidates,
                       int num_candidates);

/* Returns the status of `expr` from the function unless it is MS_OK; frees nothing. */
#define MS_TRY(expr)                                                                     \
    do {                                                                                 \
        ms_status try_status_ = (expr);                                                  \
        if (try_status_ != MS_OK)                                                        \
            return try_status_;                                                          \
    } while (0)

#endif
