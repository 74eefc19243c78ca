/* A mesh drawn as SVG: a cell for each rank, a box for each node, brackets for axes.
 * Equal input gives equal bytes. */
#include "cli/report/mesh_draw.h"
#include "topo/mesh_text.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#define CELL_HEIGHT   20.0
#define GAP           3.0
#define LEVEL_GAP     14.0 /* extra gap at each level of nesting */
#define NODE_GAP      9.0
#define NODE_LABEL    11.0 /* height of a node's label above its first row */
#define BRACKET       20.0 /* height of one axis's line of brackets */
#define MARGIN        16.0
#define HEAD          70.0
#define LETTER_WIDTH  6.3 /* width of a letter of 11 px text */
#define SMALL_WIDTH   5.2 /* width of a letter of 9 px text */
#define LEGEND_COLUMN 160.0
#define LEGEND_ROW    20.0
#define MAX_SIDE      16384.0 /* most pixels each way; librsvg and Cairo refuse 2x */

static const char *const palette[MS_NUM_GROUP_COLOURS] = {
    "#a6cee3", "#fdbf6f", "#b2df8a", "#cab2d6", "#fb9a99", "#ffed8b",
    "#8dd3c7", "#e5c494", "#d9d9d9", "#f4cae4", "#80b1d3", "#bc9fca"};

typedef struct picture {
    FILE *out;
    ms_arena *arena;
    const ms_drawing *drawing;
    const ms_grid *grid;
    double cell_width;
    double *x, *y; /* x[column] left edges, y[row] top edges; one more: the end */
    double width, height;
} picture;

static bool node_steps_at_row(const picture *p, long row)
{
    for (long column = 0; column < p->grid->across.length; column++)
        if (ms_drawing_node(p->drawing, row, column) !=
            ms_drawing_node(p->drawing, row - 1, column))
            return true;
    return false;
}

static void place_columns(picture *p)
{
    const ms_grid_side *side = &p->grid->across;
    double at = MARGIN + BRACKET * p->grid->down.num_axes;
    p->x = MS_NEW_ARRAY(p->arena, side->length + 1, double);
    for (long c = 0; c < side->length; c++) {
        if (c > 0)
            at += GAP + LEVEL_GAP * ms_grid_level(p->grid, side, c) +
                  (ms_drawing_node_ends(p->drawing, c) ? NODE_GAP : 0.0);
        p->x[c] = at;
        at += p->cell_width;
    }
    p->x[side->length] = at;
}

static void place_rows(picture *p)
{
    const ms_grid_side *side = &p->grid->down;
    double at = HEAD + BRACKET * p->grid->across.num_axes + NODE_LABEL;
    p->y = MS_NEW_ARRAY(p->arena, side->length + 1, double);
    for (long r = 0; r < side->length; r++) {
        if (r > 0)
            at += GAP + LEVEL_GAP * ms_grid_level(p->grid, side, r) +
                  (node_steps_at_row(p, r) ? NODE_GAP + NODE_LABEL : 0.0);
        p->y[r] = at;
        at += CELL_HEIGHT;
    }
    p->y[side->length] = at;
}

static void put_text(const picture *p, double x, double y, const char *style,
                     const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Writes a text unescaped: names of axes and numbers contain no XML markup. */
static void put_text(const picture *p, double x, double y, const char *style,
                     const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(p->out, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, style);
    vfprintf(p->out, format, args);
    fputs("</text>\n", p->out);
    va_end(args);
}

/* ---- nodes and ranks ---- */

typedef struct cells {
    long first_column, end_column, first_row, end_row, node;
} cells;

/* Whether in `row`, too, node run->node has exactly the columns of `run` here. */
static bool is_run(const picture *p, const cells *run, long row)
{
    for (long c = run->first_column; c < run->end_column; c++)
        if (ms_drawing_node(p->drawing, row, c) != run->node)
            return false;
    bool left = run->first_column > 0 &&
                ms_drawing_node(p->drawing, row, run->first_column - 1) == run->node;
    bool right = run->end_column < p->grid->across.length &&
                 ms_drawing_node(p->drawing, row, run->end_column) == run->node;
    return !left && !right;
}

static void draw_node_box(const picture *p, const cells *run)
{
    const double pad = 4.0;
    double x = p->x[run->first_column] - pad, y = p->y[run->first_row] - pad;
    double right = p->x[run->end_column - 1] + p->cell_width + pad;
    double bottom = p->y[run->end_row - 1] + CELL_HEIGHT + pad;
    fprintf(p->out,
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"4\" "
            "class=\"node\"/>\n",
            x, y - NODE_LABEL + 2.0, right - x, bottom - y + NODE_LABEL - 2.0);
    put_text(p, x + pad, y + 1.0, "class=\"small\"", "node%ld", run->node);
}

/* Draws a rectangle around the ranks of each node; or several if they form none. */
static void draw_nodes(const picture *p)
{
    for (long row = 0; row < p->grid->down.length; row++) {
        for (long c = 0; c < p->grid->across.length;) {
            cells run = {.first_column = c,
                         .end_column = c + 1,
                         .first_row = row,
                         .end_row = row + 1,
                         .node = ms_drawing_node(p->drawing, row, c)};
            while (run.end_column < p->grid->across.length &&
                   ms_drawing_node(p->drawing, row, run.end_column) == run.node)
                run.end_column++;
            c = run.end_column;
            if (row > 0 && is_run(p, &run, row - 1))
                continue; /* this rectangle began in the row above */
            while (run.end_row < p->grid->down.length && is_run(p, &run, run.end_row))
                run.end_row++;
            draw_node_box(p, &run);
        }
    }
}

static void draw_rank(const picture *p, long row, long column)
{
    long rank = ms_grid_rank(p->grid, row, column);
    const long *groups = p->drawing->group_of_rank;
    fprintf(p->out,
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"2\" "
            "fill=\"%s\" class=\"rank\"/>\n",
            p->x[column], p->y[row], p->cell_width, CELL_HEIGHT,
            groups == NULL ? "#ffffff" : palette[groups[rank] % MS_NUM_GROUP_COLOURS]);
    put_text(p, p->x[column] + p->cell_width / 2.0, p->y[row] + 14.0, "class=\"number\"",
             "%ld", rank);
}

/* ---- axes ---- */

/* Draws a bracket with `label` in its middle, shortened if needed: small type, then only
 * from '=' on. `across`: horizontal at y = `at`; otherwise vertical at x = `at`. */
static void draw_bracket(const picture *p, bool across, double at, const double ends[2],
                         const char *label)
{
    double middle = (ends[0] + ends[1]) / 2.0, length = ends[1] - ends[0];
    const char *style = "class=\"label\"";
    fputs("<path d=\"", p->out);
    if (across)
        fprintf(p->out, "M%.1f %.1fv-4H%.1fv4", ends[0], at, ends[1]);
    else
        fprintf(p->out, "M%.1f %.1fh-4V%.1fh4", at, ends[0], ends[1]);
    fputs("\" class=\"axis\"/>\n", p->out);
    if ((double)strlen(label) * LETTER_WIDTH > length)
        style = "class=\"label\" style=\"font-size:9px\"";
    if ((double)strlen(label) * SMALL_WIDTH > length)
        label = strchr(label, '=');
    if (label == NULL)
        return;
    if (across) {
        put_text(p, middle, at - 8.0, style, "%s", label);
        return;
    }
    const char *turned =
        ms_arena_printf(p->arena, "%s transform=\"translate(%.1f %.1f) rotate(-90)\"",
                        style, at - 8.0, middle);
    put_text(p, 0.0, 0.0, turned, "%s", label);
}

/* Draws a bracket over each run of columns (rows) with one coordinate on a side's i-th
 * axis; for i = 0 (innermost) over each run of all its coordinates. */
static void draw_axis(const picture *p, bool across, int i)
{
    const ms_grid_side *side = across ? &p->grid->across : &p->grid->down;
    const double *places = across ? p->x : p->y;
    double extent = across ? p->cell_width : CELL_HEIGHT;
    double base = across ? HEAD + BRACKET * (side->num_axes - i) - 4.0
                         : MARGIN + BRACKET * (side->num_axes - i) - 8.0;
    const char *name = p->grid->mesh->axes[side->axes[i]].name;
    for (long first = 0; first < side->length;) {
        long end = first + 1;
        int level = i == 0 ? 1 : i;
        while (end < side->length && ms_grid_level(p->grid, side, end) < level)
            end++;
        const char *label =
            i == 0 ? name
                   : ms_arena_printf(p->arena, "%s=%ld", name,
                                     ms_grid_coordinate(p->grid, side, i, first));
        draw_bracket(p, across, base,
                     (const double[2]){places[first], places[end - 1] + extent}, label);
        first = end;
    }
}

/* ---- legend and frame ---- */

static long num_groups(const picture *p)
{
    long most = 0;
    for (long rank = 0; rank < p->grid->mesh->num_ranks; rank++)
        most = p->drawing->group_of_rank[rank] > most ? p->drawing->group_of_rank[rank]
                                                      : most;
    return most + 1;
}

/* Text "ranks 0, 2, 4, ..." of a group. */
static const char *members(const picture *p, long group)
{
    const char *text = "ranks";
    int shown = 0;
    for (long rank = 0; rank < p->grid->mesh->num_ranks; rank++) {
        if (p->drawing->group_of_rank[rank] != group)
            continue;
        if (shown == 4)
            return ms_arena_printf(p->arena, "%s, ...", text);
        text = ms_arena_printf(p->arena, "%s%s %ld", text, shown == 0 ? "" : ",", rank);
        shown++;
    }
    return text;
}

static long legend_entries(const picture *p)
{
    if (p->drawing->group_of_rank == NULL)
        return 0;
    long groups = num_groups(p);
    return groups < MS_NUM_GROUP_COLOURS ? groups : MS_NUM_GROUP_COLOURS;
}

static long legend_columns(const picture *p)
{
    long columns = (long)((p->width - 2.0 * MARGIN) / LEGEND_COLUMN);
    return columns < 1 ? 1 : columns;
}

static void draw_legend(const picture *p)
{
    long entries = legend_entries(p), columns = legend_columns(p);
    if (entries == 0)
        return;
    double top = p->y[p->grid->down.length] + 34.0;
    long groups = num_groups(p);
    put_text(p, MARGIN, top, "class=\"label\" style=\"text-anchor:start\"",
             "groups of %s: %ld%s", p->drawing->coloured, groups,
             groups > entries ? ", in twelve colours that repeat; the first are" : "");
    for (long g = 0; g < entries; g++) {
        long row = g / columns;
        double x = MARGIN + LEGEND_COLUMN * (double)(g % columns);
        double y = top + LEGEND_ROW * (double)row + 8.0;
        fprintf(p->out,
                "<rect x=\"%.1f\" y=\"%.1f\" width=\"14\" height=\"14\" rx=\"2\" "
                "fill=\"%s\" class=\"rank\"/>\n",
                x, y, palette[g]);
        put_text(p, x + 20.0, y + 11.0, "class=\"label\" style=\"text-anchor:start\"",
                 "%s", members(p, g));
    }
}

const char *const ms_mesh_svg_styles[] = {
    "text { font-family: Helvetica, Arial, sans-serif; fill: #222 }",
    ".title { font-size: 14px; font-weight: bold }",
    ".label { font-size: 11px; text-anchor: middle }",
    ".small { font-size: 9px; fill: #555 }",
    ".number { font-size: 11px; text-anchor: middle }",
    ".node { fill: #f3f4f6; stroke: #374151; stroke-width: 1.2 }",
    ".rank { stroke: #9ca3af; stroke-width: 0.6 }",
    ".axis { fill: none; stroke: #6b7280; stroke-width: 1 }",
    NULL,
};

static void open_file(const picture *p)
{
    fputs("<style>\n", p->out);
    for (const char *const *style = ms_mesh_svg_styles; *style != NULL; style++)
        fprintf(p->out, "%s\n", *style);
    fputs("</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n", p->out);
}

/* Pictures above MAX_SIDE are scaled down; the viewBox keeps their units. */
static void open_svg(const picture *p)
{
    double side = p->width > p->height ? p->width : p->height;
    double scale = side > MAX_SIDE ? MAX_SIDE / side : 1.0;
    bool in_page = p->drawing->page_class != NULL;
    if (!in_page)
        fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", p->out);
    fprintf(p->out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
            "viewBox=\"0 0 %.0f %.0f\"",
            ceil(scale * p->width), ceil(scale * p->height), p->width, p->height);
    if (in_page)
        fprintf(p->out, " class=\"%s\" role=\"img\" aria-labelledby=\"%s\"",
                p->drawing->page_class, p->drawing->described_by);
    fputs(">\n", p->out);
    if (!in_page)
        open_file(p);
}

/* Names of axes from outer to inner: "pp, dp_shard, tp". */
static const char *side_text(const picture *p, const ms_grid_side *side)
{
    const char *text = "";
    for (int i = side->num_axes - 1; i >= 0; i--)
        text = ms_arena_printf(p->arena, "%s%s%s", text, text[0] == '\0' ? "" : ", ",
                               p->grid->mesh->axes[side->axes[i]].name);
    return text[0] == '\0' ? "nothing" : text;
}

static void draw_head(const picture *p)
{
    long ranks = p->grid->mesh->num_ranks, node = p->drawing->node_ranks;
    put_text(p, MARGIN, 24.0, "class=\"title\"", "%s",
             ms_mesh_text(p->arena, p->grid->mesh));
    put_text(p, MARGIN, 40.0, "class=\"label\" style=\"text-anchor:start\"",
             "%ld ranks, %ld node%s of %ld", ranks, (ranks + node - 1) / node,
             ranks > node ? "s" : "", node);
    put_text(p, MARGIN, 54.0, "class=\"label\" style=\"text-anchor:start\"",
             "across: %s; down: %s; each inside the one before",
             side_text(p, &p->grid->across), side_text(p, &p->grid->down));
}

static double widest(const picture *p)
{
    double text = 8.2 * (double)strlen(ms_mesh_text(p->arena, p->grid->mesh));
    double cells_end = p->x[p->grid->across.length];
    double least = text > 2.0 * LEGEND_COLUMN ? text : 2.0 * LEGEND_COLUMN;
    return 2.0 * MARGIN + (cells_end > least ? cells_end : least);
}

void ms_mesh_draw_svg(FILE *out, ms_arena *arena, const ms_drawing *drawing)
{
    picture p = {.out = out, .arena = arena, .drawing = drawing, .grid = &drawing->grid};
    p.cell_width = drawing->grid.mesh->num_ranks > 10000 ? 40.0 : 32.0;
    place_columns(&p);
    place_rows(&p);
    p.width = widest(&p);
    p.height = p.y[p.grid->down.length] + MARGIN;
    long entries = legend_entries(&p), columns = legend_columns(&p);
    long legend_rows = (entries + columns - 1) / columns;
    if (entries > 0)
        p.height += 34.0 + LEGEND_ROW * (double)legend_rows;
    open_svg(&p);
    draw_head(&p);
    draw_nodes(&p);
    for (int i = 0; i < p.grid->across.num_axes; i++)
        draw_axis(&p, true, i);
    for (int i = 0; i < p.grid->down.num_axes; i++)
        draw_axis(&p, false, i);
    for (long row = 0; row < p.grid->down.length; row++)
        for (long column = 0; column < p.grid->across.length; column++)
            draw_rank(&p, row, column);
    draw_legend(&p);
    fputs("</svg>\n", out);
}
