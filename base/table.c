/* Cells are kept as text row by row in arrays that double; nothing is measured before printing. */
#include "base/table.h"

#include "base/utf8.h"

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#define COLUMN_GAP 2

typedef struct column {
    const char *name;
    bool left;
} column;

struct ms_table {
    ms_arena *arena;
    int num_columns;
    column *columns;
    size_t num_cells;
    size_t capacity;
    const char **cells; /* (rows, num_columns) */
};

static void name_columns(ms_table *table, const char *header)
{
    for (int i = 0; i < table->num_columns; i++) {
        size_t length = strcspn(header, "|");
        bool left = length > 0 && header[0] == '<';
        table->columns[i].left = left;
        table->columns[i].name =
            ms_arena_strndup(table->arena, header + left, length - left);
        header += length + 1;
    }
}

ms_table *ms_table_new(ms_arena *arena, const char *header)
{
    ms_table *table = MS_NEW(arena, ms_table);
    table->arena = arena;
    table->num_columns = 1;
    for (const char *p = header; *p != '\0'; p++)
        table->num_columns += *p == '|';
    table->columns = MS_NEW_ARRAY(arena, table->num_columns, column);
    name_columns(table, header);
    return table;
}

static void add_cell(ms_table *table, const char *text)
{
    if (table->num_cells == table->capacity) {
        size_t capacity = table->capacity == 0 ? 64 : table->capacity * 2;
        const char **cells = MS_NEW_ARRAY(table->arena, capacity, const char *);
        if (table->num_cells > 0)
            memcpy(cells, table->cells, table->num_cells * sizeof *cells);
        table->cells = cells;
        table->capacity = capacity;
    }
    table->cells[table->num_cells++] = text;
}

void ms_table_cell(ms_table *table, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    assert(length >= 0);
    char *text = ms_arena_alloc(table->arena, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    add_cell(table, text);
}

static size_t column_width(const ms_table *table, int column_idx)
{
    size_t width = ms_utf8_width(table->columns[column_idx].name);
    for (size_t i = (size_t)column_idx; i < table->num_cells;
         i += (size_t)table->num_columns) {
        size_t cell = ms_utf8_width(table->cells[i]);
        width = cell > width ? cell : width;
    }
    return width;
}

/* Spaces are printed only before text, so that no line ends in one. Right-aligned text is padded
 * before, left-aligned text after. */
static void print_row(const ms_table *table, const char *const *cells,
                      const size_t *widths, FILE *out)
{
    size_t pending = 0;
    for (int i = 0; i < table->num_columns; i++) {
        size_t pad = widths[i] - ms_utf8_width(cells[i]);
        bool left = table->columns[i].left;
        pending += left ? 0 : pad;
        if (cells[i][0] != '\0') {
            fprintf(out, "%*s%s", (int)pending, "", cells[i]);
            pending = 0;
        }
        pending += (left ? pad : 0) + COLUMN_GAP;
    }
    fputc('\n', out);
}

void ms_table_print(const ms_table *table, FILE *out)
{
    size_t n = (size_t)table->num_columns;
    assert(table->num_cells % n == 0);
    size_t *widths = MS_NEW_ARRAY(table->arena, n, size_t);
    const char **names = MS_NEW_ARRAY(table->arena, n, const char *);
    size_t total = (n - 1) * COLUMN_GAP;
    for (int i = 0; i < table->num_columns; i++) {
        names[i] = table->columns[i].name;
        widths[i] = column_width(table, i);
        total += widths[i];
    }
    print_row(table, names, widths, out);
    for (size_t i = 0; i < total; i++)
        fputc('-', out);
    fputc('\n', out);
    for (size_t i = 0; i < table->num_cells; i += n)
        print_row(table, table->cells + i, widths, out);
}
