/* Prints text for people, escaped: names from files cannot control the terminal. */
#ifndef MS_BASE_PRINT_H
#define MS_BASE_PRINT_H

#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>

/* fprintf whose arguments, but not the format, are escaped; returns how many bytes. */
int ms_print(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
int ms_vprint(FILE *out, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

/* A text with control characters and invalid UTF-8 as \xNN, copied if it has any. */
const char *ms_printable(ms_arena *arena, const char *text);
/* A text as a cell of a CSV file, in quotes. */
void ms_print_csv_text(FILE *out, const char *text);

#endif
