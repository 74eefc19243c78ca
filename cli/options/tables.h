/* Tables of measurements that commands read: which kind a file is, and its malformed
 * lines. */
#ifndef MS_CLI_OPTIONS_TABLES_H
#define MS_CLI_OPTIONS_TABLES_H

#include "base/diag.h"
#include "sim/validate/row_errors.h"

typedef enum ms_table_kind {
    MS_TABLE_RUNS, /* published runs, or none of the others */
    MS_TABLE_COLLECTIVES,
    MS_TABLE_KERNELS
} ms_table_kind;
/* "published runs" "collectives" "kernels" */
extern const char *const ms_table_kind_names[];

/* A file that was read, once: it may be a pipe or standard input. */
typedef struct ms_table_file {
    ms_table_kind kind; /* by the columns of its header */
    const char *path;   /* as given */
    const char *name;   /* for messages */
    const char *text;
    size_t length;
} ms_table_file;

/* "-" is standard input. Errors: those of ms_csv_load. */
ms_status ms_table_file_load(ms_ctx *cx, const char *path, ms_table_file *out);

/* Notes of malformed rows: the first few, with -v all. */
void ms_faults_note(const ms_ctx *cx, const ms_skipped *skipped);

#endif
