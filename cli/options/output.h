/* Where results go: standard output, or a file that appears only when it is complete.
 * Notes for people (base/note.h) go to standard error. */
#ifndef MS_CLI_OPTIONS_OUTPUT_H
#define MS_CLI_OPTIONS_OUTPUT_H

#include "base/json.h"
#include "base/note.h"

typedef struct ms_output {
    FILE *file;
    ms_jout json;          /* JSON writer on `file`, for results in JSON */
    const char *path;      /* path of the result; NULL: standard output */
    const char *temporary; /* renamed to `path` at the end; NULL: written in place */
} ms_output;

/* Opens `path`, or standard output for NULL and "-". A regular or new file is written
 * under a temporary name in the same folder; devices, pipes and links are written in
 * place. Errors: MS_EIO. */
ms_status ms_output_open(ms_ctx *cx, const char *path, ms_output *out);

/* Checks, before long work, that its result can be written to `path`; MS_EIO if not. A
 * file that exists there stays unchanged. NULL and "-" always pass. */
ms_status ms_output_check_writable(ms_ctx *cx, const char *path);

/* MS_EINPUT when two of `paths` (a command's inputs and outputs) are the same file, which
 * one of them would replace. NULL is no file; "-" and devices may be shared. Paths need
 * not exist. */
ms_status ms_output_check_distinct(ms_ctx *cx, const char *const *paths, int num_paths);
ms_status ms_output_check_differ(ms_ctx *cx, const char *a, const char *b);

/* Whether a write failed because the reader of standard output has gone
 * (meshsim ... | head), which is no failure: no error is recorded. */
bool ms_output_reader_is_gone(void);

/* Whether text for `path` (NULL: standard output) may hold ANSI colours: only for a
 * terminal, and not with NO_COLOR (no-color.org). */
bool ms_output_takes_colours(const char *path);

/* Width in columns of text for `path` (NULL: standard output): COLUMNS of the environment
 * if it is a whole number from 1 to 10000, or that of the terminal if standard output is
 * one; otherwise, and for files, `fallback`. */
int ms_output_width(const char *path, int fallback);
#define MS_OUTPUT_WIDTH 80 /* width of text where none is known */

/* Abandons an open output: a file that existed at its path stays unchanged. */
void ms_output_drop(ms_ctx *cx, ms_output *out);

/* Ends the output and returns `status`, or MS_EIO if a write failed. The file appears
 * for every status that has a result (MS_OK, MS_ENOFIT, MS_ECHECK, MS_EINTERRUPTED). */
ms_status ms_output_close(ms_ctx *cx, ms_output *out, ms_status status);

#endif
