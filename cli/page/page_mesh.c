/* Section of a page: the mesh drawn, and the traffic of its axes. */
#include "cli/page/page_priv.h"

#include "cli/report/mesh_draw.h"
#include "sim/step/prediction_text.h"

#define MAX_DRAWN_RANKS 256

/* The part of a mesh that is drawn: its first ranks, as many as are readable. */
static ms_mesh drawn_part(const ms_mesh *mesh)
{
    ms_mesh part = *mesh;
    for (int i = 0; i < part.num_axes && part.num_ranks > MAX_DRAWN_RANKS; i++) {
        long others = part.num_ranks / part.axes[i].size;
        long most = MAX_DRAWN_RANKS / others;
        part.axes[i].size = most < 1 ? 1 : most;
        part.num_ranks = others * part.axes[i].size;
    }
    return part;
}

/* Colours ranks by the groups of the innermost axis above 1. */
static void colour(ms_arena *arena, const ms_mesh *part, ms_drawing *drawing)
{
    int axis = part->num_axes - 1;
    while (axis > 0 && part->axes[axis].size == 1)
        axis--;
    if (axis < 0 || part->axes[axis].size == 1)
        return;
    long *groups = MS_NEW_ARRAY(arena, part->num_ranks, long);
    for (long rank = 0; rank < part->num_ranks; rank++)
        groups[rank] = rank / part->axes[axis].size;
    drawing->group_of_rank = groups;
    drawing->coloured = part->axes[axis].name;
}

static void draw(const ms_html *html, const ms_page *page)
{
    ms_mesh mesh = ms_plan_groups_of(page->plan).mesh;
    ms_mesh part = drawn_part(&mesh);
    ms_drawing drawing = {.grid = ms_grid_make(&part),
                          .node_ranks = page->workload->cluster->gpus_per_node,
                          .page_class = "mesh",
                          .described_by = "c-mesh"};
    colour(page->arena, &part, &drawing);
    fputs("<figure>\n<div class=\"wide paper\" role=\"region\" tabindex=\"0\" "
          "aria-label=\"Drawing of the mesh\">\n",
          html->out);
    ms_mesh_draw_svg(html->out, page->arena, &drawing);
    ms_html_print(html, "</div>\n<figcaption id=\"c-mesh\">");
    if (part.num_ranks < mesh.num_ranks) {
        ms_html_print(
            html,
            "Ranks 0 to %ld of %ld; the others repeat this block along the outer "
            "axes. ",
            part.num_ranks - 1, mesh.num_ranks);
    } else {
        ms_html_print(html, mesh.num_ranks == 1 ? "%ld rank. " : "All %ld ranks. ",
                      mesh.num_ranks);
    }
    fputs("A numbered cell is a rank, a box a node, a bracket the extent of an "
          "axis.</figcaption>\n</figure>\n",
          html->out);
}

static void write_axes(const ms_html *html, const ms_page *page)
{
    ms_html_table table = MS_HTML_TABLE(
        html, "t-axes",
        ms_arena_printf(page->arena, "Traffic of one rank of pipeline rank %d in a step",
                        page->prediction->ending_rank),
        "lrrlrrrr", "axis", "size", "ranks a node", "network", "sent (GB)",
        "over NICs (GB)", "time (s)", "exposed (s)");
    for (int i = 0; i < page->prediction->num_axes; i++) {
        const ms_axis_prediction *axis = &page->prediction->axes[i];
        ms_html_cell(&table, "%s", axis->axis);
        ms_html_cell(&table, "%ld", axis->size);
        ms_html_cell(&table, "%ld", axis->ranks_per_node);
        ms_html_cell(&table, "%s", axis->tier);
        ms_html_cell(&table, "%.4g", axis->bytes / 1e9);
        ms_html_cell(&table, "%.4g", axis->nic_bytes / 1e9);
        ms_html_cell(&table, "%.4g", axis->seconds);
        ms_html_cell(&table, "%.4g", axis->exposed_s);
    }
    ms_html_table_end(&table);
}

void ms_page_mesh(const ms_html *html, const ms_page *page)
{
    draw(html, page);
    if (page->prediction->num_axes > 0)
        write_axes(html, page);
    else
        fputs("<p>No axis communicates.</p>\n", html->out);
}
