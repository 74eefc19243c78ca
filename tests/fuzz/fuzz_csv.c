/* Fuzzes the readers of CSV files: published runs, measured collectives and measured
 * kernels. Nothing crashes, and line numbers only grow. Every run gets a legal plan or a
 * reason for having none; every collective gets a predicted time or a reason for having
 * none. */
#include "base/csv.h"
#include "sim/validate/collective_validation.h"
#include "sim/validate/kernel_rows.h"
#include "sim/validate/pubrun.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void read_rows(ms_arena *arena, const char *text, size_t size)
{
    ms_csv csv = ms_csv_open(text, size);
    ms_csv_row row;
    int line = 0;
    while (ms_csv_next(arena, &csv, &row)) {
        require(row.line > line);
        require((row.fault == NULL) == (row.num_cells > 0));
        line = row.line;
    }
}

static void read_collectives(ms_arena *arena, const char *text, size_t size)
{
    ms_ctx cx = {.arena = arena};
    ms_collective_rows rows;
    if (ms_collective_rows_read(&cx, "fuzz", text, size, &rows) != MS_OK) {
        require(cx.num_errors > 0);
        return;
    }
    ms_collective_validation v;
    ms_collective_validate(&cx, &rows, &v);
    for (int i = 0; i < rows.num_rows; i++) {
        require(rows.rows[i].fault == NULL || rows.rows[i].reason != NULL);
        require(isnan(v.predicted_s[i]) == (rows.rows[i].reason != NULL));
        require(rows.rows[i].reason != NULL || v.predicted_s[i] > 0.0);
    }
}

static void read_kernels(ms_ctx *cx, const char *text, size_t size)
{
    ms_kernel_rows rows;
    if (ms_kernel_rows_read(cx, "fuzz", text, size, &rows) != MS_OK)
        return;
    for (int i = 0; i < rows.num_rows; i++) {
        const ms_kernel_row *row = &rows.rows[i];
        ms_pricer pricer;
        require(row->fault == NULL || row->reason != NULL);
        if (row->reason != NULL)
            continue;
        require(row->measured_s > 0.0);
        require(ms_kernel_row_pricer(cx, row, &pricer) == MS_OK);
        require(ms_kernel_row_s(&pricer, row) > 0.0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ms_arena *arena = ms_arena_open();
    ms_ctx cx = {.arena = arena};
    const char *text = (const char *)data;
    read_rows(arena, text, size);
    read_collectives(arena, text, size);
    ms_pubruns runs;
    if (ms_pubruns_read(&cx, "fuzz", text, size, &runs) == MS_OK) {
        for (int i = 0; i < runs.num_runs; i++) {
            const ms_pubrun *run = &runs.runs[i];
            require(run->fault == NULL || run->reason != NULL);
            require(run->reason != NULL ||
                    ms_plan_refusal(&run->plan, run->model) == MS_LEGAL);
        }
    } else {
        require(cx.num_errors > 0);
    }
    ms_ctx other = {.arena = arena};
    read_kernels(&other, text, size);
    ms_arena_close(arena);
    return 0;
}
