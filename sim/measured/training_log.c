/* Reads step times, tokens per second and memory from the logs of frameworks: numbers
 * behind keys, in lines that may have prefixes of launchers and colours. */
#include "sim/measured/measured_priv.h"

#include "costmodel/calibrate/statistics.h"
#include "costmodel/model/model.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LINE_BYTES 4096 /* a longer line is read up to here */

typedef enum quantity {
    STEP_S,        /* seconds of a step */
    TOKENS,        /* tokens per second and GPU */
    SAMPLES_PER_S, /* sequences per second of the job */
    PEAK_BYTES,
    GLOBAL_BATCH, /* sequences per step */
    NUM_QUANTITIES
} quantity;

/* A number of a log: the key before it, what it is, and the unit of a bare number. */
typedef struct entry {
    const char *key;
    quantity what;
    double unit;
} entry;

/* A framework's log. Keys and units: Megatron-LM megatron/training/training.py
 * (training_log) and utils.py (report_memory, MiB); torchtitan components/metrics.py;
 * nanotron logging (human_format, powers of 1000); DeepSpeed runtime utils/timer.py
 * (ThroughputTimer, GiB). */
typedef struct log_format {
    const char *what;
    const char *memory_kind; /* in tables of runs */
    bool rounds;             /* numbers have three digits and a suffix */
    entry entries[6];
} log_format;

static const log_format formats[] = {
    {"Megatron's log",
     "allocated",
     false,
     {{"elapsed time per iteration (ms):", STEP_S, 1e-3},
      {"global batch size:", GLOBAL_BATCH, 1.0},
      {"max allocated:", PEAK_BYTES, 1048576.0}}},
    {"torchtitan's log",
     "reserved",
     false,
     {{"tps:", TOKENS, 1.0},
      {"wps:", TOKENS, 1.0},
      {"memory:", PEAK_BYTES, 1073741824.0}}},
    {"nanotron's log",
     "reserved",
     true,
     {{"time_per_iteration_ms:", STEP_S, 1e-3},
      {"tokens_per_sec_per_gpu:", TOKENS, 1.0},
      {"global_batch_size:", GLOBAL_BATCH, 1.0},
      {"cuda_max_memory_reserved:", PEAK_BYTES, 1.0}}},
    {"DeepSpeed's log",
     "allocated",
     false,
     {{"CurrSamplesPerSec=", SAMPLES_PER_S, 1.0},
      {"MaxMemAllocated=", PEAK_BYTES, 1073741824.0}}},
};

typedef struct samples {
    double *values;
    int num, capacity;
} samples;

typedef struct reader {
    ms_measured_reader *out;
    const log_format *format;
    samples found[NUM_QUANTITIES];
    int other_batches; /* steps of another global batch than the plan's */
    double other_batch;
    int validations; /* lines of validation, which are no training steps */
} reader;

/* ---- lines ---- */

/* Copies a line without escape sequences of terminals. */
static void copy_plain(const char *line, size_t length, char *to)
{
    size_t kept = 0;
    for (size_t i = 0; i < length && kept + 1 < MAX_LINE_BYTES; i++) {
        if (line[i] == '\x1b' && i + 1 < length && line[i + 1] == '[') {
            for (i += 2; i < length && isalpha((unsigned char)line[i]) == 0;)
                i++;
            continue;
        }
        to[kept++] = line[i] == '\0' ? ' ' : line[i];
    }
    to[kept] = '\0';
}

/* Finds a key that is no end of a longer one. */
static const char *find_key(const char *line, const char *key)
{
    for (const char *at = strstr(line, key); at != NULL; at = strstr(at + 1, key))
        if (at == line || (isalnum((unsigned char)at[-1]) == 0 && at[-1] != '_'))
            return at + strlen(key);
    return NULL;
}

/* Reads "1,772", "1.23K" (with suffixes of powers of 1000) or "35.40GiB"; false if there
 * is no number. */
static bool read_number(const char *text, bool has_suffix, double *out)
{
    static const char suffixes[] = "KMGTP";
    char digits[48];
    size_t num = 0;
    text += strspn(text, " ");
    for (; num + 1 < sizeof digits && *text != '\0'; text++) {
        if (isdigit((unsigned char)*text) != 0 || strchr(".+-eE", *text) != NULL)
            digits[num++] = *text;
        else if (*text != ',' || isdigit((unsigned char)text[1]) == 0)
            break;
    }
    digits[num] = '\0';
    char *end;
    *out = strtod(digits, &end);
    if (end == digits || *end != '\0' || !(*out >= 0.0) || *out > 1e15)
        return false;
    if (!has_suffix)
        return true;
    const char *suffix = *text == 'B' ? "G" : text;
    const char *found = *suffix == '\0' ? NULL : strchr(suffixes, *suffix);
    *out *= found == NULL ? 1.0 : pow(1e3, (double)(found - suffixes) + 1.0);
    return true;
}

/* Whether a line has nothing behind the number at `text`, so that it may lack digits. */
static bool ends_in_number(const char *text)
{
    text += strspn(text, " ");
    return *text != '\0' && text[strspn(text, "0123456789.,+-eE")] == '\0';
}

static void keep(reader *r, quantity what, double value)
{
    samples *list = &r->found[what];
    MS_MAKE_ROOM(r->out->cx->arena, list->values, list->num, list->capacity, 64);
    list->values[list->num++] = value;
}

/* Whether a line's step has another batch than the plan: it is counted and left out. */
static bool is_other_batch(reader *r, const double values[NUM_QUANTITIES])
{
    double batch = (double)r->out->options->plan->global_batch;
    /* rounded logs have three digits */
    double slack = r->format->rounds ? 0.005 * batch : 0.0;
    if (isnan(values[GLOBAL_BATCH]) || fabs(values[GLOBAL_BATCH] - batch) <= slack)
        return false;
    r->other_batches++;
    r->other_batch = values[GLOBAL_BATCH];
    return true;
}

static ms_status read_line(reader *r, const char *line, ms_loc loc, bool is_cut)
{
    double values[NUM_QUANTITIES];
    for (int i = 0; i < NUM_QUANTITIES; i++)
        values[i] = NAN;
    if (find_key(line, "validate step:") !=
        NULL) { /* torchtitan's, with a training key */
        r->validations++;
        return MS_OK;
    }
    for (const entry *e = r->format->entries; e->key != NULL; e++) {
        double value;
        const char *at = find_key(line, e->key);
        if (at == NULL)
            continue;
        if (is_cut && ends_in_number(at)) {
            ms_texts_print(r->out->cx->arena, &r->out->out->ignored,
                           "line %d, which ends in a number without a newline", loc.line);
            return MS_OK;
        }
        if (!read_number(at, r->format->rounds, &value) ||
            (e->what != PEAK_BYTES && !(value > 0.0))) {
            if (is_cut)
                return MS_OK;
            loc.column = (int)(at - line) + 1;
            return ms_fail(r->out->cx, MS_EINPUT, loc,
                           "there is no number above 0 behind \"%s\"", e->key);
        }
        values[e->what] = value * e->unit;
    }
    if (is_other_batch(r, values))
        return MS_OK;
    for (int i = 0; i < GLOBAL_BATCH; i++)
        if (!isnan(values[i]))
            keep(r, (quantity)i, values[i]);
    return MS_OK;
}

/* ---- the row ---- */

/* Sets *median to that of the steady steps: all that are logged but the first fifth, at
 * least one, which compiles and allocates. NaN if none is logged. */
static void find_median(reader *r, quantity what, const char *unit, double *median)
{
    ms_measured_reader *out = r->out;
    samples *list = &r->found[what];
    *median = (double)NAN;
    if (list->num == 0)
        return;
    int first = list->num == 1 ? 0 : list->num < 10 ? 1 : list->num / 5;
    double *steady = list->values + first;
    int num = list->num - first;
    *median = ms_quantile(steady, num, 0.5);
    ms_texts_print(out->cx->arena, &out->out->found,
                   "median of %d lines %g %s, from %g to %g; first %d left out", num,
                   *median, unit, steady[0], steady[num - 1], first);
    if (list->num == 1)
        ms_texts_print(out->cx->arena, &out->out->assumed,
                       "the only step logged is steady, though it may be the first");
}

static const char *const columns[] = {
    "id",
    "source",
    "date",
    "model",
    "gpu_type",
    "inter_node_network",
    "vpp_or_schedule",
    "recompute",
    "precision",
    "compile_or_fused",
    "framework",
    "layers",
    "hidden",
    "heads",
    "kv_heads",
    "head_dim",
    "ffn_hidden",
    "gated_ffn",
    "vocab",
    "tied_embeddings",
    "experts",
    "top_k",
    "moe_ffn_hidden",
    "shared_experts",
    "seq",
    "mbs",
    "gbs_seqs",
    "gpus",
    "dp_replicate",
    "dp_shard",
    "tp",
    "sp",
    "async_tp",
    "pp",
    "cp",
    "ep",
    "zero_stage",
    "measured_tokens_per_s_per_gpu",
    "measured_step_s",
    "measured_peak_mem_gib",
    "memory_kind",
    "plan",
};
#define NUM_COLUMNS ((int)(sizeof columns / sizeof *columns))

static void set_cell(const char **row, const char *column, const char *text)
{
    for (int i = 0; i < NUM_COLUMNS; i++)
        if (strcmp(columns[i], column) == 0)
            row[i] = text;
}

static void set_number(ms_arena *arena, const char **row, const char *column,
                       double value)
{
    char text[32];
    if (!isnan(value))
        set_cell(row, column, ms_arena_strdup(arena, ms_json_number_text(value, text)));
}

static void write_plan(FILE *file, const void *plan)
{
    ms_jout out = ms_jout_open(file);
    out.line_depth = -1;
    ms_plan_write_json(&out, plan);
}

static void add_row(reader *r, double step_s, double tokens_per_s)
{
    const double gib = 1073741824.0;
    ms_arena *arena = r->out->cx->arena;
    const ms_plan *plan = r->out->options->plan;
    const char *name = r->out->options->name;
    const char **row = ms_measured_add_row(r->out);
    double peak_bytes = (double)NAN;
    for (int i = 0; i < r->found[PEAK_BYTES].num; i++)
        peak_bytes = fmax(peak_bytes, r->found[PEAK_BYTES].values[i]);
    set_cell(row, "id", name);
    set_cell(row, "source", ms_arena_printf(arena, "%s %s", r->format->what, name));
    set_cell(row, "model", plan->model);
    set_cell(row, "gpu_type", plan->cluster);
    set_cell(row, "framework", plan->stack);
    set_number(arena, row, "gpus", (double)plan->gpus);
    set_number(arena, row, "measured_step_s", step_s);
    set_number(arena, row, "measured_tokens_per_s_per_gpu", tokens_per_s);
    if (peak_bytes > 0.0) {
        set_number(arena, row, "measured_peak_mem_gib", peak_bytes / gib);
        set_cell(row, "memory_kind", r->format->memory_kind);
    }
    set_cell(row, "plan", ms_text_written(arena, write_plan, plan));
}

static ms_status finish(reader *r)
{
    ms_measured_reader *out = r->out;
    const ms_plan *plan = out->options->plan;
    double step_s, tokens, samples_per_s;
    if (r->other_batches > 0)
        ms_texts_print(out->cx->arena, &out->out->ignored,
                       "%d lines of other global batches than the plan's %ld, such as %g",
                       r->other_batches, plan->global_batch, r->other_batch);
    if (r->validations > 0)
        ms_texts_print(out->cx->arena, &out->out->ignored, "%d lines of validation",
                       r->validations);
    find_median(r, STEP_S, "s a step", &step_s);
    find_median(r, TOKENS, "tokens/s a GPU", &tokens);
    find_median(r, SAMPLES_PER_S, "sequences/s", &samples_per_s);
    if (isnan(step_s) && !isnan(samples_per_s))
        step_s = (double)plan->global_batch / samples_per_s;
    if (isnan(step_s) && isnan(tokens)) {
        ms_loc loc = {.file = out->options->name};
        if (r->other_batches > 0)
            return ms_fail(out->cx, MS_EINPUT, loc,
                           "no step has the plan's global batch of %ld; the last has %g",
                           plan->global_batch, r->other_batch);
        ms_fail(out->cx, MS_EINPUT, loc, "no line states a step time");
        return ms_hint(out->cx, "lines of %s have \"%s NUMBER\"", r->format->what,
                       r->format->entries[0].key);
    }
    if (r->format->rounds)
        ms_texts_add(out->cx->arena, &out->out->assumed,
                     "numbers are rounded to three digits, suffixes are powers of 1000");
    if (r->found[PEAK_BYTES].num > 0)
        ms_texts_print(
            out->cx->arena, &out->out->assumed,
            "memory is the largest that is printed, as if the rank with most printed it");
    add_row(r, step_s, tokens);
    return MS_OK;
}

ms_status ms_training_log_read(ms_measured_reader *out, int framework, const char *text,
                               size_t length)
{
    reader r = {.out = out, .format = &formats[framework]};
    ms_lines lines = {text, length, 0, 0};
    const char *line;
    size_t line_length;
    char *plain = ms_arena_alloc(out->cx->arena, MAX_LINE_BYTES);
    out->out->columns = columns;
    out->out->num_columns = NUM_COLUMNS;
    while (ms_lines_next(&lines, &line, &line_length)) {
        bool is_cut = lines.offset == length && text[length - 1] != '\n';
        copy_plain(line, line_length, plain);
        ms_loc loc = {.file = out->options->name, .line = lines.number};
        MS_TRY(read_line(&r, plain, loc, is_cut));
    }
    return finish(&r);
}
