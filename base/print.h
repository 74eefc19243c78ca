/* Printing of text for people: names from files and arguments cannot control a terminal
 * or break a line. All output that is not JSON, and all diagnostics, are printed with
 * it. */
#ifndef MS_BASE_PRINT_H
#define MS_BASE_PRINT_H

#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>

/* fprintf whose arguments are escaped as by ms_printable; control characters of the
 * format itself, such as newlines, are written unchanged. Returns the number of bytes. */
int ms_print(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
int ms_vprint(FILE *out, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

/* A copy of the text in the arena with control characters (C0, DEL, C1) and invalid
 * UTF-8 as \xNN; the text itself if it has none. */
const char *ms_printable(ms_arena *arena, const char *text);

#endif
