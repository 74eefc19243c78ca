/* Places of axes: tier and ranks per node are from ms_group_span, the rest is counted. */
#include "topo/mesh_place.h"

#include "base/number.h"
#include "topo/allocation.h"

#include <assert.h>
#include <math.h>

ms_status ms_layout_groups(ms_ctx *cx, ms_layout layout, long num_ranks, long **ranks)
{
    ms_layout all = ms_layout_make(MS_LEXICOGRAPHIC, num_ranks, 1), divided;
    MS_TRY(ms_layout_divide(cx, all, layout, &divided));
    assert(divided.size == num_ranks);
    *ranks = ms_layout_values(cx->arena, divided);
    return MS_OK;
}

ms_group ms_layout_group(ms_arena *arena, ms_layout layout)
{
    ms_layout flat = ms_layout_coalesce(arena, layout);
    ms_group group = {.size = flat.size};
    for (int i = 0; i < ms_layout_rank(flat); i++) {
        ms_layout mode = ms_layout_mode(flat, i);
        if (mode.size == 1)
            continue;
        assert(mode.num_modes == 0 && group.num_modes < MS_MAX_AXES);
        group.modes[group.num_modes].size = mode.size;
        group.modes[group.num_modes++].stride = mode.stride;
    }
    return group;
}

long ms_cluster_node_ranks(const ms_cluster *cluster, long num_ranks)
{
    long domain = ms_allocation_of(cluster, num_ranks).domain_ranks[0];
    return domain > num_ranks ? num_ranks : domain;
}

/* Number of nodes that a group touches; `ranks`, those of the group, must ascend. */
static long count_nodes(const long *ranks, long size, long node)
{
    long num_nodes = 1;
    for (long i = 1; i < size; i++)
        num_nodes += ranks[i] / node != ranks[i - 1] / node;
    return num_nodes;
}

/* Sets place->nodes, the most nodes that a group touches, and place->siblings, the most
 * groups that lie in part, not wholly, in one node. */
static void count_crossings(ms_arena *arena, const long *ranks, long num_ranks, long node,
                            ms_axis_place *place)
{
    long size = num_ranks / place->num_groups;
    long *crossing = MS_NEW_ARRAY(arena, (num_ranks + node - 1) / node, long);
    for (long g = 0; g < place->num_groups; g++) {
        const long *group = ranks + g * size;
        long num_nodes = count_nodes(group, size, node);
        place->nodes = num_nodes > place->nodes ? num_nodes : place->nodes;
        for (long i = 0; num_nodes > 1 && i < size; i++) {
            if (i > 0 && group[i] / node == group[i - 1] / node)
                continue;
            long count = ++crossing[group[i] / node];
            place->siblings = count > place->siblings ? count : place->siblings;
        }
    }
}

ms_axis_place ms_axis_place_of(ms_arena *arena, ms_layout layout, const long *ranks,
                               long num_ranks, const ms_cluster *cluster)
{
    ms_group group = ms_layout_group(arena, layout);
    ms_span span = ms_group_span(&group, num_ranks, cluster);
    long node = ms_cluster_node_ranks(cluster, num_ranks);
    ms_axis_place place = {.num_groups = num_ranks / layout.size,
                           .ranks_per_node = span.per_domain[0],
                           .nodes = 1,
                           .tier = cluster->levels[span.tier].name};
    ms_arena_mark mark = ms_arena_save(arena);
    count_crossings(arena, ranks, num_ranks, node, &place);
    ms_arena_rewind(arena, mark);
    if (place.nodes == 1)
        return place;
    double rate = INFINITY, p = (double)ms_span_nic_ranks(&span);
    for (int i = 1; i <= span.tier || i <= span.ring_tier; i++)
        rate = ms_min(rate, cluster->levels[i].bandwidth_bytes_per_s /
                                cluster->levels[i].oversubscription);
    place.nics = p * cluster->levels[1].nics_per_gpu;
    place.bytes_per_s = p * rate;
    return place;
}
