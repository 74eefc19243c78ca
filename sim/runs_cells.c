/* The columns of a file of published runs, and the cells of one row. */
#include "base/utf8.h"
#include "sim/runs_priv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum cell_kind {
    CELL_TEXT,
    CELL_COUNT,          /* >= 0, without fraction */
    CELL_OPTIONAL_COUNT, /* the same, in a column that may be missing */
    CELL_POSITIVE        /* a measurement */
} cell_kind;

typedef struct column_rule {
    const char *name;
    cell_kind kind;
    size_t offset;
} column_rule;

#define TEXT(title, member)                                                              \
    {                                                                                    \
        title, CELL_TEXT, offsetof(ms_run_cells, member)                                 \
    }
#define COUNT(member)                                                                    \
    {                                                                                    \
#member, CELL_COUNT, offsetof(ms_run_cells, member)                              \
    }
#define OPTIONAL(member)                                                                 \
    {                                                                                    \
#member, CELL_OPTIONAL_COUNT, offsetof(ms_run_cells, member)                     \
    }
#define POSITIVE(title, member)                                                          \
    {                                                                                    \
        title, CELL_POSITIVE, offsetof(ms_run_cells, member)                             \
    }

static const column_rule columns[] = {
    TEXT("id", id),
    TEXT("source", source),
    TEXT("date", date),
    TEXT("model", model),
    TEXT("gpu_type", gpu_type),
    TEXT("inter_node_network", network),
    TEXT("vpp_or_schedule", schedule),
    TEXT("recompute", recompute),
    TEXT("precision", precision),
    TEXT("compile_or_fused", compile),
    TEXT("framework", framework),
    COUNT(layers),
    COUNT(hidden),
    COUNT(heads),
    COUNT(kv_heads),
    COUNT(head_dim),
    COUNT(ffn_hidden),
    COUNT(gated_ffn),
    COUNT(vocab),
    COUNT(tied_embeddings),
    COUNT(experts),
    COUNT(top_k),
    COUNT(moe_ffn_hidden),
    COUNT(shared_experts),
    COUNT(seq),
    COUNT(mbs),
    COUNT(gbs_seqs),
    COUNT(gpus),
    OPTIONAL(gpus_per_node),
    OPTIONAL(flash_attention),
    COUNT(dp_replicate),
    COUNT(dp_shard),
    COUNT(tp),
    COUNT(sp),
    COUNT(async_tp),
    COUNT(pp),
    COUNT(cp),
    COUNT(ep),
    COUNT(zero_stage),
    POSITIVE("measured_tokens_per_s_per_gpu", tokens_per_s_per_gpu),
    POSITIVE("measured_step_s", step_s),
    POSITIVE("measured_peak_mem_gib", peak_mem_gib),
};

_Static_assert(sizeof columns / sizeof columns[0] == MS_NUM_RUN_COLUMNS,
               "one place per column");

static bool is_known_column(const char *name)
{
    for (int i = 0; i < MS_NUM_RUN_COLUMNS; i++)
        if (strcmp(columns[i].name, name) == 0)
            return true;
    return false;
}

/* Names the header's own columns that nobody reads: one of them may be the missing one, misspelt. */
static void hint_column(ms_ctx *cx, const char *missing, const ms_csv_row *header)
{
    const char **unread = MS_NEW_ARRAY(cx->arena, header->num_cells, const char *);
    int num_unread = 0;
    for (int i = 0; i < header->num_cells; i++)
        if (!is_known_column(header->cells[i]))
            unread[num_unread++] = header->cells[i];
    const char *nearest = ms_nearest(missing, unread, num_unread);
    if (nearest != NULL)
        ms_hint(cx, "is it the one called \"%s\"?", nearest);
}

ms_status ms_run_columns_find(ms_ctx *cx, const char *file, const ms_csv_row *header,
                              ms_run_columns *out)
{
    ms_status status = MS_OK;
    ms_loc loc = {.file = file, .line = header->line};
    if (header->fault != NULL)
        return ms_fail(cx, MS_EINPUT, loc, "malformed header: %s", header->fault);
    out->num_columns = header->num_cells;
    for (int i = 0; i < MS_NUM_RUN_COLUMNS; i++) {
        out->place[i] = -1;
        for (int j = 0; j < header->num_cells; j++) {
            if (strcmp(header->cells[j], columns[i].name) != 0)
                continue;
            if (out->place[i] >= 0)
                status = ms_fail(cx, MS_EINPUT, loc, "column \"%s\" is there twice",
                                 columns[i].name);
            out->place[i] = j;
        }
        if (out->place[i] >= 0 || columns[i].kind == CELL_OPTIONAL_COUNT)
            continue;
        status = ms_fail(cx, MS_EINPUT, loc, "column \"%s\" is missing", columns[i].name);
        hint_column(cx, columns[i].name, header);
    }
    return status;
}

/* Foreign bytes in messages and tables: control characters and what is no UTF-8 as \xNN, at most 40 characters. */
static const char *printable(ms_arena *arena, const char *text)
{
    const size_t most = 40;
    size_t length = strlen(text), at = 0;
    const char *out = "";
    for (size_t num = 0; at < length && num < most; num++) {
        size_t step = ms_utf8_step(text + at, length - at);
        unsigned char byte = (unsigned char)text[at];
        if (step == 0 || byte < 0x20 || byte == 0x7f)
            out = ms_arena_printf(arena, "%s\\x%02X", out, byte);
        else
            out = ms_arena_printf(arena, "%s%.*s", out, (int)step, text + at);
        at += step == 0 ? 1 : step;
    }
    return at < length ? ms_arena_printf(arena, "%s...", out) : out;
}

static bool is_printable(const char *text)
{
    size_t length = strlen(text);
    for (size_t at = 0, step; at < length; at += step) {
        step = ms_utf8_step(text + at, length - at);
        if (step == 0 || (unsigned char)text[at] < 0x20 || text[at] == 0x7f)
            return false;
    }
    return true;
}

static const char *read_number(ms_arena *arena, const column_rule *column,
                               const char *text, double *out)
{
    const double most = 16777216.0; /* products of three stay exact */
    char *end = NULL;
    *out = strtod(text, &end);
    bool is_count = column->kind != CELL_POSITIVE;
    bool in_range = is_count ? *out >= 0 && *out <= most && *out == floor(*out)
                             : *out > 0 && *out <= 1e18;
    if (end != text && *end == '\0' && strpbrk(text, "xXnN") == NULL && in_range)
        return NULL;
    return ms_arena_printf(
        arena, "%s is \"%s\", must be %s", column->name, printable(arena, text),
        is_count ? "a whole number from 0 to 16777216" : "a positive number");
}

static const char *read_cell(ms_arena *arena, const column_rule *column, const char *text,
                             ms_run_cells *out)
{
    char *target = (char *)out + column->offset;
    bool empty = text[0] == '\0';
    double number = (double)NAN;
    const char *fault = NULL;
    switch (column->kind) {
    case CELL_TEXT:
        if (!is_printable(text))
            fault = ms_arena_printf(arena, "%s holds foreign bytes: \"%s\"", column->name,
                                    printable(arena, text));
        *(const char **)(void *)target = empty ? NULL : text;
        break;
    case CELL_COUNT:
    case CELL_OPTIONAL_COUNT:
        if (!empty)
            fault = read_number(arena, column, text, &number);
        *(long *)(void *)target = empty || fault != NULL ? -1 : (long)number;
        break;
    case CELL_POSITIVE:
        if (!empty)
            fault = read_number(arena, column, text, &number);
        *(double *)(void *)target = number;
        break;
    }
    return fault;
}

const char *ms_run_cells_read(ms_arena *arena, const ms_run_columns *found,
                              const ms_csv_row *row, ms_run_cells *out)
{
    *out = (ms_run_cells){0};
    if (row->fault != NULL)
        return row->fault;
    if (row->num_cells != found->num_columns)
        return ms_arena_printf(arena, "%d fields, but the header has %d", row->num_cells,
                               found->num_columns);
    const char *first_fault = NULL;
    for (int i = 0; i < MS_NUM_RUN_COLUMNS; i++) {
        const char *text = found->place[i] < 0 ? "" : row->cells[found->place[i]];
        const char *fault = read_cell(arena, &columns[i], text, out);
        if (first_fault == NULL)
            first_fault = fault;
    }
    if (first_fault == NULL && out->id == NULL)
        return "the row has no id";
    return first_fault;
}
