/* Reads and writes error spreads as JSON (meshsim.spread/1). */
#include "costmodel/calibrate/error_spread.h"

#include "base/paths.h"

#include <limits.h>
#include <math.h>

#define MOST_ERROR 20.0 /* largest plausible |log(measured / predicted)| */

/* ---- reading ---- */

#define LIST_FIELD(name, text)                                                           \
    {                                                                                    \
        .kind = MS_FIELD_ANY, .key = (name), .required = true, .help = (text)            \
    }
#define TEXT_FIELD(name, place, text)                                                    \
    {                                                                                    \
        .kind = MS_FIELD_TEXT, .key = (name), .offset = (place), .required = true,       \
        .help = (text)                                                                   \
    }

/* Finds the JSON list `key` and its length; MS_EINPUT if absent or empty. */
static ms_status find_list(ms_ctx *cx, ms_jval at, const char *key, const char *of,
                           ms_jval *list, int *num)
{
    (void)ms_json_member(cx, at, key, list);
    *num = ms_json_is_array(*list) ? ms_json_length(*list) : 0;
    return *num > 0 ? MS_OK : ms_json_fail(cx, *list, "\"%s\" is no list of %s", key, of);
}

static ms_status read_runs(ms_ctx *cx, ms_jval cell, ms_error_cell *out)
{
    ms_jval list;
    MS_TRY(find_list(cx, cell, "runs", "ids", &list, &out->num_runs));
    const char **runs = MS_NEW_ARRAY(cx->arena, out->num_runs, const char *);
    for (int i = 0; i < out->num_runs; i++)
        MS_TRY(ms_json_text(cx, ms_json_element(cx, list, i), &runs[i]));
    out->runs = runs;
    return MS_OK;
}

static ms_status read_errors(ms_ctx *cx, ms_jval cell, const char *key,
                             const ms_error_cell *of, const double **out)
{
    ms_jval list;
    int num = of->num_points;
    double *errors = MS_NEW_ARRAY(cx->arena, num, double);
    (void)ms_json_member(cx, cell, key, &list);
    if (!ms_json_is_array(list) || ms_json_length(list) != num)
        return ms_json_fail(cx, list, "\"%s\" of %d runs is no list of %d errors", key,
                            of->num_runs, num);
    for (int i = 0; i < num; i++)
        MS_TRY(ms_json_number(cx, ms_json_element(cx, list, i), -MOST_ERROR, MOST_ERROR,
                              &errors[i]));
    *out = errors;
    return MS_OK;
}

static ms_status read_cell(ms_ctx *cx, ms_jval at, ms_error_cell *out)
{
    static const ms_field fields[] = {
        TEXT_FIELD("stack", offsetof(ms_error_cell, stack), "stack of the runs"),
        {.kind = MS_FIELD_INTEGER,
         .key = "most_gpus",
         .offset = offsetof(ms_error_cell, most_gpus),
         .required = true,
         .low = 1,
         .high = INFINITY,
         .help = "32 for runs on at most 32 GPUs, 1000000000 for larger ones"},
        LIST_FIELD("runs", "ids of the runs"),
        LIST_FIELD("new_errors",
                   "log(measured / predicted) by constants fitted without their source"),
        LIST_FIELD("known_errors",
                   "the same by constants fitted to other runs of their source"),
        {0}};
    *out = (ms_error_cell){0};
    MS_TRY(ms_json_read(cx, at, fields, out));
    if (out->most_gpus != ms_error_scale(out->most_gpus))
        return ms_json_fail(cx, at, "\"most_gpus\" is neither 32 nor 1000000000: %ld",
                            out->most_gpus);
    MS_TRY(read_runs(cx, at, out));
    out->num_points = out->num_runs < MS_ERROR_POINTS ? out->num_runs : MS_ERROR_POINTS;
    MS_TRY(read_errors(cx, at, "new_errors", out, &out->new_errors));
    return read_errors(cx, at, "known_errors", out, &out->known_errors);
}

static ms_status read_source(ms_ctx *cx, ms_jval at, ms_error_source *out)
{
    static const ms_field fields[] = {
        TEXT_FIELD("name", offsetof(ms_error_source, name),
                   "name of the source, as in the runs"),
        LIST_FIELD("cells", "errors by stack and number of GPUs"),
        {0}};
    ms_jval list;
    *out = (ms_error_source){0};
    MS_TRY(ms_json_read(cx, at, fields, out));
    int num;
    MS_TRY(find_list(cx, at, "cells", "cells", &list, &num));
    ms_error_cell *cells = MS_NEW_ARRAY(cx->arena, num, ms_error_cell);
    for (out->num_cells = 0; out->num_cells < num; out->num_cells++)
        MS_TRY(read_cell(cx, ms_json_element(cx, list, out->num_cells),
                         &cells[out->num_cells]));
    out->cells = cells;
    return MS_OK;
}

ms_status ms_error_spread_read(ms_ctx *cx, ms_jval root, ms_error_spread *out)
{
    static const char *const schemas[] = {"meshsim.spread/1", NULL};
    typedef struct file {
        ms_error_spread spread;
        int schema;
    } file;
    static const ms_field fields[] = {
        {.kind = MS_FIELD_CHOICE,
         .key = "schema",
         .offset = offsetof(file, schema),
         .required = true,
         .choices = schemas,
         .help = ""},
        TEXT_FIELD("source", offsetof(file, spread) + offsetof(ms_error_spread, source),
                   "data that the spread was made from"),
        {.kind = MS_FIELD_NUMBER,
         .key = "source_correlation",
         .offset = offsetof(file, spread) + offsetof(ms_error_spread, source_correlation),
         .required = true,
         .low = 0.01,
         .high = 1.0,
         .help = "correlation of errors of the same source"},
        {.kind = MS_FIELD_NUMBER,
         .key = "prior_sources",
         .offset = offsetof(file, spread) + offsetof(ms_error_spread, prior_sources),
         .required = true,
         .low = 0.01,
         .high = 1000.0,
         .help = "number of sources that the wider class counts as"},
        LIST_FIELD("sources", "errors of each source"),
        {0}};
    file read = {0};
    ms_jval list;
    MS_TRY(ms_json_read(cx, root, fields, &read));
    *out = read.spread;
    int num;
    MS_TRY(find_list(cx, root, "sources", "sources", &list, &num));
    ms_error_source *sources = MS_NEW_ARRAY(cx->arena, num, ms_error_source);
    for (out->num_sources = 0; out->num_sources < num; out->num_sources++)
        MS_TRY(read_source(cx, ms_json_element(cx, list, out->num_sources),
                           &sources[out->num_sources]));
    out->sources = sources;
    return MS_OK;
}

ms_status ms_error_spread_load(ms_ctx *cx, const char *name, const ms_error_spread **out)
{
    ms_jdoc *doc = NULL;
    ms_jval root;
    const char *path = ms_config_file(cx, "spreads", name);
    *out = NULL;
    if (path == NULL)
        return MS_OK;
    MS_TRY(ms_json_load(cx, path, &doc, &root));
    ms_error_spread *spread = MS_NEW(cx->arena, ms_error_spread);
    ms_status status = ms_error_spread_read(cx, root, spread);
    ms_json_close(doc);
    spread->name = name;
    *out = spread;
    return status;
}

/* ---- writing ---- */

static void write_errors(ms_jout *out, const char *key, const double *errors, int num)
{
    ms_jout_begin_array_field(out, key);
    for (int i = 0; i < num; i++)
        ms_jout_number(out, errors[i]);
    ms_jout_end_array(out);
}

static void write_cell(ms_jout *out, const ms_error_cell *cell)
{
    int line_depth = out->line_depth;
    ms_jout_begin_object(out);
    out->line_depth = out->depth;
    ms_jout_text_field(out, "stack", cell->stack);
    ms_jout_number_field(out, "most_gpus", (double)cell->most_gpus);
    ms_jout_begin_array_field(out, "runs");
    for (int i = 0; i < cell->num_runs; i++)
        ms_jout_text(out, cell->runs[i]);
    ms_jout_end_array(out);
    write_errors(out, "new_errors", cell->new_errors, cell->num_points);
    write_errors(out, "known_errors", cell->known_errors, cell->num_points);
    out->line_depth = line_depth;
    ms_jout_end_object(out);
}

void ms_error_spread_write_json(ms_jout *out, const ms_error_spread *spread)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "schema", "meshsim.spread/1");
    ms_jout_text_field(out, "source", spread->source);
    ms_jout_number_field(out, "source_correlation", spread->source_correlation);
    ms_jout_number_field(out, "prior_sources", spread->prior_sources);
    ms_jout_begin_array_field(out, "sources");
    for (int s = 0; s < spread->num_sources; s++) {
        const ms_error_source *source = &spread->sources[s];
        ms_jout_begin_object(out);
        ms_jout_text_field(out, "name", source->name);
        ms_jout_begin_array_field(out, "cells");
        for (int i = 0; i < source->num_cells; i++)
            write_cell(out, &source->cells[i]);
        ms_jout_end_array(out);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
    ms_jout_end_object(out);
}
