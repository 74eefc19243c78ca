/* Draws a mesh as text: a line of ranks per row, below labels of outer axes and of nodes
 * where they change. */
#include "cli/report/mesh_draw.h"

#include "base/print.h"

#include <string.h>

/* ---- the grid ---- */

ms_grid ms_grid_make(const ms_mesh *mesh)
{
    ms_grid grid = {.mesh = mesh, .across = {.length = 1}, .down = {.length = 1}};
    bool across = true;
    for (int i = mesh->num_axes - 1; i >= 0; i--) {
        if (mesh->axes[i].size == 1)
            continue;
        ms_grid_side *side = across ? &grid.across : &grid.down;
        side->axes[side->num_axes++] = i;
        side->length *= mesh->axes[i].size;
        across = !across;
    }
    return grid;
}

static long rank_of_place(const ms_grid *grid, const ms_grid_side *side, long place)
{
    long rank = 0;
    for (int i = 0; i < side->num_axes; i++) {
        const ms_mesh_axis *axis = &grid->mesh->axes[side->axes[i]];
        rank += place % axis->size * axis->stride;
        place /= axis->size;
    }
    return rank;
}

long ms_grid_rank(const ms_grid *grid, long row, long column)
{
    return rank_of_place(grid, &grid->down, row) +
           rank_of_place(grid, &grid->across, column);
}

int ms_grid_level(const ms_grid *grid, const ms_grid_side *side, long place)
{
    int level = 0;
    for (int i = 0; i + 1 < side->num_axes; i++) {
        long size = grid->mesh->axes[side->axes[i]].size;
        if (place % size != 0)
            break;
        place /= size;
        level++;
    }
    return level;
}

long ms_grid_coordinate(const ms_grid *grid, const ms_grid_side *side, int i, long place)
{
    for (int k = 0; k < i; k++)
        place /= grid->mesh->axes[side->axes[k]].size;
    return place % grid->mesh->axes[side->axes[i]].size;
}

long ms_drawing_node(const ms_drawing *drawing, long row, long column)
{
    return ms_grid_rank(&drawing->grid, row, column) / drawing->node_ranks;
}

bool ms_drawing_node_ends(const ms_drawing *drawing, long column)
{
    for (long row = 0; row < drawing->grid.down.length; row++)
        if (ms_drawing_node(drawing, row, column) !=
            ms_drawing_node(drawing, row, column - 1))
            return true;
    return false;
}

static void write_side(ms_jout *json, const ms_grid *grid, const ms_grid_side *side,
                       const char *key)
{
    ms_jout_begin_array_field(json, key);
    for (int i = side->num_axes - 1; i >= 0; i--)
        ms_jout_text(json, grid->mesh->axes[side->axes[i]].name);
    ms_jout_end_array(json);
}

void ms_grid_write_json(ms_jout *json, ms_arena *arena, const ms_grid *grid)
{
    ms_jout_begin_object(json);
    write_side(json, grid, &grid->across, "across");
    write_side(json, grid, &grid->down, "down");
    ms_jout_begin_array_field(json, "rows");
    ms_arena_mark mark = ms_arena_save(arena);
    long *row = MS_NEW_ARRAY(arena, grid->across.length, long);
    for (long r = 0; r < grid->down.length; r++) {
        for (long c = 0; c < grid->across.length; c++)
            row[c] = ms_grid_rank(grid, r, c);
        ms_jout_integers(json, row, grid->across.length);
    }
    ms_arena_rewind(arena, mark);
    ms_jout_end_array(json);
    ms_jout_end_object(json);
}

/* ---- lines ---- */

typedef struct canvas {
    FILE *out;
    ms_arena *arena;
    const ms_drawing *drawing;
    const ms_grid *grid;
    int digits;         /* digits of the largest rank number */
    long first, end;    /* columns of the panel: the first, and one past the last */
    const long *offset; /* [column - first] position in the line where a column begins */
} canvas;

static bool shows_node_ends(const canvas *c)
{
    for (long column = c->first + 1; column < c->end; column++)
        if (ms_grid_level(c->grid, &c->grid->across, column) == 0 &&
            ms_drawing_node_ends(c->drawing, column))
            return true;
    return false;
}

static long *place_columns(const canvas *c, long *width)
{
    long *offset = MS_NEW_ARRAY(c->arena, c->end - c->first + 1, long);
    long at = 0;
    for (long column = c->first; column < c->end; column++) {
        if (column > c->first) {
            int level = ms_grid_level(c->grid, &c->grid->across, column);
            /* gap between columns: 1; 3 where a node ends; wider between blocks of an
             * axis */
            if (level == 0)
                at += ms_drawing_node_ends(c->drawing, column) ? 3 : 1;
            else
                at += level + 2;
        }
        offset[column - c->first] = at;
        at += c->digits;
    }
    offset[c->end - c->first] = at;
    *width = at;
    return offset;
}

static const char *colour_of(const canvas *c, long rank)
{
    static const char *const colours[MS_NUM_GROUP_COLOURS] = {
        "\033[30;46m",  "\033[30;43m",  "\033[30;42m",  "\033[30;45m",
        "\033[97;44m",  "\033[97;41m",  "\033[30;106m", "\033[30;103m",
        "\033[30;102m", "\033[30;105m", "\033[30;104m", "\033[30;101m"};
    return colours[c->drawing->group_of_rank[rank] % MS_NUM_GROUP_COLOURS];
}

static void print_separator(const canvas *c, long row, long column, long blanks)
{
    static const char bars[] = "|||";
    int level = ms_grid_level(c->grid, &c->grid->across, column);
    if (level > 0) {
        ms_print(c->out, " %.*s ", level, bars);
        return;
    }
    bool ends = blanks == 3 && ms_drawing_node(c->drawing, row, column) !=
                                   ms_drawing_node(c->drawing, row, column - 1);
    ms_print(c->out, "%*s", (int)blanks, ends ? ": " : "");
}

static void print_row(const canvas *c, long row)
{
    for (long column = c->first; column < c->end; column++) {
        long i = column - c->first, rank = ms_grid_rank(c->grid, row, column);
        if (i > 0)
            print_separator(c, row, column, c->offset[i] - c->offset[i - 1] - c->digits);
        if (c->drawing->group_of_rank == NULL)
            ms_print(c->out, "%*ld", c->digits, rank);
        else {
            fputs(colour_of(c, rank), c->out);
            ms_print(c->out, "%*ld\033[0m", c->digits, rank);
        }
    }
    fputc('\n', c->out);
}

/* A line of labels above columns; put_label refuses one that would touch another. */
typedef struct label_line {
    char *text;
    long length, used;
} label_line;

static label_line label_line_make(const canvas *c)
{
    long length = c->offset[c->end - c->first] + 64;
    label_line line = {ms_arena_alloc(c->arena, (size_t)length + 1), length, 0};
    memset(line.text, ' ', (size_t)length);
    return line;
}

static bool put_label(label_line *line, long at, long limit, const char *label)
{
    long length = (long)strlen(label);
    if ((line->used > 0 && at <= line->used) || at + length > limit ||
        at + length > line->length)
        return false;
    memcpy(line->text + at, label, (size_t)length);
    line->used = at + length;
    return true;
}

static void print_labels(const canvas *c, const label_line *line)
{
    if (line->used > 0)
        ms_print(c->out, "%.*s\n", (int)line->used, line->text);
}

/* Position up to which a label of the columns before `end` may reach: where column `end`
 * starts, or the end of the line. */
static long stretch_limit(const canvas *c, long end)
{
    long width = c->offset[c->end - c->first];
    if (end < c->end)
        return c->offset[end - c->first] - 1;
    return width > c->drawing->width ? width : c->drawing->width;
}

/* Prints labels "dp_shard=0   dp_shard=1" of an axis across, if all of them fit. */
static void print_column_labels(const canvas *c, int i)
{
    const ms_grid_side *side = &c->grid->across;
    label_line line = label_line_make(c);
    const char *name = c->grid->mesh->axes[side->axes[i]].name;
    for (long column = c->first; column < c->end;) {
        long end = column + 1;
        while (end < c->end && ms_grid_level(c->grid, side, end) < i)
            end++;
        const char *label = ms_arena_printf(c->arena, "%s=%ld", name,
                                            ms_grid_coordinate(c->grid, side, i, column));
        if (!put_label(&line, c->offset[column - c->first], stretch_limit(c, end), label))
            return;
        column = end;
    }
    print_labels(c, &line);
}

static bool same_nodes(const canvas *c, long row, long other)
{
    for (long column = c->first; column < c->end; column++)
        if (ms_drawing_node(c->drawing, row, column) !=
            ms_drawing_node(c->drawing, other, column))
            return false;
    return true;
}

/* Growth of node numbers from a row to the next; 0 if not the same in all columns. */
static long node_step(const canvas *c, long row)
{
    long step = ms_drawing_node(c->drawing, row + 1, c->first) -
                ms_drawing_node(c->drawing, row, c->first);
    for (long column = c->first; column < c->end; column++) {
        if (ms_drawing_node(c->drawing, row + 1, column) -
                ms_drawing_node(c->drawing, row, column) !=
            step)
            return 0;
    }
    return step;
}

/* End of the rows that share a line of node labels: up to the next separator, rows on the
 * same nodes, or else rows whose node numbers grow evenly from row to row. */
static long node_rows(const canvas *c, long row)
{
    const ms_grid_side *side = &c->grid->down;
    long end = row + 1;
    while (end < side->length && same_nodes(c, row, end) &&
           ms_grid_level(c->grid, side, end) == 0)
        end++;
    if (end > row + 1 || end == side->length || ms_grid_level(c->grid, side, end) > 0)
        return end;
    long step = node_step(c, row);
    while (step > 0 && end < side->length && ms_grid_level(c->grid, side, end) == 0 &&
           node_step(c, end - 1) == step)
        end++;
    return end;
}

/* Label "node3"; for rows on several nodes "node0,4", "node0..15" or "node0,4..28". */
static const char *node_label(const canvas *c, long row, long end, long column)
{
    long first = ms_drawing_node(c->drawing, row, column),
         last = ms_drawing_node(c->drawing, end - 1, column);
    if (first == last)
        return ms_arena_printf(c->arena, "node%ld", first);
    long next = ms_drawing_node(c->drawing, row + 1, column);
    if (next == last)
        return ms_arena_printf(c->arena, "node%ld,%ld", first, last);
    if (next == first + 1)
        return ms_arena_printf(c->arena, "node%ld..%ld", first, last);
    return ms_arena_printf(c->arena, "node%ld,%ld..%ld", first, next, last);
}

static void print_node_labels(const canvas *c, long row, long end)
{
    label_line line = label_line_make(c);
    for (long column = c->first; column < c->end;) {
        long next = column + 1, node = ms_drawing_node(c->drawing, row, column);
        while (next < c->end && ms_drawing_node(c->drawing, row, next) == node)
            next++;
        long at = c->offset[column - c->first], limit = stretch_limit(c, next);
        if (!put_label(&line, at, limit, node_label(c, row, end, column)))
            (void)put_label(&line, at, limit, ms_arena_printf(c->arena, "n%ld", node));
        column = next;
    }
    print_labels(c, &line);
}

/* Prints the separator line between two rows, with crosses at column separators. */
static void print_cut(const canvas *c, int level)
{
    char stroke = "-=#"[level - 1];
    long length = c->offset[c->end - c->first];
    char *line = ms_arena_alloc(c->arena, (size_t)length + 1);
    memset(line, stroke, (size_t)length);
    for (long column = c->first + 1; column < c->end; column++) {
        int bars = ms_grid_level(c->grid, &c->grid->across, column);
        for (int i = 0; i < bars; i++)
            line[c->offset[column - c->first] - 2 - i] = '+';
    }
    ms_print(c->out, "%s\n", line);
}

static void print_row_labels(const canvas *c, long row)
{
    const ms_grid_side *side = &c->grid->down;
    for (int i = side->num_axes - 1; i >= 1; i--)
        ms_print(c->out, i > 1 ? "%s=%ld " : "%s=%ld\n",
                 c->grid->mesh->axes[side->axes[i]].name,
                 ms_grid_coordinate(c->grid, side, i, row));
}

static void print_panel(const canvas *c)
{
    const ms_grid_side *side = &c->grid->down;
    bool one_node = c->grid->mesh->num_ranks <= c->drawing->node_ranks;
    long labelled = 0;
    fputc('\n', c->out);
    for (int i = c->grid->across.num_axes - 1; i >= 1; i--)
        print_column_labels(c, i);
    for (long row = 0; row < side->length; row++) {
        int level = ms_grid_level(c->grid, side, row);
        if (level > 0 && row > 0)
            print_cut(c, level);
        if (level > 0)
            print_row_labels(c, row);
        if (row == labelled) {
            labelled = node_rows(c, row);
            if (!one_node)
                print_node_labels(c, row, labelled);
        }
        print_row(c, row);
    }
}

/* ---- panels ---- */

/* Columns (1..most) of a panel narrower than the innermost axis: its largest divisor, of
 * whole nodes if possible; if at most half of `most`, instead `most`, in whole nodes. */
static long part_of_axis(const canvas *whole, long most)
{
    const ms_grid_side *side = &whole->grid->across;
    long size = whole->grid->mesh->axes[side->axes[0]].size;
    long node = whole->drawing->node_ranks, best = 1;
    for (long part = 1; part <= most; part++)
        if (size % part == 0 && (part % node == 0 || best % node != 0))
            best = part;
    if (2 * best > most)
        return best;
    return most > node ? most / node * node : most;
}

/* Whether all panels of this many columns fit the width; gaps at node ends vary. */
static bool panels_fit(const canvas *whole, long columns)
{
    long length = whole->grid->across.length, width;
    canvas c = *whole;
    for (c.first = 0; c.first < length; c.first += columns) {
        c.end = c.first + columns < length ? c.first + columns : length;
        ms_arena_mark mark = ms_arena_save(c.arena);
        (void)place_columns(&c, &width);
        ms_arena_rewind(c.arena, mark);
        if (width > whole->drawing->width)
            return false;
    }
    return true;
}

/* Columns of a panel: the most that fit the width and are whole blocks of inner axes. */
static long panel_columns(const canvas *whole)
{
    const ms_grid_side *side = &whole->grid->across;
    long best = 1, unit = 1;
    for (int i = 0; i <= side->num_axes; i++) {
        for (long times = 1; unit * times <= side->length; times++) {
            if (!panels_fit(whole, unit * times))
                break;
            best = unit * times;
        }
        if (best < unit || i == side->num_axes)
            break;
        unit *= whole->grid->mesh->axes[side->axes[i]].size;
    }
    if (side->num_axes > 0 && best < whole->grid->mesh->axes[side->axes[0]].size)
        return part_of_axis(whole, best);
    return best;
}

/* Prints the names of the axes across or down, outermost first, each but the last with
 * the separator that marks its steps in the drawing. */
static void print_side(FILE *out, const ms_grid *grid, const ms_grid_side *side,
                       const char *title, const char *const strokes[MS_MAX_NESTING])
{
    if (side->num_axes == 0)
        return;
    ms_print(out, "%s", title);
    for (int i = side->num_axes - 1; i >= 0; i--) {
        ms_print(out, "%s", grid->mesh->axes[side->axes[i]].name);
        if (i > 0)
            ms_print(out, " (%s), ", strokes[i]);
    }
    fputc('\n', out);
}

static void print_legend(const canvas *c)
{
    static const char *const bars[] = {"", "|", "||", "|||"};
    static const char *const cuts[] = {"", "---", "===", "###"};
    const ms_mesh *mesh = c->grid->mesh;
    fputs("mesh      ", c->out);
    for (int i = 0; i < mesh->num_axes; i++)
        ms_print(c->out, "%s%s=%ld", i == 0 ? "" : ",", mesh->axes[i].name,
                 mesh->axes[i].size);
    fputc('\n', c->out);
    print_side(c->out, c->grid, &c->grid->across, "across    ", bars);
    print_side(c->out, c->grid, &c->grid->down, "down      ", cuts);
    if (mesh->num_ranks > c->drawing->node_ranks)
        ms_print(c->out, "nodes     named where they begin, %ld-GPU each%s\n",
                 c->drawing->node_ranks,
                 shows_node_ends(c) ? "; \":\" ends one inside a row" : "");
    if (c->drawing->group_of_rank != NULL)
        ms_print(c->out, "colours   groups of %s; colours repeat after twelve\n",
                 c->drawing->coloured);
}

void ms_mesh_draw(FILE *out, ms_arena *arena, const ms_drawing *drawing)
{
    const ms_grid *grid = &drawing->grid;
    canvas c = {.out = out,
                .arena = arena,
                .drawing = drawing,
                .grid = grid,
                .digits = snprintf(NULL, 0, "%ld", grid->mesh->num_ranks - 1),
                .end = grid->across.length};
    print_legend(&c);
    long columns = panel_columns(&c), width;
    for (c.first = 0; c.first < grid->across.length; c.first += columns) {
        c.end = c.first + columns;
        if (c.end > grid->across.length)
            c.end = grid->across.length;
        c.offset = place_columns(&c, &width);
        print_panel(&c);
    }
}
