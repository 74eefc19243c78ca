#include "cli/options/tables.h"

#include "base/csv.h"
#include "cli/options/output.h"

#include <string.h>

#define MAX_KEY_COLUMNS 8
#define MAX_LINE_NOTES  10

const char *const ms_table_kind_names[] = {"published runs", "collectives", "kernels"};

/* [kind]: columns that every table of the kind has; any other table: published runs. */
static const char *const key_columns[][MAX_KEY_COLUMNS] = {
    [MS_TABLE_COLLECTIVES] = {"system", "collective", "algo", "time_us"},
    [MS_TABLE_KERNELS] = {"gpu", "op", "k_or_seq", "tflops"},
};

static bool has_column(const ms_csv_row *header, const char *name)
{
    for (int i = 0; i < header->num_cells; i++)
        if (strcmp(header->cells[i], name) == 0)
            return true;
    return false;
}

static bool is_of_kind(const ms_csv_row *header, ms_table_kind kind)
{
    const char *const *columns = key_columns[kind];
    for (int i = 0; i < MAX_KEY_COLUMNS && columns[i] != NULL; i++)
        if (!has_column(header, columns[i]))
            return false;
    return true;
}

ms_status ms_table_file_load(ms_ctx *cx, const char *path, ms_table_file *out)
{
    ms_csv csv;
    ms_csv_row header;
    MS_TRY(ms_csv_load(cx, path, &csv));
    *out = (ms_table_file){.path = path,
                           .name = strcmp(path, "-") == 0 ? "standard input" : path,
                           .text = csv.text,
                           .length = csv.length};
    if (!ms_csv_next(cx->arena, &csv, &header))
        return MS_OK;
    if (is_of_kind(&header, MS_TABLE_COLLECTIVES))
        out->kind = MS_TABLE_COLLECTIVES;
    else if (is_of_kind(&header, MS_TABLE_KERNELS))
        out->kind = MS_TABLE_KERNELS;
    return MS_OK;
}

void ms_faults_note(const ms_ctx *cx, const ms_skipped *skipped)
{
    int num_faults = 0;
    for (int i = 0; i < skipped->num_rows; i++) {
        const ms_skipped_row *row = &skipped->rows[i];
        if (row->fault == NULL)
            continue;
        num_faults++;
        if (num_faults <= MAX_LINE_NOTES || cx->verbosity > 0)
            ms_note(cx, "line %d is skipped: %s", row->line, row->fault);
    }
    if (num_faults > MAX_LINE_NOTES && cx->verbosity <= 0)
        ms_note(cx, "%d more malformed rows are skipped; -v lists them",
                num_faults - MAX_LINE_NOTES);
}
