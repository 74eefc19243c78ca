/* Tables of measurements: the kind of a file, and notes of its malformed lines. */
#ifndef MS_CLI_OPTIONS_TABLES_H
#define MS_CLI_OPTIONS_TABLES_H

#include "base/diag.h"
#include "sim/validate/row_errors.h"

typedef enum ms_table_kind {
    MS_TABLE_RUNS, /* published runs, or an unknown header */
    MS_TABLE_COLLECTIVES,
    MS_TABLE_KERNELS
} ms_table_kind;
/* "published runs" "collectives" "kernels" */
extern const char *const ms_table_kind_names[];

/* A table that was read into memory, because it may be a pipe or standard input. */
typedef struct ms_table_file {
    ms_table_kind kind; /* kind of measurements, found by the header's columns */
    const char *path;   /* path of the table on the command line */
    const char *name;   /* name of the table in messages */
    const char *text;
    size_t length;
} ms_table_file;

/* Reads a table; "-" is standard input. Errors: those of ms_csv_load. */
ms_status ms_table_file_load(ms_ctx *cx, const char *path, ms_table_file *out);

/* Prints notes on malformed rows: the first ten and how many there are, with -v all. */
void ms_faults_note(const ms_ctx *cx, const ms_skipped *skipped);

#endif
