#include "base/cells.h"

#include "base/print.h"
#include "base/utf8.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_read(const ms_cell_columns *columns, const char *name)
{
    for (int i = 0; i < columns->num_rules; i++)
        if (strcmp(columns->rules[i].name, name) == 0)
            return true;
    return false;
}

/* Hints at the one of the header's unread columns that is named most like `missing`. */
static void hint_column(ms_ctx *cx, const ms_cell_columns *columns, const char *missing,
                        const ms_csv_row *header)
{
    const char **unread = MS_NEW_ARRAY(cx->arena, header->num_cells, const char *);
    int num_unread = 0;
    for (int i = 0; i < header->num_cells; i++)
        if (!is_read(columns, header->cells[i]))
            unread[num_unread++] = header->cells[i];
    const char *nearest = ms_nearest(missing, unread, num_unread);
    if (nearest != NULL)
        ms_hint(cx, "is it the one called \"%s\"?", nearest);
}

/* Index of the column `name` in a header; -1 if absent. A repeated name is an error. */
static int find_column(ms_ctx *cx, ms_loc loc, const ms_csv_row *header, const char *name)
{
    int place = -1;
    for (int j = 0; j < header->num_cells; j++) {
        if (strcmp(header->cells[j], name) != 0)
            continue;
        if (place >= 0)
            ms_fail(cx, MS_EINPUT, loc, "column \"%s\" is there twice", name);
        place = j;
    }
    return place;
}

static bool has_any_column(const ms_csv_row *header, const ms_cell_rule *rules,
                           int num_rules)
{
    for (int i = 0; i < num_rules; i++) {
        for (int j = 0; j < header->num_cells; j++)
            if (strcmp(header->cells[j], rules[i].name) == 0)
                return true;
    }
    return false;
}

static bool is_optional(ms_cell_kind kind)
{
    return kind == MS_CELL_OPTIONAL_COUNT || kind == MS_CELL_OPTIONAL_TEXT;
}

static ms_status find_columns(ms_ctx *cx, const char *file, const ms_csv_row *header,
                              const ms_cell_rule *rules, int num_rules,
                              ms_cell_columns *out)
{
    int num_errors = cx->num_errors;
    ms_loc loc = {.file = file, .line = header->line};
    assert(num_rules <= MS_MAX_CELL_RULES);
    *out = (ms_cell_columns){
        .rules = rules, .num_rules = num_rules, .num_columns = header->num_cells};
    if (header->fault != NULL)
        return ms_fail(cx, MS_EINPUT, loc, "malformed header: %s", header->fault);
    if (!has_any_column(header, rules, num_rules)) {
        return ms_fail(cx, MS_EINPUT, loc,
                       "the header has none of the %d columns of such a table, from "
                       "\"%s\" to \"%s\"",
                       num_rules, rules[0].name, rules[num_rules - 1].name);
    }
    for (int i = 0; i < num_rules; i++) {
        out->place[i] = find_column(cx, loc, header, rules[i].name);
        if (out->place[i] >= 0 || is_optional(rules[i].kind))
            continue;
        ms_fail(cx, MS_EINPUT, loc, "column \"%s\" is missing", rules[i].name);
        hint_column(cx, out, rules[i].name, header);
    }
    return cx->num_errors > num_errors ? MS_EINPUT : MS_OK;
}

ms_status ms_cells_open(ms_ctx *cx, const char *file, ms_csv *csv,
                        const ms_cell_rule *rules, int num_rules, ms_cell_columns *out)
{
    ms_csv_row header;
    if (!ms_csv_next(cx->arena, csv, &header))
        return ms_fail(cx, MS_EINPUT, (ms_loc){.file = file},
                       "the file is empty, it must begin with a header");
    return find_columns(cx, file, &header, rules, num_rules, out);
}

const char *ms_cell_text(ms_arena *arena, const char *text)
{
    int shown = ms_utf8_prefix(text, 40);
    const char *dots = text[shown] == '\0' ? "" : "...";
    text = ms_printable(arena, ms_arena_strndup(arena, text, (size_t)shown));
    return ms_arena_printf(arena, "%s%s", text, dots);
}

static const char *read_number(ms_arena *arena, const ms_cell_rule *column,
                               const char *text, double *out)
{
    /* largest count accepted, 2^24: the product of two is exact in a double */
    const double most = 16777216.0;
    char *end = NULL;
    *out = strtod(text, &end);
    bool is_count = column->kind != MS_CELL_POSITIVE;
    bool in_range = is_count ? *out >= 0 && *out <= most && *out == floor(*out)
                             : *out > 0 && *out <= 1e18;
    if (end != text && *end == '\0' && strpbrk(text, "xXnN") == NULL && in_range)
        return NULL;
    return ms_arena_printf(
        arena, "%s is \"%s\", must be %s", column->name, ms_cell_text(arena, text),
        is_count ? "a whole number from 0 to 16777216" : "a positive number");
}

static const char *read_cell(ms_arena *arena, const ms_cell_rule *column,
                             const char *text, void *out)
{
    char *target = (char *)out + column->offset;
    bool empty = text[0] == '\0';
    double number = (double)NAN;
    const char *fault = NULL;
    switch (column->kind) {
    case MS_CELL_TEXT:
    case MS_CELL_OPTIONAL_TEXT:
        if (ms_printable(arena, text) != text)
            fault = ms_arena_printf(arena, "%s holds foreign bytes: \"%s\"", column->name,
                                    ms_cell_text(arena, text));
        if (column->kind == MS_CELL_OPTIONAL_TEXT && fault != NULL) {
            empty = true;
            fault = NULL;
        }
        *(const char **)(void *)target = empty ? NULL : text;
        break;
    case MS_CELL_COUNT:
    case MS_CELL_OPTIONAL_COUNT:
        if (!empty)
            fault = read_number(arena, column, text, &number);
        *(long *)(void *)target = empty || fault != NULL ? -1 : (long)number;
        if (column->kind == MS_CELL_OPTIONAL_COUNT && fault != NULL) {
            *(long *)(void *)target = MS_CELL_UNREAD;
            fault = NULL;
        }
        break;
    case MS_CELL_POSITIVE:
        if (!empty)
            fault = read_number(arena, column, text, &number);
        *(double *)(void *)target = number;
        break;
    }
    return fault;
}

const char *ms_cells_read(ms_arena *arena, const ms_cell_columns *columns,
                          const ms_csv_row *row, void *out)
{
    if (row->fault != NULL)
        return row->fault;
    if (row->num_cells != columns->num_columns)
        return ms_arena_printf(arena, "%d fields, but the header has %d", row->num_cells,
                               columns->num_columns);
    const char *first_fault = NULL;
    for (int i = 0; i < columns->num_rules; i++) {
        const char *text = columns->place[i] < 0 ? "" : row->cells[columns->place[i]];
        const char *fault = read_cell(arena, &columns->rules[i], text, out);
        if (first_fault == NULL)
            first_fault = fault;
    }
    return first_fault;
}
