#include "sim/validate/collective_validation.h"

#include "sim/validate/pubrun_prices.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- scores ---- */

typedef struct entry {
    const ms_collective_row *row;
    double error_frac;
} entry;

static ms_row_errors errors_of(ms_arena *arena, const entry *entries, int num_entries,
                               bool large)
{
    double *error_fracs = MS_NEW_ARRAY(arena, num_entries, double);
    int num_rows = 0;
    for (int i = 0; i < num_entries; i++)
        if ((entries[i].row->size_bytes >= MS_LARGE_COLLECTIVE_BYTES) == large)
            error_fracs[num_rows++] = entries[i].error_frac;
    return ms_row_errors_of(arena, error_fracs, num_rows);
}

static ms_collective_score score_group(ms_arena *arena, const entry *entries,
                                       int num_entries, bool detail)
{
    const ms_collective_row *first = entries[0].row;
    ms_collective_score out = {.system = first->system, .cluster = first->cluster->name};
    if (detail) {
        out.collective = ms_collective_names[first->collective];
        out.nodes = first->nodes;
    }
    for (int i = 0; i < num_entries; i++)
        out.num_fitted += entries[i].row->fitted;
    out.large = errors_of(arena, entries, num_entries, true);
    out.small = errors_of(arena, entries, num_entries, false);
    return out;
}

static int compare_systems(const entry *a, const entry *b)
{
    int order = strcmp(a->row->system, b->row->system);
    /* one system may be priced as two clusters: inside of a node and across nodes */
    if (order == 0)
        order = strcmp(a->row->cluster->name, b->row->cluster->name);
    return order;
}

static int compare_details(const entry *a, const entry *b)
{
    int order = compare_systems(a, b);
    if (order == 0)
        order = (a->row->collective > b->row->collective) -
                (a->row->collective < b->row->collective);
    if (order == 0)
        order = (a->row->nodes > b->row->nodes) - (a->row->nodes < b->row->nodes);
    return order;
}

static int compare_details_and_lines(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    int order = compare_details(x, y);
    return order != 0 ? order : (x->row > y->row) - (x->row < y->row);
}

/* Scores prediction errors by system; if `detail`, by system, collective and nodes. */
static const ms_collective_score *score_groups(ms_arena *arena, const entry *entries,
                                               int num_entries, bool detail,
                                               int *num_scores)
{
    ms_collective_score *scores = MS_NEW_ARRAY(arena, num_entries, ms_collective_score);
    *num_scores = 0;
    for (int first = 0, end; first < num_entries; first = end) {
        end = first + 1;
        while (end < num_entries && (detail ? compare_details : compare_systems)(
                                        &entries[first], &entries[end]) == 0)
            end++;
        scores[(*num_scores)++] =
            score_group(arena, &entries[first], end - first, detail);
    }
    return scores;
}

void ms_collective_validate(ms_ctx *cx, const ms_collective_rows *rows,
                            ms_collective_validation *out)
{
    double *predicted_s = MS_NEW_ARRAY(cx->arena, rows->num_rows, double);
    entry *entries = MS_NEW_ARRAY(cx->arena, rows->num_rows, entry);
    *out = (ms_collective_validation){.rows = rows, .predicted_s = predicted_s};
    for (int i = 0; i < rows->num_rows; i++) {
        const ms_collective_row *row = &rows->rows[i];
        predicted_s[i] = (double)NAN;
        if (row->reason != NULL)
            continue;
        predicted_s[i] = ms_collective_row_s(row);
        entries[out->num_priced++] =
            (entry){row, ms_pubrun_error_frac(predicted_s[i], row->measured_s)};
    }
    if (out->num_priced > 1)
        qsort(entries, (size_t)out->num_priced, sizeof *entries,
              compare_details_and_lines);
    out->systems =
        score_groups(cx->arena, entries, out->num_priced, false, &out->num_systems);
    out->details =
        score_groups(cx->arena, entries, out->num_priced, true, &out->num_details);
}
