/* Where the groups of an axis lie on a cluster: how many ranks of one share a node, what
 * they leave it over, and with whom they share its NICs. A node is a domain of the
 * innermost level: 8 GPUs of an HGX, 72 of an NVL72. Source: jax-ml/scaling-book gpus.md
 * (a reduction over X beside an inner axis Y), and the division of the ranks into nodes,
 * logical_divide(W:1, G:1), of CuTe's layout algebra. */
#ifndef MS_TOPO_MESH_PLACE_H
#define MS_TOPO_MESH_PLACE_H

#include "topo/layout.h"
#include "topo/mesh.h"

typedef struct ms_axis_place {
    long num_groups;
    /* p; where groups differ, of the one in most nodes: size over nodes, rounded up */
    long ranks_per_node;
    long nodes;       /* most that a group touches */
    const char *tier; /* innermost level that holds every group */
    /* Groups that leave a node: all NULL or 0 when every group stays inside one. */
    /* that one group can use in a node: p times those of a GPU (rail wiring) */
    double nics;
    /* listed rate at which one group leaves a node: p times that of a GPU, the least over
     * the levels that it crosses, each divided by its oversubscription */
    double bytes_per_s;
    /* groups of the axis that leave the fullest node at once: G/p when they fill it */
    long siblings;
} ms_axis_place;

/* Groups of a layout in a mesh of `num_ranks` ranks, one after the other, ascending by
 * their first rank; each in the order of the layout. num_ranks numbers. MS_EINPUT when
 * the groups do not cover every rank once. */
ms_status ms_layout_groups(ms_ctx *cx, ms_layout layout, long num_ranks, long **ranks);

/* The layout's modes, merged where they continue each other. */
ms_group ms_layout_group(ms_arena *arena, ms_layout layout);

/* ranks: of ms_layout_groups. */
ms_axis_place ms_axis_place_of(ms_arena *arena, ms_layout layout, const long *ranks,
                               long num_ranks, const ms_cluster *cluster);

/* GPUs in a node of the cluster, at most num_ranks. */
long ms_cluster_node_ranks(const ms_cluster *cluster, long num_ranks);

#endif
