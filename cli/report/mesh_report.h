/* A mesh, its axes and their places on a cluster, as text and as JSON. */
#ifndef MS_CLI_REPORT_MESH_REPORT_H
#define MS_CLI_REPORT_MESH_REPORT_H

#include "base/json.h"
#include "topo/mesh_derive.h"
#include "topo/mesh_place.h"

/* ---- the view: axes and derived axes with their layouts and places on a cluster ---- */

typedef struct ms_axis_view {
    const char *name;
    /* the axis's name in the mesh zoo ("tp"); NULL if it has none or is a derived axis */
    const char *zoo_name;
    long stride; /* stride between ranks; -1 if its layout has several */
    ms_layout layout;
    ms_axis_place place;
    ms_axis_use use;
    const char *made_of; /* text: the axes that form a derived axis; NULL: a mesh axis */
    const char *used_for, *old_name;
} ms_axis_view;

#define MS_MAX_VIEWS (MS_MAX_AXES + MS_MAX_DERIVED)

typedef struct ms_mesh_view {
    ms_mesh mesh;
    ms_axis_role roles[MS_MAX_AXES];
    ms_zoo_choices choices;
    ms_zoo_row strategy;
    ms_layout layout; /* layout of the whole mesh, one mode per axis */
    const ms_cluster *cluster;
    long node_ranks;
    int ep_generation;         /* how axis ep is placed (--ep-generation 1..3); 0: none */
    int num_axes, num_derived; /* mesh axes precede derived axes in `axes` */
    ms_axis_view axes[MS_MAX_VIEWS];
} ms_mesh_view;

/* Describes a mesh on a cluster; only axes named as in the zoo have derived axes. Errors:
 * those of ms_mesh_roles and ms_mesh_derive; MS_EINPUT: too few GPUs in cluster. */
ms_status ms_mesh_view_make(ms_ctx *cx, const ms_mesh *mesh,
                            const ms_zoo_choices *choices, const ms_cluster *cluster,
                            ms_mesh_view *out);

/* Finds an axis or derived axis by its name here or in the zoo. If there is none:
 * MS_EINPUT, naming command line option `option` and the nearest name. */
ms_status ms_mesh_view_find(ms_ctx *cx, const ms_mesh_view *view, const char *name,
                            const char *option, const ms_axis_view **out);

/* Ranks of all groups of the axis, group by group; num_ranks numbers in the arena. */
const long *ms_axis_view_ranks(ms_ctx *cx, const ms_mesh_view *view,
                               const ms_axis_view *axis);

/* ---- text and JSON ---- */

/* Prints a few lines: axes, layout, strategy, cluster. */
void ms_mesh_print_head(FILE *out, ms_arena *arena, const ms_mesh_view *view);
/* Prints tables of the axes, the traffic along each, and the first groups. */
void ms_mesh_print_axes(FILE *out, ms_ctx *cx, const ms_mesh_view *view);
void ms_mesh_print_groups(FILE *out, ms_ctx *cx, const ms_mesh_view *view,
                          const ms_axis_view *axis);

/* Writes a mesh into an open JSON object of schema meshsim.mesh/1. */
void ms_mesh_write_fields(ms_jout *json, ms_ctx *cx, const ms_mesh_view *view);

/* Print the mesh zoo, a row per combination of axes in use, as text and as JSON. */
void ms_zoo_print(FILE *out, ms_arena *arena);
void ms_zoo_write_json(FILE *out);

#endif
