/* Draws a cluster as nested boxes: GPUs in innermost domains, these in the next level's,
 * each with a bar for its switches and a line for the links of each inner domain. */
#include "plots/topology_data.h"

#include <assert.h>
#include <string.h>

#define PAD         8.0  /* between a box and what is in it */
#define BAR         20.0 /* height of the bar of a level's switches */
#define LINKS       26.0 /* height of the links below a bar */
#define GAP         12.0 /* between boxes */
#define FOLD        74.0 /* width of the text of folded domains */
#define LETTER      6.2  /* mean width of a letter, pixels */
#define LEAST_SHOWN 2
#define MOST_SHOWN  8
#define MOST_CELLS  72 /* GPUs drawn one by one in a domain */

static const unsigned strong[MS_MAX_LEVELS] = {0x0072B2, 0xD55E00, 0x009E73, 0xCC79A7};
static const unsigned pale[MS_MAX_LEVELS] = {0xEAF4FB, 0xFBF0E8, 0xE9F5F0, 0xF9F0F6};

typedef struct painter {
    const ms_topology_plot *plot;
    ms_drawing drawing;
    long shown[MS_MAX_LEVELS]; /* inner domains drawn in a domain of each level */
} painter;

unsigned ms_topology_rgb(int level)
{
    return strong[level];
}

/* ---- shapes ---- */

static void add_box(painter *p, ms_drawn_box box)
{
    ms_drawing *d = &p->drawing;
    MS_MAKE_ROOM(p->plot->arena, d->boxes, d->num_boxes, d->box_capacity, 64);
    d->boxes[d->num_boxes++] = box;
}

static void add_framed(painter *p, ms_drawn_box box, int level)
{
    box.rgb = strong[level];
    add_box(p, box);
    add_box(p, (ms_drawn_box){box.x + 1.0, box.y + 1.0, box.width - 2.0, box.height - 2.0,
                              pale[level]});
}

static void add_line(painter *p, ms_drawn_line line)
{
    ms_drawing *d = &p->drawing;
    MS_MAKE_ROOM(p->plot->arena, d->lines, d->num_lines, d->line_capacity, 16);
    d->lines[d->num_lines++] = line;
}

static void add_text(painter *p, ms_drawn_text text)
{
    ms_drawing *d = &p->drawing;
    MS_MAKE_ROOM(p->plot->arena, d->texts, d->num_texts, d->text_capacity, 32);
    d->texts[d->num_texts++] = text;
}

/* ---- sizes ---- */

typedef struct grid {
    long columns, rows, cells;
    double cell; /* side of a GPU's square and the gap beside it, pixels */
} grid;

/* The squares of the GPUs in an innermost domain. */
static grid grid_of(const ms_topology_plot *plot)
{
    long gpus = plot->domain_gpus[0];
    grid g = {.cells = gpus < MOST_CELLS ? gpus : MOST_CELLS};
    g.columns = g.cells <= 4 ? g.cells : g.cells <= 16 ? 4 : 12;
    g.rows = (g.cells + g.columns - 1) / g.columns;
    g.cell = g.cells <= 16 ? 28.0 : 14.0;
    return g;
}

/* "leaf 50 GB/s" */
static const char *level_text(const ms_topology_plot *plot, int level)
{
    const ms_level *l = &plot->cluster->levels[level];
    return ms_arena_printf(plot->arena, "%s %.4g GB/s", l->name,
                           1e-9 * l->bandwidth_bytes_per_s);
}

static long children(const ms_topology_plot *plot, int level)
{
    long inner = plot->domain_gpus[level - 1];
    return (plot->domain_gpus[level] + inner - 1) / inner;
}

static bool is_folded(const painter *p, int level)
{
    return level == 0 ? p->plot->domain_gpus[0] > MOST_CELLS
                      : p->shown[level] < children(p->plot, level);
}

static double width_of(const painter *p, int level)
{
    double text = LETTER * (double)strlen(level_text(p->plot, level)) + 2.0 * PAD;
    double width = 2.0 * PAD;
    if (level == 0) {
        grid g = grid_of(p->plot);
        width += (double)g.columns * g.cell;
    } else {
        width += (double)p->shown[level] * (width_of(p, level - 1) + GAP) - GAP;
        width += is_folded(p, level) ? FOLD : 0.0;
    }
    return width > text ? width : text;
}

static double height_of(const painter *p, int level)
{
    if (level > 0)
        return 2.0 * PAD + BAR + LINKS + height_of(p, level - 1);
    grid g = grid_of(p->plot);
    return 2.5 * PAD + BAR + (double)g.rows * g.cell + (is_folded(p, 0) ? BAR : 0.0);
}

/* Chooses how many inner domains are drawn, so that the picture is not too wide: fewer at
 * the level that shows most. */
static void choose_shown(painter *p, double most_width)
{
    int top = p->plot->num_levels - 1;
    for (int level = 1; level <= top; level++) {
        long all = children(p->plot, level);
        p->shown[level] = all < MOST_SHOWN ? all : MOST_SHOWN;
    }
    while (width_of(p, top) > most_width) {
        int fullest = top;
        for (int level = 1; level <= top; level++)
            if (p->shown[level] > p->shown[fullest])
                fullest = level;
        if (top == 0 || p->shown[fullest] <= LEAST_SHOWN)
            return;
        p->shown[fullest]--;
    }
}

/* ---- drawing ---- */

static void draw_bar(painter *p, int level, double x, double y, double width)
{
    add_box(p, (ms_drawn_box){x + PAD, y + PAD, width - 2.0 * PAD, BAR, strong[level]});
    add_text(p, (ms_drawn_text){x + 0.5 * width, y + PAD + 0.5 * BAR,
                                level_text(p->plot, level), 0xFFFFFF});
}

static void draw_gpus(painter *p, double x, double y, long first)
{
    grid g = grid_of(p->plot);
    const double gap = g.cell > 20.0 ? 4.0 : 2.0;
    double left = x + 0.5 * (width_of(p, 0) - (double)g.columns * g.cell) + 0.5 * gap;
    double top = y + 1.5 * PAD + BAR;
    long here = p->plot->plan->gpus - first;
    for (long i = 0; i < g.cells && i < here; i++) {
        double cell_x = left + (double)(i % g.columns) * g.cell;
        long row = i / g.columns;
        double cell_y = top + (double)row * g.cell;
        add_box(p, (ms_drawn_box){cell_x, cell_y, g.cell - gap, g.cell - gap, 0x56B4E9});
        if (g.cell > 20.0 && first + i < 1000) {
            add_text(p, (ms_drawn_text){
                            cell_x + 0.5 * (g.cell - gap), cell_y + 0.5 * (g.cell - gap),
                            ms_arena_printf(p->plot->arena, "%ld", first + i), 0x222222});
        }
    }
    if (is_folded(p, 0)) {
        add_text(p, (ms_drawn_text){x + 0.5 * width_of(p, 0),
                                    top + (double)g.rows * g.cell + 0.4 * BAR,
                                    ms_arena_printf(p->plot->arena, "… %ld more",
                                                    p->plot->domain_gpus[0] - g.cells),
                                    0x333333});
    }
}

/* The links of an inner domain: "8 × 50 GB/s". */
static const char *links_text(const ms_topology_plot *plot, int level)
{
    const ms_level *l = &plot->cluster->levels[level];
    double links = (double)plot->domain_gpus[level - 1];
    double bytes_per_s =
        l->bandwidth_bytes_per_s / (level > 1 ? l->oversubscription : 1.0);
    if (level == 1 && l->nics_per_gpu > 0.0 && l->nics_per_gpu != 1.0) {
        links *= l->nics_per_gpu;
        bytes_per_s /= l->nics_per_gpu;
    }
    return ms_arena_printf(plot->arena, "%.4g × %.4g GB/s", links, 1e-9 * bytes_per_s);
}

static void draw_domain(painter *p, int level, double x, double y, long first)
{
    double width = width_of(p, level);
    add_framed(p, (ms_drawn_box){x, y, width, height_of(p, level), 0}, level);
    draw_bar(p, level, x, y, width);
    if (level == 0) {
        draw_gpus(p, x, y, first);
        return;
    }
    double inner = width_of(p, level - 1), at = x + PAD, below = y + PAD + BAR;
    for (long i = 0; i < p->shown[level]; i++) {
        long start = first + i * p->plot->domain_gpus[level - 1];
        if (start >= p->plot->plan->gpus)
            return;
        draw_domain(p, level - 1, at, below + LINKS, start);
        for (int k = -1; k <= 1; k++)
            add_line(p, (ms_drawn_line){at + 0.2 * inner + 4.0 * k, below, below + LINKS,
                                        strong[level]});
        add_text(p, (ms_drawn_text){at + 0.2 * inner + 12.0 + 0.5 * LETTER * 13.0,
                                    below + 0.5 * LINKS, links_text(p->plot, level),
                                    0x444444});
        at += inner + GAP;
    }
    if (is_folded(p, level)) {
        add_text(p,
                 (ms_drawn_text){
                     at + 0.5 * FOLD - PAD, below + LINKS + 0.5 * height_of(p, level - 1),
                     ms_arena_printf(p->plot->arena, "… %ld more",
                                     children(p->plot, level) - p->shown[level]),
                     0x333333});
    }
}

ms_drawing ms_topology_draw(const ms_topology_plot *plot, double x, double y,
                            double most_width)
{
    painter p = {.plot = plot};
    int top = plot->num_levels - 1;
    assert(top >= 0 && top < MS_MAX_LEVELS);
    choose_shown(&p, most_width);
    draw_domain(&p, top, x, y, 0);
    p.drawing.width = width_of(&p, top);
    p.drawing.height = height_of(&p, top);
    return p.drawing;
}
