#include "costmodel/profile/sweep.h"

#include "base/number.h"
#include "costmodel/tensor/collective.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ROWS   4096
#define MAX_CURVES 256
#define MAX_VALUE  1e18

#define MACHINE(member, text)                                                            \
    {                                                                                    \
        .kind = MS_FIELD_TEXT, .key = #member, .offset = offsetof(ms_machine, member),   \
        .help = (text)                                                                   \
    }
const ms_field ms_machine_fields[] = {
    MACHINE(cpu, "model name of the processor"),
    MACHINE(cores, "processor cores that the program may use"),
    MACHINE(caches, "caches of one core, and shared ones"),
    MACHINE(memory, "main memory of the machine"),
    MACHINE(kernel, "operating system and version"),
    MACHINE(compiler, "compiler of the kernels"),
    MACHINE(blas, "BLAS library that computes GEMMs"),
    MACHINE(gpu, "name, architecture and multiprocessors of the GPU"),
    MACHINE(gpu_memory, "memory and L2 cache of the GPU"),
    MACHINE(gpu_clocks, "highest clocks of multiprocessors and memory"),
    MACHINE(gpu_driver, "version of the driver"),
    MACHINE(gpu_libraries, "versions of CUDA, cuBLAS, cuDNN and NCCL"),
    MACHINE(conditions, "operands, order and warm-up of the measured kernels"),
    {0}};

#define ROWS(word, text)                                                                 \
    {                                                                                    \
        .kind = MS_FIELD_ANY, .key = (word), .required = true, .help = (text)            \
    }
#define ATTENTION_ROWS "rows of FLOP, key tokens, head dim, scores, bytes, seconds"
static const ms_field measured_fields[] = {
    {.kind = MS_FIELD_CHOICE,
     .key = "dtype",
     .offset = offsetof(ms_sweep, dtype),
     .required = true,
     .choices = ms_dtype_names,
     .help = "data type of GEMMs and attention"},
    {.kind = MS_FIELD_INTEGER,
     .key = "ranks",
     .offset = offsetof(ms_sweep, ranks),
     .required = true,
     .low = 1,
     .high = 1e6,
     .help = "number of ranks measured at once"},
    ROWS("machine", "the machine that was measured"),
    ROWS("products", "rows of batch, m, n, k, seconds"),
    ROWS("attention_forward", ATTENTION_ROWS),
    ROWS("attention_backward", ATTENTION_ROWS),
    ROWS("collectives", "by kind and number of ranks: rows of bytes, seconds"),
    {0}};

/* ---- reading ---- */

static ms_status read_row(ms_ctx *cx, ms_jval row, int columns, double *to)
{
    if (!ms_json_is_array(row) || ms_json_length(row) != columns)
        return ms_json_fail(cx, row, "a row must be an array of %d numbers", columns);
    for (int i = 0; i < columns; i++) {
        ms_jval value = ms_json_element(cx, row, i);
        MS_TRY(ms_json_number(cx, value, 0.0, MAX_VALUE, &to[i]));
        if (!(to[i] > 0.0))
            return ms_json_fail(cx, value, "measured values must be above 0, not %g",
                                to[i]);
    }
    return MS_OK;
}

static ms_status read_rows(ms_ctx *cx, ms_jval array, int columns, ms_sweep_rows *out)
{
    int num = ms_json_is_array(array) ? ms_json_length(array) : -1;
    if (num < 0 || num > MAX_ROWS)
        return ms_json_fail(cx, array, "must be an array of at most %d rows", MAX_ROWS);
    if (num < 2) {
        ms_json_fail(cx, array, "%d rows are too few to interpolate", num);
        ms_hint(cx, "at least 2 rows are needed");
        return MS_EINPUT;
    }
    double *values = MS_NEW_ARRAY(cx->arena, num * columns, double);
    *out = (ms_sweep_rows){num, values};
    for (int i = 0; i < num; i++)
        MS_TRY(
            read_row(cx, ms_json_element(cx, array, i), columns, values + i * columns));
    return MS_OK;
}

static ms_status read_curve(ms_ctx *cx, ms_jval rows, ms_sweep_curve *out)
{
    ms_sweep_rows read = {0};
    MS_TRY(read_rows(cx, rows, MS_CURVE_COLUMNS, &read));
    double *values = MS_NEW_ARRAY(cx->arena, read.num * MS_CURVE_COLUMNS, double);
    memcpy(values, read.values, (size_t)(read.num * MS_CURVE_COLUMNS) * sizeof *values);
    for (int i = 1; i < read.num; i++) {
        double *row = values + i * MS_CURVE_COLUMNS, *before = row - MS_CURVE_COLUMNS;
        if (!(row[0] > before[0]))
            return ms_json_fail(cx, ms_json_element(cx, rows, i),
                                "sizes must grow: %g bytes after %g", row[0], before[0]);
        row[1] = ms_max(row[1], before[1]);
    }
    out->rows = (ms_sweep_rows){read.num, values};
    return MS_OK;
}

static ms_status read_ranks(ms_ctx *cx, ms_jval value, const char *text, long *out)
{
    char *end;
    long ranks = strtol(text, &end, 10);
    if (end == text || *end != '\0' || ranks < 2 || ranks > 1000000)
        return ms_json_fail(cx, value, "\"%s\" is no number of ranks", text);
    *out = ranks;
    return MS_OK;
}

static ms_status read_kind(ms_ctx *cx, ms_jval of_ranks, int kind, ms_sweep *out)
{
    if (!ms_json_is_object(of_ranks))
        return ms_json_fail(cx, of_ranks, "must be an object of rows by number of ranks");
    for (int i = 0; i < ms_json_length(of_ranks); i++) {
        const char *key = NULL;
        ms_jval rows = ms_json_entry(cx, of_ranks, i, &key);
        long ranks = 0;
        MS_TRY(read_ranks(cx, rows, key, &ranks));
        if (out->num_curves == MAX_CURVES)
            return ms_json_fail(cx, rows, "more than %d collectives", MAX_CURVES);
        if (ms_sweep_find(out, kind, ranks) != NULL)
            return ms_json_fail(cx, rows, "%s of %ld ranks stands twice",
                                ms_collective_names[kind], ranks);
        ms_sweep_curve *curve = &out->curves[out->num_curves];
        *curve = (ms_sweep_curve){.collective = kind, .ranks = ranks};
        MS_TRY(read_curve(cx, rows, curve));
        out->num_curves++;
    }
    return MS_OK;
}

static ms_status read_collectives(ms_ctx *cx, ms_jval object, ms_sweep *out)
{
    ms_field keys[MS_NUM_COLLECTIVES + 1] = {0};
    for (int i = 0; i < MS_NUM_COLLECTIVES; i++)
        keys[i] = (ms_field){.kind = MS_FIELD_ANY, .key = ms_collective_names[i]};
    MS_TRY(ms_json_read(cx, object, keys, out));
    out->curves = MS_NEW_ARRAY(cx->arena, MAX_CURVES, ms_sweep_curve);
    for (int i = 0; i < MS_NUM_COLLECTIVES; i++) {
        ms_jval of_ranks;
        if (ms_json_member(cx, object, ms_collective_names[i], &of_ranks))
            MS_TRY(read_kind(cx, of_ranks, i, out));
    }
    return MS_OK;
}

ms_status ms_sweep_read(ms_ctx *cx, ms_jval object, ms_sweep *out)
{
    *out = (ms_sweep){0};
    MS_TRY(ms_json_read(cx, object, measured_fields, out));
    ms_jval member = object;
    ms_json_member(cx, object, "machine", &member);
    MS_TRY(ms_json_read(cx, member, ms_machine_fields, &out->machine));
    const struct {
        const char *key;
        int columns;
        ms_sweep_rows *rows;
    } tables[] = {
        {"products", MS_GEMM_COLUMNS, &out->products},
        {"attention_forward", MS_ATTENTION_COLUMNS, &out->attention[0]},
        {"attention_backward", MS_ATTENTION_COLUMNS, &out->attention[1]},
    };
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        ms_json_member(cx, object, tables[i].key, &member);
        MS_TRY(read_rows(cx, member, tables[i].columns, tables[i].rows));
    }
    ms_json_member(cx, object, "collectives", &member);
    return read_collectives(cx, member, out);
}

/* ---- writing ---- */

static void write_rows(ms_jout *out, const char *key, ms_sweep_rows rows, int columns)
{
    ms_jout_begin_array_field(out, key);
    int line_depth = out->line_depth;
    out->line_depth = out->depth;
    for (int i = 0; i < rows.num; i++) {
        ms_jout_begin_array(out);
        for (int j = 0; j < columns; j++)
            ms_jout_number(out, rows.values[i * columns + j]);
        ms_jout_end_array(out);
    }
    out->line_depth = line_depth;
    ms_jout_end_array(out);
}

static void write_curves(ms_jout *out, const ms_sweep *measured)
{
    ms_jout_begin_object(out);
    for (int kind = 0; kind < MS_NUM_COLLECTIVES; kind++) {
        ms_jout_begin_object_field(out, ms_collective_names[kind]);
        for (int i = 0; i < measured->num_curves; i++) {
            const ms_sweep_curve *curve = &measured->curves[i];
            char ranks[32];
            snprintf(ranks, sizeof ranks, "%ld", curve->ranks);
            if (curve->collective == kind)
                write_rows(out, ranks, curve->rows, MS_CURVE_COLUMNS);
        }
        ms_jout_end_object(out);
    }
    ms_jout_end_object(out);
}

void ms_machine_write(ms_jout *out, const ms_machine *machine)
{
    ms_jout_begin_object(out);
    for (const ms_field *field = ms_machine_fields; field->kind != MS_FIELD_END;
         field++) {
        const char *text;
        memcpy(&text, (const char *)machine + field->offset, sizeof text);
        if (text != NULL)
            ms_jout_text_field(out, field->key, text);
    }
    ms_jout_end_object(out);
}

void ms_sweep_write(ms_jout *out, const ms_sweep *measured)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "dtype", ms_dtype_names[measured->dtype]);
    ms_jout_number_field(out, "ranks", (double)measured->ranks);
    ms_jout_key(out, "machine");
    ms_machine_write(out, &measured->machine);
    write_rows(out, "products", measured->products, MS_GEMM_COLUMNS);
    write_rows(out, "attention_forward", measured->attention[0], MS_ATTENTION_COLUMNS);
    write_rows(out, "attention_backward", measured->attention[1], MS_ATTENTION_COLUMNS);
    ms_jout_key(out, "collectives");
    write_curves(out, measured);
    ms_jout_end_object(out);
}

/* ---- curves ---- */

double ms_sweep_fastest_flop_per_s(const ms_sweep *measured)
{
    double fastest = 0.0;
    for (int i = 0; i < measured->products.num; i++) {
        const double *row = measured->products.values + i * MS_GEMM_COLUMNS;
        fastest = ms_max(fastest, 2.0 * row[0] * row[1] * row[2] * row[3] / row[4]);
    }
    for (int way = 0; way < 2; way++) {
        for (int i = 0; i < measured->attention[way].num; i++) {
            const double *row =
                measured->attention[way].values + i * MS_ATTENTION_COLUMNS;
            fastest = ms_max(fastest, row[0] / row[5]);
        }
    }
    return fastest;
}

const ms_sweep_curve *ms_sweep_find(const ms_sweep *measured, int collective, long ranks)
{
    for (int i = 0; i < measured->num_curves; i++)
        if (measured->curves[i].collective == collective &&
            measured->curves[i].ranks == ranks)
            return &measured->curves[i];
    return NULL;
}

bool ms_sweep_curve_s(const ms_sweep_curve *curve, double bytes, double *seconds)
{
    const double *rows = curve->rows.values;
    int low = 0, high = curve->rows.num - 1;
    if (bytes < rows[0] || bytes > rows[high * MS_CURVE_COLUMNS])
        return false;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (rows[middle * MS_CURVE_COLUMNS] <= bytes)
            low = middle;
        else
            high = middle;
    }
    const double *a = rows + low * MS_CURVE_COLUMNS, *b = rows + high * MS_CURVE_COLUMNS;
    double along = log(bytes / a[0]) / log(b[0] / a[0]);
    *seconds = a[1] * exp(along * log(b[1] / a[1]));
    return true;
}

/* ---- residuals ---- */

static const double prior_octaves = 3.0;

ms_residuals *ms_residuals_make(ms_arena *arena, int capacity)
{
    ms_residuals *residuals = MS_NEW(arena, ms_residuals);
    double *sizes = MS_NEW_ARRAY(arena, capacity * 3, double);
    residuals->log_size = (double(*)[3])sizes;
    residuals->log_ratio = MS_NEW_ARRAY(arena, capacity, double);
    return residuals;
}

void ms_residuals_add(ms_residuals *to, const double size[3], double ratio)
{
    for (int i = 0; i < 3; i++)
        to->log_size[to->num][i] = log2(size[i]);
    to->log_ratio[to->num++] = log(ratio);
}

double ms_residuals_ratio(const ms_residuals *residuals, const double size[3])
{
    const double least = 1e-6; /* added to squared distances, so that none is 0 */
    double at[3] = {log2(size[0]), log2(size[1]), log2(size[2])};
    double sum = 0.0;
    double weights =
        1.0 / (prior_octaves * prior_octaves * prior_octaves * prior_octaves);
    for (int i = 0; i < residuals->num; i++) {
        double square = least;
        for (int j = 0; j < 3; j++) {
            double d = residuals->log_size[i][j] - at[j];
            square += d * d;
        }
        weights += 1.0 / (square * square);
        sum += residuals->log_ratio[i] / (square * square);
    }
    return exp(sum / weights);
}
