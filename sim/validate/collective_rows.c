/* Reads rows of measured collectives, and predicts their times. */
#include "sim/validate/collective_rows.h"

#include "base/cells.h"
#include "base/paths.h"
#include "sim/validate/collective_rows_priv.h"
#include "sim/validate/pubrun_priv.h"

#include <math.h>
#include <string.h>

typedef struct row_cells {
    const char *source, *system, *collective, *algo;
    long gpus, nodes;
    double bytes, time_us;
} row_cells;

static const ms_cell_rule columns[] = {
    {"source", MS_CELL_TEXT, offsetof(row_cells, source), NULL},
    {"system", MS_CELL_TEXT, offsetof(row_cells, system), NULL},
    {"collective", MS_CELL_TEXT, offsetof(row_cells, collective), NULL},
    {"algo", MS_CELL_TEXT, offsetof(row_cells, algo), NULL},
    {"gpus", MS_CELL_COUNT, offsetof(row_cells, gpus), NULL},
    {"nodes", MS_CELL_COUNT, offsetof(row_cells, nodes), NULL},
    {"bytes", MS_CELL_POSITIVE, offsetof(row_cells, bytes), NULL},
    {"time_us", MS_CELL_POSITIVE, offsetof(row_cells, time_us), NULL},
};

/* A collective's name in the file and its meaning. */
typedef struct word {
    const char *text;
    int collective;
} word;

static const word collective_words[] = {
    {"all_gather", MS_ALL_GATHER}, {"reduce_scatter", MS_REDUCE_SCATTER},
    {"all_reduce", MS_ALL_REDUCE}, {"alltoall", MS_ALL_TO_ALL},
    {"all_to_all", MS_ALL_TO_ALL}, {"sendrecv", MS_SEND},
    {"send_recv", MS_SEND},
};

static bool find_collective(const char *text, ms_collective *out)
{
    for (size_t i = 0; i < sizeof collective_words / sizeof collective_words[0]; i++) {
        if (strcmp(text, collective_words[i].text) == 0) {
            *out = (ms_collective)collective_words[i].collective;
            return true;
        }
    }
    return false;
}

static const char *fault_of(const row_cells *c)
{
    if (c->source == NULL || c->system == NULL)
        return "source or system is empty";
    if (c->gpus < 1 || c->nodes < 1)
        return "gpus or nodes is not stated";
    if (isnan(c->bytes))
        return "bytes is not stated";
    return NULL;
}

/* ---- groups ---- */

/* Network levels that a row's ranks span: equally many ranks on each of `nodes` nodes. */
ms_span ms_collective_row_span(const ms_collective_row *row)
{
    long per_node = row->gpus / row->nodes;
    long node = row->cluster->gpus_per_node;
    ms_group group = {.size = row->gpus, .num_modes = 1};
    group.modes[0] = (ms_mode){row->gpus, 1};
    if (row->nodes > 1 && per_node < node) {
        group.num_modes = per_node > 1 ? 2 : 1;
        group.modes[0] = (ms_mode){row->nodes, node};
        group.modes[1] = (ms_mode){per_node, 1};
    }
    return ms_group_span(&group, row->nodes * node, row->cluster);
}

ms_collective_law ms_collective_row_law(const ms_collective_row *row)
{
    ms_span span = ms_collective_row_span(row);
    return ms_collective_law_make(row->collective, &span, row->cluster, row->profile);
}

ms_algorithm ms_collective_row_algorithm(const ms_collective_row *row)
{
    ms_collective_law law = ms_collective_row_law(row);
    return row->algorithm != MS_ALGORITHM_NONE
               ? row->algorithm
               : ms_collective_algorithm(&law, row->size_bytes);
}

double ms_collective_row_s(const ms_collective_row *row)
{
    ms_collective_law law = ms_collective_row_law(row);
    return row->algorithm == MS_ALGORITHM_NONE
               ? ms_collective_s(&law, row->size_bytes)
               : ms_collective_by_s(&law, row->algorithm, row->size_bytes);
}

/* ---- one row ---- */

/* Sets the algorithm that the measurement forced; `text` NULL or "auto" sets none, as
 * NCCL's tuner chose. Returns NULL, or why the measured row cannot be predicted. */
static const char *set_algorithm(const char *text, ms_collective_row *row)
{
    if (text == NULL || strcmp(text, "auto") == 0)
        return NULL;
    ms_collective_law law = ms_collective_row_law(row);
    bool has_law = ms_algorithm_parse(text, &row->algorithm) &&
                   !isnan(ms_collective_by_s(&law, row->algorithm, row->size_bytes));
    return has_law ? NULL : "algorithm: there is no law for it";
}

/* The cluster of a row's system: a cluster's own name or path, or what its name contains.
 * NULL with *reason set if there is none. */
static const char *cluster_name(ms_ctx *cx, const ms_pubrun_store *store,
                                const ms_collective_row *row, const char **reason)
{
    static const char ending[] = ".json";
    size_t length = strlen(row->system);
    bool is_file = length >= sizeof ending &&
                   strcmp(row->system + length - (sizeof ending - 1), ending) == 0;
    if (is_file || ms_config_file(cx, "clusters", row->system) != NULL)
        return row->system;
    const ms_system_name *system = ms_system_name_find(
        ms_pubrun_store_names(store)->systems, row->system, row->nodes);
    *reason = system != NULL && system->reason != NULL ? system->reason
                                                       : "system: no cluster file for it";
    return system != NULL ? system->cluster : NULL;
}

static const char *set_system(ms_ctx *cx, ms_pubrun_store *store, ms_collective_row *row)
{
    const char *reason = NULL;
    const char *name = cluster_name(cx, store, row, &reason);
    if (name == NULL)
        return reason;
    row->cluster = ms_pubrun_store_cluster(cx, store, name);
    row->profile = row->cluster == NULL
                       ? NULL
                       : ms_pubrun_store_profile(cx, store, row->cluster->device.profile);
    ms_ctx quiet = {.arena = cx->arena};
    if (row->profile == NULL ||
        ms_network_check(&quiet, row->cluster, row->profile) != MS_OK)
        return "system: its cluster or profile cannot be read";
    if (row->gpus < 2 || row->gpus % row->nodes != 0 ||
        row->gpus / row->nodes > row->cluster->gpus_per_node)
        return "gpus: not spread evenly over nodes that can hold them";
    if (row->cluster->max_gpus > 0 && row->gpus > row->cluster->max_gpus)
        return "gpus: more than the cluster has";
    return NULL;
}

static bool has_part(const char *text, const char *part)
{
    return part == NULL || strstr(text, part) != NULL;
}

static bool fits_fact(const ms_collective_fact *fact, const ms_collective_row *row)
{
    return has_part(row->source, fact->source) && has_part(row->system, fact->system) &&
           has_part(ms_collective_names[row->collective], fact->collective) &&
           (!fact->several_nodes || row->nodes > 1) &&
           (fact->most_bytes <= 0.0 || row->size_bytes <= fact->most_bytes) &&
           (fact->below_s <= 0.0 || row->measured_s < fact->below_s);
}

/* Why validation leaves out a row of a known system; NULL if it keeps the row. */
static const char *defect(const ms_name_tables *names, const ms_collective_row *row)
{
    const ms_collective_fact *facts = names->collective_facts.rows;
    if (isnan(row->measured_s))
        return "time: not stated";
    for (int i = 0; i < names->collective_facts.num_rows; i++)
        if (fits_fact(&facts[i], row))
            return facts[i].reason;
    return NULL;
}

static void read_row(ms_ctx *cx, ms_pubrun_store *store, const row_cells *c,
                     ms_collective_row *row)
{
    row->source = c->source;
    row->system = c->system;
    row->gpus = c->gpus;
    row->nodes = c->nodes;
    row->size_bytes = c->bytes;
    row->measured_s = c->time_us * 1e-6;
    row->reason = set_system(cx, store, row);
    if (row->reason == NULL &&
        (c->collective == NULL || !find_collective(c->collective, &row->collective)))
        row->reason = "collective: there is no law for it";
    if (row->reason == NULL)
        row->reason = defect(ms_pubrun_store_names(store), row);
    if (row->reason == NULL)
        row->reason = set_algorithm(c->algo, row);
    if (row->reason == NULL)
        row->fitted = ms_collective_row_is_fitted(cx->arena, row);
}

static void list_skipped(ms_arena *arena, ms_collective_rows *rows)
{
    rows->skipped.rows = MS_NEW_ARRAY(arena, rows->num_rows, ms_skipped_row);
    for (int i = 0; i < rows->num_rows; i++) {
        const ms_collective_row *row = &rows->rows[i];
        if (row->reason != NULL)
            rows->skipped.rows[rows->skipped.num_rows++] =
                (ms_skipped_row){row->line, row->system, row->reason, row->fault};
    }
}

ms_status ms_collective_rows_read(ms_ctx *cx, const char *name, const char *text,
                                  size_t length, ms_collective_rows *out)
{
    *out = (ms_collective_rows){0};
    ms_csv csv = ms_csv_open(text, length);
    ms_csv_row row;
    ms_cell_columns found;
    MS_TRY(ms_cells_open(cx, name, &csv, columns, sizeof columns / sizeof columns[0],
                         &found));
    ms_pubrun_store *store;
    MS_TRY(ms_pubrun_store_open(cx, &store));
    int capacity = 0;
    while (ms_csv_next(cx->arena, &csv, &row)) {
        MS_MAKE_ROOM(cx->arena, out->rows, out->num_rows, capacity, 256);
        ms_collective_row *to = &out->rows[out->num_rows++];
        *to = (ms_collective_row){
            .line = row.line, .source = "?", .system = "?", .measured_s = (double)NAN};
        row_cells cells = {0};
        to->fault = ms_cells_read(cx->arena, &found, &row, &cells);
        if (to->fault == NULL)
            to->fault = fault_of(&cells);
        if (to->fault == NULL)
            read_row(cx, store, &cells, to);
        else
            to->reason = "malformed";
    }
    list_skipped(cx->arena, out);
    return MS_OK;
}
