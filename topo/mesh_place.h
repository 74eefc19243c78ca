/* The place of an axis on a cluster: how many ranks of a group share a node (a domain of
 * the innermost level), over which NICs they leave it, and with how many groups. Sources:
 * jax-ml/scaling-book gpus.md, and logical_divide(W:1, G:1) of CuTe's layout algebra. */
#ifndef MS_TOPO_MESH_PLACE_H
#define MS_TOPO_MESH_PLACE_H

#include "topo/layout.h"
#include "topo/mesh.h"

typedef struct ms_axis_place {
    long num_groups;
    /* ranks of a group in a node; if uneven, group size divided by `nodes`, rounded up */
    long ranks_per_node;
    long nodes; /* largest number of nodes that a group touches */
    /* name of the innermost level of which one domain holds a whole group */
    const char *tier;
    /* nics, bytes_per_s and siblings are 0 if every group is inside one node. */
    /* NICs over which a group leaves a node: ranks there, where fewest, times NICs of a
     * GPU */
    double nics;
    /* bandwidth of a group out of that node: its ranks * the slowest level's per GPU */
    double bytes_per_s;
    /* largest number of groups in one node that have ranks on other nodes, too */
    long siblings;
} ms_axis_place;

/* Lists all groups of a layout in num_ranks ranks: by ascending first rank, and the ranks
 * of each in the layout's order. MS_EINPUT unless every rank is in one group. */
ms_status ms_layout_groups(ms_ctx *cx, ms_layout layout, long num_ranks, long **ranks);

/* The modes of a layout as a group, merged where they continue each other. */
ms_group ms_layout_group(ms_arena *arena, ms_layout layout);

/* The place of an axis, given as a layout; `ranks` is the result of ms_layout_groups. */
ms_axis_place ms_axis_place_of(ms_arena *arena, ms_layout layout, const long *ranks,
                               long num_ranks, const ms_cluster *cluster);

/* GPUs in a node of the cluster, at most num_ranks. */
long ms_cluster_node_ranks(const ms_cluster *cluster, long num_ranks);

#endif
