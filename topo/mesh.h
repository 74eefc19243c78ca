/* A device mesh: named axes over ranks 0..W-1 in row-major order, so that the last axis
 * varies fastest. A collective along an axis runs in every group of ranks that agree on
 * all other coordinates; over several axes at once, flattened, a group runs over all of
 * them. A span describes how such a group lies on the levels of a cluster. */
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

/* A mesh; the product of its sizes is num_ranks. */
typedef struct ms_mesh {
    int num_axes;
    long num_ranks;
    ms_mesh_axis axes[MS_MAX_AXES]; /* axes, outer to inner */
} ms_mesh;

/* Makes a mesh of num_axes axes, outer to inner, with sizes >= 1; strides and the
 * number of ranks are computed. Names are not copied. */
ms_mesh ms_mesh_make(const char *const *names, const long *sizes, int num_axes);
/* Index of an axis by name; -1 if absent. */
int ms_mesh_find(const ms_mesh *mesh, const char *name);

/* The group of ranks along one axis, or several flattened axes, that contains rank 0,
 * as modes (size, stride) from outer to inner. Modes of size 1 are dropped; modes that
 * continue each other are merged. */
typedef struct ms_group {
    long size;
    int num_modes;
    ms_mode modes[MS_MAX_AXES];
} ms_group;

/* The group over the axes with the given indices, in mesh order. */
ms_group ms_mesh_group(const ms_mesh *mesh, const int *axes, int num_axes);
/* Writes the ranks of the group that contains `rank` into out[group.size], ascending by
 * coordinate. */
void ms_mesh_group_ranks(const ms_mesh *mesh, const ms_group *group, long rank,
                         long *out);

/* How the ranks of a group inside one torus domain lie on the torus. All groups of the
 * axis are assumed to communicate at once, so that groups on the same line share its
 * links. Source: rings and all-to-alls on a torus of jax-ml/scaling-book sharding.md
 * and tpus.md. */
typedef struct ms_torus_span {
    /* links over which a rank can send, as a number of links: sum over the dimensions
     * that the group spans of 2 (ring) or 1 (line), each divided by the number of
     * groups that share it; 0: no torus */
    double links;
    /* number of links from end to end: half of each ring plus each whole line */
    double hops;
    /* bytes over the busiest link in an all-to-all in which every rank sends 1 byte in
     * total: the largest of side/8 over rings and side/4 over lines */
    double cut;
    long step; /* largest number of links from one rank of the group to the next */
} ms_torus_span;

/* Whether two spans are equal in every member. */
bool ms_torus_span_equal(const ms_torus_span *a, const ms_torus_span *b);

/* The span of a group: how it lies on the levels of a cluster. Sources:
 * jax-ml/scaling-book gpus.md, and the complement of a sub-mesh: if p of the ranks of a
 * group share a domain of G GPUs, then G/p groups of the axis share the links of the
 * domain. */
typedef struct ms_span {
    long size;
    int num_levels;
    /* Ranks of the group in each domain of level l that it touches (the whole group at
     * the outermost level); if that differs between domains, the size over the number
     * of domains, rounded up. */
    long per_domain[MS_MAX_LEVELS];
    /* Fewest ranks of any group in an innermost domain that does not hold all of it,
     * not counting the domain in which the job ends half-way: a ring leaves such a
     * domain over as many NICs, and the narrowest place limits its rate. per_domain[0]
     * if all domains hold equally many; 0 means per_domain[0] too. */
    long narrowest;
    /* Tier of the group: the innermost level of which one domain holds the whole
     * group. */
    int tier;
    /* Groups of the axis that leave one node at once: gpus_per_node / (ranks of a group
     * in a node). */
    double siblings_per_node;
    ms_torus_span torus; /* set if the innermost level is a torus */
} ms_span;

/* The span of the groups of an axis. If they lie differently (72 GPUs of a domain are
 * no power of two), it describes the group that touches most domains, the slowest. On a
 * torus the ranks are arranged as if this group were the only one. */
ms_span ms_group_span(const ms_group *group, long num_ranks, const ms_cluster *cluster);

#endif
