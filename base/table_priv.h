/* Interface between table.c and table_fit.c. */
#ifndef MS_BASE_TABLE_PRIV_H
#define MS_BASE_TABLE_PRIV_H

#include "base/table.h"

#include <stdbool.h>

#define MS_TABLE_GAP 2 /* spaces between columns */

/* Characters behind which a line of a title, and of a cell, may end. */
#define MS_TABLE_TITLE_BREAKS "_"
#define MS_TABLE_CELL_BREAKS  ","

typedef struct ms_table_column {
    const char *title;
    bool left;  /* aligned left */
    bool wraps; /* cells may take several lines */
    int spare;  /* order of leaving columns out: the highest first */
} ms_table_column;

struct ms_table {
    ms_arena *arena;
    int num_columns, column_capacity;
    ms_table_column *columns;
    int num_cells, cell_capacity;
    const char **cells; /* shape (rows, num_columns), printable texts */
};

typedef enum ms_table_place {
    MS_TABLE_SHOWN,
    MS_TABLE_ABOVE,   /* in the line above the table, its value once for all rows */
    MS_TABLE_LEFT_OUT /* only named, below the table */
} ms_table_place;

/* [column]: where it is printed, and the characters of its lines. */
typedef struct ms_table_fit {
    ms_table_place *places;
    size_t *widths;
} ms_table_fit;

/* Fits a table into `most` characters (0: any number): columns that are equal in all rows
 * go above the table; then titles take several lines, then wrapping cells; then columns
 * are left out. The first column stays, in lines as short as needed. */
ms_table_fit ms_table_fit_into(const ms_table *table, size_t most);

/* Characters of a line of the shown columns. */
size_t ms_table_fit_width(const ms_table *table, const ms_table_fit *fit);

#endif
