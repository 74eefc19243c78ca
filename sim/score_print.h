/* Errors of measured rows, and the cells and lists that their tables share. */
#ifndef MS_SIM_SCORE_PRINT_H
#define MS_SIM_SCORE_PRINT_H

#include "base/json.h"
#include "base/table.h"

/* Errors of some rows; NaN without any. */
typedef struct ms_row_errors {
    int num_rows;
    double median_ape_frac, p90_ape_frac;
    double bias_frac; /* median signed error */
} ms_row_errors;

/* Of (predicted - measured) / measured. Sorts `error_fracs`. */
ms_row_errors ms_row_errors_of(ms_arena *arena, double *error_fracs, int num_rows);
/* An object under `key`. */
void ms_row_errors_write(ms_jout *out, const char *key, const ms_row_errors *errors);
/* Their number, median, bias and 90th percentile. */
void ms_row_errors_cells(ms_table *table, const ms_row_errors *errors);

/* A number, or a dash for an undefined one. */
void ms_number_cell(ms_table *table, int digits, double value);
/* A fraction as percent with one digit, and with its sign; a dash for NaN. */
void ms_percent_cell(ms_table *table, double frac);
void ms_signed_percent_cell(ms_table *table, double frac);

/* Begins what belongs to one row of a reason: rows are counted without it. */
#define MS_REMARK " ("

/* A row that is not predicted. */
typedef struct ms_skipped_row {
    int line;
    const char *system; /* NULL: of a table without systems */
    const char *reason;
    const char *fault; /* what is malformed; NULL: nothing */
} ms_skipped_row;

typedef struct ms_skipped {
    int num_rows;
    ms_skipped_row *rows; /* in the order of the table */
} ms_skipped;

/* How often each reason occurs, by name; nothing for none. */
void ms_skipped_print(FILE *out, ms_arena *arena, const ms_skipped *skipped);
/* "skipped": [{line, system, reason}], the fault where there is one. */
void ms_skipped_write(ms_jout *out, const ms_skipped *skipped);

#endif
