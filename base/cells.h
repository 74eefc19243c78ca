/* The cells of a CSV row as a struct: which columns are read, where they stand in a file,
 * and what is malformed in a row. */
#ifndef MS_BASE_CELLS_H
#define MS_BASE_CELLS_H

#include "base/csv.h"

typedef enum ms_cell_kind {
    MS_CELL_TEXT,  /* const char *; NULL: empty */
    MS_CELL_COUNT, /* long, >= 0, without fraction; -1: empty */
    /* the same in a column that a file may lack; MS_CELL_UNREAD: other text, which is no
     * fault */
    MS_CELL_OPTIONAL_COUNT,
    MS_CELL_POSITIVE /* double, a measurement; NaN: empty */
} ms_cell_kind;

#define MS_CELL_UNREAD (-2)

/* One column that is read, into the struct at `offset`. */
typedef struct ms_cell_rule {
    const char *name;
    ms_cell_kind kind;
    size_t offset;
} ms_cell_rule;

#define MS_MAX_CELL_RULES 64

/* Where the columns that are read stand in a file; others may be there. */
typedef struct ms_cell_columns {
    const ms_cell_rule *rules;
    int num_rules;
    int num_columns;
    int place[MS_MAX_CELL_RULES];
} ms_cell_columns;

/* Reads the header of a file that is called `file` in messages. Errors: MS_EINPUT, all of
 * them: there is no header, or it is malformed, lacks a column or has one twice. `rules`
 * must live as long as `out`. */
ms_status ms_cells_open(ms_ctx *cx, const char *file, ms_csv *csv,
                        const ms_cell_rule *rules, int num_rules, ms_cell_columns *out);
/* NULL, or what is malformed in the row, first fault first. Cells that are read stand in
 * *out all the same when the row has as many as the header. */
const char *ms_cells_read(ms_arena *arena, const ms_cell_columns *columns,
                          const ms_csv_row *row, void *out);
/* A cell as messages show it: control characters and what is no UTF-8 as \xNN, at most 40
 * characters. */
const char *ms_cell_text(ms_arena *arena, const char *text);

#endif
