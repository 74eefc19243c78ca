/* Cost law and link loads of all-to-alls, in which every rank sends to every other. */
#include "base/number.h"
#include "costmodel/cost/collective_priv.h"

#include <math.h>

/* ---- law ---- */

/* Link rate of all-to-alls: NCCL's; if kernels write to other ranks, that of rings. */
static double exchange_rate(const ms_law_setting *s)
{
    const ms_profile *profile = s->profile;
    return s->link_bytes_per_s * (s->by_kernels ? ms_max(profile->link_frac.value,
                                                         profile->all_to_all_frac.value)
                                                : profile->all_to_all_frac.value);
}

/* Adds the law of an all-to-all of n ranks inside a domain: n - 1 direct exchanges,
 * latency by log2 n. On a torus the longest dim's links limit: in a ring of n ranks a
 * link carries 1/4 of its bytes in an all-gather of the same data, since a message
 * travels n/4 hops on average (scaling-book sharding.md). */
static void add_link_all_to_all(ms_collective_law *law, const ms_law_setting *s)
{
    const ms_profile *profile = s->profile;
    double alpha_s = profile->all_to_all_base_s.value +
                     profile->all_to_all_step_s.value * log2(s->ranks);
    double beta = (s->ranks - ms_law_own_step(s)) / (s->ranks * exchange_rate(s));
    if (s->torus != NULL) {
        alpha_s += profile->link_step_s.value * s->torus->hops;
        beta = s->torus->cut /
               (s->link_bytes_per_s / s->torus->links * profile->all_to_all_frac.value);
    }
    ms_law_add(law, MS_ALGORITHM_DIRECT, alpha_s, beta, profile->ramp.value);
}

/* Adds the law of an all-to-all across nodes with p of n ranks each: (n - p)/n of a
 * rank's bytes leave over its own NIC, (p - 1)/n travel over links; the longer time
 * counts. Rates of NICs cannot be pooled (NVIDIA/nccl-tests issue 130). Messages to
 * several nodes overlap: latency grows by a step per doubling of nodes. Assumed: no
 * multi-node sweep is public. */
static void add_network_all_to_all(ms_collective_law *law, const ms_law_setting *s)
{
    const ms_profile *profile = s->profile;
    double alpha_s = s->network->base_s.value +
                     profile->all_to_all_step_s.value * log2(s->ranks) +
                     s->network->step_s.value * log2(s->nodes);
    double link_rate = exchange_rate(s);
    double wire =
        s->wire_frac * (s->ranks - s->narrowest) / (s->ranks * s->nic_bytes_per_s);
    double link = (s->per_node - ms_law_own_step(s)) / (s->ranks * link_rate);
    if (s->by_kernels) /* tokens are forwarded inside the node to their experts */
        link = (s->per_node - ms_law_own_step(s)) / (s->per_node * link_rate);
    if (s->torus != NULL && s->per_node > 1.0)
        link = s->torus->cut * s->per_node * s->torus->links / (s->ranks * link_rate);
    ms_law_add_between_nodes(law, MS_ALGORITHM_DIRECT, alpha_s, ms_max(wire, link),
                             s->network->ramp.value);
}

static void add_law(ms_collective_law *law, const ms_law_setting *s)
{
    if (s->tier > 0)
        add_network_all_to_all(law, s);
    else
        add_link_all_to_all(law, s);
}

/* ---- loads ---- */

static void add_pairs(ms_link_load *load, const ms_flow *flow, double bytes,
                      bool inside_too)
{
    const long *ranks = flow->ranks;
    long size = ms_load_domain_size(load);
    for (long i = 0; i < flow->num_ranks; i++)
        for (long j = 0; j < flow->num_ranks; j++)
            if (i != j && (inside_too || ranks[i] / size != ranks[j] / size))
                ms_load_both_ways(load, ranks[i], ranks[j], bytes);
}

/* Adds the link bytes of an all-to-all of size S over n ranks: S/n for each pair of ranks
 * in different domains or on a torus; those of a ring inside a switch or mesh domain. */
static void add_loads(ms_link_load *load, const ms_flow *flow)
{
    double pair_bytes = flow->size_bytes / (double)flow->num_ranks;
    bool torus = load->fabric->cluster->levels[0].topology == MS_TORUS;
    for (long i = 0; i < flow->num_ranks && !torus;) {
        ms_domain_ranks here = ms_flow_domain(load, flow, i);
        ms_load_inside(load, here, pair_bytes * (double)(here.num - 1));
        i += here.num;
    }
    if (torus || ms_flow_domain(load, flow, 0).num < flow->num_ranks)
        add_pairs(load, flow, load->wire_frac * pair_bytes, torus);
}

static double nic_frac(double ranks, double per_domain)
{
    return (ranks - per_domain) / (ranks - 1.0);
}

const ms_algorithm_row ms_algorithm_direct = {
    .name = "direct",
    .collectives = 1u << MS_ALL_TO_ALL,
    .add_law = add_law,
    .add_loads = add_loads,
    .nic_frac = nic_frac,
};
