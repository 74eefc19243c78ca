/* CSV rows are scanned for faults before cells are copied: bad rows allocate nothing. */
#include "base/csv.h"

#include <errno.h>
#include <string.h>

#define MAX_FILE_BYTES (128UL << 20)

/* ---- files ---- */

static ms_status read_all(ms_ctx *cx, const char *path, FILE *file, ms_csv *out)
{
    size_t capacity = 1 << 16, length = 0;
    char *text = ms_arena_alloc(cx->arena, capacity);
    for (;;) {
        length += fread(text + length, 1, capacity - length, file);
        if (length < capacity)
            break;
        if (capacity >= MAX_FILE_BYTES)
            return ms_fail(cx, MS_EINPUT, (ms_loc){.file = path},
                           "the file is larger than 128 MiB");
        char *larger = ms_arena_alloc(cx->arena, 2 * capacity);
        memcpy(larger, text, length);
        text = larger;
        capacity *= 2;
    }
    if (ferror(file))
        return ms_fail(cx, MS_EIO, (ms_loc){.file = path}, "cannot be read: %s",
                       strerror(errno));
    *out = ms_csv_open(text, length);
    return MS_OK;
}

ms_status ms_csv_load(ms_ctx *cx, const char *path, ms_csv *out)
{
    if (strcmp(path, "-") == 0)
        return read_all(cx, "standard input", stdin, out);
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return ms_fail(cx, MS_EIO, (ms_loc){.file = path}, "cannot be opened: %s",
                       strerror(errno));
    ms_status status = read_all(cx, path, file, out);
    fclose(file);
    return status;
}

ms_csv ms_csv_open(const char *text, size_t length)
{
    static const char mark[] = "\xEF\xBB\xBF";
    bool has_mark = length >= 3 && memcmp(text, mark, 3) == 0;
    return (ms_csv){
        .text = text, .length = length, .offset = has_mark ? 3 : 0, .line = 1};
}

/* ---- rows ---- */

/* Length of a line end at `at`: 2 for CRLF, 1 for LF, 0 for none or a CR alone. */
static size_t line_end(const ms_csv *csv, size_t at)
{
    if (at < csv->length && csv->text[at] == '\n')
        return 1;
    bool crlf =
        at + 1 < csv->length && csv->text[at] == '\r' && csv->text[at + 1] == '\n';
    return crlf ? 2 : 0;
}

static bool at_field_end(const ms_csv *csv, size_t at)
{
    return at >= csv->length || csv->text[at] == ',' || line_end(csv, at) > 0;
}

/* End of the quoted field that starts at `at`; sets *fault if it is malformed. */
static size_t skip_quoted(const ms_csv *csv, size_t at, const char **fault)
{
    for (at++; at < csv->length; at++) {
        if (csv->text[at] != '"')
            continue;
        if (at + 1 < csv->length && csv->text[at + 1] == '"') {
            at++;
            continue;
        }
        if (!at_field_end(csv, at + 1))
            *fault = "there is text after a closing quote";
        return at + 1;
    }
    *fault = "a quote is never closed";
    return at;
}

static size_t skip_plain(const ms_csv *csv, size_t at, const char **fault)
{
    for (; !at_field_end(csv, at); at++)
        if (csv->text[at] == '"')
            *fault = "a quote stands inside a field without quotes";
    return at;
}

static size_t skip_field(const ms_csv *csv, size_t at, const char **fault)
{
    bool quoted = at < csv->length && csv->text[at] == '"';
    return quoted ? skip_quoted(csv, at, fault) : skip_plain(csv, at, fault);
}

static char *copy_field(ms_arena *arena, const char *text, size_t length)
{
    if (length == 0 || text[0] != '"')
        return ms_arena_strndup(arena, text, length);
    char *copy = ms_arena_alloc(arena, length);
    size_t num_kept = 0;
    for (size_t i = 1; i + 1 < length; i++) {
        copy[num_kept++] = text[i];
        if (text[i] == '"')
            i++;
    }
    return copy;
}

static void copy_cells(ms_arena *arena, const ms_csv *csv, ms_csv_row *row)
{
    const char **cells = MS_NEW_ARRAY(arena, row->num_cells, const char *);
    int *columns = MS_NEW_ARRAY(arena, row->num_cells, int);
    const char *fault = NULL;
    size_t at = csv->offset;
    for (int i = 0; i < row->num_cells; i++) {
        size_t end = skip_field(csv, at, &fault);
        cells[i] = copy_field(arena, csv->text + at, end - at);
        columns[i] = (int)(at - csv->offset) + (end > at && csv->text[at] == '"') + 1;
        at = end + 1;
    }
    row->cells = cells;
    row->columns = columns;
}

/* Moves the reader to the line after `end`, the end of a row. If the row has the first
 * unclosed quote of the text, moves it to the line after the row's first line instead. */
static void advance(ms_csv *csv, size_t end, bool unclosed)
{
    if (unclosed && !csv->resumed) {
        csv->resumed = true;
        end = csv->offset;
    }
    const char *start = csv->text + csv->offset;
    while (end < csv->length && csv->text[end] != '\n')
        end++;
    if (end < csv->length)
        end++;
    for (const char *at = start; at < csv->text + end; at++)
        csv->line += *at == '\n';
    csv->offset = end;
}

static void skip_empty_lines(ms_csv *csv)
{
    for (size_t step; (step = line_end(csv, csv->offset)) > 0; csv->offset += step)
        csv->line++;
}

bool ms_csv_next(ms_arena *arena, ms_csv *csv, ms_csv_row *out)
{
    skip_empty_lines(csv);
    if (csv->offset >= csv->length)
        return false;
    *out = (ms_csv_row){.line = csv->line};
    size_t at = csv->offset;
    const char *fault = NULL;
    for (;;) {
        at = skip_field(csv, at, &fault);
        out->num_cells++;
        if (fault != NULL || at >= csv->length || csv->text[at] != ',')
            break;
        at++;
    }
    bool unclosed = fault != NULL && at >= csv->length;
    if (fault == NULL && memchr(csv->text + csv->offset, '\0', at - csv->offset) != NULL)
        fault = "there is a zero byte";
    out->fault = fault;
    if (fault == NULL)
        copy_cells(arena, csv, out);
    else
        out->num_cells = 0;
    advance(csv, at, unclosed);
    return true;
}

ms_status ms_csv_fail_cell(ms_ctx *cx, const char *path, const ms_csv_row *row, int cell,
                           const char *wants)
{
    bool has = cell < row->num_cells;
    ms_loc loc = {
        .file = path, .line = row->line, .column = has ? row->columns[cell] : 1};
    return ms_fail(cx, MS_EINPUT, loc, "\"%s\" is not %s", has ? row->cells[cell] : "",
                   wants);
}
