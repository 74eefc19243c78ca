/* Reads rows of a CSV file into structs, by a table of columns and struct members. */
#ifndef MS_BASE_CELLS_H
#define MS_BASE_CELLS_H

#include "base/csv.h"

typedef enum ms_cell_kind {
    MS_CELL_TEXT, /* const char *; NULL: the cell is empty */
    /* MS_CELL_TEXT in a column that a file may lack; NULL also for foreign bytes */
    MS_CELL_OPTIONAL_TEXT,
    MS_CELL_COUNT, /* long, a whole number from 0; -1: the cell is empty */
    /* MS_CELL_COUNT in a column that a file may lack; MS_CELL_UNREAD: not a number */
    MS_CELL_OPTIONAL_COUNT,
    MS_CELL_POSITIVE /* double > 0, a measurement; NaN: the cell is empty */
} ms_cell_kind;

/* Value of a MS_CELL_OPTIONAL_COUNT whose cell holds no number. */
#define MS_CELL_UNREAD (-2)

/* A column's name in the header, and the offset of the struct member it fills. */
typedef struct ms_cell_rule {
    const char *name;
    ms_cell_kind kind;
    size_t offset;
    /* default for a file that lacks the column, whose cells then are empty; NULL: a
     * file must have it, unless it is of an optional kind */
    const char *if_missing;
} ms_cell_rule;

#define MS_MAX_CELL_RULES 64

/* Positions of the columns that are read; a file may have further columns. */
typedef struct ms_cell_columns {
    const ms_cell_rule *rules;
    int num_rules;
    int num_columns;
    int place[MS_MAX_CELL_RULES]; /* index of the CSV column of each rule; -1: absent */
} ms_cell_columns;

/* Finds the columns of `rules`, which must outlive `out`. MS_EINPUT, with all errors, if
 * the header is missing or malformed, or lacks, misspells or repeats columns. */
ms_status ms_cells_open(ms_ctx *cx, const char *file, ms_csv *csv,
                        const ms_cell_rule *rules, int num_rules, ms_cell_columns *out);
/* Notes which columns the file may lack, and does, with what is taken for them. */
void ms_cells_note_missing(ms_ctx *cx, const char *file, const ms_cell_columns *columns);
/* Whether the file has a column of this name among those that are read. */
bool ms_cells_have(const ms_cell_columns *columns, const char *name);
/* Reads one row into the struct `out`. NULL if all cells are well formed, otherwise the
 * first fault as text in the arena; well-formed cells are filled even then. */
const char *ms_cells_read(ms_arena *arena, const ms_cell_columns *columns,
                          const ms_csv_row *row, void *out);
/* A cell's text for messages: its first 40 characters, escaped by ms_printable. */
const char *ms_cell_text(ms_arena *arena, const char *text);

#endif
