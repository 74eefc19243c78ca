/* CSV input by RFC 4180: quoted fields, doubled quotes, line breaks inside quotes, CRLF
 * or LF. A malformed row is reported as one row with a fault, and reading continues
 * after it; every row knows the line on which it starts. */
#ifndef MS_BASE_CSV_H
#define MS_BASE_CSV_H

#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>

/* A CSV reader over text that must outlive it. */
typedef struct ms_csv {
    const char *text;
    size_t length;
    size_t offset; /* byte at which the next row starts */
    int line;      /* line at which the next row starts, from 1 */
    /* true after reading has resumed behind a quote that is never closed */
    bool resumed;
} ms_csv;

typedef struct ms_csv_row {
    int line;
    int num_cells;
    /* zero-terminated texts without their quotes, in the arena */
    const char *const *cells;
    /* shape (num_cells): column in bytes, from 1, at which each cell's text starts in
     * the row */
    const int *columns;
    /* NULL: the row is well formed; otherwise what is wrong, and num_cells is 0 */
    const char *fault;
} ms_csv_row;

/* Reads a whole file ("-" is standard input) into cx->arena. MS_EIO if it cannot be
 * read, MS_EINPUT if it is larger than 64 MiB. */
ms_status ms_csv_load(ms_ctx *cx, const char *path, ms_csv *out);
/* A reader at the start of text in memory; a UTF-8 byte order mark is skipped. */
ms_csv ms_csv_open(const char *text, size_t length);
/* Reads the next row; false at the end of the text. Empty lines are skipped. Faults of
 * a row: a quote that is never closed (reading resumes on the next line, once per
 * text), a quote inside an unquoted field, text after a closing quote, a zero byte. */
bool ms_csv_next(ms_arena *arena, ms_csv *csv, ms_csv_row *out);

#endif
