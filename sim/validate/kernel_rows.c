/* Reads rows of measured kernels: first the cells, then the device and shape that they
 * state. */
#include "sim/validate/kernel_rows.h"

#include "base/cells.h"
#include "base/hash.h"
#include "sim/validate/kernel_rows_priv.h"
#include "sim/validate/pubrun_priv.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static const ms_cell_rule columns[] = {
    {"source", MS_CELL_TEXT, offsetof(ms_kernel_cells, source), NULL},
    {"gpu", MS_CELL_TEXT, offsetof(ms_kernel_cells, gpu), NULL},
    {"op", MS_CELL_TEXT, offsetof(ms_kernel_cells, op), NULL},
    {"m", MS_CELL_COUNT, offsetof(ms_kernel_cells, m), NULL},
    {"n", MS_CELL_TEXT, offsetof(ms_kernel_cells, n), NULL},
    {"k_or_seq", MS_CELL_COUNT, offsetof(ms_kernel_cells, k), NULL},
    {"head_dim", MS_CELL_TEXT, offsetof(ms_kernel_cells, head_dim), NULL},
    {"causal", MS_CELL_COUNT, offsetof(ms_kernel_cells, causal), NULL},
    {"dtype", MS_CELL_TEXT, offsetof(ms_kernel_cells, dtype), NULL},
    {"tflops", MS_CELL_POSITIVE, offsetof(ms_kernel_cells, tflops), NULL},
};
enum {
    NUM_COLUMNS = sizeof columns / sizeof columns[0]
};

/* ---- devices ---- */

typedef struct row_reader {
    ms_ctx *cx;
    ms_pubrun_store *store;
    /* shipped profiles; `isolated[i]`: copy of shipped[i] for kernels in isolation */
    const ms_profile **shipped;
    ms_profile **isolated;
    int num_profiles, shipped_capacity, isolated_capacity;
} row_reader;

/* Copy of `shipped` without the derating of rates in training; one copy per profile. */
static const ms_profile *isolate(row_reader *r, const ms_profile *shipped)
{
    for (int i = 0; i < r->num_profiles; i++)
        if (r->shipped[i] == shipped)
            return r->isolated[i];
    MS_MAKE_ROOM(r->cx->arena, r->shipped, r->num_profiles, r->shipped_capacity, 8);
    MS_MAKE_ROOM(r->cx->arena, r->isolated, r->num_profiles, r->isolated_capacity, 8);
    ms_profile *copy = MS_NEW(r->cx->arena, ms_profile);
    *copy = *shipped;
    copy->flop_per_joule.value = 0.0;
    for (int i = 0; i < MS_NUM_DTYPES; i++)
        copy->gemm[i].sustained_frac.value = 1.0;
    for (int i = 0; i < MS_NUM_ATTENTION_KERNELS; i++)
        copy->attention[i].sustained_frac.value = 1.0;
    r->shipped[r->num_profiles] = shipped;
    r->isolated[r->num_profiles++] = copy;
    return copy;
}

static const char *find_device(row_reader *r, ms_kernel_row *row)
{
    const ms_pubrun_cells cells = {.gpu_type = row->gpu};
    const char *name = ms_pubrun_cluster_name(ms_pubrun_store_names(r->store), &cells);
    if (name == NULL)
        return ms_arena_printf(r->cx->arena, "gpu: no description of %s", row->gpu);
    row->cluster = ms_pubrun_store_cluster(r->cx, r->store, name);
    if (row->cluster == NULL)
        return "gpu: its description cannot be loaded";
    const ms_profile *profile =
        ms_pubrun_store_profile(r->cx, r->store, row->cluster->device.profile);
    if (profile == NULL)
        return "gpu: its profile cannot be loaded";
    row->profile = profile;
    return NULL;
}

/* Whether a benchmark calls kernels without a pause, also between shapes, so that the
 * device reaches its power limit. */
static bool is_unpaused(const ms_name_tables *names, const char *source)
{
    const ms_kernel_fact *rows = names->kernel_facts.rows;
    for (int i = 0; i < names->kernel_facts.num_rows; i++)
        if (rows[i].unpaused &&
            strncmp(source, rows[i].source, strlen(rows[i].source)) == 0)
            return true;
    return false;
}

/* ---- fitted half ---- */

/* Whether a measured row's shape is in the half that coefficients may be fitted to, by an
 * FNV-1a hash (Fowler, Noll and Vo 1991) of the cells of the shape, so that every source
 * has the same shapes in the same half. */
static bool is_in_fitted_half(ms_arena *arena, const ms_kernel_cells *c)
{
    const char *shape = ms_arena_printf(
        arena, "%ld %s %ld%s%s", c->m, c->n == NULL ? "" : c->n, c->k,
        c->head_dim == NULL ? "" : " ", c->head_dim == NULL ? "" : c->head_dim);
    return (ms_hash_bytes(shape, strlen(shape)) >> 20 & 1) != 0;
}

/* Length of the part of a row's source that coefficients name: "owner/repository" of
 * "owner/repository@revision:file", or an address without its last component. */
static size_t source_key_length(const char *source)
{
    if (strncmp(source, "http", 4) != 0)
        return strcspn(source, "@: ");
    size_t length = strcspn(source, " ");
    while (length > 0 && source[length - 1] != '/')
        length--;
    return length;
}

static const char *origin_of(ms_arena *arena, const char *source)
{
    return strncmp(source, "http", 4) == 0
               ? source
               : ms_arena_strndup(arena, source, strcspn(source, ":"));
}

static bool names_source(const ms_coefficient *c, const char *source)
{
    if (c->source == NULL || (c->from != MS_FITTED && c->from != MS_MEASURED))
        return false;
    size_t length = source_key_length(source);
    for (const char *at = c->source; (at = strchr(at, source[0])) != NULL; at++)
        if (strncmp(at, source, length) == 0)
            return true;
    return false;
}

static bool is_of_fitted_source(const ms_kernel_row *row)
{
    const ms_attention_profile *attention = &row->profile->attention[row->kernel];
    if (!row->is_attention)
        return names_source(&row->profile->gemm[row->dtype].efficiency, row->source);
    return names_source(row->passes == MS_KERNEL_BACKWARD
                            ? &attention->backward_flop_per_s
                            : &attention->forward_flop_per_s,
                        row->source);
}

/* ---- rows ---- */

static const char *fault_of(const ms_kernel_cells *c)
{
    if (c->source == NULL || c->gpu == NULL || c->op == NULL)
        return "source, gpu or op is empty";
    if (isnan(c->tflops))
        return "tflops is not stated";
    return NULL;
}

static const char *resolve(row_reader *r, const ms_kernel_cells *c, ms_kernel_row *row)
{
    const char *reason = find_device(r, row);
    ms_pricer pricer;
    if (reason == NULL)
        reason = ms_kernel_shape_read(c, row);
    if (reason != NULL)
        return reason;
    ms_ctx trial = {.arena = r->cx->arena};
    if (ms_kernel_row_pricer(&trial, row, &pricer) != MS_OK)
        return "the device has no coefficients for it";
    return NULL;
}

static void read_row(row_reader *r, const ms_cell_columns *found,
                     const ms_csv_row *csv_row, ms_kernel_row *row)
{
    ms_kernel_cells cells = {0};
    row->line = csv_row->line;
    row->measured_s = (double)NAN;
    row->fault = ms_cells_read(r->cx->arena, found, csv_row, &cells);
    if (row->fault == NULL)
        row->fault = fault_of(&cells);
    if (row->fault != NULL) {
        row->reason = "malformed";
        return;
    }
    row->source = cells.source;
    row->origin = origin_of(r->cx->arena, cells.source);
    row->gpu = cells.gpu;
    row->op = cells.op;
    row->reason = resolve(r, &cells, row);
    row->in_half = is_in_fitted_half(r->cx->arena, &cells);
    row->of_fitted_source = row->reason == NULL && is_of_fitted_source(row);
    row->fitted = row->of_fitted_source && row->in_half;
    row->sustained = is_unpaused(ms_pubrun_store_names(r->store), row->source);
    if (row->reason == NULL && !row->sustained)
        row->profile = isolate(r, row->profile);
}

static void list_skipped(ms_arena *arena, ms_kernel_rows *rows)
{
    rows->skipped.rows = MS_NEW_ARRAY(arena, rows->num_rows, ms_skipped_row);
    for (int i = 0; i < rows->num_rows; i++) {
        const ms_kernel_row *row = &rows->rows[i];
        if (row->reason != NULL)
            rows->skipped.rows[rows->skipped.num_rows++] =
                (ms_skipped_row){row->line, NULL, row->reason, row->fault};
    }
}

ms_status ms_kernel_rows_read(ms_ctx *cx, const char *name, const char *text,
                              size_t length, ms_kernel_rows *out)
{
    *out = (ms_kernel_rows){0};
    ms_csv csv = ms_csv_open(text, length);
    ms_csv_row row;
    ms_cell_columns found;
    MS_TRY(ms_cells_open(cx, name, &csv, columns, NUM_COLUMNS, &found));
    row_reader r = {.cx = cx};
    MS_TRY(ms_pubrun_store_open(cx, &r.store));
    int capacity = 0;
    while (ms_csv_next(cx->arena, &csv, &row)) {
        MS_MAKE_ROOM(cx->arena, out->rows, out->num_rows, capacity, 256);
        ms_kernel_row *to = &out->rows[out->num_rows++];
        *to = (ms_kernel_row){0};
        read_row(&r, &found, &row, to);
    }
    ms_kernel_sums_tell(out);
    list_skipped(cx->arena, out);
    return MS_OK;
}
