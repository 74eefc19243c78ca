/* CSV input by RFC 4180. A malformed row has a fault; reading continues after it. */
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
    bool resumed;  /* true after a quote never closed: reading resumed on the next line */
} ms_csv;

typedef struct ms_csv_row {
    int line;
    int num_cells;
    const char *const *cells; /* (num_cells) texts without quotes, in the arena */
    const int *columns;       /* byte column (from 1) of each cell in its row */
    const char *fault; /* fault of the row, whose num_cells is then 0; NULL: none */
} ms_csv_row;

/* Reads a file ("-": stdin) into cx->arena. MS_EIO; MS_EINPUT if larger than 128 MiB. */
ms_status ms_csv_load(ms_ctx *cx, const char *path, ms_csv *out);
/* A reader at the start of text in memory; a UTF-8 byte order mark is skipped. */
ms_csv ms_csv_open(const char *text, size_t length);
/* Reads the next row that is not empty; false at the end of the text. Faults of a row: a
 * quote that is never closed, a quote in an unquoted field, text after a closing quote, a
 * zero byte. After the text's first unclosed quote, reading resumes on the next line. */
bool ms_csv_next(ms_arena *arena, ms_csv *csv, ms_csv_row *out);
/* MS_EINPUT at the cell, also if the row is too short to have it: its text is not what
 * `wants` says ("a number above 0"). */
ms_status ms_csv_fail_cell(ms_ctx *cx, const char *path, const ms_csv_row *row, int cell,
                           const char *wants);

#endif
