/* Before drawing, the times of bars are summed per cell and kind: long bars cost no more,
 * and a cell with thousands of short bars shows the kind that takes most of its time. */
#include "cli/report/gantt.h"

#include "base/print.h"
#include "base/utf8.h"

#include <math.h>
#include <string.h>

#define MIN_COLUMNS 10

typedef struct cell {
    int kind; /* kind of bar that the cell shows; -1: idle */
    int bar;  /* index of the bar of that kind with the largest share of the cell */
} cell;

typedef struct canvas {
    FILE *out;
    ms_arena *arena;
    const ms_gantt *gantt;
    int num_kinds;
    int name_width;
    int columns;
    double scale; /* columns per unit of time */
    bool with_numbers;
    bool used[MS_MAX_GANTT_KINDS];
    const char *colours[1 + MS_MAX_GANTT_KINDS]; /* ANSI sequences, indexed by 1 + kind */
    char *text; /* (columns): characters of the line being drawn */
    unsigned char *styles;
} canvas;

/* ---- cells ---- */

/* Time of each kind in each cell; arrays of shape (lanes, columns, kinds). */
typedef struct sums {
    /* [lane, column, kind] time in the cell of all bars, and of the bar longest there */
    double *time, *most;
    int *bar; /* [lane, column, kind] index of that bar */
} sums;

static void add_bar(const canvas *c, const sums *s, int index)
{
    const ms_gantt_bar *bar = &c->gantt->bars[index];
    double from = fmax((bar->start - c->gantt->start) * c->scale, 0.0);
    double to = fmin((bar->end - c->gantt->start) * c->scale, c->columns);
    for (int i = (int)fmin(from, c->columns); i < c->columns && i < to; i++) {
        double part = fmin(to, i + 1.0) - fmax(from, i);
        int at = (bar->lane * c->columns + i) * c->num_kinds + bar->kind;
        s->time[at] += part;
        if (part > s->most[at]) {
            s->most[at] = part;
            s->bar[at] = index;
        }
    }
}

static cell find_cell(const canvas *c, const sums *s, int first)
{
    const double *time = &s->time[first];
    int best = 0;
    double idle = 1.0;
    for (int k = 0; k < c->num_kinds; k++) {
        idle -= time[k];
        if (time[k] > time[best])
            best = k;
    }
    if (time[best] <= 0.0 || time[best] < idle - 1e-9)
        return (cell){-1, -1};
    return (cell){best, s->bar[first + best]};
}

/* Finds which kind of bar each cell shows; cells of shape (lanes, columns). */
static cell *find_cells(canvas *c)
{
    int num_cells = c->gantt->num_lanes * c->columns;
    cell *cells = MS_NEW_ARRAY(c->arena, num_cells, cell);
    ms_arena_mark mark = ms_arena_save(c->arena);
    size_t size = (size_t)num_cells * (size_t)c->num_kinds;
    sums s = {MS_NEW_ARRAY(c->arena, size, double), MS_NEW_ARRAY(c->arena, size, double),
              MS_NEW_ARRAY(c->arena, size, int)};
    for (int i = 0; i < c->gantt->num_bars; i++)
        add_bar(c, &s, i);
    for (int i = 0; i < num_cells; i++) {
        cells[i] = find_cell(c, &s, i * c->num_kinds);
        if (cells[i].kind >= 0)
            c->used[cells[i].kind] = true;
    }
    ms_arena_rewind(c->arena, mark);
    return cells;
}

/* ---- lines ---- */

/* Writes the micro-batch number of the bar that a cell shows; "" if it has none. */
static void number_text(const canvas *c, cell of, char text[16])
{
    int number = of.kind < 0 ? -1 : c->gantt->bars[of.bar].number;
    text[0] = '\0';
    if (number >= 0)
        (void)snprintf(text, 16, "%d", number);
}

/* Fills columns from..to-1 of a line with one bar, "F12---", or "FFFFFF" without numbers;
 * a number that does not fit is left out. */
static void put_run(canvas *c, cell of, int from, int to)
{
    char digits[16];
    number_text(c, of, digits);
    size_t length = strlen(digits), width = (size_t)(to - from);
    char letter = of.kind < 0 ? '.' : c->gantt->kinds[of.kind].letter;
    memset(c->text + from, of.kind >= 0 && c->with_numbers ? '-' : letter, width);
    memset(c->styles + from, of.kind + 1, width);
    c->text[from] = letter;
    if (c->with_numbers && length < width)
        memcpy(c->text + from + 1, digits, length);
}

void ms_gantt_print_row(FILE *out, const char *text, const unsigned char *styles,
                        int num_columns, const char *const *colours)
{
    for (int from = 0, to; from < num_columns; from = to) {
        const char *colour = colours == NULL ? NULL : colours[styles[from]];
        for (to = from + 1; to < num_columns && styles[to] == styles[from];)
            to++;
        fputs(colour == NULL ? "" : colour, out);
        ms_print(out, "%.*s", to - from, text + from);
        fputs(colour == NULL ? "" : "\033[0m", out);
    }
    fputc('\n', out);
}

static void print_name(const canvas *c, const char *name)
{
    ms_print(c->out, "%s", name);
    for (int i = (int)ms_utf8_width(name); i < c->name_width; i++)
        fputc(' ', c->out);
    fputs("  ", c->out);
}

static bool is_same_run(const canvas *c, cell a, cell b)
{
    if (a.kind != b.kind || a.bar == b.bar)
        return a.kind == b.kind;
    int group = c->gantt->bars[a.bar].group;
    return group != 0 && group == c->gantt->bars[b.bar].group;
}

/* End of the run of equal cells that begins at `from`. */
static int run_end(const canvas *c, const cell *cells, int from)
{
    int to = from + 1;
    while (to < c->columns && is_same_run(c, cells[to], cells[from]))
        to++;
    return to;
}

/* Whether bars show numbers: only if at least three quarters of all numbers fit. */
static bool have_room_for_numbers(const canvas *c, const cell *cells)
{
    int num_with = 0, num_fitting = 0;
    for (int lane = 0; lane < c->gantt->num_lanes; lane++, cells += c->columns) {
        for (int from = 0, to; from < c->columns; from = to) {
            char digits[16];
            to = run_end(c, cells, from);
            number_text(c, cells[from], digits);
            num_with += digits[0] != '\0';
            num_fitting += digits[0] != '\0' && (int)strlen(digits) <= to - from - 1;
        }
    }
    return 4 * num_fitting >= 3 * num_with;
}

static void print_lane(canvas *c, int lane, const cell *cells)
{
    const char *const *names = c->gantt->lane_names;
    bool repeated = lane > 0 && strcmp(names[lane], names[lane - 1]) == 0;
    print_name(c, repeated ? "" : names[lane]);
    for (int from = 0, to; from < c->columns; from = to) {
        to = run_end(c, cells, from);
        put_run(c, cells[from], from, to);
    }
    ms_gantt_print_row(c->out, c->text, c->styles, c->columns,
                       c->gantt->colours ? c->colours : NULL);
}

/* ---- the axis ---- */

double ms_gantt_tick(double least)
{
    double power = pow(10.0, floor(log10(least)));
    const double steps[] = {1.0, 2.0, 5.0};
    for (int i = 0; i < 3; i++)
        if (steps[i] * power >= least * (1.0 - 1e-9))
            return steps[i] * power;
    return 10.0 * power;
}

static void print_axis(const canvas *c)
{
    double step = ms_gantt_tick(10.0 / c->scale);
    int decimals = (int)fmax(0.0, -floor(log10(step) + 1e-9));
    char *labels = ms_arena_alloc(c->arena, (size_t)c->columns + 1);
    char *marks = ms_arena_alloc(c->arena, (size_t)c->columns + 1);
    memset(labels, ' ', (size_t)c->columns);
    memset(marks, ' ', (size_t)c->columns);
    int labelled = 0, marked = 0; /* columns filled by labels and by ticks */
    double first = ceil(c->gantt->start / step - 1e-9);
    for (int i = 0;; i++) {
        double time = (first + i) * step;
        int column = (int)floor((time - c->gantt->start) * c->scale + 1e-6);
        if (column >= c->columns)
            break;
        char text[32];
        (void)snprintf(text, sizeof text, "%.*f", decimals, fabs(time));
        int length = (int)strlen(text); /* a time with too many digits is cut */
        if (length > c->columns)
            break;
        marks[column] = '|';
        marked = column + 1;
        int at = column + length <= c->columns ? column : c->columns - length;
        if (at <= labelled && labelled > 0)
            break;
        memcpy(labels + at, text, (size_t)length);
        labelled = at + length;
    }
    print_name(c, c->gantt->unit);
    ms_print(c->out, "%.*s\n", labelled, labels);
    print_name(c, "");
    ms_print(c->out, "%.*s\n", marked, marks);
}

static void print_legend(const canvas *c)
{
    print_name(c, "");
    for (int k = 0; k < c->num_kinds; k++) {
        const ms_gantt_kind *kind = &c->gantt->kinds[k];
        bool coloured = c->gantt->colours && kind->colour != NULL;
        if (!c->used[k])
            continue;
        fputs(coloured ? kind->colour : "", c->out);
        fputc(kind->letter, c->out);
        ms_print(c->out, coloured ? "\033[0m %s, " : " %s, ", kind->name);
    }
    fputs(". idle\n", c->out);
}

/* ---- the whole ---- */

static void fit_columns(canvas *c)
{
    const ms_gantt *gantt = c->gantt;
    for (int i = 0; i < gantt->num_lanes; i++)
        c->name_width =
            (int)fmax(c->name_width, (double)ms_utf8_width(gantt->lane_names[i]));
    c->name_width = (int)fmax(c->name_width, (double)ms_utf8_width(gantt->unit));
    double most = fmax(gantt->width - c->name_width - 2, MIN_COLUMNS);
    double span = gantt->end - gantt->start;
    if (!(span > 0.0))
        span = 1.0;
    c->scale = most / span;
    c->columns = (int)fmin(most, fmax(1.0, ceil(span * c->scale - 1e-6)));
}

void ms_gantt_draw(FILE *out, ms_arena *arena, const ms_gantt *gantt)
{
    canvas c = {.out = out, .arena = arena, .gantt = gantt};
    while (c.num_kinds < MS_MAX_GANTT_KINDS && gantt->kinds[c.num_kinds].letter != '\0')
        c.num_kinds++;
    for (int k = 0; k < c.num_kinds; k++)
        c.colours[1 + k] = gantt->kinds[k].colour;
    fit_columns(&c);
    ms_arena_mark mark = ms_arena_save(arena);
    c.text = MS_NEW_ARRAY(arena, c.columns, char);
    c.styles = MS_NEW_ARRAY(arena, c.columns, unsigned char);
    print_axis(&c);
    const cell *cells = find_cells(&c);
    c.with_numbers = have_room_for_numbers(&c, cells);
    for (int lane = 0; lane < gantt->num_lanes; lane++)
        print_lane(&c, lane, &cells[lane * c.columns]);
    print_legend(&c);
    ms_arena_rewind(arena, mark);
}
