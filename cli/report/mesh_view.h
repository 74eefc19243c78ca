/* Everything that meshsim mesh shows of a mesh: its axes and derived axes with their
 * layouts and places on a cluster. */
#ifndef MS_CLI_REPORT_MESH_VIEW_H
#define MS_CLI_REPORT_MESH_VIEW_H

#include "topo/mesh_derive.h"
#include "topo/mesh_place.h"

typedef struct ms_axis_view {
    const char *name;
    /* what the name stands for, "tp"; NULL: no name of the zoo, or a derived axis */
    const char *zoo_name;
    long stride; /* of the only mode; -1: there are several */
    ms_layout layout;
    ms_axis_place place;
    ms_axis_use use;
    const char *made_of; /* derived axes; NULL otherwise */
    const char *used_for, *old_name;
} ms_axis_view;

#define MS_MAX_VIEWS (MS_MAX_AXES + MS_MAX_DERIVED)

typedef struct ms_mesh_view {
    ms_mesh mesh;
    ms_axis_role roles[MS_MAX_AXES];
    ms_zoo_choices choices;
    ms_zoo_row strategy;
    ms_layout layout; /* of the whole mesh, a mode for each axis */
    const ms_cluster *cluster;
    long node_ranks;
    int ep_generation;         /* of the derived axis ep; 0: there is none */
    int num_axes, num_derived; /* axes come first */
    ms_axis_view axes[MS_MAX_VIEWS];
} ms_mesh_view;

/* Names of the zoo derive axes, others do not. Errors: those of ms_mesh_roles and
 * ms_mesh_derive; MS_EINPUT when the cluster has too few GPUs. */
ms_status ms_mesh_view_make(ms_ctx *cx, const ms_mesh *mesh,
                            const ms_zoo_choices *choices, const ms_cluster *cluster,
                            ms_mesh_view *out);

/* The axis or derived axis of a name, as written or as the zoo has it; MS_EINPUT with the
 * nearest name, for the option that asks. */
ms_status ms_mesh_view_find(ms_ctx *cx, const ms_mesh_view *view, const char *name,
                            const char *option, const ms_axis_view **out);

/* Its groups one after the other, num_ranks numbers in the arena. */
const long *ms_axis_view_ranks(ms_ctx *cx, const ms_mesh_view *view,
                               const ms_axis_view *axis);

#endif
