/* Text tables with aligned columns, and the same rows as CSV. */
#ifndef MS_BASE_TABLE_H
#define MS_BASE_TABLE_H

#include "base/arena.h"

#include <stdio.h>

typedef struct ms_table ms_table;

/* `header` names the columns, separated by '|', units included: "plan|step (s)|MFU (%)". A name
 * that begins with '<' is aligned left, others right. The table lives in the arena. */
ms_table *ms_table_new(ms_arena *arena, const char *header);
/* Appends one cell to the current row; a row is complete when it has all columns. */
void ms_table_cell(ms_table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void ms_table_print(const ms_table *table, FILE *out); /* aligned text, UTF-8 aware */

#endif
