/* Errors of measured rows of a table, and its rows that are not predicted. */
#ifndef MS_SIM_VALIDATE_ROW_ERRORS_H
#define MS_SIM_VALIDATE_ROW_ERRORS_H

#include "base/json.h"

/* Errors of a set of measured rows; NaN if the set is empty. */
typedef struct ms_row_errors {
    int num_rows;
    double median_ape_frac, p90_ape_frac;
    double bias_frac; /* median of the signed errors */
} ms_row_errors;

/* Summarizes errors, each (predicted - measured) / measured. Sorts `error_fracs`. */
ms_row_errors ms_row_errors_of(ms_arena *arena, double *error_fracs, int num_rows);
/* Writes errors as a JSON object under `key`. */
void ms_row_errors_write(ms_jout *out, const char *key, const ms_row_errors *errors);

/* Begins a remark in a skipped row's reason; reasons are counted without remarks. */
#define MS_REMARK " ("

/* A measured row that is not predicted. */
typedef struct ms_skipped_row {
    int line;
    const char *system; /* system of the measured row; NULL in tables without systems */
    const char *reason;
    const char *fault; /* which cell is malformed, and how; NULL if none is */
} ms_skipped_row;

typedef struct ms_skipped {
    int num_rows;
    ms_skipped_row *rows; /* skipped rows in the order of the table */
} ms_skipped;

/* Writes "skipped": [{line, system, reason}], with the malformed cell if there is one. */
void ms_skipped_write(ms_jout *out, const ms_skipped *skipped);

#endif
