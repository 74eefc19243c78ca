/* Text tables with aligned columns. */
#ifndef MS_BASE_TABLE_H
#define MS_BASE_TABLE_H

#include "base/arena.h"

#include <stdio.h>

typedef struct ms_table ms_table;

/* A table without columns; it lives in the arena. */
ms_table *ms_table_new(ms_arena *arena);
/* Appends columns, before the first cell: one letter ('l' left, 'r' right) and one title
 * each; NULL ends the titles, which are copied. Returns the table. */
ms_table *ms_table_columns(ms_table *table, const char *alignment,
                           const char *const *titles);
/* ms_table_columns with the titles as arguments; MS_TABLE calls it for a new table. */
#define MS_COLUMNS(table, alignment, ...)                                                \
    ms_table_columns((table), (alignment), (const char *const[]){__VA_ARGS__, NULL})
#define MS_TABLE(arena, alignment, ...)                                                  \
    MS_COLUMNS(ms_table_new(arena), alignment, __VA_ARGS__)

/* Appends one cell to the current row; a row is complete when it has all columns. */
void ms_table_cell(ms_table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Appends several cells, whose formats are separated by tabs: "%s\t%.2f". Conversions:
 * s, d, ld, c, f, g. A cell with a NaN is a dash. */
void ms_table_cells(ms_table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Prints titles, a rule and the rows, escaped as by ms_printable. */
void ms_table_print(const ms_table *table, FILE *out);

#endif
