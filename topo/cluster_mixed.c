/* Reads clusters whose devices are not all alike: groups of nodes, each like those of
 * another cluster file, and slow nodes. */
#include "base/paths.h"
#include "topo/cluster_priv.h"
#include "topo/device_kinds.h"

#include <math.h>
#include <stdint.h>

/* ---- slow nodes ---- */

#define MAX_NODE 1e7

static const ms_field slow_fields[] = {
    {MS_FIELD_ANY, "nodes", 0, .required = true,
     .help = "numbers of nodes, from 0 in the order of the file"},
    {MS_FIELD_NUMBER, "compute_frac", offsetof(ms_slow_nodes, compute_frac),
     .low = MS_LEAST_SLOW_FRAC, .high = 1,
     .help = "speed of their kernels / that of the other nodes; default 1"},
    {MS_FIELD_NUMBER, "link_frac", offsetof(ms_slow_nodes, link_frac),
     .low = MS_LEAST_SLOW_FRAC, .high = 1,
     .help = "bandwidth of their links / that of the other nodes; default 1"},
    {0}};

static ms_status read_slow_entry(ms_ctx *cx, ms_jval entry, ms_cluster *cluster)
{
    ms_slow_nodes slow = {.compute_frac = 1.0, .link_frac = 1.0};
    MS_TRY(ms_json_read(cx, entry, slow_fields, &slow));
    if (slow.compute_frac >= 1.0 && slow.link_frac >= 1.0)
        return ms_json_fail(cx, entry,
                            "slow nodes need compute_frac or link_frac below 1");
    ms_jval nodes = entry;
    ms_json_member(cx, entry, "nodes", &nodes);
    int num = ms_json_is_array(nodes) ? ms_json_length(nodes) : 0;
    if (num < 1)
        return ms_json_fail(cx, nodes, "nodes must be an array of numbers of nodes");
    for (int i = 0; i < num; i++) {
        ms_jval node = ms_json_element(cx, nodes, i);
        MS_TRY(ms_json_integer(cx, node, 0, (long)MAX_NODE, &slow.first));
        slow.last = slow.first;
        MS_TRY(ms_cluster_slow_down(cx, ms_json_loc(cx, node), &slow, cluster));
    }
    return MS_OK;
}

ms_status ms_cluster_read_slow(ms_ctx *cx, ms_jval root, ms_cluster *cluster)
{
    ms_jval list;
    if (!ms_json_member(cx, root, "slow", &list) || ms_json_is_null(list))
        return MS_OK;
    if (!ms_json_is_array(list))
        return ms_json_fail(cx, list, "slow must be an array of slow nodes");
    for (int i = 0; i < ms_json_length(list); i++)
        MS_TRY(read_slow_entry(cx, ms_json_element(cx, list, i), cluster));
    return MS_OK;
}

/* ---- groups ---- */

#define AT(member) offsetof(ms_cluster, member)

static const ms_field mixed_fields[] = {
    {MS_FIELD_TEXT, "name", AT(name), .required = true, .help = "name of the cluster"},
    {MS_FIELD_TEXT, "description", AT(description), .help = "one line for people"},
    {MS_FIELD_TEXT, "source", AT(source), .required = true,
     .help = "where the figures come from, with date"},
    {MS_FIELD_TEXT, "network", AT(network), .required = true,
     .help = "network between the groups: a key of all profiles' networks"},
    {MS_FIELD_ANY, "device_groups", 0, .required = true,
     .help = "groups of equal nodes: the cluster that they are like, and their number"},
    {MS_FIELD_ANY, "levels", 0, .required = true,
     .help = "one level, the network between the groups"},
    {MS_FIELD_NUMBER, "usd_per_gpu_hour", AT(usd_per_gpu_hour), .nullable = true,
     .low = 0, .high = 1e6, .help = "mean price of one GPU for an hour"},
    {MS_FIELD_ANY, "slow", 0, .help = "nodes that are slower than the others"},
    {0}};

#undef AT

typedef struct node_group {
    const char *cluster;
    long nodes;
} node_group;

static const ms_field group_fields[] = {
    {MS_FIELD_TEXT, "cluster", offsetof(node_group, cluster), .required = true,
     .help = "cluster whose device, node and network the group has"},
    {MS_FIELD_INTEGER, "nodes", offsetof(node_group, nodes), .required = true, .low = 1,
     .high = MAX_NODE, .help = "number of nodes"},
    {0}};

/* Loads the cluster that a group is like; a mixed one is refused before it is read, so
 * that no file can contain itself. */
static ms_status load_like(ms_ctx *cx, ms_loc loc, const char *name,
                           const ms_cluster **out)
{
    const char *path = NULL;
    ms_jdoc *doc = NULL;
    ms_jval root, other;
    ms_ctx named = {.arena = cx->arena, .verbosity = -1};
    if (ms_config_resolve(&named, "clusters", "cluster", name, &path) != MS_OK) {
        ms_fail(cx, named.status, loc, "%s", named.first->message);
        ms_hint(cx, "%s", named.first->hint);
        return MS_EINPUT;
    }
    MS_TRY(ms_json_load(cx, path, &doc, &root));
    bool is_mixed = ms_json_member(cx, root, "device_groups", &other) ||
                    ms_json_member(cx, root, "slow", &other);
    ms_cluster *cluster = MS_NEW(cx->arena, ms_cluster);
    ms_status status =
        is_mixed ? ms_fail(cx, MS_EINPUT, loc,
                           "cluster \"%s\" has devices of several kinds, a group needs "
                           "one kind",
                           name)
                 : ms_cluster_read(cx, root, cluster);
    ms_json_close(doc);
    *out = cluster;
    return status;
}

/* Checks that the groups of a mixed cluster can share a job: nodes and innermost domains
 * of equal size, joined by switches, with NICs. */
static ms_status check_like(ms_ctx *cx, ms_loc loc, const ms_cluster *like,
                            const ms_cluster *first)
{
    const ms_level *inner = &like->levels[0];
    if (like->num_levels < 2 || inner->topology != MS_SWITCH) {
        return ms_fail(cx, MS_EINPUT, loc,
                       "cluster \"%s\" has %s, a group of a mixed cluster needs NICs and "
                       "a switch inside its innermost level",
                       like->name,
                       like->num_levels < 2 ? "one level of network"
                                            : ms_topology_names[inner->topology]);
    }
    if (inner->gpus_per_domain != first->levels[0].gpus_per_domain ||
        like->gpus_per_node != first->gpus_per_node) {
        return ms_fail(cx, MS_EINPUT, loc,
                       "nodes of \"%s\" have %ld GPUs in domains of %ld, those of \"%s\" "
                       "%ld in domains of %ld: all groups need equal nodes",
                       like->name, like->gpus_per_node, inner->gpus_per_domain,
                       first->name, first->gpus_per_node,
                       first->levels[0].gpus_per_domain);
    }
    return MS_OK;
}

typedef struct group_list {
    int num;
    ms_device_kind *kinds;
    ms_kind_range *ranges;
    long num_gpus;
} group_list;

static ms_status read_group(ms_ctx *cx, ms_jval value, group_list *list)
{
    node_group group = {0};
    const ms_cluster *like;
    MS_TRY(ms_json_read(cx, value, group_fields, &group));
    ms_loc loc = ms_json_key_loc(cx, value, "cluster");
    MS_TRY(load_like(cx, loc, group.cluster, &like));
    MS_TRY(check_like(cx, loc, like, list->num > 0 ? list->kinds[0].like : like));
    long num_gpus = group.nodes * like->gpus_per_node;
    if (num_gpus % like->levels[0].gpus_per_domain != 0)
        return ms_fail(cx, MS_EINPUT, ms_json_key_loc(cx, value, "nodes"),
                       "%ld nodes of %ld GPUs fill no whole domains of %ld GPUs",
                       group.nodes, like->gpus_per_node, like->levels[0].gpus_per_domain);
    list->kinds[list->num] = (ms_device_kind){like, list->num, 1.0, 1.0};
    list->ranges[list->num] = (ms_kind_range){num_gpus, list->num};
    list->num_gpus += num_gpus;
    list->num++;
    return MS_OK;
}

static ms_status read_groups(ms_ctx *cx, ms_jval groups, group_list *list)
{
    int num = ms_json_is_array(groups) ? ms_json_length(groups) : 0;
    if (num < 2 || num > MS_MAX_DEVICE_KINDS)
        return ms_json_fail(cx, groups,
                            "device_groups must be an array of 2 to %d groups",
                            MS_MAX_DEVICE_KINDS);
    list->kinds = MS_NEW_ARRAY(cx->arena, num, ms_device_kind);
    list->ranges = MS_NEW_ARRAY(cx->arena, num, ms_kind_range);
    for (int i = 0; i < num; i++)
        MS_TRY(read_group(cx, ms_json_element(cx, groups, i), list));
    return MS_OK;
}

static ms_status read_between(ms_ctx *cx, ms_jval root, ms_cluster *out)
{
    ms_jval levels = root;
    ms_json_member(cx, root, "levels", &levels);
    if (!ms_json_is_array(levels) || ms_json_length(levels) != 1)
        return ms_json_fail(cx, levels,
                            "levels of a mixed cluster must be an array of one level, "
                            "the network between its groups");
    ms_jval value = ms_json_element(cx, levels, 0);
    ms_level *level = MS_NEW(cx->arena, ms_level);
    MS_TRY(ms_level_read(cx, value, level));
    ms_jval rails;
    if (level->gpus_per_domain != 0 || level->topology != MS_SWITCH ||
        ms_json_member(cx, value, "rails", &rails))
        return ms_json_fail(cx, value,
                            "the network between groups holds everything, without "
                            "gpus_per_domain, topology or rails");
    out->between = level;
    return MS_OK;
}

ms_status ms_cluster_read_mixed(ms_ctx *cx, ms_jval root, ms_jval groups, ms_cluster *out)
{
    group_list list = {0};
    MS_TRY(ms_json_read(cx, root, mixed_fields, out));
    MS_TRY(read_groups(cx, groups, &list));
    MS_TRY(read_between(cx, root, out));
    out->max_gpus = list.num_gpus;
    out->num_kinds = out->num_ranges = list.num;
    out->kinds = list.kinds;
    out->ranges = list.ranges;
    ms_cluster_join_kinds(cx->arena, out);
    return ms_cluster_read_slow(cx, root, out);
}
