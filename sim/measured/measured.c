/* Tables of measurements: the list of formats, and the rows of collectives. */
#include "sim/measured/measured.h"

#include "base/print.h"
#include "sim/measured/measured_priv.h"

#include <string.h>

#define NUM_COLLECTIVE_FORMATS 1

const char *const ms_measured_format_names[] = {
    "nccl-tests", "megatron-log", "torchtitan-log", "nanotron-log", "deepspeed-log", NULL,
};
const char *const ms_nccl_tests_names[] = {
    "all_reduce", "all_gather", "reduce_scatter", "alltoall",  "sendrecv", "broadcast",
    "reduce",     "gather",     "scatter",        "hypercube", NULL,
};

bool ms_measured_is_log(int format)
{
    return format >= NUM_COLLECTIVE_FORMATS;
}

const char **ms_measured_add_row(ms_measured_reader *r)
{
    ms_measured_table *out = r->out;
    if (out->num_rows == out->capacity) {
        size_t row_bytes = (size_t)out->num_columns * sizeof *out->cells;
        out->cells = ms_arena_room(r->cx->arena, out->cells, out->num_rows,
                                   &out->capacity, 32, row_bytes);
    }
    return out->cells + (ptrdiff_t)out->num_rows++ * out->num_columns;
}

void ms_measured_write_csv(FILE *out, const ms_measured_table *table)
{
    for (int i = 0; i < table->num_columns; i++)
        ms_print(out, "%s%s", i > 0 ? "," : "", table->columns[i]);
    fputc('\n', out);
    for (int i = 0; i < table->num_rows; i++) {
        for (int j = 0; j < table->num_columns; j++) {
            const char *cell = table->cells[(ptrdiff_t)i * table->num_columns + j];
            if (j > 0)
                fputc(',', out);
            if (cell == NULL)
                continue;
            if (strpbrk(cell, "\",\r\n") != NULL)
                ms_print_csv_text(out, cell);
            else
                fputs(cell, out);
        }
        fputc('\n', out);
    }
}

/* ---- collectives ---- */

static const char *const columns[] = {"source",     "system", "gpus",  "nodes",
                                      "collective", "algo",   "bytes", "time_us"};

const char *ms_nccl_collective(const char *word, size_t length)
{
    static const char ending[] = "_perf";
    size_t start = length;
    while (start > 0 && word[start - 1] != '/')
        start--;
    word += start;
    length -= start;
    for (int i = 0; ms_nccl_tests_names[i] != NULL; i++) {
        size_t own = strlen(ms_nccl_tests_names[i]);
        if (length == own + sizeof ending - 1 &&
            memcmp(word, ms_nccl_tests_names[i], own) == 0 &&
            memcmp(word + own, ending, sizeof ending - 1) == 0)
            return ms_nccl_tests_names[i];
    }
    return NULL;
}

static ms_loc loc_of(const ms_measured_reader *r, const ms_nccl_place *place)
{
    if (place->value.doc != NULL)
        return ms_json_loc(r->cx, place->value);
    return (ms_loc){
        .file = r->options->name, .line = place->line, .column = place->column};
}

/* MS_EINPUT: drivers call the cluster's GPUs by another name than the text's. */
static ms_status check_gpu(ms_measured_reader *r, const ms_nccl_place *place,
                           const char *gpu)
{
    const ms_device *device = &r->options->cluster->device;
    const ms_system_name *own = NULL;
    const ms_cluster *usual;
    if (gpu != NULL)
        own = ms_system_name_find(r->names->drivers, gpu, 1);
    if (own == NULL || own->cluster == NULL ||
        own == ms_system_name_find(r->names->drivers, device->name, 1))
        return MS_OK;
    MS_TRY(ms_cluster_load(r->cx, own->cluster, &usual));
    if (strcmp(usual->device.profile, device->profile) == 0)
        return MS_OK;
    ms_fail(r->cx, MS_EINPUT, loc_of(r, place),
            "GPUs are \"%s\", but those of cluster \"%s\" are %s", gpu,
            r->options->system, device->name);
    return ms_hint(r->cx, "name the cluster that was measured: --cluster NAME|FILE");
}

/* Adds what the rows of a test rest on. */
static void note_test(ms_measured_reader *r, const ms_nccl_test *test)
{
    ms_texts_print(r->cx->arena, &r->out->found, "%s of %ld ranks on %d host%s%s%s",
                   test->collective != NULL ? test->collective : r->options->collective,
                   test->ranks, test->hosts.num, test->hosts.num == 1 ? "" : "s",
                   test->gpu == NULL ? "" : ": ", test->gpu == NULL ? "" : test->gpu);
}

ms_status ms_nccl_add_rank(ms_measured_reader *r, ms_nccl_test *test, ms_nccl_place place,
                           const char *host, const char *group, const char *gpu)
{
    if (test->ranks == 0) {
        test->group = group;
        test->gpu = gpu;
        MS_TRY(check_gpu(r, &place, gpu));
    }
    if (group != NULL && test->group != NULL && strcmp(group, test->group) != 0) {
        ms_fail(
            r->cx, MS_EINPUT, loc_of(r, &place),
            "ranks are in several groups, which share the links while they are timed");
        return ms_hint(r->cx, "leave NCCL_TESTS_SPLIT out, so that all ranks are one");
    }
    if (gpu != NULL && test->gpu != NULL && strcmp(gpu, test->gpu) != 0)
        return ms_fail(r->cx, MS_EINPUT, loc_of(r, &place),
                       "GPUs differ: \"%s\" after \"%s\"", gpu, test->gpu);
    test->hosts.arena = r->cx->arena;
    ms_map_add(&test->hosts, host, strlen(host));
    test->ranks++;
    return MS_OK;
}

ms_status ms_nccl_add_row(ms_measured_reader *r, ms_nccl_test *test,
                          const ms_nccl_row *row)
{
    ms_arena *arena = r->cx->arena;
    const char *collective =
        test->collective != NULL ? test->collective : r->options->collective;
    if (collective == NULL) {
        ms_fail(r->cx, MS_EINPUT, loc_of(r, &row->place),
                "the text does not state the collective of its rows");
        return ms_hint(r->cx, "--collective all_reduce, or keep the line of the command, "
                              "such as ./all_reduce_perf -b 8 -e 1G -f 2");
    }
    if (r->options->collective != NULL && strcmp(collective, r->options->collective) != 0)
        return ms_fail(r->cx, MS_EINPUT, loc_of(r, &row->place),
                       "--collective is %s, but the text says %s", r->options->collective,
                       collective);
    if (test->ranks == 0)
        return ms_fail(r->cx, MS_EINPUT, loc_of(r, &row->place),
                       "no line before this row lists a rank (\"#  Rank  0 ...\")");
    if (!test->is_noted)
        note_test(r, test);
    test->is_noted = true;
    if (row->wrong > 0.0 || !(row->size_bytes > 0.0)) {
        ms_texts_print(arena, &r->out->ignored, "%g bytes, %g wrong values",
                       row->size_bytes, row->wrong);
        return MS_OK;
    }
    char number[32];
    const char **cells = ms_measured_add_row(r);
    const char *const own[] = {
        ms_arena_printf(arena, "nccl-tests %s", r->options->name),
        r->options->system,
        ms_arena_printf(arena, "%ld", test->ranks),
        ms_arena_printf(arena, "%d", test->hosts.num),
        collective,
        test->algorithm == NULL ? "auto" : test->algorithm,
        ms_arena_strdup(arena, ms_json_number_text(row->size_bytes, number)),
        ms_arena_strdup(arena, ms_json_number_text(row->time_us, number)),
    };
    memcpy(cells, own, sizeof own);
    return MS_OK;
}

static ms_status read_collectives(ms_measured_reader *r, const char *text, size_t length)
{
    size_t at = 0;
    r->out->columns = columns;
    r->out->num_columns = (int)(sizeof columns / sizeof *columns);
    while (at < length && strchr(" \t\r\n", text[at]) != NULL && text[at] != '\0')
        at++;
    MS_TRY(ms_name_tables_load(r->cx, &r->names));
    bool is_json = at < length && text[at] == '{';
    MS_TRY(is_json ? ms_nccl_read_json(r, text, length)
                   : ms_nccl_read_text(r, text, length));
    if (r->out->num_rows == 0)
        return ms_fail(r->cx, MS_EINPUT, (ms_loc){.file = r->options->name},
                       "no row of nccl-tests: sizes and times behind a header \"# size "
                       "count type ...\"");
    ms_texts_add(r->cx->arena, &r->out->assumed, "times out of place");
    return MS_OK;
}

ms_status ms_measured_read(ms_ctx *cx, int format, const char *text, size_t length,
                           const ms_measured_options *options, ms_measured_table *out)
{
    *out = (ms_measured_table){0};
    ms_measured_reader r = {.cx = cx, .options = options, .out = out};
    return ms_measured_is_log(format)
               ? ms_training_log_read(&r, format - NUM_COLLECTIVE_FORMATS, text, length)
               : read_collectives(&r, text, length);
}
