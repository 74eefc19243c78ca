/* Text for people: names that files and arguments brought cannot steer a terminal or
 * break a line. Results and diagnostics that are no JSON are written by it. */
#ifndef MS_BASE_PRINT_H
#define MS_BASE_PRINT_H

#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>

/* fprintf whose arguments appear as by ms_printable. Control characters of the format
 * itself, such as its newlines, are written as they are. Returns the number of bytes. */
int ms_print(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
int ms_vprint(FILE *out, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

/* The text with control characters (C0, DEL, C1) and bytes that are no valid UTF-8 as
 * \xNN; the text itself when it has none. */
const char *ms_printable(ms_arena *arena, const char *text);

#endif
