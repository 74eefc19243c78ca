/* Cost law and link loads of sends from each rank of a group to the next rank. */
#include "costmodel/cost/collective_priv.h"

#include <math.h>

/* Bytes per second from a rank to the next inside a domain: all links of a switch, one of
 * a mesh; on a torus one, shared by all groups whose hops pass it. */
static double neighbour_rate(const ms_law_setting *s)
{
    const ms_level *level = &s->cluster->levels[0];
    double rate = level->bandwidth_bytes_per_s;
    if (level->topology == MS_FULL_MESH)
        return rate / ((double)ms_level_gpus(level) - 1.0);
    if (level->topology == MS_TORUS)
        return rate / (2.0 * (double)level->num_dims * (double)s->torus->step);
    return rate;
}

/* Adds the law of a send to the next rank, by the slowest hop of the group (its tier). */
static void add_send(ms_collective_law *law, const ms_law_setting *s)
{
    double rate = s->tier > 0 ? s->nic_bytes_per_s
                              : neighbour_rate(s) * s->profile->link_frac.value;
    if (s->tier > 0 && s->network->send_frac.value > 0.0)
        rate *= s->network->send_frac.value / s->network->bandwidth_frac.value;
    double alpha_s = s->profile->p2p_base_s.value + s->cluster->levels[s->tier].latency_s;
    ms_law_add(law, MS_ALGORITHM_SEND, alpha_s, 1.0 / rate, 0.0);
}

static void add_loads(ms_link_load *load, const ms_flow *flow)
{
    for (long i = 0; i + 1 < flow->num_ranks; i++)
        ms_load_route(load, flow->ranks[i], flow->ranks[i + 1], flow->size_bytes);
}

double ms_chain_nic_frac(double ranks, double per_domain)
{
    return (ceil(ranks / per_domain) - 1.0) / (ranks - 1.0);
}

const ms_algorithm_row ms_algorithm_send = {
    .name = "send",
    .collectives = 1u << MS_SEND,
    .add_law = add_send,
    .add_loads = add_loads,
    .nic_frac = ms_chain_nic_frac,
};
