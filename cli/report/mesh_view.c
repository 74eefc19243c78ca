#include "cli/report/mesh_report.h"

#include "cli/options/output.h"

#include <assert.h>
#include <string.h>

const long *ms_axis_view_ranks(ms_ctx *cx, const ms_mesh_view *view,
                               const ms_axis_view *axis)
{
    long *ranks;
    ms_status status = ms_layout_groups(cx, axis->layout, view->mesh.num_ranks, &ranks);
    assert(status == MS_OK); /* cannot fail: groups cover all ranks */
    (void)status;
    return ranks;
}

static void put_in_place(ms_ctx *cx, const ms_mesh_view *view, ms_axis_view *axis)
{
    ms_layout flat = ms_layout_coalesce(cx->arena, axis->layout);
    bool single = axis->layout.num_modes == 0;
    axis->stride = single ? axis->layout.stride : flat.num_modes == 0 ? flat.stride : -1;
    ms_arena_mark mark = ms_arena_save(cx->arena);
    const long *ranks = ms_axis_view_ranks(cx, view, axis);
    axis->place = ms_axis_place_of(cx->arena, axis->layout, ranks, view->mesh.num_ranks,
                                   view->cluster);
    ms_arena_rewind(cx->arena, mark);
}

static void view_axes(ms_ctx *cx, ms_mesh_view *view)
{
    ms_layout modes[MS_MAX_AXES];
    view->num_axes = view->mesh.num_axes;
    for (int i = 0; i < view->num_axes; i++) {
        const ms_mesh_axis *axis = &view->mesh.axes[i];
        modes[i] = ms_layout_make(MS_LEXICOGRAPHIC, axis->size, axis->stride);
        view->axes[i] = (ms_axis_view){
            .name = axis->name,
            .zoo_name = ms_axis_role_name(view->roles[i]),
            .layout = modes[i],
            .use =
                ms_axis_use_of(&view->mesh, view->roles, view->roles[i], &view->choices),
        };
        put_in_place(cx, view, &view->axes[i]);
    }
    view->layout = modes[0];
    if (view->num_axes > 1)
        (void)ms_layout_join(cx, modes, view->num_axes, &view->layout);
}

static void view_derived(ms_ctx *cx, const ms_derived *derived, ms_mesh_view *view)
{
    for (int i = 0; i < derived->num; i++) {
        const ms_derived_axis *from = &derived->axes[i];
        ms_axis_view *axis = &view->axes[view->num_axes + view->num_derived++];
        *axis = (ms_axis_view){.name = from->name,
                               .layout = from->layout,
                               .made_of = from->made_of,
                               .used_for = from->used_for,
                               .old_name = from->old_name};
        if (from->role != MS_AXIS_OTHER)
            axis->use =
                ms_axis_use_of(&view->mesh, view->roles, from->role, &view->choices);
        put_in_place(cx, view, axis);
    }
}

ms_status ms_mesh_view_make(ms_ctx *cx, const ms_mesh *mesh,
                            const ms_zoo_choices *choices, const ms_cluster *cluster,
                            ms_mesh_view *out)
{
    *out = (ms_mesh_view){.mesh = *mesh, .choices = *choices, .cluster = cluster};
    if (cluster->max_gpus > 0 && mesh->num_ranks > cluster->max_gpus) {
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                       "the mesh has %ld ranks, but cluster \"%s\" has at most %ld GPU%s",
                       mesh->num_ranks, cluster->name, cluster->max_gpus,
                       cluster->max_gpus == 1 ? "" : "s");
    }
    MS_TRY(ms_mesh_roles(cx, mesh, out->roles));
    ms_derived derived;
    MS_TRY(ms_mesh_derive(cx, mesh, out->roles, choices, &derived));
    out->ep_generation = derived.ep_generation;
    out->strategy = ms_mesh_strategy(cx->arena, mesh, out->roles, choices);
    out->node_ranks = ms_cluster_node_ranks(cluster, mesh->num_ranks);
    view_axes(cx, out);
    view_derived(cx, &derived, out);
    return MS_OK;
}

static bool is_called(const ms_axis_view *axis, const char *name, bool other_names)
{
    if (!other_names)
        return strcmp(axis->name, name) == 0;
    return (axis->zoo_name != NULL && strcmp(axis->zoo_name, name) == 0) ||
           (axis->old_name != NULL && strcmp(axis->old_name, name) == 0);
}

/* Notes that a derived axis has the name of a mesh axis, as fsdp does in fsdp=4,cp=2. */
static void note_namesake(ms_ctx *cx, const ms_mesh_view *view, const ms_axis_view *axis)
{
    for (int i = view->num_axes; i < view->num_axes + view->num_derived; i++) {
        const ms_axis_view *derived = &view->axes[i];
        if (derived == axis || strcmp(derived->name, axis->name) != 0 ||
            derived->layout.size == axis->layout.size || derived->old_name == NULL)
            continue;
        ms_note(cx, "%s is the axis of that name; %s, of size %ld, is called %s too",
                axis->name, derived->made_of, derived->layout.size, derived->old_name);
    }
}

ms_status ms_mesh_view_find(ms_ctx *cx, const ms_mesh_view *view, const char *name,
                            const char *option, const ms_axis_view **out)
{
    const char *names[MS_MAX_VIEWS];
    int num = view->num_axes + view->num_derived;
    for (int i = 0; i < num; i++)
        names[i] = view->axes[i].name;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < num; i++) {
            *out = &view->axes[i];
            if (!is_called(*out, name, pass == 1))
                continue;
            note_namesake(cx, view, *out);
            return MS_OK;
        }
    }
    ms_status status =
        ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                "%s names the axis \"%s\", which this mesh does not have", option, name);
    const char *nearest = ms_nearest(name, names, num);
    const char *all = "";
    for (int i = 0; i < num; i++)
        all = ms_arena_printf(cx->arena, "%s%s%s", all, i == 0 ? "" : ", ", names[i]);
    if (nearest != NULL)
        ms_hint(cx, "did you mean %s?", nearest);
    else
        ms_hint(cx, "its axes are %s", all);
    return status;
}
