/* Cells and lists that tables of errors share. */
#ifndef MS_SIM_SCORE_PRINT_H
#define MS_SIM_SCORE_PRINT_H

#include "base/table.h"

/* A number, or a dash for an undefined one. */
void ms_number_cell(ms_table *table, int digits, double value);
/* A fraction as percent with one digit, and with its sign; a dash for NaN. */
void ms_percent_cell(ms_table *table, double frac);
void ms_signed_percent_cell(ms_table *table, double frac);

/* How often each reason occurs, by name. Sorts `reasons`; nothing for none. */
void ms_skipped_print(FILE *out, ms_arena *arena, const char **reasons, int num_reasons);

#endif
