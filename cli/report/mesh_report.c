#include "cli/report/mesh_report.h"

#include "base/print.h"
#include "base/table.h"
#include "base/utf8.h"
#include "topo/mesh_text.h"

#include <math.h>
#include <string.h>

#define LINE_WIDTH 100

/* ---- head ---- */

/* Size of the axis or derived axis with a role; 1 if there is none. */
static long size_of_role(const ms_mesh_view *view, ms_axis_role role)
{
    int i = ms_mesh_find_role(&view->mesh, view->roles, role);
    if (i >= 0)
        return view->mesh.axes[i].size;
    for (i = view->num_axes; i < view->num_axes + view->num_derived; i++)
        if (strcmp(view->axes[i].name, ms_axis_role_name(role)) == 0)
            return view->axes[i].layout.size;
    return 1;
}

static const char *experts_text(ms_arena *arena, const ms_mesh_view *view)
{
    static const char *const where[] = {
        "",
        "on one mesh: they take cp and the inner part of dp_shard, tp stays inside them",
        "on one mesh: they take cp, tp and the inner part of dp_shard",
        "on a mesh of their own: they take the innermost ranks"};
    return ms_arena_printf(
        arena, "ep %ld, etp %ld %s (--ep-generation %d)", size_of_role(view, MS_AXIS_EP),
        size_of_role(view, MS_AXIS_ETP), where[view->ep_generation], view->ep_generation);
}

static const char *cluster_text(ms_arena *arena, const ms_mesh_view *view)
{
    const ms_cluster *cluster = view->cluster;
    long ranks = view->mesh.num_ranks, node = view->node_ranks;
    long nodes = (ranks + node - 1) / node;
    long whole = ms_level_gpus(&cluster->levels[0]);
    const char *text =
        nodes == 1 ? ms_arena_printf(arena, "%s: inside one node", cluster->name)
        : whole > node
            ? ms_arena_printf(arena, "%s: %ld nodes of %ld GPUs, %ld ranks in each",
                              cluster->name, nodes, whole, node)
            : ms_arena_printf(arena, "%s: %ld nodes of %ld GPUs", cluster->name, nodes,
                              node);
    return ms_arena_printf(arena, "%s (a node is a domain of %s)", text,
                           cluster->levels[0].name);
}

void ms_mesh_print_head(FILE *out, ms_arena *arena, const ms_mesh_view *view)
{
    const ms_zoo_row *row = &view->strategy;
    ms_print(out, "mesh      %s = %ld rank%s\n", ms_mesh_text(arena, &view->mesh),
             view->mesh.num_ranks, view->mesh.num_ranks == 1 ? "" : "s");
    ms_print(out, "layout    %s, the last axis is fastest\n",
             ms_layout_text(arena, view->layout));
    if (row->row > 0)
        ms_print(out, "strategy  %s: row %d of the mesh zoo, %s\n", row->name, row->row,
                 ms_zoo_rows[row->row - 1].name);
    else
        ms_print(out, "strategy  %s: no row of the mesh zoo\n", row->name);
    if (view->ep_generation > 0)
        ms_print(out, "experts   %s\n", experts_text(arena, view));
    ms_print(out, "cluster   %s\n", cluster_text(arena, view));
}

/* ---- tables ---- */

static void add_place_cells(ms_table *table, const ms_axis_place *place)
{
    /* makes cells about NICs NaN for groups inside one node, which use none */
    double known = place->nodes > 1 ? 1.0 : (double)NAN;
    ms_table_cells(table, "%ld\t%ld\t%ld\t%s\t%.4g\t%.4g\t%.0f", place->num_groups,
                   place->ranks_per_node, place->nodes, place->tier, known * place->nics,
                   known * place->bytes_per_s / 1e9, known * (double)place->siblings);
}

static void print_table(FILE *out, ms_arena *arena, const ms_axis_view *axes, int num,
                        const char *title)
{
    ms_table *table =
        MS_TABLE(arena, "lrrlrrrlrrr", title, "size", "stride", "layout", "groups",
                 "ranks/node", "nodes", "tier", "NICs/group", "GB/s out", "siblings");
    for (int i = 0; i < num; i++) {
        const ms_axis_view *axis = &axes[i];
        ms_table_cells(table, "%s\t%ld\t%.0f\t%s", axis->name, axis->layout.size,
                       axis->stride < 0 ? (double)NAN : (double)axis->stride,
                       ms_layout_text(arena, axis->layout));
        add_place_cells(table, &axis->place);
    }
    fputc('\n', out);
    ms_table_print(table, out);
}

/* Width of the longest name, at least `least`. */
static int name_width(const ms_axis_view *axes, int num, int least)
{
    int width = least;
    for (int i = 0; i < num; i++)
        width = (int)strlen(axes[i].name) > width ? (int)strlen(axes[i].name) : width;
    return width;
}

static void print_made_of(FILE *out, const ms_axis_view *axes, int num)
{
    int width = name_width(axes, num, 8);
    fputc('\n', out);
    for (int i = 0; i < num; i++) {
        ms_print(out, "%-*s = %s: %s", width, axes[i].name, axes[i].made_of,
                 axes[i].used_for);
        if (axes[i].old_name != NULL)
            ms_print(out, " (also %s)", axes[i].old_name);
        fputc('\n', out);
    }
}

/* ---- traffic along an axis ---- */

static void print_use(FILE *out, const ms_axis_view *axis, int width)
{
    const struct {
        const char *title, *text;
    } lines[] = {{"splits", axis->use.splits},
                 {"forward", axis->use.forward},
                 {"backward", axis->use.backward},
                 {"each step", axis->use.step},
                 {"place", axis->use.place}};
    const char *name = axis->name;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        if (lines[i].text == NULL || lines[i].text[0] == '\0')
            continue;
        ms_print(out, "%-*s  %-9s  %s\n", width, name, lines[i].title, lines[i].text);
        name = "";
    }
}

static void print_uses(FILE *out, const ms_mesh_view *view)
{
    int num = view->num_axes + view->num_derived, width = name_width(view->axes, num, 0);
    fputs("\nWhat runs along them (axes of one rank left out)\n\n", out);
    for (int i = 0; i < num; i++) {
        const ms_axis_view *axis = &view->axes[i];
        if (axis->use.splits != NULL && axis->layout.size > 1)
            print_use(out, axis, width);
    }
}

/* ---- groups ---- */

static const char *group_text(ms_arena *arena, const long *ranks, long size, long most)
{
    char *text = ms_arena_strdup(arena, "{");
    for (long i = 0; i < size; i++) {
        if (size > most && i == most - 1) {
            text = ms_arena_printf(arena, "%s,...,%ld", text, ranks[size - 1]);
            break;
        }
        text = ms_arena_printf(arena, "%s%s%ld", text, i == 0 ? "" : ",", ranks[i]);
    }
    return ms_arena_printf(arena, "%s}", text);
}

/* Prints the groups of an axis from the first on, as many as fit on one line. */
static void print_first_groups(FILE *out, ms_arena *arena, const ms_axis_view *axis,
                               const long *ranks, size_t width)
{
    long size = axis->layout.size, num = axis->place.num_groups;
    const char *line = "";
    for (long g = 0; g < num; g++) {
        const char *group = group_text(arena, ranks + g * size, size, 9);
        if (g > 0 && strlen(line) + strlen(group) + 1 > width) {
            line = ms_arena_printf(arena, "%s ...", line);
            break;
        }
        line = ms_arena_printf(arena, "%s%s%s", line, g == 0 ? "" : " ", group);
    }
    ms_print(out, "%s\n", line);
}

static void print_elided(FILE *out, ms_ctx *cx, const ms_mesh_view *view)
{
    fputs("\nGroups (all of an axis: --groups AXIS, or --groups all)\n\n", out);
    int num = view->num_axes + view->num_derived;
    int width = name_width(view->axes, num, 12);
    for (int i = 0; i < num; i++) {
        const ms_axis_view *axis = &view->axes[i];
        ms_arena_mark mark = ms_arena_save(cx->arena);
        ms_print(out, "%-*s  ", width, axis->name);
        if (axis->layout.size == 1)
            fputs("each rank alone\n", out);
        else
            print_first_groups(out, cx->arena, axis, ms_axis_view_ranks(cx, view, axis),
                               LINE_WIDTH - 6 - (size_t)width);
        ms_arena_rewind(cx->arena, mark);
    }
}

/* Prints a group; long ones continue on lines of their own. */
static void print_group(FILE *out, const long *ranks, long size, size_t *column)
{
    char number[24];
    size_t length = 2;
    for (long i = 0; i < size; i++)
        length += (size_t)snprintf(number, sizeof number, "%ld", ranks[i]) + 1;
    if (*column > 0 && *column + length > LINE_WIDTH) {
        fputc('\n', out);
        *column = 0;
    }
    *column += (size_t)ms_print(out, *column == 0 ? "  {" : " {");
    for (long i = 0; i < size; i++) {
        if (length > LINE_WIDTH && *column > LINE_WIDTH - 12) {
            fputs("\n   ", out);
            *column = 3;
        }
        *column += (size_t)ms_print(out, "%ld%s", ranks[i], i == size - 1 ? "}" : ",");
    }
}

void ms_mesh_print_groups(FILE *out, ms_ctx *cx, const ms_mesh_view *view,
                          const ms_axis_view *axis)
{
    long size = axis->layout.size, num = axis->place.num_groups;
    ms_print(out, "\n%s  %s, %ld group%s of %ld\n", axis->name,
             ms_layout_text(cx->arena, axis->layout), num, num == 1 ? "" : "s", size);
    ms_arena_mark mark = ms_arena_save(cx->arena);
    const long *ranks = ms_axis_view_ranks(cx, view, axis);
    size_t column = 0;
    for (long g = 0; g < num; g++)
        print_group(out, ranks + g * size, size, &column);
    fputc('\n', out);
    ms_arena_rewind(cx->arena, mark);
}

void ms_mesh_print_axes(FILE *out, ms_ctx *cx, const ms_mesh_view *view)
{
    print_table(out, cx->arena, view->axes, view->num_axes, "axis");
    if (view->num_derived > 0) {
        print_table(out, cx->arena, view->axes + view->num_axes, view->num_derived,
                    "derived axis");
        print_made_of(out, view->axes + view->num_axes, view->num_derived);
    }
    fputs(
        "\nNICs/group: that one group can use in a node, ranks/node times those of a GPU. "
        "GB/s out: their listed\nrate. siblings: groups that leave a node at once and "
        "share its NICs. -: no group leaves its node.\n",
        out);
    print_uses(out, view);
    print_elided(out, cx, view);
}

/* ---- JSON ---- */

/* Writes a number, or null if it is not `known`. */
static void write_known(ms_jout *json, const char *key, bool known, double value)
{
    ms_jout_number_field(json, key, known ? value : (double)NAN);
}

static void write_place(ms_jout *json, const ms_axis_place *place)
{
    bool leaves = place->nodes > 1;
    ms_jout_number_field(json, "ranks_per_node", (double)place->ranks_per_node);
    ms_jout_number_field(json, "nodes", (double)place->nodes);
    ms_jout_text_field(json, "tier", place->tier);
    write_known(json, "nics_per_group", leaves, place->nics);
    write_known(json, "out_of_node_bytes_per_s", leaves, place->bytes_per_s);
    write_known(json, "sibling_groups", leaves, (double)place->siblings);
}

static void write_groups(ms_jout *json, ms_ctx *cx, const ms_mesh_view *view,
                         const ms_axis_view *axis)
{
    ms_arena_mark mark = ms_arena_save(cx->arena);
    const long *ranks = ms_axis_view_ranks(cx, view, axis);
    ms_jout_begin_array_field(json, "groups");
    for (long g = 0; g < axis->place.num_groups; g++)
        ms_jout_integers(json, ranks + g * axis->layout.size, axis->layout.size);
    ms_jout_end_array(json);
    ms_arena_rewind(cx->arena, mark);
}

static void write_axis(ms_jout *json, ms_ctx *cx, const ms_mesh_view *view,
                       const ms_axis_view *axis, const char *name)
{
    ms_jout_begin_object(json);
    ms_jout_text_field(json, "axis", name);
    if (axis->made_of == NULL) {
        ms_jout_text_field(json, "stands_for", axis->zoo_name);
    } else {
        ms_jout_text_field(json, "made_of", axis->made_of);
        ms_jout_text_field(json, "used_for", axis->used_for);
        if (name != axis->name)
            ms_jout_text_field(json, "same_as", axis->name);
    }
    ms_jout_number_field(json, "size", (double)axis->layout.size);
    write_known(json, "stride", axis->stride >= 0, (double)axis->stride);
    ms_jout_text_field(json, "layout", ms_layout_text(cx->arena, axis->layout));
    ms_jout_text_field(
        json, "coalesced",
        ms_layout_text(cx->arena, ms_layout_coalesce(cx->arena, axis->layout)));
    write_place(json, &axis->place);
    if (axis->use.splits != NULL) {
        ms_jout_text_field(json, "splits", axis->use.splits);
        ms_jout_text_field(json, "forward", axis->use.forward);
        ms_jout_text_field(json, "backward", axis->use.backward);
        ms_jout_text_field(json, "each_step", axis->use.step);
    }
    write_groups(json, cx, view, axis);
    ms_jout_end_object(json);
}

static void write_derived(ms_jout *json, ms_ctx *cx, const ms_mesh_view *view)
{
    ms_jout_begin_array_field(json, "derived");
    for (int i = 0; i < view->num_derived; i++) {
        const ms_axis_view *axis = &view->axes[view->num_axes + i];
        write_axis(json, cx, view, axis, axis->name);
        if (axis->old_name != NULL && ms_mesh_find(&view->mesh, axis->old_name) < 0)
            write_axis(json, cx, view, axis, axis->old_name);
    }
    ms_jout_end_array(json);
}

static void write_strategy(ms_jout *json, const ms_mesh_view *view)
{
    const ms_zoo_row *row = &view->strategy;
    ms_jout_begin_object_field(json, "strategy");
    ms_jout_text_field(json, "name", row->name);
    write_known(json, "row", row->row > 0, row->row);
    ms_jout_text_field(json, "row_name",
                       row->row > 0 ? ms_zoo_rows[row->row - 1].name : NULL);
    ms_jout_text_field(json, "why_this_order", row->order);
    ms_jout_end_object(json);
}

static void write_experts(ms_jout *json, const ms_mesh_view *view)
{
    ms_jout_begin_object_field(json, "experts");
    ms_jout_number_field(json, "ep", (double)size_of_role(view, MS_AXIS_EP));
    ms_jout_number_field(json, "etp", (double)size_of_role(view, MS_AXIS_ETP));
    write_known(json, "generation", view->ep_generation > 0, view->ep_generation);
    ms_jout_end_object(json);
}

void ms_mesh_write_fields(ms_jout *json, ms_ctx *cx, const ms_mesh_view *view)
{
    long node = view->node_ranks;
    ms_jout_text_field(json, "schema", "meshsim.mesh/1");
    ms_jout_number_field(json, "ranks", (double)view->mesh.num_ranks);
    ms_jout_text_field(json, "layout", ms_layout_text(cx->arena, view->layout));
    ms_jout_text_field(json, "cluster", view->cluster->name);
    long domain = view->cluster->levels[0].gpus_per_domain;
    ms_jout_number_field(json, "node_gpus", (double)(domain > 0 ? domain : node));
    long num_nodes = (view->mesh.num_ranks + node - 1) / node;
    ms_jout_number_field(json, "nodes", (double)num_nodes);
    write_strategy(json, view);
    write_experts(json, view);
    ms_jout_begin_array_field(json, "axes");
    for (int i = 0; i < view->num_axes; i++)
        write_axis(json, cx, view, &view->axes[i], view->axes[i].name);
    ms_jout_end_array(json);
    write_derived(json, cx, view);
}

/* ---- the zoo ---- */

void ms_zoo_print(FILE *out, ms_arena *arena)
{
    ms_table *table = MS_TABLE(arena, "rLL", "row", "strategy", "mesh, outer to inner");
    for (int i = 0; i < MS_NUM_ZOO_ROWS; i++)
        ms_table_cells(table, "%d\t%s\t%s", ms_zoo_rows[i].row, ms_zoo_rows[i].name,
                       ms_zoo_rows[i].mesh);
    ms_table_print(table, out);
    fputs(
        "\nnames     dp = ddp = batch = data, dp_shard = fsdp = shard, dp_replicate = "
        "replicate,\n          tp = model = tensor, sp = ulysses, cp = context, pp = pipe "
        "= pipeline = stage\nexample   meshsim mesh --mesh pp=2,dp_shard=2,cp=2,tp=2 --ep "
        "4\n",
        out);
}

void ms_zoo_write_json(FILE *out)
{
    ms_jout json = ms_jout_open(out);
    ms_jout_begin_object(&json);
    ms_jout_text_field(&json, "schema", "meshsim.mesh-zoo/1");
    ms_jout_begin_array_field(&json, "rows");
    for (int i = 0; i < MS_NUM_ZOO_ROWS; i++) {
        ms_jout_begin_object(&json);
        ms_jout_number_field(&json, "row", ms_zoo_rows[i].row);
        ms_jout_text_field(&json, "name", ms_zoo_rows[i].name);
        ms_jout_text_field(&json, "mesh", ms_zoo_rows[i].mesh);
        ms_jout_text_field(&json, "why_this_order", ms_zoo_rows[i].order);
        ms_jout_end_object(&json);
    }
    ms_jout_end_array(&json);
    ms_jout_end_object(&json);
    ms_jout_close(&json);
}
