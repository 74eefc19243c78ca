#include "costmodel/plan/expert_loads.h"

#include "base/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LAYERS 4096
#define MAX_TOKENS 1e15

/* ---- reading ---- */

enum column {
    EXPERT,
    TOKENS,
    LAYER,
    NUM_COLUMNS
};
static const char *const column_names[NUM_COLUMNS] = {"expert", "tokens", "layer"};

typedef struct reader {
    ms_ctx *cx;
    const char *path;
    long num_experts;
    int at[NUM_COLUMNS]; /* cell of each column; -1: the file has no such column */
    int num_layers, capacity;
    long *layers;   /* (num_layers) numbers as the file states them */
    double *copies; /* (capacity, num_experts) */
    bool *is_given; /* (capacity, num_experts) */
} reader;

static ms_status read_header(reader *r, const ms_csv_row *row)
{
    for (int column = 0; column < NUM_COLUMNS; column++)
        r->at[column] = -1;
    for (int cell = 0; cell < row->num_cells; cell++) {
        int column = 0;
        while (column < NUM_COLUMNS &&
               strcmp(row->cells[cell], column_names[column]) != 0)
            column++;
        if (column == NUM_COLUMNS || r->at[column] >= 0)
            return ms_csv_fail_cell(r->cx, r->path, row, cell,
                                    "one of the columns expert, tokens, layer");
        r->at[column] = cell;
    }
    if (r->at[EXPERT] >= 0 && r->at[TOKENS] >= 0)
        return MS_OK;
    return ms_fail(r->cx, MS_EINPUT,
                   (ms_loc){.file = r->path, .line = row->line, .column = 1},
                   "the first line must name the columns expert and tokens");
}

static bool parse_number(const ms_csv_row *row, int cell, double *out)
{
    if (cell >= row->num_cells || row->cells[cell][0] == '\0')
        return false;
    char *end;
    *out = strtod(row->cells[cell], &end);
    return *end == '\0' && isfinite(*out);
}

/* Index of a layer, which is added if it is new; -1: there are too many. */
static int index_of_layer(reader *r, long layer)
{
    for (int i = r->num_layers - 1; i >= 0; i--)
        if (r->layers[i] == layer)
            return i;
    if (r->num_layers == MAX_LAYERS)
        return -1;
    if (r->num_layers == r->capacity) {
        int more = r->capacity == 0 ? 1 : 2 * r->capacity;
        size_t old = (size_t)(r->capacity * r->num_experts);
        double *copies = MS_NEW_ARRAY(r->cx->arena, more * r->num_experts, double);
        bool *is_given = MS_NEW_ARRAY(r->cx->arena, more * r->num_experts, bool);
        if (old > 0) {
            memcpy(copies, r->copies, old * sizeof *copies);
            memcpy(is_given, r->is_given, old * sizeof *is_given);
        }
        r->copies = copies;
        r->is_given = is_given;
        r->capacity = more;
    }
    r->layers[r->num_layers] = layer;
    return r->num_layers++;
}

static ms_status read_row(reader *r, const ms_csv_row *row)
{
    double expert, tokens, layer = 0.0;
    if (!parse_number(row, r->at[EXPERT], &expert) || expert != floor(expert) ||
        expert < 0.0 || expert >= (double)r->num_experts)
        return ms_csv_fail_cell(
            r->cx, r->path, row, r->at[EXPERT],
            ms_arena_printf(r->cx->arena, "an expert, 0 to %ld", r->num_experts - 1));
    if (!parse_number(row, r->at[TOKENS], &tokens) || tokens < 0.0 || tokens > MAX_TOKENS)
        return ms_csv_fail_cell(r->cx, r->path, row, r->at[TOKENS],
                                "a number of tokens, 0 or more");
    if (r->at[LAYER] >= 0 && (!parse_number(row, r->at[LAYER], &layer) ||
                              layer != floor(layer) || fabs(layer) > 1e9))
        return ms_csv_fail_cell(r->cx, r->path, row, r->at[LAYER],
                                "the number of a layer");
    int index = index_of_layer(r, (long)layer);
    if (index < 0)
        return ms_csv_fail_cell(r->cx, r->path, row, r->at[LAYER],
                                "one of at most 4096 layers that the file may have");
    long at = index * r->num_experts + (long)expert;
    if (r->is_given[at])
        return ms_csv_fail_cell(r->cx, r->path, row, r->at[EXPERT],
                                "an expert that is listed once");
    r->is_given[at] = true;
    r->copies[at] = tokens;
    return MS_OK;
}

static double sum_of(const double *values, long num)
{
    double sum = 0.0;
    for (long i = 0; i < num; i++)
        sum += values[i];
    return sum;
}

static ms_status finish(reader *r, const ms_expert_loads **out)
{
    ms_loc loc = {.file = r->path};
    if (r->num_layers == 0)
        return ms_fail(r->cx, MS_EINPUT, loc, "the file has no loads of experts");
    for (int i = 0; i < r->num_layers; i++)
        if (!(sum_of(r->copies + i * r->num_experts, r->num_experts) > 0.0))
            return ms_fail(r->cx, MS_EINPUT, loc, "layer %ld has no tokens",
                           r->layers[i]);
    ms_expert_loads *loads = MS_NEW(r->cx->arena, ms_expert_loads);
    *loads = (ms_expert_loads){r->num_experts, r->num_layers, r->copies};
    *out = loads;
    return MS_OK;
}

ms_status ms_expert_loads_read(ms_ctx *cx, const char *path, ms_csv csv, long num_experts,
                               const ms_expert_loads **out)
{
    if (num_experts == 0)
        return ms_fail(cx, MS_EINPUT, (ms_loc){.file = path},
                       "loads of experts, but the model has none");
    reader r = {.cx = cx,
                .path = path,
                .num_experts = num_experts,
                .layers = MS_NEW_ARRAY(cx->arena, MAX_LAYERS, long)};
    ms_csv_row row;
    for (bool is_first = true; ms_csv_next(cx->arena, &csv, &row); is_first = false) {
        if (row.fault != NULL)
            return ms_fail(cx, MS_EINPUT, (ms_loc){.file = path, .line = row.line}, "%s",
                           row.fault);
        MS_TRY(is_first ? read_header(&r, &row) : read_row(&r, &row));
    }
    return finish(&r, out);
}

ms_status ms_expert_loads_load(ms_ctx *cx, const char *path, long num_experts,
                               const ms_expert_loads **out)
{
    ms_csv csv;
    MS_TRY(ms_csv_load(cx, path, &csv));
    return ms_expert_loads_read(cx, path, csv, num_experts, out);
}

/* ---- the fullest rank ---- */

/* Copies that an expert computes of `load` routed ones, both divided by the mean. */
static double computed(const ms_expert_fill *fill, double load)
{
    if (fill->capacity <= 0.0)
        return load;
    return fill->pads ? fill->capacity : ms_min(load, fill->capacity);
}

static double fullest_rank(const ms_expert_fill *fill, int layer, long ep)
{
    long num_experts = fill->loads->num_experts, each = num_experts / ep;
    const double *copies = fill->loads->copies + layer * num_experts;
    double mean = sum_of(copies, num_experts) / (double)num_experts, fullest = 0.0;
    for (long rank = 0; rank < ep; rank++) {
        double sum = 0.0;
        for (long i = rank * each; i < (rank + 1) * each; i++)
            sum += computed(fill, copies[i] / mean);
        fullest = ms_max(fullest, sum / (double)each);
    }
    return fullest;
}

double ms_expert_excess_frac(const ms_expert_fill *fill, long ep)
{
    if (fill->loads == NULL)
        return computed(fill, ms_max(1.0, ms_min(fill->imbalance, (double)ep))) - 1.0;
    double sum = 0.0;
    for (int layer = 0; layer < fill->loads->num_layers; layer++)
        sum += fullest_rank(fill, layer, ep);
    return sum / fill->loads->num_layers - 1.0;
}
