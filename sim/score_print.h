/* Cells and lists that tables of errors share. */
#ifndef MS_SIM_SCORE_PRINT_H
#define MS_SIM_SCORE_PRINT_H

#include "base/table.h"

/* A fraction as percent with one digit, and with its sign; a dash for NaN. */
void ms_percent_cell(ms_table *table, double frac);
void ms_signed_percent_cell(ms_table *table, double frac);

/* How often each reason occurs, by name. Sorts `reasons`; nothing for none. */
void ms_skipped_print(FILE *out, ms_arena *arena, const char **reasons, int num_reasons);

#endif
