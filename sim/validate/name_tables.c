/* Reads the files of configs/names/, with a table of the fields of each kind of row. */
#include "sim/validate/name_tables.h"

#include "base/paths.h"
#include "costmodel/plan/plan.h"

#include <math.h>
#include <string.h>

/* Names indexed by ms_recompute, without automatic recomputation: no table names it. */
static const char *const recompute_modes[] = {"none", "selective", "per-op", "full",
                                              NULL};
static const char *const style_names[] = {"as-base", "llama-4", NULL};
static const char *const unsupported_names[] = {"no", "unknown", "states", "encoder",
                                                NULL};

#define TEXT(type, member)                                                               \
    {                                                                                    \
        .kind = MS_FIELD_TEXT, .key = #member, .offset = offsetof(type, member)          \
    }
#define NAME(type)                                                                       \
    {                                                                                    \
        .kind = MS_FIELD_TEXT, .key = "name", .offset = offsetof(type, name),            \
        .required = true, .help = "name as tables write it"                              \
    }
#define FLAG(type, member)                                                               \
    {                                                                                    \
        .kind = MS_FIELD_BOOL, .key = #member, .offset = offsetof(type, member)          \
    }
#define COUNT(type, member, needed, least)                                               \
    {                                                                                    \
        .kind = MS_FIELD_INTEGER, .key = #member, .offset = offsetof(type, member),      \
        .required = (needed), .low = (least), .high = 1e6                                \
    }
#define NUMBER(type, member)                                                             \
    {                                                                                    \
        .kind = MS_FIELD_NUMBER, .key = #member, .offset = offsetof(type, member),       \
        .high = INFINITY                                                                 \
    }
#define QUANTITY(type, keyword, member, needed, of)                                      \
    {                                                                                    \
        .kind = MS_FIELD_QUANTITY, .key = (keyword), .offset = offsetof(type, member),   \
        .required = (needed), .unit = (of)                                               \
    }
#define CHOICE(type, member, needed, words)                                              \
    {                                                                                    \
        .kind = MS_FIELD_CHOICE, .key = #member, .offset = offsetof(type, member),       \
        .required = (needed), .choices = (words)                                         \
    }
#define LIST(type, keyword, member, fields, element_type)                                \
    {                                                                                    \
        .kind = MS_FIELD_LIST, .key = (keyword), .offset = offsetof(type, member),       \
        .element = (fields), .element_bytes = sizeof(element_type)                       \
    }
#define ROWS(keyword, member, fields, element_type)                                      \
    {                                                                                    \
        .kind = MS_FIELD_LIST, .key = (keyword),                                         \
        .offset = offsetof(ms_name_tables, member), .required = true,                    \
        .element = (fields), .element_bytes = sizeof(element_type)                       \
    }

static const ms_field text[] = {{.kind = MS_FIELD_TEXT}};
static const ms_field amount[] = {{.kind = MS_FIELD_NUMBER, .high = INFINITY}};

static const ms_field device[] = {
    NAME(ms_device_name),
    NUMBER(ms_device_name, gib),
    TEXT(ms_device_name, word),
    TEXT(ms_device_name, cluster),
    FLAG(ms_device_name, mixes),
    LIST(ms_device_name, "host_gib", host_gib, amount, double),
    {0}};
static const ms_field rack[] = {
    NAME(ms_rack_name), COUNT(ms_rack_name, gpus, true, 1), {0}};
static const ms_field system_name[] = {NAME(ms_system_name),
                                       TEXT(ms_system_name, with),
                                       FLAG(ms_system_name, several_nodes),
                                       TEXT(ms_system_name, cluster),
                                       TEXT(ms_system_name, reason),
                                       {0}};
static const ms_field framework[] = {NAME(ms_framework_name),
                                     TEXT(ms_framework_name, word),
                                     TEXT(ms_framework_name, work),
                                     COUNT(ms_framework_name, before, false, 199001),
                                     TEXT(ms_framework_name, stack),
                                     COUNT(ms_framework_name, global_batch, false, 1),
                                     {0}};
static const ms_field model[] = {
    NAME(ms_known_model),
    FLAG(ms_known_model, gated),
    TEXT(ms_known_model, model),
    TEXT(ms_known_model, like),
    FLAG(ms_known_model, four_hidden),
    COUNT(ms_known_model, vocab, false, 1),
    CHOICE(ms_known_model, style, false, style_names),
    CHOICE(ms_known_model, unsupported, false, unsupported_names),
    {0}};
static const ms_field network[] = {NAME(ms_network_name),
                                   TEXT(ms_network_name, network),
                                   TEXT(ms_network_name, instead_of),
                                   {0}};
static const ms_field link_name[] = {
    NAME(ms_link_name),
    QUANTITY(ms_link_name, "bandwidth", bytes_per_s, true, MS_UNIT_BYTES_PER_S),
    {0}};
static const ms_field recompute[] = {
    NAME(ms_recompute_name),
    FLAG(ms_recompute_name, whole),
    CHOICE(ms_recompute_name, mode, true, recompute_modes),
    {0}};
static const ms_field precision[] = {
    NAME(ms_precision_name),
    CHOICE(ms_precision_name, dtype, true, ms_dtype_names),
    CHOICE(ms_precision_name, recipe, false, ms_recipe_names),
    {0}};
static const ms_field run_fact[] = {
    TEXT(ms_pubrun_fact, source),
    TEXT(ms_pubrun_fact, framework),
    LIST(ms_pubrun_fact, "but_not", but_not, text, const char *),
    TEXT(ms_pubrun_fact, network),
    FLAG(ms_pubrun_fact, decimal_memory),
    FLAG(ms_pubrun_fact, device_memory),
    FLAG(ms_pubrun_fact, changes_mathematics),
    {0}};
static const ms_field kernel_fact[] = {{.kind = MS_FIELD_TEXT,
                                        .key = "source",
                                        .offset = offsetof(ms_kernel_fact, source),
                                        .required = true},
                                       FLAG(ms_kernel_fact, unpaused),
                                       {0}};
static const ms_field collective_fact[] = {
    TEXT(ms_collective_fact, source),
    TEXT(ms_collective_fact, system),
    TEXT(ms_collective_fact, collective),
    FLAG(ms_collective_fact, several_nodes),
    NUMBER(ms_collective_fact, most_bytes),
    QUANTITY(ms_collective_fact, "below", below_s, false, MS_UNIT_SECONDS),
    {.kind = MS_FIELD_TEXT,
     .key = "reason",
     .offset = offsetof(ms_collective_fact, reason),
     .required = true,
     .help = "why these rows are ignored"},
    {0}};

/* ---- files ---- */

static const ms_field devices_file[] = {
    ROWS("before", before, text, const char *),
    ROWS("after", after, text, const char *),
    ROWS("memories_gib", memories_gib, amount, double),
    NUMBER(ms_name_tables, most_gib),
    ROWS("devices", devices, device, ms_device_name),
    ROWS("racks", racks, rack, ms_rack_name),
    ROWS("drivers", drivers, system_name, ms_system_name),
    ROWS("systems", systems, system_name, ms_system_name),
    {0}};
static const ms_field frameworks_file[] = {
    ROWS("frameworks", frameworks, framework, ms_framework_name), {0}};
static const ms_field models_file[] = {ROWS("models", models, model, ms_known_model),
                                       {0}};
static const ms_field networks_file[] = {
    ROWS("networks", networks, network, ms_network_name),
    ROWS("links", links, link_name, ms_link_name),
    {0}};
static const ms_field words_file[] = {
    ROWS("recompute", recompute, recompute, ms_recompute_name),
    ROWS("precision", precision, precision, ms_precision_name),
    {0}};
static const ms_field sources_file[] = {
    ROWS("runs", run_facts, run_fact, ms_pubrun_fact),
    ROWS("kernels", kernel_facts, kernel_fact, ms_kernel_fact),
    ROWS("collectives", collective_facts, collective_fact, ms_collective_fact),
    {0}};

static ms_status load_file(ms_ctx *cx, const char *name, const ms_field *fields,
                           ms_name_tables *out)
{
    const char *path = ms_config_file(cx, "names", name);
    if (path == NULL)
        return ms_fail(cx, MS_EIO, MS_NOWHERE, "no file configs/names/%s.json was found",
                       name);
    ms_jdoc *doc = NULL;
    ms_jval root;
    MS_TRY(ms_json_load(cx, path, &doc, &root));
    ms_status status = ms_json_read(cx, root, fields, out);
    ms_json_close(doc);
    return status;
}

ms_status ms_name_tables_load(ms_ctx *cx, const ms_name_tables **out)
{
    static const struct {
        const char *name;
        const ms_field *fields;
    } files[] = {{"devices", devices_file}, {"frameworks", frameworks_file},
                 {"models", models_file},   {"networks", networks_file},
                 {"words", words_file},     {"sources", sources_file}};
    ms_name_tables *names = MS_NEW(cx->arena, ms_name_tables);
    *names = (ms_name_tables){.arena = cx->arena, .most_gib = INFINITY};
    ms_status status = MS_OK;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        ms_status file_status = load_file(cx, files[i].name, files[i].fields, names);
        status = status == MS_OK ? file_status : status;
    }
    *out = names;
    return status;
}

const ms_system_name *ms_system_name_find(ms_list list, const char *name, long nodes)
{
    const ms_system_name *rows = list.rows;
    for (const ms_system_name *row = rows; row < rows + list.num_rows; row++) {
        if (strstr(name, row->name) != NULL &&
            (row->with == NULL || strstr(name, row->with) != NULL) &&
            (!row->several_nodes || nodes > 1))
            return row;
    }
    return NULL;
}
