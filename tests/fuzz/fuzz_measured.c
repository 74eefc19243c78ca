/* Fuzzes the import of measurements in every format. A table that is read must be a CSV
 * file with as many rows. */
#include "base/csv.h"
#include "sim/measured/measured.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void read_back(ms_ctx *cx, const ms_measured_table *table)
{
    char *text;
    size_t length;
    int num_rows = -1; /* the header is none */
    ms_csv_row row;
    FILE *file = open_memstream(&text, &length);
    require(file != NULL);
    ms_measured_write_csv(file, table);
    fclose(file);
    ms_csv csv = ms_csv_open(text, length);
    for (; ms_csv_next(cx->arena, &csv, &row); num_rows++)
        require(row.fault == NULL && row.num_cells == table->num_columns);
    require(num_rows == table->num_rows);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int i = 0; ms_measured_format_names[i] != NULL; i++) {
        ms_ctx cx = {.arena = ms_arena_open()};
        ms_plan plan = ms_plan_default(8);
        ms_measured_options options = {.name = "fuzz",
                                       .system = "hgx-h100",
                                       .collective = size % 2 == 0 ? NULL : "all_reduce",
                                       .plan = &plan};
        ms_measured_table table;
        plan.global_batch = 64;
        require(ms_cluster_load(&cx, options.system, &options.cluster) == MS_OK);
        ms_status status =
            ms_measured_read(&cx, i, (const char *)data, size, &options, &table);
        require((status == MS_OK) == (cx.num_errors == 0));
        if (status == MS_OK)
            read_back(&cx, &table);
        ms_arena_close(cx.arena);
    }
    return 0;
}
