/* Cost law and link loads of all-gathers, reduce-scatters and all-reduces by rings. */
#include "base/number.h"
#include "costmodel/cost/collective_priv.h"

#include <math.h>

/* ---- law ---- */

/* Number of steps of a ring; an all-reduce is a reduce-scatter and an all-gather. */
static double ring_steps(ms_collective collective, double ranks)
{
    return (collective == MS_ALL_REDUCE ? 2.0 : 1.0) * (ranks - 1.0);
}

/* Seconds that upper network levels add to a ring: one hop per domain boundary. */
static double upper_level_hops_s(const ms_law_setting *s)
{
    double extra_s = 0.0;
    for (int i = 2; i <= s->tier; i++) {
        double domains = ceil(s->ranks / (double)s->span->per_domain[i - 1]);
        double hop_s =
            s->cluster->levels[i].latency_s - s->cluster->levels[i - 1].latency_s;
        extra_s += (domains - 1.0) * ms_max(hop_s, 0.0);
    }
    return extra_s;
}

/* Adds the law of rings inside a domain. On a switch a rank's own share costs half a
 * step. On a full mesh n - 1 rings share no link, and there is no half step (links are
 * slow beside a local copy), which agrees with both published rates of MI300X: 47.7 GB/s
 * for 2 GPUs, 312.9 for 8 (docs/formulas). On a torus rings run along all dims that the
 * group spans, both ways round, each with its part of the bytes, pipelined in rotated
 * orders of the dims (jax-ml/scaling-book sharding.md, T = S / (W dims) for many chips);
 * a line instead of a ring has one way and takes twice the time. */
static void add_link_ring(ms_collective_law *law, const ms_law_setting *s)
{
    const ms_profile *profile = s->profile;
    double rounds = s->collective == MS_ALL_REDUCE ? 2.0 : 1.0;
    double steps = ring_steps(s->collective, s->ranks);
    double hops = s->torus != NULL ? rounds * s->torus->hops : steps;
    double alpha_s = profile->link_base_s.value + profile->link_step_s.value * hops;
    double own = s->cluster->levels[0].topology == MS_SWITCH ? 0.5 : 0.0;
    double rate = s->link_bytes_per_s * profile->link_frac.value;
    ms_law_add(law, MS_ALGORITHM_RING, alpha_s, (steps + own) / (s->ranks * rate),
               profile->ramp.value);
}

/* Adds the law of a ring of n ranks over several nodes: consecutive ranks of a node are
 * neighbours, so nodes - 1 of n - 1 steps cross nodes. A group with p ranks in a node
 * uses p NICs at once (rail wiring); the slower of NICs and links counts. A step takes at
 * least rank_step_s on networks where chunks, not links, set the pace. */
static void add_network_ring(ms_collective_law *law, const ms_law_setting *s)
{
    const ms_network_profile *network = s->network;
    double steps = ring_steps(s->collective, s->ranks);
    double crossing = ring_steps(s->collective, s->nodes);
    double rounds = s->collective == MS_ALL_REDUCE ? 2.0 : 1.0;
    double alpha_s =
        network->base_s.value +
        crossing * ms_max(network->step_s.value, network->rank_step_s.value) +
        (steps - crossing) *
            ms_max(s->profile->link_step_s.value, network->rank_step_s.value) +
        rounds * upper_level_hops_s(s);
    double link_rate = s->link_bytes_per_s * s->profile->link_frac.value;
    double wire = steps / (s->ranks * s->narrowest * s->nic_bytes_per_s);
    double link = s->per_node > 1.0
                      ? (steps + 1.0 - ms_law_own_step(s)) / (s->ranks * link_rate)
                      : 0.0;
    ms_law_add_between_nodes(law, MS_ALGORITHM_RING, alpha_s, ms_max(wire, link),
                             network->ramp.value);
}

static void add_law(ms_collective_law *law, const ms_law_setting *s)
{
    (s->tier > 0 ? add_network_ring : add_link_ring)(law, s);
}

/* ---- loads ---- */

/* Adds the link bytes of rings with S bytes: inside one domain each of n ranks sends E =
 * (n-1)/n S, for an all-reduce twice that. Over domains of p ranks p rings run, one per
 * rank and NIC: each rank sends E/p to the next domain and E (p-1)/p inside its own. */
static void add_loads(ms_link_load *load, const ms_flow *flow)
{
    double bytes =
        ms_collective_wire_bytes(flow->collective, flow->num_ranks, flow->size_bytes);
    ms_domain_ranks first = ms_flow_domain(load, flow, 0);
    if (first.num == flow->num_ranks) {
        ms_load_inside(load, first, bytes);
        return;
    }
    for (long i = 0; i < flow->num_ranks;) {
        ms_domain_ranks here = ms_flow_domain(load, flow, i);
        long end = i + here.num;
        ms_domain_ranks next =
            end < flow->num_ranks ? ms_flow_domain(load, flow, end) : first;
        ms_load_inside(load, here, bytes * (double)(here.num - 1) / (double)here.num);
        ms_load_crossing(load, here, next, bytes);
        i = end;
    }
}

static double nic_frac(double ranks, double per_domain)
{
    return ceil(ranks / per_domain) / ranks;
}

const ms_algorithm_row ms_algorithm_ring = {
    .name = "ring",
    .collectives = 1u << MS_ALL_GATHER | 1u << MS_REDUCE_SCATTER | 1u << MS_ALL_REDUCE,
    .add_law = add_law,
    .add_loads = add_loads,
    .nic_frac = nic_frac,
};
