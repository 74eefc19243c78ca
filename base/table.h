/* Text tables with aligned columns. */
#ifndef MS_BASE_TABLE_H
#define MS_BASE_TABLE_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdio.h>

typedef struct ms_table ms_table;

/* A table without columns; it lives in the arena. */
ms_table *ms_table_new(ms_arena *arena);
/* Appends columns, before the first cell: one letter and one title each; NULL ends the
 * titles, which are copied. 'l' aligns left, 'r' right; 'L' and 'R' do so, too, for
 * cells that may take several lines. A digit behind the letter ranks the column where
 * lines are too short for all: the highest is left out first (no digit: 0, of equal ones
 * the last column first, and the table's first column never). Returns the table. */
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

/* Sets how many characters a line of every table has from now on; 0, as at the start:
 * any number. */
void ms_table_limit_width(int most);
/* The width set by ms_table_limit_width. */
int ms_table_most_width(void);

/* Whether the table's lines have room for all columns, so that none would be left out or
 * moved above it. */
bool ms_table_shows_all(const ms_table *table);
/* Prints titles, a rule and the rows, escaped as by ms_printable. A table that is too wide
 * for its lines is changed until it fits, in this order: columns that are equal in all
 * rows become a line above it ("all: sp on, zero 1"); titles take several lines, then
 * texts; columns are left out and named below. */
void ms_table_print(const ms_table *table, FILE *out);

#endif
