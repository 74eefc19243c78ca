/* Cost law and link loads of NCCL's double binary tree, for all-reduces over domains. */
#include "base/number.h"
#include "costmodel/cost/collective_priv.h"

#include <math.h>

/* ---- law ---- */

/* Seconds per byte of a tree inside its nodes: in the switch, or up and down a chain. */
static double tree_inside_s(const ms_law_setting *s)
{
    double rate = s->link_bytes_per_s * s->profile->link_frac.value;
    if (ms_law_reduces_in_switch(s))
        rate = ms_law_in_switch_rate(s);
    return s->per_node > 1.0 ? 2.0 * (s->ranks - 1.0) / (s->ranks * rate) : 0.0;
}

/* Adds the law of an all-reduce of S bytes by NCCL's double binary tree over nodes of p
 * ranks: up and down log2(nodes) levels, with chains or in-switch reduction inside nodes.
 * A node sends 2 S over its p NICs at tree_frac of their rate: S/2 up once and down twice
 * in one tree, S/2 up once in the other; levels that store and forward add up. Two nodes
 * exchange S once each way; then the reduction inside the node limits: published two-node
 * H100 all-reduces (470-487 GB/s bus) exceed what a ring can reach. Two nodes with chains
 * gain nothing, since NCCL takes its ring: 190 GB/s published for two A100 nodes. */
static void add_network_tree(ms_collective_law *law, const ms_law_setting *s)
{
    const ms_network_profile *network = s->network;
    double levels = ceil(log2(s->nodes));
    double alpha_s = network->base_s.value + 2.0 * levels * network->step_s.value +
                     2.0 * (s->per_node - 1.0) * s->profile->link_step_s.value;
    bool pair = s->nodes <= 2.0 && (s->per_node <= 1.0 || ms_law_reduces_in_switch(s));
    double share = pair ? 2.0 : network->tree_frac.value;
    double serial = 1.0 + network->tree_serial.value * (levels - 1.0);
    double out_s = 2.0 * serial / (s->narrowest * s->nic_bytes_per_s * share);
    ms_law_add_between_nodes(law, MS_ALGORITHM_TREE, alpha_s,
                             ms_max(out_s, tree_inside_s(s)), network->tree_ramp.value);
}

static void add_law(ms_collective_law *law, const ms_law_setting *s)
{
    if (s->tier > 0)
        add_network_tree(law, s);
}

/* ---- loads ---- */

/* Parent of a node in a binary tree whose leaves are the odd nodes; node 0 is the root.
 * Source: NVIDIA/nccl src/graph/trees.cc. */
static long tree_parent(long node, long num_nodes)
{
    long lowest = node & -node;
    long parent = (node ^ lowest) | (lowest << 1);
    return parent < num_nodes ? parent : node ^ lowest;
}

/* Node of the second tree in place of `node` of the first; leaves become inner nodes. */
static long second_tree_node(long node, long num_nodes)
{
    return num_nodes % 2 == 0 ? num_nodes - 1 - node : (node + 1) % num_nodes;
}

/* Adds link bytes: two trees over domains with S/2 each, a chain inside each domain. */
static void add_loads(ms_link_load *load, const ms_flow *flow)
{
    long num = 0, *first = load->scratch;
    for (long i = 0; i < flow->num_ranks;) {
        ms_domain_ranks here = ms_flow_domain(load, flow, i);
        ms_load_inside(load, here,
                       2.0 * flow->size_bytes * (double)(here.num - 1) /
                           (double)here.num);
        first[num++] = i;
        i += here.num;
    }
    for (long node = 1; node < num; node++) {
        for (int tree = 0; tree < 2; tree++) {
            long up = tree_parent(node, num);
            ms_domain_ranks a = ms_flow_domain(
                load, flow, first[tree == 0 ? node : second_tree_node(node, num)]);
            ms_domain_ranks b = ms_flow_domain(
                load, flow, first[tree == 0 ? up : second_tree_node(up, num)]);
            ms_load_crossing(load, a, b, 0.5 * flow->size_bytes);
            ms_load_crossing(load, b, a, 0.5 * flow->size_bytes);
        }
    }
}

/* Alias "nvlstree": the tree between nodes that each reduce in their switch. */
const ms_algorithm_row ms_algorithm_tree = {
    .name = "tree",
    .alias = "nvlstree",
    .collectives = 1u << MS_ALL_REDUCE,
    .in_switch = true,
    .add_law = add_law,
    .add_loads = add_loads,
    .nic_frac = ms_chain_nic_frac,
};
