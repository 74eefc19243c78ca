/* Named axes over ranks 0..W-1, row-major: the last axis is fastest. A collective along
 * an axis runs in every group of ranks that agree on all other coordinates. Axes may be
 * flattened: a group then runs over several axes at once. For every group the mesh tells
 * how it lies on the cluster. */
#ifndef MS_TOPO_MESH_H
#define MS_TOPO_MESH_H

#include "topo/cluster.h"
#include "topo/layout.h"

#define MS_MAX_AXES 8

typedef struct ms_mesh_axis {
    const char *name;
    long size;
    long stride; /* distance in ranks between neighbours along the axis */
} ms_mesh_axis;

typedef struct ms_mesh {
    int num_axes;
    long num_ranks;
    ms_mesh_axis axes[MS_MAX_AXES]; /* outer to inner */
} ms_mesh;

/* Strides are computed. Sizes are >= 1 and their product is the number of ranks. */
ms_mesh ms_mesh_make(const char *const *names, const long *sizes, int num_axes);
/* Index of an axis, -1 when absent. */
int ms_mesh_find(const ms_mesh *mesh, const char *name);

/* A group: one axis, or several flattened, as modes (size, stride), outer to inner.
 * Size-1 modes are dropped; modes that continue each other are merged. */
typedef struct ms_group {
    long size;
    int num_modes;
    ms_mode modes[MS_MAX_AXES];
} ms_group;

/* The group over the axes named (by index), in mesh order. */
ms_group ms_mesh_group(const ms_mesh *mesh, const int *axes, int num_axes);
/* Writes the ranks of the group that contains `rank` into out[group.size], ascending by
 * coordinate. */
void ms_mesh_group_ranks(const ms_mesh *mesh, const ms_group *group, long rank,
                         long *out);

/* How the ranks of a group inside one domain of a torus lie on it. All groups of the axis
 * are taken to be busy at once: those that lie on the same line share its wires. */
typedef struct ms_torus_span {
    /* wires that a rank can send over, in wires: sum over the dims it spans of 2 (ring)
     * or 1 (line), by the groups that share them; 0: no torus */
    double links;
    double hops; /* wires from end to end: half of each ring, a whole line */
    /* most bytes over one wire of an all-to-all in which each rank holds 1 byte: 1/8 of a
     * ring's side, 1/4 of a line's */
    double cut;
    long step; /* most wires from one rank to the next */
} ms_torus_span;

bool ms_torus_span_equal(const ms_torus_span *a, const ms_torus_span *b);

/* How a group lies on the levels of a cluster. Source: scaling-book gpus.md and the
 * complement rule for sub-meshes: p ranks of a group share a domain, so G/p groups of the
 * axis share the domain's links. */
typedef struct ms_span {
    long size;
    int num_levels;
    /* Ranks of the group in each domain of level l that it touches (the last level: all
     * of them); where they differ, the size over the number of domains, rounded up. */
    long per_domain[MS_MAX_LEVELS];
    /* Fewest ranks of any group in an innermost domain that it shares with others; the
     * domain in which the job ends half-way is left out. Rings leave it over as many
     * NICs: the narrowest place sets the pace. per_domain[0] where groups lie evenly; 0:
     * as per_domain[0]. */
    long narrowest;
    /* Innermost level whose domain holds the whole group: the tier of the group. */
    int tier;
    /* Groups of this axis that leave one node at once: gpus_per_node / ranks per node. */
    double siblings_per_node;
    ms_torus_span torus; /* where the innermost level is one */
} ms_span;

/* Groups of an axis may lie differently (72 GPUs in a domain are no power of two): the
 * span describes the group that crosses most domains, the slowest one. On a torus the
 * ranks are arranged for this group alone. */
ms_span ms_group_span(const ms_group *group, long num_ranks, const ms_cluster *cluster);

#endif
