/* Which columns of a table are shown, and how wide, where a line has few characters. */
#include "base/table_priv.h"

#include "base/utf8.h"
#include "base/wrap.h"

#include <string.h>

#define LEAST_TEXT 16 /* characters below which a column of texts is left out instead */

/* Smallest widths of a column's title and cells, and the width in which nothing breaks. */
typedef struct room {
    size_t title_word, title, cell_word, cell;
} room;

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static room measure(const ms_table *table, int column_idx)
{
    const ms_table_column *column = &table->columns[column_idx];
    room r = {.title_word = ms_wrap_longest_word(column->title, MS_TABLE_TITLE_BREAKS),
              .title = ms_utf8_width(column->title)};
    for (int i = column_idx; i < table->num_cells; i += table->num_columns) {
        r.cell = larger(r.cell, ms_utf8_width(table->cells[i]));
        r.cell_word = larger(r.cell_word,
                             ms_wrap_longest_word(table->cells[i], MS_TABLE_CELL_BREAKS));
    }
    r.cell_word =
        column->wraps ? smaller(r.cell, larger(r.cell_word, LEAST_TEXT)) : r.cell;
    return r;
}

size_t ms_table_fit_width(const ms_table *table, const ms_table_fit *fit)
{
    size_t total = 0, gap = 0;
    for (int i = 0; i < table->num_columns; i++) {
        if (fit->places[i] != MS_TABLE_SHOWN)
            continue;
        total += gap + fit->widths[i];
        gap = MS_TABLE_GAP;
    }
    return total;
}

/* ---- equal columns ---- */

/* Whether all rows have one value in a column, which a title of its own names. */
static bool is_equal_in_all_rows(const ms_table *table, int column_idx)
{
    const char *title = table->columns[column_idx].title;
    for (int i = column_idx; i < table->num_cells; i += table->num_columns)
        if (strcmp(table->cells[i], table->cells[column_idx]) != 0)
            return false;
    for (int i = 0; i < table->num_columns; i++)
        if (i != column_idx && strcmp(table->columns[i].title, title) == 0)
            return false;
    return title[0] != '\0' && table->num_cells > 0;
}

/* Moves equal columns above the table. Of a single row, and where all columns are equal,
 * only as many as needed go there, from the last on. */
static void move_equal(const ms_table *table, ms_table_fit *fit, size_t most)
{
    int num_equal = 0;
    for (int i = 1; i < table->num_columns; i++)
        num_equal += is_equal_in_all_rows(table, i);
    bool only_needed =
        table->num_cells == table->num_columns || num_equal == table->num_columns - 1;
    for (int i = table->num_columns - 1; i > 0; i--)
        if (is_equal_in_all_rows(table, i) &&
            !(only_needed && ms_table_fit_width(table, fit) <= most))
            fit->places[i] = MS_TABLE_ABOVE;
}

/* ---- narrower columns ---- */

/* Takes characters one at a time from the column that can spare most, down to `least`. */
static void narrow(const ms_table *table, ms_table_fit *fit, const size_t *least,
                   size_t most)
{
    while (ms_table_fit_width(table, fit) > most) {
        int widest = 0;
        for (int i = 1; i < table->num_columns; i++)
            if (fit->places[i] == MS_TABLE_SHOWN &&
                fit->widths[i] - least[i] > fit->widths[widest] - least[widest])
                widest = i;
        if (fit->widths[widest] == least[widest])
            return;
        fit->widths[widest]--;
    }
}

/* Characters of the longest line of a text in lines of `width`. */
static size_t longest_line(const ms_table *table, const char *text, size_t width,
                           const char *breaks)
{
    size_t longest = 0;
    while (*text != '\0') {
        size_t bytes = ms_wrap_bytes(text, width, breaks);
        const char *line = ms_arena_strndup(table->arena, text, bytes);
        longest = larger(longest, ms_utf8_width(line));
        text = ms_wrap_rest(text, bytes);
    }
    return longest;
}

/* Takes the room that no line of the column needs. */
static void tighten(const ms_table *table, ms_table_fit *fit, int column_idx)
{
    size_t width = fit->widths[column_idx];
    size_t need = longest_line(table, table->columns[column_idx].title, width,
                               MS_TABLE_TITLE_BREAKS);
    for (int i = column_idx; i < table->num_cells && need < width;
         i += table->num_columns)
        need = larger(need,
                      longest_line(table, table->cells[i], width, MS_TABLE_CELL_BREAKS));
    fit->widths[column_idx] = need;
}

/* Sets the widths of the shown columns, as wide as `most` allows. */
static void set_widths(const ms_table *table, ms_table_fit *fit, const room *rooms,
                       size_t most)
{
    size_t *least = MS_NEW_ARRAY(table->arena, table->num_columns, size_t);
    for (int i = 0; i < table->num_columns; i++) {
        fit->widths[i] = larger(rooms[i].title, rooms[i].cell);
        least[i] = larger(rooms[i].title_word, rooms[i].cell);
    }
    if (most == 0)
        return;
    narrow(table, fit, least, most);
    for (int i = 0; i < table->num_columns; i++)
        least[i] =
            smaller(fit->widths[i], larger(rooms[i].title_word, rooms[i].cell_word));
    narrow(table, fit, least, most);
}

/* ---- columns left out ---- */

/* The column to leave out next: the most spare one, of equal ones the last; 0: none. */
static int find_spare(const ms_table *table, const ms_table_fit *fit)
{
    int found = 0;
    for (int i = 1; i < table->num_columns; i++)
        if (fit->places[i] == MS_TABLE_SHOWN &&
            (found == 0 || table->columns[i].spare >= table->columns[found].spare))
            found = i;
    return found;
}

/* Leaves columns out until the others fit, then shows those again for which there is room
 * after all, the least spare first. */
static void leave_out(const ms_table *table, ms_table_fit *fit, const room *rooms,
                      size_t most)
{
    int *left_out = MS_NEW_ARRAY(table->arena, table->num_columns, int), num = 0, spare;
    while (ms_table_fit_width(table, fit) > most &&
           (spare = find_spare(table, fit)) > 0) {
        fit->places[left_out[num++] = spare] = MS_TABLE_LEFT_OUT;
        set_widths(table, fit, rooms, most);
    }
    while (num-- > 0) {
        fit->places[left_out[num]] = MS_TABLE_SHOWN;
        set_widths(table, fit, rooms, most);
        if (ms_table_fit_width(table, fit) > most)
            fit->places[left_out[num]] = MS_TABLE_LEFT_OUT;
    }
    set_widths(table, fit, rooms, most);
}

ms_table_fit ms_table_fit_into(const ms_table *table, size_t most)
{
    int n = table->num_columns;
    ms_table_fit fit = {MS_NEW_ARRAY(table->arena, n, ms_table_place),
                        MS_NEW_ARRAY(table->arena, n, size_t)};
    room *rooms = MS_NEW_ARRAY(table->arena, n, room);
    for (int i = 0; i < n; i++)
        rooms[i] = measure(table, i);
    set_widths(table, &fit, rooms, 0);
    if (most == 0 || ms_table_fit_width(table, &fit) <= most)
        return fit;
    move_equal(table, &fit, most);
    set_widths(table, &fit, rooms, most);
    leave_out(table, &fit, rooms, most);
    fit.widths[0] = smaller(fit.widths[0], most);
    for (int i = 0; i < n; i++)
        tighten(table, &fit, i);
    return fit;
}
