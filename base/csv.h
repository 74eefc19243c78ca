/* CSV input after RFC 4180: quoted fields, doubled quotes, line breaks inside quotes,
 * CRLF or LF. A malformed row is one row with a fault, not the end of the file; every row
 * knows the line it starts on. */
#ifndef MS_BASE_CSV_H
#define MS_BASE_CSV_H

#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>

/* A reader over text that outlives it. */
typedef struct ms_csv {
    const char *text;
    size_t length;
    size_t offset; /* of the next row */
    int line;      /* of the next row, from 1 */
    bool resumed;  /* after a quote that never ended */
} ms_csv;

typedef struct ms_csv_row {
    int line;
    int num_cells;
    const char *const *cells; /* without quotes, zero-ended, in the arena */
    /* (num_cells): bytes from the row's begin, from 1, to each cell's text */
    const int *columns;
    const char *fault; /* NULL: well formed; otherwise what is wrong, and no cells */
} ms_csv_row;

/* Reads a whole file ("-" is standard input) into cx->arena. Errors: MS_EIO cannot be
 * read, MS_EINPUT larger than 64 MiB. */
ms_status ms_csv_load(ms_ctx *cx, const char *path, ms_csv *out);
/* Starts on text in memory; a UTF-8 byte order mark is skipped. */
ms_csv ms_csv_open(const char *text, size_t length);
/* The next row, or false at the end. Empty lines are no rows. Faults: a quote that never
 * ends (reading goes on with the next line, once), a quote inside a field without quotes,
 * text after a closing quote, a zero byte. */
bool ms_csv_next(ms_arena *arena, ms_csv *csv, ms_csv_row *out);

#endif
