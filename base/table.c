#include "base/table.h"

#include "base/print.h"
#include "base/utf8.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#define COLUMN_GAP 2

typedef struct column {
    const char *title;
    bool left;
} column;

struct ms_table {
    ms_arena *arena;
    int num_columns, column_capacity;
    column *columns;
    int num_cells, cell_capacity;
    const char **cells; /* shape (rows, num_columns), printable texts */
};

ms_table *ms_table_new(ms_arena *arena)
{
    ms_table *table = MS_NEW(arena, ms_table);
    table->arena = arena;
    return table;
}

ms_table *ms_table_columns(ms_table *table, const char *alignment,
                           const char *const *titles)
{
    assert(table->num_cells == 0);
    for (; *alignment != '\0'; alignment++, titles++) {
        assert(*titles != NULL && (*alignment == 'l' || *alignment == 'r'));
        MS_MAKE_ROOM(table->arena, table->columns, table->num_columns,
                     table->column_capacity, 16);
        const char *title =
            ms_printable(table->arena, ms_arena_strdup(table->arena, *titles));
        table->columns[table->num_columns++] = (column){title, *alignment == 'l'};
    }
    assert(*titles == NULL);
    return table;
}

static void add_cell(ms_table *table, const char *format, va_list args)
{
    const char *text = ms_arena_vprintf(table->arena, format, args);
    MS_MAKE_ROOM(table->arena, table->cells, table->num_cells, table->cell_capacity, 64);
    table->cells[table->num_cells++] = ms_printable(table->arena, text);
}

void ms_table_cell(ms_table *table, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_cell(table, format, args);
    va_end(args);
}

/* Steps over the arguments of a format: int, long, double and texts only. Returns whether
 * one of them is NaN. */
static bool skip_arguments(const char *format, va_list *args)
{
    bool any_nan = false;
    for (const char *c = strchr(format, '%'); c != NULL; c = strchr(c + 1, '%')) {
        for (c++; strchr("lsdcfg%", *c) == NULL; c++)
            if (*c == '*')
                (void)va_arg(*args, int);
        if (*c == 's')
            (void)va_arg(*args, const char *);
        else if (*c == 'l')
            (void)va_arg(*args, long);
        else if (*c == 'f' || *c == 'g')
            any_nan |= isnan(va_arg(*args, double)) != 0;
        else if (*c != '%')
            (void)va_arg(*args, int);
    }
    return any_nan;
}

void ms_table_cells(ms_table *table, const char *format, ...)
{
    va_list args, cell_args;
    va_start(args, format);
    for (const char *cell = format, *end; cell != NULL; cell = *end ? end + 1 : NULL) {
        end = cell + strcspn(cell, "\t");
        const char *piece = ms_arena_strndup(table->arena, cell, (size_t)(end - cell));
        va_copy(cell_args, args);
        add_cell(table, piece, cell_args);
        va_end(cell_args);
        if (skip_arguments(piece, &args))
            table->cells[table->num_cells - 1] = "-";
    }
    va_end(args);
}

static size_t column_width(const ms_table *table, int column_idx)
{
    size_t width = ms_utf8_width(table->columns[column_idx].title);
    for (int i = column_idx; i < table->num_cells; i += table->num_columns) {
        size_t cell = ms_utf8_width(table->cells[i]);
        width = cell > width ? cell : width;
    }
    return width;
}

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
    int n = table->num_columns;
    assert(table->num_cells % n == 0);
    size_t *widths = MS_NEW_ARRAY(table->arena, n, size_t);
    const char **titles = MS_NEW_ARRAY(table->arena, n, const char *);
    size_t total = (size_t)(n - 1) * COLUMN_GAP;
    for (int i = 0; i < n; i++) {
        titles[i] = table->columns[i].title;
        widths[i] = column_width(table, i);
        total += widths[i];
    }
    print_row(table, titles, widths, out);
    for (size_t i = 0; i < total; i++)
        fputc('-', out);
    fputc('\n', out);
    for (int i = 0; i < table->num_cells; i += n)
        print_row(table, table->cells + i, widths, out);
}
