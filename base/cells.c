#include "base/cells.h"

#include "base/note.h"
#include "base/print.h"
#include "base/utf8.h"

#include <assert.h>
#include <ctype.h>
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

/* The one of the header's unread columns that is named most like `missing`; NULL: none. */
static const char *nearest_unread(ms_ctx *cx, const ms_cell_columns *columns,
                                  const char *missing, const ms_csv_row *header)
{
    const char **unread = MS_NEW_ARRAY(cx->arena, header->num_cells, const char *);
    int num_unread = 0;
    for (int i = 0; i < header->num_cells; i++)
        if (!is_read(columns, header->cells[i]))
            unread[num_unread++] = header->cells[i];
    return ms_nearest(missing, unread, num_unread);
}

/* Whether both names are equal but for case, '_', '-' and spaces. */
static bool is_same_name(const char *a, const char *b)
{
    static const char passed[] = "_- ";
    for (;;) {
        a += strspn(a, passed);
        b += strspn(b, passed);
        if (*a == '\0' || *b == '\0')
            return *a == *b;
        if (tolower((unsigned char)*a++) != tolower((unsigned char)*b++))
            return false;
    }
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

static bool takes_default(const ms_cell_columns *columns, int i, const char *if_missing)
{
    const char *taken = columns->rules[i].if_missing;
    return columns->place[i] < 0 && taken != NULL && strcmp(taken, if_missing) == 0;
}

/* Short names have too many others near them to be taken for misspelt. */
#define LEAST_MISSPELT 5

/* Records that a column is missing, unless the file may lack it and has none that could
 * be meant. */
static void check_missing(ms_ctx *cx, ms_loc loc, const ms_cell_columns *columns,
                          const ms_cell_rule *rule, const ms_csv_row *header)
{
    const char *nearest = nearest_unread(cx, columns, rule->name, header);
    bool is_misspelt = nearest != NULL && (strlen(rule->name) >= LEAST_MISSPELT ||
                                           is_same_name(rule->name, nearest));
    if (rule->if_missing != NULL && !is_misspelt)
        return;
    ms_fail(cx, MS_EINPUT, loc, "column \"%s\" is missing", rule->name);
    if (nearest != NULL)
        ms_hint(cx, "is it the one called \"%s\"?", nearest);
}

static ms_status check_header(ms_ctx *cx, ms_loc loc, const ms_csv_row *header,
                              const ms_cell_rule *rules, int num_rules)
{
    if (header->fault != NULL)
        return ms_fail(cx, MS_EINPUT, loc, "malformed header: %s", header->fault);
    if (has_any_column(header, rules, num_rules))
        return MS_OK;
    return ms_fail(cx, MS_EINPUT, loc,
                   "the header has none of the %d columns of such a table, from "
                   "\"%s\" to \"%s\"",
                   num_rules, rules[0].name, rules[num_rules - 1].name);
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
    MS_TRY(check_header(cx, loc, header, rules, num_rules));
    for (int i = 0; i < num_rules; i++) {
        out->place[i] = find_column(cx, loc, header, rules[i].name);
        if (out->place[i] < 0 && !is_optional(rules[i].kind))
            check_missing(cx, loc, out, &rules[i], header);
    }
    return cx->num_errors > num_errors ? MS_EINPUT : MS_OK;
}

bool ms_cells_have(const ms_cell_columns *columns, const char *name)
{
    for (int i = 0; i < columns->num_rules; i++)
        if (strcmp(columns->rules[i].name, name) == 0)
            return columns->place[i] >= 0;
    return false;
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

void ms_cells_note_missing(ms_ctx *cx, const char *file, const ms_cell_columns *columns)
{
    const char *list = NULL;
    for (int i = 0; i < columns->num_rules; i++) {
        const char *taken = columns->rules[i].if_missing;
        bool is_first = columns->place[i] < 0 && taken != NULL;
        for (int j = 0; j < i && is_first; j++)
            is_first = !takes_default(columns, j, taken);
        if (!is_first)
            continue;
        const char *separator = list == NULL ? "" : "; ";
        list = list == NULL ? "" : list;
        for (int j = i; j < columns->num_rules; j++) {
            if (!takes_default(columns, j, taken))
                continue;
            list = ms_arena_printf(cx->arena, "%s%s%s", list, separator,
                                   columns->rules[j].name);
            separator = ", ";
        }
        list = ms_arena_printf(cx->arena, "%s: %s", list, taken);
    }
    if (list != NULL)
        ms_note(cx, "%s lacks columns, and is read with: %s", file, list);
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
