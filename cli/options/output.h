/* Where results go: standard output, or a file that appears only when it is complete.
 * Notes for people go to standard error. */
#ifndef MS_CLI_OPTIONS_OUTPUT_H
#define MS_CLI_OPTIONS_OUTPUT_H

#include "base/diag.h"

#include <stdbool.h>
#include <stdio.h>

typedef struct ms_output {
    FILE *file;
    const char *path;      /* NULL: standard output */
    const char *temporary; /* renamed to `path` at the end; NULL: written in place */
} ms_output;

/* Opens `path`, or standard output for NULL and "-". A regular or new file is written
 * under a temporary name beside it; devices, pipes and links are written in place.
 * Errors: MS_EIO. */
ms_status ms_output_open(ms_ctx *cx, const char *path, ms_output *out);

/* Whether a file can be written at `path`, before work whose result it is to take: MS_EIO
 * says why not. What is there stays as it is. NULL and "-" can. */
ms_status ms_output_check_writable(ms_ctx *cx, const char *path);

/* MS_EINPUT when two of `paths` are one file: an output would replace an input or the
 * other output. NULL counts as no file; "-" and devices may be shared. Other paths
 * need not exist. */
ms_status ms_output_check_distinct(ms_ctx *cx, const char *const *paths, int num_paths);

/* Whether a result could not be written because nobody reads standard output any more
 * (meshsim ... | head): no failure, nothing is said about it. */
bool ms_output_reader_is_gone(void);

/* Whether text for `path` (NULL: standard output) may hold ANSI colours: only for a
 * terminal, and not with NO_COLOR (no-color.org). */
bool ms_output_takes_colours(const char *path);

/* Columns for text that goes to `path` (NULL: standard output): those of the terminal
 * when it is one, otherwise `fallback`. */
int ms_output_width(const char *path, int fallback);

/* Gives the output up: what was there stays. */
void ms_output_drop(ms_ctx *cx, ms_output *out);

/* Ends the output and returns `status`, or MS_EIO when something could not be written.
 * A file is kept for every status that has a result (MS_OK, MS_ENOFIT, MS_ECHECK,
 * MS_EINTERRUPTED). */
ms_status ms_output_close(ms_ctx *cx, ms_output *out, ms_status status);

/* Notes on standard error: `note: ...` unless quiet; `default: ...` only when verbose. */
void ms_note(const ms_ctx *cx, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void ms_note_default(const ms_ctx *cx, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
