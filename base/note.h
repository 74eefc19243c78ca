/* Notes for people, and defaults that a command used: on standard error, and kept. */
#ifndef MS_BASE_NOTE_H
#define MS_BASE_NOTE_H

#include "base/diag.h"

/* Keeps a note in cx->notes, if they are kept, and prints `kind: ...` on standard error
 * unless the verbosity of `cx` is below `least`. */
void ms_note_at(const ms_ctx *cx, int least, const char *kind, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Print `note: ...` unless quiet, and `default: ...` only when verbose, on stderr. */
/* NOLINTBEGIN(readability-identifier-naming): they are called like functions */
#define ms_note(cx, ...)         ms_note_at((cx), 0, "note", __VA_ARGS__)
#define ms_note_default(cx, ...) ms_note_at((cx), 1, "default", __VA_ARGS__)
/* NOLINTEND(readability-identifier-naming) */

#endif
