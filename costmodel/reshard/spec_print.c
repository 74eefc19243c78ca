/* Writes a spec in both notations, or a sentence why one cannot express it. */
#include "costmodel/reshard/spec.h"

const char *ms_spec_text(ms_arena *arena, const ms_mesh *mesh, const ms_spec *spec)
{
    const char *text = "";
    for (int i = 0; i < mesh->num_axes; i++) {
        char one[MS_PLACEMENT_TEXT];
        if (spec->at[i].kind != MS_REPLICATE)
            text =
                ms_arena_printf(arena, "%s%s%s@%s", text, text[0] == '\0' ? "" : " ",
                                ms_placement_text(spec->at[i], one), mesh->axes[i].name);
    }
    return text[0] == '\0' ? "R" : text;
}

/* Joins the names of axes: "dp, tp". */
static const char *names_of(ms_arena *arena, const ms_mesh *mesh,
                            const ms_axis_order *order, const char *quote,
                            const char *gap)
{
    const char *text = "";
    for (int i = 0; i < order->num_axes; i++)
        text = ms_arena_printf(arena, "%s%s%s%s%s", text, i == 0 ? "" : gap, quote,
                               mesh->axes[order->axes[i]].name, quote);
    return text;
}

/* ---- inexpressible specs ---- */

static const char *interleaved(ms_arena *arena, const ms_mesh *mesh, const ms_spec *spec,
                               char letter)
{
    for (int i = 0; i < mesh->num_axes; i++) {
        char one[MS_PLACEMENT_TEXT];
        if (ms_placement_splits(spec->at[i], letter) &&
            ms_placement_pieces(spec->at[i]) > 1) {
            return ms_arena_printf(
                arena,
                "%s@%s is no order of axes: its factor is not the product of the sizes of "
                "axes that split dim %c after it in the mesh",
                ms_placement_text(spec->at[i], one), mesh->axes[i].name, letter);
        }
    }
    return NULL;
}

/* Why a PartitionSpec cannot express a dim's splits; NULL: it can. Sets *order. */
static const char *unsaid_dim(ms_arena *arena, const ms_mesh *mesh,
                              const ms_global_tensor *tensor, const ms_spec *spec,
                              int dim, ms_axis_order *order)
{
    if (!ms_spec_order(mesh, spec, tensor->dims[dim], order))
        return interleaved(arena, mesh, spec, tensor->dims[dim]);
    if (order->num_axes < 2 || ms_spec_is_even(mesh, spec, tensor, dim))
        return NULL;
    long ranks = 1;
    for (int i = 0; i < order->num_axes; i++)
        ranks *= mesh->axes[order->axes[i]].size;
    return ms_arena_printf(arena,
                           "dim %c of %ld over (%s): a PartitionSpec pads to %ld equal "
                           "tiles, successive Shards leave other ranks short",
                           tensor->dims[dim], tensor->size[dim],
                           names_of(arena, mesh, order, "", ", "), ranks);
}

static const char *unsaid_partial(ms_arena *arena, const ms_mesh *mesh,
                                  const ms_spec *spec)
{
    for (int i = 0; i < mesh->num_axes; i++) {
        char one[MS_PLACEMENT_TEXT];
        if (ms_placement_is_partial(spec->at[i])) {
            return ms_arena_printf(
                arena,
                "a PartitionSpec has no word for %s@%s: values that are still to "
                "be reduced",
                ms_placement_text(spec->at[i], one), mesh->axes[i].name);
        }
    }
    return NULL;
}

const char *ms_spec_partition_text(ms_arena *arena, const ms_mesh *mesh,
                                   const ms_global_tensor *tensor, const ms_spec *spec,
                                   const char **why)
{
    const char *text = "P(";
    *why = unsaid_partial(arena, mesh, spec);
    for (int dim = 0; dim < tensor->num_dims && *why == NULL; dim++) {
        ms_axis_order order;
        *why = unsaid_dim(arena, mesh, tensor, spec, dim, &order);
        if (*why != NULL)
            break;
        const char *axes =
            order.num_axes == 0 ? "None" : names_of(arena, mesh, &order, "\"", ",");
        text = ms_arena_printf(arena, order.num_axes > 1 ? "%s%s(%s)" : "%s%s%s", text,
                               dim == 0 ? "" : ",", axes);
    }
    return *why != NULL ? NULL : ms_arena_printf(arena, "%s)", text);
}

const char *ms_spec_needs_strided(ms_arena *arena, const ms_mesh *mesh,
                                  const ms_spec *spec)
{
    for (int i = 0; i < mesh->num_axes; i++) {
        ms_placement at = spec->at[i];
        char one[MS_PLACEMENT_TEXT];
        ms_axis_order order;
        if (at.kind != MS_SHARD || ms_placement_pieces(at) == 1)
            continue;
        if (!ms_spec_order(mesh, spec, at.dim, &order))
            return interleaved(arena, mesh, spec, at.dim);
        return ms_arena_printf(arena,
                               "plain Shards split dim %c in the order of the mesh, not "
                               "in the order (%s): that takes %s@%s",
                               at.dim, names_of(arena, mesh, &order, "", ", "),
                               ms_placement_text(at, one), mesh->axes[i].name);
    }
    return NULL;
}
