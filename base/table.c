#include "base/print.h"
#include "base/table_priv.h"
#include "base/utf8.h"
#include "base/wrap.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

static int most_width;

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
    for (; *alignment != '\0'; titles++) {
        char letter = *alignment++;
        assert(*titles != NULL && strchr("lrLR", letter) != NULL);
        int spare = isdigit((unsigned char)*alignment) ? *alignment++ - '0' : 0;
        MS_MAKE_ROOM(table->arena, table->columns, table->num_columns,
                     table->column_capacity, 16);
        const char *title =
            ms_printable(table->arena, ms_arena_strdup(table->arena, *titles));
        table->columns[table->num_columns++] =
            (ms_table_column){title, tolower((unsigned char)letter) == 'l',
                              isupper((unsigned char)letter) != 0, spare};
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

void ms_table_limit_width(int most)
{
    most_width = most;
}

int ms_table_most_width(void)
{
    return most_width;
}

bool ms_table_shows_all(const ms_table *table)
{
    ms_table_fit fit = ms_table_fit_into(table, (size_t)most_width);
    for (int i = 0; i < table->num_columns; i++)
        if (fit.places[i] != MS_TABLE_SHOWN)
            return false;
    return true;
}

/* ---- the lines of a table ---- */

static int count_lines(const char *text, size_t width, const char *breaks)
{
    int num_lines = 0;
    for (; *text != '\0'; num_lines++)
        text = ms_wrap_rest(text, ms_wrap_bytes(text, width, breaks));
    return num_lines;
}

/* Prints one line of a row: of each column's text the first `bytes`. */
static void print_line(const ms_table *table, const ms_table_fit *fit,
                       const char *const *texts, const size_t *bytes, FILE *out)
{
    size_t pending = 0;
    for (int i = 0; i < table->num_columns; i++) {
        if (fit->places[i] != MS_TABLE_SHOWN)
            continue;
        const char *text = ms_arena_strndup(table->arena, texts[i], bytes[i]);
        size_t pad = fit->widths[i] - ms_utf8_width(text);
        bool left = table->columns[i].left;
        pending += left ? 0 : pad;
        if (text[0] != '\0') {
            fprintf(out, "%*s%s", (int)pending, "", text);
            pending = 0;
        }
        pending += (left ? pad : 0) + MS_TABLE_GAP;
    }
    fputc('\n', out);
}

/* Prints a row in as many lines as its longest text takes; titles end in its last line. */
static void print_row(const ms_table *table, const ms_table_fit *fit,
                      const char *const *cells, bool are_titles, FILE *out)
{
    const char *breaks = are_titles ? MS_TABLE_TITLE_BREAKS : MS_TABLE_CELL_BREAKS;
    int n = table->num_columns, most_lines = 1;
    const char **rest = MS_NEW_ARRAY(table->arena, n, const char *);
    size_t *bytes = MS_NEW_ARRAY(table->arena, n, size_t);
    int *num_lines = MS_NEW_ARRAY(table->arena, n, int);
    for (int i = 0; i < n; i++) {
        rest[i] = cells[i];
        if (fit->places[i] == MS_TABLE_SHOWN)
            num_lines[i] = count_lines(cells[i], fit->widths[i], breaks);
        most_lines = num_lines[i] > most_lines ? num_lines[i] : most_lines;
    }
    for (int line = 0; line < most_lines; line++) {
        for (int i = 0; i < n; i++) {
            bool waits = are_titles && line < most_lines - num_lines[i];
            bytes[i] = waits ? 0 : ms_wrap_bytes(rest[i], fit->widths[i], breaks);
        }
        print_line(table, fit, rest, bytes, out);
        for (int i = 0; i < n; i++)
            rest[i] = ms_wrap_rest(rest[i], bytes[i]);
    }
}

/* ---- lines above and below ---- */

/* "zero 1" or, for a number whose title ends in a unit, "peak 54.3 GiB". */
static const char *value_text(const ms_table *table, const char *title, const char *value)
{
    const char *unit = strrchr(title, '(');
    size_t length = strlen(title);
    bool is_number = value[strcspn(value, "0123456789")] != '\0';
    if (unit == NULL || unit == title || unit[-1] != ' ' || title[length - 1] != ')' ||
        !is_number)
        return ms_arena_printf(table->arena, "%s %s", title, value);
    return ms_arena_printf(table->arena, "%.*s %s %.*s", (int)(unit - 1 - title), title,
                           value, (int)strlen(unit) - 2, unit + 1);
}

/* Lists the columns in one place, separated by commas, above ones with their value. */
static const char *list_columns(const ms_table *table, const ms_table_fit *fit,
                                ms_table_place place)
{
    const char *list = "";
    for (int i = 0; i < table->num_columns; i++) {
        const char *title = table->columns[i].title;
        if (fit->places[i] != place || title[0] == '\0')
            continue;
        list = ms_arena_printf(
            table->arena, "%s%s%s", list, list[0] == '\0' ? "" : ", ",
            place == MS_TABLE_ABOVE ? value_text(table, title, table->cells[i]) : title);
    }
    return list;
}

static void print_list(const ms_table *table, const ms_table_fit *fit,
                       ms_table_place place, FILE *out)
{
    const char *list = list_columns(table, fit, place), *label, *rest = "";
    if (list[0] == '\0')
        return;
    if (place == MS_TABLE_ABOVE) {
        label = table->num_cells == table->num_columns ? "also: " : "all: ";
    } else {
        label = "left out: ";
        rest = "; --wide shows all";
    }
    ms_wrap_print(out, ms_arena_printf(table->arena, "%s%s%s", label, list, rest),
                  (size_t)most_width, strlen(label));
}

void ms_table_print(const ms_table *table, FILE *out)
{
    int n = table->num_columns;
    assert(table->num_cells % n == 0);
    ms_table_fit fit = ms_table_fit_into(table, (size_t)most_width);
    const char **titles = MS_NEW_ARRAY(table->arena, n, const char *);
    for (int i = 0; i < n; i++)
        titles[i] = table->columns[i].title;
    print_list(table, &fit, MS_TABLE_ABOVE, out);
    print_row(table, &fit, titles, true, out);
    for (size_t i = ms_table_fit_width(table, &fit); i > 0; i--)
        fputc('-', out);
    fputc('\n', out);
    for (int i = 0; i < table->num_cells; i += n)
        print_row(table, &fit, table->cells + i, false, out);
    print_list(table, &fit, MS_TABLE_LEFT_OUT, out);
}
