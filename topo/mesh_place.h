/* The place of an axis on a cluster: how many ranks of a group share a node, over which
 * NICs they leave it, and with how many groups they share its NICs. A node is a domain
 * of the innermost level: 8 GPUs of an HGX, 72 of an NVL72. Sources:
 * jax-ml/scaling-book gpus.md (reductions over several axes), and the division of the
 * ranks into nodes by CuTe's layout algebra, logical_divide(W:1, G:1). */
#ifndef MS_TOPO_MESH_PLACE_H
#define MS_TOPO_MESH_PLACE_H

#include "topo/layout.h"
#include "topo/mesh.h"

typedef struct ms_axis_place {
    long num_groups;
    /* ranks p of a group in one node; if groups differ, of the group in most nodes: its
     * size over its nodes, rounded up */
    long ranks_per_node;
    long nodes; /* nodes of the group that touches most */
    /* name of the innermost level of which one domain holds a whole group */
    const char *tier;
    /* The members below are 0 if every group is inside one node. */
    /* NICs of a node that one group can use: p times those of a GPU (rail wiring) */
    double nics;
    /* listed rate at which one group leaves a node: p times that of a GPU, where the
     * level with the least rate after oversubscription counts */
    double bytes_per_s;
    /* groups of the axis that leave the fullest node at once: G/p if they fill its G
     * GPUs */
    long siblings;
} ms_axis_place;

/* Lists the groups of a layout in a mesh of num_ranks ranks: an array of num_ranks
 * ranks, group after group by ascending first rank, each in the order of the layout.
 * MS_EINPUT if the groups do not cover every rank exactly once. */
ms_status ms_layout_groups(ms_ctx *cx, ms_layout layout, long num_ranks, long **ranks);

/* The modes of a layout as a group, merged where they continue each other. */
ms_group ms_layout_group(ms_arena *arena, ms_layout layout);

/* The place of an axis, given as a layout; `ranks` is the result of ms_layout_groups. */
ms_axis_place ms_axis_place_of(ms_arena *arena, ms_layout layout, const long *ranks,
                               long num_ranks, const ms_cluster *cluster);

/* GPUs in a node of the cluster, at most num_ranks. */
long ms_cluster_node_ranks(const ms_cluster *cluster, long num_ranks);

#endif
