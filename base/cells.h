/* Reads rows of a CSV file into structs by a table of columns: where the columns are in
 * a file, and which cells of a row are malformed. */
#ifndef MS_BASE_CELLS_H
#define MS_BASE_CELLS_H

#include "base/csv.h"

typedef enum ms_cell_kind {
    MS_CELL_TEXT,  /* const char *; NULL: the cell is empty */
    MS_CELL_COUNT, /* long, a whole number from 0; -1: the cell is empty */
    /* long as MS_CELL_COUNT, in a column that a file may lack; MS_CELL_UNREAD if the
     * cell holds other text, which is no error */
    MS_CELL_OPTIONAL_COUNT,
    MS_CELL_POSITIVE /* double > 0, a measurement; NaN: the cell is empty */
} ms_cell_kind;

/* Value of a MS_CELL_OPTIONAL_COUNT whose cell holds no number. */
#define MS_CELL_UNREAD (-2)

/* One column that is read: its name in the header, and the offset in bytes of the
 * struct member that its cells fill. */
typedef struct ms_cell_rule {
    const char *name;
    ms_cell_kind kind;
    size_t offset;
} ms_cell_rule;

#define MS_MAX_CELL_RULES 64

/* The positions in a file of the columns that are read; a file may have further
 * columns. */
typedef struct ms_cell_columns {
    const ms_cell_rule *rules;
    int num_rules;
    int num_columns;
    int place[MS_MAX_CELL_RULES]; /* index of each rule's column; -1: the file lacks it */
} ms_cell_columns;

/* Reads the header of a file, called `file` in messages, and finds the columns of
 * `rules`. MS_EINPUT if there is no header, or if it is malformed, lacks a column or has
 * one twice; all such errors are recorded. `rules` must live as long as `out`. */
ms_status ms_cells_open(ms_ctx *cx, const char *file, ms_csv *csv,
                        const ms_cell_rule *rules, int num_rules, ms_cell_columns *out);
/* Reads one row into the struct `out`. Returns NULL if all cells are well formed,
 * otherwise the first fault as text in the arena; well-formed cells are filled even
 * then, if the row has as many cells as the header. */
const char *ms_cells_read(ms_arena *arena, const ms_cell_columns *columns,
                          const ms_csv_row *row, void *out);
/* The text of a cell for messages: at most 40 characters, with control characters and
 * invalid UTF-8 as \xNN. */
const char *ms_cell_text(ms_arena *arena, const char *text);

#endif
