/* Reads a whole table of runs, row by row. */
#include "sim/validate/pubrun_priv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare_ids(const void *a, const void *b)
{
    const ms_pubrun *x = *(ms_pubrun *const *)a;
    const ms_pubrun *y = *(ms_pubrun *const *)b;
    int order = strcmp(x->id, y->id);
    return order != 0 ? order : (x > y) - (x < y);
}

static const char *place_of(ms_arena *arena, const ms_pubrun *run, const char *from)
{
    return strcmp(run->file, from) == 0
               ? ms_arena_printf(arena, "line %d", run->line)
               : ms_arena_printf(arena, "line %d of %s", run->line, run->file);
}

/* Marks each row whose id an earlier row has as malformed: its run would count twice. */
static void fault_repeats(ms_arena *arena, ms_pubruns *runs)
{
    ms_pubrun **sorted = MS_NEW_ARRAY(arena, runs->num_runs, ms_pubrun *);
    for (int i = 0; i < runs->num_runs; i++)
        sorted[i] = &runs->runs[i];
    if (runs->num_runs > 1)
        qsort(sorted, (size_t)runs->num_runs, sizeof(ms_pubrun *), compare_ids);
    for (int i = 1; i < runs->num_runs; i++) {
        ms_pubrun *run = sorted[i];
        if (run->fault != NULL || strcmp(run->id, sorted[i - 1]->id) != 0)
            continue;
        run->fault = ms_arena_printf(arena, "its id is that of %s",
                                     place_of(arena, sorted[i - 1], run->file));
        run->reason = "malformed";
        run->complete = false;
    }
}

/* MS_EINPUT if the files cannot be read: the store would leave rows out without a word. */
static ms_status check_files(ms_ctx *cx, const ms_pubrun_files *files)
{
    const ms_stack *stack;
    const ms_profile *profile;
    if (files->stack != NULL)
        MS_TRY(ms_stack_load(cx, files->stack, &stack));
    return files->profile == NULL ? MS_OK : ms_profile_load(cx, files->profile, &profile);
}

/* MS_EINPUT if rates of the profile exceed what a run's device can. */
static ms_status check_peaks(ms_ctx *cx, const ms_pubrun_files *files,
                             const ms_pubruns *runs)
{
    const ms_cluster *checked = NULL;
    const ms_profile *profile;
    for (int i = 0; i < runs->num_runs && files->profile != NULL; i++) {
        const ms_pubrun *run = &runs->runs[i];
        if (run->reason != NULL || run->cluster == checked)
            continue;
        checked = run->cluster;
        MS_TRY(ms_profile_load_for(cx, files->profile, checked, &profile));
    }
    return MS_OK;
}

ms_status ms_pubruns_read(ms_ctx *cx, const char *name, const char *text, size_t length,
                          ms_pubruns *out)
{
    const ms_pubrun_files each = {NULL, NULL};
    return ms_pubruns_read_by(cx, name, text, length, &each, out);
}

ms_status ms_pubruns_read_by(ms_ctx *cx, const char *name, const char *text,
                             size_t length, const ms_pubrun_files *files, ms_pubruns *out)
{
    *out = (ms_pubruns){0};
    MS_TRY(check_files(cx, files));
    ms_csv csv = ms_csv_open(text, length);
    ms_csv_row row;
    ms_cell_columns columns;
    MS_TRY(ms_pubrun_cells_open(cx, name, &csv, &columns));
    ms_pubrun_store *store;
    MS_TRY(ms_pubrun_store_open(cx, &store));
    ms_pubrun_store_use(store, files);
    int capacity = 0;
    while (ms_csv_next(cx->arena, &csv, &row)) {
        MS_MAKE_ROOM(cx->arena, out->runs, out->num_runs, capacity, 64);
        ms_pubrun *run = &out->runs[out->num_runs++];
        ms_pubrun_cells cells;
        run->file = name;
        run->line = row.line;
        run->measured_step_s = run->measured_peak_bytes = (double)NAN;
        run->fault = ms_pubrun_cells_read(cx->arena, &columns, &row, &cells);
        run->id = cells.id != NULL && run->fault == NULL
                      ? cells.id
                      : ms_arena_printf(cx->arena, "line %d", row.line);
        if (run->fault == NULL)
            ms_pubrun_read_row(cx, store, &cells, run);
        else
            run->reason = "malformed";
    }
    fault_repeats(cx->arena, out);
    return check_peaks(cx, files, out);
}

void ms_pubruns_append(ms_arena *arena, ms_pubruns *to, const ms_pubruns *from)
{
    int num_runs = to->num_runs + from->num_runs;
    ms_pubrun *runs = MS_NEW_ARRAY(arena, num_runs, ms_pubrun);
    for (int i = 0; i < num_runs; i++)
        runs[i] = i < to->num_runs ? to->runs[i] : from->runs[i - to->num_runs];
    *to = (ms_pubruns){num_runs, runs};
    fault_repeats(arena, to);
}
