/* A plan of collectives as lines and as JSON. */
#include "base/units.h"
#include "costmodel/redistribute.h"

static void print_axes(FILE *out, const ms_mesh *mesh, ms_axis_set axes)
{
    const char *gap = "";
    for (int i = 0; i < mesh->num_axes; i++) {
        if (axes >> i & 1) {
            fprintf(out, "%s%s", gap, mesh->axes[i].name);
            gap = " x ";
        }
    }
}

/* The placements on the axes that change; "R" when they replicate. */
static void print_placements(FILE *out, const ms_mesh *mesh, ms_axis_set axes,
                             const ms_spec *spec)
{
    const char *gap = "";
    char text[MS_PLACEMENT_TEXT];
    for (int i = 0; i < mesh->num_axes; i++) {
        if ((axes >> i & 1) && spec->at[i].kind != MS_REPLICATE) {
            fprintf(out, "%s%s@%s", gap, ms_placement_text(spec->at[i], text),
                    mesh->axes[i].name);
            gap = " ";
        }
    }
    if (gap[0] == '\0')
        fputc('R', out);
}

static void print_step(FILE *out, const ms_mesh *mesh, const ms_cluster *cluster,
                       const ms_redistribute_step *step)
{
    char bytes[32], seconds[32];
    double size = ms_change_is_local(step->change) ? step->to_bytes : step->size_bytes;
    fprintf(out, "%s over ", ms_change_names[step->change]);
    print_axes(out, mesh, step->axes);
    fprintf(out, " (");
    if (ms_change_is_local(step->change))
        fprintf(out, "local, ");
    else if (cluster != NULL)
        fprintf(out, "%s, ", ms_axis_set_tier(mesh, cluster, step->axes));
    fprintf(out, "%ld ranks, %s): ", ms_axis_set_ranks(mesh, step->axes),
            ms_format_quantity(bytes, sizeof bytes, size, MS_UNIT_BYTES));
    print_placements(out, mesh, step->axes, &step->from);
    fprintf(out, " -> ");
    print_placements(out, mesh, step->axes, &step->to);
    if (ms_change_is_local(step->change))
        fprintf(out, "\n");
    else
        fprintf(
            out, ", %s\n",
            ms_format_quantity(seconds, sizeof seconds, step->seconds, MS_UNIT_SECONDS));
}

void ms_redistribution_print(FILE *out, const ms_mesh *mesh, const ms_cluster *cluster,
                             const ms_redistribution *plan)
{
    for (int i = 0; i < plan->num_steps; i++)
        print_step(out, mesh, cluster, &plan->steps[i]);
}

static void write_placements(ms_jout *out, const char *key, const ms_mesh *mesh,
                             const ms_spec *spec)
{
    ms_arena *arena = ms_arena_open();
    ms_jout_text_field(out, key, ms_spec_text(arena, mesh, spec));
    ms_arena_close(arena);
}

static void write_step(ms_jout *out, const ms_mesh *mesh, const ms_cluster *cluster,
                       const ms_redistribute_step *step)
{
    bool is_local = ms_change_is_local(step->change);
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "change", ms_change_names[step->change]);
    ms_jout_key(out, "axes");
    ms_jout_begin_array(out);
    for (int i = 0; i < mesh->num_axes; i++)
        if (step->axes >> i & 1)
            ms_jout_text(out, mesh->axes[i].name);
    ms_jout_end_array(out);
    ms_jout_number_field(out, "ranks", (double)ms_axis_set_ranks(mesh, step->axes));
    ms_jout_text_field(
        out, "tier",
        is_local || cluster == NULL ? NULL : ms_axis_set_tier(mesh, cluster, step->axes));
    write_placements(out, "from", mesh, &step->from);
    write_placements(out, "to", mesh, &step->to);
    ms_jout_number_field(out, "size_bytes", step->size_bytes);
    ms_jout_number_field(out, "local_before_bytes", step->from_bytes);
    ms_jout_number_field(out, "local_after_bytes", step->to_bytes);
    ms_jout_number_field(out, "time_s", step->seconds);
    ms_jout_end_object(out);
}

void ms_redistribution_write_json(ms_jout *out, const ms_mesh *mesh,
                                  const ms_cluster *cluster,
                                  const ms_redistribution *plan)
{
    ms_jout_begin_object(out);
    ms_jout_number_field(out, "total_s", plan->seconds);
    ms_jout_bool_field(out, "optimal", plan->is_optimal);
    ms_jout_key(out, "steps");
    ms_jout_begin_array(out);
    for (int i = 0; i < plan->num_steps; i++)
        write_step(out, mesh, cluster, &plan->steps[i]);
    ms_jout_end_array(out);
    ms_jout_end_object(out);
}
